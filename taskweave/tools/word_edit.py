"""What stands in a Word document, part by part: read, replaced, commented on.

Entry points: `document_section`, `document_replace_section`, `document_replace_text`, `document_table`, `document_comment`,
`document_comments`, `document_delete_section`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.office import EXTRA, MOST_COLUMNS, MOST_ROWS, WORD, opened
from taskweave.tools.tool import Line, MaybeLine, Prose, tool
from taskweave.tools.word import changed, is_heading, write_lines

MOST_SHOWN, MOST_COMMENTS, MOST_TEXT = 8_000, 200, 1_000_000


@tool(needs=EXTRA)
def document_section(hand: Hand, name: Line, heading: Line) -> Json:
    """Read one section of a Word document, from its heading to the next of its rank."""
    called, document = opened(hand, name, WORD)
    _, body = _section(document, called, heading)
    return {"name": called, "heading": heading, "text": "\n".join(p.text for p in body)[:MOST_SHOWN]}


@tool(writes=True, needs=EXTRA)
def document_replace_section(hand: Hand, name: Line, heading: Line, text: Prose) -> Json:
    """Write a section of a Word document anew; its heading stays, and so does all around it."""
    called, document = opened(hand, name, WORD)
    head, body = _section(document, called, heading)
    before = len(document.paragraphs)
    write_lines(document, text)
    place = head._p
    for paragraph in document.paragraphs[before:]:
        place.addnext(paragraph._p)
        place = paragraph._p
    for paragraph in body:
        paragraph._p.getparent().remove(paragraph._p)
    return {**changed(hand, called, document), "replaced": len(body)}


@tool(writes=True, needs=EXTRA)
def document_delete_section(hand: Hand, name: Line, heading: Line) -> Json:
    """Take a section with its heading out of a Word document."""
    called, document = opened(hand, name, WORD)
    head, body = _section(document, called, heading)
    if head.style.name == "Title":
        raise ToolRefused(f"{heading!r} is the title of {called!r}, and stays")
    for paragraph in (head, *body):
        paragraph._p.getparent().remove(paragraph._p)
    return {**changed(hand, called, document), "deleted": len(body)}


@tool(writes=True, needs=EXTRA)
def document_replace_text(hand: Hand, name: Line, old: Line, new: MaybeLine) -> Json:
    """Replace some words by others wherever they stand in a Word document."""
    called, document = opened(hand, name, WORD)
    count, size = 0, 0
    for paragraph in document.paragraphs:
        if old in paragraph.text:
            count += paragraph.text.count(old)
            paragraph.text = paragraph.text.replace(old, new)
        size += len(paragraph.text)
        if size > MOST_TEXT:
            raise ToolRefused(f"{called!r} would hold more than {MOST_TEXT:,} characters; replace by less, or in another document")
    if not count:
        raise ToolRefused(f"{called!r} does not say {old!r}; document_read shows what it says")
    return {**changed(hand, called, document), "replaced": count}


@tool(needs=EXTRA)
def document_table(hand: Hand, name: Line, number: Annotated[int, Field(ge=1, le=100)]) -> Json:
    """Read a table of a Word document, the first being number 1."""
    called, document = opened(hand, name, WORD)
    if number > len(document.tables):
        raise ToolRefused(f"{called!r} has {len(document.tables)} tables")
    rows = [[cell.text for cell in row.cells[:MOST_COLUMNS]] for row in document.tables[number - 1].rows[: MOST_ROWS + 1]]
    return {"name": called, "columns": rows[0], "rows": rows[1:]}


@tool(writes=True, needs=EXTRA)
def document_comment(hand: Hand, name: Line, quote: Line, text: Prose) -> Json:
    """Comment on words of a Word document; `quote` is some of the paragraph that is meant."""
    called, document = opened(hand, name, WORD)
    if len(list(document.comments)) >= MOST_COMMENTS:
        raise ToolRefused(f"{called!r} has {MOST_COMMENTS} comments, and takes no more")
    meant = next((p for p in document.paragraphs if quote.casefold() in p.text.casefold() and p.runs), None)
    if meant is None:
        raise ToolRefused(f"no paragraph of {called!r} says {quote!r}; document_read shows what it says")
    initials = "".join(word[0] for word in hand.me.name.split())[:3]
    comment = document.add_comment(meant.runs, text=text, author=hand.me.name, initials=initials)
    at = datetime.fromisoformat(hand.moment).replace(tzinfo=UTC)
    comment._comment_elm.date = at  # the library takes it from the clock
    return {**changed(hand, called, document), "comment": comment.comment_id, "paragraph": meant.text[:200]}


@tool(needs=EXTRA)
def document_comments(hand: Hand, name: Line) -> Json:
    """List the comments in a Word document, the first first."""
    called, document = opened(hand, name, WORD)
    told = [
        {"author": one.author, "at": one.timestamp.strftime("%Y-%m-%d %H:%M") if one.timestamp else "", "text": one.text}
        for one in document.comments
    ]
    return {"name": called, "comments": told[:MOST_COMMENTS]}


def _section(document: Any, name: str, heading: str) -> tuple[Any, list[Any]]:
    """The heading's paragraph and those below it, up to the next heading of its rank or a higher one."""
    paragraphs = document.paragraphs
    headings = [(place, p) for place, p in enumerate(paragraphs) if is_heading(p)]
    start = next((place for place, p in headings if p.text.strip().casefold() == heading.casefold()), None)
    if start is None:
        known = ", ".join(repr(p.text) for _, p in headings[:8]) or "none"
        raise ToolRefused(f"{name!r} has no section {heading!r}; its headings: {known}")
    rank = _rank(paragraphs[start])
    end = next((place for place, p in headings if place > start and _rank(p) <= rank), len(paragraphs))
    return paragraphs[start], paragraphs[start + 1 : end]


def _rank(paragraph: Any) -> int:
    name = str(paragraph.style.name)
    return 0 if name == "Title" else int(name.split()[-1]) if name[-1].isdigit() else 1
