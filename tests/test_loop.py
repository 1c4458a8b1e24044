"""The loop on small organizations: spillover, blocked work, pre-emption, handover, superseded work, closings, deep tiers."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from taskweave.backbones.scripted import Scripted
from taskweave.records import Request, tokens
from tests.simulated import WORKSHOP, Stub, events, rows, simulated


def chained(request: Request) -> Any:
    """A decompose answer in which each subtask waits for the one before it."""
    return decomposed(request, lambda n: [f"s{n - 1}"] if n > 1 else [])


REST = ["2026-01-12", "2026-01-13", "2026-01-14", "2026-01-15", "2026-01-16"]  # the whole second week


@pytest.mark.parametrize("until", ["week:2", "week:4"])
def test_a_week_without_a_working_day_passes_like_any_other_and_nobody_works_in_it(tmp_path: Path, until: str) -> None:
    text = WORKSHOP.replace("hours: 8}", f"hours: 8, holidays: [{', '.join(REST)}]}}").replace(
        "owner: Head}", "owner: Head, kpi: trust, target: 10}"
    )
    run = simulated(tmp_path / "run", text + "environment: {trust: {start: 0, drift: 1/week}}\n", until=until)
    weeks = [1, 2, 3, 4][: int(until[-1])]
    assert [(row["week"], row["value"]) for row in run.table("readings")] == [(week, week - 1.0) for week in weeks]
    assert [(row["week"], row["progress"]) for row in run.table("goals")] == [(week, (week - 1) / 10) for week in weeks]
    load = rows(run, "load", week=2)
    assert {(row["available"], row["booked"]) for row in load} == {(0.0, 0.0)}
    assert len(load) == len(rows(run, "load", week=1)) > 0
    assert run.status().week == weeks[-1]
    assert not [row for row in run.table("states") if "/W02@" in row["id"]]


def test_a_year_that_begins_with_a_week_of_holidays_reads_its_first_figures_in_it(tmp_path: Path) -> None:
    first = ", ".join(f"2026-01-0{day}" for day in range(5, 10))
    text = WORKSHOP.replace("hours: 8}", f"hours: 8, holidays: [{first}]}}") + "environment: {trust: {start: 5, drift: 1/week}}\n"
    run = simulated(tmp_path / "run", text, until="week:2")
    assert [(row["week"], row["value"]) for row in run.table("readings")] == [(1, 5.0), (2, 6.0)]


def test_the_journal_and_the_calls_count_tokens_alike_and_the_schema_with_them(tmp_path: Path) -> None:
    asked: list[Request] = []

    def seen(request: Request) -> Any:
        asked.append(request)
        return chained(request)

    run = simulated(tmp_path / "run", until="week:1", stubs={"decompose": seen, "merge": lambda request: "no object"})
    with contextlib.closing(sqlite3.connect(run.folder.journal_path)) as db:
        kept = db.execute("SELECT site, ordinal, prompt_tokens, completion_tokens FROM outcomes WHERE kind = 'complete'").fetchall()
    calls = run.table("calls")
    assert {call["fallback"] for call in calls} == {True, False}
    assert sorted(kept) == sorted((c["site"], c["ordinal"], c["prompt_tokens"], c["completion_tokens"]) for c in calls)
    counted = [sum(map(tokens, (text for _, text in r.messages))) + tokens(r.schema_text()) for r in asked]
    assert sorted(c["prompt_tokens"] for c in calls if c["prompt"] == "decompose") == sorted(counted)


def parallel(request: Request) -> Any:
    """A decompose answer in which no subtask waits for another."""
    return decomposed(request, lambda n: [])


def decomposed(request: Request, after: Any) -> Any:
    return {
        "subtasks": [
            {
                "goal": f"Step {wanted['n']} of {request.inputs['task']['title']}",
                "activity": request.inputs["activities"][0],
                "role": wanted["role"],
                "hours": wanted["hours"],
                "after": after(wanted["n"]),
                "need": "chairs",
                "sources": ["pool"],
            }
            for wanted in request.inputs["subtasks"]
        ]
    }


def test_work_that_does_not_fit_into_the_week_is_spilled_and_finished_later_under_its_id(tmp_path: Path) -> None:
    overbooked = WORKSHOP.replace("utilisation: 0.8", "utilisation: 1.0").replace("hours: 3-5}", "hours: 3-5, demand: 1.2}")
    run = simulated(tmp_path / "run", overbooked, stubs={"decompose": chained})
    spilled = events(run, "spilled")
    assert spilled
    now = run.status()
    assert (now.done, now.spilled) == tuple(len(rows(run, "tasks", kind="composite", status=status)) for status in ("done", "spilled"))
    assert now.spilled < len(spilled)  # a status, where an event says that a close found it so
    later = [row for row in rows(run, "tasks", kind="composite", status="done") if row["id"] in {event["subject"] for event in spilled}]
    assert later
    assert all(row["done_on_time"] is False for row in later)
    assert len({row["id"] for row in run.table("tasks")}) == len(list(run.table("tasks")))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_carried_work_leaves_less_room_for_the_next_week(tmp_path: Path, seed: int) -> None:
    overbooked = WORKSHOP.replace("utilisation: 0.8", "utilisation: 1.0").replace("hours: 3-5}", "hours: 3-5, demand: 1.2}")
    run = simulated(tmp_path / "run", overbooked, stubs={"decompose": chained}, until="week:2", seed=seed)
    planned = {week: sum(t["planned_hours"] for t in rows(run, "tasks", kind="composite") if f"/W{week:02}@" in t["id"]) for week in (1, 2)}
    assert planned[1] == 96
    # All that is open at the close, also what nobody was given yet: what was planned and not worked off, since hours turn out as planned.
    begun = sum(row["hours"] for row in run.table("subtasks") if "/W01@" in row["id"])
    worked = sum(row["booked"] for row in rows(run, "load", week=1))
    carried = begun - worked
    assert carried >= sum(row["spilled"] for row in rows(run, "load", week=1)) > 0
    assert planned[1] - carried - 4 < planned[2] <= planned[1] - carried  # a subtask is four hours, and no part of one is planned


def test_what_waits_for_an_absent_agent_is_blocked_and_not_spilled(tmp_path: Path) -> None:
    one = WORKSHOP.replace("count: 2, ", "")
    absence = {
        "title": "Influenza",
        "at": "2026-01-06",
        "affects": ["Joiner"],
        "effects": [{"absence": {"role": "Joiner", "for": "13 days"}}],
    }
    run = simulated(tmp_path / "run", one, stubs={"decompose": parallel}, incidents=[absence], seed=2)
    away = [event for event in [*events(run, "blocked"), *events(run, "spilled")] if "2026-01-10" < event["time"] < "2026-01-17"]
    begun = {row["task"] for row in rows(run, "subtasks") if row["started"] is not None and row["started"] < "2026-01-06"}
    assert {event["kind"] for event in away if event["subject"] not in begun} == {"blocked"}
    assert {event["kind"] for event in away if event["subject"] in begun} <= {"spilled"}
    assert all(not "2026-01-06" <= row["started"] < "2026-01-19" for row in rows(run, "subtasks") if row["started"])


def test_a_grave_incident_adds_urgent_work_that_pre_empts_and_moves_only_the_finish(tmp_path: Path) -> None:
    one = WORKSHOP.replace("count: 2, hours: 3-5", "hours: 12-16").replace("composite_hours: 12", "composite_hours: 14")
    # A morning starts with work in hand: at half past nine of the second day the joiner sits on a long subtask.
    storm = {"title": "Roof leaks", "severity": "high", "at": "2026-01-06", "affects": ["Joiner"], "duration": "1 week"}
    calm = simulated(tmp_path / "calm", one, stubs={"decompose": parallel}, until="week:2")
    hit = simulated(tmp_path / "hit", one, stubs={"decompose": parallel}, until="week:2", incidents=[storm])
    urgent = rows(hit, "tasks", priority="urgent")
    assert [row["id"] for row in urgent] == ["Y1/Q1/M01/W01@head/u1"]
    (preempted,) = events(hit, "preempt")
    before, after = (rows(run, "subtasks", id=preempted["subject"])[0] for run in (calm, hit))
    assert before["started"] == after["started"]
    assert before["finished"] < after["finished"]
    assert len(rows(hit, "results", id=preempted["subject"])) == 1
    assert rows(hit, "results", id=urgent[0]["id"])
    uses = [row for row in rows(hit, "uses", kind="incident")]
    assert {row["used"] for row in uses} == {"roof-leaks"}
    assert {row["result"].split("/s")[0] for row in uses} == {urgent[0]["id"]}


def test_urgent_work_takes_the_place_of_what_nobody_has_begun(tmp_path: Path) -> None:
    full = WORKSHOP.replace("utilisation: 0.8", "utilisation: 1.0")
    storm = {"title": "Roof leaks", "severity": "high", "at": "2026-01-06", "affects": ["Joiner"], "duration": "1 week"}
    run = simulated(tmp_path / "run", full, stubs={"decompose": chained}, until="week:2", incidents=[storm])
    dropped = rows(run, "tasks", status="dropped")
    assert dropped
    assert {event["subject"] for event in events(run, "supersede")} == {row["id"] for row in dropped}
    for task in dropped:
        assert not rows(run, "results", task=task["id"])
        assert {row["status"] for row in rows(run, "subtasks", task=task["id"])} == {"dropped"}


def test_work_in_hand_is_handed_over_under_a_new_site_when_its_agent_stays_away(tmp_path: Path) -> None:
    long = WORKSHOP.replace("hours: 3-5", "hours: 12-16").replace("composite_hours: 12", "composite_hours: 14")
    absence = {
        "title": "Broken arm",
        "at": "2026-01-06",
        "affects": ["joiner-1"],
        "effects": [{"absence": {"agent": "joiner-1", "for": "3 weeks"}}],
    }
    run = simulated(tmp_path / "run", long, stubs={"decompose": parallel}, incidents=[absence])
    handed = [row for row in run.table("subtasks") if row["id"].endswith(".2")]
    assert handed
    for row in handed:
        (before,) = rows(run, "subtasks", id=row["id"].removesuffix(".2"))
        assert (before["status"], before["assignee"]) == ("dropped", "joiner-1")
        assert row["assignee"] == "joiner-2"
        assert not rows(run, "results", id=before["id"])
        assert rows(run, "results", id=row["id"])
    away = [row for row in run.table("subtasks") if row["assignee"] == "joiner-1" and row["started"] and row["status"] == "done"]
    assert all(row["started"] < "2026-01-06" or row["started"] >= "2026-01-27" for row in away)


def test_an_absence_within_the_week_keeps_the_work_with_its_agent(tmp_path: Path) -> None:
    long = WORKSHOP.replace("hours: 3-5", "hours: 12-16").replace("composite_hours: 12", "composite_hours: 14")
    absence = {
        "title": "Dentist",
        "at": "2026-01-06",
        "affects": ["joiner-1"],
        "effects": [{"absence": {"agent": "joiner-1", "for": "1 day"}}],
    }
    run = simulated(tmp_path / "run", long, stubs={"decompose": parallel}, incidents=[absence])
    assert events(run, "absent")
    assert not events(run, "handover")


def test_a_subtask_waits_for_the_task_that_it_names_as_upstream(tmp_path: Path) -> None:
    def second_waits_for_first(request: Request) -> Any:
        offered = [entry["id"] for entry in request.inputs["upstream"]]
        answer = parallel(request)
        if "t1" in offered and "t2" not in offered:
            answer["subtasks"][0]["after"] = ["t1"]
        return answer

    run = simulated(tmp_path / "run", stubs={"decompose": second_waits_for_first}, until="week:1")
    first = rows(run, "tasks", id="Y1/Q1/M01/W01@head/t1")[0]
    done = next(event for event in events(run, "done") if event["subject"] == first["id"])
    waiting = rows(run, "subtasks", id="Y1/Q1/M01/W01@head/t2/s1")[0]
    assert waiting["started"] >= done["time"]
    assert rows(run, "uses", result=waiting["id"], used=first["id"], how="explicit")


def test_a_cycle_among_subtasks_is_broken_and_recorded(tmp_path: Path) -> None:
    def circular(request: Request) -> Any:
        answer = parallel(request)
        for number, subtask in enumerate(answer["subtasks"]):
            subtask["after"] = [f"s{(number + 1) % len(answer['subtasks']) + 1}"]
        return answer

    run = simulated(tmp_path / "run", stubs={"decompose": circular}, until="week:2")
    assert rows(run, "tasks", kind="composite", status="done")
    assert any("would close a cycle" in event["object"] for event in events(run, "repair"))


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        ("decompose", lambda request: {"subtasks": parallel(request)["subtasks"][:1]}),
        ("decompose", lambda request: {"subtasks": parallel(request)["subtasks"] * 3}),
        ("decompose", lambda request: "not what was asked"),
        ("decompose", lambda request: {"subtasks": [s | {"role": "Wizard"} for s in parallel(request)["subtasks"]]}),
        ("partition_week", lambda request: {"tasks": []}),
        ("execute", lambda request: {"content": ""}),
        ("formulate", lambda request: []),
        ("diagnose", lambda request: {}),
        ("merge", lambda request: None),
    ],
)
def test_a_reply_that_is_not_what_was_asked_is_a_finding_and_not_a_crash(tmp_path: Path, step: str, answer: Stub) -> None:
    run = simulated(tmp_path / "run", stubs={step: answer}, until="week:2")
    assert run.outcome is not None
    assert run.outcome.stop is None
    assert rows(run, "tasks", kind="composite", status="done")
    told = [*events(run, "repair"), *events(run, "fallback")]
    assert told or rows(run, "calls", fallback=True)
    per_task: dict[str, int] = {}
    for row in run.table("subtasks"):
        per_task[row["task"]] = per_task.get(row["task"], 0) + 1
    assert set(per_task.values()) <= {2, 3, 4}


def test_a_fallback_is_marked_on_the_result_that_it_made(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", stubs={"execute": lambda request: "no"}, until="week:1")
    partials = [row for row in run.table("results") if row["subtask"] is not None]
    assert partials
    assert {(row["quality"], row["origin"]) for row in partials} == {("fallback", "fallback")}


def test_an_officer_without_reports_plans_without_delegating(tmp_path: Path) -> None:
    board = """
name: Board
domain: Consulting
roles:
  Chief: {}
  Adviser: {reports_to: Chief, executes: 0%}
  Manager: {reports_to: Chief}
  Clerk: {reports_to: Manager}
"""
    run = simulated(tmp_path / "run", board, until="week:2")
    calls = [row["site"] for row in run.table("calls")]
    assert any("@adviser:formulate" in site for site in calls)
    assert not any("@adviser:" in site and ":formulate" not in site for site in calls)
    assert not [row for row in run.table("tasks") if "@adviser" in row["id"]]


def test_a_unit_without_tasks_opens_and_closes_without_a_call(tmp_path: Path) -> None:
    away = """
name: Pair
domain: Consulting
roles:
  Chief: {}
  Manager: {reports_to: Chief}
  Clerk: {reports_to: Manager}
people:
  Ann Bell: {role: Clerk, away: [2026-01-12/2026-01-16]}
"""
    run = simulated(tmp_path / "run", away, until="week:3")
    sites = [row["site"] for row in run.table("calls")]
    assert any("/W01@manager:" in site for site in sites)
    carried = [row for row in events(run, "spilled") if "/W01@" in row["subject"]]
    if not carried:
        assert not any("/W02@manager:" in site for site in sites)
    assert any("/W03@manager:" in site for site in sites)


def test_siblings_reconcile_and_hear_each_others_requests_at_the_next_opening(tmp_path: Path) -> None:
    heard: list[Any] = []

    def asks(request: Request) -> Any:
        text = f"help {request.inputs['unit']['id']}"
        return {"plan": "Go on.", "requests": [{"to": sibling["owner"], "text": text} for sibling in request.inputs["siblings"]]}

    def listens(request: Request) -> Any:
        heard.append((request.inputs["unit"]["id"], [entry["text"] for entry in request.inputs["requests"]]))
        return {"plan": "A plan.", "focus": [], "risks": []}

    two = """
name: Two
domain: Consulting
roles:
  Chief: {}
  North: {reports_to: Chief}
  South: {reports_to: Chief}
  Clerk: {reports_to: North}
  Typist: {reports_to: South}
"""
    simulated(tmp_path / "run", two, until="week:2", stubs={"reconcile": asks, "formulate": listens})
    assert ("Y1/Q1/M01/W02@north", ["help Y1/Q1/M01/W01@south"]) in heard
    assert ("Y1/Q1/M01/W01@north", []) in heard


def test_deeper_tiers_pass_work_down_and_every_assignment_lies_on_an_edge(tmp_path: Path) -> None:
    tower = """
name: Tower
domain: Construction
roles:
  Minister: {}
  Director: {reports_to: Minister, count: 2}
  Chief: {reports_to: Director, count: 2}
  Manager: {reports_to: Chief, count: 2}
  Lead: {reports_to: Manager, count: 2}
  Officer: {reports_to: Lead, count: 3}
"""
    run = simulated(tmp_path / "run", tower, until="week:2")
    edges = {(row["source"], row["target"]) for row in run.table("edges")}
    done = rows(run, "subtasks", status="done")
    assert done
    assert all((row["delegator"], row["assignee"]) in edges for row in done)


def test_a_cross_link_gives_some_work_to_the_other_unit(tmp_path: Path) -> None:
    linked = """
name: Linked
domain: Consulting
roles:
  Chief: {}
  North: {reports_to: Chief}
  South: {reports_to: Chief}
  Clerk: {reports_to: North, hours: 2-4}
  Typist: {reports_to: South, hours: 2-4}
cross_links: [Clerk -> Typist]
"""
    run = simulated(tmp_path / "run", linked, until="week:4")
    crossed = [row for row in run.table("subtasks") if row["delegator"] == "north" and row["assignee"] == "typist"]
    assert crossed
    assert {(row["source"], row["target"], row["kind"]) for row in run.table("edges")} >= {("north", "typist", "cross")}
    unlinked = simulated(tmp_path / "unlinked", linked.replace("cross_links: [Clerk -> Typist]\n", ""), until="week:4")
    assert not [row for row in unlinked.table("subtasks") if row["delegator"] == "north" and row["assignee"] == "typist"]


def test_a_head_executes_its_share_of_the_day(tmp_path: Path) -> None:
    working = WORKSHOP.replace("Head: {leads: Repair}", "Head: {leads: Repair, executes: 50%, hours: 2-3}")
    run = simulated(tmp_path / "run", working, until="week:2")
    own = rows(run, "subtasks", assignee="head", status="done")
    assert own
    (load,) = rows(run, "load", agent="head", week=1)
    assert load["available"] == 20
    assert {row["kind"] for row in rows(run, "edges", source="head", target="head")} == {"self"}


def test_a_week_without_a_working_day_is_sealed_without_units(tmp_path: Path) -> None:
    closed = WORKSHOP.replace("hours: 8}", "hours: 8, holidays: [2026-01-12, 2026-01-13, 2026-01-14, 2026-01-15, 2026-01-16]}")
    run = simulated(tmp_path / "run", closed, until="week:3")
    assert run.outcome is not None
    assert run.outcome.week == 3
    assert not [row for row in run.table("states") if "/W02@" in row["id"]]
    assert rows(run, "tasks", state="Y1/Q1/M01/W03@head")
    until = simulated(tmp_path / "until", closed, until="week:2")
    assert until.outcome is not None
    assert until.outcome.week == 2


def test_finished_work_moves_the_readings_that_its_goal_names(tmp_path: Path) -> None:
    measured = WORKSHOP.replace("owner: Head}}", "kpi: chairs, target: 400, owner: Head}}")
    measured += "environment: {chairs: {start: 0, raised_by: {orders: 1}}}\n"

    def for_orders(request: Request) -> Any:
        answer = Scripted().answer(request)
        return {"tasks": [task | {"goals": ["orders"]} for task in answer["tasks"]]}

    run = simulated(tmp_path / "run", measured, stubs={"partition_week": for_orders}, until="week:3")
    done = rows(run, "tasks", kind="composite", status="done")
    first_week = {event["subject"] for event in events(run, "done") if event["time"] < "2026-01-10"}
    assert [row["value"] for row in rows(run, "readings", week=1)] == [0]
    assert [row["value"] for row in rows(run, "readings", week=2)] == [sum(t["planned_hours"] for t in done if t["id"] in first_week)]
    assert rows(run, "goals", week=3)[0]["progress"] > 0


def test_with_assign_model_the_proposed_role_is_taken(tmp_path: Path) -> None:
    mixed = WORKSHOP.replace("workload:", "  Painter: {reports_to: Head, hours: 3-5}\nworkload:")

    def only_painters(request: Request) -> Any:
        assert all(wanted["role"] is None for wanted in request.inputs["subtasks"])
        return decomposed(
            Request(
                prompt=request.prompt,
                version=request.version,
                inputs={**request.inputs, "subtasks": [{"n": w["n"], "role": "Painter", "hours": 4} for w in request.inputs["subtasks"]]},
                messages=(),
                schema=None,
                sampling=request.sampling,
                backbone="",
            ),
            lambda n: [],
        )

    run = simulated(tmp_path / "run", mixed, until="week:1", assign="model", stubs={"decompose": only_painters})
    assert {row["assignee"] for row in run.table("subtasks") if row["assignee"]} == {"painter"}
