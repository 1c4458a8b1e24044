"""Who gets a ticket, how urgent it is, what belongs together.

Entry points: `ticket_read`, `ticket_assign`, `ticket_comment`, `ticket_priority`, `ticket_label`, `ticket_link`, `ticket_search`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tickets import LISTED, ticket_of
from taskweave.tools.tool import Line, Prose, tool

MOST_LABELS, MOST_LINKS, MOST_NOTES, MOST_FOUND = 10, 20, 50, 20
_TURNED = {"blocks": "is blocked by", "duplicates": "is duplicated by", "relates to": "relates to"}

Label = Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9 -]{0,29}$")]


@tool()
def ticket_read(hand: Hand, id: Line) -> Json:
    """Read a ticket with its labels, links and notes."""
    ticket = ticket_of(hand, id)
    return {
        **ticket,
        "labels": [label for (label,) in hand.rows("SELECT label FROM ticket_labels WHERE ticket = ? ORDER BY label", id)],
        "links": hand.dicts("SELECT relation, other FROM ticket_links WHERE ticket = ? ORDER BY relation, other", id),
        "notes": hand.dicts(
            "SELECT author, at, status, text FROM ticket_notes WHERE ticket = ? ORDER BY revision DESC LIMIT ?", id, MOST_NOTES
        ),
    }


@tool(writes=True)
def ticket_assign(hand: Hand, id: Line, assignee: Line) -> Json:
    """Give a ticket to a colleague (a name, role or id)."""
    ticket, to = ticket_of(hand, id), hand.person(assignee)
    _change(hand, ticket, "assignee", to.id, f"assigned to {to.name}")
    return {"id": id, "assignee": to.id}


@tool(writes=True)
def ticket_comment(hand: Hand, id: Line, text: Prose) -> Json:
    """Leave a note on a ticket; all else of it stays."""
    ticket = ticket_of(hand, id)
    _change(hand, ticket, "status", ticket["status"], text)
    return {"id": id, "revision": ticket["revision"] + 1}


@tool(writes=True)
def ticket_priority(hand: Hand, id: Line, priority: Literal["low", "normal", "high"]) -> Json:
    """Say how urgent a ticket is."""
    ticket = ticket_of(hand, id)
    _change(hand, ticket, "priority", priority, f"priority {ticket['priority']} to {priority}")
    return {"id": id, "priority": priority}


@tool(writes=True)
def ticket_label(hand: Hand, id: Line, label: Label) -> Json:
    """Put a label on a ticket, such as "billing"."""
    ticket_of(hand, id)
    labels = [one for (one,) in hand.rows("SELECT label FROM ticket_labels WHERE ticket = ? ORDER BY label", id)]
    if label not in labels and len(labels) >= MOST_LABELS:
        raise ToolRefused(f"the ticket {id} has {MOST_LABELS} labels: {', '.join(labels)}")
    hand.rows("INSERT OR IGNORE INTO ticket_labels VALUES (?, ?)", id, label)
    hand.touch("ticket", id)
    return {"id": id, "labels": sorted({*labels, label})}


@tool(writes=True)
def ticket_link(hand: Hand, id: Line, relation: Literal["blocks", "duplicates", "relates to"], other: Line) -> Json:
    """Say how a ticket belongs to another one."""
    if id == other:
        raise ToolRefused(f"a ticket cannot be linked to itself: {id}")
    for one, how, to in ((id, relation, other), (other, _TURNED[relation], id)):
        ticket_of(hand, one)
        if hand.rows("SELECT count(*) FROM ticket_links WHERE ticket = ?", one)[0][0] >= MOST_LINKS:
            raise ToolRefused(f"the ticket {one} has {MOST_LINKS} links, and takes no more")
        hand.rows("INSERT OR IGNORE INTO ticket_links VALUES (?, ?, ?)", one, how, to)
        hand.touch("ticket", one)
    return {"id": id, "relation": relation, "other": other}


@tool()
def ticket_search(hand: Hand, text: Line) -> Json:
    """Find tickets by words of their title, text, labels or notes.

    Up to 20 come back, the last changed first.
    """
    query = f"""SELECT {", ".join(LISTED)} FROM tickets WHERE instr(lower(title || char(10) || text), lower(?1))
    OR id IN (SELECT ticket FROM ticket_labels WHERE instr(label, lower(?1)))
    OR id IN (SELECT ticket FROM ticket_notes WHERE instr(lower(text), lower(?1))) ORDER BY changed DESC, id LIMIT ?2"""
    return {"tickets": hand.dicts(query, text, MOST_FOUND)}


def _change(hand: Hand, ticket: dict[str, Json], column: str, value: str, note: str) -> None:
    """One thing of a ticket, as its next revision with a note that says so."""
    id, revision = ticket["id"], ticket["revision"] + 1
    hand.rows(f"UPDATE tickets SET {column} = ?, changed = ?, revision = ? WHERE id = ?", value, hand.moment, revision, id)
    hand.rows("INSERT INTO ticket_notes VALUES (?, ?, ?, ?, ?, ?)", id, revision, hand.me.name, hand.moment, ticket["status"], note)
    hand.touch("ticket", id)
