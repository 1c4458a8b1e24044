"""What does the organization's environment read this week, and how far are the goals?

Entry points: `Environment.advance`, `Environment.readings`.  A key figure drifts, comes and goes with the season and is disturbed by a
draw keyed by figure and week, so that one more figure moves no other.  It refuses to know who reads it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from taskweave.org.kpis import season_on
from taskweave.org.organization import Goal, Organization
from taskweave.records import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """One key figure in one week; `target` and `goal` are those of the goal that it measures, if one does."""

    kpi: str
    value: float
    unit: str
    target: float | None
    goal: str | None

    def as_input(self) -> Json:
        return {"kpi": self.kpi, "value": self.value, "unit": self.unit, "target": self.target, "goal": self.goal}


class Environment:
    """The key figures of an organization, one value a week."""

    def __init__(self, org: Organization, seed: int) -> None:
        self._org, self._seed = org, seed
        self._levels: dict[str, float] = {}  # without their seasons
        self._values: dict[str, float] = {}
        self._starts: dict[str, float] = {}
        self._measured = _measured(org)

    def amend(self, org: Organization) -> None:
        """The figures are this organization's from now on: those that vanish are read no more, new ones begin at their start."""
        self._org, self._measured = org, _measured(org)
        self._levels = {name: self._levels[name] for name in org.environment if name in self._levels}
        self._values = {name: self._values[name] for name in self._levels}

    def advance(self, week: int, worked: Mapping[str, float], pushed: Mapping[str, float] | None = None) -> None:
        """Move every key figure to its value in week `week` (1 is the first; each week is advanced to once, in order).

        `pushed` is by how much incidents move figures in this week.
        `worked` is what was finished since the last advance: planned hours by goal and by `role:TITLE`, cases by `work:NAME`.  It moves a
        figure by so much each, as the file says.
        """
        for name, kpi in self._org.environment.items():
            least = -math.inf if kpi.least is None else kpi.least
            most = math.inf if kpi.most is None else kpi.most
            if name not in self._levels:
                self._levels[name] = self._starts[name] = kpi.start
            else:
                push = (pushed or {}).get(name, 0.0)
                disturbance = random.Random(f"{self._seed}:kpi:{name}:W{week}").gauss(0.0, 1.0) * kpi.noise
                raised = sum(worked.get(what, 0.0) * by for what, by in kpi.raised_by.items())
                lowered = sum(worked.get(what, 0.0) * by for what, by in kpi.lowered_by.items())
                moved = self._levels[name] + kpi.drift + disturbance + raised - lowered + push
                self._levels[name] = round(min(max(moved, least), most), 4)
            # It starts where the file says, in whatever season that is.
            season = season_on(kpi, self._thursday(week)) - season_on(kpi, self._thursday(1))
            self._values[name] = round(min(max(self._levels[name] + season, least), most), 4) if season else self._levels[name]

    def _thursday(self, week: int) -> date:
        """The day that says to which month a week belongs."""
        start = self._org.calendar.start
        first = start + timedelta(days=3 - start.weekday())
        return first + timedelta(days=7 * (week - (first >= start)))

    def readings(self) -> tuple[Reading, ...]:
        """This week's values, in the order of the file."""
        found = []
        for name, value in self._values.items():
            goal, target = self._measured.get(name, (None, None))
            found.append(Reading(kpi=name, value=value, unit=self._org.environment[name].unit, target=target, goal=goal))
        return tuple(found)

    def values(self) -> Mapping[str, float]:
        """This week's values by figure."""
        return self._values

    def progress(self, goal: Goal) -> float | None:
        """How far the goal's key figure has come from its start to its target, 0 to 1; None where nothing measures it."""
        if goal.kpi is None or goal.target is None or goal.kpi not in self._values:
            return None
        start = self._starts[goal.kpi]
        if start == goal.target:
            return 1.0
        return round(min(1.0, max(0.0, (start - self._values[goal.kpi]) / (start - goal.target))), 4)


def _measured(org: Organization) -> dict[str, tuple[str, float | None]]:
    """Of each key figure the goal that it measures, the first by name of several, and the goal's target."""
    return {goal.kpi: (name, goal.target) for name, goal in sorted(org.goals.items(), reverse=True) if goal.kpi}
