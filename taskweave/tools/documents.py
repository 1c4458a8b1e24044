"""The company's Word and Excel documents, as somebody finds and reads them.

Entry points: `document_read`, `document_list`, `document_search`, `document_info`, `document_copy`; `text_of` a document's bytes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Any

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools import office
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, tool

SCHEMA, EXTRA = office.SCHEMA, office.EXTRA
MOST_SHOWN = 8_000  # characters of text read
MOST_LISTED, MOST_SEARCHED, MOST_HITS, AROUND = 100, 200, 10, 80


@tool(needs=EXTRA)
def document_read(hand: Hand, name: Line) -> Json:
    """Read a Word or Excel document of the company as text; `name` with its ending, such as "plan.docx"."""
    called, _, author, changed, data = office.found(hand, name)
    text = text_of(data, called)
    return {"name": called, "author": author, "changed": changed, "text": text[:MOST_SHOWN], "more": len(text) > MOST_SHOWN}


@tool()
def document_list(hand: Hand) -> Json:
    """List the company's Word and Excel documents, the last changed first."""
    return {
        "documents": hand.dicts("SELECT name, author, changed FROM documents ORDER BY changed DESC, name LIMIT ?", MOST_LISTED),
    }


@tool(needs=EXTRA)
def document_search(hand: Hand, text: Line) -> Json:
    """Find words in the company's documents.

    Up to 10 documents come back, with what stands around the first place.
    """
    hits: list[Json] = []
    for name, data in hand.rows("SELECT name, data FROM documents ORDER BY changed DESC, name LIMIT ?", MOST_SEARCHED):
        said = " ".join(text_of(data, name).split())
        place = said.casefold().find(text.casefold())
        if place >= 0:
            hits.append({"name": name, "around": said[max(0, place - AROUND) : place + len(text) + AROUND]})
        if len(hits) == MOST_HITS:
            break
    return {"found": hits}


@tool(needs=EXTRA)
def document_info(hand: Hand, name: Line) -> Json:
    """Tell a document's revision, author and size, and its headings or sheets."""
    called, revision, author, changed, data = office.found(hand, name)
    document = office.loaded(data, called)
    if called.casefold().endswith(office.WORD):
        parts = {"headings": [p.text for p in document.paragraphs if p.style.name.startswith(("Heading", "Title"))][:MOST_LISTED]}
    else:
        parts = {"sheets": [{"sheet": one.title, "rows": one.max_row, "columns": one.max_column} for one in document.worksheets]}
    return {"name": called, "revision": revision, "author": author, "changed": changed, "bytes": len(data), **parts}


@tool(writes=True, needs=EXTRA)
def document_copy(hand: Hand, name: Line, to: Line) -> Json:
    """Copy a document under another name, as one begins from a template."""
    called, _, _, _, data = office.found(hand, name)
    ending = office.WORD if called.casefold().endswith(office.WORD) else office.EXCEL
    if hand.rows("SELECT 1 FROM documents WHERE name IN (?, ?)", to, to + ending):
        raise ToolRefused(f"there is a document {to!r} already; give another name")
    return {"copied": called, **office.keep(hand, to, ending, office.loaded(data, called))}


def text_of(data: bytes, name: str) -> str:
    """The text of a document's bytes; raises ToolRefused for what is none, or would not stay small when unpacked."""
    document = office.loaded(data, name)
    return "\n".join(_docx_lines(document) if name.casefold().endswith(office.WORD) else _xlsx_lines(document))


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The document as a file."""
    for called, data in db.execute("SELECT name, data FROM documents WHERE name = ?", (name,)):
        yield f"documents/{called}", data


def _docx_lines(document: Any) -> Iterator[str]:
    yield from (paragraph.text for paragraph in document.paragraphs)
    for table in document.tables:
        yield from (" | ".join(cell.text for cell in row.cells) for row in table.rows)


def _xlsx_lines(book: Any) -> Iterator[str]:
    for sheet in book.worksheets:
        if len(book.worksheets) > 1:
            yield f"[{sheet.title}]"
        for row in sheet.iter_rows(max_row=office.MOST_ROWS + 1, max_col=office.MOST_COLUMNS, values_only=True):
            yield " | ".join("" if value is None else str(value) for value in row).rstrip(" |")
