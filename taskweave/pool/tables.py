"""Which tables a run has, column by column (DESIGN, section 5), in the order of the digest and of the exports.

Entry points: `TABLES`, `Row`, `completed`.  Rows are declared here in SQLModel and written through Core inserts by `pool.py`;
they are private to this room.  Knows nothing of how rows come about.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from sqlalchemy import Table, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import declared_attr, registry
from sqlalchemy.types import TypeDecorator
from sqlmodel import Field, SQLModel

from taskweave.errors import BadInput, EngineFault
from taskweave.records import Json, canonical

Row = tuple[str, dict[str, Json]]  # (table, its values by column)


def storable(text: str) -> str:
    """The text as SQLite can hold it: lone surrogates, which a model's JSON may contain, become U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


class JsonText(TypeDecorator[Json]):
    """A JSON value, stored as its canonical text."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Json, dialect: Dialect) -> str:
        return storable(canonical(value))

    def process_result_value(self, value: Any, dialect: Dialect) -> Json:
        return None if value is None else json.loads(value)


class PoolTable(SQLModel, registry=registry()):
    """The base of all tables of run.db; its metadata is its own, so that other rooms' tables never land in run.db."""

    __abstract__ = True
    if TYPE_CHECKING:
        __table__: ClassVar[Table]  # SQLModel sets it and does not say so

    @declared_attr.directive
    def __tablename__(cls) -> str:  # noqa: N805  (SQLAlchemy hands in the class)
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
    """S = (π, 𝒯, σ), one row a revision, in force from the simulated moment `since`."""

    id: str = Field(primary_key=True)
    level: str
    period: str
    owner: str
    parent: str | None = Field(default=None, index=True)
    revision: int = Field(primary_key=True)
    plan: str
    diagnosis: str | None = None
    since: str | None = None


class Tasks(PoolTable, table=True):
    """τ; kind: objective, composite; status as at the run's end."""

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


class Subtasks(PoolTable, table=True):
    """τ̂, with the backbone's proposal (`proposed`) beside who got it and why; times are simulated."""

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


class Results(PoolTable, table=True):
    """r; `subtask` is null for a merged result; origin: model, scripted, fallback."""

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
    Agents, Edges, States, Tasks, Subtasks, Results, Uses, Provenance, ToolCalls, Incidents, Events, Load, Readings, Goals, Calls,
)  # fmt: skip

SCHEMA: dict[str, Table] = {table.name: table for model in _MODELS for table in [model.__table__]}
TABLES: tuple[str, ...] = tuple(SCHEMA)
WALL_CLOCK = frozenset({"calls"})  # left out of every digest
PRIMARY_KEY: dict[str, tuple[str, ...]] = {name: tuple(c.name for c in table.primary_key.columns) for name, table in SCHEMA.items()}
COLUMNS: dict[str, tuple[str, ...]] = {name: tuple(table.columns.keys()) for name, table in SCHEMA.items()}
_COLUMN_SETS = {name: frozenset(columns) for name, columns in COLUMNS.items()}
_FIELDS = {model.__table__.name: model.model_fields for model in _MODELS}


def table_named(name: str) -> Table:
    """The declared table; BadInput names the nearest where there is none."""
    if name in SCHEMA:
        return SCHEMA[name]
    near = difflib.get_close_matches(name, TABLES, 1)
    raise BadInput(f"There is no table {name!r}{f'; did you mean {near[0]!r}?' if near else '.'} Tables: {', '.join(TABLES)}")


def completed(table: str, rows: Iterable[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
    """The rows with every column present: defaults filled in.

    Raises EngineFault for a column that the table does not have, or that is missing and has no default.
    """
    wanted = _COLUMN_SETS[table]
    return [row if row.keys() == wanted else _filled(table, row) for row in rows]


def _filled(table: str, row: Mapping[str, Json]) -> Mapping[str, Json]:
    unknown = sorted(row.keys() - _COLUMN_SETS[table])
    if unknown:
        raise EngineFault(f"table {table!r} has no column {unknown[0]!r}; it has {', '.join(COLUMNS[table])}")
    fields = _FIELDS[table]
    missing = [name for name in COLUMNS[table] if name not in row]
    required = [name for name in missing if fields[name].is_required()]
    if required:
        raise EngineFault(f"a row of table {table!r} lacks {', '.join(required)}: {dict(row)!r:.300}")
    return {**row, **{name: fields[name].get_default(call_default_factory=True) for name in missing}}
