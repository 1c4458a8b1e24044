"""What becomes of a meeting: moved, cancelled, accepted, declined; and when people are free for one.

Entry points: `calendar_move`, `calendar_cancel`, `calendar_answer`, `calendar_invite`, `calendar_meeting`, `calendar_free`.
"""

from __future__ import annotations

from datetime import datetime, time, timedelta
from typing import Literal

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.agenda import _BUSY, ASKED, CANCELLED, CONFIRMED, MOST_PEOPLE, Day, Minutes, People, clashes, span_of
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, tool

FIRST, LAST, STEP, MOST_SLOTS = time(9), time(17), 30, 16  # when people meet; minutes


@tool(writes=True)
def calendar_move(hand: Hand, id: Line, day: Day, start: time) -> Json:
    """Move a meeting of your own to another time; all who are invited are asked again."""
    meeting = _own(hand, id)
    minutes = int((datetime.fromisoformat(meeting["ends"]) - datetime.fromisoformat(meeting["starts"])).total_seconds() // 60)
    span = span_of(hand, day, start, minutes)
    people = _people(hand, id)
    told = clashes(hand, people, span, but=id)
    hand.rows(
        "UPDATE events SET starts = ?, ends = ?, sequence = sequence + 1, answer = iif(person = organizer, answer, ?) WHERE id = ?",
        *(*span, ASKED, id),
    )
    _touch(hand, people)
    return {"id": id, "starts": span[0], "clashes": told}


@tool(writes=True)
def calendar_cancel(hand: Hand, id: Line) -> Json:
    """Cancel a meeting of your own in all calendars."""
    _own(hand, id)
    hand.rows("UPDATE events SET state = ?, sequence = sequence + 1 WHERE id = ?", CANCELLED, id)
    people = _people(hand, id)
    _touch(hand, people)
    return {"id": id, "state": CANCELLED, "people": people}


@tool(writes=True)
def calendar_answer(hand: Hand, id: Line, answer: Literal["accepted", "declined", "tentative"]) -> Json:
    """Accept or decline a meeting to which you are invited."""
    _meeting(hand, id)
    if hand.me.id not in _people(hand, id):
        raise ToolRefused(f"you are not invited to the meeting {id!r}; calendar_read gives the ids of yours")
    hand.rows("UPDATE events SET answer = ? WHERE id = ? AND person = ?", answer, id, hand.me.id)
    people = _people(hand, id)
    _touch(hand, people)
    return {"id": id, "answer": answer}


@tool(writes=True)
def calendar_invite(hand: Hand, id: Line, people: People) -> Json:
    """Invite more colleagues to a meeting of your own."""
    meeting = _own(hand, id)
    already = _people(hand, id)
    new = [person for person in dict.fromkeys(hand.person(named).id for named in people) if person not in already]
    if len(already) + len(new) > MOST_PEOPLE + 1:
        raise ToolRefused(f"a meeting has at most {MOST_PEOPLE} people invited")
    told = clashes(hand, new, (meeting["starts"], meeting["ends"]), but=id)
    for person in new:
        hand.rows(
            """INSERT INTO events SELECT id, ?, title, starts, ends, organizer, made, state, ?, sequence
            FROM events WHERE id = ? AND person = ?""",
            *(person, ASKED, id, hand.me.id),
        )
    _touch(hand, [*already, *new])
    return {"id": id, "invited": new, "clashes": told}


@tool()
def calendar_meeting(hand: Hand, id: Line) -> Json:
    """Look at a meeting: when it is, who is invited, and who has accepted."""
    meeting = _meeting(hand, id)
    return {**meeting, "people": hand.dicts("SELECT person, answer FROM events WHERE id = ? ORDER BY person", id)}


@tool(personal=True)
def calendar_free(hand: Hand, people: People, day: Day, minutes: Minutes) -> Json:
    """Find when you and colleagues are all free on a day, between 9:00 and 17:00."""
    who = list(dict.fromkeys([hand.me.id, *(hand.person(named).id for named in people)]))
    marks = ", ".join("?" * len(who))
    query = f"SELECT starts, ends FROM events WHERE person IN ({marks}) AND starts >= ? AND starts < ? AND {_BUSY}"
    busy = hand.rows(query, *who, day.isoformat(), (day + timedelta(days=1)).isoformat())
    begin, end = datetime.combine(day, FIRST), datetime.combine(day, LAST)
    found: list[str] = []
    while begin + timedelta(minutes=minutes) <= end and len(found) < MOST_SLOTS:
        span = (begin.isoformat(" ", "minutes"), (begin + timedelta(minutes=minutes)).isoformat(" ", "minutes"))
        if span[0] >= hand.moment and not any(starts < span[1] and ends > span[0] for starts, ends in busy):
            found.append(span[0][11:])
        begin += timedelta(minutes=STEP)
    return {"day": day.isoformat(), "people": who, "free": found}


def _meeting(hand: Hand, id: str) -> dict[str, Json]:
    """A meeting that is to be; raises ToolRefused for none, and for a cancelled one."""
    found = hand.dicts("SELECT id, title, starts, ends, organizer, state FROM events WHERE id = ? ORDER BY person LIMIT 1", id)
    if not found:
        raise ToolRefused(f"there is no meeting {id!r}; calendar_read gives their ids")
    if found[0]["state"] != CONFIRMED:
        raise ToolRefused(f"the meeting {id!r} is cancelled")
    return found[0]


def _own(hand: Hand, id: str) -> dict[str, Json]:
    meeting = _meeting(hand, id)
    if meeting["organizer"] != hand.me.id:
        raise ToolRefused(
            f"the meeting {id!r} is {hand.name_of(meeting['organizer'])}'s, who alone may change it; calendar_answer declines it"
        )
    return meeting


def _people(hand: Hand, id: str) -> list[str]:
    return [person for (person,) in hand.rows("SELECT person FROM events WHERE id = ? ORDER BY person", id)]


def _touch(hand: Hand, people: list[str]) -> None:
    for person in people:
        hand.touch("calendar", person)
