"""Excel workbooks: written, added to, read by range.

Entry points: `sheet_write`, `sheet_append`, `sheet_read`, `sheet_names`, `sheet_add`.  What a cell may compute stays in its sheet; what
stands there is changed in `excel_edit.py`, and computed in `excel_figures.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import BeforeValidator, StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.office import EXCEL, EXTRA, MOST_COLUMNS, MOST_ROWS, Columns, Rows, keep, opened, package
from taskweave.tools.tool import Line, MaybeLine, tool

MOST_SHEETS, MOST_SHEET_ROWS = 20, 5_000
# What a cell may compute: sums and the like over cells of the same sheet.  All else that begins with "=" is text.
_FORMULA = re.compile(r"=(SUM|AVERAGE|MIN|MAX|COUNT)\([A-Z]{1,2}[0-9]{1,4}:[A-Z]{1,2}[0-9]{1,4}\)")
_CELL = r"[A-T][1-9][0-9]{0,3}"  # MOST_COLUMNS columns

_Upper = BeforeValidator(lambda given: given.strip().upper() if isinstance(given, str) else given)
Cell = Annotated[str, _Upper, StringConstraints(pattern=rf"^{_CELL}$")]
Area = Annotated[str, _Upper, StringConstraints(pattern=rf"^{_CELL}:{_CELL}$")]


@tool(writes=True, needs=EXTRA)
def sheet_write(hand: Hand, name: Line, columns: Columns, rows: Rows) -> Json:
    """Write an Excel sheet with a head line and rows; a cell may hold a sum like =SUM(B2:B9).

    Also AVERAGE, MIN, MAX and COUNT.
    """
    book = package("openpyxl").Workbook()
    book.properties.creator, book.properties.created = hand.me.name, datetime.fromisoformat(hand.moment)
    fill(book.active, [columns, *rows], 1, len(columns))
    return changed(hand, name, book)


@tool(writes=True, needs=EXTRA)
def sheet_append(hand: Hand, name: Line, sheet: MaybeLine, rows: Rows) -> Json:
    """Add rows to an Excel sheet; `sheet` is its name, or "" for the first."""
    called, book, page = page_of(hand, name, sheet)
    before = page.max_row
    fill(page, rows, before + 1, page.max_column)
    return {**changed(hand, called, book), "first_row": before + 1, "rows": len(rows)}


@tool(needs=EXTRA)
def sheet_read(hand: Hand, name: Line, sheet: MaybeLine, area: Area) -> Json:
    """Read a range of an Excel sheet, such as "A1:D20".

    `sheet` is its name, or "" for the first.
    """
    called, _, page = page_of(hand, name, sheet)
    rows = [[shown(cell.value) for cell in row[:MOST_COLUMNS]] for row in cells(page, area)[:MOST_ROWS]]
    return {"name": called, "sheet": page.title, "rows": rows}


@tool(needs=EXTRA)
def sheet_names(hand: Hand, name: Line) -> Json:
    """List the sheets of an Excel workbook, with their columns and numbers of rows."""
    called, book = opened(hand, name, EXCEL)
    told = [
        {
            "sheet": page.title,
            "columns": [shown(c.value) for c in page[1][:MOST_COLUMNS]],
            "rows": page.max_row - 1,
            "charts": len(page._charts),
        }
        for page in book.worksheets
    ]
    return {"name": called, "sheets": told}


@tool(writes=True, needs=EXTRA)
def sheet_add(hand: Hand, name: Line, sheet: Line, columns: Columns, rows: Rows) -> Json:
    """Add a sheet with a head line and rows to an Excel workbook."""
    called, book = opened(hand, name, EXCEL)
    if len(book.worksheets) >= MOST_SHEETS:
        raise ToolRefused(f"{called!r} has {MOST_SHEETS} sheets, and takes no more")
    page = book.create_sheet(sheet_title(book, sheet))
    fill(page, [columns, *rows], 1, len(columns))
    return {**changed(hand, called, book), "sheet": page.title}


def fill(page: Any, rows: Sequence[Sequence[Json]], first: int, width: int) -> None:
    """Write rows from row number `first` on; raises ToolRefused for one wider than the sheet, and where the sheet would be too long."""
    if first + len(rows) - 1 > MOST_SHEET_ROWS:
        raise ToolRefused(f"the sheet would have more than {MOST_SHEET_ROWS} rows; begin another one")
    for y, row in enumerate(rows, first):
        if len(row) > width:
            raise ToolRefused(f"sheet row {y - 1} has {len(row)} cells for {width} columns")
        for x, value in enumerate(row, 1):
            put(page.cell(y, x), value)


def put(cell: Any, value: Json) -> None:
    """A value into a cell: nothing but what `_FORMULA` says is a formula, since a cell must not reach out of its sheet."""
    cell.value = value
    if isinstance(value, str) and not _FORMULA.fullmatch(value):
        cell.data_type = "s"


def cells(page: Any, area: str) -> list[tuple[Any, ...]]:
    """The rows of cells in a range; raises ToolRefused where it is turned, or larger than one call may touch."""
    first, last = area.split(":")
    if ord(last[0]) < ord(first[0]) or int(last[1:]) < int(first[1:]):
        raise ToolRefused(f"{area!r} ends before it begins; write the upper left cell first")
    if int(last[1:]) - int(first[1:]) >= MOST_ROWS:
        raise ToolRefused(f"{area!r} has more than {MOST_ROWS} rows; take a part of it")
    return [tuple(row) for row in page[area]]


def page_of(hand: Hand, name: str, sheet: str) -> tuple[str, Any, Any]:
    """A workbook's full name, the workbook, and the sheet that is meant."""
    called, book = opened(hand, name, EXCEL)
    page = book.worksheets[0] if not sheet else next((one for one in book.worksheets if one.title.casefold() == sheet.casefold()), None)
    if page is None:
        raise ToolRefused(f"{called!r} has no sheet {sheet!r}; it has {', '.join(one.title for one in book.worksheets)}")
    return called, book, page


def sheet_title(book: Any, wanted: str) -> str:
    """A name that a sheet may have; raises ToolRefused where it may not, or another one has it."""
    if len(wanted) > 31 or re.search(r"[][*/\\?:']", wanted):
        raise ToolRefused(f"{wanted!r} cannot be a sheet's name: at most 31 characters, none of []*/\\?:'")
    if any(page.title.casefold() == wanted.casefold() for page in book.worksheets):
        raise ToolRefused(f"there is a sheet {wanted!r} already; give another name")
    return wanted


def changed(hand: Hand, name: str, book: Any) -> Json:
    """The workbook as its next revision, changed by who acts."""
    book.properties.lastModifiedBy = hand.me.name
    return keep(hand, name, EXCEL, book)


def shown(value: Any) -> Json:
    """What a cell holds, as JSON."""
    return value if value is None or isinstance(value, (str, int, float)) else str(value)
