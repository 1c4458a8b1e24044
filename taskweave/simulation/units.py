"""A planning unit: one owner's period, its state and its id (Sec. 3.2, Eq. 1).

Entry points: `Unit`, `period_path`.  It refuses to open or close itself: `planning.py` does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from taskweave.engine.promises import Promise
from taskweave.org.calendar import Week
from taskweave.records import LEVELS, Json, Level
from taskweave.simulation.capacity import Slot

ROOT = "root"  # the id of S_0, which holds the goals and the first readings


@dataclass(frozen=True, slots=True)
class Objective:
    """How an objective stands; `waiting` are the open composite tasks that keep it from being done."""

    status: str = "open"
    on_time: bool | None = None
    waiting: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class Unit:
    """A planning unit while its period lasts; `plan` and `diagnosis` are the newest of its state (Eq. 1)."""

    id: str
    level: Level
    period: str
    owner: str
    parent: Unit | None
    plan: Promise
    plans: dict[str, Promise]
    has_children: bool
    revision: int = 0
    turn: int = 1
    roll_ups: int = 0
    urgent: int = 0
    diagnosis: Promise | None = None
    bundle: Promise | None = None
    slots: list[Slot] = field(default_factory=list)
    task_ids: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    closed: dict[str, Unit] = field(default_factory=dict)
    objectives: dict[str, Objective] = field(default_factory=dict)
    silent: bool = False
    told: Json | None = None  # the `unit` input of prompts, once it was asked for

    @property
    def key(self) -> tuple[Level, str]:
        return self.level, self.owner


def ordinal(level: Level, week: Week) -> int:
    """The number of the period of this level in which the week lies."""
    return {"year": 1, "quarter": week.quarter, "month": week.month, "week": week.number}[level]


def period_path(level: Level, week: Week) -> str:
    """The part of a unit's id before its owner: Y1/Q2/M05/W19."""
    parts = ["Y1", f"Q{week.quarter}", f"M{week.month:02}", f"W{week.number:02}"]
    return "/".join(parts[: LEVELS.index(level) + 1])
