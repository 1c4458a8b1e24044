"""What does an incident do to the organization, and when does it happen?  The values that its file is read into.

Entry points: `Incident`, the effects, `after`.  Each value says itself again as JSON, as it lies in the journal, by names that the
organization has.  They refuse to act: `simulation/acting.py` does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

from taskweave.org.calendar import WorkCalendar
from taskweave.records import Json, Priority
from taskweave.simulation.incidents.names import Kind, Who

Category = Literal["policy", "economic", "technology", "internal"]
Severity = Literal["low", "medium", "high"]
Pressing = Literal["urgent", "high", "normal", "low"]
DURATION = "4 weeks"  # of an incident that names none
SPAN = re.compile(r"(\d{1,3})\s*(day|week|month)s?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Whom an effect strikes: those of the names, of one kind; of no kind: whoever the incident affects."""

    kind: Kind | None = None
    names: tuple[str, ...] = ()

    def agents(self, who: Who, affected: frozenset[str]) -> tuple[str, ...]:
        """Their ids, in the order of the names."""
        if self.kind is None:
            return tuple(agent.id for agent in who.population if agent.id in affected)
        return tuple(dict.fromkeys(agent for name in self.names for agent in who.named(name, self.kind)))

    def said(self) -> dict[str, Json]:
        if self.kind is None:
            return {}
        return {self.kind: self.names[0] if len(self.names) == 1 else list(self.names)}


@dataclass(frozen=True, kw_only=True, slots=True)
class News:
    """What is heard beside the description."""

    text: str

    def said(self) -> Json:
        return {"news": self.text}


@dataclass(frozen=True, kw_only=True, slots=True)
class Absence:
    """Who is taken off work: `count` of the target's agents (None for all), for a span of time."""

    target: Target
    count: int | None
    span: str

    def agents(self, who: Who, affected: frozenset[str], draw: random.Random) -> tuple[str, ...]:
        """The agents, drawn where only some of those named are away."""
        return drawn(self.target.agents(who, affected), self.count, draw)

    def said(self) -> Json:
        return {"absence": {**self.target.said(), "for": self.span, **given(count=self.count)}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """Who leaves for good: `count` of the target's agents who lead nobody (None for all of these)."""

    target: Target
    count: int | None

    def said(self) -> Json:
        return {"departure": {**self.target.said(), **given(count=self.count)}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Hire:
    """`count` new agents of a role, who begin when the span `wait` is over."""

    role: str
    wait: str
    count: int

    def said(self) -> Json:
        return {"hire": {"role": self.role, "in": self.wait, "count": self.count}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """A task that must be done: `hours` of it by agents of one role of the target, `due` a span of time after the incident."""

    target: Target
    title: str
    hours: float
    due: str
    priority: Pressing
    goals: tuple[str, ...]

    def said(self) -> Json:
        told = {"title": self.title, "hours": self.hours, "due": self.due, "priority": self.priority}
        return {"workload": {**self.target.said(), **told, **given(goals=list(self.goals) or None)}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Free:
    """How much of their free hours the target's agents have left for planning; `span` None: while the incident is in force."""

    target: Target
    factor: float
    span: str | None

    def said(self) -> Json:
        return {"capacity": {**self.target.said(), "factor": self.factor, **given(**{"for": self.span})}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """Of the target: no more than so many `hours` of new tasks are planned (None: as many as there are); `freeze`: nobody is hired."""

    target: Target
    hours: float | None
    freeze: bool
    span: str | None

    def said(self) -> Json:
        hiring = "freeze" if self.freeze else None
        return {"budget": {**self.target.said(), **given(hours=self.hours, hiring=hiring, **{"for": self.span})}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Push:
    """Key figures are shifted once, and pushed by `slope` a week for a span (None: while the incident is in force)."""

    shifts: Mapping[str, float]
    slope: float
    span: str | None

    def said(self) -> Json:
        return {"kpi": {**self.shifts, **given(slope=f"{self.slope!r}/week" if self.slope else None, **{"for": self.span})}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Outage:
    """A tool that does not work for a span."""

    tool: str
    span: str | None

    def said(self) -> Json:
        return {"tool_outage": {"tool": self.tool, **given(**{"for": self.span})}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Deadline:
    """A goal is due on another day."""

    goal: str
    by: date

    def said(self) -> Json:
        return {"deadline": {"goal": self.goal, "by": self.by.isoformat()}}


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """Tasks of a goal come before or after others."""

    goal: str
    to: Priority

    def said(self) -> Json:
        return {"priority": {"goal": self.goal, "to": self.to}}


Effect = News | Absence | Departure | Hire | Workload | Free | Budget | Push | Outage | Deadline | Ranking


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger:
    """What makes an incident happen at a week's opening: by `chance` a week, when a key figure is beyond a bound, or both at once."""

    chance: float | None = None
    kpi: str | None = None
    above: float | None = None
    below: float | None = None
    repeats: bool = False

    def holds(self, value: float | None) -> bool:
        """Whether the figure's value lets it happen; one that is not read never does."""
        if self.kpi is None:
            return True
        return value is not None and (self.above is None or value > self.above) and (self.below is None or value < self.below)

    def said(self) -> dict[str, Json]:
        when = None if self.kpi is None else {"kpi": self.kpi, **given(above=self.above, below=self.below)}
        chance = None if self.chance is None else f"{self.chance!r}/week"
        return given(chance=chance, when=when, repeats=self.repeats or None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """One incident as its file says it; `affects` is None for all, `at` None for one injected into a live run.

    `basis` is what really happened, for whoever reads the file: nobody in the organization hears of it.
    """

    title: str
    category: Category
    description: str
    severity: Severity
    affects: tuple[str, ...] | None
    at: str | None
    duration: str
    effects: tuple[Effect, ...]
    trigger: Trigger | None = None
    basis: str = ""

    def payload(self, calendar: WorkCalendar) -> dict[str, Json]:
        """The same as it lies in the inbox and the journal; `tick` is the working day it is meant for, where it names one."""
        payload: dict[str, Json] = {
            "title": self.title,
            "category": self.category,
            "description": self.description,
            "severity": self.severity,
            "affects": "all" if self.affects is None else list(self.affects),
            "duration": self.duration,
            "effects": [effect.said() for effect in self.effects],
        }
        if self.trigger is not None:
            payload |= self.trigger.said()
        if self.at is not None:
            payload |= {"at": self.at, "tick": calendar.tick_of(self.at)}
        return payload

    def text(self) -> str:
        """What is heard: the description and the news."""
        news = [effect.text for effect in self.effects if isinstance(effect, News)]
        return " ".join(part for part in (self.description, *news) if part)


def given(**values: Json) -> dict[str, Json]:
    """The values that there are."""
    return {name: value for name, value in values.items() if value is not None}


def drawn(names: tuple[str, ...], count: int | None, draw: random.Random) -> tuple[str, ...]:
    """`count` of the names, in their order; all of them where there are no more."""
    if count is None or count >= len(names):
        return names
    chosen = set(draw.sample(names, count))
    return tuple(name for name in names if name in chosen)


def after(start: date, span: str) -> date:
    """The date that lies `span` ("3 days", "4 weeks", "2 months") after `start`."""
    found = SPAN.fullmatch(span.strip())
    assert found is not None
    number, unit = int(found[1]), found[2]
    return months_on(start, number) if unit == "month" else start + timedelta(days=number * (7 if unit == "week" else 1))


def before(end: date, span: str) -> date:
    """The date that lies `span` before `end`."""
    found = SPAN.fullmatch(span.strip())
    assert found is not None
    number, unit = int(found[1]), found[2]
    return months_on(end, -number) if unit == "month" else end - timedelta(days=number * (7 if unit == "week" else 1))


def months_on(start: date, number: int) -> date:
    """The same day so many months on, or the month's last where it has no such day."""
    month = start.month - 1 + number
    first = date(start.year + month // 12, month % 12 + 1, 1)
    next_first = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    return first.replace(day=min(start.day, (next_first - timedelta(days=1)).day))
