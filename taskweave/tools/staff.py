"""Who is there, and since when?  Entry point: `Staff`: the people of a world, day by day.

Everything is asked with a day, so that a call of an earlier moment sees those of that moment, whenever it is made.  Refuses to know what
they do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import astuple
from datetime import date

from taskweave.tools.hand import Person


class Staff:
    """The people of a world: those of its beginning, and who has come and gone since.  Days are ISO dates."""

    def __init__(self, people: Iterable[Person]) -> None:
        # Of each: from which day on he or she is who; None from the day on which there is nobody of this id.
        self._spans: dict[str, list[tuple[str, Person | None]]] = {person.id: [("", person)] for person in people}
        self._waiting: list[tuple[int, str, str, Person | None]] = [(0, "", id, spans[0][1]) for id, spans in self._spans.items()]
        self._days: dict[str, Mapping[str, Person]] = {}
        self._guests: dict[str, Person] = {}

    def admit(self, person: Person) -> None:
        """Let somebody look who is not one of the organization: no table has them, and nobody finds them."""
        self._guests[person.id] = person

    def who(self, id: str, day: str) -> Person | None:
        """Who has this id on this day, a guest too."""
        return self.present(day).get(id) or self._guests.get(id)

    def join(self, person: Person, week: int, since: date) -> None:
        """From this day of this week on it is one of them, or the same with another role."""
        self._change(person.id, person, week, since.isoformat())

    def leave(self, id: str, week: int, since: date) -> None:
        """From this day of this week on it is none of them; one who is not known is not missed."""
        if id in self._spans:
            self._change(id, None, week, since.isoformat())

    def _change(self, id: str, person: Person | None, week: int, day: str) -> None:
        spans = self._spans.setdefault(id, [])
        spans.append((day, person))
        spans.sort(key=lambda span: span[0])  # stable: of one day the last said holds
        self._waiting.append((week, day, id, person))
        self._days.clear()

    def knows(self, id: str) -> bool:
        """Whether anybody has, had, or will have this id."""
        return id in self._spans

    def name_of(self, id: str) -> str:
        """The last known name of an id, else the id."""
        return next((person.name for _, person in reversed(self._spans.get(id, [])) if person is not None), id)

    def present(self, day: str) -> Mapping[str, Person]:
        """Those who are there on this day, by id, in the order in which they came."""
        if day not in self._days:
            now = {id: [person for since, person in spans if since <= day] for id, spans in self._spans.items()}
            self._days[day] = {id: spans[-1] for id, spans in now.items() if spans and spans[-1] is not None}
        return self._days[day]

    def look_in(self, db: sqlite3.Connection, day: str) -> None:
        """Write into the table `people` who came and went up to this day, where no week has landed since: to be undone."""
        _write(db, [one for one in self._waiting if one[1] <= day])

    def enter(self, db: sqlite3.Connection, week: int) -> None:
        """Write into the table `people` who came and went up to the end of this week."""
        _write(db, [one for one in self._waiting if one[0] <= week])
        self._waiting = [one for one in self._waiting if one[0] > week]


def _write(db: sqlite3.Connection, changes: Iterable[tuple[int, str, str, Person | None]]) -> None:
    for _, since, id, person in sorted(changes, key=lambda change: change[:2]):
        if person is None:
            db.execute("UPDATE people SET until = ? WHERE id = ?", (since, id))
        else:
            db.execute(_ENTER, (*astuple(person), since))


_ENTER = """INSERT INTO people (id, name, role, department, email, since, until) VALUES (?, ?, ?, ?, ?, ?, '')
ON CONFLICT (id) DO UPDATE SET name = excluded.name, role = excluded.role, department = excluded.department,
    email = excluded.email, until = ''
"""
