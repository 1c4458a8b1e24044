"""Servers on 127.0.0.1 with one flaw each, or none, behind which answers a model that reads and writes well.

    with Endpoint(window=2_048) as server: OpenAI("any", server.url)

`window` tokens (UTF-8 bytes / 4) of a prompt are read; of a longer one the front is dropped without a word, or with `honest` it is
refused.  `forms` are the structured answers that it knows; `usage`, `seeds` and `listing` whether it has these.  `obedient=False`
is a model that answers in prose whatever form was asked for, `keeping=False` a server that takes a schema and does not keep to it,
`repeating=False` a model that never repeats a code word, `calls` whether it makes native tool calls (None: the server refuses tools).
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable
from typing import Any

from tests.loopback import Loopback

FITS = {"fits": "yes", "boxes": 14, "reason": "there is room for twenty"}
BY_SCHEMA = {"counted_by": "dock-7"}


class Endpoint(Loopback):
    """The server, running while the context is open."""

    def __init__(
        self,
        *,
        window: int | None = None,
        honest: bool = False,
        forms: tuple[str, ...] = ("json_schema", "json_object"),
        usage: bool = True,
        seeds: bool = True,
        obedient: bool = True,
        keeping: bool = True,
        repeating: bool = True,
        calls: bool | None = True,
        faults: Iterable[int | str | None] = (),
    ) -> None:
        super().__init__(faults=faults)
        self.window, self.honest, self.forms = window, honest, forms
        self.usage, self.seeds, self.obedient, self.repeating = usage, seeds, obedient, repeating
        self.keeping, self.calls = keeping, calls
        self._draws = itertools.count()

    def enter(self, request: dict[str, Any], key: str) -> int | str | None:
        fault = super().enter(request, key)
        form = request.get("response_format", {}).get("type")
        if form is not None and form not in self.forms:
            return "form"
        if "tools" in request and self.calls is None:
            return "tools"
        if self.honest and self.window is not None and self._size(request) > self.window:
            return "overflow"
        return fault

    def completion(self, request: dict[str, Any], fault: int | str | None) -> dict[str, Any]:
        seen = self._seen(request)
        seen = seen if self.seeds else seen | {"seed": next(self._draws)}
        body = super().completion(seen, fault)
        if fault is not None:
            return body
        message = body["choices"][0]["message"]
        if "tools" in request:
            made = {"name": "parcel_record", "arguments": json.dumps({"room": 12, "sender": "Nordwind"})}
            answered = {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": made}]}
            message |= answered if self.calls else {"content": "Recorded.", "tool_calls": None}
            return body
        message["content"] = self._said(seen, body, message["content"])
        if not self.usage:
            body["usage"] = None
        return body

    def _said(self, request: dict[str, Any], body: dict[str, Any], otherwise: str) -> str:
        prompt = request["messages"][-1]["content"]
        if "one JSON object" in prompt and "boxes" in prompt:
            kept = self.keeping and request.get("response_format", {}).get("type") == "json_schema"
            return json.dumps(FITS | (BY_SCHEMA if kept else {})) if self.obedient else "Yes, they fit."
        if "response_format" in request:
            return otherwise if self.obedient else "I would rather not."
        word = re.search(r"The code word is (\S+)\.", prompt)
        if "What is the code word" in prompt:
            return word[1] if word and self.repeating else "I do not know."
        return f"{request.get('seed')} {body['id']} " + "and so on " * 10

    def _seen(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.window is None or self._size(request) <= self.window:
            return request
        last = request["messages"][-1]
        return request | {"messages": [last | {"content": last["content"].encode()[-4 * self.window :].decode(errors="ignore")}]}

    def _size(self, request: dict[str, Any]) -> int:
        return sum(len(message["content"].encode()) for message in request["messages"]) // 4
