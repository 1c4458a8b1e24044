"""The engine on a small program of works: one trace however answers come, and the rules that a work must keep."""

from __future__ import annotations

import asyncio
import hashlib
import random
import sqlite3
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import simpy
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskweave.engine.clock import Clock
from taskweave.engine.gateway import Pacing
from taskweave.engine.journal import JournalReader
from taskweave.engine.promises import Context, Promise
from taskweave.errors import EngineFault
from taskweave.records import Completion, Request
from tests.workshop import Answers, asks, copy_journal, drive, engine_in, question, run_program, trace_of, work


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the workshop, one request at a time and without latency."""
    folder = tmp_path_factory.mktemp("reference")
    asyncio.run(work(folder, Answers(), limit=1))
    return folder


@pytest.mark.parametrize("limit", [1, 4, 32])
@pytest.mark.parametrize("shuffle", [1, 2, 3])
def test_the_trace_is_one_under_shuffled_latencies_faults_and_limits(tmp_path: Path, reference: Path, limit: int, shuffle: int) -> None:
    answers = Answers(latency=0.002, shuffle=shuffle, fail=0.05 * (shuffle % 2))
    ran = asyncio.run(work(tmp_path, answers, limit=limit))
    assert ran.digests == trace_of(reference)
    assert len(ran.digests) == 3
    assert answers.peak <= limit


def test_the_limit_is_used(tmp_path: Path) -> None:
    answers = Answers(latency=0.02)
    asyncio.run(work(tmp_path, answers, limit=3, lines=6))
    assert answers.peak == 3


def test_the_trace_is_the_same_under_another_hash_seed(tmp_path: Path) -> None:
    digests = []
    for seed in ("1", "2"):
        done = run_program(tmp_path / seed, "--weeks", "3", PYTHONHASHSEED=seed)
        digests.append(done["digests"])
    assert digests[0] == digests[1]


def test_a_finished_run_re_executes_without_a_single_request(tmp_path: Path, reference: Path) -> None:
    copy_journal(reference, tmp_path).close()
    answers = Answers()
    ran = asyncio.run(work(tmp_path, answers))
    assert answers.sent == []
    assert ran.digests == trace_of(reference)
    assert ran.engine.stats.replayed == ran.engine.stats.asked > 50


def test_a_longer_horizon_continues_a_shorter_one_without_asking_anything_again(tmp_path: Path) -> None:
    first, second, whole = Answers(), Answers(), Answers()
    asyncio.run(work(tmp_path / "parts", first, weeks=2))
    ran = asyncio.run(work(tmp_path / "parts", second, weeks=5))
    at_once = asyncio.run(work(tmp_path / "whole", whole, weeks=5))
    assert ran.digests == at_once.digests
    assert sorted(first.sent + second.sent) == sorted(whole.sent)


class ForcesOnlyTheMissing(Clock):
    """The mutant: no barrier where the answer is there already."""

    def wait(self, promise: Promise) -> simpy.Event:
        if not promise.done:
            return super().wait(promise)
        promise._passed = True
        return self.env.event().succeed(promise._value)


def remove_some_splits(db: sqlite3.Connection, seed: int) -> None:
    """Half of the outcomes that steer the clock are gone; weeks too, so that what differs is the trace and not only a digest."""
    sites = [site for (site,) in db.execute("SELECT DISTINCT site FROM outcomes WHERE site LIKE '%:split' ORDER BY site")]
    for site in random.Random(seed).sample(sites, len(sites) // 2):
        db.execute("DELETE FROM outcomes WHERE site = ?", (site,))
    db.execute("DELETE FROM weeks")
    db.close()


@pytest.mark.parametrize("seed", range(4))
def test_a_partly_filled_journal_gives_the_same_trace(tmp_path: Path, reference: Path, seed: int) -> None:
    remove_some_splits(copy_journal(reference, tmp_path), seed)
    ran = asyncio.run(work(tmp_path, Answers(latency=0.001, shuffle=seed)))
    assert ran.digests == trace_of(reference)


def test_a_clock_that_forces_only_missing_answers_is_caught_on_a_partly_filled_journal(tmp_path: Path) -> None:
    asyncio.run(work(tmp_path / "own", Answers(), clock=ForcesOnlyTheMissing()))
    asyncio.run(work(tmp_path / "shuffled", Answers(latency=0.002, shuffle=7), limit=32, clock=ForcesOnlyTheMissing()))
    assert trace_of(tmp_path / "own") == trace_of(tmp_path / "shuffled"), (
        "latencies alone do not show it: that is why the journal is thinned"
    )
    for seed in range(4):
        remove_some_splits(copy_journal(tmp_path / "own", tmp_path / str(seed)), seed)
        asyncio.run(work(tmp_path / str(seed), Answers(), clock=ForcesOnlyTheMissing()))
        assert trace_of(tmp_path / str(seed)) != trace_of(tmp_path / "own")


def test_one_more_line_moves_no_other_lines_draws(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    before = engine.random("minutes", "W0@1/t1").random()
    engine.launch("W0@9/t1:make", asks())
    assert engine.random("minutes", "W0@1/t1").random() == before
    assert engine.random("minutes", "W0@2/t1").random() != before
    assert engine.random("hours", "W0@1/t1").random() != before
    engine.journal.close()


# ---------------------------------------------------------------- works
def test_a_site_used_twice_is_a_fault(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    engine.launch("W1:plan", asks())
    with pytest.raises(EngineFault, match="'W1:plan' was launched twice"):
        engine.launch("W1:plan", asks())
    engine.journal.close()


@pytest.mark.parametrize("site", ["", "a\0b"])
def test_a_site_that_would_blur_the_key_is_a_fault(tmp_path: Path, site: str) -> None:
    engine = engine_in(tmp_path)
    with pytest.raises(EngineFault, match="is no site"):
        engine.launch(site, asks())
    engine.journal.close()


def test_a_work_that_awaits_anything_else_is_a_fault(tmp_path: Path) -> None:
    async def sleeps(ctx: Context) -> None:
        await asyncio.sleep(1)

    engine = engine_in(tmp_path)
    engine.launch("sleepy", sleeps)
    with pytest.raises(EngineFault, match="'sleepy': a work may await only its context"):
        drive(engine)


def test_a_work_that_is_no_async_function_is_a_fault(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)
    engine.launch("plain", lambda ctx: 3)  # type: ignore[arg-type, return-value]
    with pytest.raises(EngineFault, match="'plain': a work is an async function"):
        drive(engine)


def test_an_exception_of_a_work_comes_out_of_drive_as_it_was(tmp_path: Path) -> None:
    own = KeyError("no such thing")

    async def breaks(ctx: Context) -> None:
        await ctx.complete(question("make", "it"))
        raise own

    engine = engine_in(tmp_path, Answers(latency=0.01))
    engine.launch("breaks", breaks)
    engine.launch("paid", asks())
    with pytest.raises(KeyError) as caught:
        drive(engine)
    assert caught.value is own
    assert engine.stop == "error"
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.counts().ended == {"outcome": 2}, "what was in flight is journaled all the same"
        assert [(stop.why, stop.cause) for stop in journal.stops()] == [("error", "KeyError: 'no such thing'")]


def test_a_promise_that_nothing_will_resolve_is_a_deadlock(tmp_path: Path) -> None:
    engine, clock = engine_in(tmp_path), Clock()

    def waits() -> Generator[simpy.Event, Any, None]:
        yield clock.wait(engine.launch("stuck", asks(), [Promise("nobody's")]))

    clock.env.process(waits())
    with pytest.raises(EngineFault, match=r"deadlock: 'stuck' .* waits for \[\"nobody's\"\]"):
        drive(engine, clock)


def test_what_is_asked_carries_a_seed_of_run_site_and_draw(tmp_path: Path) -> None:
    seen: dict[str, int] = {}

    class Looks(Answers):
        async def complete(self, request: Request) -> Completion:
            seen[request.messages[1][1]] = request.seed
            return await super().complete(request)

    engine = engine_in(tmp_path, Looks())
    for site, draw in (("a", 0), ("b", 0), ("a'", 1)):
        engine.launch(site, asks(), draw=draw)
    drive(engine)
    assert len(set(seen.values())) == 3
    assert all(0 <= seed < 2**32 for seed in seen.values())
    assert seen['["make","a"]'] == int(hashlib.sha256(b"1\0a\x000").hexdigest()[:8], 16)


def test_the_same_question_asked_twice_or_under_another_draw_is_asked_anew(tmp_path: Path) -> None:
    async def twice(ctx: Context) -> None:
        for _ in range(2):
            await ctx.complete(question("make"))

    paid = []
    for draw in (0, 0, 1):
        engine = engine_in(tmp_path)
        engine.launch("twice", twice, draw=draw)
        drive(engine)
        paid.append(engine.stats.paid)
    assert paid == [2, 0, 2]


def test_a_look_up_is_made_once_and_repeated_from_the_journal_in_its_journaled_form(tmp_path: Path) -> None:
    made, seen = [], []

    async def looks(ctx: Context) -> None:
        seen.append(await ctx.look_up("search", {"text": "churn"}, lambda: made.append(1) or ("a", {2: "b"})))  # type: ignore[func-returns-value]

    for _ in range(2):
        engine = engine_in(tmp_path)
        engine.launch("looks", looks, reads=engine.given("week 1"))
        drive(engine)
    assert made == [1]
    assert seen == [["a", {"2": "b"}]] * 2, "the first time, too, a work sees what a re-execution will"
    with JournalReader(tmp_path / "journal.db") as journal:
        (call,) = journal.calls("looks")
        assert (call.kind, call.messages, call.outcome["answer"]) == ("search", (("question", '{"text":"churn"}'),), ["a", {"2": "b"}])


def test_a_look_up_without_a_closed_week_to_read_is_a_fault(tmp_path: Path) -> None:
    async def looks(ctx: Context) -> None:
        await ctx.look_up("search", "churn", list)

    engine = engine_in(tmp_path)
    engine.launch("blind", looks)
    with pytest.raises(EngineFault, match="without `reads=`"):
        drive(engine)


def test_a_lone_surrogate_in_an_answer_is_replaced_before_anyone_sees_it(tmp_path: Path) -> None:
    class Half(Answers):
        async def complete(self, request: Request) -> Completion:
            return Completion(text="half \ud83d and \ud83d\ude00")

    engine, seen = engine_in(tmp_path, Half()), []

    async def keeps(ctx: Context) -> None:
        seen.append((await ctx.complete(question("make"))).text)

    engine.launch("half", keeps)
    drive(engine)
    assert seen == ["half \ufffd and \U0001f600"]


def test_a_chain_of_journaled_works_does_not_recurse(tmp_path: Path) -> None:
    async def adds(ctx: Context, before: int) -> int:
        return before + 1

    async def last(ctx: Context, before: int) -> int:
        total.append(before)
        return before

    total: list[int] = []
    engine = engine_in(tmp_path)
    promise = engine.given(0)
    for n in range(50_000):
        promise = engine.launch(f"chain/{n}", adds, [promise])
    engine.launch("last", last, [promise])
    drive(engine)
    assert total == [50_000]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    needs=st.lists(st.sets(st.integers(0, 30), max_size=4), min_size=1, max_size=20), limit=st.integers(1, 9), shuffle=st.integers(0, 99)
)
def test_any_graph_of_works_comes_to_the_same_values(
    tmp_path_factory: pytest.TempPathFactory, needs: list[set[int]], limit: int, shuffle: int
) -> None:
    def values(answers: Answers, limit: int) -> list[str]:
        engine, made = engine_in(tmp_path_factory.mktemp("graph"), answers, limit=limit, pacing=Pacing(base=0.0001)), list[Promise]()
        for n, ups in enumerate(needs):
            made.append(engine.launch(f"w{n}", asks(), [made[i] for i in sorted(ups) if i < n], due=(n % 3, 0)))
        found: list[str] = []

        async def gather(ctx: Context, *values: str) -> None:
            found.extend(values)

        engine.launch("all", gather, made)
        drive(engine)
        return found

    assert values(Answers(), 1) == values(Answers(latency=0.0005, shuffle=shuffle, fail=0.1), limit)
