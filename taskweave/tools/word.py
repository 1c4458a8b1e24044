"""Word documents: written from plain text and added to.

Entry points: `document_write`, `document_append`, `document_add_table`, `document_add_section`.  Lines that begin with "# " are headings,
those with "- " items of a list.  What stands in them is changed in `word_edit.py`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.office import EXTRA, WORD, Columns, Rows, keep, opened, package
from taskweave.tools.tool import Line, Prose, tool

MOST_PARAGRAPHS, MOST_TABLES = 2_000, 20  # of one document


@tool(writes=True, needs=EXTRA)
def document_write(hand: Hand, name: Line, title: Line, text: Prose) -> Json:
    """Write a Word document; lines of `text` that begin with "# " are headings, those with "- " items of a list."""
    document = package("docx").Document()
    properties, at = document.core_properties, datetime.fromisoformat(hand.moment)
    properties.author = properties.last_modified_by = hand.me.name
    properties.title, properties.comments = title, ""
    properties.created = properties.modified = at
    document.add_heading(title, 0)
    write_lines(document, text)
    return keep(hand, name, WORD, document)


@tool(writes=True, needs=EXTRA)
def document_append(hand: Hand, name: Line, text: Prose) -> Json:
    """Add text to the end of a Word document, written as in document_write."""
    called, document = opened(hand, name, WORD)
    write_lines(document, text)
    return changed(hand, called, document)


@tool(writes=True, needs=EXTRA)
def document_add_section(hand: Hand, name: Line, heading: Line, text: Prose) -> Json:
    """Add a section with a heading of its own to the end of a Word document."""
    called, document = opened(hand, name, WORD)
    if any(is_heading(p) and p.text.casefold() == heading.casefold() for p in document.paragraphs):
        raise ToolRefused(f"{called!r} has a section {heading!r} already; document_replace_section changes it")
    document.add_heading(heading, 1)
    write_lines(document, text)
    return changed(hand, called, document)


@tool(writes=True, needs=EXTRA)
def document_add_table(hand: Hand, name: Line, columns: Columns, rows: Rows) -> Json:
    """Add a table with a head line to the end of a Word document."""
    called, document = opened(hand, name, WORD)
    if len(document.tables) >= MOST_TABLES:
        raise ToolRefused(f"{called!r} has {MOST_TABLES} tables, and takes no more")
    for number, row in enumerate(rows, 1):
        if len(row) > len(columns):
            raise ToolRefused(f"row {number} has {len(row)} cells for {len(columns)} columns")
    table = document.add_table(rows=0, cols=len(columns), style="Table Grid")
    lines: list[list[Json]] = [list(columns), *map(list, rows)]
    for given in lines:
        cells = table.add_row().cells
        for cell, value in zip(cells, given, strict=False):
            cell.text = "" if value is None else str(value)
    return {**changed(hand, called, document), "table": len(document.tables)}


def write_lines(document: Any, text: str) -> None:
    """Plain text as paragraphs, headings and items at the end of a document."""
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        if marks := re.match(r"#{1,4} ", line):
            document.add_heading(line[len(marks[0]) :], len(marks[0]) - 1)
        elif line.startswith(("- ", "* ")):
            document.add_paragraph(line[2:], style="List Bullet")
        else:
            document.add_paragraph(line)


def is_heading(paragraph: Any) -> bool:
    """Whether a section begins here."""
    return str(paragraph.style.name).startswith(("Heading", "Title"))


def changed(hand: Hand, name: str, document: Any) -> Json:
    """The document as its next revision, changed by who acts; raises ToolRefused where it has become too long."""
    if len(document.paragraphs) > MOST_PARAGRAPHS:
        raise ToolRefused(f"{name!r} would have more than {MOST_PARAGRAPHS} paragraphs; begin another document")
    document.core_properties.last_modified_by = hand.me.name
    return keep(hand, name, WORD, document)
