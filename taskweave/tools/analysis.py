"""Analysis of the company's own data in DuckDB: one SELECT a call over a copy of the tables that the caller may see, and nothing else.

Entry point: `duckdb_query`.  A statement is parsed first, and each table, function and clause of it must be in the lists below; then its
plan says how many rows it would look at.  What DuckDB could reach besides (files, network, settings, clocks, chance) is switched off too.
"""

from __future__ import annotations

import contextlib
import datetime
import decimal
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.sql import MOST_ROWS, PRIVATE, _cell, ended_after, quoted
from taskweave.tools.tool import MOST_PROSE, tool

if TYPE_CHECKING:
    import duckdb

EXTRA = "tools"
MOST_READ = 50_000  # rows of the tables that a statement names
MOST_LOOKED_AT = 5_000_000  # rows that the steps of its plan give, by DuckDB's own estimate
MOST_SECONDS = 10.0  # the last resort, for a plan whose estimate is far too low
MAILS = "mails"  # those of the caller, without their texts
MOST_MEMORY = "128MB"
ZONE = "UTC"  # the machine's own is none of a run's
# In this order: what shuts the outside comes after what it would forbid to set.
_SETTINGS = f"""SET threads = 1; SET memory_limit = '{MOST_MEMORY}'; SET temp_directory = ''; SET allow_persistent_secrets = false;
    SET autoinstall_known_extensions = false; SET autoload_known_extensions = false; SET allow_community_extensions = false;
    SET python_enable_replacements = false; SET enable_external_access = false"""
_ALLOWED = """abs avg bool_and bool_or ceil ceiling coalesce concat concat_ws contains corr count count_if count_star covar_pop covar_samp
    cume_dist date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear
    dense_rank ends_with epoch exp favg first_value floor fsum greatest group_concat hour ifnull instr isfinite isnan isodow isoyear
    kurtosis lag last_day last_value lcase lead least left len length like_escape listagg ln log log10 log2 lower ltrim mad make_date max
    median min minute mod mode month monthname not_like_escape nth_value ntile nullif percent_rank position pow power prefix
    quantile_cont quantile_disc quarter rank regexp_extract regexp_full_match regexp_matches regexp_replace regr_count regr_intercept
    regr_r2 regr_slope replace right round row_number rtrim second sem sign skewness split_part sqrt starts_with stddev stddev_pop
    stddev_samp strftime string_agg strip_accents strlen strpos strptime substr substring suffix sum to_days to_months to_weeks to_years
    trim trunc try_strptime ucase upper var_pop var_samp variance week weekday weekofyear year yearweek
    + - * / // % ** ^ || ~~ !~~ ~~* !~~* ~~~ ^@ @ ~ & |"""
_FUNCTIONS = frozenset(_ALLOWED.split())
# Names that mean a clock, or a place in the machine, where no column has them.
_STATE = """current_date current_time current_timestamp localtime localtimestamp current_user current_role session_user user current_schema
    current_schemas current_catalog current_database current_setting today now rowid"""
_NOT_COLUMNS = frozenset(_STATE.split())
_PARTS = "COLUMN_REF CONSTANT FUNCTION COMPARISON CONJUNCTION OPERATOR CASE CAST SUBQUERY BETWEEN STAR WINDOW COLLATE TYPE"
_EXPRESSIONS = frozenset(_PARTS.split())
_NODES = """SELECT_NODE SET_OPERATION_NODE CTE_NODE ORDER_MODIFIER LIMIT_MODIFIER DISTINCT_MODIFIER ORDER_DEFAULT ASCENDING DESCENDING
    BASE_TABLE JOIN SUBQUERY EMPTY EXPRESSION_LIST"""
_CLAUSES = frozenset(_NODES.split())
_PLAIN_TYPES = """varchar text string char bpchar boolean bool tinyint smallint integer int bigint hugeint float real double decimal numeric
    date time timestamp datetime interval"""
_TYPES = frozenset(_PLAIN_TYPES.split())
_SAID = {"RECURSIVE_CTE_NODE": "a recursive query", "TABLE_FUNCTION": "a function in the place of a table", "SHOW_REF": "SHOW or DESCRIBE"}
_PAIRS = "CROSS_PRODUCT NESTED_LOOP_JOIN BLOCKWISE_NL_JOIN PIECEWISE_MERGE_JOIN IE_JOIN ASOF_JOIN"
_PAIRING = frozenset(_PAIRS.split())

Sql = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_PROSE)]


@tool(needs=EXTRA)
def duckdb_query(hand: Hand, statement: Sql) -> Json:
    """Analyse the company's data with one SELECT (DuckDB): medians, quantiles, correlations, windows, dates.

    At most 50 rows come back, sorted by value where the statement does not say ORDER BY. sql_tables says which tables there are; `mails`
    has those of your own mailbox: id, sender, recipients, subject, sent. Dates are texts: CAST(finished AS DATE).
    """
    import duckdb

    try:
        with contextlib.closing(duckdb.connect(":memory:")) as db:
            db.execute(_SETTINGS)
            db.execute(f"SET TimeZone = '{ZONE}'")
            tree = _parsed(db, statement)
            _fill(db, hand, sorted(_Checked(tree, _tables(hand), _own(db)).tables))
            db.execute("SET lock_configuration = true")
            with ended_after(MOST_SECONDS, db.interrupt):
                return _found(db, statement, ordered=_is_ordered(tree))
    except duckdb.InterruptException:
        raise ToolRefused(f"DuckDB: the statement takes more than {MOST_SECONDS:g} seconds; narrow it") from None
    except duckdb.OutOfMemoryException:
        raise ToolRefused(f"DuckDB: the statement takes more than {MOST_MEMORY} of memory; narrow it") from None
    except OverflowError:
        raise ToolRefused("DuckDB: a value found is too large to be shown; cast it, or narrow it") from None
    except duckdb.Error as error:
        raise ToolRefused(f"DuckDB: {_first_line(error)}") from None


# ---------------------------------------------------------------- what may be asked
def _parsed(db: duckdb.DuckDBPyConnection, statement: str) -> Json:
    """The statement as a tree, as DuckDB serializes it; raises ToolRefused where it is not one SELECT."""
    ((text,),) = db.execute("SELECT json_serialize_sql(?::VARCHAR)", [statement]).fetchall()
    found = json.loads(text)
    if found["error"]:
        why = found.get("error_message", "")
        raise ToolRefused("DuckDB: only SELECT is allowed" if "Only SELECT" in why else f"DuckDB: {_first_line(why)}")
    if len(found["statements"]) != 1:
        raise ToolRefused("DuckDB: one statement a call")
    return found["statements"][0]["node"]


class _Checked:
    """A statement's tree in which all is allowed; `tables` are those that it names.  Raises ToolRefused for the first thing that is not."""

    def __init__(self, tree: Json, known: frozenset[str], own: frozenset[str]) -> None:
        """`known` are the tables of the company, `own` those that DuckDB has itself, of which none is shown."""
        self.tables: set[str] = set()
        self._known = known
        self._made = {entry["key"].casefold() for entry in _found_in(tree, "cte_map") for entry in entry["map"]}
        if taken := sorted(self._made & own):  # where the name is not that of the WITH, DuckDB would show its own
            raise ToolRefused(f"DuckDB: {taken[0]!r} is a name of its own; call what follows WITH otherwise")
        self._check(tree)

    def _check(self, part: Json) -> None:
        if isinstance(part, list):
            for one in part:
                self._check(one)
        if isinstance(part, dict):
            if why := self._refused(part):
                raise ToolRefused(f"DuckDB: {why}")
            for one in part.values():
                self._check(one)

    def _refused(self, part: Mapping[str, Json]) -> str:
        kind = part.get("type")
        if part.get("sample") is not None:
            return "a sample is drawn by chance, which is not allowed"
        if "class" in part:
            if part["class"] not in _EXPRESSIONS:
                return f"{str(part['class']).lower().replace('_', ' ')} is not allowed here"
        elif isinstance(kind, str) and kind.isupper() and kind not in _CLAUSES and not kind.endswith("_TYPE_INFO"):
            return f"{_SAID.get(kind, kind.lower().replace('_', ' '))} is not allowed"
        # Some DuckDBs write EXTRACT's function with the schema in which all of them are: the name decides.
        if "function_name" in part and str(part["function_name"]).casefold() not in _FUNCTIONS:
            return f"the function {part['function_name']}() is not allowed"
        if part.get("class") == "COLUMN_REF" and str(part["column_names"][-1]).casefold() in _NOT_COLUMNS:
            return f"{part['column_names'][-1]} is not allowed: there is no clock and no user here; dates are in the tables"
        named = part.get("type_name", (part.get("cast_type") or {}).get("id"))  # as newer and as older DuckDBs write a cast
        if named is not None and (str(named).casefold() not in _TYPES or part.get("schema") or part.get("catalog")):
            return f"the type {named} is not allowed"
        return self._table(part) if kind == "BASE_TABLE" else ""

    def _table(self, part: Mapping[str, Json]) -> str:
        name = str(part["table_name"]).casefold()
        if part.get("schema_name") or part.get("catalog_name") or part.get("at_clause"):
            return f"the table {name!r} is named with a schema or a time, and there are none"
        if name in self._known:
            self.tables.add(name)
            return ""
        return "" if name in self._made else f"there is no table {name!r}; there are {', '.join(sorted(self._known))}"


def _found_in(part: Json, key: str) -> Iterator[Json]:
    """All values of a key, however deep."""
    if isinstance(part, dict):
        if key in part:
            yield part[key]
        for one in part.values():
            yield from _found_in(one, key)
    elif isinstance(part, list):
        for one in part:
            yield from _found_in(one, key)


def _is_ordered(tree: Mapping[str, Json]) -> bool:
    return any(modifier.get("type") == "ORDER_MODIFIER" for modifier in tree.get("modifiers", ()))


# ---------------------------------------------------------------- over what
def _tables(hand: Hand) -> frozenset[str]:
    """The tables that the caller may see: those that SQL shows, and the own mails without their texts."""
    names = (name.casefold() for (name,) in hand.rows("SELECT name FROM sqlite_master WHERE type = 'table'"))
    return frozenset(name for name in names if name not in PRIVATE and not name.startswith("sqlite_")) | {MAILS}


def _fill(db: duckdb.DuckDBPyConnection, hand: Hand, tables: Sequence[str]) -> None:
    """Copy these tables, each sorted by its values, so that nothing depends on when its rows were written."""
    left = MOST_READ
    for name in tables:
        columns, rows = _own_mails(hand, left) if name == MAILS else _rows_of(hand, name, left)
        left -= len(rows)
        if left < 0:
            raise ToolRefused(f"DuckDB: these tables have more than {MOST_READ:,} rows; name fewer")
        values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
        kinds = [_kind(column) for column in values]
        wanted = ", ".join(f"{quoted(column)} {kind}" for column, kind in zip(columns, kinds, strict=True))
        db.execute(f"CREATE TABLE {quoted(name)} ({wanted})")
        if rows:
            cast = [[_as(value, kind) for value in column] for column, kind in zip(values, kinds, strict=True)]
            db.execute(f"INSERT INTO {quoted(name)} SELECT {', '.join(f'unnest(?::{kind}[])' for kind in kinds)}", cast)


def _rows_of(hand: Hand, name: str, most: int) -> tuple[list[str], list[tuple[Json, ...]]]:
    # Without what the table computes by itself, which nothing bounds.
    columns = [str(column[1]) for column in hand.rows(f"PRAGMA table_info({quoted(name)})")]
    listed, order = ", ".join(map(quoted, columns)), ", ".join(str(place) for place in range(1, len(columns) + 1))
    return columns, hand.rows(f"SELECT {listed} FROM {quoted(name)} ORDER BY {order} LIMIT ?", most + 1)


def _own(db: duckdb.DuckDBPyConnection) -> frozenset[str]:
    """The names of DuckDB's own tables and views, which tell of settings and of the machine."""
    seen = "schema_name <> 'information_schema'"  # which is seen under its name only
    query = f"SELECT view_name FROM duckdb_views() WHERE {seen} UNION SELECT table_name FROM duckdb_tables() WHERE {seen}"
    return frozenset(str(name).casefold() for (name,) in db.execute(query).fetchall())


def _own_mails(hand: Hand, most: int) -> tuple[list[str], list[tuple[Json, ...]]]:
    mine = "sender = ? OR id IN (SELECT mail FROM mailboxes WHERE box = ?)"
    query = f"SELECT id, sender, recipients, subject, sent FROM mails WHERE {mine} ORDER BY id LIMIT ?"
    return ["id", "sender", "recipients", "subject", "sent"], hand.rows(query, hand.me.id, hand.me.id, most + 1)


def _kind(values: Sequence[Json]) -> str:
    """The type of a column by what is in it: SQLite keeps any value in any column."""
    kinds = {type(value) for value in values if value is not None}
    if kinds and kinds <= {int}:
        return "BIGINT"
    return "DOUBLE" if kinds and kinds <= {int, float} else "VARCHAR"


def _as(value: Json, kind: str) -> Json:
    if value is None or kind == "BIGINT":
        return value
    if kind == "DOUBLE":
        return float(value)
    return f"({len(value)} bytes)" if isinstance(value, bytes) else str(value)


# ---------------------------------------------------------------- what is found
def _found(db: duckdb.DuckDBPyConnection, statement: str, *, ordered: bool) -> Json:
    plain = statement.rstrip("; \t\r\n")
    columns = [str(row[0]) for row in db.execute(f"DESCRIBE {plain}").fetchall()]
    named = ", ".join(f"c{number}" for number in range(len(columns)))
    asked = plain if ordered else f"SELECT * FROM (\n{plain}\n) AS found({named}) ORDER BY ALL"
    looked_at = _looked_at(db, asked)
    if looked_at > MOST_LOOKED_AT:
        raise ToolRefused(f"DuckDB: the statement looks at about {looked_at:,} rows, at most {MOST_LOOKED_AT:,} are possible; narrow it")
    rows = db.execute(asked).fetchmany(MOST_ROWS + 1)
    return {"columns": columns, "rows": [[_said(value) for value in row] for row in rows[:MOST_ROWS]], "more": len(rows) > MOST_ROWS}


def _looked_at(db: duckdb.DuckDBPyConnection, statement: str) -> int:
    """How many rows the steps of a plan give altogether: DuckDB's estimate, and every pair where a step compares each with each."""
    ((_, plan),) = db.execute(f"EXPLAIN (FORMAT json) {statement}").fetchall()
    total = 0

    def rows(step: Mapping[str, Json]) -> int:
        nonlocal total
        below = [rows(one) for one in step.get("children", ())]
        said = str(step.get("extra_info", {}).get("Estimated Cardinality", "")).strip("~ ")
        found = int(said) if said.isdecimal() else max(below, default=1)
        if str(step.get("name", "")).strip() in _PAIRING and len(below) == 2:
            pairs = max(1, below[0]) * max(1, below[1])
            total += pairs
            found = max(found, pairs if step["name"].strip() == "CROSS_PRODUCT" else 0)
        total += found
        return found

    for step in json.loads(plan):
        rows(step)
    return total


def _said(value: Json) -> Json:
    """A value of DuckDB's as JSON."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, decimal.Decimal):
        return _cell(float(value))
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return str(value)
    if isinstance(value, int | float | str | bytes):
        return _cell(value if not isinstance(value, int) or abs(value) < 2**63 else float(value))
    return _cell(str(value))


def _first_line(error: object) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300]
