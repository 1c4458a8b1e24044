"""What a backbone may answer, step by step, and the JSON schema that each call asks for.

A prompt's head names one of these classes; `X.model_validate` is its parser, and the function beside it builds the schema with the
legal names, counts and ids of this call.  The classes are kinder than the schema: a name that is not legal passes here, because the
simulation routes it and records that; what passes is never empty where text is needed.  Schemas keep to what OpenAI's strict mode takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from taskweave.backbones import calling
from taskweave.records import Json, Priority, TaskSpec
from taskweave.tools.tool import Tool

Schema = dict[str, Json]  # cached and shared: read it, never change it
Source = Literal["pool", "tools", "environment"]
SOURCES: tuple[Source, ...] = ("pool", "tools", "environment")
OFFERED: tuple[Source, ...] = ("pool", "environment")
NO_TOOL = calling.NONE
PRIORITIES: tuple[Priority, ...] = ("low", "normal", "high")
_SAME: dict[str, Priority] = {"medium": "normal", "moderate": "normal", "urgent": "high", "critical": "high"}
# OpenAI takes at most 1,000 enum values a schema, and 15,000 characters in an enum of more than 250.
_MOST_NAMES = 250


def _listed(value: Json) -> Json:
    """A list where a model wrote null for none, or one text for a list of one."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else value


def _texts(value: Json) -> Json:
    """A list of texts without the empty ones."""
    listed = _listed(value)
    return [t for t in listed if not (isinstance(t, str) and not t.strip())] if isinstance(listed, list) else listed


def _priority(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    word = value.strip().lower()
    return _SAME.get(word, word)


def _sources(value: Json) -> Json:
    """Sources by their legal names; others say nothing that the resolver could use."""
    listed = _texts(value)
    return [s for s in listed if s in SOURCES] if isinstance(listed, list) else listed


Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=20_000)]
MOST_TITLE = 300  # characters, where 10 words are asked for
Title = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_TITLE)]
Note = Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000), BeforeValidator(lambda v: "" if v is None else v)]
Texts = Annotated[tuple[Text, ...], BeforeValidator(_texts)]


class Answer(BaseModel):
    """One step's answer: frozen; keys beyond those asked for are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @classmethod
    def by_code(cls, **values: Any) -> Self:
        """The answer that code makes where a backbone gave none: a text that is longer than it may be there is cut, and ends in "…"."""
        for name, value in values.items():
            most = next((found.max_length for found in cls.model_fields[name].metadata if isinstance(found, StringConstraints)), None)
            if isinstance(value, str) and most is not None and len(value) > most:
                values[name] = value[: most - 1].rstrip() + "…"
        return cls(**values)


class Formulation(Answer):
    """formulate: the unit's plan π' (Sec. 3.2)."""

    plan: Text
    focus: Texts
    risks: Texts


class Objective(Answer):
    """One item of an upper unit's bundle; `owner` is the agent id of the recipient."""

    owner: Text
    text: Text
    goals: Texts
    measure: Note


class Partition(Answer):
    """partition: the bundle 𝒯' of a year, quarter or month."""

    objectives: Annotated[tuple[Objective, ...], BeforeValidator(_listed)]


class ProposedTask(Answer):
    """One composite task as proposed: the specification η of Eq. 4."""

    title: Title
    background: Note
    description: Text
    activity: Text
    priority: Annotated[Priority, BeforeValidator(_priority)]
    goals: Texts
    constraints: Note

    def spec(self) -> TaskSpec:
        """The same as the frozen value that the loop carries."""
        return TaskSpec(
            title=self.title,
            background=self.background,
            description=self.description,
            activity=self.activity,
            priority=self.priority,
            goals=self.goals,
            constraints=self.constraints,
        )


class WeekPartition(Answer):
    """partition_week: the bundle 𝒯' of a week, one composite task a slot."""

    tasks: Annotated[tuple[ProposedTask, ...], BeforeValidator(_listed)]


class ProposedSubtask(Answer):
    """One subtask as proposed: goal η̂ and dependency query Ψ.  `after` holds "s1".. of this answer and ids of other tasks."""

    goal: Text
    activity: Text
    role: Text
    hours: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    after: Texts
    need: Note
    sources: Annotated[tuple[Source, ...], BeforeValidator(_sources)]


class Decomposition(Answer):
    """decompose: the subtasks of a composite task, in order."""

    subtasks: Annotated[tuple[ProposedSubtask, ...], BeforeValidator(_listed)]


class Deliverable(Answer):
    """execute: what an agent made, δ̂ of Eq. 7."""

    artifact: Text
    title: Title
    content: Text


class ToolCall(Answer):
    """A tool by its name, or NO_TOOL, and its arguments; `changes` say what had to be changed to read them."""

    tool: Text
    arguments: dict[str, Json]
    changes: tuple[str, ...] = ()


class ToolChoice(Answer):
    """execute_tool: what to do with a tool before the deliverable is written; a call in whatever form models write one."""

    call: ToolCall

    @model_validator(mode="before")
    @classmethod
    def _read(cls, answer: Json) -> Json:
        tool, arguments, changes = calling.meant(answer)
        return {"call": {"tool": tool, "arguments": arguments, "changes": changes}}


class Merged(Answer):
    """merge: the composite output δ of Eq. 8."""

    title: Title
    content: Text


class Diagnosis(Answer):
    """diagnose: the summary σ' of what execution showed."""

    summary: Text
    deviations: Texts
    blockers: Texts


class Alignment(Answer):
    """align: the plan after feedback, π̃' of Eq. 3."""

    plan: Text
    changes: Texts


class SiblingRequest(Answer):
    """What one unit asks of a sibling; `to` is the agent id of its owner."""

    to: Text
    text: Text


class Reconciliation(Answer):
    """reconcile: the plan after coordination with siblings, and what is asked of them."""

    plan: Text
    requests: Annotated[tuple[SiblingRequest, ...], BeforeValidator(_listed)]


class RollUp(Answer):
    """roll_up: the children's diagnoses as one summary."""

    summary: Text


class Response(Answer):
    """respond: the plan after an incident, and the urgent tasks."""

    plan: Text
    urgent: Annotated[tuple[ProposedTask, ...], BeforeValidator(_listed)]


# ---------------------------------------------------------------- schemas
_STRING: Schema = {"type": "string"}


def object_of(properties: Schema) -> Schema:
    """An object with exactly these properties, all of which are required."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: Schema, least: int | None = None, most: int | None = None) -> Schema:
    array: Schema = {"type": "array", "items": items}
    if least is not None:
        array["minItems"] = least
    if most is not None:
        array["maxItems"] = most
    return array


def one_of(names: Iterable[str]) -> Schema:
    """A string that is one of `names`; any string where there is none to choose from, or more than a provider takes."""
    legal = list(dict.fromkeys(names))
    return {"type": "string", "enum": legal} if 0 < len(legal) <= _MOST_NAMES else _STRING


def _some_of(names: tuple[str, ...], most: int | None = None) -> Schema:
    """A list of some of `names`; an empty list where there are none."""
    return _list(one_of(names), most=len(set(names)) if most is None else min(most, len(set(names))))


def _task(activities: tuple[str, ...], goals: tuple[str, ...]) -> Schema:
    return object_of(
        {
            "title": _STRING,
            "background": _STRING,
            "description": _STRING,
            "activity": one_of(activities),
            "priority": one_of(PRIORITIES),
            "goals": _some_of(goals),
            "constraints": _STRING,
        }
    )


@lru_cache(maxsize=1)
def formulation() -> Schema:
    """The schema of a `Formulation`."""
    return object_of({"plan": _STRING, "focus": _list(_STRING, 1, 5), "risks": _list(_STRING, 0, 4)})


@lru_cache(maxsize=512)
def partition(owners: tuple[str, ...], goals: tuple[str, ...]) -> Schema:
    """The schema of a `Partition`: at least one objective a recipient, at most two.  `owners` are agent ids, `goals` names."""
    objective = object_of({"owner": one_of(owners), "text": _STRING, "goals": _some_of(goals), "measure": _STRING})
    return object_of({"objectives": _list(objective, len(owners), 2 * len(owners))})


@lru_cache(maxsize=512)
def week_partition(count: int, activities: tuple[str, ...], goals: tuple[str, ...]) -> Schema:
    """The schema of a `WeekPartition` of exactly `count` tasks."""
    return object_of({"tasks": _list(_task(activities, goals), count, count)})


@lru_cache(maxsize=2048)
def decomposition(
    count: int,
    roles: tuple[str, ...],
    upstream: tuple[str, ...],
    activities: tuple[str, ...],
    hours: float | None = None,
    *,
    first: int = 0,
    tools: bool = False,
) -> Schema:
    """The schema of the subtasks after the `first` ones of a `Decomposition` of `count`; none may take more than the task's `hours`."""
    number: Schema = {"type": "number", "minimum": 0.25}
    if hours is not None:
        number["maximum"] = max(hours, 0.25)
    subtask = object_of(
        {
            "goal": _STRING,
            "activity": one_of(activities),
            "role": one_of(roles),
            "hours": number,
            "after": _some_of((*(f"s{n}" for n in range(1, count)), *upstream)),
            "need": _STRING,
            "sources": _some_of(SOURCES if tools else OFFERED),
        }
    )
    return object_of({"subtasks": _list(subtask, count - first, count - first)})


@lru_cache(maxsize=512)
def deliverable(artifacts: tuple[str, ...]) -> Schema:
    """The schema of a `Deliverable` of one of these kinds."""
    return object_of({"artifact": one_of(artifacts), "title": _STRING, "content": _STRING})


@lru_cache(maxsize=256)
def tool_choice(tools: tuple[Tool, ...]) -> Schema:
    """The schema of a `ToolChoice` among these, each with its own arguments, or of none."""
    return calling.choice(calling.Function(tool.name, tool.summary, tool.schema) for tool in tools)


@lru_cache(maxsize=1)
def merged() -> Schema:
    """The schema of a `Merged`."""
    return object_of({"title": _STRING, "content": _STRING})


@lru_cache(maxsize=1)
def diagnosis() -> Schema:
    """The schema of a `Diagnosis`."""
    return object_of({"summary": _STRING, "deviations": _list(_STRING, 0, 6), "blockers": _list(_STRING, 0, 6)})


@lru_cache(maxsize=1)
def alignment() -> Schema:
    """The schema of an `Alignment`."""
    return object_of({"plan": _STRING, "changes": _list(_STRING, 0, 6)})


@lru_cache(maxsize=512)
def reconciliation(siblings: tuple[str, ...]) -> Schema:
    """The schema of a `Reconciliation`: at most one request a sibling.  `siblings` are agent ids."""
    request = object_of({"to": one_of(siblings), "text": _STRING})
    return object_of({"plan": _STRING, "requests": _list(request, 0, len(siblings))})


@lru_cache(maxsize=1)
def roll_up() -> Schema:
    """The schema of a `RollUp`."""
    return object_of({"summary": _STRING})


@lru_cache(maxsize=512)
def response(count: int, activities: tuple[str, ...], goals: tuple[str, ...]) -> Schema:
    """The schema of a `Response` with exactly `count` urgent tasks."""
    return object_of({"plan": _STRING, "urgent": _list(_task(activities, goals), count, count)})
