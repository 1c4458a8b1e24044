"""A measured figure beside its bar, and how both are printed.  Entry points: `Row`, `render`.  It measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

DASH = "–"


class Row(NamedTuple):
    """One figure: what it is, its value (None: it could not be measured), its bar (None: there is none) and what it was taken over.

    A bar is the most that the value may be, or with `least` the least.
    """

    what: str
    value: float | None
    bar: float | None
    over: str
    shown: Callable[[float], str]
    least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the bar was reached; None where there is none, or no value."""
        if self.value is None or self.bar is None:
            return None
        return self.value >= self.bar if self.least else self.value <= self.bar

    def without_bar(self) -> Row:
        """The same figure of something else than what the bar was set for."""
        return self._replace(bar=None)


def render(rows: Sequence[Row]) -> list[str]:
    """A line each under one head, in columns: what, measured, bar, whether it was met, and over what."""
    lines = [("what", "measured", "bar", "met", "over")]
    for row in rows:
        bar = "" if row.bar is None else f"{'>=' if row.least else '<='} {row.shown(row.bar)}"
        met = {True: "yes", False: "NO", None: ""}[row.met]
        lines.append((row.what, DASH if row.value is None else row.shown(row.value), bar, met, row.over))
    wide = [max(len(line[column]) for line in lines) for column in range(4)]
    return [
        f"{what:<{wide[0]}}  {value:>{wide[1]}}  {bar:<{wide[2]}}  {met:<{wide[3]}}  {over}".rstrip()
        for what, value, bar, met, over in lines
    ]


def whole(value: float) -> str:
    return f"{value:,.0f}"


def fraction(value: float) -> str:
    return f"{value:.2f}"


def dollars(value: float) -> str:
    return f"${value:.2f}"


def seconds(value: float) -> str:
    return f"{value:.1f} s"


def milliseconds(value: float) -> str:
    return f"{1000 * value:.3f} ms"


def megabytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB"
