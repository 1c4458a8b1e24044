"""Who works here?  Entry points: `people_search`, `people_read`, `people_department`.  What they do with each other is not asked here."""

from __future__ import annotations

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand, Person
from taskweave.tools.tool import Line, tool

MOST_FOUND = 20


@tool()
def people_search(hand: Hand, text: Line) -> Json:
    """Find colleagues by a part of their name, role, department or address: up to 20."""
    wanted = text.casefold()
    found = [p for p in hand.people.values() if wanted in f"{p.id}\n{p.name}\n{p.role}\n{p.department}\n{p.email}".casefold()]
    return {"people": [_card(person) for person in found[:MOST_FOUND]], "more": len(found) > MOST_FOUND}


@tool()
def people_read(hand: Hand, person: Line) -> Json:
    """Look up a colleague: role, department, address, last deliverables and open tickets."""
    who = hand.person(person)
    made = hand.dicts("SELECT title, artifact, finished FROM deliverables WHERE author = ? ORDER BY finished DESC, id LIMIT 5", who.name)
    tickets = hand.dicts(
        "SELECT id, title, status FROM tickets WHERE assignee = ? AND status IN ('open', 'in progress') ORDER BY changed DESC, id LIMIT 5",
        who.id,
    )
    return {**_card(who), "made": made, "tickets": tickets}


@tool()
def people_department(hand: Hand, department: Line) -> Json:
    """List who works in a department."""
    found = [_card(person) for person in hand.people.values() if person.department.casefold() == department.casefold()]
    if not found:
        known = sorted({person.department for person in hand.people.values() if person.department})
        raise ToolRefused(f"there is no department {department!r}; there are {', '.join(known)}")
    return {"department": department, "people": found[:MOST_FOUND], "more": len(found) > MOST_FOUND}


def _card(person: Person) -> dict[str, Json]:
    return {"id": person.id, "name": person.name, "role": person.role, "department": person.department, "email": person.email}
