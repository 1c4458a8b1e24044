"""One structured call, whatever carries it: the OpenAI client over a mocked transport, and a server that knows only plain chat.

The same over the server of a local model is in `test_local.py`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import openai

from taskweave.backbones.openai import OpenAI
from taskweave.backbones.structured import Answered, ask
from taskweave.prompts import PromptBook
from taskweave.records import Completion, Request
from taskweave.simulation import answers
from tests.hostile import Plain
from tests.samples import INPUTS

REQUEST = PromptBook.load().request("diagnose", INPUTS["diagnose"], schema=answers.diagnosis(), backbone="openai:any")
SAID = {"summary": "Two of three are done.", "deviations": ["The audit slipped."], "blockers": []}


HTTP = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]  # httpx, or what has followed it


class Context:
    """A work's context around one backbone."""

    site, draw, ordinal, latency = "Y1@ceo:diagnose", 0, 1, 0.0

    def __init__(self, backbone: OpenAI) -> None:
        self._backbone = backbone

    async def complete(self, request: Request) -> Completion:
        return await self._backbone.complete(request)


def answered(backbone: OpenAI) -> Answered[answers.Diagnosis]:
    async def work() -> Answered[answers.Diagnosis]:
        try:
            return await ask(
                Context(backbone),
                REQUEST,
                answers.Diagnosis.model_validate,
                lambda: answers.Diagnosis(summary="-", deviations=(), blockers=()),
            )
        finally:
            await backbone.close()

    return asyncio.run(work())


def test_over_a_mocked_transport() -> None:
    sent: list[dict[str, object]] = []

    def answer(request: Any) -> Any:
        sent.append(json.loads(request.content))
        message = {"role": "assistant", "content": json.dumps(SAID)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "any-2026", "choices": [choice], "usage": usage}
        return HTTP.Response(200, json=body)

    got = answered(OpenAI("any", "http://127.0.0.1:1/v1", transport=HTTP.MockTransport(answer)))
    assert got.value.model_dump(mode="json") == SAID
    assert (got.quality, got.calls[0].rung, got.calls[0].prompt_tokens) == ("ok", "json_schema", 900)
    assert sent[0]["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "diagnose", "strict": True, "schema": answers.diagnosis()},
    }


def test_over_a_server_that_knows_only_plain_chat() -> None:
    with Plain() as server:
        got = answered(OpenAI("any", server.url))
    assert got.value.summary
    assert (got.quality, got.calls[0].rung) == ("ok", "plain")
    forms = [request.get("response_format", {}).get("type") for request in server.requests]
    assert forms == ["json_schema", "json_object", None]
