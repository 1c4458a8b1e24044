"""The gateway: order, limit, waiting, breaker, and what a call reserves."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskweave.engine import gateway
from taskweave.engine.budget import reserve
from taskweave.engine.clock import Clock
from taskweave.engine.engine import Engine
from taskweave.engine.gateway import Breaker, Pacing
from taskweave.engine.journal import Journal, JournalReader
from taskweave.engine.outcomes import completed, journaled, storable
from taskweave.engine.promises import Ask, Context
from taskweave.errors import EngineFault, Transient
from taskweave.records import Completion, Request, Sampling
from tests.workshop import Answers, asks, drive, engine_in, question


def run(folder: Path, backbone: Any, works: list[tuple[str, tuple[int, int]]], **more: Any) -> Engine:
    async def one(ctx: Context) -> str:
        return (await ctx.complete(question("make", ctx.site))).text or ""

    path = folder / "journal.db"
    with Journal(path, create=not path.exists()) as journal:
        engine = Engine(journal=journal, backbone=backbone, seed=1, inbox=folder, **more)
        for site, due in works:
            engine.launch(site, one, due=due)
        asyncio.run(engine.drive(Clock()))
    return engine


class Order(Answers):
    """Remembers in which order sites were asked."""

    async def complete(self, request: Request) -> Completion:
        self.sent.append(request.messages[1][1].split('"')[3])
        if self.trouble:
            self.trouble(request)
        return Completion(text="x")


def test_what_the_next_seal_needs_goes_first_then_simulated_time_then_the_earlier(tmp_path: Path) -> None:
    order = Order()
    run(tmp_path, order, [("late", (2, 0)), ("c", (1, 9)), ("a", (1, 3)), ("b", (1, 3)), ("soon", (0, 99))], limit=1)
    assert order.sent == ["soon", "a", "b", "c", "late"]


def test_a_call_that_waits_for_its_next_try_holds_no_slot(tmp_path: Path) -> None:
    failed: list[str] = []

    def trouble(request: Request) -> None:
        if "first" in request.messages[1][1] and not failed:
            failed.append("once")
            raise Transient("429", retry_after=0.2)

    order = Order(trouble=trouble)
    began = time.monotonic()
    run(tmp_path, order, [("first", (0, 0)), ("second", (1, 0)), ("third", (2, 0))], limit=1, pacing=Pacing(base=0.001))
    assert order.sent == ["first", "second", "third", "first"]
    assert time.monotonic() - began >= 0.2, "Retry-After is honoured"


def test_every_attempt_is_written_before_it_is_sent(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []

    def trouble(request: Request) -> None:
        with JournalReader(tmp_path / "journal.db") as journal:
            counts = journal.counts()
            seen.append((counts.attempts, sum(counts.ended.values())))
        if len(seen) < 3:
            raise Transient("503")

    run(tmp_path, Answers(trouble=trouble), [("w", (0, 0))], pacing=Pacing(base=0.001))
    assert seen == [(1, 0), (2, 1), (3, 2)], "and the end of the one before is there by then"


def test_retries_spread_over_the_whole_interval(tmp_path: Path) -> None:
    """Full jitter: with one failure each, returns lie between nothing and base * 2."""
    failed: dict[str, float] = {}
    waits: list[float] = []

    def trouble(request: Request) -> None:
        site = request.messages[1][1]
        if site not in failed:
            failed[site] = time.monotonic()
            raise Transient("503")
        waits.append(time.monotonic() - failed[site])

    pacing = Pacing(base=0.2, trip=1000)
    run(tmp_path, Answers(trouble=trouble), [(f"w{n}", (0, 0)) for n in range(60)], limit=60, pacing=pacing)
    assert len(waits) == 60
    assert min(waits) < 0.15
    assert max(waits) > 0.25
    assert len({round(wait, 2) for wait in waits}) > 8


def test_a_thousand_failures_overflow_nothing(tmp_path: Path) -> None:
    def trouble(request: Request) -> None:
        if len(answers.sent) < 1100:
            raise Transient("503")

    answers = Answers(trouble=trouble)
    pacing = Pacing(longest=0.0001, trip=10**9)
    engine = run(tmp_path, answers, [("w", (0, 0))], patience=3600, pacing=pacing)
    assert (engine.stop, len(answers.sent)) == (None, 1100)


def ask(site: str) -> Ask:
    return Ask(site, site, 1, 0, "complete", question("make"))


def test_the_breaker_opens_after_failures_in_a_row_and_lets_one_probe_through() -> None:
    breaker = Breaker(Pacing(trip=3, cool=10, longest=15))
    a, b = ask("a"), ask("b")
    for _ in range(2):
        breaker.failed(a, now=0, retry_after=0)
        assert breaker.wait(0) == 0
    breaker.failed(a, now=0, retry_after=0)
    assert breaker.wait(4) == 6
    assert breaker.wait(10) == 0
    breaker.sent(b)
    assert breaker.wait(10) is None, "one probe, no more"
    breaker.failed(a, now=11, retry_after=0)
    assert breaker.wait(11) is None, "another's failure is not the probe's"
    breaker.failed(b, now=12, retry_after=0)
    assert breaker.wait(12) == 15, "twice as long, at most the longest"
    breaker.close()
    assert breaker.wait(12) == 0
    breaker.failed(a, now=12, retry_after=0)
    assert breaker.wait(12) == 0, "an answer starts the count anew"


def test_the_breaker_stays_open_as_long_as_the_provider_asks() -> None:
    breaker = Breaker(Pacing(trip=1, cool=1))
    breaker.failed(ask("a"), now=0, retry_after=20)
    assert breaker.wait(0) == 20


def test_in_an_outage_few_requests_are_sent_and_all_is_asked_once_it_is_over(tmp_path: Path) -> None:
    began = time.monotonic()

    def trouble(request: Request) -> None:
        if time.monotonic() - began < 0.5:
            raise Transient("503")

    answers = Answers(trouble=trouble)
    works = [(f"w{n}", (0, 0)) for n in range(40)]
    engine = run(tmp_path, answers, works, limit=4, pacing=Pacing(base=0.001, longest=0.1, trip=8, cool=0.05))
    assert engine.stop is None
    assert engine.stats.paid == 40
    assert len(answers.sent) - 40 == engine.stats.retries < 40, "without a breaker there would be hundreds"


def test_one_slow_answer_after_a_failure_is_no_outage(tmp_path: Path) -> None:
    class SlowSecond(Answers):
        async def complete(self, request: Request) -> Completion:
            self.sent.append("x")
            if len(self.sent) == 1:
                raise Transient("503")
            await asyncio.sleep(0.4)
            return Completion(text="slow")

    engine = run(tmp_path, SlowSecond(), [("w", (0, 0))], patience=0.1, pacing=Pacing(base=0.001))
    assert engine.stop is None
    assert engine.stats.paid == 1


@pytest.mark.parametrize(("slow", "patience"), [(0.0, 0.3), (0.6, 0.3)])
def test_an_outage_says_how_long_there_was_no_answer_and_not_what_was_configured(tmp_path: Path, slow: float, patience: float) -> None:
    class Failing(Answers):
        async def complete(self, request: Request) -> Completion:
            self.sent.append("x")
            if len(self.sent) == 1:
                return Completion(text="here")
            await asyncio.sleep(slow)
            raise Transient("503")

    answers = Failing()
    began = time.monotonic()
    engine = run(tmp_path, answers, [("v", (0, 0)), ("w", (1, 0))], limit=1, patience=patience, pacing=Pacing(base=0.001))
    took = time.monotonic() - began
    assert engine.stop == "outage"
    told = float(engine.cause.removeprefix("no answer for ").partition(" s;")[0])
    assert max(patience, slow) - 0.06 <= told <= took + 0.06


def test_a_provider_that_asks_to_wait_beyond_patience_is_an_outage(tmp_path: Path) -> None:
    def trouble(request: Request) -> None:
        raise Transient("429 come back tomorrow", retry_after=86_400)

    engine = run(tmp_path, Answers(trouble=trouble), [("w", (0, 0))], patience=0.2)
    assert engine.stop == "outage"
    assert "come back tomorrow" in engine.cause


@pytest.mark.parametrize("answer", ["a text", None])
def test_a_backbone_that_returns_no_completion_is_a_fault(tmp_path: Path, answer: Any) -> None:
    class Wrong(Answers):
        async def complete(self, request: Request) -> Completion:
            return answer  # type: ignore[no-any-return]

    with pytest.raises(EngineFault, match="'w': the backbone returned"):
        run(tmp_path, Wrong(), [("w", (0, 0))])


def test_a_backbone_that_cancels_itself_is_a_fault(tmp_path: Path) -> None:
    class Cancels(Answers):
        async def complete(self, request: Request) -> Completion:
            raise asyncio.CancelledError

    with pytest.raises(EngineFault, match="'w': the backbone cancelled its own request"):
        run(tmp_path, Cancels(), [("w", (0, 0))])


# ---------------------------------------------------------------- what a call takes
def test_a_call_reserves_the_bytes_of_its_prompt_and_schema_and_its_longest_answer() -> None:
    short = Sampling(temperature=0, max_tokens=70)
    request = Request(prompt="p", version=1, inputs={}, messages=(("user", "é" * 10),), schema={"a": 1}, sampling=short, backbone="b")
    assert reserve(request) == len("user") + 20 + len('{"a":1}') + 70


def test_tokens_are_the_providers_or_a_quarter_of_the_bytes_rounded_up() -> None:
    request = replace(question("make"), messages=(("system", "abcde"), ("user", "é")), schema={"a": 1})
    counted = journaled(request, Completion(text="12345"), 0.25)
    assert (counted.prompt_tokens, counted.completion_tokens) == (2 + 1 + 2, 2)
    reported = journaled(request, Completion(text="12345", prompt_tokens=9, completion_tokens=8), 0.25)
    assert (reported.prompt_tokens, reported.completion_tokens) == (9, 8)


def test_a_completion_is_read_back_as_it_was_written() -> None:
    completion = Completion(text=None, finish="length", refusal="no", prompt_tokens=0, cached_tokens=4, model="m", fingerprint="f")
    assert completed(json.loads(journaled(question("make"), completion, 1.23456).value)) == (completion, 1.2346)
    assert json.loads(storable({"text": "\ud83d\ude00 \udc00"})) == {"text": "😀 \ufffd"}


def test_a_server_that_never_answers_runs_out_of_patience(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway, "LEAST_WAIT", 0.05)

    class Silent(Answers):
        async def complete(self, request: Request) -> Completion:
            await asyncio.sleep(60)
            raise AssertionError("never")

    engine = engine_in(tmp_path, Silent(), patience=0.1)
    engine.launch("w", asks())
    drive(engine)
    assert engine.stop == "outage"
    assert "no answer" in engine.cause
