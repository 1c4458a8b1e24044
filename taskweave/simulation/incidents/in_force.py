"""Which incidents are in force, who hears them, and what holds because of them?

Entry point: `Incidents`, those of a running year.  An incident is heard from its tick until its end by the units that it affects and
their ancestors.  It refuses to change anything: `simulation/acting.py` does.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.records import Json
from taskweave.simulation.incidents.effects import Budget, Free, Incident, Outage, Push, Target, after
from taskweave.simulation.incidents.files import read_incident
from taskweave.simulation.incidents.names import Who

Spanned = TypeVar("Spanned", Free, Budget, Outage, Push)


@dataclass(frozen=True, kw_only=True, slots=True)
class InForce:
    """An incident that has been heard of: from working day `tick`, the date `since`, up to the date `until`."""

    id: str
    incident: Incident
    tick: int
    since: date
    until: date
    agents: frozenset[str]

    @staticmethod
    def end_of(span: str, start: date) -> date:
        """The first date after an effect that lasts `span` from `start`."""
        return after(start, span)

    def as_input(self) -> Json:
        """As the prompts of plans show it."""
        return self.brief() | {"until": self.until.isoformat()}

    def brief(self) -> dict[str, Json]:
        """As the prompt of a response shows it."""
        incident = self.incident
        return {
            "title": incident.title,
            "category": incident.category,
            "severity": incident.severity,
            "description": incident.text(),
        }

    def holding(self, kind: type[Spanned], today: date) -> list[tuple[int, Spanned]]:
        """Its effects of one kind that hold today, each with its place among all."""
        return [
            (place, effect)
            for place, effect in enumerate(self.incident.effects)
            if isinstance(effect, kind) and self.since <= today < (self.until if effect.span is None else after(self.since, effect.span))
        ]


@dataclass(slots=True)
class Armed:
    """An incident that waits for its trigger; `times` is how often it has happened."""

    id: str
    payload: Mapping[str, Json]
    incident: Incident
    times: int = 0
    until: date | None = None  # of the last time


class Incidents:
    """The incidents of a year, and who hears which."""

    def __init__(self, org: Organization, population: Population, delegation: Delegation, calendar: WorkCalendar) -> None:
        self._org, self._population, self._delegation, self._calendar = org, population, delegation, calendar
        self.who = Who(org, population)
        self._all: list[InForce] = []
        self._armed: list[Armed] = []
        self._over: set[str] = set()
        self._struck: dict[tuple[str, Target], frozenset[str]] = {}
        self._spent: dict[tuple[str, int], float] = {}  # hours of new tasks, by incident and effect

    def work_with(self, org: Organization, population: Population, delegation: Delegation) -> None:
        """From now on these are who works there, since somebody was hired, or what they work for."""
        self._org, self._population, self._delegation = org, population, delegation
        self.who = Who(org, population)
        self._struck.clear()

    # ------------------------------------------------------------ being heard
    def hear(self, id: str, payload: Json, tick: int) -> InForce:
        """Add what came with a tick.  Raises IncidentInvalid."""
        incident = read_incident(payload, self._org, self._population, self._calendar)
        if incident.affects is None:
            agents = frozenset(agent.id for agent in self._population.agents)
        else:
            agents = frozenset(agent for name in incident.affects for agent in self.who.named(name))
        since = self._calendar.days[tick]
        until = after(since, incident.duration)
        heard = InForce(id=id, incident=incident, tick=tick, since=since, until=until, agents=agents)
        self._all.append(heard)
        return heard

    def arm(self, id: str, payload: Mapping[str, Json]) -> bool:
        """Keep what happens only when its trigger says so; False where it has none.  Raises IncidentInvalid."""
        if not isinstance(payload, dict) or not ("chance" in payload or "when" in payload):
            return False
        incident = read_incident(payload, self._org, self._population, self._calendar)
        self._armed.append(Armed(id=id, payload=payload, incident=incident))
        return True

    def fired(self, week: int, today: date, readings: Mapping[str, float], seed: int) -> list[tuple[str, Json]]:
        """Ids and payloads of those armed whose trigger says that they happen in this week, whose first working day is `today`.

        One that repeats does not happen again while its last time is in force; then it is `ID.2`, and so on.
        """
        found: list[tuple[str, Json]] = []
        for armed in self._armed:
            trigger = armed.incident.trigger
            assert trigger is not None
            if armed.times and not (trigger.repeats and armed.until is not None and armed.until <= today):
                continue
            draw = random.Random(f"{seed}:trigger:{armed.id}:W{week}").random()
            if (trigger.chance is not None and draw >= trigger.chance) or not trigger.holds(readings.get(trigger.kpi or "")):
                continue
            armed.times += 1
            armed.until = after(today, armed.incident.duration)
            id = armed.id if armed.times == 1 else f"{armed.id}.{armed.times}"
            found.append((id, {key: value for key, value in armed.payload.items() if key not in ("chance", "when", "repeats", "at")}))
        return found

    def in_force(self, owner: str, day: int) -> tuple[InForce, ...]:
        """What the units of `owner` hear on this working day: what affects it, or anybody below it."""
        now = self._now(day)
        below = {owner, *self._delegation.descendants(owner)} if now else set()
        return tuple(heard for heard in now if heard.agents & below)

    def ended(self, day: int) -> list[InForce]:
        """Those that ended since this was last asked."""
        today = self._calendar.days[day]
        over = [heard for heard in self._all if heard.until <= today and heard.id not in self._over]
        self._over.update(heard.id for heard in over)
        return over

    def _now(self, day: int) -> list[InForce]:
        today = self._calendar.days[day]
        return [heard for heard in self._all if heard.tick <= day and today < heard.until]

    # ------------------------------------------------------------ what holds because of them
    def _holding(self, kind: type[Spanned], day: int) -> list[tuple[InForce, int, Spanned]]:
        """The effects of one kind that hold on this working day; an effect may outlast its incident."""
        today = self._calendar.days[day]
        return [(heard, place, effect) for heard in self._all if heard.tick <= day for place, effect in heard.holding(kind, today)]

    def _strikes(self, heard: InForce, target: Target, agent: str) -> bool:
        key = (heard.id, target)
        if key not in self._struck:  # else an organization of a thousand would be gone through for each of its agents
            self._struck[key] = frozenset(target.agents(self.who, heard.agents))
        return agent in self._struck[key]

    def factor(self, agent: str, day: int) -> float:
        """The part of the agent's free hours that planners may count on: the product of what holds on this working day."""
        part = 1.0
        for heard, _, effect in self._holding(Free, day):
            if self._strikes(heard, effect.target, agent):
                part *= effect.factor
        return part

    def failing(self, day: int) -> frozenset[str]:
        """The names of the tools, in small letters, that do not work on this working day."""
        return frozenset(effect.tool.casefold() for _, _, effect in self._holding(Outage, day))

    def pushes(self, day: int) -> dict[str, float]:
        """By how much key figures are pushed in the week that begins on this working day, shifts left out."""
        pushed: dict[str, float] = {}
        for heard, _, effect in self._holding(Push, day):
            for kpi in effect.shifts if heard.tick < day else ():
                pushed[kpi] = pushed.get(kpi, 0.0) + effect.slope
        return pushed

    def frozen(self, role: str, day: int) -> bool:
        """Whether nobody of this role is hired on this working day."""
        agents = [agent.id for agent in self._population if agent.role == role]
        return any(
            effect.freeze and any(self._strikes(heard, effect.target, agent) for agent in agents)
            for heard, _, effect in self._holding(Budget, day)
        )

    def affordable(self, agents: Iterable[str], day: int) -> float | None:
        """Hours of new tasks that may still be planned for these agents; None where nothing bounds them."""
        left = [effect.hours - self._spent.get((heard.id, place), 0.0) for heard, place, effect in self._bounds(agents, day)
                if effect.hours is not None]  # fmt: skip
        return max(0.0, min(left)) if left else None

    def spend(self, agents: Iterable[str], day: int, hours: float) -> None:
        """New tasks of so many hours were planned for these agents."""
        for heard, place, _ in self._bounds(agents, day):
            self._spent[heard.id, place] = self._spent.get((heard.id, place), 0.0) + hours

    def _bounds(self, agents: Iterable[str], day: int) -> list[tuple[InForce, int, Budget]]:
        named = tuple(agents)
        return [
            (heard, place, effect)
            for heard, place, effect in self._holding(Budget, day)
            if effect.hours is not None and any(self._strikes(heard, effect.target, agent) for agent in named)
        ]
