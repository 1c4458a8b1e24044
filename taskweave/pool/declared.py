"""What the tables of a run are, column by column (DESIGN, section 5), in the order of the digest and of the exports.

Entry points: the classes, and `told`, which says in JSON what a run must know of them: the statements that SQLAlchemy makes of them, and
what stands in which column.  It is kept in `tables.json`, since loading SQLAlchemy takes longer than reading a run: no command does it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from sqlalchemy import Boolean, Table, Text
from sqlalchemy.dialects.sqlite import Insert, dialect, insert
from sqlalchemy.orm import declared_attr, registry
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

from taskweave.records import Json


class JsonText(TypeDecorator[Json]):
    """A JSON value, stored as its canonical text."""

    impl = Text
    cache_ok = True


# A column that came later: where it is null, the row's line in digest and export is what it was before there was the column.
SPARSE = {"info": {"sparse": True}}


class PoolTable(SQLModel, registry=registry()):
    """The base of all tables of run.db; its metadata is its own, so that other rooms' tables never land in run.db."""

    __abstract__ = True
    if TYPE_CHECKING:
        __table__: ClassVar[Table]  # SQLModel sets it and does not say so

    @declared_attr.directive
    @classmethod
    def __tablename__(cls) -> str:
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()


class Agents(PoolTable, table=True):
    """𝒜: who works here; `role` is the title."""

    id: str = Field(primary_key=True)
    name: str
    role: str
    tier: int
    department: str | None = None
    persona: Json = Field(sa_type=JsonText)


class Edges(PoolTable, table=True):
    """ℰ_H; kind: tier, cross, self."""

    source: str = Field(primary_key=True)
    target: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)


class States(PoolTable, table=True):
    """S = (π, 𝒯, σ), one row a revision, in force from the simulated moment `since`.

    `quality` and `origin` are those of the plan and diagnosis in this row, the worse of the two; no origin where no text was asked for.
    """

    id: str = Field(primary_key=True)
    level: str
    period: str
    owner: str
    parent: str | None = Field(default=None, index=True)
    revision: int = Field(primary_key=True)
    plan: str
    diagnosis: str | None = None
    since: str | None = None
    quality: str
    origin: str | None = None


class Tasks(PoolTable, table=True):
    """τ; kind: objective, composite; status as at the run's end; `quality` and `origin` are those of its title and description.

    `entities` are ids of what it is about, where it is about any.
    """

    id: str = Field(primary_key=True)
    state: str = Field(index=True)
    kind: str
    activity: str
    title: str
    description: str
    priority: str
    goals: Json = Field(sa_type=JsonText)
    planned_hours: float
    due: str | None = None
    status: str
    done_on_time: bool | None = None
    background: str = ""
    constraints: str = ""
    quality: str
    origin: str
    entities: Json = Field(default=None, sa_type=JsonText, sa_column_kwargs=SPARSE)


class Subtasks(PoolTable, table=True):
    """τ̂, with the backbone's proposal (`proposed`) beside who got it and why; times are simulated.

    `quality` and `origin` are those of the goal, the role and what it waits for.
    """

    id: str = Field(primary_key=True)
    task: str = Field(index=True)
    goal: str
    activity: str
    role: str
    proposed: str | None = None
    assignee: str | None = None
    delegator: str | None = None
    why: str | None = None
    hours: float
    status: str
    created: str
    started: str | None = None
    finished: str | None = None
    quality: str
    origin: str


class Results(PoolTable, table=True):
    """r; `subtask` is null for a merged result; origin: model, scripted, fallback.

    `facts` are those that whoever wrote it was offered, {id, entity, kind, text, start, end}: where `content` says them first, by
    characters, `content[start:end] == text`; null and null where it leaves them unsaid.
    """

    id: str = Field(primary_key=True)
    task: str = Field(index=True)
    subtask: str | None = None
    agent: str
    artifact: str
    title: str
    content: str
    finished: str
    quality: str
    origin: str
    facts: Json = Field(default=None, sa_type=JsonText, sa_column_kwargs=SPARSE)


class Uses(PoolTable, table=True):
    """What a result was made from; kind: result, tool, environment, incident; how: explicit, retrieved, merged."""

    result: str = Field(primary_key=True)
    used: str = Field(primary_key=True, index=True)
    kind: str = Field(primary_key=True)
    how: str = Field(primary_key=True)


class Provenance(PoolTable, table=True):
    """ξ of a result; `calls` are sites of its completions, `prompt` is id, version and digest."""

    result: str = Field(primary_key=True)
    state: str
    goals: Json = Field(sa_type=JsonText)
    prompt: str
    backbone: str
    agent: str
    delegator: str | None = None
    calls: Json = Field(sa_type=JsonText)


class ToolCalls(PoolTable, table=True):
    id: str = Field(primary_key=True)
    result: str
    tool: str
    arguments: Json = Field(sa_type=JsonText)
    outcome: Json = Field(sa_type=JsonText)


class Incidents(PoolTable, table=True):
    """`affects` is "all" or a list of names; `tick` the working day it was heard on."""

    id: str = Field(primary_key=True)
    title: str
    category: str
    description: str
    severity: str
    tick: int | None = None
    until: str | None = None
    affects: Json = Field(sa_type=JsonText)
    effects: Json = Field(default_factory=list, sa_type=JsonText)
    since: str | None = None


class Events(PoolTable, table=True):
    seq: int = Field(primary_key=True)
    time: str
    kind: str
    actor: str | None = None
    subject: str
    object: str | None = None
    case: str | None = None


class Load(PoolTable, table=True):
    """Hours of an agent in a week."""

    week: int = Field(primary_key=True)
    agent: str = Field(primary_key=True)
    available: float
    booked: float
    spilled: float


class Readings(PoolTable, table=True):
    week: int = Field(primary_key=True)
    kpi: str = Field(primary_key=True)
    value: float


class Goals(PoolTable, table=True):
    week: int = Field(primary_key=True)
    goal: str = Field(primary_key=True)
    progress: float | None = None


class Entities(PoolTable, table=True):
    """Customers, suppliers, products, systems; `attributes` has for each what it is from which day on, [[since, text], ...]."""

    id: str = Field(primary_key=True)
    kind: str
    name: str
    attributes: Json = Field(sa_type=JsonText)


class Calls(PoolTable, table=True):
    """One row a completion: the only table that holds anything of wall-clock time."""

    site: str = Field(primary_key=True)
    ordinal: int = Field(primary_key=True)
    draw: int = Field(primary_key=True)
    prompt: str
    backbone: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    latency: float | None = None
    rung: str | None = None
    fallback: bool = False
    reason: str | None = None


_MODELS: tuple[type[PoolTable], ...] = (
    Agents, Edges, States, Tasks, Subtasks, Results, Uses, Provenance, ToolCalls, Incidents, Events, Load, Readings, Goals, Entities,
    Calls,
)  # fmt: skip


def told() -> dict[str, Json]:
    """By table: how it is made and written, its columns, its primary key, which columns hold JSON and which a truth, and its defaults."""
    return {model.__table__.name: _told(model, model.__table__) for model in _MODELS}


def _told(model: type[PoolTable], table: Table) -> dict[str, Json]:
    sqlite = dialect()
    indexes = sorted(table.indexes, key=lambda index: str(index.name))
    made = [CreateTable(table).compile(dialect=sqlite), *(CreateIndex(index).compile(dialect=sqlite) for index in indexes)]
    return {
        "columns": [column.name for column in table.columns],
        "primary_key": [column.name for column in table.primary_key.columns],
        "json": [column.name for column in table.columns if isinstance(column.type, JsonText)],
        "sparse": [column.name for column in table.columns if column.info.get("sparse")],
        "truth": [column.name for column in table.columns if isinstance(column.type, Boolean)],
        "defaults": {
            name: field.get_default(call_default_factory=True) for name, field in model.model_fields.items() if not field.is_required()
        },
        "create": [" ".join(str(statement).split()) for statement in made],
        "upsert": str(_upsert(table).compile(dialect=sqlite)),
    }


def _upsert(table: Table) -> Insert:
    """An update in place, not OR REPLACE: a rewritten result keeps its place in the order of writing."""
    statement, key = insert(table), [column.name for column in table.primary_key.columns]
    others = [column.name for column in table.columns if column.name not in key]
    if not others:
        return statement.on_conflict_do_nothing(index_elements=key)
    return statement.on_conflict_do_update(index_elements=key, set_={name: statement.excluded[name] for name in others})
