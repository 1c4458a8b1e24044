"""How do objectives stand?  What a plan above the week asks of the next owners, from its opening until the last of its work is done.

Entry points: `Delegated.open`, `Delegated.close`, `Delegated.catch_up`.  It refuses to know what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

from taskweave.backbones.structured import Answered
from taskweave.pool.tables import Row
from taskweave.simulation.bundles import Objectives
from taskweave.simulation.stage import Stage
from taskweave.simulation.tasks import Tasks
from taskweave.simulation.units import Objective, Unit


class Delegated:
    """The objectives of open periods, and of closed ones whose work is not done."""

    def __init__(self, stage: Stage, tasks: Tasks) -> None:
        self._stage, self._tasks = stage, tasks
        self._late: list[Unit] = []

    def open(self, unit: Unit, owners: Sequence[str]) -> None:
        """The unit's bundle, once it is there, asks something of each of these."""
        unit.objectives = {owner: Objective() for owner in owners}
        self._book(unit)

    def _book(self, unit: Unit) -> None:
        """Objectives are tasks too: what is delegated above the week, with the status that their owners' work has given them."""
        assert unit.bundle is not None
        due = unit.period.rsplit(" ", 1)[1]
        statuses = dict(unit.objectives)

        def make(answered: Answered[Objectives]) -> list[Row]:
            return [
                (
                    "tasks",
                    {
                        "id": f"{unit.id}/o{number}",
                        "state": unit.id,
                        "kind": "objective",
                        "activity": "plan",
                        "title": objective.text,
                        "description": f"For {objective.owner}. {objective.measure}".strip(),
                        "priority": "normal",
                        "goals": list(objective.goals),
                        "planned_hours": 0.0,
                        "due": due,
                        "status": statuses[objective.owner].status,
                        "done_on_time": statuses[objective.owner].on_time,
                        **mark.row(),
                    },
                )
                for number, (objective, mark) in enumerate(zip(answered.value.objectives, answered.value.marks, strict=True), 1)
            ]

        self._stage.ledger.book(make, unit.bundle)

    def close(self, unit: Unit) -> None:
        """An objective is done when none of the composite tasks is open that its owner and those below had at the period's close.

        It is on time where there was none, else late, once the last of them is done.
        """
        delegation = self._stage.setting.delegation
        for owner in [name for name, objective in unit.objectives.items() if objective.status != "dropped"]:
            agents = {owner, *delegation.descendants(owner)}
            waiting = frozenset(task.id for agent in sorted(agents) for task in self._tasks.of(agent))
            unit.objectives[owner] = Objective("spilled", False, waiting) if waiting else Objective("done", True, waiting)
        self._book(unit)
        if any(objective.waiting for objective in unit.objectives.values()):
            self._late.append(unit)

    def release(self, unit: Unit) -> None:
        """The organization is another one: nothing is asked any more of those who plan nothing below the unit's owner."""
        delegation = self._stage.setting.delegation
        gone = [owner for owner in unit.objectives if not delegation.levels(owner) and owner not in delegation.executors(unit.owner)]
        unit.objectives |= dict.fromkeys(gone, Objective("dropped"))

    def catch_up(self) -> None:
        """Objectives of closed periods whose last task has been finished meanwhile are done, late."""
        still_late = []
        for unit in self._late:
            open_now = {owner: frozenset(filter(self._tasks.is_open, found.waiting)) for owner, found in unit.objectives.items()}
            changed = [owner for owner, waiting in open_now.items() if unit.objectives[owner].waiting and not waiting]
            for owner in changed:
                unit.objectives[owner] = Objective("done", False, frozenset())
            if changed:
                self._book(unit)
            if any(open_now.values()):
                still_late.append(unit)
        self._late = still_late
