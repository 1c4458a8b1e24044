"""A composite task and a subtask on their way: what the clock knows of them until their result is there, and their rows.

Entry points: `OpenTask`, `OpenSubtask`.  They refuse to move themselves: `tasks.py` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import simpy
from simpy.events import Event

from taskweave.engine.promises import Promise
from taskweave.org.entities import Entity
from taskweave.pool.tables import Row
from taskweave.records import BY_CODE, Mark, Priority, TaskSpec
from taskweave.simulation.capacity import Slot
from taskweave.simulation.execution import Step
from taskweave.simulation.fpda import PRIORITY_RANK

Status = Literal["open", "done", "spilled", "blocked", "dropped"]
URGENT = 0  # rank of urgent work; the others are in PRIORITY_RANK


@dataclass(slots=True, eq=False)
class OpenSubtask:
    """A subtask on its way: `left` of `minutes` are still to be worked, as of its last interruption."""

    id: str
    task: OpenTask
    index: int
    step: Step
    minutes: int
    left: int
    created: str
    done: Event
    height: int
    status: Status = "open"
    agent: str | None = None
    why: str | None = None
    started: str | None = None
    finished: str | None = None
    ready: bool = False
    process: simpy.Process | None = None
    execution: Promise | None = None

    def row(self) -> Row:
        return (
            "subtasks",
            {
                "id": self.id,
                "task": self.task.id,
                "goal": self.step.goal,
                "activity": self.step.activity,
                "role": self.step.role,
                "proposed": self.step.proposed,
                "assignee": self.agent,
                "delegator": self.task.owner,
                "why": self.why,
                "hours": self.step.hours,
                "status": self.status,
                "created": self.created,
                "started": self.started,
                "finished": self.finished,
                **self.step.mark.row(),
            },
        )


@dataclass(slots=True, eq=False)
class OpenTask:
    """A composite task on its way; `finished` fires when it is done or dropped, `merged` is its result once done."""

    id: str
    state: str
    owner: str
    slot: Slot
    due: str
    due_minute: int
    plans: Mapping[str, Promise]
    finished: Event
    urgent: bool
    breakdown: Promise
    cause: str | None = None
    about: tuple[Entity, ...] = ()
    spec: TaskSpec | None = None
    mark: Mark = BY_CODE  # of the specification, once it is there
    status: Status = "open"
    on_time: bool | None = None
    subtasks: list[OpenSubtask] = field(default_factory=list)
    merged: Promise | None = None
    lifted: Priority | None = None  # that of its goals, where an incident gave them one

    @property
    def rank(self) -> int:
        return URGENT if self.urgent else PRIORITY_RANK[self.lifted or (self.spec.priority if self.spec else "normal")]

    def lift(self, priorities: Mapping[str, Priority]) -> None:
        """Take over the priority of its goals, the highest of several; its own where they have none."""
        goals = self.spec.goals if self.spec else ()
        found: list[Priority] = sorted((priorities[goal] for goal in goals if goal in priorities), key=PRIORITY_RANK.__getitem__)
        self.lifted = found[0] if found else None

    @property
    def title(self) -> str:
        return self.spec.title if self.spec else self.id

    def row(self) -> Row:
        assert self.spec is not None
        return (
            "tasks",
            {
                "id": self.id,
                "state": self.state,
                "kind": "composite",
                "activity": self.spec.activity,
                "title": self.spec.title,
                "description": self.spec.description,
                "priority": "urgent" if self.urgent else self.spec.priority,
                "goals": list(self.spec.goals),
                "planned_hours": self.slot.hours,
                "due": self.due,
                "status": self.status,
                "done_on_time": self.on_time,
                "background": self.spec.background,
                "constraints": self.spec.constraints,
                **self.mark.row(),
                **({"entities": [entity.id for entity in self.about]} if self.about else {}),
            },
        )
