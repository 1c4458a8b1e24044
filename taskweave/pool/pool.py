"""ℝ: what has the organization produced so far?  Entry points: `Pool.create`, `Pool.open`, `week_digest`.

run.db is derived: written week by week as weeks are sealed, deletable, rebuilt by re-execution.  The pool answers questions;
it hands out no sessions and no SQL.  It refuses to know the journal, backbones and the organization file.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from json import JSONDecodeError
from pathlib import Path
from types import TracebackType
from typing import Self

from taskweave.errors import BadInput, EngineFault
from taskweave.pool import files
from taskweave.pool.search import CREATE, Index, Query
from taskweave.pool.tables import LAYOUTS, TABLES, TOLD, UNDIGESTED, Layout, Row, storable, table_named
from taskweave.pool.trace import BREADTH, DEPTH, Trace, trace
from taskweave.records import Dependency, Json, canonical

_CUT = " […]"
# Follows from all that is declared, types and indexes too, so that nobody can forget to raise it.
_VERSION = zlib.crc32(f"{CREATE}\n{TOLD.read_text(encoding='utf-8')}".encode()) & 0x7FFFFFFF

_DEPENDENCY = """
    SELECT results.id, results.title, results.artifact, results.content, results.agent, agents.role, agents.name
    FROM results LEFT JOIN agents ON agents.id = results.agent WHERE results.id = ?
"""
_DOCUMENT = ("id", "task", "title", "content", "kind", "role", "department", "goals")
_DOCUMENTS = """
    SELECT results.id, results.task, results.title, results.content, results.artifact, agents.role, agents.department, tasks.goals
    FROM results LEFT JOIN agents ON agents.id = results.agent LEFT JOIN tasks ON tasks.id = results.task WHERE results.id = ?
"""


class Pool:
    """The results and everything that explains them, up to the last week written."""

    def __init__(self, path: Path, raw: sqlite3.Connection, *, writable: bool) -> None:
        """For `create` and `open`; use those."""
        self.path = path
        self._writable = writable
        self._file = path.stat()
        self._building: Path | None = None  # where it is built while `path` still holds what it will replace
        self._awaited: frozenset[int] = frozenset()  # the weeks that are there
        self._raw = raw
        self._titles: dict[str, dict[str, str]] | None = None  # agent -> result -> title
        self._index: Index
        self.writes = 0  # weeks written since it was opened: what was read before is stale when this has grown

    # ------------------------------------------------------------ opening
    @classmethod
    def create(cls, path: Path) -> Pool:
        """An empty run.db.

        One that is there already and holds weeks stays, for those who read it, until the new one holds them too; closed before that,
        the new one is thrown away.
        """
        if path.is_dir():
            raise files.a_folder(path)
        awaited, beside = files.settled_weeks(path), files.building(path)
        try:
            files.remove(beside)  # what a killed process left
        except OSError as error:
            raise files.unwritable(beside, error) from error
        place = beside if awaited else path
        raw = files.create(place)
        try:
            pool = cls(place, raw, writable=True)
            made = [statement for table in LAYOUTS.values() for statement in table.create]
            raw.executescript(";\n".join([*made, CREATE, "CREATE TABLE weeks (week INTEGER PRIMARY KEY, digest TEXT NOT NULL);"]))
            files.stamp(raw, _VERSION)
        except sqlite3.OperationalError as error:
            raw.close()
            raise files.unwritable(place, error) from error
        pool.path, pool._building, pool._awaited = path, beside if awaited else None, awaited
        pool._index = Index(raw)
        return pool

    @classmethod
    def open(cls, path: Path) -> Pool:
        """Read-only: a finished run (its folder may be read-only too) or one that is being written.

        Raises BadInput where there is no run.db, or none that this version can read.
        """
        before = path.stat() if path.exists() else None
        pool = cls(path, files.open_read_only(path, _VERSION), writable=False)
        pool._file = before or pool._file
        try:
            pool._index = Index(pool._raw)
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            pool.close()
            raise files.damaged(path, error) from error
        return pool

    def close(self) -> None:
        self._raw.close()
        if self._building is not None:
            with suppress(OSError):
                files.remove(self._building)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def finish(self) -> None:
        """Leave WAL, so that the file can be copied alone and opened in a read-only folder.  The pool stays open."""
        if self._building is not None:
            self._put_in_place(self._building)
        files.leave_wal(self._raw)

    def _put_in_place(self, built: Path) -> None:
        """Let what was built beside an older run.db take its place."""
        files.leave_wal(self._raw)
        self._raw.close()
        self._raw = files.put_in_place(built, self.path)
        self._building, self._index = None, Index(self._raw)

    # ------------------------------------------------------------ writing
    def write_week(self, week: int, digest: str, rows: Sequence[Row]) -> None:
        """Write what a sealed week booked, in one transaction; of two rows with one primary key the last wins.

        Merged results are indexed for search.  Raises EngineFault for an unknown table or column, or a value that is missing;
        DiskFull where there is no room.
        """
        by_table: dict[str, list[dict[str, Json]]] = defaultdict(list)
        for table, values in rows:
            if table not in LAYOUTS:
                raise EngineFault(f"there is no table {table!r}; tables: {', '.join(TABLES)}")
            by_table[table].append(values)
        full = {table: layout.completed(by_table[table]) for table, layout in LAYOUTS.items() if table in by_table}
        with self._transaction():
            for table, complete in full.items():
                self._insert(LAYOUTS[table], complete)
            results = full.get("results", [])
            self._index.add(week, self._documents([row["id"] for row in results if row["subtask"] is None]))
            self._raw.execute("INSERT OR REPLACE INTO weeks VALUES (?, ?)", (week, digest))
        self._remember_titles(results)
        self.writes += 1
        if self._building is not None and self._awaited <= self.weeks().keys():
            self._put_in_place(self._building)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if not self._writable:
            raise EngineFault(f"{self.path} is open read-only: only the run that creates it writes it")
        try:
            self._raw.execute("BEGIN IMMEDIATE")
            yield
            self._raw.execute("COMMIT")
        except BaseException as error:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError) and (full := files.disk_full(self.path, error)) is not None:
                raise full from error
            raise

    def _insert(self, table: Layout, rows: Sequence[Mapping[str, Json]]) -> None:
        stored = table.stored(rows)
        try:
            self._raw.executemany(table.upsert, stored)
        except UnicodeEncodeError:
            self._raw.executemany(table.upsert, [[storable(v) if isinstance(v, str) else v for v in values] for values in stored])
        except sqlite3.IntegrityError as error:
            raise EngineFault(f"a row of table {table.name!r} cannot be stored: {error}") from error

    def _documents(self, ids: Sequence[str]) -> list[dict[str, Json]]:
        """What is indexed of results, each once."""
        found = [self._raw.execute(_DOCUMENTS, (identifier,)).fetchone() for identifier in dict.fromkeys(map(storable, ids))]
        return [{**dict(zip(_DOCUMENT, row, strict=True)), "goals": json.loads(row[-1] or "[]") or []} for row in found]

    # ------------------------------------------------------------ questions
    def search(self, query: Query, k: int = 3) -> list[str]:
        """Ids of at most `k` merged results of written weeks that fit the query, best first.

        Any text is legal; an empty one finds nothing.
        """
        return self._index.search(query, k)

    def dependencies(self, ids: Sequence[str], tokens_each: int) -> list[Dependency]:
        """The results as an execution sees them, in the order given, each excerpt at most `tokens_each` tokens (4 UTF-8 bytes each).

        Raises EngineFault for an id that no written week holds.
        """
        found: dict[str, Dependency] = {}
        for identifier in ids:
            row = self._raw.execute(_DEPENDENCY, (identifier,)).fetchone()  # asked thousands of times: without building a statement
            if row is not None:
                id_, title, artifact, content, agent, role, name = row
                found[id_] = Dependency(
                    id=id_, title=title, role=role or agent, author=name or agent, artifact=artifact, excerpt=excerpt(content, tokens_each)
                )
        missing = [i for i in ids if i not in found]
        if missing:
            raise EngineFault(f"the pool holds no result {missing[0]!r}: it was not written by a sealed week")
        return [found[i] for i in ids]

    def titles_by_agent(self) -> dict[str, tuple[str, ...]]:
        """Titles of each agent's own results, of subtasks and merged ones, in the order of writing; agents without any are absent."""
        if self._titles is None:
            self._titles = {}
            for row in self._raw.execute("SELECT agent, id, title FROM results ORDER BY rowid"):
                self._titles.setdefault(row[0], {})[row[1]] = row[2]
        return {agent: tuple(titles.values()) for agent, titles in self._titles.items()}

    def _remember_titles(self, results: Sequence[Mapping[str, Json]]) -> None:
        if self._titles is not None:
            for row in results:
                self._titles.setdefault(row["agent"], {})[row["id"]] = row["title"]

    def rows(self, table: str, **where: Json) -> Iterator[dict[str, Json]]:
        """The rows of a table as dicts, columns in their declared order, sorted by primary key; `where` are equalities (None: is null).

        Raises BadInput for a table or column that is not there.
        """
        layout = table_named(table)
        unknown = sorted(where.keys() - set(layout.columns))
        if unknown:
            raise BadInput(f"Table {table!r} has no column {unknown[0]!r}. Columns: {', '.join(layout.columns)}")
        return self._stream(layout, where, _quoted(layout.primary_key))

    def written(self, table: str) -> Iterator[dict[str, Json]]:
        """The rows of a table in the order in which they were first written."""
        return self._stream(table_named(table), {}, "rowid")

    def _stream(self, table: Layout, where: Mapping[str, Json], order: str) -> Iterator[dict[str, Json]]:
        conditions = [table.compared(name, value) for name, value in where.items()]
        asked = f" WHERE {' AND '.join(condition for condition, _ in conditions)}" if conditions else ""
        query = f"SELECT {_quoted(table.columns)} FROM {table.name}{asked} ORDER BY {order}"
        try:
            for values in self._raw.execute(query, [value for _, given in conditions for value in given]):
                yield table.read(values)
        except (sqlite3.DatabaseError, UnicodeDecodeError, JSONDecodeError) as error:
            raise files.damaged(self.path, error) from error

    def one(self, table: str, key: Json) -> dict[str, Json] | None:
        """The row with that first primary-key value; of several (revisions) the last.  None where there is none."""
        found = list(self.rows(table, **{table_named(table).primary_key[0]: key}))
        return found[-1] if found else None

    def ids(self, table: str) -> list[str]:
        """The distinct first primary-key values of a table, sorted."""
        key = _quoted(table_named(table).primary_key[:1])
        return [identifier for (identifier,) in self._raw.execute(f"SELECT DISTINCT {key} FROM {table} ORDER BY {key}")]

    def trace(self, identifier: str, *, depth: int = DEPTH, breadth: int = BREADTH) -> Trace:
        """What a result, task, subtask, state or incident rests on and what rests on it, walked `depth` links, `breadth` wide.

        An unambiguous end of an id will do.  Raises BadInput, with the nearest ids, where there is none.
        """
        with self.snapshot():
            return trace(self, identifier, depth=depth, breadth=breadth)

    def weeks(self) -> dict[int, str]:
        """The weeks written, with their digests."""
        try:
            return dict(self._raw.execute("SELECT week, digest FROM weeks ORDER BY week").fetchall())
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            raise files.damaged(self.path, error) from error

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All questions asked inside see the same last week, also while the run goes on.

        Raises BadInput where the file turns out to be damaged, or another one has just taken its place.
        """
        outermost = not self._raw.in_transaction
        if outermost:
            self._raw.execute("BEGIN")
        try:
            if outermost and not self._writable:
                # Begins to read: a file that takes this one's place from now on is not seen.
                self._raw.execute("SELECT count(*) FROM weeks").fetchone()
                if not self._is_in_place():
                    raise BadInput(f"{self.path}: was rebuilt at this moment. Ask again")
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError, JSONDecodeError) as error:
            if self._writable:
                raise
            raise files.damaged(self.path, error) from error
        finally:
            if outermost:
                with suppress(sqlite3.DatabaseError):  # a damaged file: what happened inside says so
                    self._raw.execute("COMMIT")

    def _is_in_place(self) -> bool:
        try:
            now = self.path.stat()
        except OSError:
            return False
        return (now.st_dev, now.st_ino) == (self._file.st_dev, self._file.st_ino)

    def lines(self, table: str) -> Iterator[str]:
        """The rows of a table as canonical JSON: what the digest and the export are made of."""
        return map(table_named(table).line, self.rows(table))

    def digest(self) -> str:
        """What the run is, in 64 hex digits: equal runs have equal ones.

        sha256 over one line a row, UTF-8: the table's name, a tab, the row as JSON with sorted keys, without spaces, not escaped to ASCII,
        and a line feed.  Tables in the order of `TABLES` without `calls` (the only one with wall-clock time), rows sorted by primary key.
        These are the lines of the JSONL export.
        """
        state = hashlib.sha256()
        with self.snapshot():
            for table in TABLES:
                if table not in UNDIGESTED:
                    for line in self.lines(table):
                        state.update(f"{table}\t{line}\n".encode())
        return state.hexdigest()


def _quoted(columns: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def week_digest(previous: str, rows: Sequence[Row]) -> str:
    """A week's digest: sha256 over the previous week's and one line `table TAB canonical JSON` a row, in the order given, without `calls`.

    It chains, so two runs that agree on a week agree on all before it.
    """
    state = hashlib.sha256(f"{previous}\n".encode())
    for table, values in rows:
        if table not in UNDIGESTED:
            state.update(f"{table}\t{canonical(values)}\n".encode("utf-8", "surrogatepass"))
    return state.hexdigest()


def excerpt(text: str, tokens: int) -> str:
    """The beginning of a text, at most `tokens` tokens of 4 UTF-8 bytes.

    Cut at a sentence's end where one lies in the second half, else at a word's, and then marked " […]".
    """
    if len(text) <= tokens:  # however many bytes its characters take
        return text
    budget = 4 * tokens
    data = text.encode("utf-8", "replace")
    if len(data) <= budget:
        return text
    room = budget - len(_CUT.encode())
    if room <= 0:
        return ""
    head = data[:room].decode("utf-8", "ignore")
    sentence = max(head.rfind(end) for end in (". ", "! ", "? ", ".\n", "!\n", "?\n", "\n"))
    if sentence >= len(head) // 2:
        return head[: sentence + 1].rstrip() + _CUT
    word = max(head.rfind(" "), head.rfind("\n"))
    return (head[:word] if word > 0 else head).rstrip() + _CUT
