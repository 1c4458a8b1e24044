"""How much work does a unit plan for a week?  Code decides: from free hours to composite tasks with roles and hours.

Entry point: `Capacity.slots`.  Free hours of a role = present hours x utilisation x demand - carried and recurring work; what does not
make a whole subtask is owed to the role and counted the next week, so that shares hold over a year.
It refuses to know what the work is about.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskweave.org.organization import Organization
from taskweave.records import Json

MOST_SUBTASKS = 5  # of one composite task
CROSS_SHARE = 0.1  # of an agent's free hours that each unit with a cross link to it may plan with


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """The shape of one composite task: the role of each of its subtasks, in the organization's order of roles, and its hours."""

    roles: tuple[str, ...]
    hours: float

    def as_input(self, org: Organization) -> Json:
        counts = {role: self.roles.count(role) for role in dict.fromkeys(self.roles)}
        return {
            "hours": self.hours,
            "roles": [
                {"role": role, "subtasks": count, "hours": round(count * org.roles[role].middle_hours, 1)} for role, count in counts.items()
            ],
        }


class Capacity:
    """The planning arithmetic of one unit's owner; keeps what is owed to each role from week to week."""

    def __init__(self, org: Organization, seed: int) -> None:
        self._org, self._seed = org, seed
        self._owed: dict[tuple[str, str], float] = {}

    def amend(self, org: Organization) -> None:
        """From now on the work is that of this organization; what is owed stays."""
        self._org = org

    def slots(self, owner: str, site: str, present: Mapping[str, float], taken: Mapping[str, float]) -> list[Slot]:
        """The composite tasks that `owner` plans this week.

        `present` are working hours by role (of those who may be given work here), `taken` those that work of earlier weeks still
        open and recurring work take.
        """
        work, org = self._org.workload, self._org
        counts: dict[str, int] = {}
        for role in org.roles:
            if role not in present:
                continue
            free = max(0.0, present[role] * work.utilisation * org.roles[role].demand - taken.get(role, 0.0))
            owed = self._owed.get((owner, role), 0.0) + free / org.roles[role].middle_hours
            counts[role] = math.floor(owed + 1e-9)
            self._owed[owner, role] = owed - counts[role]
        return self.deal(site, [role for role, count in counts.items() for _ in range(count)])

    def deal(self, site: str, roles: Sequence[str], count: int | None = None) -> list[Slot]:
        """Deal subtasks (by role) into composite tasks of about `composite_hours`, 1 to MOST_SUBTASKS each."""
        if not roles:
            return []
        hours = {role: self._org.roles[role].middle_hours for role in roles}
        total = sum(hours[role] for role in roles)
        if count is None:
            count = max(1, round(total / self._org.workload.composite_hours))
        count = min(max(count, math.ceil(len(roles) / MOST_SUBTASKS)), len(roles))
        rank = {role: position for position, role in enumerate(self._org.roles)}
        order = sorted(set(roles), key=rank.__getitem__)
        random.Random(f"{self._seed}:mix:{site}").shuffle(order)
        hands: list[list[str]] = [[] for _ in range(count)]
        counts = Counter(roles)
        dealt = [role for role in order for _ in range(counts[role])]
        for turn, role in enumerate(dealt):
            hands[turn % count].append(role)
        return [Slot(roles=tuple(sorted(hand, key=rank.__getitem__)), hours=round(sum(hours[role] for role in hand), 2)) for hand in hands]


def minutes_spent(hours: float, sigma: float, draw: random.Random) -> int:
    """Planned hours as they turn out: lognormal of mean 1, at least a quarter of an hour."""
    factor = math.exp(draw.gauss(-sigma * sigma / 2, sigma)) if sigma > 0 else 1.0
    return max(15, round(hours * 60 * factor))


def share_out(proposed: Sequence[float | None], ranges: Sequence[tuple[float, float]], total: float) -> list[float]:
    """Hours of a composite's subtasks: the proposals clamped to their roles' ranges, then scaled to `total`, in quarters of an hour.

    A missing proposal counts as the middle of its range.
    """
    clamped = [
        min(max((low + high) / 2 if hours is None else hours, low), high) for hours, (low, high) in zip(proposed, ranges, strict=True)
    ]
    scale = total / sum(clamped) if clamped and sum(clamped) > 0 else 1.0
    return [max(0.25, round(hours * scale * 4) / 4) for hours in clamped]
