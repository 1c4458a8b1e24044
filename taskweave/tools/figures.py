"""The organization's key figures, as they were read week by week.  Entry points: `figure_list`, `figure_series`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, tool


@tool()
def figure_list(hand: Hand) -> Json:
    """List the key figures with their last reading and how it compares with the first."""
    query = """SELECT kpi AS figure, week, value, value -
    (SELECT value FROM readings AS f WHERE f.kpi = r.kpi ORDER BY week LIMIT 1) AS change
    FROM readings AS r WHERE week = (SELECT max(week) FROM readings AS l WHERE l.kpi = r.kpi) ORDER BY kpi"""
    return {"figures": [{**one, "change": float(f"{one['change']:.6g}")} for one in hand.dicts(query)]}


@tool()
def figure_series(hand: Hand, figure: Line, weeks: Annotated[int, Field(ge=1, le=52)]) -> Json:
    """Read a key figure week by week, up to the last reading."""
    known = [kpi for (kpi,) in hand.rows("SELECT DISTINCT kpi FROM readings ORDER BY kpi")]
    name = next((kpi for kpi in known if kpi.casefold() == figure.casefold()), None)
    if name is None:
        raise ToolRefused(f"there is no key figure {figure!r}; " + (f"there are {', '.join(known)}" if known else "none has been read yet"))
    found = hand.dicts("SELECT week, value FROM readings WHERE kpi = ? ORDER BY week DESC LIMIT ?", name, weeks)
    return {"figure": name, "readings": found[::-1]}
