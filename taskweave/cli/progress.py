"""Shows how far a run is, on stderr: a live line on a terminal, one plain line every few seconds elsewhere.

Entry point: `Watch`, whose `see` takes each Progress that the simulation reports.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from taskweave.cli import output

if TYPE_CHECKING:
    from taskweave.runs import Inbox
    from taskweave.simulation.year import Progress

EVERY = {"terminal": 0.1, "plain": 5.0}  # seconds between two looks
SILENT = 2.0  # seconds without an answer, among failures, before they take the line
_WORDS = 160  # characters of what a provider said
_WINDOW = 30.0  # seconds whose pace tells the time left


def describe(progress: Progress, left: float | None, *, paused: bool = False) -> str:
    """One line: simulated date, tasks done, calls made since it was started or resumed, tokens, cost, time left or that it is paused.

    While nothing is answered it says that instead.  ASCII, for any terminal.
    """
    if progress.outage is not None and progress.outage.seconds >= SILENT and not paused:
        return f"{progress.date}  week {progress.week}/{progress.weeks}  {silent(*progress.outage)}"
    tokens = progress.prompt_tokens + progress.completion_tokens
    known = f"{amount(progress.replayed)} answers from the journal, " if progress.replayed else ""
    return (
        f"{progress.date}  week {progress.week}/{progress.weeks}  {progress.done} tasks done  "
        f"{known}{amount(progress.calls)} calls made now, {progress.in_flight} in flight  {amount(tokens)} tokens  "
        f"{dollars(progress.cost)}  {'paused' if paused else f'{duration(left)} left'}"
    )


def silent(seconds: float, trouble: str, left: float) -> str:
    """That nothing is answered: since when, what the provider said last, and how long the run waits on."""
    words = " ".join(trouble.split()).encode("ascii", "replace").decode()
    words = words if len(words) <= _WORDS else words[: _WORDS - 3] + "..."
    return f"no answer for {duration(seconds)}, stops in {duration(left)}; last: {words}"


def amount(number: float) -> str:
    """1234567 -> 1.2M."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if number >= size:
            return f"{number / (1e3 if unit == 'k' else size):,.1f}{unit}"
    return f"{number:,.0f}"


def dollars(cost: float | None) -> str:
    """2.5 -> $2.50, 0.0123 -> $0.0123; '-' where no price is known."""
    return "-" if cost is None else f"${cost:,.2f}" if cost >= 0.1 or cost == 0 else f"${cost:.4f}"


def priced(cost: float | None, uncached: float | None = None) -> str:
    """A cost, and beside it what it would have been `uncached`, where that is more."""
    if cost is None:
        return "no price known"
    more = f" ({dollars(uncached)} without the provider's cache)" if uncached is not None and uncached > cost else ""
    return dollars(cost) + more


def duration(seconds: float | None) -> str:
    """Seconds as a person says them; '-' where nothing is known yet, or no clock reaches it."""
    if seconds is None or not math.isfinite(seconds):
        return "-"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Pace:
    """Time left, from how fast the weeks of the last half minute went by: re-executed weeks fly and must not promise too much."""

    def __init__(self) -> None:
        self.seen: deque[tuple[float, float]] = deque()

    def left(self, now: float, done: float, total: float) -> float | None:
        """Seconds until `total`; None before anything has moved."""
        self.seen.append((now, done))
        while len(self.seen) > 2 and now - self.seen[1][0] > _WINDOW:
            self.seen.popleft()
        (then, before), moved = self.seen[0], done - self.seen[0][1]
        if now <= then or moved <= 0:
            return None
        return (total - done) * (now - then) / (done - before)


class Watch:
    """A context manager around a run.  Quiet until the first look is due, so that a short run prints nothing but its table.

    `inbox` is the run's: whether it is paused is seen there.
    """

    def __init__(self, inbox: Inbox) -> None:
        self.inbox = inbox
        self.terminal = sys.stderr.isatty()
        self.pace = Pace()
        self.due = time.monotonic() + EVERY["terminal" if self.terminal else "plain"]
        self.live: Any = None
        self.row: Any = None

    def __enter__(self) -> Watch:
        if self.terminal:
            from rich.progress import BarColumn, TextColumn
            from rich.progress import Progress as Bar

            self.live = Bar(
                TextColumn("{task.description}", markup=False), BarColumn(bar_width=20), console=output.console(sys.stderr), transient=True
            )
            self.live.start()
            self.row = self.live.add_task("starting", total=None)
        return self

    def see(self, progress: Progress) -> None:
        """Take a report; show it where a look is due."""
        now = time.monotonic()
        if not self.pace.seen:
            self.pace.left(now, progress.week, progress.weeks)
        if now < self.due:
            return
        self.due = now + EVERY["terminal" if self.terminal else "plain"]
        if paused := self.inbox.paused():
            self.pace = Pace()  # a time without work says nothing of the pace
        text = describe(progress, self.pace.left(now, progress.week, progress.weeks), paused=paused)
        if self.live is None:
            output.note(text)
            return
        with contextlib.suppress(OSError):
            self.live.update(self.row, description=text, completed=progress.week, total=progress.weeks)

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            with contextlib.suppress(OSError):
                self.live.stop()
