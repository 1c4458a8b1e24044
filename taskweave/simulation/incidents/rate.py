"""When do incidents happen that name no time, where so many are to happen in each period?  Entry points: `given`, `spread`.

Every draw is keyed by the seed and the period: another horizon or another incident moves no earlier one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal, cast

from taskweave.errors import BadInput
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.records import Json
from taskweave.simulation.incidents.files import load_incidents

MOST = 20  # in a period
_RATE = re.compile(r"([1-9][0-9]{0,2})/(week|month|quarter|year)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Rate:
    """So many in each period of a length."""

    number: int
    period: Literal["week", "month", "quarter", "year"]


def read_rate(text: str) -> Rate:
    """What `1/month` says.  Raises BadInput."""
    found = _RATE.fullmatch("".join(text.split()))
    if found is None or int(found[1]) > MOST:
        raise BadInput(f"--rate {text}: write how many in which period, 1 to {MOST} a week, month, quarter or year, for example 1/month.")
    return Rate(number=int(found[1]), period=cast(Literal["week", "month", "quarter", "year"], found[2]))


def given(
    files: Sequence[Path], org: Organization, population: Population, calendar: WorkCalendar, *, rate: str | None, seed: int
) -> list[Mapping[str, Json]]:
    """The payloads of files, or of the library, as they happen at this rate.  Raises BadInput, and IncidentInvalid for a file."""
    asked = None if rate is None else read_rate(rate)
    payloads: list[Mapping[str, Json]] = [one for file in files for one in load_incidents(file, org, population, calendar)]
    return payloads if asked is None else spread(payloads, asked, calendar, seed)


def spread(payloads: Sequence[Mapping[str, Json]], rate: Rate, calendar: WorkCalendar, seed: int) -> list[Mapping[str, Json]]:
    """The payloads of a year: those with a time or a trigger as they are, and the others drawn, each with its working day.

    None is drawn again before all others were.  Raises BadInput where there is none to draw.
    """
    own = [payload for payload in payloads if payload.get("tick") is not None or "chance" in payload or "when" in payload]
    deck = [payload for payload in payloads if payload not in own]
    if not deck:
        raise BadInput(
            "--rate draws from incidents that name no time and no trigger, and none was given. Add --incidents library:all, for example."
        )
    drawn: list[Mapping[str, Json]] = []
    order: list[int] = []
    for place, days in enumerate(_periods(calendar, rate.period)):
        draw = Random(f"{seed}:rate:{rate.period}:{place}")
        for day in sorted(draw.sample(days, min(rate.number, len(days)))):
            left = [number for number in range(len(deck)) if number not in order]
            if not left:
                order, left = [], list(range(len(deck)))
            order.append(draw.choice(left))
            drawn.append({**deck[order[-1]], "tick": day})
    return [*own, *drawn]


def _periods(calendar: WorkCalendar, period: str) -> list[list[int]]:
    """The working days of each period, in order."""
    found: dict[int, list[int]] = {}
    for week in calendar.weeks:
        number = {"week": week.number, "month": week.month, "quarter": week.quarter, "year": 1}[period]
        found.setdefault(number, []).extend(range(week.first_day, week.first_day + week.day_count))
    return [days for days in found.values() if days]
