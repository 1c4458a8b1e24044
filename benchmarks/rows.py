"""Each row of the table of numbers to reach, as it is measured.  Entry points: `ROWS`, by name, and the scales `WHOLE` and `QUICK`.

A row says over what it was taken.  Bars hold at the whole scale; at another, only those of ratios that do not depend on it are shown.
Nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import growth, tokens
from benchmarks.engine import SHORT, works
from benchmarks.process import fresh, simulated
from benchmarks.table import Row, fraction, megabytes, milliseconds, seconds, whole
from benchmarks.waiting import waited


class Wait(NamedTuple):
    """Answers of so many seconds, so many at a time, and the most that wall clock may be of its bound."""

    mean: float
    limit: int
    bar: float


class Scale(NamedTuple):
    """How much is measured: `whole` is whether it is what the bars were set for."""

    organization: str = "company_a"
    large: str = "gov"
    until: str = "year"
    asked: int = 5_000
    chained: int = 2_000
    repeated: int = 50_000
    waits: tuple[Wait, ...] = (Wait(0.02, 32, 1.25), Wait(0.02, 16, 1.3), Wait(0.02, 8, 1.55), Wait(0.1, 32, 1.2))
    sizes: tuple[int, ...] = growth.SIZES
    growing: str = growth.UNTIL
    whole: bool = True


WHOLE = Scale()
QUICK = Scale(until="quarter", asked=1_000, chained=500, repeated=5_000, sizes=(15, 40, 100), whole=False)


def year(scale: Scale) -> list[Row]:
    """A scripted year, from a cold process to its exit."""
    with tempfile.TemporaryDirectory() as place:
        took = simulated(scale.organization, Path(place) / "run", until=scale.until)
    name, over = _named(scale.organization, scale), f"{took.subtasks:,} executed subtasks, {took.cpu:.1f} s CPU"
    return [
        Row(f"{name}, cold process to exit", took.wall, 10, over, seconds),
        Row(f"{name}: executed subtasks", took.subtasks, 2_500, "", whole, least=True),
        Row(f"{name}: peak memory", took.memory, 250e6, "resident, with the process beside it", megabytes),
    ]


def large(scale: Scale) -> list[Row]:
    """The same of a large organization."""
    with tempfile.TemporaryDirectory() as place:
        took = simulated(scale.large, Path(place) / "run", until=scale.until)
    name, over = _named(scale.large, scale), f"{took.subtasks:,} executed subtasks, {took.cpu:.1f} s CPU"
    return [
        Row(f"{name}, cold process to exit", took.wall, 60, over, seconds),
        Row(f"{name}: executed subtasks", took.subtasks, 10_000, "", whole, least=True),
        Row(f"{name}: peak memory", took.memory, None, "resident, with the process beside it", megabytes),
    ]


def call(scale: Scale) -> list[Row]:
    """What the engine takes of CPU for a call that is answered at once, journal on."""
    rows = []
    for what, count, chained in (("16 at a time", scale.asked, False), ("one after the other", scale.chained, True)):
        with tempfile.TemporaryDirectory() as place:
            _, cpu, paid = asyncio.run(works(Path(place), count, chained=chained, size=2_000))
        rows.append(Row(f"CPU of the engine a call, {what}", cpu / paid, 0.0003, f"{paid:,} calls of 2,000 bytes each", milliseconds))
    return rows


def waits(scale: Scale) -> list[Row]:
    """Wall clock over what the latencies allow."""
    rows = []
    for mean, limit, bar in scale.waits:
        found = waited(scale.organization, scale.until, mean, limit)
        pace, how = found.pace, f"{1000 * mean:g} ms, {limit} at a time"
        over = (
            f"{pace.wall:.1f} s / {pace.bound:.1f} s (critical path {pace.critical_path:.1f} s, {pace.latencies:.1f} s of answers; "
            f"{found.measured:.1f} s measured)"
        )
        rows.append(Row(f"wall clock / bound, {how}", found.over_bound, bar, over, fraction))
        if (mean, limit) == scale.waits[0][:2]:
            speedup = f"{pace.latencies:.1f} s / {pace.wall:.1f} s, {pace.answers:,} answers"
            rows.append(Row(f"sum of latencies / wall clock, {how}", found.speedup, 5.5, speedup, fraction, least=True))
    return rows


def repeat(scale: Scale) -> list[Row]:
    """Re-execution, of trivial works and of a finished run."""
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(works(Path(place), scale.repeated, chained=False, size=SHORT))
        wall, _, paid = asyncio.run(works(Path(place), scale.repeated, chained=False, size=SHORT))
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        subtasks = simulated(scale.organization, run, until=scale.until).subtasks
        took = fresh("taskweave", "resume", str(run))
    return [
        Row(f"re-execution of {scale.repeated:,} trivial works", wall, 5, f"{scale.repeated:,} works, {paid} asked again", seconds),
        Row(
            f"re-execution of a finished {_named(scale.organization, scale)}",
            took.wall,
            5,
            f"{subtasks:,} executed subtasks, cold process to exit",
            seconds,
        ),
    ]


def economy(scale: Scale) -> list[Row]:
    """Calls and tokens, against a server whose answers are as long as the prompts ask for."""
    with tempfile.TemporaryDirectory() as place:
        measured = tokens.measure(tokens.words([scale.organization, "--until", scale.until]), Path(place) / "run")
    return list(measured.rows)


def grow(scale: Scale) -> list[Row]:
    """How time and memory grow with the organization."""
    sizes = growth.measured(scale.sizes, scale.growing)
    found = growth.exponents(sizes)
    rows = [
        Row(f"{one.agents:,} agents to {scale.growing}: wall clock", one.took.wall, None, growth.over(one), seconds) for one in sizes
    ] + [Row(f"{one.agents:,} agents to {scale.growing}: peak memory", one.took.memory, None, "", megabytes) for one in sizes]
    between = f"over subtasks, {len(sizes)} organizations of {scale.sizes[0]:,} to {scale.sizes[-1]:,} agents"
    return [
        *rows,
        Row("growth: exponent of wall clock", found.wall, growth.BAR, f"{between}; over agents {found.wall_by_agents:.2f}", fraction),
        Row("growth: exponent of CPU", found.cpu, growth.BAR, f"{between}; over agents {found.cpu_by_agents:.2f}", fraction),
        Row("growth: exponent of peak memory", found.memory, growth.BAR, f"{between}; over agents {found.memory_by_agents:.2f}", fraction),
    ]


ROWS: dict[str, Callable[[Scale], list[Row]]] = {
    "year": year,
    "gov": large,
    "call": call,
    "wait": waits,
    "repeat": repeat,
    "tokens": economy,
    "growth": grow,
}
# Rows whose bars are ratios of what was measured: they hold however much that is.
RATIOS = frozenset({"call", "wait", "growth"})


def measured(name: str, scale: Scale) -> list[Row]:
    """The lines of a row at a scale."""
    rows = ROWS[name](scale)
    return rows if scale.whole or name in RATIOS else [row.without_bar() for row in rows]


def missed(rows: Sequence[Row]) -> int:
    """How many bars were not met."""
    return sum(row.met is False for row in rows)


def _named(organization: str, scale: Scale) -> str:
    return f"{scale.until} of {organization}"
