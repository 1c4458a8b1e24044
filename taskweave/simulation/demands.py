"""Which tasks has an incident laid on whom, and when are they taken up?

Entry points: `Demands`, `demand`.  A task is some subtasks of one role, with words and a deadline of its own; one that is
urgent, or due before the next week begins, is taken up at once, any other with the plans of the next week.  It refuses to open it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from taskweave.org.organization import Organization, Role
from taskweave.records import Mark, Priority, TaskSpec
from taskweave.simulation.bundles import Bundle
from taskweave.simulation.capacity import MOST_SUBTASKS, Slot
from taskweave.simulation.incidents.effects import Workload
from taskweave.simulation.incidents.in_force import InForce
from taskweave.simulation.matching import terms


@dataclass(frozen=True, kw_only=True, slots=True)
class Demand:
    """What must be done because of the incident `cause`, by agents of `role`; `due` is a date and the last minute of its day."""

    role: str
    bundle: Bundle
    slots: tuple[Slot, ...]
    due: tuple[str, int]
    urgent: bool
    cause: str

    @property
    def hours(self) -> float:
        return sum(slot.hours for slot in self.slots)


class Demands:
    """What waits to be taken up, by the owner of the unit that will."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Demand]] = {}

    def lay(self, owner: str, demand: Demand) -> None:
        """The owner's next plans are to take it up."""
        self._waiting.setdefault(owner, []).append(demand)

    def take(self, owner: str) -> list[Demand]:
        """What waits for the owner, in the order in which it came; it is taken up now."""
        return self._waiting.pop(owner, [])

    def owners(self) -> tuple[str, ...]:
        """Whose plans are to take something up."""
        return tuple(self._waiting)

    def of_no_role(self, roles: Collection[str]) -> list[Demand]:
        """What waits for a role that there is not among these; it waits no more."""
        lost = [one for waiting in self._waiting.values() for one in waiting if one.role not in roles]
        self._waiting = {owner: [one for one in waiting if one not in lost] for owner, waiting in self._waiting.items()}
        return lost

    def pass_on(self, owner: str, successor: str) -> None:
        """What waits for an owner who has left waits for another."""
        for one in self.take(owner):
            self.lay(successor, one)

    def hours(self, owner: str) -> dict[str, float]:
        """The same in hours by role."""
        hours: dict[str, float] = {}
        for demand in self._waiting.get(owner, ()):
            hours[demand.role] = hours.get(demand.role, 0.0) + demand.hours
        return hours


def demand(org: Organization, effect: Workload, role: str, heard: InForce, due: tuple[str, int], mark: Mark) -> Demand:
    """The effect as tasks of so many subtasks as its hours make, each of at most MOST_SUBTASKS."""
    count = max(1, round(effect.hours / org.roles[role].middle_hours))
    parts = math.ceil(count / MOST_SUBTASKS)
    sizes = [count // parts + (part < count % parts) for part in range(parts)]
    slots = tuple(Slot(roles=(role,) * size, hours=round(effect.hours * size / count, 2)) for size in sizes)
    titles = [effect.title] if parts == 1 else [f"{effect.title} ({part}/{parts})" for part in range(1, parts + 1)]
    tasks = tuple(_spec(org, effect, org.roles[role], title, heard, due[0]) for title in titles)
    bundle = Bundle(tasks=tasks, marks=(mark,) * parts, quality="ok", calls=())
    return Demand(role=role, bundle=bundle, slots=slots, due=due, urgent=effect.priority == "urgent", cause=heard.id)


def _spec(org: Organization, effect: Workload, role: Role, title: str, heard: InForce, due: str) -> TaskSpec:
    priority: Priority = "high" if effect.priority == "urgent" else effect.priority
    said = set(terms(effect.title))
    named = [one for one in (*role.activities, *org.activities) if set(terms(one)) & said]
    return TaskSpec(
        title=title,
        background=f"{heard.incident.title}. {heard.incident.text()}".strip(),
        description=effect.title,
        activity=(*named, *role.activities, *org.activities)[0],
        priority=priority,
        goals=tuple(goal for goal in effect.goals if goal in org.goals),
        constraints=f"due {due}",
    )


def added(*hours: Mapping[str, float]) -> dict[str, float]:
    """Hours by role, added up."""
    total: dict[str, float] = {}
    for some in hours:
        for role, number in some.items():
            total[role] = total.get(role, 0.0) + number
    return total
