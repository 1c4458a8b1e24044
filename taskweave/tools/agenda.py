"""The calendars of an organization's people, as iCalendar files.  Entry points: `calendar_add`, `calendar_read`.

Meetings here take nobody's simulated time.  A clash is said to whoever makes it, and is no error: people have them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Annotated

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, tool

SCHEMA = """
CREATE TABLE events (id TEXT, person TEXT, title TEXT, starts TEXT, ends TEXT, organizer TEXT, made TEXT, PRIMARY KEY (id, person));
"""
MOST_PEOPLE, MOST_READ = 20, 30

People = Annotated[list[Line], Field(max_length=MOST_PEOPLE)]


@tool(writes=True)
def calendar_add(hand: Hand, title: Line, day: date, start: time, minutes: Annotated[int, Field(ge=5, le=480)], people: People) -> Json:
    """Put a meeting into your calendar and those of colleagues (names, roles or ids); `start` is like "09:30"."""
    starts = datetime.combine(day, start.replace(second=0, microsecond=0, tzinfo=None))
    if starts.isoformat(" ", "minutes") < hand.moment:
        raise ToolRefused(f"{starts.isoformat(' ', 'minutes')} is past: it is {hand.moment}")
    ends = starts + timedelta(minutes=minutes)
    number = hand.number()
    clashes = []
    for person in dict.fromkeys([hand.me.id, *(hand.person(named).id for named in people)]):
        span = (starts.isoformat(" ", "minutes"), ends.isoformat(" ", "minutes"))
        for (other,) in hand.rows(
            "SELECT title FROM events WHERE person = ? AND starts < ? AND ends > ? LIMIT 1", person, span[1], span[0]
        ):
            clashes.append(f"{person}: {other}")
        hand.rows("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", number, person, title, *span, hand.me.id, hand.moment)
        hand.touch("calendar", person)
    return {"id": number, "starts": starts.isoformat(" ", "minutes"), "clashes": clashes}


@tool()
def calendar_read(hand: Hand, person: Line, first: date, days: Annotated[int, Field(ge=1, le=31)]) -> Json:
    """Read somebody's calendar from a day on; `person` is a name, role or id."""
    who = hand.person(person)
    until = (first + timedelta(days=days)).isoformat()
    query = "SELECT title, starts, ends, organizer FROM events WHERE person = ? AND starts >= ? AND starts < ? ORDER BY starts, id LIMIT ?"
    found = hand.rows(query, who.id, first.isoformat(), until, MOST_READ)
    return {"person": who.id, "events": [dict(zip(("title", "starts", "ends", "organizer"), row, strict=True)) for row in found]}


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """One person's calendar (RFC 5545)."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//TaskWeave//EN"]
    for id, title, starts, ends, organizer, made in db.execute(
        "SELECT id, title, starts, ends, organizer, made FROM events WHERE person = ? ORDER BY starts, id", (name,)
    ):
        lines += ["BEGIN:VEVENT", f"UID:{id}@{name}", f"DTSTAMP:{_stamp(made)}Z", f"DTSTART:{_stamp(starts)}", f"DTEND:{_stamp(ends)}"]
        lines += [f"SUMMARY:{_escaped(title)}", f"COMMENT:organized by {_escaped(organizer)}", "END:VEVENT"]
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
