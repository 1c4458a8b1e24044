"""How an endpoint wants to be asked: `Dialect`, which learns from what it refuses.

`wire(model, request)` is the body to send.  `learn(trouble, body)` takes a refusal of something in that body and leaves it out from then
on: a form of structured answer (native tool calls for a choice of a call; json_schema, then json_object, then none), a length in the
schema, max_tokens, temperature, seed, a system role.  What is learnt changes only how requests are sent, never what is asked or under which
key an answer is journaled.
It sends nothing itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskweave.backbones import calling
from taskweave.records import Json, Request

TOOLS = "tools"  # the rung above the others, of a choice of a call
RUNGS = ("json_schema", "json_object", "plain")
_TOO_LONG = re.compile(
    r"context[ _-]?(?:length|window|size)|maximum context|exceeds? the (?:available|model'?s) context|prompt is too long"
    r"|too many (?:input )?tokens|n_ctx|input (?:is )?too long|reduce the length",
    re.IGNORECASE,
)
_AT_MOST = re.compile(r"(?:at most|maximum(?: value)?(?: of| is|:)?|less than or equal to|<=)\s*`?(\d+)", re.IGNORECASE)
_FORM = re.compile(r"response[ _]?format|json[ _]?(?:schema|object|mode)|structured[ _]output|guided|grammar", re.IGNORECASE)
_TOOLS = re.compile(r"\btools?\b|\btool[ _-]?(?:choice|calls?|use)|\bfunctions?\b|function[ _-]?call", re.IGNORECASE)
_NO_TOOLS = re.compile(r"support.{0,40}\b(?:tools?|functions?)\b", re.IGNORECASE | re.DOTALL)
_TOOL_CHOICE = re.compile(r"tool[ _-]?choice", re.IGNORECASE)
_PARALLEL = "parallel_tool_calls"
_REQUIRED = "required"  # of a call: that there is one
_LENGTHS = ("maxLength", "minLength")
_LENGTH = re.compile(r"m(?:ax|in)[ _]?length", re.IGNORECASE)
_SYSTEM = re.compile(r"system.{0,20}(?:role|message|prompt)|role.{0,40}system|only user and assistant", re.IGNORECASE | re.DOTALL)
_LEAST_ROOM = 16  # tokens that an answer may be limited to, at the least: a smaller number in an error is another one


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """An HTTP error that says what the endpoint does not take."""

    status: int
    words: str
    parameter: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wire:
    """A request's body, the rung it asks for, and what of its sampling is left out."""

    body: dict[str, Any]
    rung: str
    omitted: tuple[str, ...]
    limit: int  # tokens that the answer may have


def too_long(words: str) -> bool:
    """Whether an error's words say that the prompt does not fit the model's context."""
    return _TOO_LONG.search(words) is not None


class Dialect:
    """What one endpoint has been found to take."""

    def __init__(self) -> None:
        self._lowest = 0  # index into RUNGS
        self._without: set[str] = set()
        self._limit: int | None = None
        self._limit_name: str | None = "max_tokens"

    def wire(self, model: str, request: Request) -> Wire:
        """The body that asks this request of this endpoint."""
        body: dict[str, Any] = {"model": model, "messages": self._messages(request)}
        if self._limit_name is not None:
            asked = request.sampling.max_tokens
            body[self._limit_name] = asked if self._limit is None else min(asked, self._limit)
        if "temperature" not in self._without:
            body["temperature"] = request.sampling.temperature
        if "seed" not in self._without:
            body["seed"] = request.seed
        schema = _without_lengths(request.schema) if "lengths" in self._without else request.schema
        tools = [] if TOOLS in self._without else calling.native(schema)
        rung = self._rung(request, choosing=bool(tools))
        if rung == TOOLS:
            body |= {"tools": tools, "tool_choice": "auto" if _REQUIRED in self._without else _REQUIRED}
            body |= {} if _PARALLEL in self._without else {_PARALLEL: False}
        elif rung == "json_schema":
            body["response_format"] = {"type": rung, "json_schema": {"name": request.prompt, "strict": True, "schema": schema}}
        elif rung == "json_object":
            body["response_format"] = {"type": rung}
        omitted: list[str] = [name for name in ("temperature", "seed") if name in self._without]
        if self._limit_name is None or (self._limit is not None and self._limit < request.sampling.max_tokens):
            omitted.append("max_tokens")
        return Wire(body=body, rung=rung, omitted=tuple(omitted), limit=request.sampling.max_tokens)

    def _rung(self, request: Request, *, choosing: bool) -> str:
        """The form to ask for: of those that the endpoint takes, so many below the highest as the request says."""
        if request.schema is None:
            return "plain"
        if choosing and not request.lowered:
            return TOOLS
        return RUNGS[min(max(self._lowest, request.lowered - choosing), len(RUNGS) - 1)]

    def learn(self, trouble: Trouble, body: Mapping[str, Any]) -> bool:
        """Leave out what the endpoint refuses of this body; False where the words name nothing of it.

        Many calls may be in flight when the first is refused: a refusal of what another call has unlearnt already is learnt too.
        """
        form = self.refused_form(trouble, body)
        if form is not None:
            if form in RUNGS:
                self._lowest = max(self._lowest, RUNGS.index(form) + 1)
            else:
                self._without.add(form)
            return True
        return self._learn_limit(trouble, body) or self._learn_parameter(trouble, body) or self._learn_roles(trouble, body)

    def refused_form(self, trouble: Trouble, body: Mapping[str, Any]) -> str | None:
        """The form of answer that the words refuse: a rung, "lengths" of a schema's texts, or what belongs to native calls; None where they
        speak of something else.

        Some servers say it with a 500, some that no such model takes tools with a 404.
        """
        if TOOLS in body:
            return self._refused_tools(trouble, body)
        asked = body.get("response_format")
        said = f"{trouble.parameter} {trouble.words}"
        if asked is None or trouble.status == 404 or not (_FORM.search(said) or (trouble.status < 500 and _LENGTH.search(said))):
            return None
        schema = asked.get("json_schema", {}).get("schema")
        return "lengths" if _LENGTH.search(said) and schema is not None and _without_lengths(schema) != schema else str(asked["type"])

    def _refused_tools(self, trouble: Trouble, body: Mapping[str, Any]) -> str | None:
        said = f"{trouble.parameter} {trouble.words}"
        if trouble.status == 404:
            return TOOLS if _NO_TOOLS.search(said) else None
        if _PARALLEL in body and "parallel" in said.lower():
            return _PARALLEL
        if trouble.status < 500 and _LENGTH.search(said) and _without_lengths(body[TOOLS]) != body[TOOLS]:
            return "lengths"
        if body["tool_choice"] == _REQUIRED and _TOOL_CHOICE.search(said):
            return _REQUIRED
        return TOOLS if _TOOLS.search(said) or _FORM.search(said) else None

    def _learn_limit(self, trouble: Trouble, body: Mapping[str, Any]) -> bool:
        named = self._named(trouble, body, ("max_completion_tokens", "max_tokens"))
        if named is None:
            return False
        most = _AT_MOST.search(trouble.words)
        if most is not None and _LEAST_ROOM <= int(most[1]) < body[named]:
            self._limit = min(int(most[1]), self._limit or int(most[1]))
        elif named == self._limit_name:
            self._limit_name = "max_completion_tokens" if named == "max_tokens" else None
        return True

    def _learn_parameter(self, trouble: Trouble, body: Mapping[str, Any]) -> bool:
        named = self._named(trouble, body, ("temperature", "seed"))
        if named is not None:
            self._without.add(named)
        return named is not None

    def _learn_roles(self, trouble: Trouble, body: Mapping[str, Any]) -> bool:
        if not _SYSTEM.search(trouble.words) or all(message["role"] != "system" for message in body["messages"]):
            return False
        self._without.add("system")
        return True

    def _named(self, trouble: Trouble, body: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
        """The first of these that was sent and that the error names, as its parameter or in its words."""
        sent = [name for name in names if name in body]
        return next((name for name in sent if name == trouble.parameter), None) or next(
            (name for name in sent if not trouble.parameter and re.search(rf"\b{name}\b", trouble.words, re.IGNORECASE)), None
        )

    def _messages(self, request: Request) -> list[dict[str, str]]:
        messages = [{"role": role, "content": text} for role, text in request.messages]
        if "system" not in self._without or messages[0]["role"] != "system":
            return messages
        first, rest = messages[0], messages[1:]
        if rest and rest[0]["role"] == "user":
            return [{"role": "user", "content": f"{first['content']}\n\n{rest[0]['content']}"}, *rest[1:]]
        return [{"role": "user", "content": first["content"]}, *rest]


def _without_lengths(schema: Json) -> Json:
    """The schema without bounds on the lengths of its texts, which some endpoints refuse."""
    if isinstance(schema, Mapping):
        return {name: _without_lengths(part) for name, part in schema.items() if name not in _LENGTHS or isinstance(part, Mapping)}
    return [_without_lengths(part) for part in schema] if isinstance(schema, list | tuple) else schema
