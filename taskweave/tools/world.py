"""What do an organization's tools act on?  One SQLite database and the files that it leaves under a run's artifacts.

Entry points: `World.call` (what one call finds, and what it would change) and `World.land` (it becomes true, at a week's close).
A call sees what has landed, and the effects it is given: it is a function of these alone.  An effect is the call itself: landing performs
it again, in order of site, once a key.  Refuses to know whose week it is, and which tools there are.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from taskweave.errors import BadInput, ToolRefused
from taskweave.records import Json
from taskweave.tools.files import remove_below, write_below
from taskweave.tools.hand import Hand, Person
from taskweave.tools.staff import Staff
from taskweave.tools.tool import Tool

MOST_PAGES = 16_384  # of 4 KiB: tools make a database of 64 MiB at the most
NO_BOUND = 2**31 - 2  # pages, SQLite's own bound
MOST_FILE = 2 * 2**20  # bytes of one file
MOST_FILES, MOST_BYTES = 20_000, 256 * 2**20  # of a run: beyond, nothing more is written
DATABASE = "company.db"
_SCHEMA = """
CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT, role TEXT, department TEXT, email TEXT, since TEXT, until TEXT);
CREATE TABLE readings (week INTEGER, kpi TEXT, value REAL, PRIMARY KEY (week, kpi));
CREATE TABLE deliverables (id TEXT PRIMARY KEY, title TEXT, artifact TEXT, author TEXT, finished TEXT);
CREATE TABLE landed (key TEXT PRIMARY KEY, week INTEGER, tool TEXT, actor TEXT);
CREATE TABLE artifact_files (path TEXT PRIMARY KEY, kind TEXT, name TEXT, bytes INTEGER);
CREATE INDEX artifact_files_of ON artifact_files (kind, name);
"""

_OWNER = "SELECT kind, name FROM artifact_files WHERE path = ?"

Render = Callable[[sqlite3.Connection, str], Iterable[tuple[str, bytes]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Effect:
    """A call that changes the world: `key` names it once and for all, `seen` the revision of each thing that it was based on."""

    key: str
    tool: str
    arguments: Mapping[str, Json]
    actor: str
    moment: str
    seen: Mapping[str, int]

    def as_json(self) -> dict[str, Json]:
        """As it is journaled."""
        return asdict(self)

    @staticmethod
    def read(value: Mapping[str, Json]) -> Effect:
        """Of what `as_json` gave."""
        return Effect(**value)


@dataclass(frozen=True, kw_only=True, slots=True)
class Called:
    """What came of a call: what it `said` (JSON), or why it was refused; and the effect that is to land, if it has one."""

    ok: bool
    said: Json
    effect: Effect | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Landing:
    """How an effect became true: `conflicts` say what had changed since it was planned; not `landed`: nothing came of it."""

    effect: Effect
    landed: bool
    conflicts: tuple[str, ...] = ()


class World:
    """The world of one run.  `folder` is where its files go (None: nowhere); it is rebuilt by landing the same effects again.

    `unwritten` says, by path, why a file of it could not be written where it belongs; it is tried again whenever a week lands.
    """

    def __init__(
        self,
        *,
        tools: Mapping[str, Tool],
        schemas: Iterable[str],
        renders: Mapping[str, Render],
        people: Iterable[Person],
        domain: str,
        folder: Path | None,
    ) -> None:
        self._tools, self._renders, self._domain, self._folder = tools, renders, domain, folder
        self._staff = Staff(people)
        self.unwritten: dict[str, str] = {}
        # No statement is kept: one prepared for the world itself must not serve a caller who may see less.
        self._db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        self._db.execute("PRAGMA temp_store = MEMORY")
        for schema in (_SCHEMA, *schemas):
            self._db.executescript(schema)
        self._staff.enter(self._db, 0)

    def close(self) -> None:
        self._db.close()

    def admit(self, person: Person) -> None:
        """Let somebody look who is not one of the organization: no table has them, and nobody finds them."""
        self._staff.admit(person)

    def join(self, person: Person, week: int, since: date) -> None:
        """Somebody is one of the people from this day of this week on, or, if he or she was already, is so with what has changed.

        Calls of earlier moments see nothing of it, whenever they are made.
        """
        self._staff.join(person, week, since)

    def leave(self, person: str, week: int, since: date) -> None:
        """Whoever has this id is gone from this day on: can neither act nor be addressed; what was left behind stays."""
        self._staff.leave(person, week, since)

    def knows(self, person: str) -> bool:
        """Whether it is, was, or is to be one of the people of the world."""
        return self._staff.knows(person)

    def present(self, day: date) -> Collection[str]:
        """The ids of those who are there on this day."""
        return self._staff.present(day.isoformat())

    def name_of(self, person: str) -> str:
        """The name of who has this id, else the id."""
        return self._staff.name_of(person)

    def rows(self, sql: str, *values: Json) -> list[tuple[Json, ...]]:
        """What a trusted query finds in what has landed."""
        return self._db.execute(sql, values).fetchall()

    # ------------------------------------------------------------ what one call sees
    def call(
        self,
        tool: Tool,
        arguments: Mapping[str, Json],
        *,
        actor: str,
        moment: str,
        key: str,
        after: Sequence[Effect] = (),
        as_of: str = "",
    ) -> Called:
        """What the call finds in the world as it stands, with the effects `after` which it comes added; nothing stays changed.

        Of the people it sees those of the day `as_of`, up to which it is known who comes and goes; without one, of its moment's.
        A refusal is a `Called` that is not ok: no tool ends a run.
        """
        with self._undone():
            day = as_of or moment[:10]
            self._staff.look_in(self._db, day)
            self._add([effect for effect in after if not self._has_landed(effect.key)], day)
            effect = Effect(key=key, tool=tool.name, arguments=dict(arguments), actor=actor, moment=moment, seen={})
            try:
                effect = Effect(**{**asdict(effect), "arguments": tool.checked(arguments)})
                said, hand = self._perform(effect, day, bounded=True, tried=True)
            except ToolRefused as refused:
                return Called(ok=False, said=str(refused))
        effect = Effect(**{**asdict(effect), "seen": hand.seen})
        return Called(ok=True, said=said, effect=effect if tool.writes else None)

    # ------------------------------------------------------------ what becomes true
    def land(
        self, week: int, effects: Iterable[Effect], *, readings: Iterable[Sequence[Json]] = (), deliverables: Iterable[Sequence[Json]] = ()
    ) -> list[Landing]:
        """Perform the effects of a week in order of their keys, each at most once ever, and write the files of what they touched.

        `readings` are (week, figure, value), `deliverables` (id, title, artifact, author, finished): what the organization knows of itself.
        """
        before = self._db.total_changes
        self._staff.enter(self._db, week)
        self._db.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", readings)
        self._db.executemany("INSERT OR REPLACE INTO deliverables VALUES (?, ?, ?, ?, ?)", deliverables)
        landings: list[Landing] = []
        touched: dict[tuple[str, str], None] = {}
        for effect in sorted(effects, key=lambda effect: effect.key):
            if self._has_landed(effect.key):
                continue
            landed = True
            try:
                _, hand = self._perform(effect, effect.moment[:10], bounded=True)
                conflicts = tuple(hand.conflicts)
                touched |= dict.fromkeys(hand.touched)
            except ToolRefused as refused:
                landed, conflicts = False, (str(refused),)
            self._db.execute("INSERT INTO landed VALUES (?, ?, ?, ?)", (effect.key, week, effect.tool, effect.actor))
            landings.append(Landing(effect=effect, landed=landed, conflicts=conflicts))
        if self._db.total_changes != before or self.unwritten:
            self._keep_files(touched)
        return landings

    def database(self) -> bytes:
        """The database as a file: what it holds decides its bytes."""
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            self._db.backup(copy)
            copy.execute("VACUUM")
            return copy.serialize()

    # ------------------------------------------------------------ files
    def _keep_files(self, touched: Iterable[tuple[str, str]]) -> None:
        """Make the files of these things anew, and those that could not be written before; what a thing no longer has is removed."""
        again = [(kind, name) for path in self.unwritten for kind, name in self._db.execute(_OWNER, (path,))]
        self.unwritten.clear()
        for kind, name in dict.fromkeys([*again, *touched]):
            found = dict(self._renders[kind](self._db, name))
            for (path,) in self._db.execute(
                "SELECT path FROM artifact_files WHERE kind = ? AND name = ? ORDER BY path", (kind, name)
            ).fetchall():
                if path not in found:
                    self._db.execute("DELETE FROM artifact_files WHERE path = ?", (path,))
                    self._put(path, None)
            for path, data in found.items():
                self._db.execute("INSERT OR REPLACE INTO artifact_files VALUES (?, ?, ?, ?)", (path, kind, name, len(data)))
                self._put(path, data)
        if self._folder is not None:
            self._put(DATABASE, self.database())

    def _put(self, path: str, data: bytes | None) -> None:
        """Write a file, or remove it.  Where somebody has put something in its way nothing is written, which is said and ends nothing.

        What lies on a disk decides nothing in the world: a run is the same with and without it.
        """
        if self._folder is None:
            return
        try:
            if data is None:
                remove_below(self._folder, path)
            else:
                write_below(self._folder, path, data)
        except BadInput as refused:
            self.unwritten[path] = str(refused)

    def _check_room(self) -> None:
        """Raises ToolRefused where the run has as many files, or bytes in them, as it may have.  Counted is what has landed."""
        ((count, size),) = self._db.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM artifact_files")
        if count >= MOST_FILES or size >= MOST_BYTES:
            raise ToolRefused(
                f"there is no room: {count} files of {size // 2**20} MiB; a run keeps {MOST_FILES} and {MOST_BYTES // 2**20} MiB"
            )

    def _check_files(self, hand: Hand) -> None:
        """Raises ToolRefused where a file of what was touched would be too large."""
        for kind, name in dict.fromkeys(hand.touched):
            for path, data in self._renders[kind](self._db, name):
                if len(data) > MOST_FILE:
                    raise ToolRefused(f"{path} would hold {len(data):,} bytes; a file holds {MOST_FILE:,} at the most. Begin another one")

    # ------------------------------------------------------------ inside
    def _add(self, effects: Sequence[Effect], day: str) -> None:
        """Perform effects inside what will be undone.  One that is refused says so itself, when it lands."""
        added: list[Effect] = []
        for effect in effects:
            try:
                self._perform(effect, min(day, effect.moment[:10]))
            except ToolRefused:
                if not self._db.in_transaction:  # SQLite has ended it (INSERT OR ROLLBACK, an interrupted UPDATE): what stood there is gone
                    self._db.execute("BEGIN")
                    self._add(added, day)
            else:
                added.append(effect)

    def _has_landed(self, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM landed WHERE key = ?", (key,)).fetchone() is not None

    def _perform(self, effect: Effect, day: str, *, bounded: bool = False, tried: bool = False) -> tuple[Json, Hand]:
        """Do what the effect says among the people of a day; where it is `bounded`, within the bounds of a run's files.

        On a refusal nothing of it stays.  `tried`: see Hand.
        """
        tool = self._tools.get(effect.tool)
        if tool is None:
            raise ToolRefused(f"there is no tool {effect.tool!r}; there are {', '.join(sorted(self._tools))}")
        me = self._staff.who(effect.actor, day)
        if me is None:
            raise ToolRefused(f"nobody here is called {effect.actor!r}")
        if bounded and tool.writes:
            self._check_room()
        hand = Hand(
            db=self._db,
            me=me,
            people=self._staff.present(day),
            moment=effect.moment,
            key=effect.key,
            domain=self._domain,
            tried=tried,
            expected=effect.seen,
        )
        # What the world notes itself always finds room: a week lands however full tools have made the database.
        self._db.execute(f"PRAGMA max_page_count = {MOST_PAGES}")
        self._db.execute("SAVEPOINT call")
        done = False
        try:
            said = tool(hand, effect.arguments)
            if bounded:
                self._check_files(hand)
            done = True
        except (sqlite3.Error, ValueError, ArithmeticError) as error:  # also what a document's library will not take
            raise ToolRefused(f"{effect.tool}: {error}") from None
        finally:
            if self._db.in_transaction:
                if not done:
                    self._db.execute("ROLLBACK TO call")
                self._db.execute("RELEASE call")
            self._db.execute(f"PRAGMA max_page_count = {NO_BOUND}")
        return said, hand

    @contextlib.contextmanager
    def _undone(self) -> Iterator[None]:
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
