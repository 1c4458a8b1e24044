"""What incidents change: each effect, on the rows of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskweave.api import Run
from taskweave.driving import Organization
from taskweave.errors import IncidentInvalid
from taskweave.estimating import estimate
from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.population import Population
from taskweave.org.schema import parse
from taskweave.report.calls import as_json, calls_at
from taskweave.simulation.incidents import Incidents
from tests.simulated import events, rows, simulated

SHOP = """
name: Shop
domain: Furniture repair
calendar: {start: 2026-01-05, hours: 8}
goals:
  orders: {text: Repair 400 chairs, owner: Head, by: 2026-06-30, kpi: returns, target: 1.0}
  stock: {text: Keep the store full, owner: Head}
departments: {Repair: {head: Head}, Store: {head: Keeper}}
roles:
  Head: {leads: Repair, activities: [plan]}
  Joiner: {reports_to: Head, count: 3, hours: 3-5, activities: [repair]}
  Upholsterer: {reports_to: Head, hours: 3-5, activities: [repair, review]}
  Keeper: {reports_to: Head, leads: Store, executes: 50%, hours: 2-4, activities: [plan]}
  Packer: {reports_to: Keeper, hours: 2-4, activities: [deploy]}
activities: [plan, repair, review, deploy]
environment: {returns: {start: 3.0, unit: "%"}}
workload: {utilisation: 0.8, composite_hours: 12, variation: 0}
"""


def happens(at: str = "week:2", **told: Any) -> dict[str, Any]:
    return {"title": "It happens", "at": at, "duration": "2 weeks", **told}


def effect(kind: str, value: Any, **told: Any) -> dict[str, Any]:
    return happens(effects=[{kind: value}], **told)


def shop(where: Path, *incidents: dict[str, Any], until: str = "week:4", seed: int = 1) -> Run:
    return simulated(where, SHOP, incidents=incidents, until=until, seed=seed)


def planned(run: Run, week: int, owner: str = "head") -> float:
    return sum(task["planned_hours"] for task in composites(run) if f"/W{week:02}@{owner}/" in task["id"])


def composites(run: Run, **where: Any) -> list[dict[str, Any]]:
    return rows(run, "tasks", kind="composite", **where)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return shop(tmp_path_factory.mktemp("quiet") / "run")


# ------------------------------------------------------------ work
def test_work_that_must_be_done_is_a_task_of_the_unit_that_owns_the_role_with_its_deadline_and_cause(tmp_path: Path, quiet: Run) -> None:
    asked = {"role": "Upholsterer", "title": "Fire safety review", "hours": 8, "due": "2 weeks", "priority": "high", "goals": ["stock"]}
    run = shop(tmp_path / "run", effect("workload", asked))
    (task,) = composites(run, title="Fire safety review")
    assert task["id"].startswith("Y1/Q1/M01/W02@head/u")
    assert (task["due"], task["status"], task["done_on_time"]) == ("2026-01-26", "done", True)
    assert (task["priority"], task["activity"], task["goals"], task["planned_hours"]) == ("high", "review", ["stock"], 8.0)
    subtasks = rows(run, "subtasks", task=task["id"])
    assert [subtask["role"] for subtask in subtasks] == ["Upholsterer", "Upholsterer"]
    assert sum(subtask["hours"] for subtask in subtasks) == 8.0
    assert ("it-happens", "incident") in {(use["used"], use["kind"]) for use in rows(run, "uses", result=task["id"])}
    assert planned(run, 2) == planned(quiet, 2), "what must be done takes the place of what would have been planned"


def test_urgent_work_begins_on_the_day_and_other_work_with_the_next_plans(tmp_path: Path) -> None:
    urgent = {"role": "Joiner", "title": "Urgent thing", "hours": 4, "due": "3 days", "priority": "urgent"}
    later = {"role": "Joiner", "title": "Later thing", "hours": 4, "due": "4 weeks"}
    soon = {"role": "Joiner", "title": "Soon thing", "hours": 4, "due": "2 days"}
    run = shop(tmp_path / "run", happens("2026-01-14", effects=[{"workload": one} for one in (urgent, later, soon)]))
    (one,), (two,), (three,) = (composites(run, title=f"{name} thing") for name in ("Urgent", "Later", "Soon"))
    assert one["priority"] == "urgent"
    assert "W02@head" in one["id"]
    assert "W02@head" in three["id"], "what is due before the next week begins does not wait for its plans"
    assert "W03@head" in two["id"]
    began = min(subtask["started"] for subtask in rows(run, "subtasks", task=one["id"]))
    assert began[:10] == "2026-01-14"


def test_more_work_than_one_task_holds_is_several_and_what_cannot_be_done_in_time_is_late(tmp_path: Path) -> None:
    asked = {"role": "Upholsterer", "title": "Recover all chairs", "hours": 80, "due": "1 week", "priority": "high"}
    run = shop(tmp_path / "run", effect("workload", asked), until="week:3")
    parts = [task for task in composites(run) if task["title"].startswith("Recover all chairs (")]
    assert [task["title"][-5:] for task in parts] == ["(1/4)", "(2/4)", "(3/4)", "(4/4)"]
    assert sum(task["planned_hours"] for task in parts) == 80
    assert False in {task["done_on_time"] for task in parts}


def test_work_without_a_role_goes_to_the_one_that_fits_its_words_of_those_affected(tmp_path: Path) -> None:
    run = shop(tmp_path / "run", effect("workload", {"title": "Repair and review", "hours": 4}, affects=["Repair"]))
    (task,) = composites(run, title="Repair and review")
    assert [subtask["role"] for subtask in rows(run, "subtasks", task=task["id"])] == ["Upholsterer"]


# ------------------------------------------------------------ capacity and budget
def test_planners_plan_with_less_while_capacity_is_cut_and_with_all_again_afterwards(tmp_path: Path, quiet: Run) -> None:
    run = shop(tmp_path / "run", effect("capacity", {"department": "Repair", "factor": 0.5, "for": "1 week"}))
    hours, as_ever = [planned(run, week) for week in (1, 2, 3)], [planned(quiet, week) for week in (1, 2, 3)]
    assert hours[0] == as_ever[0]
    assert hours[1] < 0.65 * as_ever[1]
    assert hours[2] > 0.9 * as_ever[2]
    assert planned(run, 2, "keeper") == planned(quiet, 2, "keeper")


def test_a_budget_bounds_the_hours_of_new_tasks_and_says_what_was_not_planned(tmp_path: Path, quiet: Run) -> None:
    run = shop(tmp_path / "run", effect("budget", {"department": "Repair", "hours": 100, "for": "2 weeks"}))
    assert planned(quiet, 2) + planned(quiet, 3) > 100
    assert planned(run, 2) + planned(run, 3) <= 100
    assert planned(run, 4) > 0
    assert [event["subject"] for event in events(run, "budget")][0].endswith("@head")


# ------------------------------------------------------------ figures and goals
def test_a_figure_is_shifted_once_and_pushed_for_so_long(tmp_path: Path, quiet: Run) -> None:
    run = shop(tmp_path / "run", effect("kpi", {"returns": "+0.5", "slope": "0.1/week", "for": "15 days"}), until="week:6")
    values = [reading["value"] for reading in rows(run, "readings", kpi="returns")]
    assert values == [3.0, 3.0, 3.6, 3.7, 3.7, 3.7]
    assert {reading["value"] for reading in rows(quiet, "readings")} == {3.0}


def test_any_figure_is_the_first_that_a_goal_measures_and_moves_away_from_its_target(tmp_path: Path) -> None:
    run = shop(tmp_path / "run", effect("kpi", {"any": "worse 10%"}), until="week:3")
    assert [reading["value"] for reading in rows(run, "readings")] == [3.0, 3.0, 3.3]


def test_a_moved_deadline_is_in_all_plans_from_then_on(tmp_path: Path) -> None:
    run = shop(tmp_path / "run", effect("deadline", {"goal": "any", "earlier": "4 weeks"}), until="week:3")
    assert rows(run, "incidents")[0]["effects"] == [{"deadline": {"goal": "orders", "by": "2026-06-02"}}]
    assert "2026-06-02" not in said(run, "Y1/Q1/M01/W01@head:formulate")
    assert "2026-06-02" in said(run, "Y1/Q1/M01/W02@head:formulate")
    assert "2026-06-02" in said(run, "Y1/Q1/M01/W03@head:formulate")


def said(run: Run, site: str) -> str:
    """All that was asked at a site, as text."""
    return str(as_json(calls_at(run.folder, site)))


def test_plans_say_which_priority_a_goal_got(tmp_path: Path) -> None:
    run = shop(tmp_path / "run", effect("priority", {"goal": "stock", "to": "high"}), until="week:3")
    assert "[priority: high]" in said(run, "Y1/Q1/M01/W02@head:partition")
    assert "[priority: high]" not in said(run, "Y1/Q1/M01/W01@head:partition")


def test_tasks_of_a_goal_that_got_a_priority_come_first_also_those_that_were_planned_before(tmp_path: Path, quiet: Run) -> None:
    def starts(run: Run, goal: str) -> list[str]:
        ids = {task["id"] for task in composites(run) if goal in task["goals"] and "/W02@head/" in task["id"]}
        return sorted(str(row["started"]) for row in rows(run, "subtasks") if row["task"] in ids)

    lifted, lowered = (
        shop(tmp_path / to, effect("priority", {"goal": "stock", "to": to}, at="2026-01-13"), until="week:3") for to in ("high", "low")
    )
    assert len(starts(quiet, "stock")) > 2
    assert starts(lifted, "stock") < starts(lowered, "stock")
    assert starts(lifted, "orders") > starts(lowered, "orders")


# ------------------------------------------------------------ people
def test_who_leaves_gets_no_work_afterwards_and_what_was_begun_is_handed_over(tmp_path: Path) -> None:
    run = shop(tmp_path / "run", effect("departure", {"role": "Joiner", "count": 2}, at="2026-01-14"))
    gone = [event["actor"] for event in events(run, "departure")]
    assert len(gone) == len(set(gone)) == 2
    for agent in gone:
        assert max(event["time"] for event in events(run, "assign") if event["object"] == agent) <= "2026-01-14T09:00"
        assert max(event["time"] for event in events(run, "start") if event["actor"] == agent) < "2026-01-14"
        assert not [row for row in rows(run, "load", agent=agent) if row["week"] > 2]
    handed = events(run, "handover")
    assert handed
    assert all("." in event["subject"].rpartition("/")[2] or event["actor"] in gone for event in handed)
    for event in handed:
        (subtask,) = rows(run, "subtasks", id=event["subject"])
        assert subtask["assignee"] not in gone
    assert all(task["status"] == "done" for task in composites(run) if "/W02@" in task["id"])


def test_what_only_those_who_left_could_do_is_dropped_with_a_record(tmp_path: Path) -> None:
    only = "name: One\ndomain: D\nroles: {Head: {leads: Craft}, Smith: {reports_to: Head, hours: 4-8}}\n"
    leaves = happens("2026-01-14", effects=[{"departure": {"role": "Smith"}}])
    run = simulated(tmp_path / "run", only, incidents=[leaves], until="week:4")
    abandoned = events(run, "abandon")
    assert abandoned
    assert {rows(run, "subtasks", id=event["subject"])[0]["status"] for event in abandoned} == {"dropped"}
    assert not [task for task in composites(run) if "/W03@" in task["id"] or "/W04@" in task["id"]]
    assert {task["status"] for task in composites(run) if "/W02@" in task["id"]} <= {"done", "dropped"}


TWO_HEADS = """
name: Two
domain: D
roles:
  Boss: {}
  Foreman: {reports_to: Boss, count: 2, leads: Craft}
  Smith: {reports_to: Foreman, count: 4, hours: 3-6}
cadence: {year: 1, quarter: 1, month: 2, week: 2}
workload: {variation: 0}
"""


def test_a_head_leaves_only_where_another_of_its_title_stays_who_takes_over(tmp_path: Path) -> None:
    leaves = happens("2026-01-14", effects=[{"departure": {"agent": "foreman-1"}}])
    run = simulated(tmp_path / "run", TWO_HEADS, incidents=[leaves], until="week:8")
    assert [(event["actor"], event["subject"]) for event in events(run, "succession")] == [("foreman-2", "foreman-1")]
    heads = {edge["target"] for edge in rows(run, "edges", source="foreman-2", kind="tier")}
    assert heads == {f"smith-{number}" for number in (1, 2, 3, 4)}
    assert not [event for event in events(run, "open") if event["actor"] == "foreman-1" and event["time"] > "2026-01-14"]
    assert not [event for event in events(run, "close") if event["actor"] == "foreman-1" and event["time"] > "2026-01-15"]
    assert {task["status"] for task in composites(run) if "/W02@foreman-1/" in task["id"]} == {"done"}
    assert planned(run, 4, "foreman-2") > 1.5 * planned(run, 1, "foreman-2")
    busy = {event["object"] for event in events(run, "assign") if event["time"] > "2026-01-26"}
    assert busy == {f"smith-{number}" for number in (1, 2, 3, 4)}
    run.verify()


def test_the_last_head_stays(tmp_path: Path) -> None:
    both = happens("2026-01-14", effects=[{"departure": {"role": "Foreman", "count": 2}}])
    with pytest.raises(IncidentInvalid, match="of those named 1 may leave"):
        simulated(tmp_path / "run", TWO_HEADS, incidents=[both])
    with pytest.raises(IncidentInvalid, match="Head cannot leave"):
        shop(tmp_path / "run", effect("departure", {"role": "Head"}))
    one, other = (happens("2026-01-14", effects=[{"departure": {"agent": f"foreman-{number}"}}]) for number in (1, 2))
    run = simulated(tmp_path / "run", TWO_HEADS, incidents=[one, {**other, "title": "And the other"}], until="week:4")
    assert len(events(run, "departure")) == len(events(run, "no_departure")) == 1


def test_who_is_hired_begins_in_time_has_rows_and_gets_work(tmp_path: Path, quiet: Run) -> None:
    run = shop(tmp_path / "run", effect("hire", {"role": "Joiner", "in": "1 week", "count": 2}), until="week:6")
    hired = [event["subject"] for event in events(run, "hire")]
    assert hired == ["joiner-4", "joiner-5"]
    names = {row["name"] for row in rows(run, "agents")}
    assert len(names) == len(rows(run, "agents")) == len(rows(quiet, "agents")) + 2
    for agent in hired:
        assert rows(run, "edges", target=agent, source="head", kind="tier")
        began = [event["time"] for event in events(run, "assign") if event["object"] == agent]
        assert min(began) >= "2026-01-19"
        assert rows(run, "load", agent=agent)[0]["week"] == 3
    assert planned(run, 4) > 1.3 * planned(run, 2)


def test_nobody_begins_while_hiring_is_frozen(tmp_path: Path) -> None:
    freeze = {"title": "Freeze", "at": "week:1", "effects": [{"budget": {"hiring": "freeze", "for": "4 weeks"}}]}
    run = shop(tmp_path / "run", freeze, effect("hire", {"role": "Joiner", "in": "1 week"}), until="week:6")
    assert [event["time"][:10] for event in events(run, "hire")] == ["2026-02-02"]


def test_who_was_hired_is_the_same_in_re_execution_and_in_a_fork(tmp_path: Path) -> None:
    hires = effect("hire", {"role": "Joiner", "in": "1 week"})
    run, again = (shop(tmp_path / name, hires, effect("departure", {"role": "Packer"}, at="week:3")) for name in ("a", "b"))
    assert run.digest() == again.digest()
    run.verify()
    fork = run.fork(at="week:4", out=tmp_path / "fork")
    assert rows(fork, "agents") == rows(run, "agents")
    assert fork.digest() == run.digest()
    kept = (run.folder.path / "population.json").read_text()
    assert "joiner-4" not in kept


def test_an_outage_is_known_to_whoever_asks_for_the_tool(tmp_path: Path) -> None:
    org = parse(SHOP, "shop.yaml")
    people, calendar = Population.sample(org, 1), WorkCalendar(org.calendar)
    incidents = Incidents(org, people, Delegation(org, people), calendar)
    heard = incidents.hear("x", {"title": "X", "effects": [{"tool_outage": {"tool": "SQL", "for": "3 days"}}]}, 5)
    assert heard.id == "x"
    assert [sorted(incidents.failing(day)) for day in range(4, 10)] == [[], ["sql"], ["sql"], ["sql"], [], []]
    run = shop(tmp_path / "run", effect("tool_outage", {"tool": "sql", "for": "3 days"}))
    assert [(event["subject"], event["object"]) for event in events(run, "tool_outage")] == [("sql", "it-happens")]


def test_a_run_in_which_somebody_is_hired_can_be_estimated(tmp_path: Path) -> None:
    file = tmp_path / "hire.yaml"
    file.write_text("title: More\nat: week:1\neffects: [{hire: {role: Joiner, in: 1 week, count: 3}}]\n")
    less, more = (
        estimate(Organization(SHOP), backbone="openai:gpt-4o-mini", until="week:4", incidents=files, quarter=False)
        for files in ([], [file])
    )
    assert more.spans[0].total.calls > less.spans[0].total.calls


DESK = """
name: Desk
domain: D
roles: {Head: {leads: Help}, Helper: {reports_to: Head, count: 3, hours: 3-5}}
work: {tickets: {kind: stream, role: Helper, arrivals: 40/week, hours: 1-2, steps: [answer]}}
workload: {utilisation: 0.8, variation: 0}
activities: [answer]
"""


def test_cases_of_who_left_are_taken_up_by_others_and_who_is_hired_takes_some(tmp_path: Path) -> None:
    changes = [{"departure": {"role": "Helper", "count": 2}}, {"hire": {"role": "Helper", "in": "1 week"}}]
    run = simulated(tmp_path / "run", DESK, incidents=[happens("2026-01-14", effects=changes)], until="week:6")
    gone = {event["actor"] for event in events(run, "departure")}
    late = {event["actor"] for event in events(run, "start") if event["time"] > "2026-01-26" and event["subject"].startswith("work/")}
    assert gone
    assert late == {"helper-1", "helper-2", "helper-3", "helper-4"} - gone
    begun = {event["subject"] for event in events(run, "start") if event["actor"] in gone and event["subject"].startswith("work/")}
    assert begun
    ended = {event["subject"]: event["actor"] for event in events(run, "finish")}
    assert all(ended.get(step) is not None for step in begun)
    run.verify()
