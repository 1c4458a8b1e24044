"""How do the key figures of the file's `environment` read, and what moves them?

Entry points: `KPI` (how one is read), `check`, `resolve`, `written` (as it stands in a file), `season_on`.  Pure rules over what the file
says: refuses to draw a number and to know what a figure is now.
"""

from __future__ import annotations

import math
from calendar import monthrange
from collections.abc import Mapping
from datetime import date

from taskweave.org import form
from taskweave.org.form import Field, Kind, Reading, Where, nearest, said
from taskweave.org.organization import Kpi
from taskweave.org.yamlfile import Mapping as MappingNode
from taskweave.org.yamlfile import Node
from taskweave.records import Json

Raw = Mapping[str, Json]
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
ROLE, WORK, GOAL = "role:", "work:", "goal:"  # what stands before a name that moves a figure; a goal's name stands alone
_PLACES = 6


# ------------------------------------------------------------ how it is read
def _month(text: str) -> int:
    low = text.casefold()
    found = [number for number, name in enumerate(MONTHS, 1) if low in (name, name[:3], str(number), f"{number:02}")]
    if not found:
        raise ValueError(f"{said(text)} is not a month such as 'december', 'dec' or 12{nearest(text, MONTHS)}")
    return found[0]


def _month_name(text: str) -> str:
    return MONTHS[_month(text) - 1]


_WAVE = form.record(
    {
        "amplitude": Field(
            form.number(least=0), "by how much it lies above its level at the peak, and below it half a year later", required=True
        ),
        "peak": Field(
            form.scalar(_month, {"anyOf": [{"type": "integer", "minimum": 1, "maximum": 12}, {"enum": list(MONTHS)}]}, "a month"),
            "the month in which it is highest",
            required=True,
        ),
    }
)
_BY_MONTH = form.mapping_of(_month_name, form.number(), "a month")


def _read_season(reading: Reading, node: Node, path: Where) -> Json:
    """A wave over the year, or by how much it lies above its level in months that are named."""
    keys = {key.text for key, _ in node.entries} if isinstance(node, MappingNode) else set()
    kind = _BY_MONTH if keys and not keys & {"amplitude", "peak"} else _WAVE
    return kind.read(reading, node, path)


_SEASON = Kind(_read_season, {"anyOf": [dict(_WAVE.schema), dict(_BY_MONTH.schema)]})
_MOVED = form.mapping_of(form.clean_name, form.number(least=0), "a goal, role or work")
KPI = form.record(
    {
        "start": Field(form.number(), "first value", required=True),
        "unit": Field(form.TEXT, "unit"),
        "drift": Field(form.WEEKLY, "change a week without anybody's doing, such as '+0.02/week'"),
        "noise": Field(form.number(least=0), "standard deviation of the weekly change"),
        "season": Field(_SEASON, "how it comes and goes with the year: {amplitude: 5, peak: december}, or months with what each adds"),
        "least": Field(form.number(), "what it never falls below; 0 where it starts above 0"),
        "most": Field(form.number(), "what it never rises above; 100 where its unit begins with %"),
        "lowered_by": Field(_MOVED, "by how much a finished planned hour of a goal or role, or a finished case of a work, lowers it"),
        "raised_by": Field(_MOVED, "by how much a finished planned hour of a goal or role, or a finished case of a work, raises it"),
    },
    short="start",
)


# ------------------------------------------------------------ what does not fit together
def check(raw: Raw, reading: Reading) -> None:
    """Note every problem of `environment`."""
    for kpi, values in raw.get("environment", {}).items():
        for low, high in (("least", "start"), ("start", "most")):
            if low in values and high in values and values[low] > values[high]:
                what = f"environment.{kpi}: {low!r} is {values[low]:g} and {high!r} {values[high]:g}; "
                bound = low if high == "start" else high
                reading.wrong_at(("environment", kpi, bound), f"{what}a figure starts between its 'least' and its 'most'")
        for key in ("lowered_by", "raised_by"):
            moved: dict[str, str] = {}
            for name in values.get(key, {}):
                found = _meant(name, raw)
                path, place = ("environment", kpi, key, name), f"environment.{kpi}.{key}"
                if not found:
                    goals = raw.get("goals", {})
                    others = [*goals, *raw["roles"], *raw.get("work", {})]
                    kinds = "goal" if len(others) == len(goals) or _looks_like_goal(name, goals) else "goal, role or work"
                    reading.wrong_at(path, f"unknown {kinds} {said(name)} in {place}{nearest(name, others)}")
                elif len(found) > 1:
                    choices = " or ".join(repr(one if one.startswith((ROLE, WORK)) else f"{GOAL}{one}") for one in found)
                    reading.wrong_at(path, f"{said(name)} in {place} may be any of several; write {choices}")
                elif (other := moved.setdefault(found[0], name)) != name:
                    reading.wrong_at(path, f"{said(name)} and {said(other)} in {place} are the same; write it once")


def _looks_like_goal(name: str, goals: Mapping[str, Json]) -> bool:
    return "did you mean" in nearest(name, goals)


def _meant(name: str, raw: Raw) -> list[str]:
    """What a name may mean, as it is kept: a goal's name alone, `role:TITLE`, `work:NAME`."""
    places = ((GOAL, "", "goals"), (ROLE, ROLE, "roles"), (WORK, WORK, "work"))
    plain = [kept + name for _, kept, key in places if name in raw.get(key, {})]
    full = [
        kept + rest
        for prefix, kept, key in places
        if name.startswith(prefix) and (rest := name.removeprefix(prefix).strip()) in raw.get(key, {})
    ]
    return list(dict.fromkeys([*full, *plain]))


# ------------------------------------------------------------ as values, and as written
def resolve(kpi: Raw, raw: Raw) -> Kpi:
    """The figure with what the file left out, for values that `check` found sound."""
    values = {**_bounds(kpi), **kpi}
    for key in ("lowered_by", "raised_by"):
        if key in values:
            values[key] = {_meant(name, raw)[0]: by for name, by in values[key].items()}
    if "season" in values:
        values["season"] = _by_month(values["season"])
    return Kpi(**values)


def _bounds(kpi: Raw) -> dict[str, float]:
    """What a reading cannot leave: a count or a share does not become negative, a share not more than the whole."""
    start = kpi["start"]
    bounds = {"least": 0.0} if start > 0 else {}
    return bounds | ({"most": 100.0} if start <= 100 and str(kpi.get("unit", "")).startswith("%") else {})


def _by_month(season: Raw) -> tuple[float, ...]:
    if "amplitude" in season:
        turns = (2 * math.pi * (month - season["peak"]) / 12 for month in range(1, 13))
        return tuple(round(season["amplitude"] * math.cos(turn), _PLACES) + 0.0 for turn in turns)  # no -0.0
    return tuple(float(season.get(name, 0.0)) for name in MONTHS)


def written(kpi: Kpi) -> dict[str, Json]:
    """The values under the keys of the file, each as it is written there."""
    values = kpi.model_dump()
    if kpi.season is not None:
        values["season"] = dict(zip(MONTHS, kpi.season, strict=True))
    return values


def season_on(kpi: Kpi, day: date) -> float:
    """By how much the figure lies above its level on a day: what its month says in the middle of it, evenly from one to the next."""
    if kpi.season is None:
        return 0.0
    place = day.month - 1.5 + (day.day - 0.5) / monthrange(day.year, day.month)[1]
    before = math.floor(place)
    part = place - before
    return kpi.season[before % 12] * (1 - part) + kpi.season[(before + 1) % 12] * part
