"""A terminal that is closed over a run: what is in flight is journaled, and it ends as an interrupt does; under nohup it goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from taskweave.engine.reader import JournalReader
from tests.cli.door import command, environment, hears, model_run, wait_for
from tests.loopback import Loopback
from tests.simulated import simulated

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="nothing hangs up here")


def ignoring() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def started(url: str, run: Path, before: Callable[[], None] | None = None, until: str = "week:8") -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command(), *model_run(url, str(run), until)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(OPENAI_API_KEY="k"),
        preexec_fn=before,
    )


def weeks(run: Path) -> int:
    with JournalReader(run / "journal.db") as journal:
        return journal.counts().weeks


@pytest.mark.parametrize("times", [1, 2])
def test_a_hang_up_drains_journals_and_ends_with_130(tmp_path: Path, times: int) -> None:
    run = tmp_path / "r"
    with Loopback(latency=0.3) as server:
        live = started(server.url, run)
        try:
            wait_for(run, 3)
            for _ in range(times):
                live.send_signal(signal.SIGHUP)
            _, said = live.communicate(timeout=60)
        finally:
            live.kill()
    assert live.returncode == 130
    assert b"the terminal was closed. Continue with: taskweave resume" in said
    assert b"Traceback" not in said
    with JournalReader(run / "journal.db") as journal:
        assert journal.stops()[-1].why == "interrupted"
        counts = journal.counts()
        assert (counts.open, counts.lost) == (0, 0)
        assert counts.attempts == counts.ended["outcome"]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux which signals are heard")
def test_a_hang_up_before_the_engine_runs_ends_with_130_too(tmp_path: Path) -> None:
    simulated(tmp_path / "r", "tiny", until="week:1")
    resume = subprocess.Popen([*command(), "resume", str(tmp_path / "r"), "--until", "year"], stderr=subprocess.PIPE, env=environment())
    while not hears(resume):
        time.sleep(0.002)
    resume.send_signal(signal.SIGHUP)
    _, said = resume.communicate(timeout=60)
    assert resume.returncode == 130
    assert b"ontinue with: taskweave resume" in said


def test_a_hang_up_that_whoever_started_it_has_ignored_changes_nothing(tmp_path: Path) -> None:
    run = tmp_path / "r"
    with Loopback(latency=0.01) as server:
        live = started(server.url, run, ignoring, until="week:1")
        try:
            wait_for(run, 3)
            live.send_signal(signal.SIGHUP)
            _, said = live.communicate(timeout=120)
        finally:
            live.kill()
    assert live.returncode == 0, said
    with JournalReader(run / "journal.db") as journal:
        assert journal.stops()[-1].why == "finished"


def test_a_terminal_that_is_closed_takes_no_output_and_is_no_bug(tmp_path: Path) -> None:
    import fcntl
    import termios

    run = tmp_path / "r"
    ours, its = os.openpty()

    def on_it() -> None:
        os.setsid()
        fcntl.ioctl(its, termios.TIOCSCTTY, 0)

    with Loopback(latency=0.02) as server:
        live = subprocess.Popen(
            [*command(), *model_run(server.url, str(run))],
            stdin=its,
            stdout=its,
            stderr=its,
            env=environment(OPENAI_API_KEY="k"),
            preexec_fn=on_it,
        )
        try:
            os.close(its)
            wait_for(run, 3)
            while weeks(run) < 1:  # then there is a closing table, which nobody will see
                time.sleep(0.05)
            os.close(ours)
            assert live.wait(timeout=60) == 130
        finally:
            live.kill()
    with JournalReader(run / "journal.db") as journal:
        (stop,) = journal.stops()
        assert (stop.why, stop.cause) == ("interrupted", "the terminal was closed")
        assert journal.counts().open == 0
