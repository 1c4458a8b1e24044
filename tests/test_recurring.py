"""Recurring work in a run: cases arrive, wait and are worked on as the file says, beside planned work, and planners know of it."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from statistics import fmean, stdev, variance

import pytest
from rich.console import Console

from taskweave.api import Run
from taskweave.cli.watching import _lines
from taskweave.org.calendar import WorkCalendar
from taskweave.report.closing import closing, demanded, render
from taskweave.report.recurring import CaseLog, StepLog, case_logs, cases, working_minute
from tests.simulated import events, rows, simulated

SIGMAS = 4  # how far from its expectation a drawn figure may lie, in standard errors
DESK = """
name: Desk
calendar: {start: 2026-01-05, hours: 8, holidays: [2026-05-01, 2026-12-24/2026-12-31]}
goals: {calm: {text: Nobody waits for a day, owner: Head}}
roles:
  Head: {leads: Desk}
  Agent: {reports_to: Head, count: %d, hours: 6-10, demand: %s, fte: %s, like: Technical Support Engineer}
  Engineer: {reports_to: Head, hours: 6-10, demand: 0.7, like: Backend Engineer}
workload: {composite_hours: 40}
"""
ESCALATE = ", escalate: {share: 15%, to: Engineer, step: analyse}"
RELEASES = """
  releases: {kind: cycle, every: 2 weeks, owner: Engineer, hours: 2-4, steps: [plan, build, test, publish],
    rework: {share: 40%, from: test, to: build}}
"""


def desk(
    *, agents: int = 2, demand: float = 1, fte: float = 1, steps: str = "[receive, answer, close]", hours: str = "0.5-1", more: str = ""
) -> str:
    tickets = (
        f"work:\n  tickets: {{kind: stream, role: Agent, arrivals: 18/week, hours: {hours}, steps: {steps}{ESCALATE if more else ''}}}\n"
    )
    return DESK % (agents, demand, fte) + tickets + more.removeprefix("\n")


def calendar_of(run: Run) -> WorkCalendar:
    return WorkCalendar(run.folder.organization().calendar)


def logs_of(run: Run, name: str = "tickets") -> list[CaseLog]:
    return [log for log in case_logs(run.events(), calendar_of(run)) if log.name == name]


def finished(logs: Sequence[CaseLog], activity: str) -> list[StepLog]:
    return [step for log in logs for step in log.steps.values() if step.activity == activity and step.finished is not None]


def near(found: float, expected: float, error: float) -> bool:
    return abs(found - expected) <= SIGMAS * error


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A year of two agents, an engineer and both kinds of recurring work, beside planned work."""
    return simulated(tmp_path_factory.mktemp("desk") / "run", desk(more=RELEASES), until="year")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A year of one agent, who does nothing but tickets of one step: the queue of which theory knows the wait."""
    organization = desk(agents=1, demand=0.01, steps="[answer]", hours="0.5-2")
    return simulated(tmp_path_factory.mktemp("alone") / "run", organization, until="year")


# ------------------------------------------------------------ as the file says
def test_as_many_cases_arrive_as_the_file_says_and_as_by_chance(year: Run) -> None:
    calendar, logs = calendar_of(year), logs_of(year)
    expected = 18 * len(calendar.days) / 5
    assert near(len(logs), expected, math.sqrt(expected)), f"{len(logs)} of {expected}"
    full = [week for week in calendar.weeks if week.day_count == 5]
    arrived = Counter(calendar.week_of_day(log.arrived // calendar.day_minutes).index for log in logs)
    counts = [arrived[week.index] for week in full]
    assert near(variance(counts) / fmean(counts), 1, math.sqrt(2 / (len(counts) - 1))), "a Poisson count's variance is its mean"
    assert {log.id for log in logs if log.id.startswith("work/tickets/W14/")} == {f"work/tickets/W14/{n + 1}" for n in range(arrived[13])}


def test_the_gaps_between_arrivals_are_exponential(year: Run) -> None:
    times = [log.arrived for log in logs_of(year)]
    gaps = [b - a for a, b in zip(times, times[1:], strict=False)]
    mean = 5 * 480 / 18
    assert near(fmean(gaps), mean, mean / math.sqrt(len(gaps)))
    longer = sum(gap > mean for gap in gaps) / len(gaps)
    assert near(longer, math.exp(-1), math.sqrt(math.exp(-1) * (1 - math.exp(-1)) / len(gaps)))


@pytest.mark.parametrize(("name", "activity", "low", "high"), [("tickets", "answer", 30, 60), ("releases", "build", 120, 240)])
def test_what_a_step_takes_is_drawn_evenly_between_its_least_and_most(year: Run, name: str, activity: str, low: int, high: int) -> None:
    worked = [step.worked for step in finished(logs_of(year, name), activity)]
    assert low <= min(worked) <= max(worked) <= high
    assert near(fmean(worked), (low + high) / 2, (high - low) / math.sqrt(12 * len(worked)))
    assert near(stdev(worked), (high - low) / math.sqrt(12), (high - low) / math.sqrt(12) / math.sqrt(2 * len(worked)))


def test_a_share_of_the_cases_is_escalated_to_the_other_role_and_comes_back(year: Run) -> None:
    logs = [log for log in logs_of(year) if log.completed is not None]
    escalated = [log for log in logs if log.escalated]
    assert near(len(escalated) / len(logs), 0.15, math.sqrt(0.15 * 0.85 / len(logs)))
    for log in escalated:
        assert [step.activity for step in log.steps.values()] == ["receive", "analyse", "answer", "close"]
        assert {agent for step in log.steps.values() if step.activity == "analyse" for agent in step.agents} == {"engineer"}
    assert {tuple(step.activity for step in log.steps.values()) for log in logs if not log.escalated} == {("receive", "answer", "close")}


def test_a_share_of_the_tests_sends_a_release_back_to_be_built_again(year: Run) -> None:
    logs = logs_of(year, "releases")
    tests, reworked = len(finished(logs, "test")), sum(log.reworked for log in logs)
    assert near(reworked / tests, 0.4, math.sqrt(0.4 * 0.6 / tests))
    again = next(log for log in logs if log.reworked == 1)
    assert [step.activity for step in again.steps.values()] == ["plan", "build", "test", "build", "test", "publish"]
    weeks = [int(log.id.split("/")[2][1:]) for log in logs]
    assert weeks == list(range(1, 53, 2))


def test_cases_wait_as_long_as_queueing_theory_says(alone: Run) -> None:
    """Pollaczek-Khinchine, in hours of working time: one server, Poisson arrivals, steps of 0.5 to 2 hours."""
    rate, mean, square = 18 / 40, 1.25, 1.5**2 / 12 + 1.25**2
    expected = rate * square / (2 * (1 - rate * mean))
    calendar, waited = calendar_of(alone), defaultdict(list)
    for log in logs_of(alone):
        for step in log.steps.values():
            if step.finished is not None:
                waited[log.arrived // (5 * calendar.day_minutes)].append(step.waited / 60)
    assert not rows(alone, "subtasks", assignee="agent"), "the agent does nothing else"
    # Waits of neighbours are alike, those of different weeks hardly: the error is that of weekly means.
    weekly = [fmean(found) for found in waited.values()]
    found = fmean([wait for of_week in waited.values() for wait in of_week])
    assert near(found, expected, stdev(weekly) / math.sqrt(len(weekly))), f"{found:.2f} h instead of {expected:.2f} h"


def test_a_single_agent_serves_first_come_first_served(alone: Run) -> None:
    logs = logs_of(alone)
    started = [step.started for log in logs for step in log.steps.values() if step.started is not None]
    assert started == sorted(started)


# ------------------------------------------------------------ beside planned work
def test_no_planned_work_is_begun_while_a_ticket_waits(year: Run) -> None:
    calendar = calendar_of(year)
    steps = [step for log in logs_of(year) for step in log.steps.values() if step.activity != "analyse"]
    waiting = [(step.queued, step.started) for step in steps if step.started is not None and step.started > step.queued]
    begun = [
        working_minute(event["time"], calendar)
        for event in events(year, "start")
        if event["actor"].startswith("agent") and not event["case"].startswith("work/")
    ]
    assert len(begun) > 50
    assert len(waiting) > 50, "planned work in hand is finished first"
    assert not [minute for minute in begun if any(queued < minute < started for queued, started in waiting)]


def test_planners_leave_room_for_the_recurring_work_that_they_expect(tmp_path: Path, year: Run) -> None:
    org, population, calendar = year.folder.organization(), year.folder.population(), calendar_of(year)
    done = Counter(row["role"] for row in rows(year, "subtasks") if row["status"] != "dropped")
    asked = demanded(org, population, calendar, 52)
    for role in ("Agent", "Engineer"):
        assert done[role] == pytest.approx(asked[role], rel=0.1)
    without = simulated(tmp_path / "run", desk().partition("work:")[0], until="week:12")
    hours = {run: sum(t["planned_hours"] for t in rows(run, "tasks", kind="composite") if planned_by(t, 12)) for run in (year, without)}
    assert hours[year] < hours[without]


def planned_by(task: Mapping[str, object], week: int) -> bool:
    return int(str(task["id"]).partition("@")[0].rpartition("/W")[2]) <= week


def test_booked_hours_are_those_of_planned_work_and_of_cases(alone: Run) -> None:
    worked = sum(step.worked for log in logs_of(alone) for step in log.steps.values()) / 60
    booked = sum(row["booked"] for row in rows(alone, "load", agent="agent"))
    open_at_the_end = sum(step.since is not None for log in logs_of(alone) for step in log.steps.values())
    assert worked <= booked + 0.3
    assert booked - worked <= 0.3 + 2 * open_at_the_end, "rounding, and a step in hand when the year ended"


def test_plans_read_how_many_cases_are_open(tmp_path: Path) -> None:
    def formulate(request):  # type: ignore[no-untyped-def]
        asked.append(request.inputs["readings"])
        return {"plan": "Go on", "focus": [], "risks": []}

    asked: list[list[dict[str, object]]] = []
    simulated(tmp_path / "run", desk(), until="week:2", stubs={"formulate": formulate})
    assert asked[-1] == [{"kpi": "tickets open", "value": asked[-1][0]["value"], "unit": "cases", "target": None, "goal": None}]


# ------------------------------------------------------------ when somebody is away
def open_at(logs: Sequence[CaseLog], minute: int) -> int:
    return sum(log.arrived < minute and (log.completed is None or log.completed > minute) for log in logs)


def test_a_queue_builds_while_the_only_agent_is_away_and_drains_after(tmp_path: Path) -> None:
    people = "people: {Ada Berg: {role: Agent, away: [2026-03-02/2026-03-13]}}\n"
    run = simulated(tmp_path / "run", desk(agents=1, demand=0.01, steps="[answer]", hours="0.5-2") + people, until="week:20")
    calendar, logs = calendar_of(run), logs_of(run)
    left, back = (calendar.weeks[index].first_day * calendar.day_minutes for index in (8, 10))
    waiting = [open_at(logs, back + weeks * 5 * 480) for weeks in range(10)]
    assert open_at(logs, left) <= 8
    assert near(waiting[0] - open_at(logs, left), 36, 6), "two weeks of arrivals"
    assert waiting[-1] <= 8
    assert max(waiting[:2]) > 3 * max(waiting[6:])
    assert not [s for log in logs for s in log.steps.values() if s.started is not None and left < s.started < back]
    assert sum(row["available"] for row in rows(run, "load", agent="agent") if row["week"] in (9, 10)) == 0


ABSENCE = {
    "title": "Flu",
    "category": "internal",
    "severity": "low",
    "description": "One is ill.",
    "affects": ["agent-1"],
    "at": "2026-01-14",
    "duration": "2 weeks",
    "effects": [{"absence": {"agent": "agent-1", "for": "2 weeks"}}],
}


def test_a_colleague_goes_on_with_what_an_absent_agent_had_in_hand(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", desk(hours="2-4", demand=0.01), until="week:5", incidents=[ABSENCE])
    ill = range(working_minute("2026-01-14T09:00", calendar_of(run)), working_minute("2026-01-28T09:00", calendar_of(run)))
    steps = [step for log in logs_of(run) for step in log.steps.values()]
    shared = [step for step in steps if step.agents[:2] == ["agent-1", "agent-2"]]
    assert shared, "one step was in hand on the morning of the absence"
    assert all(120 <= step.worked <= 240 for step in steps if step.finished is not None), "nobody does it twice"
    assert not [step for step in steps if step.agents[-1:] == ["agent-1"] and step.started in ill]


def test_an_agent_who_goes_home_earlier_goes_on_the_next_morning(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", desk(agents=1, fte=0.6, demand=0.01, steps="[answer]", hours="0.5-2"), until="week:8")
    steps = finished(logs_of(run), "answer")
    paused = [step for step in steps if len(step.agents) > 1]
    assert len(paused) > 5
    assert all(30 <= step.worked <= 120 for step in steps)
    assert {event["time"][11:] for event in events(run, "pause")} == {"13:48"}, "0.6 of eight hours after nine"


def test_urgent_work_interrupts_a_step_which_keeps_its_place(tmp_path: Path) -> None:
    storm = {**ABSENCE, "title": "Outage", "severity": "high", "affects": ["Desk"], "effects": [], "at": "2026-01-14"}
    run = simulated(tmp_path / "run", desk(agents=1, demand=0.01, steps="[answer]", hours="6-8"), until="week:4", incidents=[storm])
    preempted = [event for event in events(run, "preempt") if event["case"].startswith("work/")]
    assert preempted
    logs = logs_of(run)
    step = next(s for log in logs for s in log.steps.values() if s.id == preempted[0]["subject"])
    assert step.finished is not None
    assert 360 <= step.worked <= 480
    started = [s.started for log in logs for s in log.steps.values() if s.started is not None]
    assert started == sorted(started)


# ------------------------------------------------------------ what is said of it
def test_what_is_open_at_the_horizon_stays_open_and_is_said(year: Run) -> None:
    found = {one.name: one for one in cases(case_logs(year.events(), calendar_of(year)))}
    told = year.status().cases
    assert {name: (one.arrived, one.completed) for name, one in found.items()} == {name: tuple(told[name]) for name in found}
    line = dict(_lines(year.status()))["tickets"]
    assert line == f"{found['tickets'].arrived} cases arrived, {found['tickets'].completed} completed, {found['tickets'].open} open"
    with year.pool() as pool:
        figures = closing(pool, year.folder.organization(), year.folder.population())
    console = Console(width=80, record=True, file=StringIO())
    console.print(render(figures))
    shown = console.export_text()
    assert "Recurring work" in shown
    assert figures.cases == tuple(found.values())


def test_a_run_without_recurring_work_says_nothing_of_it(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "tiny", until="week:1")
    assert run.status().cases == {}
    with run.pool() as pool:
        assert closing(pool, run.folder.organization(), run.folder.population()).cases == ()
