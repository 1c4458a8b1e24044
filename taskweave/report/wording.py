"""How is a number said?  Entry points: `percent`, `plural`.  Knows nothing of what the number counts."""

from __future__ import annotations

DASH = "–"


def plural(number: int, what: str) -> str:
    """(1, "week") -> "1 week", (1200, "week") -> "1,200 weeks"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(value: float | None, digits: int = 0) -> str:
    """0.25 -> "25 %"; a dash where there is no value.

    Only what is exactly all or nothing reads so: 0.996 -> "99.6 %", 0.9999 -> "> 99.9 %", 0.0001 -> "< 0.1 %".
    """
    if value is None:
        return DASH
    if value in (0, 1):
        return f"{100 * value:.{digits}f} %"
    for places in dict.fromkeys((digits, 1)):
        said = f"{100 * value:.{places}f}"
        if float(said) not in (0, 100):
            return f"{said} %"
    return "> 99.9 %" if value > 0.5 else "< 0.1 %"
