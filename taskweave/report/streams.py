"""Does recurring work come, wait and take as long as the organization's file says?  Entry point: `streams`, one `Stream` a work.

Read from the event log and the load alone, nothing of the simulation: each figure with its number, its 95 % interval and what the file
says.  Of some twenty such figures one lies outside by chance.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from taskweave.org.calendar import Week, WorkCalendar
from taskweave.org.organization import Organization, RecurringWork
from taskweave.org.recurring import WORKING_DAYS, middle, openings
from taskweave.records import Json
from taskweave.report import intervals
from taskweave.report.intervals import Interval
from taskweave.report.recurring import ROOT, CaseLog, StepLog, case_logs

Rows = Sequence[Mapping[str, Json]]
One = TypeVar("One")


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """A figure of `number` observations, between which values it lies, and what the file says it is.

    `interval` is None where there are too few observations; `beyond` counts those that the file rules out.
    """

    what: str
    number: int
    found: float | None
    interval: Interval | None
    said: float
    unit: str = ""
    beyond: int = 0

    @property
    def agrees(self) -> bool | None:
        """Whether what the file says lies within the interval, and nothing beyond its bounds; None where nothing can be told."""
        if self.beyond:
            return False
        return None if self.interval is None else self.interval.holds(self.said)


@dataclass(frozen=True, kw_only=True, slots=True)
class Wait:
    """Working hours that `number` cases waited; the interval of the mean takes weeks, not cases, for independent."""

    what: str
    number: int
    mean: float | None
    interval: Interval | None
    median: float | None
    ninth: float | None  # decile
    most: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamWeek:
    """One closed week: cases that arrived and were completed, how many were open at its end and at the most, and hours offered.

    `waited` is the mean of the working hours until those of its arrivals that were begun were; `offered` is of the role that does it.
    """

    week: int
    arrived: int
    completed: int
    open: int
    most_open: int
    waited: float | None
    offered: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Stream:
    """One recurring work in all closed weeks.

    `abandoned` are cases that an amendment ended; `overtaken` counts, of `started` steps, those begun while an older case waited for the
    same people; `variants` are the orders of activities of completed cases, the most frequent first.
    """

    name: str
    kind: str
    role: str
    arrived: int
    completed: int
    abandoned: int
    checks: tuple[Check, ...]
    waits: tuple[Wait, ...]
    started: int
    overtaken: int
    variants: tuple[tuple[tuple[str, ...], int], ...]
    weeks: tuple[StreamWeek, ...]


def streams(org: Organization, events: Rows, agents: Rows, load: Rows, closed: int) -> tuple[Stream, ...]:
    """The recurring works of a run of which `closed` weeks are closed, in the order of the file.  Rows are those of its tables."""
    calendar = WorkCalendar(org.calendar)
    weeks = calendar.weeks[:closed]
    logs = case_logs(events, calendar)
    passed = _overtaken(org, events)
    roles = {row["id"]: row["role"] for row in agents}
    found = []
    for name, work in org.work.items():
        mine = [log for log in logs if log.name == name]
        offered = Counter[int]()
        for row in load:
            if roles.get(row["agent"]) == work.role:
                offered[row["week"]] += row["available"]
        done = Counter(log.variant for log in mine if log.completed is not None)
        found.append(
            Stream(
                name=name,
                kind=work.kind,
                role=work.role,
                arrived=len(mine),
                completed=sum(log.completed is not None for log in mine),
                abandoned=sum(log.abandoned is not None for log in mine),
                checks=tuple(_checks(work, mine, calendar, weeks)),
                waits=tuple(_waits(mine, calendar)),
                started=passed[name][0],
                overtaken=passed[name][1],
                variants=tuple(sorted(done.items(), key=lambda one: (-one[1], one[0]))),
                weeks=tuple(_by_week(mine, calendar, weeks, offered)),
            )
        )
    return tuple(found)


# ---------------------------------------------------------------- against the file
def _checks(work: RecurringWork, logs: Sequence[CaseLog], calendar: WorkCalendar, weeks: Sequence[Week]) -> Iterable[Check]:
    yield from _arrivals(work, logs, calendar, weeks)
    steps = [step for log in logs for step in log.steps.values()]
    for activity, span in work.steps.items():
        yield _service(activity, span, [step for step in steps if step.activity == activity and not step.aside])
    if work.escalate is not None:
        yield _service(f"{work.escalate.step} ({work.escalate.to})", work.escalate.hours, [step for step in steps if step.aside])
        decided = sum(_decided(log, work.escalate.after) for log in logs)
        yield _share(f"escalated to {work.escalate.to}", sum(log.escalated for log in logs), decided, work.escalate.share)
    if work.rework is not None:
        ends = sum(step.activity == work.rework.source and step.finished is not None and not step.aside for step in steps)
        yield _share(f"{work.rework.source} goes back to {work.rework.target}", sum(log.reworked for log in logs), ends, work.rework.share)


def _arrivals(work: RecurringWork, logs: Sequence[CaseLog], calendar: WorkCalendar, weeks: Sequence[Week]) -> Iterable[Check]:
    if work.arrivals is None:
        due = len(openings(work, calendar) & {week.index for week in weeks})
        yield Check(what="cases begun", number=len(logs), found=len(logs), interval=Interval(len(logs), len(logs)), said=due)
        return
    days = sum(week.day_count for week in weeks)
    if not days:
        return
    rate, bounds = WORKING_DAYS / days, intervals.count(len(logs))
    yield Check(
        what="arrivals in five working days",
        number=len(logs),
        found=len(logs) * rate,
        interval=Interval(bounds.low * rate, bounds.high * rate),
        said=work.arrivals,
    )
    came = Counter(_week_of(log.arrived, calendar).index for log in logs)
    open_weeks = [week for week in weeks if week.day_count]
    if len(logs) and len(open_weeks) > 1:
        degrees = len(open_weeks) - 1
        expected = {week.index: len(logs) * week.day_count / days for week in open_weeks}
        found = math.fsum((came[week] - value) ** 2 / value for week, value in expected.items()) / degrees
        # Of Poisson counts the variance is the mean: their dispersion is 1.
        bounds = intervals.dispersion(found, degrees)
        yield Check(what="dispersion of weekly arrivals", number=len(open_weeks), found=found, interval=bounds, said=1)


def _service(what: str, span: tuple[float, float], steps: Sequence[StepLog]) -> Check:
    minutes = [step.worked for step in steps if step.finished is not None]
    hours = [minute / 60 for minute in minutes]
    least, most = (max(1, round(bound * 60)) for bound in span)
    return Check(
        what=f"hours of {what}",
        number=len(hours),
        found=statistics.fmean(hours) if hours else None,
        interval=intervals.mean(hours),
        said=middle(span),
        unit="h",
        beyond=sum(not least <= minute <= most for minute in minutes),
    )


def _share(what: str, hits: int, of: int, said: float) -> Check:
    return Check(what=what, number=of, found=hits / of if of else None, interval=intervals.share(hits, of), said=said, unit="%")


def _decided(log: CaseLog, after: str) -> bool:
    """Whether it is known if the case is escalated: that step was finished, and did not only send it back."""
    return any(
        step.activity == after and step.finished is not None and not step.aside and not step.sent_back for step in log.steps.values()
    )


# ---------------------------------------------------------------- the queue
def _waits(logs: Sequence[CaseLog], calendar: WorkCalendar) -> Iterable[Wait]:
    first = [(log, log.begun - log.arrived) for log in logs if log.begun is not None]
    whole = [(log, log.waited) for log in logs if log.waited is not None]
    through = [(log, log.completed - log.arrived) for log in logs if log.completed is not None]
    for what, minutes in (("from arrival to its first step", first), ("in all its steps", whole), ("from arrival to the end", through)):
        hours = sorted(minute / 60 for _, minute in minutes)
        totals, counts = defaultdict[int, float](float), Counter[int]()
        for log, minute in minutes:
            week = _week_of(log.arrived, calendar).index
            totals[week] += minute / 60
            counts[week] += 1
        yield Wait(
            what=what,
            number=len(hours),
            mean=statistics.fmean(hours) if hours else None,
            interval=intervals.ratio(list(totals.values()), [counts[week] for week in totals]),
            median=statistics.median(hours) if hours else None,
            ninth=hours[min(len(hours) - 1, math.ceil(0.9 * len(hours)) - 1)] if hours else None,
            most=hours[-1] if hours else None,
        )


def _overtaken(org: Organization, events: Rows) -> dict[str, tuple[int, int]]:
    """By work: how many steps were begun, and of how many an older case was waiting for the same people at that moment."""
    place: dict[str, int] = {}
    names: dict[str, str] = {}
    aside: set[str] = set()
    lines: defaultdict[tuple[str, str], dict[str, int]] = defaultdict(dict)  # who is waited for -> step -> place of its case
    where: dict[str, tuple[str, str]] = {}
    begun, passed = Counter[str](), Counter[str]()
    for event in events:
        case, kind, step = event["case"], event["kind"], event["subject"]
        if not case or not case.startswith(ROOT):
            continue
        if kind == "arrive":
            place[case], names[case] = len(place), event["object"]
        elif names[case] not in org.work:
            continue  # of an organization that the run has had since
        elif kind == "abandon":
            for line in lines.values():
                for waiting in [one for one in line if one.rpartition("/")[0] == case]:
                    del line[waiting]
        elif kind == "escalate":
            aside.add(case)
        elif kind == "queue":
            work = org.work[names[case]]
            role = work.escalate.to if case in aside and work.escalate is not None else work.role
            aside.discard(case)
            where[step] = (role, work.kind)
            lines[where[step]][step] = place[case]
        elif kind == "start":
            line = lines[where[step]]
            del line[step]
            begun[names[case]] += 1
            passed[names[case]] += any(other < place[case] for other in line.values())
    return {name: (begun[name], passed[name]) for name in org.work}


def _by_week(logs: Sequence[CaseLog], calendar: WorkCalendar, weeks: Sequence[Week], offered: Mapping[int, float]) -> Iterable[StreamWeek]:
    done = _split([log for log in logs if log.completed is not None], lambda log: _week_of((log.completed or 0) - 1, calendar).index)
    # One is completed as a minute ends, and abandoned as one begins.
    ends = [log.ended + (log.abandoned is not None) for log in logs if log.ended is not None]
    moves = sorted([(log.arrived, 1) for log in logs] + [(end, -1) for end in ends])
    moves_in = _split(moves, lambda move: _week_of(move[0] - (move[1] < 0), calendar).index)
    waited = _split([log for log in logs if log.begun is not None], lambda log: _week_of(log.arrived, calendar).index)
    open_now = 0
    for week in weeks:
        most = open_now
        mine = moves_in.get(week.index, [])
        for _, step in mine:
            open_now += step
            most = max(most, open_now)
        hours = [(log.begun - log.arrived) / 60 for log in waited.get(week.index, []) if log.begun is not None]
        yield StreamWeek(
            week=week.number,
            arrived=sum(step > 0 for _, step in mine),
            completed=len(done.get(week.index, [])),
            open=open_now,
            most_open=most,
            waited=statistics.fmean(hours) if hours else None,
            offered=offered.get(week.number, 0.0),
        )


def _split(them: Iterable[One], by: Callable[[One], int]) -> dict[int, list[One]]:
    found: dict[int, list[One]] = {}
    for one in them:
        found.setdefault(by(one), []).append(one)
    return found


def _week_of(minute: int, calendar: WorkCalendar) -> Week:
    """The week in which a working minute lies; the year's last for its end."""
    return calendar.week_of_day(min(max(0, minute) // calendar.day_minutes, len(calendar.days) - 1))
