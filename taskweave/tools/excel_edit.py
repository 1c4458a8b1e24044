"""What stands in an Excel sheet: found, changed, sorted, renamed, removed.

Entry points: `sheet_set`, `sheet_find`, `sheet_sort`, `sheet_delete_rows`, `sheet_rename`, `sheet_remove`, `sheet_format`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.excel import MOST_SHEET_ROWS, Area, Cell, cells, changed, page_of, put, sheet_title, shown
from taskweave.tools.hand import Hand
from taskweave.tools.office import EXTRA, MOST_COLUMNS
from taskweave.tools.tool import Line, MaybeLine, Value, tool

MOST_HITS = 20
_FORMATS = {"whole": "0", "two decimals": "0.00", "percent": "0.0%", "thousands": "#,##0", "date": "yyyy-mm-dd"}


@tool(writes=True, needs=EXTRA)
def sheet_set(hand: Hand, name: Line, sheet: MaybeLine, cell: Cell, value: Value) -> Json:
    """Put a value into a cell of an Excel sheet, such as "B7".

    `sheet` is its name, or "" for the first.
    """
    called, book, page = page_of(hand, name, sheet)
    before = shown(page[cell].value)
    put(page[cell], value)
    return {**changed(hand, called, book), "cell": cell, "before": before}


@tool(needs=EXTRA)
def sheet_find(hand: Hand, name: Line, text: Line) -> Json:
    """Find the cells of an Excel workbook that hold some words: up to 20, each with its row."""
    called, book, _ = page_of(hand, name, "")
    hits: list[Json] = [
        {"sheet": page.title, "cell": cell.coordinate, "row": [shown(one.value) for one in row[:MOST_COLUMNS]]}
        for page in book.worksheets
        for row in page.iter_rows(max_row=MOST_SHEET_ROWS, max_col=MOST_COLUMNS)
        for cell in row
        if cell.value is not None and text.casefold() in str(cell.value).casefold()
    ]
    return {"name": called, "found": hits[:MOST_HITS], "more": len(hits) > MOST_HITS}


@tool(writes=True, needs=EXTRA)
def sheet_sort(hand: Hand, name: Line, sheet: MaybeLine, column: Line, order: Literal["rising", "falling"]) -> Json:
    """Sort the rows of an Excel sheet below its head line by one column, numbers before texts."""
    called, book, page = page_of(hand, name, sheet)
    head = ["" if cell.value is None else str(shown(cell.value)) for cell in page[1]]
    place = next((x for x, title in enumerate(head) if title.casefold() == column.casefold()), None)
    if place is None:
        raise ToolRefused(f"{page.title!r} has no column {column!r}; it has {', '.join(filter(None, head))}")
    rows = [[cell.value for cell in row] for row in page.iter_rows(min_row=2)]
    if any(isinstance(value, str) and value.startswith("=") for row in rows for value in row):
        raise ToolRefused(f"{page.title!r} has formulas, which would compute something else where they came to stand")
    numbers = [row for row in rows if isinstance(row[place], (int, float))]
    texts = [row for row in rows if row[place] is not None and not isinstance(row[place], (int, float))]
    numbers.sort(key=lambda row: row[place], reverse=order == "falling")
    texts.sort(key=lambda row: str(row[place]).casefold(), reverse=order == "falling")
    for y, row in enumerate([*numbers, *texts, *(row for row in rows if row[place] is None)], 2):
        for x, value in enumerate(row, 1):
            put(page.cell(y, x), value)
    return {**changed(hand, called, book), "rows": len(rows)}


@tool(writes=True, needs=EXTRA)
def sheet_delete_rows(
    hand: Hand,
    name: Line,
    sheet: MaybeLine,
    first: Annotated[int, Field(ge=2, le=MOST_SHEET_ROWS)],
    count: Annotated[int, Field(ge=1, le=200)],
) -> Json:
    """Take rows out of an Excel sheet, from row number `first` (the head line is row 1)."""
    called, book, page = page_of(hand, name, sheet)
    if first + count - 1 > page.max_row:
        raise ToolRefused(f"{page.title!r} ends with row {page.max_row}")
    page.delete_rows(first, count)
    return {**changed(hand, called, book), "rows": page.max_row - 1}


@tool(writes=True, needs=EXTRA)
def sheet_rename(hand: Hand, name: Line, sheet: Line, to: Line) -> Json:
    """Give a sheet of an Excel workbook another name."""
    called, book, page = page_of(hand, name, sheet)
    page.title = sheet_title(book, to)
    return {**changed(hand, called, book), "sheet": page.title}


@tool(writes=True, needs=EXTRA)
def sheet_remove(hand: Hand, name: Line, sheet: Line) -> Json:
    """Take a sheet out of an Excel workbook, which keeps at least one."""
    called, book, page = page_of(hand, name, sheet)
    if len(book.worksheets) == 1:
        raise ToolRefused(f"{page.title!r} is the only sheet of {called!r}, and stays")
    book.remove(page)
    return {**changed(hand, called, book), "sheets": [one.title for one in book.worksheets]}


@tool(writes=True, needs=EXTRA)
def sheet_format(
    hand: Hand,
    name: Line,
    sheet: MaybeLine,
    area: Area,
    numbers: Literal["whole", "two decimals", "percent", "thousands", "date"],
    bold: bool,
) -> Json:
    """Say how a range of an Excel sheet is shown: its numbers, and whether in bold."""
    called, book, page = page_of(hand, name, sheet)
    from openpyxl.styles import Font

    for row in cells(page, area):
        for cell in row:
            cell.number_format = _FORMATS[numbers]
            cell.font = Font(name=cell.font.name, size=cell.font.size, bold=bold)
    return {**changed(hand, called, book), "area": area}
