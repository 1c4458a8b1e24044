"""A year, week by week: the calendar process that ticks, opens, closes and seals, and `simulate`, which runs it on the engine.

Entry point: `simulate`.  In every minute: finishes, closings, the seal, the tick, openings, waits, starts.  It refuses to know what
plans and deliverables say.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from simpy.events import Event

from taskweave.backbones.members import members_of
from taskweave.backbones.pricing import PriceList, Used, bill
from taskweave.backbones.replaying import Replay
from taskweave.engine.budget import Bound, Budget
from taskweave.engine.clock import CLOSE_WEEK, OPEN_YEAR, SEAL, TICK, Clock
from taskweave.engine.engine import Engine
from taskweave.engine.forking import offer_outside
from taskweave.engine.gateway import Outage
from taskweave.engine.journal import Journal
from taskweave.engine.payloads import set_aside
from taskweave.engine.stats import EngineStats, Pace
from taskweave.engine.witness import Witness
from taskweave.errors import IncidentInvalid
from taskweave.org.calendar import Week
from taskweave.pool.pool import Pool
from taskweave.records import LEVELS, Backbone, Json, canonical
from taskweave.simulation.acting import Acting, person_row
from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.amending import Amending
from taskweave.simulation.changes import Changes
from taskweave.simulation.environment import Environment
from taskweave.simulation.execution import Documents
from taskweave.simulation.incidents import Incidents, InForce, meant_for
from taskweave.simulation.ledger import Ledger
from taskweave.simulation.planning import Planning
from taskweave.simulation.recurring import Recurring
from taskweave.simulation.segments import settings
from taskweave.simulation.setting import Setting
from taskweave.simulation.stage import Stage
from taskweave.simulation.tasks import Tasks
from taskweave.simulation.units import ordinal

if TYPE_CHECKING:
    from taskweave.runs import RunFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """How far a run is; `date` and `week` are simulated, `elapsed` is seconds of wall clock since it started or resumed.

    `cost` is in dollars, with what the provider said it had cached; None where no price is known.  `outage` is what goes wrong now.
    """

    date: str
    week: int
    weeks: int
    done: int
    spilled: int
    blocked: int
    in_flight: int
    calls: int
    replayed: int
    prompt_tokens: int
    completion_tokens: int
    cost: float | None
    elapsed: float
    outage: Outage | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """How a run ended: `stop` is None at the horizon, else why it stopped.

    `week` is the last closed one, `digest` that of its seal; `executed` is the last that was executed this time.  It is an earlier one
    where the run stopped while it re-executed what had been closed before.  `bound` is the one that was reached, where one was; `pace` is
    that of the engine, where one was driven; `unwritten` says why files of what tools left could not be written.
    """

    stop: str | None
    cause: str
    week: int
    digest: str | None
    executed: int
    bound: Bound | None = None
    pace: Pace | None = None
    unwritten: tuple[str, ...] = ()


class Year:
    """The year of one organization on one engine; `until` weeks of it.

    From the first tick of a week in `later` on, what is launched sees that setting instead of the stage's first.
    """

    def __init__(self, stage: Stage, journal: Journal, folder: RunFolder, until: int, later: Mapping[int, Setting]) -> None:
        self._first, self._later = stage.segment, later
        self.stage, self._journal, self._inbox, self._until = stage, journal, folder.inbox, until
        self._calendar = stage.setting.calendar
        self.incidents, self._changes = stage.incidents, Changes()
        self.tasks = Tasks(stage)
        self._book_organization()
        self.recurring = Recurring(stage)
        self.planning = Planning(stage, self.tasks, self.incidents, self.recurring)
        self.acting = Acting(stage, self.tasks, self.planning, self.incidents, self._changes)
        self.amending = Amending(stage, self.tasks, self.planning, self.recurring, self.acting)
        stage.env.process(self._run())

    def _book_organization(self) -> None:
        setting = self.stage.setting
        for agent in setting.population.agents:
            self.stage.ledger.rows(("agents", person_row(agent)))
        for (source, target), kind in sorted(setting.delegation.edges.items()):
            self.stage.ledger.rows(("edges", {"source": source, "target": target, "kind": kind}))
        self.stage.ledger.rows(*(("entities", entity.row()) for entity in setting.entities))

    # ------------------------------------------------------------ the calendar
    def _run(self) -> Generator[Event, Any, None]:
        """One process, so that program order and phase order agree."""
        clock, weeks = self.stage.clock, self._calendar.weeks
        open_week: Week | None = None
        unsealed: list[Week] = []
        for week in [*weeks[: self._until], None]:
            # A week without a working day has no units; it passes, and is sealed, in the minute in which the next one begins.
            if week is not None and week.day_count == 0:
                unsealed.append(week)
                continue
            if open_week is not None:
                yield from self._close(open_week, self._next(open_week))
            if unsealed:
                yield clock.at(SEAL)
                for ended in unsealed:
                    if ended.day_count == 0:
                        self._read_environment(ended)
                        self._book_week(ended)
                    self._seal(ended)
            yield clock.at(TICK)
            if week is None:
                break  # the horizon is the driver's business: nothing above has seen it
            yield from self._work(week, open_week)
            open_week, unsealed = week, [week]
        clock.halted = True

    def _next(self, week: Week) -> Week | None:
        """The next week with a working day, whether or not the horizon lies before it."""
        return next((other for other in self._calendar.weeks[week.index + 1 :] if other.day_count), None)

    def _work(self, week: Week, before: Week | None) -> Generator[Event, Any, None]:
        """The working days of a week: each is ticked before any unit acts; units open on the first."""
        stage = self.stage
        for day in range(week.first_day, week.first_day + week.day_count):
            stage.week, stage.day = week, day
            opening = day == week.first_day
            if opening:
                amended = self._begin_segment(self._setting_of(week), week, before)
                self._read_environment(week)
            self._tick(day, opening=opening)
            if opening:
                self.recurring.open_week(week)
                for place, level in enumerate(LEVELS):
                    yield stage.clock.at(OPEN_YEAR + place)
                    begins = before is None or ordinal(level, before) != ordinal(level, week)
                    if begins or amended:
                        self.planning.open_level(level, week, amended=not begins)
            yield stage.env.timeout(self._calendar.day_minutes)
            if day + 1 < week.first_day + week.day_count:
                yield stage.clock.at(TICK)

    def _begin_segment(self, segment: Setting, week: Week, before: Week | None) -> bool:
        """What is launched from now on sees this segment; whether its organization is another one than until now."""
        stage, was = self.stage, self.stage.segment
        stage.segment = segment
        if segment.org is was.org:
            stage.setting = self._changes.applied(segment)
            return False
        self.amending.amend(was.org, week, before)
        return True

    def _setting_of(self, week: Week) -> Setting:
        """That of the segment that holds in the week; one may begin in a week without a working day."""
        return next((self._later[n] for n in sorted(self._later, reverse=True) if n <= week.number), self._first)

    def _close(self, week: Week, after: Week | None) -> Generator[Event, Any, None]:
        """Closings of everything whose period ends with this week, the week first."""
        for place, level in enumerate(reversed(LEVELS)):
            yield self.stage.clock.at(CLOSE_WEEK + place)
            if after is None or ordinal(level, week) != ordinal(level, after):
                self.planning.close_level(level)
        self.planning.delegated.catch_up()
        self._book_week(week)
        self.tasks.flush()

    def _seal(self, week: Week) -> None:
        stage = self.stage
        finished = {"subtasks": self.tasks.subtasks_done, "hours": self.tasks.hours_done}
        facts = {**self.tasks.counts, **finished, **self.recurring.facts(), "until": week.sunday.isoformat()}
        stage.clock.last = stage.ledger.seal(week.number, facts)

    def _tick(self, day: int, *, opening: bool) -> None:
        """What came from outside is heard before any unit acts.  On a week's first day the openings hear it, nothing is re-planned."""
        stage = self.stage
        for over in self.incidents.ended(day):
            stage.ledger.event("incident_end", subject=over.id)
        self.acting.morning(day)
        for injection in self._journal.tick(day, self._inbox, partial(meant_for, calendar=self._calendar)):
            self._hear(injection.id, injection.payload, day, opening=opening)
        if opening:
            readings = stage.environment.values()
            for id, payload in self.incidents.fired(stage.week.number, self._calendar.days[day], readings, stage.setting.seed):
                self._hear(id, payload, day, opening=True)
        self._changes.fail(self.incidents.failing(day))
        stage.setting = self._changes.applied(stage.segment)

    def _hear(self, id: str, payload: Json, day: int, *, opening: bool) -> None:
        stage = self.stage
        try:
            if self.incidents.arm(id, payload):
                stage.ledger.event("arm", subject=id)
                return
            heard = self.incidents.hear(id, payload, day)
        except IncidentInvalid as trouble:
            stage.ledger.event("reject", subject=id, object=str(trouble))
            why = "; ".join(problem.what for problem in trouble.problems)
            if self._journal.reject(id, day, why):
                set_aside(self._inbox / f"{id}.json", why, canonical(payload))
            return
        self._book_incident(heard)
        self.acting.act(heard)
        if heard.incident.severity == "high" and not opening:
            for unit in self._affected(heard):
                stage.env.process(self.planning.respond(unit, heard))

    def _affected(self, heard: InForce) -> list[Any]:
        """The open week units whose owner, or whose own agents, the incident affects."""
        delegation = self.stage.setting.delegation
        return [
            unit
            for (level, owner), unit in self.planning.open.items()
            if level == "week" and heard.agents & {owner, *delegation.executors(owner)}
        ]

    # ------------------------------------------------------------ rows
    def _book_incident(self, heard: InForce) -> None:
        incident = heard.incident
        row: dict[str, Json] = {
            "id": heard.id,
            "title": incident.title,
            "category": incident.category,
            "severity": incident.severity,
            "description": incident.description,
            "tick": heard.tick,
            "until": heard.until.isoformat(),
            "affects": "all" if incident.affects is None else list(incident.affects),
            "effects": [effect.said() for effect in incident.effects],
            "since": heard.since.isoformat(),
        }
        self.stage.ledger.rows(("incidents", row))
        self.stage.ledger.event("incident", subject=heard.id, object=incident.severity)

    def _read_environment(self, week: Week) -> None:
        day = min(week.first_day, len(self._calendar.days) - 1)
        worked = {**self.tasks.take_worked(), **self.recurring.take_completed()}
        self.stage.environment.advance(week.number, worked, self.acting.moved(day))
        readings = self.stage.environment.readings()
        self.stage.ledger.rows(*(("readings", {"week": week.number, "kpi": r.kpi, "value": r.value}) for r in readings))

    def _book_week(self, week: Week) -> None:
        """What every week has a row of when it ends, worked or not."""
        self._book_load(week)
        self._book_goals(week)

    def _book_goals(self, week: Week) -> None:
        goals = self.stage.setting.org.goals
        progress = {name: self.stage.environment.progress(goal) for name, goal in goals.items()}
        self.stage.ledger.rows(*(("goals", {"week": week.number, "goal": name, "progress": p}) for name, p in progress.items()))

    def _book_load(self, week: Week) -> None:
        """Hours a week: available by the calendar, booked is time spent at work, spilled what is assigned and not finished."""
        stage = self.stage
        since, now = week.first_day * self._calendar.day_minutes, stage.now
        carried = self.tasks.carried_hours_by_agent()
        for agent, hours in self.recurring.hours_in_hand().items():
            carried[agent] = carried.get(agent, 0.0) + hours
        for agent, calendar in stage.calendars.items():
            if calendar.quota and (calendar.gone is None or calendar.gone > week.first_day):
                row: dict[str, Json] = {
                    "week": week.number,
                    "agent": agent,
                    "available": round(calendar.minutes(week.first_day, week.day_count) / 60, 2),
                    "booked": round(calendar.spent(week.index, since, now) / 60, 2),
                    "spilled": round(carried.get(agent, 0), 2),
                }
                stage.ledger.rows(("load", row))


async def simulate(
    folder: RunFolder,
    backbone: Backbone | None,
    *,
    until_week: int,
    limit: int,
    patience: float,
    observe: Callable[[Progress], None] | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    witness: Witness | None = None,
    budget: Budget | None = None,
) -> Outcome:
    """Run or resume the year in `folder` up to the end of week `until_week`.  The caller holds the folder's lock.

    run.db is rebuilt; what the journal holds is not asked again, and without a backbone nothing is.  Where a run is repeated, nothing is
    done outside: it is offered what happened there.  Raises Divergence where re-execution
    gives another week than the journal holds, and whatever bug a work had; everything else that stops a run is in the Outcome.
    """
    config, prices, (setting, *later) = folder.config, folder.prices(), settings(folder)
    org, population, calendar = setting.org, setting.population, setting.calendar
    repeated = [] if backbone is None else [one for one in members_of(backbone).values() if isinstance(one, Replay)]
    for one in repeated:
        offer_outside(one.journal, folder.journal_path)
    with contextlib.ExitStack() as closing:
        journal = Journal(folder.journal_path, create=False)
        closing.callback(journal.close)
        pool = Pool.create(folder.run_db_path)
        closing.callback(pool.close)
        year: Year | None = None

        def progress(stats: EngineStats) -> None:
            if observe is not None and year is not None:
                observe(progress_of(year, stats, prices))

        engine = Engine(
            journal=journal,
            backbone=backbone,
            seed=config.seed,
            inbox=folder.inbox,
            limit=limit,
            patience=patience,
            observe=progress,
            interrupted=interrupted,
            witness=witness,
            budget=budget,
            reaches=not repeated,
        )
        setting.tally.halt = engine.halt
        if setting.tooling is not None:
            closing.callback(setting.tooling.close)
        clock = Clock()
        ledger = Ledger(engine, journal, pool, calendar, setting.tally, lambda: int(clock.env.now))
        ledger.tooling = setting.tooling
        stage = Stage(
            engine=engine,
            clock=clock,
            ledger=ledger,
            pool=pool,
            setting=setting,
            segment=setting,
            incidents=Incidents(org, population, setting.delegation, calendar),
            environment=Environment(org, config.seed),
            documents=Documents(setting),
            calendars={agent.id: AgentCalendar(agent, clock.env, calendar) for agent in population.agents},
            week=calendar.weeks[0],
        )
        year = Year(stage, journal, folder, until_week, dict(zip((one.week for one in config.segments[1:]), later, strict=True)))
        await engine.drive(clock)
        sealed = ledger.sealed
        finished = engine.stop is None and sealed is not None
        if finished:
            pool.finish()
        week, digest = journal.last_week()
        return Outcome(
            stop=engine.stop,
            cause=engine.cause,
            week=week,
            digest=digest,
            executed=max(pool.weeks(), default=0),
            bound=engine.bound,
            pace=engine.pace,
            unwritten=() if setting.tooling is None else tuple(dict.fromkeys(setting.tooling.world.unwritten.values())),
        )


def progress_of(year: Year, stats: EngineStats, prices: PriceList | None) -> Progress:
    """The engine's counts beside what the clock has reached; `prices` are the run's own."""
    stage, tasks = year.stage, year.tasks.counts
    cost = bill((Used(name, *used) for name, used in stats.used.items()), prices)
    return Progress(
        date=stage.date(),
        week=stage.week.number,
        weeks=year._until,
        done=tasks["done"],
        spilled=tasks["spilled"],
        blocked=tasks["blocked"],
        in_flight=stats.in_flight,
        calls=stats.paid,
        replayed=stats.replayed,
        prompt_tokens=stats.prompt_tokens,
        completion_tokens=stats.completion_tokens,
        cost=None if cost is None else cost.cost,
        elapsed=stats.elapsed,
        outage=stats.outage,
    )
