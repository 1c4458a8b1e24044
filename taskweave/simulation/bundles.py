"""What code makes of the items that a backbone named: as many as were asked for, each legal, each with a mark of what it comes from.

Entry points: `complete_objectives` (above the week), `exactly` (composite tasks).  What is missing is asked for once more and then filled
by code; every change is said in the notes.  It refuses to know how a question is put.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from taskweave.backbones.legal import nearest
from taskweave.backbones.structured import Answered, CallRow
from taskweave.cutting import cut
from taskweave.records import BY_CODE, BY_CODE_SAID, Mark, Quality, TaskSpec, worst
from taskweave.simulation import answers
from taskweave.simulation.capacity import Slot
from taskweave.simulation.setting import Setting

_TITLE = 50  # tokens of a title made of a duty, which may be long


@dataclass(frozen=True, kw_only=True, slots=True)
class Objectives:
    """𝒯′ above the week: what is asked of the next owners, with a mark each."""

    objectives: tuple[answers.Objective, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Bundle:
    """𝒯′ of a week: composite tasks in the order of their slots, with a mark each; `notes` say what code had to add or change."""

    tasks: tuple[TaskSpec, ...]
    marks: tuple[Mark, ...]
    quality: Quality
    calls: tuple[CallRow, ...]
    notes: tuple[str, ...] = ()


def complete_objectives(
    setting: Setting, answered: Answered[answers.Partition], recipients: Sequence[str], plan: str
) -> Answered[Objectives]:
    """Every recipient has an objective: owners that do not exist are routed to the nearest, missing ones are filled from the plan."""
    given: list[tuple[answers.Objective, Mark]] = []
    notes: list[str] = []
    for number, objective in enumerate(answered.value.objectives):
        owner, note = nearest(objective.owner, recipients)
        goals, unknown = known_goals(setting, objective.goals)
        changes = [*([note] if note else []), *unknown]
        notes += changes
        mark = mark_of(answered, number)
        given.append((objective.model_copy(update={"owner": owner, "goals": goals}), mark.mended if changes else mark))
    filled = [agent for agent in recipients if all(objective.owner != agent for objective, _ in given)]
    for agent in filled:
        notes.append(f"no objective for {agent}: the plan itself was passed on")
        given.append(
            (answers.Objective.by_code(owner=agent, text=f"Carry out your part of the plan: {plan}", goals=(), measure=""), BY_CODE)
        )
    value = Objectives(objectives=tuple(objective for objective, _ in given), marks=tuple(mark for _, mark in given))
    completed = answered.with_value(value, notes)
    return replace(completed, quality="fallback") if filled else completed


async def exactly(
    slots: Sequence[Slot],
    ask_for: Callable[[Sequence[Slot], Sequence[str]], Awaitable[Answered[tuple[TaskSpec, ...]]]],
    setting: Setting,
    plan: str,
) -> Bundle:
    """One task a slot: what is missing is asked for once more, then filled by code, and both are said in the notes."""
    first = await ask_for(slots, ())
    tasks, calls, notes, quality = list(first.value[: len(slots)]), list(first.calls), list(first.notes), first.quality
    marks = [mark_of(first, number) for number in range(len(tasks))]
    if len(first.value) > len(slots):
        notes.append(f"{len(first.value) - len(slots)} tasks more than asked were left out")
        quality = worst(quality, "repaired")
    if len(tasks) < len(slots) and first.quality != "fallback":
        missing = len(slots) - len(tasks)
        more = await ask_for(slots[len(tasks) :], [task.title for task in tasks])
        calls, notes = [*calls, *more.calls], [*notes, *more.notes, f"{missing} tasks were missing and asked for again"]
        tasks, quality = [*tasks, *more.value[:missing]], worst(quality, worst(more.quality, "repaired"))
        marks += [mark_of(more, number) for number in range(len(tasks) - len(marks))]
    while len(tasks) < len(slots):
        notes.append(f"task {len(tasks) + 1} {BY_CODE_SAID}")
        tasks.append(filler(setting, slots[len(tasks)], plan))
        marks.append(BY_CODE)
        quality = "fallback"
    checked = [legal(setting, task) for task in tasks]
    marks = [mark.mended if changes else mark for mark, (_, changes) in zip(marks, checked, strict=True)]
    changed = [f"task {number}: {note}" for number, (_, changes) in enumerate(checked, 1) for note in changes]
    return Bundle(
        tasks=tuple(task for task, _ in checked),
        marks=tuple(marks),
        quality=worst(quality, "repaired") if changed else quality,
        calls=tuple(calls),
        notes=(*notes, *changed),
    )


def mark_of(answered: Answered[Any], item: int | None = None) -> Mark:
    """What the texts of an answer come from, or those of one of its items where these were asked for one by one."""
    if item is not None and item < len(answered.items):
        return answered.items[item]
    return BY_CODE if answered.quality == "fallback" else Mark(answered.quality, answered.origin)


def filler(setting: Setting, slot: Slot, plan: str) -> TaskSpec:
    """The composite task that stands in where a backbone named none."""
    role = setting.org.roles[slot.roles[0]]
    duty = (role.responsibilities or (f"Do the work of a {role.title}",))[0]
    return TaskSpec(
        title=cut(f"{role.title}: {duty}", _TITLE),
        background=plan,
        description=duty,
        activity=(role.activities or setting.org.activities)[0],
        priority="normal",
        goals=(),
        constraints=f"within {slot.hours:g} hours",
    )


def legal(setting: Setting, task: TaskSpec) -> tuple[TaskSpec, list[str]]:
    """The task with an activity and goals that the organization has, and what was changed: a goal that there is not is left out."""
    activity, note = nearest(task.activity, setting.org.activities)
    goals, unknown = known_goals(setting, task.goals)
    spec = TaskSpec(
        title=task.title,
        background=task.background,
        description=task.description,
        activity=activity,
        priority=task.priority,
        goals=goals,
        constraints=task.constraints,
    )
    return spec, [*([note] if note else []), *unknown]


def known_goals(setting: Setting, names: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """The goals among these names, in any case of letters, and notes on the others: to guess one would move what it is measured by."""
    folded = {goal.casefold(): goal for goal in reversed(setting.org.goals)}
    found = tuple(dict.fromkeys(folded[name.strip().casefold()] for name in names if name.strip().casefold() in folded))
    return found, [f"{name!r} is no goal here and was left out" for name in names if name.strip().casefold() not in folded]
