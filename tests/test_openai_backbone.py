"""The OpenAI backbone over real HTTP, against a server on loopback."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import pytest

from taskweave.backbones import backbone
from taskweave.backbones.openai import OpenAI, retry_after
from taskweave.backbones.structured import ask
from taskweave.errors import BadInput, Refused, Transient
from taskweave.prompts import PromptBook
from taskweave.records import Completion, Request
from taskweave.simulation import answers
from taskweave.tools.shelf import granted
from tests.loopback import Loopback, unreachable
from tests.samples import INPUTS

BOOK = PromptBook.load()
KEY = "sk-test-0123456789abcdef"
T = TypeVar("T")


def request(prompt: str = "roll_up", schema: dict[str, Any] | None = None, **changes: Any) -> Request:
    return BOOK.request(prompt, INPUTS[prompt] | changes, schema=schema or answers.roll_up(), backbone="openai:any")


def with_backbone(server: Loopback, work: Callable[[OpenAI], Awaitable[T]], **options: Any) -> T:
    async def run() -> T:
        backbone = OpenAI("any", server.url, **options)
        try:
            return await work(backbone)
        finally:
            await backbone.close()

    return asyncio.run(run())


def complete(server: Loopback, **options: Any) -> Completion:
    return with_backbone(server, lambda b: b.complete(request()), **options)


def test_what_is_sent_is_the_request_and_nothing_else() -> None:
    asked = request()
    with Loopback() as server:
        with_backbone(server, lambda b: b.complete(asked), api_key=KEY)
    (sent,) = server.requests
    assert sent == {
        "model": "any",
        "messages": [{"role": role, "content": text} for role, text in asked.messages],
        "temperature": asked.sampling.temperature,
        "max_tokens": asked.sampling.max_tokens,
        "seed": 0,
        "response_format": {"type": "json_schema", "json_schema": {"name": "roll_up", "strict": True, "schema": answers.roll_up()}},
    }
    assert server.keys == [KEY]


def test_an_answer_comes_with_its_usage_and_its_model() -> None:
    with Loopback() as server:
        first, again = complete(server), complete(server)
    assert set(json.loads(first.text or "")) == {"summary"}
    assert again.text == first.text, "equal requests are answered equally"
    assert (first.finish, first.refusal, first.model, first.fingerprint) == ("stop", None, "any", "fp_loopback")
    assert first.prompt_tokens is not None
    assert first.prompt_tokens > 500
    assert first.completion_tokens == -(-len((first.text or "").encode()) // 4)
    assert first.cached_tokens == 0


def test_cached_tokens_are_reported() -> None:
    long = request("partition_week", answers.week_partition(3, ("write",), ()))
    with Loopback() as server:
        with_backbone(server, lambda b: b.complete(long))
        second = with_backbone(server, lambda b: b.complete(long))
    assert second.cached_tokens is not None
    assert second.prompt_tokens is not None
    assert 1024 <= second.cached_tokens <= second.prompt_tokens


@pytest.mark.parametrize("prompt", [p.id for p in BOOK])
def test_every_step_goes_through_to_its_answer(prompt: str) -> None:
    names, activities = ("retention", "growth"), ("analyse", "implement")
    schema = {
        "formulate": answers.formulation(),
        "partition": answers.partition(("technology-manager",), names),
        "partition_week": answers.week_partition(3, activities, names),
        "decompose": answers.decomposition(3, ("Backend Engineer",), (), activities, 30.0),
        "execute": answers.deliverable(("report", "SQL")),
        "execute_tool": answers.tool_choice(granted(["wiki", "tickets"])),
        "merge": answers.merged(),
        "diagnose": answers.diagnosis(),
        "align": answers.alignment(),
        "reconcile": answers.reconciliation(("marketing-manager",)),
        "roll_up": answers.roll_up(),
        "respond": answers.response(1, activities, names),
    }[prompt]
    answer = getattr(answers, BOOK[prompt].schema)

    class Context:
        site, draw, ordinal, latency = "site", 0, 1, 0.0

        def __init__(self, backbone: OpenAI) -> None:
            self.complete = backbone.complete

    def never() -> answers.Answer:
        raise AssertionError("no fallback was needed")

    with Loopback(faults=["prose"]) as server:
        got = with_backbone(server, lambda b: ask(Context(b), request(prompt, schema), answer.model_validate, never))
    assert (got.quality, got.origin, type(got.value)) == ("ok", "model", answer)


def test_sixteen_calls_are_in_flight_at_once() -> None:
    async def many(backbone: OpenAI) -> list[Completion]:
        return await asyncio.gather(*(backbone.complete(request(date=f"2026-01-{n + 1:02}")) for n in range(16)))

    with Loopback(latency=0.3) as server:
        got = with_backbone(server, many)
    assert server.peak == 16
    assert len({c.text for c in got}) == 16
    assert server.in_flight == 0


@pytest.mark.parametrize(
    ("fault", "said", "billed"),
    [
        (429, "said 429: trouble 429", False),
        (500, "said 500", False),
        (503, "said 503", False),
        (408, "said 408", False),
        ("drop", "the connection to 127.0.0.1:[0-9]+ broke", True),
        ("garbage", "no chat completion", True),
        ("html", "no chat completion.*Welcome to the proxy", True),
        ("empty", "no chat completion", True),
    ],
)
def test_what_may_pass_is_transient_says_whether_it_may_be_billed_and_is_not_repeated_here(
    fault: int | str, said: str, billed: bool
) -> None:
    with Loopback(faults=[fault]) as server:
        with pytest.raises(Transient, match=said) as caught:
            complete(server)
        assert (caught.value.retry_after, caught.value.billed) == (0.0, billed)
        assert len(server.requests) == 1
        assert complete(server).text


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("key", "said 401: Incorrect API key provided: ….*check OPENAI_API_KEY"),
        ("quota", "exceeded your current quota.*no quota"),
        (403, "said 403"),
        (404, "said 404.*check the model 'any'"),
        (400, "said 400: trouble 400"),
        (422, "said 422"),
        ("redirect", "said 302: a redirect to /login .check the base URL 'http://127.0.0.1:[0-9]+/v1'"),
        (304, "said 304: a redirect to nowhere that it names"),
    ],
)
def test_what_cannot_pass_is_refused_in_the_providers_words_without_the_key(fault: int | str, said: str) -> None:
    with Loopback(faults=[fault]) as server, pytest.raises(Refused, match=said) as caught:
        complete(server, api_key=KEY)
    assert KEY not in str(caught.value)
    assert caught.value.__suppress_context__, "the provider's exception holds the request and its header"


def test_an_endpoint_that_has_moved_is_followed_where_the_same_is_asked_again() -> None:
    with Loopback(faults=["moved"]) as server:
        assert complete(server).text


def test_a_prompt_that_is_too_long_is_an_outcome_of_this_request() -> None:
    with Loopback(faults=["overflow"]) as server:
        assert complete(server) == Completion(text=None, finish="overflow", rung="json_schema")


def test_refusal_truncation_and_an_empty_answer_are_outcomes() -> None:
    with Loopback(faults=["refusal", "truncated", "null"]) as server:
        refused, short, empty = complete(server), complete(server), complete(server)
    assert (refused.text, refused.refusal) == (None, "I cannot help with that.")
    assert short.finish == "length"
    assert (empty.text, empty.finish) == (None, "stop")


def test_a_silent_endpoint_is_given_up_after_the_timeout() -> None:
    with Loopback(faults=["hang"]) as server, pytest.raises(Transient, match=r"no answer within 0\.3 s") as caught:
        complete(server, timeout=0.3)
    assert caught.value.billed, "it may have been answered all the same"


def test_an_endpoint_that_is_not_there_is_transient() -> None:
    with Loopback() as server:
        pass
    with pytest.raises(Transient, match="no connection to 127.0.0.1") as caught:
        complete(server)
    assert not caught.value.billed


def test_a_connection_that_does_not_come_about_in_time_is_transient_and_nothing_was_sent() -> None:
    with unreachable() as url, pytest.raises(Transient, match=r"no connection to 127\.0\.0\.1:[0-9]+ within 0\.2 s") as caught:
        asyncio.run(OpenAI("any", url, timeout=0.4).complete(request()))
    assert not caught.value.billed


def test_the_provider_says_when_to_come_back() -> None:
    with Loopback(faults=[429], retry_after="7") as server, pytest.raises(Transient) as caught:
        complete(server)
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Mon, 05 Jan 2026 09:01:00 GMT"}, 60.0),
        ({"retry-after": "Mon, 05 Jan 2026 08:00:00 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers, datetime(2026, 1, 5, 9, tzinfo=UTC)) == seconds


def test_one_backbone_serves_one_loop_after_another() -> None:
    with Loopback() as server:
        backbone = OpenAI("any", server.url)

        async def once() -> Completion:
            try:
                return await backbone.complete(request())
            finally:
                await backbone.close()

        assert asyncio.run(once()) == asyncio.run(once())


def test_without_a_key_the_provider_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="set OPENAI_API_KEY"):
        OpenAI("gpt-4o-mini")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\n two lines")
    with pytest.raises(BadInput, match="OPENAI_API_KEY holds") as caught:
        OpenAI("gpt-4o-mini")
    assert "two lines" not in str(caught.value)
    with Loopback() as server:
        monkeypatch.delenv("OPENAI_API_KEY")
        complete(server)
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        complete(server)
    assert server.keys == ["none", KEY]


def test_no_test_reaches_beyond_loopback() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"would have called 'api\.openai\.com'"):
        asyncio.run(OpenAI("gpt-4o-mini", api_key=KEY).complete(request()))


@pytest.mark.parametrize(
    ("spec", "base_url", "said"),
    [
        ("gpt-4", None, "unknown backbone 'gpt-4'; possible are 'scripted' .* 'openai:MODEL'"),
        ("replay:run", None, "answers a whole run, and nothing else beside it"),
        ("openai:", None, "names no model"),
        ("openai", None, "names no model"),
        ("openai:m", "127.0.0.1:8000", "base URL '127.0.0.1:8000' is not one"),
        ("openai:m", "http://me:secret@127.0.0.1/v1", "the base URL of '127.0.0.1/v1' holds a user or a password"),
        ("scripted", "http://127.0.0.1/v1", "has no meaning for the backbone 'scripted'"),
    ],
)
def test_a_backbone_that_cannot_be_is_answered_with_those_that_can(spec: str, base_url: str | None, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        backbone(spec, base_url=base_url)


def test_a_backbone_is_made_from_its_name() -> None:
    made = backbone("openai:org/model-7b", base_url="http://127.0.0.1:1/v1")
    assert (made.name, made.origin) == ("openai:org/model-7b", "model")


def test_the_openai_package_is_loaded_by_the_first_call_only() -> None:
    made = "taskweave.backbones.backbone('openai:m', base_url='http://127.0.0.1:1/v1')"
    code = f"import sys, taskweave.backbones; {made}; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
