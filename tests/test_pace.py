"""How long a run had to take: the critical path of its works, and its answers so many at a time.  No second of it is waited for."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from simpy.events import Event

import taskweave as tw
from benchmarks.waiting import Latent
from taskweave.cli.closing_words import after, paced
from taskweave.engine.clock import Clock
from taskweave.engine.engine import Engine
from taskweave.engine.promises import Context, WorkFunction
from taskweave.engine.stats import Pace
from taskweave.records import Completion, Request
from tests.jumping import jumped
from tests.workshop import engine_in, question


class Slow:
    """Answers after as many seconds as it is asked for."""

    name = "slow"
    origin = "model"

    async def complete(self, request: Request) -> Completion:
        await asyncio.sleep(json.loads(request.messages[-1][1])[-1])
        return Completion(text="done")


def asking(*seconds: float) -> WorkFunction:
    """A work whose answers take so long, one after the other."""

    async def work(ctx: Context, *_: Any) -> str:
        for each in seconds:
            await ctx.complete(question("wait", each))
        return ctx.site

    return work


def pace_of(folder: Path, launch: Callable[[Engine, Clock], None], limit: int = 16) -> Pace:
    """How an engine fares with what `launch` begins."""
    engine, clock = engine_in(folder, Slow(), limit=limit), Clock()
    try:
        launch(engine, clock)
        jumped(engine.drive(clock))
    finally:
        engine.journal.close()
    stats, pace = engine.stats, engine.pace
    assert (stats.bound, stats.latencies, stats.elapsed) == (pace.bound, pace.latencies, pace.wall)
    return pace


def chain(engine: Engine, _: Clock) -> None:
    """Two works of a second each, of which one needs the other."""
    engine.launch("b", asking(1), [engine.launch("a", asking(1))])


def test_two_works_in_a_chain_of_a_second_each_take_two(tmp_path: Path) -> None:
    pace = pace_of(tmp_path, chain, limit=1)
    assert (pace.answers, pace.latencies, pace.critical_path, pace.bound) == (2, 2.0, 2.0, 2.0)
    assert pace.wall == pytest.approx(2.0)


def test_works_beside_each_other_are_bound_by_how_many_may_be_asked_at_a_time(tmp_path: Path) -> None:
    def launch(engine: Engine, _: Clock) -> None:
        for number in range(6):
            engine.launch(f"w{number}", asking(1))

    pace = pace_of(tmp_path, launch, limit=2)
    assert (pace.latencies, pace.critical_path, pace.bound) == (6.0, 1.0, 3.0)
    assert pace.wall == pytest.approx(3.0)


def test_a_work_has_the_longest_path_of_its_needs_and_its_own_answers_after_that(tmp_path: Path) -> None:
    def launch(engine: Engine, _: Clock) -> None:
        short, long = engine.launch("short", asking(1)), engine.launch("long", asking(2, 3))
        engine.launch("last", asking(0.5, 0.25), [short, long, engine.given("known")])

    pace = pace_of(tmp_path, launch)
    assert (pace.latencies, pace.critical_path) == (6.75, 5.75)
    assert pace.wall == pytest.approx(pace.bound)


def test_what_is_launched_after_a_barrier_could_not_have_begun_before(tmp_path: Path) -> None:
    def launch(engine: Engine, clock: Clock) -> None:
        def process() -> Generator[Event, Any, None]:
            beside = engine.launch("beside", asking(1))
            yield clock.wait(engine.launch("first", asking(2)))
            engine.launch("later", asking(4))  # needs nothing, but nobody knew of it
            engine.launch("both", asking(0.5), [beside])

        clock.env.process(process())

    pace = pace_of(tmp_path, launch)
    assert (pace.latencies, pace.critical_path) == (7.5, 6.0)
    assert pace.wall == pytest.approx(6.0)


def test_a_work_that_reads_a_closed_week_comes_after_what_closed_it(tmp_path: Path) -> None:
    def launch(engine: Engine, _: Clock) -> None:
        engine.launch("reader", asking(1), reads=engine.launch("seal", asking(3)))

    assert pace_of(tmp_path, launch).critical_path == 4.0


def test_what_the_journal_gives_took_no_time(tmp_path: Path) -> None:
    def longer(engine: Engine, clock: Clock) -> None:
        chain(engine, clock)
        engine.launch("c", asking(1, 0.5))

    assert pace_of(tmp_path, chain).latencies == 2.0
    assert pace_of(tmp_path, chain) == Pace(0.0, 0, 0.0, 0.0, 16)
    pace = pace_of(tmp_path, longer)
    assert (pace.answers, pace.latencies, pace.critical_path) == (2, 1.5, 1.5)


@pytest.mark.parametrize("seed", range(12))
def test_no_graph_of_works_is_faster_than_its_bound_and_with_room_for_all_none_is_slower(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)

    def launch(engine: Engine, _: Clock) -> None:
        draw.seed(seed)
        made: list[Any] = []
        for number in range(12):
            needs = draw.sample(made, min(len(made), draw.randint(0, 2)))
            made.append(engine.launch(f"w{number}", asking(*(draw.randint(1, 9) / 4 for _ in range(draw.randint(0, 2)))), needs))

    for limit in (1, 3, 12):
        (folder := tmp_path / str(limit)).mkdir()
        pace = pace_of(folder, launch, limit)
        assert pace.wall >= pace.bound - 1e-6
        if limit != 3:
            assert pace.wall == pytest.approx(pace.bound)


def test_the_end_of_a_run_says_what_was_possible() -> None:
    said = paced(Pace(wall=41.2, answers=900, latencies=320.0, critical_path=12.1, limit=16))
    assert said == "wall 41.2 s for 320.0 s of answers at 16 at a time; no less than 20.0 s was possible (critical path 12.1 s)"


def test_a_run_whose_answers_take_time_says_so_when_it_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tw.simulate("tiny", until="week:1", out=tmp_path / "r", backbone=Latent(0.02), limit=4)
    assert run.outcome is not None
    assert run.outcome.pace is not None
    summary = after(run.folder, run.outcome)
    said = capsys.readouterr().out
    assert f"{paced(run.outcome.pace)}" in " ".join(said.split())
    assert "at 4 at a time; no less than" in said
    assert summary["pace"]["bound"] == run.outcome.pace.bound >= 0.02
    assert summary["pace"]["wall"] > summary["pace"]["bound"]
    again = run.resume(backbone=Latent(0.02))
    assert again.outcome is not None
    assert again.outcome.pace is not None
    after(again.folder, again.outcome)
    assert (again.outcome.pace.answers, again.outcome.pace.bound) == (0, 0.0)
    assert "at a time" not in capsys.readouterr().out


def test_nothing_is_said_of_answers_that_came_at_once() -> None:
    assert paced(Pace(wall=9.0, answers=1_000, latencies=0.4, critical_path=0.1, limit=16)) is None
    assert paced(Pace(wall=9.0, answers=0, latencies=0.0, critical_path=0.0, limit=16)) is None
