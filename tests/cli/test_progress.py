"""The line that says how far a run is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from taskweave.cli.progress import Pace, amount, describe, duration
from taskweave.runs import Inbox
from taskweave.simulation.year import Progress
from tests.cli.door import command, environment, type_in


def progress(**more: Any) -> Progress:
    given: dict[str, Any] = {
        "date": "2026-03-02", "week": 9, "weeks": 52, "done": 41, "spilled": 2, "blocked": 1, "in_flight": 16, "calls": 812,
        "replayed": 0, "prompt_tokens": 1_200_000, "completion_tokens": 34_000, "cost": 1.5, "elapsed": 3.0,
    }  # fmt: skip
    return Progress(**(given | more))


def test_progress_says_date_tasks_calls_tokens_cost_and_time_left() -> None:
    said = describe(progress(), 75.0)
    for part in ("2026-03-02", "week 9/52", "41 tasks done", "812 calls", "16 in flight", "1.2M tokens", "$1.50", "1 min 15 s left"):
        assert part in said
    assert "from the journal" not in said
    assert "99 answers from the journal, 812 calls made now" in describe(progress(replayed=99), None)
    said.encode("ascii")
    still = describe(progress(), 75.0, paused=True)
    assert still.endswith("  paused")
    assert "left" not in still


def test_the_line_of_a_paused_run_says_so_until_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from taskweave.cli import progress as module

    monkeypatch.setitem(module.EVERY, "plain", 0.0)
    place = tmp_path / "inbox"
    place.mkdir()
    inbox = Inbox(place)
    with module.Watch(inbox) as watch:
        for kind in ("pause", "continue"):
            inbox.control(kind)
            watch.see(progress())
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("paused")
    assert second.endswith("left")


def test_numbers_are_said_as_a_person_says_them() -> None:
    assert [amount(n) for n in (0, 999, 9_999, 12_345, 1_234_567)] == ["0", "999", "9,999", "12.3k", "1.2M"]
    assert [duration(s) for s in (None, 3.2, 75, 7260, float("inf"))] == ["-", "3 s", "1 min 15 s", "2 h 01 min", "-"]


def test_time_left_follows_the_pace_of_the_last_half_minute() -> None:
    pace = Pace()
    assert pace.left(0.0, 0, 52) is None
    assert pace.left(1.0, 10, 52) == pytest.approx(4.2)
    for second in range(2, 60):
        left = pace.left(float(second), 10 + second / 10, 52)
    assert left == pytest.approx((52 - 15.9) * 10, rel=0.01)


def test_a_run_that_takes_long_says_how_far_it_is_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    from taskweave.cli import progress as module

    monkeypatch.setitem(module.EVERY, "plain", 0.0)
    done = type_in("run", "tiny", "--until", "week:2", "--out", "r")
    assert "week 2/2" in done.stderr
    assert "in flight" not in done.stdout


def test_a_terminal_gets_a_live_line() -> None:
    import pty

    primary, secondary = pty.openpty()
    try:
        live = subprocess.Popen(
            [*command(), "run", "tiny", "--until", "week:4", "--out", "r"],
            stdout=subprocess.PIPE,
            stderr=secondary,
            env=environment(TERM="xterm"),
        )
        os.close(secondary)
        seen = b""
        while True:
            try:
                data = os.read(primary, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        live.communicate(timeout=60)
    finally:
        os.close(primary)
    assert live.returncode == 0
    assert b"week" in seen
    assert b"\x1b[" in seen
