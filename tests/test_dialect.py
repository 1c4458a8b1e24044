"""What an endpoint refuses is left out from then on, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from taskweave.backbones.dialect import Dialect, Trouble, too_long
from taskweave.backbones.openai import OpenAI
from taskweave.errors import Refused
from taskweave.records import Completion, Request, Sampling
from tests.hostile import REFUSALS
from tests.loopback import Loopback

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string", "maxLength": 90}},
    "required": ["text"],
    "additionalProperties": False,
}
REQUEST = Request(
    prompt="roll_up", version=1, inputs={}, messages=(("system", "You are."), ("user", "Answer.")), schema=SCHEMA,
    sampling=Sampling(temperature=0.5, max_tokens=500), backbone="openai:any", seed=7,
)  # fmt: skip


def refused(words: str, *, parameter: str = "", status: int = 400, request: Request = REQUEST) -> Dialect:
    """A dialect that has learnt from one refusal of a request."""
    dialect = Dialect()
    assert dialect.learn(Trouble(status=status, words=words, parameter=parameter), dialect.wire("any", request).body)
    return dialect


@pytest.mark.parametrize(
    ("words", "parameter", "gone"),
    [
        ("Unsupported value: 'temperature' does not support 0.5 with this model.", "temperature", "temperature"),
        ("temperature: extra fields not permitted", "", "temperature"),
        ("Unrecognized request argument supplied: seed", "", "seed"),
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "max_tokens",
            "max_tokens",
        ),
        ("Use 'max_completion_tokens' in place of 'max_tokens'", "", "max_tokens"),
        ("This model does not support json mode", "", "response_format/json_schema"),
        ("failed to parse grammar", "", "response_format/json_schema"),
    ],
)
def test_a_refused_parameter_is_not_sent_again(words: str, parameter: str, gone: str) -> None:
    before, after = Dialect().wire("any", REQUEST).body, refused(words, parameter=parameter).wire("any", REQUEST).body
    name, _, form = gone.partition("/")
    assert name in before
    if form:
        assert after["response_format"] == {"type": "json_object"}
    else:
        assert name not in after
    assert {key: value for key, value in after.items() if key in before and key != name} == {k: v for k, v in before.items() if k != name}


def test_what_was_left_out_is_said_with_each_answer() -> None:
    assert Dialect().wire("any", REQUEST).omitted == ()
    assert refused("seed is unknown").wire("any", REQUEST).omitted == ("seed",)
    renamed = refused("use max_completion_tokens, not max_tokens", parameter="max_tokens").wire("any", REQUEST)
    assert renamed.body["max_completion_tokens"] == 500
    assert renamed.omitted == ()


def test_a_limit_that_is_named_is_kept_to() -> None:
    wire = refused("max_tokens is too large: 500. This model supports at most 400 completion tokens").wire("any", REQUEST)
    assert wire.body["max_tokens"] == 400
    assert wire.omitted == ("max_tokens",)


def test_an_endpoint_that_takes_no_limit_at_all_is_asked_without() -> None:
    dialect = refused("unknown field max_tokens")
    assert dialect.learn(Trouble(status=422, words="unknown field max_completion_tokens"), dialect.wire("any", REQUEST).body)
    assert not {"max_tokens", "max_completion_tokens"} & dialect.wire("any", REQUEST).body.keys()


def test_without_a_system_role_its_text_opens_the_first_question() -> None:
    wire = refused("Only user and assistant roles are supported!").wire("any", REQUEST)
    assert wire.body["messages"] == [{"role": "user", "content": "You are.\n\nAnswer."}]


def test_a_schema_loses_its_lengths_before_it_is_given_up() -> None:
    wire = refused("Invalid schema for response_format 'roll_up': 'maxLength' is not permitted.", parameter="response_format").wire(
        "any", REQUEST
    )
    assert wire.rung == "json_schema"
    assert wire.body["response_format"]["json_schema"]["schema"]["properties"] == {"text": {"type": "string"}}


def test_a_lowered_request_asks_for_its_own_rung_only() -> None:
    dialect = Dialect()
    rungs = [dialect.wire("any", replace(REQUEST, lowered=lowered)).rung for lowered in (0, 1, 2, 0)]
    assert rungs == ["json_schema", "json_object", "plain", "json_schema"]


def test_words_that_name_nothing_of_what_was_sent_teach_nothing() -> None:
    dialect = Dialect()
    body = dialect.wire("any", replace(REQUEST, schema=None)).body
    for words in ("trouble 400", "response_format is unknown", "top_p is out of range"):
        assert not dialect.learn(Trouble(status=400, words=words), body)
    assert dialect.wire("any", REQUEST).body == Dialect().wire("any", REQUEST).body


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8500 in the messages).",
        "'max_tokens' or 'max_completion_tokens' is too large: 700. This model's maximum context length is 2048 tokens",
        "the request exceeds the available context size, try increasing it",
        "input length 5000 exceeds the model's context window",
    ],
)
def test_a_prompt_that_is_too_long_is_told_from_a_parameter_that_is_not_taken(words: str) -> None:
    assert too_long(words)


def test_other_refusals_are_not_taken_for_a_prompt_that_is_too_long() -> None:
    assert not any(too_long(body["message"]) for _, body in REFUSALS.values())


def asked(server: Loopback, times: int = 1, request: Request = REQUEST) -> list[Completion]:
    async def ask() -> list[Completion]:
        backbone = OpenAI("any", server.url)
        try:
            return [await backbone.complete(request) for _ in range(times)]
        finally:
            await backbone.close()

    return asyncio.run(ask())


@pytest.mark.parametrize("refusal", [name for name in REFUSALS if name != "no json_object"])
def test_a_request_that_is_refused_for_its_form_is_sent_anew_at_once(refusal: str) -> None:
    with Loopback(faults=[refusal]) as server:
        first, second = asked(server, times=2)
    assert first.text
    assert second.text
    assert len(server.requests) == 3, "the second call knows what the first has learnt"
    assert (first.rung, first.omitted) == (second.rung, second.omitted)


def test_an_overflow_in_words_alone_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests import loopback

    body: tuple[int, dict[str, Any]] = (
        400,
        {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"},
    )
    monkeypatch.setitem(loopback.ERRORS, "words", body)
    with Loopback(faults=["words"]) as server:
        (got,) = asked(server)
    assert got.finish == "overflow"


def test_a_refusal_that_names_nothing_stops_in_the_providers_words() -> None:
    with Loopback(faults=[400]) as server, pytest.raises(Refused, match="said 400: trouble 400"):
        asked(server)


@pytest.mark.parametrize(
    ("body", "gone"),
    [
        (b'{"error": "response_format is not supported"}', "response_format"),
        (b"temperature is not supported by this model", "temperature"),
        (b'{"detail": "Unknown field: seed"}', "seed"),
        (b'{"error": {"message": "System role not supported"}}', "system"),
    ],
)
def test_a_refusal_is_understood_in_whatever_body_it_comes(body: bytes, gone: str) -> None:
    with Loopback(faults=[body]) as server:
        (got,) = asked(server)
    assert got.text
    first, second = server.requests
    if gone == "system":
        assert second["messages"][0]["role"] == "user"
    else:
        assert second.get(gone) != first[gone]


def test_words_of_a_prompt_too_long_are_understood_in_whatever_body_they_come() -> None:
    with Loopback(faults=[b'{"error": "prompt is too long"}']) as server:
        (got,) = asked(server)
    assert got.finish == "overflow"
