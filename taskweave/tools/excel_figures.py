"""What an Excel sheet computes and shows: formulas, sums, charts.

Entry points: `sheet_formula`, `sheet_total`, `sheet_group`, `sheet_chart`.  A formula names cells of its own sheet and a few functions, and
nothing that reaches elsewhere.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.excel import Area, Cell, cells, changed, page_of, shown
from taskweave.tools.hand import Hand
from taskweave.tools.office import EXTRA, MOST_ROWS
from taskweave.tools.tool import Line, MaybeLine, tool

MOST_CHARTS, MOST_GROUPS = 5, 50  # of a sheet; of an answer
FUNCTIONS = ("SUM", "AVERAGE", "MIN", "MAX", "COUNT", "ROUND", "ABS", "IF")
_TOKEN = re.compile(
    rf"\s*(?:({'|'.join(FUNCTIONS)})(?=\()|[A-T][1-9][0-9]{{0,3}}(?::[A-T][1-9][0-9]{{0,3}})?|[0-9]+(?:\.[0-9]+)?|<=|>=|<>|[-+*/(),<>=])"
)

Function = Literal["sum", "average", "min", "max", "count"]


@tool(writes=True, needs=EXTRA)
def sheet_formula(hand: Hand, name: Line, sheet: MaybeLine, cell: Cell, formula: Line) -> Json:
    """Put a formula into a cell, such as "=ROUND(B2*C2,1)".

    It may name cells of its sheet, SUM, AVERAGE, MIN, MAX, COUNT, ROUND, ABS and IF.
    """
    called, book, page = page_of(hand, name, sheet)
    written = formula.upper()
    place = 1
    if not written.startswith("=") or len(written) == 1:
        raise ToolRefused(f"{formula!r} is no formula: it must begin with '='")
    while place < len(written):
        token = _TOKEN.match(written, place)
        if token is None:
            raise ToolRefused(
                f"{formula!r} holds {written[place : place + 20]!r}, which no formula here may. It takes {', '.join(FUNCTIONS)}"
            )
        place = token.end()
    if written.count("(") != written.count(")"):
        raise ToolRefused(f"{formula!r} has a bracket that is not closed")
    if re.search(rf"(?<![A-Z0-9]){cell}(?![0-9])", written):
        raise ToolRefused(f"{formula!r} names the cell {cell} in which it is to stand")
    page[cell].value = written
    return {**changed(hand, called, book), "cell": cell, "formula": written}


@tool(needs=EXTRA)
def sheet_total(hand: Hand, name: Line, sheet: MaybeLine, area: Area, function: Function) -> Json:
    """Compute the sum, average, min, max or count of a range of an Excel sheet."""
    called, _, page = page_of(hand, name, sheet)
    numbers = [float(cell.value) for row in cells(page, area) for cell in row if _is_number(cell.value)]
    return {"name": called, "area": area, "numbers": len(numbers), function: _computed(numbers, function)}


@tool(needs=EXTRA)
def sheet_group(hand: Hand, name: Line, sheet: MaybeLine, by: Line, column: Line, function: Function) -> Json:
    """Compute the sum, average, min, max or count of a column for each value of another."""
    called, _, page = page_of(hand, name, sheet)
    head = ["" if cell.value is None else str(shown(cell.value)).casefold() for cell in page[1]]
    for wanted in (by, column):
        if wanted.casefold() not in head:
            raise ToolRefused(f"{page.title!r} has no column {wanted!r}; it has {', '.join(filter(None, head))}")
    key, value = head.index(by.casefold()), head.index(column.casefold())
    groups: dict[str, list[float]] = {}
    for row in page.iter_rows(min_row=2, values_only=True):
        if _is_number(row[value]):
            groups.setdefault(str(shown(row[key]) or ""), []).append(float(row[value]))
    told = [{by: name, function: _computed(groups[name], function)} for name in sorted(groups)]
    return {"name": called, "groups": told[:MOST_GROUPS], "more": len(told) > MOST_GROUPS}


@tool(writes=True, needs=EXTRA)
def sheet_chart(hand: Hand, name: Line, sheet: MaybeLine, title: Line, kind: Literal["bar", "line", "pie"], values: Area) -> Json:
    """Draw a chart of a range of an Excel sheet.

    The first column of `values` names the points; the others, with head lines, hold them.
    """
    called, book, page = page_of(hand, name, sheet)
    from openpyxl import chart as charts

    if len(page._charts) >= MOST_CHARTS:
        raise ToolRefused(f"{page.title!r} has {MOST_CHARTS} charts, and takes no more")
    rows = cells(page, values)
    if len(rows) < 2 or len(rows[0]) < 2 or len(rows) > MOST_ROWS:
        raise ToolRefused(f"{values!r} must have a head line, a first column with names, and at least one with numbers")
    first, last = rows[0][0], rows[-1][-1]
    made: Any = {"bar": charts.BarChart, "line": charts.LineChart, "pie": charts.PieChart}[kind]()
    made.title = title
    data = charts.Reference(page, min_col=first.column + 1, max_col=last.column, min_row=first.row, max_row=last.row)
    made.add_data(data, titles_from_data=True)
    made.set_categories(charts.Reference(page, min_col=first.column, min_row=first.row + 1, max_row=last.row))
    page.add_chart(made, f"{'VWXYZ'[len(page._charts)]}2")
    return {**changed(hand, called, book), "chart": len(page._charts), "points": len(rows) - 1}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _computed(numbers: list[float], function: Function) -> Json:
    if function == "count":
        return len(numbers)
    if not numbers:
        return None
    total = sum(numbers)
    found = {"sum": total, "min": min(numbers), "max": max(numbers), "average": total / len(numbers)}[function]
    return float(f"{found:.10g}")
