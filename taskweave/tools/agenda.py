"""The calendars of an organization's people, as iCalendar files.  Entry points: `calendar_add`, `calendar_read`.

Meetings here take nobody's simulated time.  A clash is said to whoever makes it, and is no error: people have them.  What becomes of a
meeting is in `invitations.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from datetime import date, datetime, time, timedelta
from typing import Annotated

from pydantic import AfterValidator, Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, tool

# One row for each who takes part; `state` is that of the meeting, `answer` that person's, `sequence` counts changes (RFC 5545, 3.8.7.4).
SCHEMA = """
CREATE TABLE events (
    id TEXT, person TEXT, title TEXT, starts TEXT, ends TEXT, organizer TEXT, made TEXT, state TEXT, answer TEXT, sequence INTEGER,
    PRIMARY KEY (id, person)
);
CREATE INDEX events_of_a_person ON events (person, starts);
"""
MOST_PEOPLE, MOST_READ = 20, 30
CONFIRMED, CANCELLED = "confirmed", "cancelled"
ASKED, ACCEPTED, DECLINED, TENTATIVE = "asked", "accepted", "declined", "tentative"
_PARTSTAT = {ASKED: "NEEDS-ACTION", ACCEPTED: "ACCEPTED", DECLINED: "DECLINED", TENTATIVE: "TENTATIVE"}
_BUSY = f"state = '{CONFIRMED}' AND answer <> '{DECLINED}'"

_YEARS = range(1970, 2201)


def _day(day: date) -> date:
    if day.year not in _YEARS:
        raise ValueError(f"is in no year that a calendar here has: they go from {_YEARS[0]} to {_YEARS[-1]}")
    return day


Day = Annotated[date, AfterValidator(_day)]
People = Annotated[list[Line], Field(max_length=MOST_PEOPLE)]
Minutes = Annotated[int, Field(ge=5, le=480)]


@tool(writes=True)
def calendar_add(hand: Hand, title: Line, day: Day, start: time, minutes: Minutes, people: People) -> Json:
    """Put a meeting into your calendar and those of colleagues (names, roles or ids); `start` is like "09:30"."""
    span = span_of(hand, day, start, minutes)
    number = hand.number()
    invited = list(dict.fromkeys([hand.me.id, *(hand.person(named).id for named in people)]))
    told = clashes(hand, invited, span)
    for person in invited:
        answer = ACCEPTED if person == hand.me.id else ASKED
        hand.rows(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0)",
            *(number, person, title, *span, hand.me.id, hand.moment, CONFIRMED, answer),
        )
        hand.touch("calendar", person)
    return {"id": number, "starts": span[0], "clashes": told}


@tool()
def calendar_read(hand: Hand, person: Line, first: Day, days: Annotated[int, Field(ge=1, le=31)]) -> Json:
    """Read somebody's calendar from a day on; `person` is a name, role or id."""
    who = hand.person(person)
    until = (first + timedelta(days=days)).isoformat()
    query = """SELECT id, title, starts, ends, organizer, answer FROM events
    WHERE person = ? AND state = ? AND starts >= ? AND starts < ? ORDER BY starts, id LIMIT ?"""
    return {"person": who.id, "events": hand.dicts(query, who.id, CONFIRMED, first.isoformat(), until, MOST_READ)}


def span_of(hand: Hand, day: date, start: time, minutes: int) -> tuple[str, str]:
    """When a meeting begins and ends; raises ToolRefused where that is past."""
    starts = datetime.combine(day, start.replace(second=0, microsecond=0, tzinfo=None))
    if starts.isoformat(" ", "minutes") < hand.moment:
        raise ToolRefused(f"{starts.isoformat(' ', 'minutes')} is past: it is {hand.moment}")
    return starts.isoformat(" ", "minutes"), (starts + timedelta(minutes=minutes)).isoformat(" ", "minutes")


def clashes(hand: Hand, people: Sequence[str], span: tuple[str, str], but: str = "") -> list[str]:
    """What each of these people has in this time already, the meeting `but` left out."""
    query = f"SELECT title FROM events WHERE person = ? AND id <> ? AND starts < ? AND ends > ? AND {_BUSY} ORDER BY starts, id LIMIT 1"
    return [f"{person}: {title}" for person in people for (title,) in hand.rows(query, person, but, span[1], span[0])]


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """One person's calendar (RFC 5545)."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//TaskWeave//EN"]
    query = "SELECT id, title, starts, ends, organizer, made, state, sequence FROM events WHERE person = ? ORDER BY starts, id"
    for id, title, starts, ends, organizer, made, state, sequence in db.execute(query, (name,)).fetchall():
        lines += ["BEGIN:VEVENT", f"UID:{id}@{name}", f"DTSTAMP:{_stamp(made)}Z", f"DTSTART:{_stamp(starts)}", f"DTEND:{_stamp(ends)}"]
        lines += [f"SUMMARY:{_escaped(title)}", f"STATUS:{state.upper()}", f"SEQUENCE:{sequence}"]
        lines.append(f"COMMENT:organized by {_escaped(organizer)}")
        attending = """SELECT events.person, events.answer, people.name, people.email FROM events JOIN people ON people.id = events.person
        WHERE events.id = ? ORDER BY events.person"""
        for _, answer, called, address in db.execute(attending, (id,)).fetchall():
            lines.append(f'ATTENDEE;CN="{called.replace(chr(34), "")}";PARTSTAT={_PARTSTAT[answer]}:mailto:{address}')
        lines.append("END:VEVENT")
    lines.append("END:VCALENDAR")
    yield f"calendar/{name}.ics", "".join(f"{_folded(line)}\r\n" for line in lines).encode()


def _stamp(moment: str) -> str:
    return datetime.fromisoformat(moment).strftime("%Y%m%dT%H%M%S")


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,").replace("\n", "\\n")


def _folded(line: str) -> str:
    """Lines of at most 75 octets, continued after a space (RFC 5545, 3.1)."""
    parts, current, size = [], "", 0
    for character in line:
        width = len(character.encode())
        if size + width > 74:
            parts.append(current)
            current, size = "", 0
        current, size = current + character, size + width
    return "\r\n ".join([*parts, current])
