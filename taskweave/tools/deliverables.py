"""What the organization has made, by title.  Entry points: `deliverable_recent`, `deliverable_search`.  Its text is the pool's."""

from __future__ import annotations

from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, MaybeLine, tool

MOST_FOUND = 20
_COLUMNS = "id, title, artifact, author, finished"


@tool()
def deliverable_recent(hand: Hand, person: MaybeLine) -> Json:
    """List the last 20 finished deliverables of a colleague, or with "" of all."""
    name = hand.person(person).name if person else ""
    query = f"SELECT {_COLUMNS} FROM deliverables WHERE ?1 = '' OR author = ?1 ORDER BY finished DESC, id LIMIT ?2"
    return {"deliverables": hand.dicts(query, name, MOST_FOUND)}


@tool()
def deliverable_search(hand: Hand, text: Line) -> Json:
    """Find finished deliverables by words of their title or kind.

    Up to 20 come back, the last first.
    """
    query = f"""SELECT {_COLUMNS} FROM deliverables
    WHERE instr(lower(title || char(10) || artifact), lower(?)) ORDER BY finished DESC, id LIMIT ?"""
    return {"deliverables": hand.dicts(query, text, MOST_FOUND)}
