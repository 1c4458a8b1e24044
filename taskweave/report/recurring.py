"""How long do cases of recurring work wait, and how long are they worked on?  Entry points: `case_logs`, `cases`.

Read from the event log alone, in working minutes of the organization's calendar.  Waiting is all of a step's time in which nobody was
at it: before it was begun, after an interruption, and while whoever has it is not at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from taskweave.org.calendar import DAY_START, WorkCalendar
from taskweave.records import Json

ROOT = "work/"  # with which the ids of cases begin


@dataclass(slots=True)
class StepLog:
    """A step of a case: the minute in which it joined the queue, minutes worked by whom, and the minute of its end, None while open.

    `aside`: another role has it, since the case was escalated; `stops` is how often whoever was at it had to stop; `sent_back`: what was
    found in it has to be done again.
    """

    id: str
    activity: str
    queued: int
    aside: bool = False
    stops: int = 0
    sent_back: bool = False
    worked: int = 0
    agents: list[str] = field(default_factory=list)
    started: int | None = None
    finished: int | None = None
    since: int | None = None  # since when somebody is at it

    @property
    def waited(self) -> int:
        """Minutes in which nobody was at it; of a finished step only."""
        assert self.finished is not None
        return self.finished - self.queued - self.worked


@dataclass(slots=True)
class CaseLog:
    """A case from the minute of its arrival to that of its completion, None while it is open, and where it was abandoned."""

    id: str
    name: str
    arrived: int
    steps: dict[str, StepLog] = field(default_factory=dict)
    completed: int | None = None
    abandoned: int | None = None
    escalated: bool = False
    reworked: int = 0

    @property
    def ended(self) -> int | None:
        """The minute from which on it is open no more."""
        return self.abandoned if self.completed is None else self.completed

    @property
    def begun(self) -> int | None:
        """The minute in which somebody first was at it."""
        return min((step.started for step in self.steps.values() if step.started is not None), default=None)

    @property
    def worked(self) -> int:
        """Minutes worked on it so far."""
        return sum(step.worked for step in self.steps.values())

    @property
    def waited(self) -> int | None:
        """Minutes of a completed case in which nobody was at it."""
        return None if self.completed is None else sum(step.waited for step in self.steps.values())

    @property
    def variant(self) -> tuple[str, ...]:
        """Its activities in their order."""
        return tuple(step.activity for step in self.steps.values())


class Cases(NamedTuple):
    """The cases of one work; `waited` and `worked` are hours on average of those completed, None where there are none."""

    name: str
    arrived: int
    completed: int
    waited: float | None
    worked: float | None
    abandoned: int = 0

    @property
    def open(self) -> int:
        return self.arrived - self.completed - self.abandoned


def case_logs(events: Iterable[Mapping[str, Json]], calendar: WorkCalendar) -> list[CaseLog]:
    """The cases of recurring work in the order of their arrival; `events` are rows of the event log in order."""
    found: dict[str, CaseLog] = {}
    aside: set[str] = set()  # cases whose next step is another role's
    for event in events:
        name, kind, subject = event["case"], event["kind"], event["subject"]
        if not name or not name.startswith(ROOT):
            continue
        minute = working_minute(event["time"], calendar)
        if kind == "arrive":
            found[name] = CaseLog(id=name, name=event["object"], arrived=minute)
            continue
        case = found[name]
        if kind == "complete":
            case.completed = minute
        elif kind == "abandon":
            case.abandoned = minute
        elif kind == "escalate":
            case.escalated = True
            aside.add(name)
        elif kind == "rework":
            case.reworked += 1
            case.steps[subject].sent_back = True
        elif kind == "queue":
            case.steps[subject] = StepLog(id=subject, activity=event["object"], queued=minute, aside=name in aside)
            aside.discard(name)
        elif kind != "about":  # whom it comes from
            _move(case.steps[subject], kind, event["actor"], minute)
    return list(found.values())


def _move(step: StepLog, kind: str, agent: str, minute: int) -> None:
    """start and resume: somebody is at the step; pause, preempt and finish: nobody is any more."""
    if kind in ("start", "resume"):
        step.since = minute
        step.started = minute if step.started is None else step.started
        step.agents.append(agent)
    elif step.since is not None:
        step.worked += minute - step.since
        step.since = None
        step.stops += kind != "finish"
    if kind == "finish":
        step.finished = minute


def cases(logs: Iterable[CaseLog]) -> tuple[Cases, ...]:
    """Figures by work, in the order in which they first had a case."""
    by_name: dict[str, list[CaseLog]] = {}
    for log in logs:
        by_name.setdefault(log.name, []).append(log)
    return tuple(_figures(name, found) for name, found in by_name.items())


def _figures(name: str, found: list[CaseLog]) -> Cases:
    done = [log for log in found if log.completed is not None]
    steps = [step for log in done for step in log.steps.values()]
    waited, worked = (sum(minutes) / 60 / len(done) if done else None for minutes in ([s.waited for s in steps], [s.worked for s in steps]))
    gone = sum(log.abandoned is not None for log in found)
    return Cases(name=name, arrived=len(found), completed=len(done), waited=waited, worked=worked, abandoned=gone)


def working_minute(moment: str, calendar: WorkCalendar) -> int:
    """Simulated ISO time as working minutes since the year began; the close of a day and the opening of the next are one minute."""
    at = datetime.fromisoformat(moment)
    minutes = (at.hour - DAY_START.hour) * 60 + at.minute - DAY_START.minute
    return calendar.day_of(at.date()) * calendar.day_minutes + minutes
