"""Killed, interrupted, stopped, paused, refused, out of disk: what is kept, and how it goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import simpy

from taskweave.engine.clock import Clock
from taskweave.engine.engine import Engine
from taskweave.engine.gateway import Pacing
from taskweave.engine.journal import Journal, JournalReader
from taskweave.engine.stats import EngineStats
from taskweave.engine.store import Transaction
from taskweave.errors import BadInput, DiskFull, Divergence, Refused, Transient
from taskweave.records import Request
from tests.workshop import QUICK, Answers, Workshop, asks, command, copy_journal, drive, engine_in, run_program, trace_of, work


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the workshop, one request at a time and without latency."""
    folder = tmp_path_factory.mktemp("reference")
    asyncio.run(work(folder, Answers(), limit=1))
    return folder


def wait_for(what: Any, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


def test_after_kill_9_it_resumes_and_asks_no_completed_key_again(tmp_path: Path) -> None:
    undisturbed = run_program(tmp_path / "whole", "--weeks", "4")
    folder, bill, kills = tmp_path / "killed", tmp_path / "bill", random.Random(3)
    completed: dict[str, int] = {}
    for _ in range(6):
        enough = attempts_in(folder) + kills.randint(3, 12)
        process = subprocess.Popen(command(folder, "--weeks", "4", "--latency", "0.02", "--bill", str(bill)), stdout=subprocess.DEVNULL)
        wait_for(lambda enough=enough: attempts_in(folder) >= enough)
        process.kill()
        process.wait()
        with sqlite3.connect(f"file:{folder}/journal.db?mode=ro", uri=True) as db:
            rows = db.execute("SELECT a.key, a.id FROM attempts a JOIN ends e ON e.attempt = a.id WHERE e.how = 'outcome'").fetchall()
        db.close()
        completed |= dict(rows)
    assert len(completed) > 10, "something was completed before a kill"
    done = run_program(folder, "--weeks", "4", "--bill", str(bill))
    assert done["digests"] == undisturbed["digests"]
    with sqlite3.connect(folder / "journal.db") as db:
        again = [
            key for key, at in completed.items() if db.execute("SELECT 1 FROM attempts WHERE key = ? AND id > ?", (key, at)).fetchone()
        ]
        attempts, outcomes = (
            db.execute(f"SELECT count(*) FROM {q}").fetchone()[0] for q in ("attempts", "outcomes WHERE kind = 'complete'")
        )
    db.close()
    assert again == []
    assert done["lost"] == attempts - outcomes > 0, "attempts whose answer was never seen are counted"
    assert len(bill.read_text().splitlines()) <= attempts, "an attempt is written before its request leaves"


def test_ctrl_c_drains_and_journals_what_is_in_flight(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, "--latency", "0.1"), stdout=subprocess.PIPE, text=True)
    wait_for(lambda: attempts_in(tmp_path) >= 6)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert json.loads(out)["stop"] == "interrupted"
    with JournalReader(tmp_path / "journal.db") as journal:
        counts = journal.counts()
        assert counts.open == counts.lost == 0
        assert counts.ended == {"outcome": counts.attempts}
        (stop,) = journal.stops()
        assert (stop.why, stop.current) == ("interrupted", True)
    assert run_program(tmp_path)["digests"] == run_program(tmp_path / "whole")["digests"]


def test_a_second_ctrl_c_gives_up_what_is_in_flight(tmp_path: Path) -> None:
    process = subprocess.Popen(command(tmp_path, "--latency", "300"), stdout=subprocess.PIPE, text=True)
    wait_for(lambda: attempts_in(tmp_path) >= 4)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, "the first one waits for the answers"
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=10)
    assert json.loads(out) | {"digests": 0} == {"stop": "interrupted", "digests": 0, "paid": 0, "replayed": 0, "lost": 4}
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.counts().open == 4, "they may have been billed: no end is written"


def test_a_signal_that_came_before_the_engine_heard_any_stops_it_before_anything_is_asked(tmp_path: Path) -> None:
    answers = Answers()
    engine = engine_in(tmp_path, answers, interrupted=lambda: True)
    engine.launch("one", asks())
    drive(engine)
    assert engine.stop == "interrupted"
    assert answers.sent == []


def attempts_in(folder: Path) -> int:
    """Read from this process while the other one writes."""
    try:
        with JournalReader(folder / "journal.db") as journal:
            return journal.counts().attempts
    except BadInput:  # it is just being made
        return 0


def test_signals_go_back_to_whom_they_belonged(tmp_path: Path) -> None:
    def mine(number: int, frame: Any) -> None:
        raise AssertionError

    before, sigint = signal.signal(signal.SIGTERM, mine), signal.getsignal(signal.SIGINT)
    try:
        engine = engine_in(tmp_path)
        engine.launch("one", asks())
        drive(engine)
        assert signal.getsignal(signal.SIGTERM) is mine
        assert signal.getsignal(signal.SIGINT) is sigint
    finally:
        signal.signal(signal.SIGTERM, before)


def test_an_engine_in_a_thread_runs_without_signals_and_can_be_interrupted(tmp_path: Path) -> None:
    ran: list[Engine] = []

    def in_thread() -> None:
        engine = engine_in(tmp_path, Answers(latency=0.05))
        clock = Clock()
        Workshop(engine, weeks=50, clock=clock)
        ran.append(engine)
        drive(engine, clock)

    thread = threading.Thread(target=in_thread)
    thread.start()
    wait_for(lambda: ran and ran[0].stats.paid > 3)
    ran[0].interrupt()
    thread.join(10)
    assert not thread.is_alive()
    assert ran[0].stop == "interrupted"
    assert ran[0].stats.in_flight == 0


def test_cancelling_drive_journals_what_is_in_flight(tmp_path: Path) -> None:
    async def cancelled() -> None:
        engine = engine_in(tmp_path, Answers(latency=0.05))
        for n in range(4):
            engine.launch(f"w{n}", asks())
        task = asyncio.create_task(engine.drive(Clock()))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.stop == "interrupted"
        engine.journal.close()

    asyncio.run(cancelled())
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.counts().ended == {"outcome": 4}


# ---------------------------------------------------------------- control from another process
def test_stop_in_the_inbox_ends_the_run_as_stopped(tmp_path: Path) -> None:
    async def stopped() -> Any:
        running = asyncio.create_task(work(tmp_path, Answers(latency=0.02), weeks=50))
        await asyncio.sleep(0.1)
        (tmp_path / "inbox" / "now.stop").touch()
        return await running

    assert asyncio.run(stopped()).engine.stop == "stopped"
    assert list((tmp_path / "inbox").iterdir()) == []


def test_a_control_that_comes_too_late_is_not_kept_for_the_next_engine(tmp_path: Path) -> None:
    engine, clock = engine_in(tmp_path), Clock()

    def ends() -> Generator[simpy.Event, Any, None]:
        yield clock.env.timeout(1)
        (engine.inbox / "late.stop").touch()
        (engine.inbox / "news.json").write_text("{}")

    clock.env.process(ends())
    drive(engine, clock)
    assert engine.stop is None
    assert [file.name for file in engine.inbox.iterdir()] == ["news.json"]


def test_pause_sends_nothing_until_continue(tmp_path: Path, reference: Path) -> None:
    answers = Answers(latency=0.01)

    async def paused() -> Any:
        running = asyncio.create_task(work(tmp_path, answers))
        await asyncio.sleep(0.05)
        (tmp_path / "inbox" / "a.pause").touch()
        await asyncio.sleep(0.3)
        sent = len(answers.sent)
        await asyncio.sleep(0.3)
        assert len(answers.sent) == sent
        assert not running.done()
        (tmp_path / "inbox" / "b.continue").touch()
        return await running

    ran = asyncio.run(paused())
    assert ran.engine.stop is None
    assert ran.digests == trace_of(reference)


def test_a_pause_in_an_outage_is_not_taken_for_more_of_it(tmp_path: Path) -> None:
    down = [True]

    def trouble(request: Request) -> None:
        if down[0]:
            raise Transient("503")

    async def paused() -> Engine:
        engine = engine_in(tmp_path, Answers(trouble=trouble), patience=0.4, pacing=Pacing(base=0.001, longest=0.02, cool=0.01))
        engine.launch("w", asks())
        running = asyncio.create_task(engine.drive(Clock()))
        await asyncio.sleep(0.1)
        (tmp_path / "inbox" / "a.pause").touch()
        await asyncio.sleep(0.8)
        assert engine.stop is None
        down[0] = False
        (tmp_path / "inbox" / "b.continue").touch()
        await running
        engine.journal.close()
        return engine

    engine = asyncio.run(paused())
    assert (engine.stop, engine.stats.paid) == (None, 1)


def test_an_injection_attaches_to_the_next_tick_and_re_execution_repeats_it(tmp_path: Path, reference: Path) -> None:
    async def injected() -> Any:
        running = asyncio.create_task(work(tmp_path, Answers(latency=0.01), weeks=6))
        await asyncio.sleep(0.15)
        (tmp_path / "inbox" / "news.json").write_text('{"title": "fire drill"}')
        return await running

    ran = asyncio.run(injected())
    (event,) = [event for event in ran.workshop.events if event[1] == "injection"]
    assert event[2] == 'news {"title":"fire drill"}'
    assert asyncio.run(work(tmp_path, Answers(), weeks=6)).workshop.events == ran.workshop.events


def test_progress_is_observed(tmp_path: Path) -> None:
    seen: list[EngineStats] = []
    ran = asyncio.run(work(tmp_path, Answers(latency=0.02), observe=seen.append))
    assert max(stats.in_flight for stats in seen) > 0
    assert replace(seen[-1], elapsed=0.0) == replace(ran.engine.stats, elapsed=0.0)
    assert seen[-1].elapsed > 0
    with JournalReader(tmp_path / "journal.db") as journal:
        counts, prompts = journal.counts(), journal.prompts()
    assert seen[-1].asked == sum(counts.outcomes.values())
    assert seen[-1].paid == counts.outcomes["complete"]
    assert (seen[-1].prompt_tokens, seen[-1].completion_tokens) == (
        sum(use.prompt_tokens for use in prompts),
        sum(use.completion_tokens for use in prompts),
    )


def test_an_observer_that_fails_is_not_swallowed(tmp_path: Path) -> None:
    def observe(stats: EngineStats) -> None:
        if stats.asked:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(work(tmp_path, Answers(latency=0.02), observe=observe))


# ---------------------------------------------------------------- trouble outside
def test_a_providers_trouble_never_reaches_simpy(tmp_path: Path) -> None:
    own = ConnectionError("a bug of the backbone")
    met: list[BaseException] = []

    def trouble(request: Request) -> None:
        raise own

    engine, clock = engine_in(tmp_path, Answers(trouble=trouble)), Clock()

    def waits() -> Generator[simpy.Event, Any, None]:
        try:
            yield clock.wait(engine.launch("w", asks()))
        except BaseException as error:
            met.append(error)
            raise

    process = clock.env.process(waits())
    with pytest.raises(ConnectionError) as caught:
        drive(engine, clock)
    assert caught.value is own
    assert process.is_alive
    assert met == []
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.counts().ended == {"fault": 1}


def test_transient_trouble_is_tried_again_and_refusal_stops_with_the_providers_words(tmp_path: Path) -> None:
    tries: list[str] = []

    def trouble(request: Request) -> None:
        tries.append(request.prompt)
        if request.prompt == "hard" and tries.count("hard") == 3:
            raise Refused("401 wrong key")
        if request.prompt == "hard":
            raise Transient("503")

    engine = engine_in(tmp_path, Answers(trouble=trouble), pacing=Pacing(base=0.001))
    engine.launch("easy", asks())
    engine.launch("hard", asks("hard"))
    drive(engine)
    assert (engine.stop, engine.cause) == ("refused", "401 wrong key")
    assert engine.stats.retries == 2
    with JournalReader(tmp_path / "journal.db") as journal:
        (call,) = journal.calls("hard")
        assert [(attempt.how, attempt.why) for attempt in call.attempts] == [
            ("retry", "503"),
            ("retry", "503"),
            ("refused", "401 wrong key"),
        ]
        assert call.outcome is None


def test_an_outage_longer_than_patience_drains_and_stops(tmp_path: Path) -> None:
    def trouble(request: Request) -> None:
        raise Transient("503 unavailable")

    began = time.monotonic()
    engine = engine_in(tmp_path, Answers(trouble=trouble), patience=0.3, pacing=Pacing(base=0.01, cool=0.02))
    for n in range(10):
        engine.launch(f"w{n}", asks())
    drive(engine)
    assert engine.stop == "outage"
    assert re.fullmatch(r"no answer for (0\.[3-9]|[12]\.\d) s; last: 503 unavailable", engine.cause)
    assert time.monotonic() - began >= 0.3
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.counts().open == 0
        assert journal.stops()[0].why == "outage"


def test_a_full_disk_stops_before_the_next_request_and_nothing_journaled_is_lost(tmp_path: Path) -> None:
    answers = Answers()

    async def fills() -> Engine:
        with Journal(tmp_path / "journal.db", create=True) as journal:
            pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
            journal._db.execute(f"PRAGMA max_page_count={pages + 12}")
            engine = Engine(journal=journal, backbone=answers, seed=1, inbox=tmp_path, limit=2)
            for n in range(200):
                engine.launch(f"w{n}", asks())
            await engine.drive(Clock())
            return engine

    engine = asyncio.run(fills())
    assert engine.stop == "disk"
    assert "database or disk is full" in engine.cause
    assert 0 < engine.stats.paid < 200
    with JournalReader(tmp_path / "journal.db") as journal:
        assert len(answers.sent) == journal.counts().attempts
    resumed = engine_in(tmp_path, Answers())
    for n in range(200):
        resumed.launch(f"w{n}", asks())
    drive(resumed)
    assert resumed.stop is None
    assert resumed.stats.replayed >= engine.stats.paid


REFUSALS = ("database is locked", "database disk image is malformed", "attempt to write a readonly database")


@pytest.mark.parametrize("trouble", [*map(BadInput, REFUSALS), DiskFull("database or disk is full")])
@pytest.mark.parametrize("turn", [2, 3, 4])
def test_a_turn_that_is_not_committed_sends_nothing_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int, trouble: Exception
) -> None:
    real, commits = Transaction.__exit__, 0

    def refusing(self: Transaction, kind: Any, error: Any, where: Any) -> None:
        nonlocal commits
        commits += kind is None
        if kind is None and commits == turn + 1:  # the first commit is the session's
            self._roll_back()
            raise trouble
        real(self, kind, error, where)

    answers = Answers(latency=0.03, fail=0.3)
    engine = engine_in(tmp_path, answers, limit=3, pacing=QUICK)
    for n in range(12):
        engine.launch(f"w{n}", asks())
    monkeypatch.setattr(Transaction, "__exit__", refusing)
    with contextlib.suppress(BadInput):
        drive(engine)
    assert engine.stop == ("disk" if isinstance(trouble, DiskFull) else "error")
    assert str(trouble) in engine.cause
    with JournalReader(tmp_path / "journal.db") as journal:
        counts = journal.counts()
        assert counts.attempts == len(answers.sent) > 0, "what was not written down was not sent"
        assert counts.open == counts.lost == engine.stats.lost == 0, "what was in flight, and how it ended, is journaled"
        assert counts.outcomes.get("complete", 0) == engine.stats.paid
        assert sum(use.prompt_tokens for use in journal.prompts()) == engine.stats.prompt_tokens


def test_a_landing_that_breaks_off_keeps_none_of_its_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Journal._write_requests

    def damaged(self: Journal, asked: Any) -> Any:
        found = list(asked)
        if self._count("SELECT count(*) FROM attempts") and found:
            real(self, iter(found))
            raise BadInput("database disk image is malformed")
        return real(self, iter(found))

    answers = Answers(latency=0.01)
    engine = engine_in(tmp_path, answers, limit=1)
    for n in range(4):
        engine.launch(f"w{n}", asks())
    monkeypatch.setattr(Journal, "_write_requests", damaged)
    with pytest.raises(BadInput, match="malformed"):
        drive(engine)
    with sqlite3.connect(tmp_path / "journal.db") as db:
        assert db.execute("SELECT count(*) FROM requests").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM outcomes JOIN ends ON how = 'outcome'").fetchone() == (1,)
    db.close()
    assert len(answers.sent) == 1


def test_a_full_disk_in_a_process_of_the_clock_is_the_same_stop(tmp_path: Path) -> None:
    engine, clock = engine_in(tmp_path), Clock()

    def ticks() -> Generator[simpy.Event, Any, None]:
        yield clock.env.timeout(1)
        raise DiskFull("journal.db: database or disk is full")

    clock.env.process(ticks())
    drive(engine, clock)
    assert engine.stop == "disk"


def test_a_changed_closed_week_is_a_divergence_and_overwrites_nothing(tmp_path: Path, reference: Path) -> None:
    db = copy_journal(reference, tmp_path)
    db.execute("UPDATE weeks SET digest = 'another' WHERE week = 1")
    db.close()
    with pytest.raises(Divergence, match="week 1 was closed with digest another"):
        asyncio.run(work(tmp_path, Answers()))
    assert trace_of(tmp_path)[0] == "another"
    with JournalReader(tmp_path / "journal.db") as journal:
        assert journal.stops()[-1].why == "divergence"


@pytest.mark.parametrize("more", [{"limit": 0}, {"patience": -1.0}])
def test_a_limit_or_patience_that_cannot_be_is_bad_input(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match="limit|patience"):
        engine_in(tmp_path, **more)


def test_a_week_is_in_the_journal_before_its_rows_are_in_run_db(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "from taskweave.pool.pool import Pool\n"
        "from pathlib import Path\n"
        "from tests.simulated import simulated\n"
        "write = Pool.write_week\n"
        "def killed(self, week, digest, rows):\n"
        "    write(self, week, digest, rows)\n"
        "    if week == 2: os._exit(9)\n"
        "Pool.write_week = killed\n"
        f"simulated(Path({str(tmp_path / 'run')!r}), until='week:3')\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parent.parent, check=False).returncode == 9
    with JournalReader(tmp_path / "run" / "journal.db") as journal:
        assert [week.week for week in journal.weeks()] == [1, 2]
        assert journal.counts().open == 0, "what the week rests on was committed with it"
