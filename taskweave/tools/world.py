"""What do an organization's tools act on?  One SQLite database and the files that it leaves under a run's artifacts.

Entry points: `World.call` (what one call finds, and what it would change) and `World.land` (it becomes true, at a week's close).
A call sees what has landed, and the effects it is given: it is a function of these alone.  An effect is the call itself: landing performs
it again, in order of site, once a key.  Refuses to know whose week it is, and which tools there are.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.files import write_below
from taskweave.tools.hand import Hand, Person
from taskweave.tools.tool import Tool

MOST_PAGES = 16_384  # of 4 KiB: a database of 64 MiB
DATABASE = "company.db"
_SCHEMA = """
CREATE TABLE people (id TEXT PRIMARY KEY, name TEXT, role TEXT, department TEXT, email TEXT);
CREATE TABLE readings (week INTEGER, kpi TEXT, value REAL, PRIMARY KEY (week, kpi));
CREATE TABLE deliverables (id TEXT PRIMARY KEY, title TEXT, artifact TEXT, author TEXT, finished TEXT);
CREATE TABLE landed (key TEXT PRIMARY KEY, week INTEGER, tool TEXT, actor TEXT);
"""

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
    """The world of one run.  `folder` is where its files go (None: nowhere); it is rebuilt by landing the same effects again."""

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
        self._people = {person.id: person for person in people}
        # No statement is kept: one prepared for the world itself must not serve a caller who may see less.
        self._db = sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)
        self._db.execute(f"PRAGMA max_page_count = {MOST_PAGES}")
        self._db.execute("PRAGMA temp_store = MEMORY")
        for schema in (_SCHEMA, *schemas):
            self._db.executescript(schema)
        self.meet(tuple(self._people.values()))

    def meet(self, people: Iterable[Person]) -> None:
        """Between two weeks: these work here, beside those who did; who was known is known as he or she is now."""
        met = {person.id: person for person in people}
        self._people |= met
        rows = [(p.id, p.name, p.role, p.department, p.email) for p in met.values()]
        self._db.executemany("INSERT OR REPLACE INTO people VALUES (?, ?, ?, ?, ?)", rows)

    def close(self) -> None:
        self._db.close()

    def knows(self, person: str) -> bool:
        """Whether it is one of the people of the world."""
        return person in self._people

    def admit(self, person: Person) -> None:
        """Let somebody look who is not one of the organization: no table has them."""
        self._people[person.id] = person

    def name_of(self, person: str) -> str:
        """The name of who has this id, else the id."""
        return self._people[person].name if person in self._people else person

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
    ) -> Called:
        """What the call finds in the world as it stands, with the effects `after` which it comes added; nothing stays changed.

        A refusal is a `Called` that is not ok: no tool ends a run.
        """
        with self._undone():
            self._add([effect for effect in after if not self._has_landed(effect.key)])
            effect = Effect(key=key, tool=tool.name, arguments=dict(arguments), actor=actor, moment=moment, seen={})
            try:
                effect = Effect(**{**asdict(effect), "arguments": tool.checked(arguments)})
                said, hand = self._perform(effect)
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
        self._db.executemany("INSERT OR REPLACE INTO readings VALUES (?, ?, ?)", readings)
        self._db.executemany("INSERT OR REPLACE INTO deliverables VALUES (?, ?, ?, ?, ?)", deliverables)
        landings: list[Landing] = []
        touched: dict[tuple[str, str], None] = {}
        for effect in sorted(effects, key=lambda effect: effect.key):
            if self._has_landed(effect.key):
                continue
            landed = True
            try:
                _, hand = self._perform(effect)
                conflicts = tuple(hand.conflicts)
                touched |= dict.fromkeys(hand.touched)
            except ToolRefused as refused:
                landed, conflicts = False, (str(refused),)
            self._db.execute("INSERT INTO landed VALUES (?, ?, ?, ?)", (effect.key, week, effect.tool, effect.actor))
            landings.append(Landing(effect=effect, landed=landed, conflicts=conflicts))
        if self._folder is not None and self._db.total_changes != before:
            for kind, name in touched:
                for path, data in self._renders[kind](self._db, name):
                    write_below(self._folder, path, data)
            write_below(self._folder, DATABASE, self.database())
        return landings

    def database(self) -> bytes:
        """The database as a file: what it holds decides its bytes."""
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            self._db.backup(copy)
            copy.execute("VACUUM")
            return copy.serialize()

    # ------------------------------------------------------------ inside
    def _add(self, effects: Sequence[Effect]) -> None:
        """Perform effects inside what will be undone.  One that is refused says so itself, when it lands."""
        added: list[Effect] = []
        for effect in effects:
            try:
                self._perform(effect)
            except ToolRefused:
                if not self._db.in_transaction:  # SQLite has ended it (INSERT OR ROLLBACK, an interrupted UPDATE): what stood there is gone
                    self._db.execute("BEGIN")
                    self._add(added)
            else:
                added.append(effect)

    def _has_landed(self, key: str) -> bool:
        return self._db.execute("SELECT 1 FROM landed WHERE key = ?", (key,)).fetchone() is not None

    def _perform(self, effect: Effect) -> tuple[Json, Hand]:
        """Do what the effect says; on a refusal nothing of it stays."""
        tool = self._tools.get(effect.tool)
        if tool is None:
            raise ToolRefused(f"there is no tool {effect.tool!r}; there are {', '.join(sorted(self._tools))}")
        if effect.actor not in self._people:
            raise ToolRefused(f"nobody here is called {effect.actor!r}")
        hand = Hand(
            db=self._db,
            me=self._people[effect.actor],
            people=self._people,
            moment=effect.moment,
            key=effect.key,
            domain=self._domain,
            expected=effect.seen,
        )
        self._db.execute("SAVEPOINT call")
        done = False
        try:
            said = tool(hand, effect.arguments)
            done = True
        except sqlite3.Error as error:
            raise ToolRefused(f"{effect.tool}: {error}") from None
        finally:
            if self._db.in_transaction:
                if not done:
                    self._db.execute("ROLLBACK TO call")
                self._db.execute("RELEASE call")
        return said, hand

    @contextlib.contextmanager
    def _undone(self) -> Iterator[None]:
        self._db.execute("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
