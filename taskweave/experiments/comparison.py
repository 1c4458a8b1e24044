"""What a comparison of runs consists of: figures of two runs, what chance makes of them, tasks and words that came and went.

Entry point: `Diff`.  Values only: how they come about is in `diff.py`, how they are shown in `telling.py`.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from shlex import quote
from typing import Any

from taskweave.experiments.changes import KeywordChange, TaskChange
from taskweave.experiments.measures import Basis, Figure, Unit
from taskweave.experiments.spread import Judged, same


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One figure of the base and of a compared run; `difference` is None where either is; `judged` where there are too few controls."""

    name: str
    unit: str
    base: Figure
    other: Figure
    difference: float | None
    judged: Judged | None

    @property
    def changed(self) -> bool:
        """Whether the two differ by more than rounding does, or one is known and not 0 where the other is not known."""
        if self.base.value is None or self.other.value is None:
            return bool(self.base.value or self.other.value)
        return not same(self.base.value, self.other.value)

    @property
    def strength(self) -> float:
        """How telling it is: how far beyond what chance makes, else how large for what is compared."""
        if self.difference is None or not self.changed:
            return 0.0
        size = abs(self.difference)
        if self.judged is None:
            larger = max(abs(self.base.value or 0.0), abs(self.other.value or 0.0))
            return size / larger if self.base.of is None and larger else size
        reach = (self.judged.high - self.judged.low) / 2
        return abs(self.difference - (self.judged.high + self.judged.low) / 2) / reach if reach else math.inf


@dataclass(frozen=True, kw_only=True, slots=True)
class FamilyDifference:
    """The figures of one kind, the most telling first."""

    name: str
    title: str
    unit: Unit
    of_unit: str
    basis: Basis
    differences: tuple[Difference, ...]

    @property
    def outstanding(self) -> int:
        """How many of them stand out."""
        return sum(one.judged is not None and one.judged.verdict == "stands out" for one in self.differences)


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A control that says nothing of a compared run, and why."""

    run: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Noise:
    """What the controls themselves have when each is judged by the base and the other ones; a number a control, least first."""

    figures: tuple[int, ...]
    keywords: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """A run against the base, from `week` (None: they are the same as far as both go) to `last`, the last week that both have closed.

    `told` says what the run was given otherwise.  `measured` figures were compared, `judged` of them against a spread: `by_chance` of
    these stand out by chance alone.  `controls_added` and `controls_dropped` are how many tasks each control added and dropped.
    """

    run: str
    week: int | None
    last: int
    ends: tuple[int, int]
    scripted: bool
    told: tuple[str, ...]
    controls: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    families: tuple[FamilyDifference, ...]
    measured: int
    judged: int
    by_chance: float | None
    outstanding: int | None
    tasks: TaskChange
    controls_added: tuple[int, ...]
    controls_dropped: tuple[int, ...]
    keywords: tuple[KeywordChange, ...]
    noise: Noise | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    """Runs against a base.  `str()` is the text that `taskweave diff` shows, `to_dict()` its JSON."""

    base: str
    path: str
    organization: str
    seed: int
    comparisons: tuple[Comparison, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def redraw(base: object, week: object) -> str:
    """The command that makes controls of a run."""
    return f"taskweave fork {quote(str(base))} --at week:{week} --redraw 5"
