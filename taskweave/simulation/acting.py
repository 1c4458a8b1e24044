"""How does an incident change what the organization does?  Its effects, one method each.

Entry points: `Acting.act` for an incident that is heard, `Acting.morning` for what earlier ones have set for this working day.  Every
change is an event; none asks a backbone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from simpy.events import Event

from taskweave.engine.promises import Context as WorkContext
from taskweave.engine.promises import Promise
from taskweave.org.delegation import Delegation
from taskweave.org.population import Agent, Population, agent_of, agent_row
from taskweave.pool.tables import Row
from taskweave.records import Json, Mark
from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.changes import Changes
from taskweave.simulation.demands import demand
from taskweave.simulation.incidents.effects import (
    Absence,
    Deadline,
    Departure,
    Hire,
    Outage,
    Push,
    Ranking,
    Workload,
    after,
    drawn,
)
from taskweave.simulation.incidents.in_force import Incidents, InForce
from taskweave.simulation.planning import Planning
from taskweave.simulation.stage import Stage
from taskweave.simulation.tasks import Tasks


@dataclass(frozen=True, slots=True)
class Coming:
    """Somebody who was hired: who it is, once drawn, and from which day on he or she may begin."""

    begins: date
    role: str
    cause: str
    site: str
    person: list[Agent]  # of one, when the clock has passed the draw; emptied where it is made anew


class Acting:
    """The effects of a year's incidents."""

    def __init__(self, stage: Stage, tasks: Tasks, planning: Planning, incidents: Incidents, changes: Changes) -> None:
        self._stage, self._tasks, self._planning = stage, tasks, planning
        self._incidents, self._changes = incidents, changes
        self._coming: list[Coming] = []
        self._drawn: list[Promise] = []
        self._shifts: dict[str, float] = {}

    # ------------------------------------------------------------ an incident is heard
    def act(self, heard: InForce) -> None:
        """Do what its effects say, in their order."""
        acts: Mapping[type, Callable[[InForce, int, Any], None]] = {
            Absence: self._absence,
            Departure: self._departure,
            Hire: self._hire,
            Workload: self._workload,
            Push: self._push,
            Outage: self._outage,
            Deadline: self._deadline,
            Ranking: self._ranking,
        }  # capacity, budget and news are asked for where planning needs them
        for place, effect in enumerate(heard.incident.effects):
            if type(effect) in acts:
                acts[type(effect)](heard, place, effect)

    def _absence(self, heard: InForce, place: int, effect: Absence) -> None:
        stage, calendar = self._stage, self._stage.setting.calendar
        # The number is that among the absences: an effect of another kind beside it draws nobody else.
        number = sum(isinstance(one, Absence) for one in heard.incident.effects[:place])
        draw = stage.random("absence", f"{heard.id}:{number}")
        days = range(heard.tick, calendar.day_of(after(heard.since, effect.span)))
        for agent in effect.agents(self._incidents.who, heard.agents, draw):
            self._tasks.take_off(agent, days)

    def _departure(self, heard: InForce, place: int, effect: Departure) -> None:
        stage, who = self._stage, self._incidents.who
        here = [agent for agent in effect.target.agents(who, heard.agents) if stage.calendars[agent].gone is None]
        free = [agent for agent in here if not who.plans(who.population.agent(agent))]
        named = effect.target.kind in ("role", "agent")  # of a department, or of whom it affects, those leave who lead nobody
        leaving = drawn(tuple(here if named and not free else free), effect.count, stage.random("departure", f"{heard.id}:{place}"))
        gone = [agent for agent in leaving if self._leave(agent, heard)]
        if not gone:
            stage.ledger.event("no_departure", subject=heard.id, object="whoever was named has left already, or leads others alone")

    def _leave(self, agent: str, heard: InForce) -> bool:
        """Whether the agent could leave: a head only where another of its title stays, who takes over what it led."""
        stage, who = self._stage, self._incidents.who
        person = who.population.agent(agent)
        if who.plans(person):
            others = [other for other in who.deputies(person) if stage.calendars[other].gone is None]
            if not others:
                return False
            successor = min(others, key=lambda other: len(stage.setting.delegation.reports(other)))
            before = set(stage.setting.delegation.edges)
            self._changes.succeed(agent, successor)
            self._changed()
            stage.ledger.rows(*edge_rows(stage.setting.delegation, before))
            self._planning.retire(agent)
            self._tasks.inherit(agent, successor)
            self._planning.demands.pass_on(agent, successor)
            stage.ledger.event("succession", actor=successor, subject=agent, object=heard.id)
        if stage.setting.tooling is not None:
            stage.setting.tooling.leave(agent, stage.week.number, stage.setting.calendar.days[stage.day])
        self._tasks.let_go(agent, heard.id)
        return True

    def _workload(self, heard: InForce, _: int, effect: Workload) -> None:
        stage, who = self._stage, self._incidents.who
        here = [agent for agent in effect.target.agents(who, heard.agents) if stage.calendars[agent].gone is None]
        role = who.fittest(here, f"{effect.title} {heard.incident.text()}")
        if role is None:
            stage.ledger.event("no_workload", subject=heard.id, object=f"nobody is left who could do {effect.title!r}")
            return
        agent = next(agent for agent in here if who.population.agent(agent).role == role)
        owner = stage.setting.delegation.unit_of(agent)
        mark = Mark("ok", stage.setting.origin)
        wanted = demand(stage.setting.org, effect, role, heard, self._due(after(heard.since, effect.due)), mark)
        unit = self._planning.open.get(("week", owner))
        next_week = (stage.week.first_day + stage.week.day_count) * stage.setting.calendar.day_minutes
        opening = stage.day == stage.week.first_day
        if unit is None or opening or not (wanted.urgent or wanted.due[1] <= next_week):
            self._planning.demands.lay(owner, wanted)
        else:
            self._planning.take_up(unit, wanted)

    def _due(self, day: date) -> tuple[str, int]:
        """The day by which something is due, and the end of the last working day up to it, at most the year's."""
        calendar = self._stage.setting.calendar
        return day.isoformat(), min(calendar.day_of(day + date.resolution), len(calendar.days)) * calendar.day_minutes

    def _push(self, heard: InForce, _: int, effect: Push) -> None:
        for kpi, shift in effect.shifts.items():
            self._shifts[kpi] = self._shifts.get(kpi, 0.0) + shift
            self._stage.ledger.event("kpi", subject=kpi, object=heard.id)

    def _outage(self, heard: InForce, _: int, effect: Outage) -> None:
        self._stage.ledger.event("tool_outage", subject=effect.tool, object=heard.id)

    def _deadline(self, heard: InForce, _: int, effect: Deadline) -> None:
        self._changes.move(effect.goal, effect.by)
        self._changed()
        self._stage.ledger.event("deadline", subject=effect.goal, object=effect.by.isoformat(), case=heard.id)

    def _ranking(self, heard: InForce, _: int, effect: Ranking) -> None:
        self._changes.rank(effect.goal, effect.to)
        self._changed()
        self._tasks.reorder(self._stage.setting.priorities)
        self._stage.ledger.event("priority", subject=effect.goal, object=effect.to, case=heard.id)

    def _changed(self) -> None:
        """What is launched from now on sees the changes."""
        stage = self._stage
        stage.setting = self._changes.applied(stage.segment)
        self._incidents.work_with(stage.setting.org, stage.setting.population, stage.setting.delegation)

    # ------------------------------------------------------------ what was set in motion
    def moved(self, day: int) -> dict[str, float]:
        """By how much key figures move in the week that begins on this working day."""
        shifts, self._shifts = self._shifts, {}
        for kpi, push in self._incidents.pushes(day).items():
            shifts[kpi] = shifts.get(kpi, 0.0) + push
        return shifts

    def _hire(self, heard: InForce, place: int, effect: Hire) -> None:
        begins = after(heard.since, effect.wait)
        for number in range(1, effect.count + 1):
            coming = Coming(begins, effect.role, heard.id, f"{heard.id}:hire.{place + 1}.{number}", [])
            self._coming.append(coming)
            self._stage.env.process(self._draw(coming, coming.site))

    def _draw(self, coming: Coming, site: str) -> Generator[Event, Any, None]:
        """Who was hired is drawn once and journaled, as people are once kept with a run: another version of faker changes no run."""
        stage, setting = self._stage, self._stage.segment
        taken = _ids(setting.population)

        async def work(ctx: WorkContext, *earlier: Json) -> Json:
            def draw() -> Json:
                others = [agent for agent in map(agent_of, earlier) if agent.id not in taken]
                known = setting.population.joined_by(others)
                return agent_row(known.hired(setting.org, coming.role, setting.seed))

            return await ctx.look_up("hire", {"role": coming.role}, draw)

        nothing = stage.engine.given(None)  # of what was sealed: the clock need not wait for that
        promise = stage.engine.launch(site, work, tuple(self._drawn), due=(stage.week.index, -1000), reads=nothing)
        self._drawn.append(promise)
        yield stage.clock.wait(promise)
        coming.person.append(agent_of(promise.value))

    def morning(self, day: int) -> None:
        """Those who begin today are there before anybody plans."""
        calendar = self._stage.setting.calendar
        due = [one for one in self._coming if one.person and one.begins <= calendar.days[day]]
        for coming in due:
            if not self._incidents.frozen(coming.role, day):
                self._coming.remove(coming)
                self._arrive(coming, day)

    def _arrive(self, coming: Coming, day: int) -> None:
        stage = self._stage
        agent = coming.person[0]
        before = set(stage.setting.delegation.edges)
        self._changes.hire(agent)
        self._changed()
        stage.calendars[agent.id] = AgentCalendar(agent, stage.env, stage.setting.calendar)
        stage.calendars[agent.id].be_away(range(day))
        stage.documents.join(stage.setting, agent)
        if stage.setting.tooling is not None:
            stage.setting.tooling.join(agent, stage.week.number, stage.setting.calendar.days[day])
        stage.ledger.rows(("agents", person_row(agent)), *edge_rows(stage.setting.delegation, before))
        stage.ledger.event("hire", actor=agent.head or "", subject=agent.id, object=coming.cause)

    def amended(self, cause: str, goals: Collection[str]) -> None:
        """The organization is that of another segment from now on, in which `goals` are due at other times.

        Nobody comes to a role that it lacks.  Whoever is to come, and was drawn under an id that somebody has now, is drawn anew: the name
        would be the same as well.
        """
        taken = _ids(self._stage.segment.population)
        self._changes.settle(self._stage.segment.population, goals)
        self._changed()
        for coming in [one for one in self._coming if one.role not in self._stage.setting.org.roles]:
            self._coming.remove(coming)
            self._stage.ledger.event("no_hire", subject=coming.cause, object=cause)
        for coming in self._coming:
            if any(agent.id in taken for agent in coming.person):
                coming.person.clear()
                self._stage.env.process(self._draw(coming, f"{coming.site}.W{self._stage.week.number:02}"))


def _ids(population: Population) -> frozenset[str]:
    """Those that somebody has, or has had."""
    return frozenset(agent.id for agent in (*population.agents, *population.former))


def edge_rows(delegation: Delegation, before: Collection[tuple[str, str]]) -> list[Row]:
    """The rows of the edges that were not there before."""
    added = sorted(item for item in delegation.edges.items() if item[0] not in before)
    return [("edges", {"source": source, "target": target, "kind": kind}) for (source, target), kind in added]


def person_row(agent: Agent) -> dict[str, Json]:
    """The row of somebody who works here."""
    persona = agent.persona
    described = {
        "email": persona.email,
        "education": persona.education,
        "years": persona.years,
        "background": persona.background,
        "style": persona.style,
        "knows": list(persona.knows),
    }
    row = {"id": agent.id, "name": persona.name, "role": agent.role, "tier": agent.tier, "department": agent.department}
    return row | {"persona": described}
