"""The ticket system: who has to do what, and what was noted.  Entry points: `ticket_open`, `ticket_update`, `ticket_list`.

Who gets them, and how they belong together, is in `triage.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Literal

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.said import said
from taskweave.tools.tool import Line, MaybeLine, Prose, tool

SCHEMA = """
CREATE TABLE tickets (
    id TEXT PRIMARY KEY, title TEXT, text TEXT, status TEXT, priority TEXT, reporter TEXT, assignee TEXT, opened TEXT, changed TEXT,
    revision INTEGER
);
CREATE TABLE ticket_notes (ticket TEXT, revision INTEGER, author TEXT, at TEXT, status TEXT, text TEXT, PRIMARY KEY (ticket, revision));
CREATE TABLE ticket_labels (ticket TEXT, label TEXT, PRIMARY KEY (ticket, label));
CREATE TABLE ticket_links (ticket TEXT, relation TEXT, other TEXT, PRIMARY KEY (ticket, relation, other));
"""
MOST_LISTED = 50
LISTED = ("id", "title", "status", "priority", "assignee", "changed")


@tool(writes=True)
def ticket_open(hand: Hand, title: Line, text: Prose, assignee: MaybeLine, priority: Literal["low", "normal", "high"]) -> Json:
    """Open a ticket; `assignee` is a colleague's name, role or id, or "" for nobody yet."""
    number = f"T-{hand.number()}"
    to = hand.person(assignee).id if assignee else ""
    hand.rows(
        "INSERT INTO tickets VALUES (?, ?, ?, 'open', ?, ?, ?, ?, ?, 1)",
        *(number, title, text, priority, hand.me.id, to, hand.moment, hand.moment),
    )
    hand.touch("ticket", number)
    return {"id": number, "status": "open", "assignee": to}


@tool(writes=True)
def ticket_update(hand: Hand, id: Line, status: Literal["open", "in progress", "done", "rejected"], note: Prose) -> Json:
    """Change a ticket's status and leave a note on it."""
    revision = ticket_of(hand, id)["revision"]
    hand.rows("UPDATE tickets SET status = ?, changed = ?, revision = ? WHERE id = ?", status, hand.moment, revision + 1, id)
    hand.rows("INSERT INTO ticket_notes VALUES (?, ?, ?, ?, ?, ?)", id, revision + 1, hand.me.name, hand.moment, status, note)
    hand.touch("ticket", id)
    return {"id": id, "status": status}


@tool()
def ticket_list(hand: Hand, status: Literal["open", "in progress", "done", "rejected", "any"], mine: bool) -> Json:
    """List tickets, the last changed first: of one status or any, assigned to you (`mine`) or to anybody."""
    found = hand.rows(
        f"SELECT {', '.join(LISTED)} FROM tickets WHERE (? = 'any' OR status = ?) AND (? = 0 OR assignee = ?) "
        "ORDER BY changed DESC, id LIMIT ?",
        *(status, status, int(mine), hand.me.id, MOST_LISTED),
    )
    return {"tickets": [dict(zip(LISTED, row, strict=True)) for row in found]}


def ticket_of(hand: Hand, id: str) -> dict[str, Json]:
    """A ticket, on which what follows is based; raises ToolRefused for none."""
    found = hand.dicts("SELECT * FROM tickets WHERE id = ?", id)
    if not found:
        raise ToolRefused(f"there is no ticket {id!r}; ticket_list gives their ids")
    hand.based_on("ticket", id, found[0]["revision"])
    return found[0]


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The ticket, with its notes, as a file."""
    query = "SELECT title, text, status, priority, reporter, assignee, opened FROM tickets WHERE id = ?"
    for title, text, status, priority, reporter, assignee, opened in db.execute(query, (name,)):
        lines = [
            f"# {name}: {title}",
            "",
            f"{status}, {priority}; opened by {reporter} {opened}; assigned to {assignee or 'nobody'}",
            "",
            said(text),
        ]
        labels = [label for (label,) in db.execute("SELECT label FROM ticket_labels WHERE ticket = ? ORDER BY label", (name,))]
        lines += ["", f"Labels: {', '.join(labels)}"] if labels else []
        links = db.execute("SELECT relation, other FROM ticket_links WHERE ticket = ? ORDER BY relation, other", (name,))
        lines += [f"- {relation} {other}" for relation, other in links]
        notes = db.execute("SELECT author, at, status, text FROM ticket_notes WHERE ticket = ? ORDER BY revision", (name,))
        lines += [f"\n## {at}, {author}: {now}\n\n{said(note)}" for author, at, now, note in notes]
        yield f"tickets/{name}.md", ("\n".join(lines) + "\n").encode()
