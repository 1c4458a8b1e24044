"""The figures of one run by weeks, department and activity, each against rows written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from taskweave.experiments.measures import Family, Figure, measures
from taskweave.experiments.rows import RunRows, Span
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.tables import Row
from tests import pool_rows as some
from tests.run_rows import run_rows

PEOPLE = [
    some.agent("cto", "CTO", tier=1),
    some.agent("ada", "Engineer"),
    some.agent("bob", "Analyst", department="Sales"),
    some.agent("ceo", "Chief", department=None),
]
WEEK = {1: "Y1/Q1/M01/W01@cto", 2: "Y1/Q1/M01/W02@cto", 3: "Y1/Q1/M01/W03@cto", 4: "Y1/Q1/M01/W04@cto"}


def family(run: RunRows, name: str, first: int = 2, last: int = 3) -> Family:
    span = Span(WorkCalendar(run.organization.calendar), first, last)
    return next(one for one in measures(run, span) if one.name == name)


def made(where: Path, *rows: Row) -> RunRows:
    return run_rows(where / "run", [*PEOPLE, *rows])


def task(week: int, number: int, **more: object) -> Row:
    return some.task(f"{WEEK[week]}/t{number}", **more)  # type: ignore[arg-type]  # values of any column


def done(row: Row, day: str) -> Sequence[Row]:
    return row, some.result(row[1]["id"], merged=True, finished=f"{day}T11:00")


def test_tasks_and_hours_are_of_the_weeks_in_which_they_were_planned(tmp_path: Path) -> None:
    run = made(
        tmp_path,
        *(task(week, 1, planned_hours=10 * week) for week in WEEK),
        task(3, 2, planned_hours=5, priority="urgent"),
        some.task("Y1/Q1/M01/W02@bob/t1", planned_hours=7),
        some.task("Y1/Q1/M01/W02@ceo/t1", planned_hours=1),
    )
    count, hours = family(run, "tasks"), family(run, "hours")
    assert count.figures == {
        "all": Figure(value=5),
        "(no department)": Figure(value=1, of=5),
        "Product": Figure(value=3, of=5),
        "Sales": Figure(value=1, of=5),
        "urgent, in all departments": Figure(value=1, of=5),
    }
    assert hours.figure("Product") == Figure(value=55, of=63)
    assert hours.figure("Nowhere") == Figure(value=0, of=63)


def test_activities_are_counted_by_department_and_follow_from_words(tmp_path: Path) -> None:
    run = made(tmp_path, task(2, 1, activity="audit"), task(2, 2, activity="audit"), some.task("Y1/Q1/M01/W03@bob/t1", activity="audit"))
    found = family(run, "activities")
    assert found.figures == {"Product, audit": Figure(value=2, of=3), "Sales, audit": Figure(value=1, of=3)}
    assert found.basis == "text"
    assert {one.basis for one in measures(run, Span(WorkCalendar(run.organization.calendar), 2, 3)) if one is not found} == {
        "capacity",
        "text",
    }


def test_role_shares_are_of_the_hours_assigned_in_these_weeks(tmp_path: Path) -> None:
    def subtask(number: int, day: str, **more: object) -> Row:
        return some.subtask(f"{WEEK[2]}/t1/s{number}", created=f"{day}T09:00", **more)  # type: ignore[arg-type]  # values of any column

    run = made(
        tmp_path,
        task(2, 1),
        subtask(1, "2026-01-12", hours=6),
        subtask(2, "2026-01-25", hours=2, assignee="bob"),  # the Sunday of week 3
        subtask(3, "2026-01-11", hours=50),  # the Sunday of week 1
        subtask(4, "2026-01-26", hours=50),  # week 4
        subtask(5, "2026-01-13", hours=50, status="dropped"),  # handed over: its successor counts
        subtask(6, "2026-01-13", hours=50, assignee=None),
    )
    assert family(run, "roles").figures == {"Analyst": Figure(value=0.25, of=8), "Engineer": Figure(value=0.75, of=8)}
    assert family(run, "roles").figure("Chief") == Figure(value=0, of=8)


def test_load_is_booked_of_available_hours_by_department(tmp_path: Path) -> None:
    run = made(tmp_path, *(some.load(week, agent, 40, hours) for week, agent, hours in ((1, "ada", 40), (2, "ada", 10), (3, "ada", 30))))
    assert family(run, "load").figures == {"Product": Figure(value=0.5, of=80), "all": Figure(value=0.5, of=80)}
    assert family(run, "load").figure("Sales").value is None


def test_readings_and_goals_are_those_of_the_last_week(tmp_path: Path) -> None:
    told: list[Row] = []
    for week in WEEK:
        told += [("readings", {"week": week, "kpi": "firms", "value": 100.0 + week})]
        told += [("goals", {"week": week, "goal": "grow", "progress": None if week == 4 else week / 10})]
    run = made(tmp_path, *told)
    assert family(run, "readings").figures == {"firms": Figure(value=103.0)}
    assert family(run, "readings").units == {"firms": "firms"}
    assert family(run, "goals").figures == {"grow": Figure(value=0.3)}
    assert family(run, "goals", 2, 4).figure("grow").value is None


def test_completion_counts_what_was_planned_or_still_open_then(tmp_path: Path) -> None:
    run = made(
        tmp_path,
        *done(task(1, 1, due="2026-01-09"), "2026-01-09"),  # done before: not counted
        *done(task(1, 2, due="2026-01-09"), "2026-01-14"),  # carried into week 2, overdue
        *done(task(2, 1, due="2026-01-16"), "2026-01-16"),
        *done(task(2, 2, due="2026-01-16", quality="fallback"), "2026-01-15"),
        *done(task(3, 1, due="2026-01-23"), "2026-01-28"),  # done, but after week 3
        task(3, 2, due="2026-01-30", status="spilled", done_on_time=None),  # not due yet
        task(3, 3, due="2026-01-23", status="dropped"),
        ("events", {**some.event(1, "supersede", f"{WEEK[3]}/t3", "2026-01-20T09:00")[1]}),
    )
    figures = family(run, "completion").figures
    assert figures["tasks done"] == Figure(value=3 / 6, of=6)
    assert figures["tasks done, no fallback"] == Figure(value=2 / 6, of=6)
    assert figures["dropped"] == Figure(value=1 / 6, of=6)
    assert figures["overdue, of tasks due"] == Figure(value=2 / 4, of=4)


@pytest.mark.parametrize("where", ["subtask", "result"])
def test_a_fallback_anywhere_in_a_task_counts(tmp_path: Path, where: str) -> None:
    name = f"{WEEK[2]}/t1"
    marks = {"quality": "fallback"}
    extra = (
        some.subtask(f"{name}/s1", created="2026-01-12T09:00", **marks)
        if where == "subtask"
        else some.result(f"{name}/s1", finished="2026-01-13T10:00", **marks)
    )
    figures = family(made(tmp_path, *done(task(2, 1), "2026-01-14"), extra), "completion").figures
    assert (figures["tasks done"].value, figures["tasks done, no fallback"].value) == (1, 0)


def test_subtasks_done_are_those_finished_when_the_weeks_end(tmp_path: Path) -> None:
    def subtask(number: int, finished: str | None) -> Row:
        return some.subtask(f"{WEEK[2]}/t1/s{number}", created="2026-01-12T09:00", finished=finished)

    run = made(tmp_path, task(2, 1), subtask(1, "2026-01-14T10:00"), subtask(2, "2026-01-27T10:00"), subtask(3, None))
    assert family(run, "completion").figures["subtasks done"] == Figure(value=1 / 3, of=3)


def test_fallback_shares_are_of_what_was_asked_in_these_weeks(tmp_path: Path) -> None:
    told = {
        1: [["execute", "execution", "m", 10, 0, 4], ["align", "week", "m", 5, 0, 0]],
        3: [["execute", "execution", "m", 18, 0, 6], ["execute", "execution", "n", 2, 0, 2], ["align", "week", "m", 5, 0, 0]],
    }
    run = replace(made(tmp_path), answers=told)
    assert family(run, "fallbacks").figures == {"all": Figure(value=0.4, of=10), "execute": Figure(value=0.4, of=10)}
    assert family(run, "fallbacks", 1, 3).figure("execute") == Figure(value=0.4, of=20)
    assert family(run, "fallbacks").figure("align").value is None  # nothing was asked


def test_what_has_no_denominator_is_not_known(tmp_path: Path) -> None:
    run = made(tmp_path)
    assert {one.value for one in family(run, "completion").figures.values()} == {None}
    assert family(run, "load").figures["all"].value is None
    assert family(run, "roles").figure("Engineer").value is None


def test_plans_are_those_written_in_the_weeks_and_a_closings_belong_to_the_week_before(tmp_path: Path) -> None:
    run = made(
        tmp_path,
        some.state(WEEK[1], since="2026-01-05T09:00"),
        some.state(WEEK[1], revision=2, since="2026-01-12T09:00"),  # the closing of week 1
        some.state(WEEK[2], since="2026-01-12T09:00"),
        some.state(WEEK[2], revision=2, since="2026-01-14T09:00"),
        some.state(WEEK[3], since="2026-01-19T09:00"),
        some.state(WEEK[3], revision=2, since="2026-01-26T09:00"),  # the closing of week 3
        some.state(WEEK[4], since="2026-01-26T09:00"),
    )
    span = Span(WorkCalendar(run.organization.calendar), 2, 3)
    assert span.plans(run) == {
        ("week", "cto"): {
            WEEK[2]: f"plan 1 of {WEEK[2]}\nplan 2 of {WEEK[2]}",
            WEEK[3]: f"plan 1 of {WEEK[3]}\nplan 2 of {WEEK[3]}",
        }
    }


def test_overdue_hours_are_planned_hours_of_tasks_not_done_when_due(tmp_path: Path) -> None:
    due = "2026-01-16"
    run = made(
        tmp_path,
        *done(task(2, 1, planned_hours=10, due=due, status="done"), "2026-01-19"),
        *done(task(2, 2, planned_hours=7, due=due, status="done"), "2026-01-16"),
        task(2, 3, planned_hours=5, due=due, status="spilled"),
        task(2, 4, planned_hours=3, due="2026-03-16", status="open"),
    )
    overdue = family(run, "overdue")
    assert overdue.figures == {"all": Figure(value=15, of=22), "Product": Figure(value=15, of=22)}
    assert overdue.figure("Sales") == Figure(value=0, of=0)
