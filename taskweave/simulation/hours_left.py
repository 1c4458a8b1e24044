"""How much planned work is still to be done?  Hours of open tasks by role and by agent.

Entry points: `by_role`, `by_agent`.  It refuses to know why they are open.
"""

from __future__ import annotations

from collections.abc import Iterable

from taskweave.simulation.open_work import OpenSubtask, OpenTask
from taskweave.simulation.stage import Stage


def by_role(stage: Stage, tasks: Iterable[OpenTask]) -> dict[str, float]:
    """Planned hours of open work still to be done, by role."""
    hours: dict[str, float] = {}
    for task in tasks:
        for subtask in task.subtasks:
            if subtask.status not in ("done", "dropped"):
                hours[subtask.step.role] = hours.get(subtask.step.role, 0.0) + of(stage, subtask)
        if task.spec is None:  # not decomposed yet
            for role in task.slot.roles:
                hours[role] = hours.get(role, 0.0) + task.slot.hours / len(task.slot.roles)
    return hours


def by_agent(stage: Stage, tasks: Iterable[OpenTask]) -> dict[str, float]:
    """Planned hours of unfinished subtasks, by the agent to whom they are assigned."""
    hours: dict[str, float] = {}
    for task in tasks:
        for subtask in task.subtasks:
            if subtask.agent is not None and subtask.status not in ("done", "dropped"):
                hours[subtask.agent] = hours.get(subtask.agent, 0.0) + of(stage, subtask)
    return hours


def of(stage: Stage, subtask: OpenSubtask) -> float:
    """Planned hours of a subtask still to be worked, by the clock."""
    in_hand = stage.calendars[subtask.agent].in_hand(subtask.id, stage.now) if subtask.agent is not None else 0
    return subtask.step.hours * max(0, subtask.left - in_hand) / subtask.minutes
