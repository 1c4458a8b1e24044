"""The closing figures, each against an example computed by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from taskweave.evaluation.text import Share
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.org.schema import parse
from taskweave.pool.pool import Pool
from taskweave.pool.tables import Row
from taskweave.report.closing import Closing, closing, demanded, render
from taskweave.report.figures import (
    Answers,
    Completion,
    DepartmentLoad,
    Hub,
    KlPair,
    RoleShare,
    StepCalls,
    answers,
    completion,
    divergence,
    hubs,
    kl,
    loads,
    role_shares,
    step_calls,
    task_edges,
)
from taskweave.report.wording import percent
from tests import pool_rows as rows

FIRM = """
name: Bright Ledger
domain: Software
calendar: {start: 2026-01-05, hours: 8, holidays: [2026-01-06]}
goals: {grow: {text: 220 firms, owner: Boss}}
roles:
  Boss: {executes: 0%}
  Engineer: {reports_to: Boss, leads: Product, count: 2, hours: 4-8, demand: 1.5, share: 3, executes: 50%}
  Analyst: {reports_to: Engineer, fte: 0.5, hours: 8-8, share: 1}
  Agent: {reports_to: Engineer, hours: 2-4}
people:
  Ines Roux: {role: Agent, away: [2026-01-08/2026-01-09]}
"""


@pytest.fixture
def org() -> Organization:
    return parse(FIRM, "firm.yaml")


# ---------------------------------------------------------------- KL
def test_kl_of_three_to_one_against_even_shares_is_computed_by_hand() -> None:
    assert kl({"a": 3, "b": 1}, {"a": 1, "b": 1}) == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5))
    assert kl({"a": 3, "b": 1}, {"a": 1, "b": 1}) == pytest.approx(0.130812, abs=1e-6)
    assert kl({"a": 1, "b": 1}, {"a": 3, "b": 1}) == pytest.approx(0.143841, abs=1e-6)  # it is not symmetric


def test_kl_does_not_depend_on_scale_and_is_zero_only_for_equal_shares() -> None:
    assert kl({"a": 30, "b": 10}, {"a": 0.75, "b": 0.25}) == 0
    assert kl({"a": 0.1, "b": 0.2, "c": 0.7}, {"a": 10, "b": 20, "c": 70}) == pytest.approx(0, abs=1e-12)


def test_a_role_that_executed_nothing_adds_nothing_and_one_that_should_not_have_makes_it_infinite() -> None:
    assert kl({"a": 5, "b": 0}, {"a": 1, "b": 1}) == pytest.approx(math.log(2))
    assert kl({"a": 1, "b": 1}, {"a": 1, "b": 0}) == math.inf
    assert kl({"a": 1, "b": 1}, {"a": 1}) == math.inf


def test_kl_without_a_denominator_is_none() -> None:
    assert kl({}, {"a": 1}) is None
    assert kl({"a": 0}, {"a": 1}) is None
    assert kl({"a": 1}, {}) is None


def test_divergence_leaves_out_roles_without_expectation_and_shows_uniform_beside() -> None:
    pair = divergence({"a": 3, "b": 1, "boss": 100}, {"a": 1, "b": 3, "boss": None})
    assert pair.executed == pytest.approx(0.75 * math.log(3) + 0.25 * math.log(1 / 3))
    assert pair.uniform == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(2 / 3))
    assert divergence({"a": 3}, {"a": None}) == (None, None)


def test_role_shares_stand_beside_demand_and_reference_each_normalised() -> None:
    found = role_shares({"b": 1, "a": 3}, {"a": 10.0, "b": 30.0}, {"a": 5.0, "b": None, "idle": None}, ["a", "b", "idle"])
    assert found == [RoleShare("a", 3, 0.75, 0.25, 1.0), RoleShare("b", 1, 0.25, 0.75, None)]
    assert role_shares({}, {"a": 1.0}, {}, ["a"]) == [RoleShare("a", 0, None, 1.0, None)]


# ---------------------------------------------------------------- demand
def test_demand_counts_presence_fte_executes_count_and_middle_hours(org: Organization) -> None:
    population, calendar = Population.sample(org, 1), WorkCalendar(org.calendar)
    asked = demanded(org, population, calendar, 1)  # 4 working days: Tuesday is a holiday
    assert asked == {
        "Engineer": pytest.approx(2 * 4 * 8 * 0.5 * 0.85 * 1.5 / 6),
        "Analyst": pytest.approx(4 * 8 * 0.5 * 0.85 / 8),
        "Agent": pytest.approx(2 * 8 * 0.85 / 3),  # away on Thursday and Friday
    }
    assert demanded(org, population, calendar, 2)["Agent"] == pytest.approx((2 + 5) * 8 * 0.85 / 3)
    assert demanded(org, population, calendar, 0) == {}


# ---------------------------------------------------------------- load, calls, completion
def test_load_is_booked_over_available_by_department_with_none_last() -> None:
    week = [row for _, row in (rows.load(1, "a", 40, 30), rows.load(2, "a", 40, 42), rows.load(1, "b", 20, 5), rows.load(1, "boss", 0, 0))]
    assert loads(week, {"a": "Product", "b": "Insights", "boss": None}) == [
        DepartmentLoad("Insights", 20, 5, 0.25),
        DepartmentLoad("Product", 80, 72, 0.9),
        DepartmentLoad(None, 0, 0, None),
    ]


def test_calls_are_counted_by_step_and_by_backbone_with_their_tokens() -> None:
    made = [
        rows.call("a"),
        rows.call("b", prompt="execute_title", backbone="openai:m"),
        rows.call("c", prompt="merge", prompt_tokens=None),
    ]
    assert step_calls(row for _, row in made) == [StepCalls("execute", 2, 1800, 240), StepCalls("merge", 1, 0, 120)]
    assert step_calls((row for _, row in made), by="backbone") == [StepCalls("openai:m", 1, 900, 120), StepCalls("scripted", 2, 900, 240)]


TOLD = [
    ["execute", "execution", "a", 20, 3, 1],
    ["execute", "execution", "b", 10, 0, 0],
    ["formulate", "month", "a", 3, 0, 3],
    ["formulate", "year", "a", 1, 0, 0],
]


def test_answers_are_added_up_by_step_and_level_so_that_a_level_that_always_fails_shows() -> None:
    found = answers(TOLD, by=("step", "level"))
    assert found == [
        Answers("formulate", "year", "", 1, 0, 0),
        Answers("formulate", "month", "", 3, 0, 3),
        Answers("execute", "execution", "", 30, 3, 1),
    ]
    assert [one.fallback_share for one in found] == [0, 1, 1 / 30]
    assert found[2].at_once == 26
    assert answers(TOLD, by=()) == [Answers("", "", "", 34, 3, 4)]
    assert answers([], by=()) == []
    assert Answers("merge", "execution", "", 0, 0, 0).fallback_share is None


def test_completion_is_reported_with_and_without_fallbacks() -> None:
    assert completion(["a", "b", "c", "d"], ["a", "b", "c"], ["c", "d"]) == (Share(3, 4), Share(2, 4))
    assert completion([], [], []).done.value is None


# ---------------------------------------------------------------- the dependency graph
def test_edges_join_merged_results_of_different_tasks_and_count_what_partials_use() -> None:
    task_of = {"t1": "t1", "t1/s1": "t1", "t2": "t2", "t2/s1": "t2", "t3/s1": "t3"}
    uses = [
        rows.use("t2/s1", "t1", "retrieved"),
        rows.use("t2/s1", "t1/s1", "explicit"),  # the same two tasks: one edge
        rows.use("t1", "t1/s1", "merged"),
        rows.use("t1/s1", "t1", "explicit"),  # within a task
        rows.use("t3/s1", "t1", "retrieved"),  # t3 has no merged result
        rows.use("t2", "sql", "explicit", "tool"),
        rows.use("t2", "gone", "explicit"),
    ]
    assert task_edges((row for _, row in uses), task_of, {"t1", "t2"}) == {("t2", "t1")}


def test_hubs_are_the_most_used_and_the_most_using_ties_by_id() -> None:
    edges = [("c", "a"), ("d", "a"), ("d", "b"), ("e", "b"), ("e", "c"), ("d", "a")]
    assert hubs(edges, 2) == ([Hub("a", 2), Hub("b", 2)], [Hub("d", 2), Hub("e", 2)])
    assert hubs([]) == ([], [])


# ---------------------------------------------------------------- a whole run
W1, W2, W14 = "Y1/Q1/M01/W01@engineer-1", "Y1/Q1/M01/W02@engineer-1", "Y1/Q2/M04/W14@engineer-1"


def a_run() -> list[Row]:
    return [
        rows.agent("boss", "Boss", department=None),
        rows.agent("engineer-1", "Engineer", name="Ada Roux"),
        rows.agent("agent", "Agent", name="Ines Roux"),
        rows.task(f"{W1}/t1", title="Churn report for Ines Roux, week 1"),
        rows.task(f"{W1}/t2", title="Churn report for Ines, week 2", status="dropped", done_on_time=None),
        rows.task(f"{W2}/t1", title="Tax audit", done_on_time=False),
        rows.task(f"{W14}/t1", title="Price list", status="spilled", done_on_time=None),
        rows.task("Y1@boss/t1", title="An objective", kind="objective", status="open"),
        rows.subtask(f"{W1}/t1/s1", assignee="engineer-1"),
        rows.subtask(f"{W1}/t1/s2", assignee="agent"),
        rows.subtask(f"{W2}/t1/s1", assignee="engineer-1"),
        rows.subtask(f"{W2}/t1/s2", assignee="engineer-1", status="dropped"),
        rows.subtask(f"{W14}/t1/s1", assignee="agent", status="spilled"),
        rows.result(f"{W1}/t1/s1", by="engineer-1", finished="2026-01-08T10:00"),
        rows.result(f"{W1}/t1/s2", by="agent", finished="2026-01-08T11:00"),
        rows.result(f"{W1}/t1", merged=True, by="engineer-1", title="Churn findings", finished="2026-01-08T11:00"),
        rows.result(f"{W2}/t1/s1", by="engineer-1", finished="2026-04-07T10:00", quality="fallback", origin="fallback"),
        rows.result(f"{W2}/t1", merged=True, by="engineer-1", finished="2026-04-07T10:00", content="As the churn FINDINGS say."),
        rows.use(f"{W2}/t1/s1", f"{W1}/t1", "retrieved"),
        rows.event(1, "spilled", f"{W2}/t1", "2026-01-16T17:00"),
        rows.event(2, "spilled", f"{W2}/t1", "2026-01-23T17:00"),
        rows.event(3, "spilled", f"{W14}/t1", "2026-04-10T17:00"),
        rows.event(4, "blocked", f"{W1}/t2", "2026-01-09T17:00"),
        rows.event(5, "blocked", f"{W1}/t1/s1", "2026-01-09T17:00"),
        rows.load(1, "agent", 32, 16),
        rows.call(f"{W1}/t1/s1:execute"),
    ]


@pytest.fixture
def figures(tmp_path: Path, org: Organization) -> Iterator[Closing]:
    with Pool.create(tmp_path / "run.db") as pool:
        pool.write_week(14, "", a_run())
        yield closing(pool, org, Population.sample(org, 1))


def test_quarters_count_tasks_where_they_were_planned_and_where_they_finished(figures: Closing) -> None:
    first, second = figures.quarters
    assert first == (1, 3, 1, Share(1, 1), 2, 1, 1)
    assert second == (2, 1, 1, Share(0, 1), 1, 0, 0)


def test_a_run_is_added_up(figures: Closing) -> None:
    assert (figures.weeks, figures.origins, figures.qualities) == (14, {"fallback": 1, "scripted": 4}, {"fallback": 1, "ok": 4})
    assert figures.tasks == (Share(2, 4), Share(1, 4))
    assert figures.subtasks == (Share(3, 4), Share(2, 4))
    assert figures.loads == (DepartmentLoad("Product", 32, 16, 0.5),)
    assert [(row.role, row.executed, row.reference) for row in figures.roles] == [
        ("Engineer", 2, 0.75),
        ("Analyst", 0, 0.25),
        ("Agent", 1, None),
    ]
    assert figures.to_reference.executed == pytest.approx(math.log(1 / 0.75))  # of Engineer 2, Analyst 0 against 3 to 1
    assert figures.most_used == (Hub(f"{W1}/t1", 1),)
    assert figures.most_using == (Hub(f"{W2}/t1", 1),)
    assert figures.distinct == Share(3, 4)
    assert (figures.linked, figures.naming) == (Share(1, 1), Share(1, 1))


def test_shares_to_demand_use_the_weeks_that_were_written(figures: Closing, org: Organization) -> None:
    asked = demanded(org, Population.sample(org, 1), WorkCalendar(org.calendar), 14)
    assert figures.to_demand.executed == pytest.approx(kl({"Engineer": 2, "Agent": 1}, asked))
    assert figures.to_demand.uniform == pytest.approx(kl(dict.fromkeys(asked, 1), asked))


def shown(figures: Closing, width: int = 80) -> str:
    console = Console(width=width, no_color=True)
    with console.capture() as capture:
        console.print(render(figures))
    return capture.get()


def test_it_fits_80_columns_and_says_that_it_is_a_stand_in(figures: Closing) -> None:
    text = shown(figures)
    assert max(map(len, text.splitlines())) <= 80
    for part in ("scripted stand-in: no model wrote 4 of 5 results", "Q2", "Churn findings", "50 % (2 of 4)", "Engineer", "nats"):
        assert part in text, part


def test_what_is_not_there_is_not_counted(figures: Closing) -> None:
    assert "Tasks done: 50 % (2 of 4); without fallbacks 25 % (1 of 4)" in shown(figures)
    clean = figures._replace(tasks=Completion(Share(2, 4), Share(2, 4)), to_reference=KlPair(None, None))
    assert "Tasks done: 50 % (2 of 4)\nSubtasks done" in shown(clean)
    assert "KL to reference: no reference shares are given" in shown(clean)
    assert "nats" not in shown(clean).split("KL to reference")[1]


def test_tables_say_what_their_columns_count(figures: Closing) -> None:
    text = " ".join(shown(figures).split())
    assert "done: by the quarter of finishing" in text
    assert "used by: so many merged results of other tasks" in text


@pytest.mark.parametrize(
    ("value", "digits", "said"),
    [
        *((None, 0, "–"), (1, 0, "100 %"), (1.0, 1, "100.0 %"), (0, 0, "0 %"), (0.25, 0, "25 %"), (0.994, 0, "99 %")),
        *((0.996, 0, "99.6 %"), (2999 / 3000, 0, "> 99.9 %"), (0.99999, 1, "> 99.9 %"), (0.004, 0, "0.4 %"), (0.0001, 1, "< 0.1 %")),
    ],
)
def test_only_all_and_nothing_read_as_100_and_0_percent(value: float | None, digits: int, said: str) -> None:
    assert percent(value, digits) == said


def test_a_run_by_a_model_is_not_called_a_stand_in(figures: Closing) -> None:
    assert "stand-in" not in shown(figures._replace(origins={"model": 9}))


def test_a_run_without_a_week_shows_dashes_and_never_zero_percent(tmp_path: Path, org: Organization) -> None:
    with Pool.create(tmp_path / "run.db") as pool:
        empty = closing(pool, org, Population.sample(org, 1))
    assert (empty.tasks.done.value, empty.to_demand, empty.to_reference.executed, empty.linked.value) == (None, (None, None), None, None)
    text = shown(empty)
    assert "–" in text
    assert "0 %" not in text.replace("75.0 %", "").replace("25.0 %", "")
