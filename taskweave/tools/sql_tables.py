"""Tables of the company database without writing SQL: described, made, filled, summed up.

Entry points: `sql_describe`, `sql_create`, `sql_insert`, `sql_profile`.  Each builds one statement and goes through the same guard as
`sql_query` and `sql_write`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.sql import KEPT, PRIVATE, _cell, _found, _run, quoted
from taskweave.tools.tool import Value, tool

MOST_COLUMNS, MOST_ROWS, SAMPLE = 20, 100, 3

_NAME = "[A-Za-z][A-Za-z0-9_]{0,39}"

Name = Annotated[str, StringConstraints(strip_whitespace=True, pattern=f"^{_NAME}$")]
Column = Annotated[str, StringConstraints(strip_whitespace=True, pattern=f"^{_NAME} (text|integer|real|date)$")]


@tool()
def sql_describe(hand: Hand, table: Name) -> Json:
    """Describe a table of the company database: columns, types, number of rows, the first three."""
    name = _table(hand, table)
    columns = [{"column": column[1], "type": column[2] or "any"} for column in hand.rows(f'PRAGMA table_info("{name}")')]
    ((count,),) = hand.rows(f'SELECT count(*) FROM "{name}"')
    # What a table computes by itself is not among its columns here: nothing bounds it.
    listed = ", ".join(quoted(column["column"]) for column in columns)
    rows = [[_cell(value) for value in row] for row in hand.rows(f'SELECT {listed} FROM "{name}" ORDER BY 1 LIMIT {SAMPLE}')]
    return {"table": name, "columns": columns, "rows": count, "first": rows, "own": name.casefold() not in KEPT}


@tool(writes=True)
def sql_create(hand: Hand, table: Name, columns: Annotated[list[Column], Field(min_length=1, max_length=MOST_COLUMNS)]) -> Json:
    """Make a table in the company database; a column is like "hours real".

    Types are text, integer, real and date.
    """
    listed = ", ".join(f'"{name}" {kind.upper()}' for name, kind in map(str.split, columns))
    _run(hand, f'CREATE TABLE "{table}" ({listed})', writing=True, then=lambda cursor: None)
    return {"table": table, "columns": [column.split()[0] for column in columns]}


@tool(writes=True)
def sql_insert(
    hand: Hand,
    table: Name,
    rows: Annotated[
        list[Annotated[list[Value], Field(min_length=1, max_length=MOST_COLUMNS)]],
        Field(min_length=1, max_length=MOST_ROWS),
    ],
) -> Json:
    """Add rows to a table of the company database.

    Each has a value for every column in order.
    """
    name = _table(hand, table)
    width = len(hand.rows(f'PRAGMA table_info("{name}")'))
    for number, row in enumerate(rows, 1):
        if len(row) != width:
            raise ToolRefused(f"row {number} has {len(row)} values for the {width} columns of {name!r}")
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    return _run(
        hand, f'INSERT INTO "{name}" VALUES {values}', writing=True, then=lambda cursor: {"table": name, "rows_added": cursor.rowcount}
    )


@tool()
def sql_profile(hand: Hand, table: Name, column: Name) -> Json:
    """Sum up a column of a table: missing, different, least, most, mean and most frequent values."""
    name = _table(hand, table)
    quoted = f'"{column}"'
    if column.casefold() not in {one[1].casefold() for one in hand.rows(f'PRAGMA table_info("{name}")')}:
        raise ToolRefused(f"the table {name!r} has no column {column!r}; sql_describe lists them")
    summed = f"""SELECT count(*) AS "rows", count({quoted}) AS "values", count(DISTINCT {quoted}) AS "different", min({quoted}) AS "least",
    max({quoted}) AS "most", avg(CASE WHEN typeof({quoted}) IN ('integer', 'real') THEN {quoted} END) AS "mean" FROM "{name}" """
    frequent = f'SELECT {quoted}, count(*) FROM "{name}" GROUP BY {quoted} ORDER BY 2 DESC, 1 LIMIT 5'
    told = _run(hand, summed, writing=False, then=_found)
    often = _run(hand, frequent, writing=False, then=_found)
    return {"table": name, "column": column, **dict(zip(told["columns"], told["rows"][0], strict=True)), "frequent": often["rows"]}


def _table(hand: Hand, table: str) -> str:
    """The table's own name; raises ToolRefused for none, and for one that is nobody's to read."""
    names = [
        name for (name,) in hand.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") if name.casefold() not in PRIVATE
    ]
    found: str | None = next((name for name in names if name.casefold() == table.casefold()), None)
    if found is None:
        raise ToolRefused(f"there is no table {table!r} that you may read; there are {', '.join(names)}")
    return found


def _literal(value: Json) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
