"""What is done outside happens at most once: over re-execution, kill -9, failed commits, forks and replays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from taskweave.engine.engine import Engine
from taskweave.engine.forking import fork_journal, offer_outside
from taskweave.engine.journal import Journal, JournalReader
from taskweave.engine.promises import Context
from taskweave.engine.store import Transaction
from taskweave.errors import DiskFull
from tests.workshop import drive, engine_in

KILLED_IN_THE_MIDDLE = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.test_outside import reaches
from tests.workshop import drive, engine_in
folder = Path(sys.argv[1])
def perform(key):
    (folder / "happened").open("a").write(key + "\\n")
    os.kill(os.getpid(), signal.SIGKILL)
engine = engine_in(folder)
engine.launch("mail", reaches(perform))
drive(engine)
"""


def reaches(perform: Any, seen: list[Any] | None = None) -> Any:
    async def work(ctx: Context) -> Any:
        found = await ctx.reach("smtp", {"to": "a@example.com"}, perform)
        if seen is not None:
            seen.append(found)
        return found

    return work


def reached(folder: Path, perform: Any, **more: Any) -> tuple[Engine, list[Any]]:
    """One work that reaches outside, in the journal of `folder`."""
    seen: list[Any] = []
    engine = engine_in(folder, **more)
    engine.launch("mail", reaches(perform, seen))
    drive(engine)
    return engine, seen


def never(key: str) -> Any:
    raise AssertionError("this is not to be done again")


def killed_in_the_middle(folder: Path) -> str:
    done = subprocess.run([sys.executable, "-c", KILLED_IN_THE_MIDDLE, str(folder)], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return (folder / "happened").read_text().strip()


def test_it_is_done_once_under_one_key_and_repeated_from_the_journal(tmp_path: Path) -> None:
    keys: list[str] = []
    first, seen = reached(tmp_path, lambda key: keys.append(key) or {"sent": ("250", key[:4])})  # type: ignore[func-returns-value]
    assert seen == [{"sent": ["250", keys[0][:4]]}]
    again, replayed = reached(tmp_path, never)
    assert replayed == seen
    assert (first.stats.paid, first.stats.lost, again.stats.replayed) == (0, 0, 1)
    with JournalReader(tmp_path / "journal.db") as journal:
        (call,) = journal.calls("mail")
        assert (call.kind, call.key, [attempt.how for attempt in call.attempts]) == ("outside:smtp", keys[0], ["outcome"])


def test_what_was_begun_when_the_process_was_killed_is_unknown_and_never_done_again(tmp_path: Path) -> None:
    key = killed_in_the_middle(tmp_path)
    engine, seen = reached(tmp_path, never)
    assert list(seen[0]) == ["unknown"]
    assert reached(tmp_path, never)[1] == seen
    assert (tmp_path / "happened").read_text().split() == [key]
    assert (engine.stats.lost, engine.stats.paid) == (0, 0)
    with JournalReader(tmp_path / "journal.db") as journal:
        (call,) = journal.calls("mail")
        assert [attempt.how for attempt in call.attempts] == ["outcome"], "it has one attempt, which is closed"
        assert (journal.counts().open, journal.counts().lost) == (0, 0)


@pytest.mark.parametrize("trouble", [TimeoutError("no answer in 5 s"), ConnectionResetError(104, "reset"), TimeoutError()])
def test_out_of_reach_is_an_outcome_not_a_crash(tmp_path: Path, trouble: OSError) -> None:
    def perform(key: str) -> Any:
        raise trouble

    _, seen = reached(tmp_path, perform)
    assert list(seen[0]) == ["unknown"]
    assert seen[0]["unknown"]
    assert reached(tmp_path, never)[1] == seen


def test_any_other_exception_stops_the_run_as_a_bug_and_is_not_done_again(tmp_path: Path) -> None:
    def perform(key: str) -> Any:
        raise ZeroDivisionError("a bug")

    with pytest.raises(ZeroDivisionError):
        reached(tmp_path, perform)
    assert list(reached(tmp_path, never)[1][0]) == ["unknown"]


def test_nothing_is_done_before_its_attempt_is_committed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    leave = Transaction.__exit__

    def full(self: Transaction, kind: Any, trouble: Any, where: Any) -> None:
        begun = self._db.execute("SELECT count(*) FROM attempts").fetchone()[0]
        leave(self, DiskFull if begun else kind, DiskFull("full") if begun else trouble, where)
        if begun:
            raise DiskFull("the disk is full")

    monkeypatch.setattr(Transaction, "__exit__", full)
    engine = engine_in(tmp_path)
    engine.launch("mail", reaches(lambda key: done.append(key)))
    drive(engine)
    assert (engine.stop, done) == ("disk", [])
    monkeypatch.undo()
    assert reached(tmp_path, lambda key: "sent")[1] == ["sent"], "it was never begun, so it may be done now"


def test_a_few_are_done_at_once_and_all_come_back(tmp_path: Path) -> None:
    together = threading.Barrier(4, timeout=20)  # passed only where four are under way at once
    engine, seen = engine_in(tmp_path), []

    def perform(key: str) -> str:
        together.wait()
        return key

    for number in range(8):
        engine.launch(f"mail {number}", reaches(perform, seen))
    drive(engine)
    assert len(set(seen)) == 8


def test_a_run_that_is_halted_begins_nothing_more_outside(tmp_path: Path) -> None:
    engine = engine_in(tmp_path)

    async def halts(ctx: Context) -> None:
        engine.halt("refused", "in the turn in which the mail was to leave")

    engine.launch("mail", reaches(never))
    engine.launch("halt", halts)
    drive(engine)
    assert (engine.stop, engine.stats.lost) == ("refused", 0)
    assert reached(tmp_path, lambda key: {"sent": []})[1] == [{"sent": []}]


def test_an_engine_that_may_not_reach_stops_and_does_nothing(tmp_path: Path) -> None:
    engine, seen = reached(tmp_path, never, reaches=False)
    assert (engine.stop, seen) == ("refused", [])
    assert "outside:smtp" in engine.cause


def forked(folder: Path) -> Path:
    child = folder / "child"
    child.mkdir()
    fork_journal(folder / "journal.db", child / "journal.db", week=1, tick=0)
    return child


def test_a_fork_takes_what_its_parent_was_told_and_does_it_no_second_time(tmp_path: Path) -> None:
    _, seen = reached(tmp_path, lambda key: f"sent {key}")
    child, again = reached(forked(tmp_path), never)
    assert (again, child.stats.replayed) == (seen, 1)
    with JournalReader(child.journal.path) as journal:
        assert journal.counts().inherited == 0, "it is no call of a backbone"


def test_a_fork_of_a_run_that_was_killed_in_the_middle_does_not_do_it_either(tmp_path: Path) -> None:
    killed_in_the_middle(tmp_path)
    assert list(reached(forked(tmp_path), never)[1][0]) == ["unknown"]


def test_a_replay_is_offered_what_happened_outside_and_nothing_else(tmp_path: Path) -> None:
    _, seen = reached(tmp_path, lambda key: "sent")
    other = tmp_path / "replay"
    other.mkdir()
    Journal(other / "journal.db", create=True).close()
    for _ in range(2):  # a second time, after a process that was killed in between, changes nothing
        offer_outside(tmp_path / "journal.db", other / "journal.db")
    assert reached(other, never, reaches=False)[1] == seen


def test_a_second_interrupt_does_not_wait_for_what_hangs(tmp_path: Path) -> None:
    program = KILLED_IN_THE_MIDDLE.replace("os.kill(os.getpid(), signal.SIGKILL)", "__import__('time').sleep(600)").replace(
        "drive(engine)", "from taskweave import interrupts; drive(engine); print(engine.stop, flush=True); interrupts.leave()"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    while not (tmp_path / "happened").exists():
        assert process.poll() is None
    for _ in range(2):
        os.kill(process.pid, signal.SIGINT)
        threading.Event().wait(0.2)
    assert process.communicate(timeout=60)[0] == b"interrupted\n"
    assert list(reached(tmp_path, never)[1][0]) == ["unknown"]
