"""Word and Excel documents: written with simulated timestamps, so that equal runs leave equal bytes, and read back as text.

Entry points: `document_write`, `sheet_write`, `document_read`.  A document from elsewhere is unpacked only within bounds.
"""

from __future__ import annotations

import contextlib
import io
import re
import sqlite3
import zipfile
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.files import file_name
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, MaybeLine, Prose, tool

SCHEMA = "CREATE TABLE documents (name TEXT PRIMARY KEY COLLATE NOCASE, revision INTEGER, author TEXT, changed TEXT, data BLOB);"
EXTRA = "tools"
MOST_COLUMNS, MOST_ROWS, MOST_SHOWN = 20, 200, 8_000  # the last in characters of text read
MOST_LISTED = 100
MOST_MEMBERS, MOST_UNPACKED = 500, 16 * 2**20  # of a document's zip file
# What a cell may compute: sums and the like over cells of the same sheet.  All else that begins with "=" is text.
_FORMULA = re.compile(r"=(SUM|AVERAGE|MIN|MAX|COUNT)\([A-Z]{1,2}[0-9]{1,4}:[A-Z]{1,2}[0-9]{1,4}\)")
_DATES = re.compile(rb"(<dcterms:(?:created|modified)[^>]*>)[^<]*")

Row = Annotated[list[MaybeLine | float | int | None], Field(max_length=MOST_COLUMNS)]


@tool(writes=True, needs=EXTRA)
def document_write(hand: Hand, name: Line, title: Line, text: Prose) -> Json:
    """Write a Word document; lines of `text` that begin with "# " are headings, those with "- " items of a list."""
    docx = _package("docx")
    document = docx.Document()
    document.core_properties.author, document.core_properties.title = hand.me.name, title
    document.core_properties.last_modified_by, document.core_properties.comments = hand.me.name, ""
    document.add_heading(title, 0)
    for line in filter(None, (line.strip() for line in text.split("\n"))):
        if marks := re.match(r"#{1,4} ", line):
            document.add_heading(line[len(marks[0]) :], len(marks[0]) - 1)
        elif line.startswith(("- ", "* ")):
            document.add_paragraph(line[2:], style="List Bullet")
        else:
            document.add_paragraph(line)
    return _keep(hand, file_name(name, ".docx"), _saved(document, hand.moment))


@tool(writes=True, needs=EXTRA)
def sheet_write(
    hand: Hand,
    name: Line,
    columns: Annotated[list[Line], Field(min_length=1, max_length=MOST_COLUMNS)],
    rows: Annotated[list[Row], Field(max_length=MOST_ROWS)],
) -> Json:
    """Write an Excel sheet with a head line and rows; a cell may hold =SUM(B2:B9), also AVERAGE, MIN, MAX and COUNT."""
    openpyxl = _package("openpyxl")
    book = openpyxl.Workbook()
    book.properties.creator = hand.me.name
    sheet = book.active
    lines: list[list[Json]] = [list(columns), *map(list, rows)]
    for y, row in enumerate(lines, 1):
        if len(row) > len(columns):
            raise ToolRefused(f"sheet_write: row {y - 1} has {len(row)} cells for {len(columns)} columns")
        for x, value in enumerate(row, 1):
            cell = sheet.cell(y, x, value)
            if isinstance(value, str) and not _FORMULA.fullmatch(value):
                cell.data_type = "s"  # nothing else is a formula: a cell must not reach out of its sheet
    return _keep(hand, file_name(name, ".xlsx"), _saved(book, hand.moment))


@tool(needs=EXTRA)
def document_read(hand: Hand, name: Line) -> Json:
    """Read a Word or Excel document of the company as text; `name` with its ending, such as "plan.docx"."""
    found = hand.rows("SELECT name, author, changed, data FROM documents WHERE name = ?", name)
    if not found:
        known = [other for (other,) in hand.rows("SELECT name FROM documents ORDER BY changed DESC, name LIMIT 8")]
        raise ToolRefused(
            f"there is no document {name!r}; " + (f"among those there are: {', '.join(known)}" if known else "there is none yet")
        )
    called, author, changed, data = found[0]
    text = text_of(data, called)
    return {"name": called, "author": author, "changed": changed, "text": text[:MOST_SHOWN], "more": len(text) > MOST_SHOWN}


@tool()
def document_list(hand: Hand) -> Json:
    """List the company's Word and Excel documents, the last changed first."""
    found = hand.rows("SELECT name, author, changed FROM documents ORDER BY changed DESC, name LIMIT ?", MOST_LISTED)
    return {"documents": [dict(zip(("name", "author", "changed"), row, strict=True)) for row in found]}


def text_of(data: bytes, name: str) -> str:
    """The text of a document's bytes; raises ToolRefused for what is none, or would not stay small when unpacked."""
    _check_package(data, name)
    try:
        if name.casefold().endswith(".docx"):
            return "\n".join(_docx_lines(_package("docx").Document(io.BytesIO(data))))
        with contextlib.closing(_package("openpyxl").load_workbook(io.BytesIO(data), read_only=True, data_only=False)) as book:
            return "\n".join(_xlsx_lines(book))
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, SyntaxError, zipfile.BadZipFile) as error:
        raise ToolRefused(f"{name!r} cannot be read: {error}") from None


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The document as a file."""
    for called, data in db.execute("SELECT name, data FROM documents WHERE name = ?", (name,)):
        yield f"documents/{called}", data


# ---------------------------------------------------------------- inside
def _package(name: str) -> Any:
    """python-docx or openpyxl, which are loaded where they are used."""
    try:
        if name == "docx":
            import docx

            return docx
        import openpyxl

        return openpyxl
    except ImportError:
        raise ToolRefused(f'documents need packages that are not installed: pip install "taskweave[{EXTRA}]"') from None


def _keep(hand: Hand, name: str, data: bytes) -> Json:
    found = hand.rows("SELECT name, revision FROM documents WHERE name = ?", name)
    kept, before = found[0] if found else (name, 0)
    hand.based_on("document", kept, before)
    hand.rows("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)", kept, before + 1, hand.me.name, hand.moment, data)
    hand.touch("document", kept)
    return {"name": kept, "revision": before + 1}


def _saved(document: Any, moment: str) -> bytes:
    """The document's bytes, with every timestamp that a library took from the clock set to the simulated moment."""
    at = datetime.fromisoformat(moment)
    stream, out = io.BytesIO(), io.BytesIO()
    document.save(stream)
    with zipfile.ZipFile(stream) as given, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as made:
        for name in given.namelist():
            data = given.read(name)
            if name == "docProps/core.xml":
                data = _DATES.sub(rb"\g<1>" + at.strftime("%Y-%m-%dT%H:%M:%SZ").encode(), data)
            entry = zipfile.ZipInfo(name, (max(at.year, 1980), at.month, at.day, at.hour, at.minute, 0))
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            made.writestr(entry, data)
    return out.getvalue()


def _check_package(data: bytes, name: str) -> None:
    """Raises ToolRefused for a zip bomb, or XML that defines entities."""
    if not name.casefold().endswith((".docx", ".xlsx")):
        raise ToolRefused(f"{name!r} is no Word or Excel document: its name must end in .docx or .xlsx")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as package:
            members = package.infolist()
            if len(members) > MOST_MEMBERS or sum(member.file_size for member in members) > MOST_UNPACKED:
                raise ToolRefused(f"{name!r} unpacks to more than {MOST_MEMBERS} parts or {MOST_UNPACKED // 2**20} MiB and is not read")
            for member in members:
                # What a member says of its size may be a lie: the reader takes no more than that, and then checks its sum.
                part = package.read(member)
                if member.filename.casefold().endswith((".xml", ".rels", ".vml")) and _defines(part):
                    raise ToolRefused(f"{name!r} holds XML with definitions of its own and is not read")
    except (zipfile.BadZipFile, RuntimeError, EOFError, OSError, ValueError) as error:
        raise ToolRefused(f"{name!r} is damaged, or no document: {error}") from None
    except zipfile.zlib.error as error:  # type: ignore[attr-defined]  # zipfile's own zlib, which it does not export
        raise ToolRefused(f"{name!r} is damaged: {error}") from None


def _defines(part: bytes) -> bool:
    """Whether XML has a document type, in whatever encoding: those with one byte a character keep ASCII, all others are refused too."""
    return b"<!DOCTYPE" in part or b"<!ENTITY" in part or b"\0" in part or part.startswith((b"\xfe\xff", b"\xff\xfe"))


def _docx_lines(document: Any) -> Iterator[str]:
    yield from (paragraph.text for paragraph in document.paragraphs)
    for table in document.tables:
        yield from (" | ".join(cell.text for cell in row.cells) for row in table.rows)


def _xlsx_lines(book: Any) -> Iterator[str]:
    for sheet in book.worksheets:
        for row in sheet.iter_rows(max_row=MOST_ROWS + 1, max_col=MOST_COLUMNS, values_only=True):
            yield " | ".join("" if value is None else str(value) for value in row).rstrip(" |")
