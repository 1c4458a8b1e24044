"""The order of a minute, barriers, and what comes out of a process that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
import simpy

from taskweave.engine.clock import CLOSE_WEEK, CLOSE_YEAR, OPEN_WEEK, OPEN_YEAR, SEAL, START, TICK, WAIT, Clock
from taskweave.errors import EngineFault, FileInvalid, Problem
from taskweave.records import Completion, Request
from tests.workshop import Answers, asks, drive, engine_in


def test_a_minute_runs_finishes_closings_seal_tick_openings_waits_and_starts_in_this_order(tmp_path: Path) -> None:
    assert 1 < CLOSE_WEEK < CLOSE_YEAR < SEAL < TICK < OPEN_YEAR < OPEN_WEEK < WAIT < START
    engine, clock, order = engine_in(tmp_path), Clock(), []
    phases = {"start": START, "open week": OPEN_WEEK, "open year": OPEN_YEAR, "tick": TICK, "seal": SEAL, "close": CLOSE_WEEK}

    def mark(name: str, phase: int) -> Generator[simpy.Event, Any, None]:
        yield clock.env.timeout(10)
        yield clock.at(phase)
        order.append(name)

    def waits() -> Generator[simpy.Event, Any, None]:
        yield clock.env.timeout(10)
        yield clock.wait(engine.launch("forced:split", asks("split")))
        order.append("wait")

    def finishes() -> Generator[simpy.Event, Any, None]:
        yield clock.env.timeout(10)
        for _ in range(5):  # a chain of zero-delay events, as resources and conditions make
            yield clock.env.timeout(0)
        order.append("finish")

    for name, phase in phases.items():
        clock.env.process(mark(name, phase))
    clock.env.process(waits())
    clock.env.process(finishes())
    drive(engine, clock)
    assert order == ["finish", "close", "seal", "tick", "open year", "open week", "wait", "start"]


def test_waits_of_one_minute_resume_in_the_order_they_were_made_whichever_answer_comes_first(tmp_path: Path) -> None:
    class SlowFirst(Answers):
        async def complete(self, request: Request) -> Completion:
            await asyncio.sleep(0.05 if "first" in request.messages[1][1] else 0)
            return await super().complete(request)

    engine, clock, order = engine_in(tmp_path, SlowFirst()), Clock(), []

    def waits(site: str) -> Generator[simpy.Event, Any, None]:
        value = yield clock.wait(engine.launch(site, asks()))
        order.append((site, value))

    for site in ("first", "second"):
        clock.env.process(waits(site))
    drive(engine, clock)
    assert [site for site, _ in order] == ["first", "second"]
    assert all(value.startswith("make ") for _, value in order)


def test_a_value_read_before_its_barrier_is_a_fault(tmp_path: Path) -> None:
    engine, clock = engine_in(tmp_path), Clock()

    def reads_early() -> Generator[simpy.Event, Any, None]:
        promise = engine.launch("early", asks())
        yield clock.env.timeout(5)
        assert isinstance(promise.value, str)

    clock.env.process(reads_early())
    with pytest.raises(EngineFault, match="'early' was read before its barrier"):
        drive(engine, clock)


def test_a_value_that_is_there_may_not_be_read_before_its_barrier_either(tmp_path: Path) -> None:
    engine, clock, seen = engine_in(tmp_path), Clock(), []

    def reads_beside() -> Generator[simpy.Event, Any, None]:
        early = engine.launch("early", asks())
        yield clock.wait(engine.launch("late", asks(), [early]))
        seen.append(early.done)
        assert isinstance(early.value, str)

    clock.env.process(reads_beside())
    with pytest.raises(EngineFault, match="'early' was read before its barrier"):
        drive(engine, clock)
    assert seen == [True]


def test_after_its_barrier_a_value_can_be_read(tmp_path: Path) -> None:
    engine, clock, seen = engine_in(tmp_path), Clock(), []

    def reads() -> Generator[simpy.Event, Any, None]:
        promise = engine.launch("forced", asks())
        yield clock.wait(promise)
        seen.append(promise.value)

    clock.env.process(reads())
    drive(engine, clock)
    assert len(seen) == 1
    assert engine.given(3).value == 3


def test_a_process_that_fails_raises_its_own_exception_not_a_copy(tmp_path: Path) -> None:
    engine, clock = engine_in(tmp_path), Clock()
    own = FileInvalid([Problem(file="x.yaml", line=3, what="wrong")])

    def fails() -> Generator[simpy.Event, Any, None]:
        yield clock.env.timeout(1)
        raise own

    clock.env.process(fails())
    with pytest.raises(FileInvalid) as caught:
        drive(engine, clock)
    assert caught.value is own
