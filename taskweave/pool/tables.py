"""Which tables a run has, and what a row of each must hold: what `declared.py` declares, as it is kept in `tables.json`.

Entry points: `TABLES`, `Row`, `layout`.  Knows nothing of how rows come about, and of SQL only what it is told.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from taskweave.errors import BadInput, EngineFault
from taskweave.records import Json, canonical

Row = tuple[str, dict[str, Json]]  # (table, its values by column)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """One table: the statements that make and write it, and what its columns hold."""

    name: str
    columns: tuple[str, ...]
    primary_key: tuple[str, ...]
    json: frozenset[str]  # columns that hold a JSON value as its canonical text
    sparse: frozenset[str]  # columns that a row's line leaves out where they are null
    truth: frozenset[str]  # columns that hold true, false or nothing
    defaults: Mapping[str, Json]
    create: tuple[str, ...]
    upsert: str

    def stored(self, rows: Iterable[Mapping[str, Json]]) -> list[list[Json]]:
        """The values of the rows as SQLite takes them, in the order of the columns.  The rows are complete."""
        columns, json = self.columns, self.json
        if not json:
            return [[row[name] for name in columns] for row in rows]
        return [[storable(canonical(row[name])) if name in json else row[name] for name in columns] for row in rows]

    def read(self, values: Sequence[Json]) -> dict[str, Json]:
        """A row as it was given, from the values of all columns in their order."""
        row = dict(zip(self.columns, values, strict=True))
        for name in self.json:
            if row[name] is not None:
                row[name] = json.loads(row[name])
        for name in self.truth:
            if row[name] is not None:
                row[name] = bool(row[name])
        return row

    def line(self, row: Mapping[str, Json]) -> str:
        """The row in digest and export: its canonical JSON, without sparse columns that hold nothing."""
        bare = [name for name in self.sparse if row[name] is None]
        return canonical({name: value for name, value in row.items() if name not in bare} if bare else row)

    def compared(self, name: str, value: Json) -> tuple[str, list[Json]]:
        """The condition that a column has a value (None: that it is null), and what it is asked with."""
        if value is None:
            return f'"{name}" IS NULL', []
        return f'"{name}" = ?', [storable(canonical(value)) if name in self.json else value]

    def completed(self, rows: Iterable[Mapping[str, Json]]) -> list[Mapping[str, Json]]:
        """The rows with every column present: defaults filled in.

        Raises EngineFault for a column that the table does not have, or that is missing and has no default.
        """
        wanted = frozenset(self.columns)
        return [row if row.keys() == wanted else self._filled(row) for row in rows]

    def _filled(self, row: Mapping[str, Json]) -> Mapping[str, Json]:
        unknown = sorted(row.keys() - set(self.columns))
        if unknown:
            raise EngineFault(f"table {self.name!r} has no column {unknown[0]!r}; it has {', '.join(self.columns)}")
        missing = [name for name in self.columns if name not in row]
        required = [name for name in missing if name not in self.defaults]
        if required:
            raise EngineFault(f"a row of table {self.name!r} lacks {', '.join(required)}: {dict(row)!r:.300}")
        return {**row, **{name: copy(self.defaults[name]) for name in missing}}


def _layouts() -> dict[str, Layout]:
    told = json.loads(TOLD.read_text(encoding="utf-8"))
    return {
        name: Layout(
            name=name,
            columns=tuple(table["columns"]),
            primary_key=tuple(table["primary_key"]),
            json=frozenset(table["json"]),
            sparse=frozenset(table["sparse"]),
            truth=frozenset(table["truth"]),
            defaults=table["defaults"],
            create=tuple(table["create"]),
            upsert=table["upsert"],
        )
        for name, table in told.items()
    }


TOLD = Path(__file__).with_name("tables.json")  # rewritten by: python -m tests.tables_lock
LAYOUTS = _layouts()
TABLES: tuple[str, ...] = tuple(LAYOUTS)
UNDIGESTED = frozenset({"calls", "entities"})  # one holds wall-clock times, the other is an input with a digest of its own
PRIMARY_KEY: dict[str, tuple[str, ...]] = {name: table.primary_key for name, table in LAYOUTS.items()}
COLUMNS: dict[str, tuple[str, ...]] = {name: table.columns for name, table in LAYOUTS.items()}


def table_named(name: str) -> Layout:
    """The table; BadInput names the nearest where there is none."""
    if name in LAYOUTS:
        return LAYOUTS[name]
    near = difflib.get_close_matches(name, TABLES, 1)
    raise BadInput(f"There is no table {name!r}{f'; did you mean {near[0]!r}?' if near else '.'} Tables: {', '.join(TABLES)}")


def storable(text: str) -> str:
    """The text as SQLite can hold it: lone surrogates, which a model's JSON may contain, become U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
