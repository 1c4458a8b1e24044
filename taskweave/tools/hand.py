"""Who calls a tool, and what of the world it holds: the database, the people, the moment, the key.

Entry point: `Hand`, which every tool gets as its first argument.  It refuses to know what tools there are, and when a call lands.
"""

from __future__ import annotations

import difflib
import hashlib
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from taskweave.errors import ToolRefused
from taskweave.records import Json


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    """One of the organization, as others address it."""

    id: str
    name: str
    role: str
    department: str
    email: str


@dataclass(kw_only=True)
class Hand:
    """The world in the hand of one caller: who acts (`me`), when (`moment`, simulated, "YYYY-MM-DD HH:MM") and under which key.

    `seen` are revisions found, `touched` the things whose files are to be made anew.  `tried` says that nothing rests on the call yet: it
    may be ended for what it takes of the machine, which is no reason later, when it is performed again.
    """

    db: sqlite3.Connection
    me: Person
    people: Mapping[str, Person]
    moment: str
    key: str
    domain: str
    tried: bool = False
    expected: Mapping[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    touched: list[tuple[str, str]] = field(default_factory=list)
    conflicts: list[str] = field(default_factory=list)

    def rows(self, sql: str, *values: Json) -> list[tuple[Json, ...]]:
        """What a trusted statement finds or changes."""
        return self.db.execute(sql, values).fetchall()

    def dicts(self, sql: str, *values: Json) -> list[dict[str, Json]]:
        """The same, each row by its columns' names."""
        found = self.db.execute(sql, values)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def number(self) -> str:
        """A short name for what this call makes: the same whenever and wherever it is performed."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:8]

    def based_on(self, kind: str, name: str, revision: int) -> None:
        """The call rests on this revision of a thing: if another one stands there when it lands, that is a conflict."""
        thing = f"{kind} {name}"
        self.seen[thing] = revision
        if thing in self.expected and self.expected[thing] != revision:
            self.conflicts.append(f"{thing} was at revision {self.expected[thing]} when this was decided and is at {revision}")

    def touch(self, kind: str, name: str) -> None:
        """The files of this thing are to be made anew when the call has landed."""
        self.touched.append((kind, name))

    def person(self, named: str) -> Person:
        """Who is meant by an id, a name, a role that one person has, or an address; raises ToolRefused with the nearest."""
        wanted = named.strip().casefold()
        for attribute in ("id", "email", "name", "role"):
            found = [person for person in self.people.values() if getattr(person, attribute).casefold() == wanted]
            if len(found) == 1:
                return found[0]
            if found:
                raise ToolRefused(f"{named!r} are several: {', '.join(person.id for person in found[:8])}. Name one")
        known = {name.casefold(): person.id for person in self.people.values() for name in (person.id, person.name, person.role)}
        near = difflib.get_close_matches(wanted, sorted(known), 1)
        hint = f"; did you mean {known[near[0]]!r}?" if near else f"; there are {', '.join(list(self.people)[:8])}"
        raise ToolRefused(f"nobody here is called {named!r}{hint}")

    def name_of(self, id: str) -> str:
        """The name of who has, or had, this id, else the id."""
        found = self.rows("SELECT name FROM people WHERE id = ?", id)
        return found[0][0] if found else id
