"""SQL on the company's own database: one statement a call, in bounds, without files, clocks or chance.

Entry points: `sql_query`, `sql_write`, `sql_tables`.  What others keep to themselves (mail) is not read, and what tools keep is changed
through those tools alone, so that nobody writes as somebody else.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Annotated

from pydantic import StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import MOST_PROSE, tool

MOST_ROWS, MOST_CELL = 50, 200  # rows of an answer, characters of a cell
STEPS_A_LOOK, MOST_LOOKS = 10_000, 300  # instructions of SQLite's machine: three million
MOST_MEMORY = 256  # MiB by which a statement may raise the process's peak
MOST_SECONDS = 30.0  # the last resort: a step may be long where texts are
MOST_VALUE = 65_536  # bytes of a text in a statement
PRIVATE = frozenset({"mails", "mailboxes", "documents", "landed", "artifact_files"})
_TOLD = """people readings deliverables pages page_revisions page_comments tickets ticket_notes ticket_labels ticket_links messages
    reactions events posts post_marks follows"""
KEPT = PRIVATE.union(_TOLD.split())  # a test holds this against the tables that there are
_MASTERS = frozenset({"sqlite_master", "sqlite_schema"})
_CLOCKS = ("date", "time", "datetime", "julianday", "strftime", "unixepoch")
_NOW = {"current_date": "date", "current_time": "time", "current_timestamp": "datetime"}
_ALLOWED = """abs avg ceil ceiling char coalesce count cume_dist dense_rank first_value floor format glob group_concat hex ifnull iif instr
    json json_array json_array_length json_extract json_group_array json_group_object json_object json_type json_valid lag last_value lead
    length like likely lower ltrim max min mod nth_value ntile nullif percent_rank printf quote rank replace round row_number rtrim sign
    sqrt substr substring sum total trim typeof unicode unlikely upper -> ->>"""
_FUNCTIONS = frozenset(_ALLOWED.split()).union(_CLOCKS, _NOW)
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE})
_ACTIONS = {
    getattr(sqlite3, name): name[7:].replace("_", " ") for name in dir(sqlite3) if name.startswith(("SQLITE_CREATE", "SQLITE_DROP"))
} | {
    sqlite3.SQLITE_ATTACH: "ATTACH (or VACUUM)",
    sqlite3.SQLITE_DETACH: "DETACH",
    sqlite3.SQLITE_PRAGMA: "PRAGMA",
    sqlite3.SQLITE_TRANSACTION: "a transaction of one's own",
    sqlite3.SQLITE_SAVEPOINT: "a savepoint",
    sqlite3.SQLITE_ALTER_TABLE: "ALTER TABLE",
    sqlite3.SQLITE_REINDEX: "REINDEX",
    sqlite3.SQLITE_ANALYZE: "ANALYZE",
    sqlite3.SQLITE_INSERT: "INSERT",
    sqlite3.SQLITE_UPDATE: "UPDATE",
    sqlite3.SQLITE_DELETE: "DELETE",
}
_MAKES = frozenset({sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_INDEX})
_CHANGES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})

Sql = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_PROSE)]


class _Guard:
    """What SQLite asks while it prepares and runs one statement; `why` is the first thing that was refused."""

    def __init__(self, *, writing: bool, moment: str, tried: bool) -> None:
        self._writing, self._moment, self._looks, self.why = writing, moment, 0, ""
        self._peak = _peak_memory() if tried else None

    def authorize(self, action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None) -> int:
        """SQLITE_OK or SQLITE_DENY for one action of the statement (sqlite3_set_authorizer)."""
        refused = self._refused(action, (first or "").casefold(), second or "")
        if refused and not self.why:
            self.why = refused
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    def _refused(self, action: int, table: str, second: str) -> str:
        if action in _READING:
            return ""
        if action == sqlite3.SQLITE_FUNCTION:
            return "" if second.casefold() in _FUNCTIONS else f"the function {second}() is not allowed"
        if action == sqlite3.SQLITE_READ:
            if table in PRIVATE:
                return f"the table {table!r} is private"
            inner = table.startswith(("sqlite_", "pragma_", "dbstat", "bytecode", "tables_used")) and table not in _MASTERS
            return f"the table {table!r} is not the organization's" if inner else ""
        said = _ACTIONS.get(action, "this kind of statement")
        if not self._writing or action not in _CHANGES | _MAKES:
            return f"{said} is not allowed" + (", only SELECT is" if not self._writing else "")
        named = second.casefold() if action in (sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_DROP_INDEX) else table
        return f"the table {named!r} is kept by other tools and is not changed by SQL" if named in KEPT else ""

    def look(self) -> int:
        """Called every STEPS_A_LOOK instructions; anything but 0 ends the statement."""
        self._looks += 1
        if self._looks > MOST_LOOKS:
            self.why = self.why or f"the statement takes more than {STEPS_A_LOOK * MOST_LOOKS:,} steps; narrow it"
        elif self._peak is not None and _peak_memory() - self._peak > MOST_MEMORY:
            self.why = self.why or f"the statement takes more than {MOST_MEMORY} MiB of memory; narrow it"
        else:
            return 0
        return 1

    def clock(self, name: str, *given: Json) -> Json:
        """A date function of SQLite whose `now` is the simulated one, and which knows no time zone but its own."""
        # SQLite takes bytes for a text, and reads neither beyond a NUL.
        arguments = [bytes(a).decode("latin-1") if isinstance(a, bytes) else a for a in given]
        arguments = [a.partition("\0")[0] if isinstance(a, str) else a for a in arguments]
        place = 1 if name == "strftime" else 0
        if len(arguments) <= place:
            arguments.append("now")
        arguments = [self._moment if isinstance(a, str) and a.strip().casefold() == "now" else a for a in arguments]
        if any(isinstance(a, str) and a.strip().casefold() in ("localtime", "utc") for a in arguments):
            self.why = self.why or "'localtime' and 'utc' are not allowed: there is one time zone"
            return None
        with contextlib.closing(sqlite3.connect(":memory:")) as db:
            marks = ", ".join("?" * len(arguments))
            return db.execute(f"SELECT {name}({marks})", arguments).fetchone()[0]


@contextlib.contextmanager
def ended_after(seconds: float, end: Callable[[], None]) -> Iterator[None]:
    """`end` is called, by another thread, once this has taken so long."""
    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _peak_memory() -> float:
    """The process's peak in MiB; 0 where the platform does not say."""
    if sys.platform == "win32":
        return 0.0
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


@contextlib.contextmanager
def _guarded(db: sqlite3.Connection, guard: _Guard) -> Iterator[None]:
    """The connection under guard: limits, the simulated clock, the authorizer, the count of steps."""
    length = db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE)
    db.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 200)
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    for name in _CLOCKS:
        db.create_function(name, -1, partial(guard.clock, name))
    for name, means in _NOW.items():
        db.create_function(name, 0, partial(guard.clock, means, "now"))
    for name in ("random", "randomblob", "changes", "total_changes", "last_insert_rowid"):  # also where a table's DEFAULT calls them
        db.create_function(name, 1 if name == "randomblob" else 0, _by_chance)
    db.set_authorizer(guard.authorize)
    db.set_progress_handler(guard.look, STEPS_A_LOOK)
    try:
        yield
    finally:
        db.set_progress_handler(None, 0)
        db.set_authorizer(None)
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, length)


def _by_chance(*_: Json) -> Json:
    raise ValueError("no chance here")


def _run(hand: Hand, statement: str, *, writing: bool, then: Callable[[sqlite3.Cursor], Json]) -> Json:
    guard = _Guard(writing=writing, moment=hand.moment, tried=hand.tried)
    late = ended_after(MOST_SECONDS, partial(_end, hand.db, guard)) if hand.tried else contextlib.nullcontext()
    try:
        with _guarded(hand.db, guard), late:
            said = then(hand.db.execute(statement))
    except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError, MemoryError) as error:
        told = str(error)
        if "one statement" in told:
            told = "one statement a call"
        raise ToolRefused(f"SQL: {guard.why or told}") from None
    if guard.why:
        raise ToolRefused(f"SQL: {guard.why}")
    return said


def _end(db: sqlite3.Connection, guard: _Guard) -> None:
    guard.why = guard.why or f"the statement takes more than {MOST_SECONDS:g} seconds; narrow it"
    db.interrupt()


def _found(cursor: sqlite3.Cursor) -> Json:
    if cursor.description is None:
        raise ValueError("this is no query; give a SELECT")
    rows = cursor.fetchmany(MOST_ROWS + 1)
    columns = [column[0] for column in cursor.description]
    return {"columns": columns, "rows": [[_cell(value) for value in row] for row in rows[:MOST_ROWS]], "more": len(rows) > MOST_ROWS}


def quoted(name: str) -> str:
    """A table's or a column's name, as SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def _cell(value: Json) -> Json:
    if isinstance(value, bytes):
        return f"({len(value)} bytes)"
    if isinstance(value, float):
        return float(f"{value:.10g}") if abs(value) < float("inf") else str(value)
    return value[:MOST_CELL] + "…" if isinstance(value, str) and len(value) > MOST_CELL else value


@tool()
def sql_query(hand: Hand, statement: Sql) -> Json:
    """Ask the company database with one SELECT (SQLite).

    At most 50 rows come back. date('now') is the simulated date. sql_tables says which tables there are.
    """
    return _run(hand, statement, writing=False, then=_found)


@tool(writes=True)
def sql_write(hand: Hand, statement: Sql) -> Json:
    """Change the company database with one CREATE TABLE, INSERT, UPDATE, DELETE or DROP TABLE (SQLite).

    Tables that other tools keep are read only. What is written is true for all from the next week on.
    """
    return _run(hand, statement, writing=True, then=lambda cursor: {"rows_changed": max(cursor.rowcount, 0)})


@tool()
def sql_tables(hand: Hand) -> Json:
    """List the tables of the company database, with columns and numbers of rows.

    `own`: one may change it by SQL.
    """
    names = [n for (n,) in hand.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name") if n.casefold() not in PRIVATE]
    told = []
    for name in names[:MOST_ROWS]:
        columns = [column[1] for column in hand.rows(f"PRAGMA table_info({quoted(name)})")]
        ((count,),) = hand.rows(f"SELECT count(*) FROM {quoted(name)}")
        told.append({"table": name, "columns": columns, "rows": count, "own": name.casefold() not in KEPT})
    return {"tables": told, "more": len(names) > MOST_ROWS}
