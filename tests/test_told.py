"""What a run tells its backbone, and what it records of what code had to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taskweave.backbones.scripted import Scripted
from taskweave.records import Request
from tests.simulated import WORKSHOP, events, rows, simulated
from tests.test_loop import parallel

THREE = """
name: Three
domain: Consulting
roles:
  Chief: {}
  North: {reports_to: Chief}
  South: {reports_to: Chief}
  West: {reports_to: Chief}
  Clerk: {reports_to: North}
  Typist: {reports_to: South}
  Porter: {reports_to: West}
"""
TOWER = """
name: Tower
domain: Construction
roles:
  Minister: {}
  Director: {reports_to: Minister}
  Chief: {reports_to: Director}
  Manager: {reports_to: Chief}
  Lead: {reports_to: Manager, count: 2}
  Officer: {reports_to: Lead, count: 4}
"""


def repairs(run: Any) -> list[str]:
    return [str(event["object"]) for event in events(run, "repair")]


# ---------------------------------------------------------------- planning
def test_every_sibling_hears_what_every_other_asked_of_it(tmp_path: Path) -> None:
    heard: dict[str, list[str]] = {}

    def asks(request: Request) -> Any:
        mine = request.inputs["unit"]["id"].rpartition("@")[2]
        return {"plan": "Go on.", "requests": [{"to": s["owner"], "text": f"help {mine}"} for s in request.inputs["siblings"]]}

    def listens(request: Request) -> Any:
        heard[request.inputs["unit"]["id"]] = [entry["text"] for entry in request.inputs["requests"]]
        return {"plan": "A plan.", "focus": [], "risks": []}

    simulated(tmp_path / "run", THREE, until="week:2", stubs={"reconcile": asks, "formulate": listens})
    assert heard["Y1/Q1/M01/W02@north"] == ["help south", "help west"]
    assert heard["Y1/Q1/M01/W02@south"] == ["help north", "help west"]
    assert heard["Y1/Q1/M01/W02@west"] == ["help north", "help south"]


def test_a_head_that_passes_weeks_down_is_told_what_those_below_it_did(tmp_path: Path) -> None:
    told: dict[str, dict[str, int]] = {}

    def diagnoses(request: Request) -> Any:
        told[request.inputs["unit"]["id"]] = request.inputs["counts"]
        return {"summary": "So it went.", "deviations": [], "blockers": []}

    simulated(tmp_path / "run", TOWER, until="week:1", stubs={"diagnose": diagnoses})
    week = "Y1/Q1/M01/W01@"
    assert told[f"{week}lead-1"]["done"] > 0
    for status in ("done", "spilled", "blocked"):
        assert told[f"{week}manager"][status] == told[f"{week}lead-1"][status] + told[f"{week}lead-2"][status]


def test_an_upper_unit_diagnoses_what_all_rounds_of_children_came_to(tmp_path: Path) -> None:
    told: dict[str, list[tuple[str, str]]] = {}

    def diagnoses(request: Request) -> Any:
        told[request.inputs["unit"]["id"]] = [(child["owner"], child["summary"]) for child in request.inputs["children"]]
        return {"summary": f"D of {request.inputs['unit']['id']}", "deviations": [], "blockers": []}

    def rolls(request: Request) -> Any:
        return {"summary": " ".join([request.inputs["last_summary"], *(child["summary"] for child in request.inputs["children"])])}

    simulated(tmp_path / "run", until="month:1", stubs={"diagnose": diagnoses, "roll_up": rolls})
    month = told["Y1/Q1/M01@head"]
    assert month[0][0] == "the month's roll-up"
    assert all(f"D of Y1/Q1/M01/W0{week}@head" in month[0][1] for week in (1, 2, 3, 4))
    assert month[1:] == [("Head", "D of Y1/Q1/M01/W04@head")]
    assert told["Y1/Q1/M01/W01@head"] == []


def test_work_in_hand_is_carried_only_as_far_as_it_is_undone(tmp_path: Path) -> None:
    long = WORKSHOP.replace("hours: 3-5", "hours: 12-16").replace("composite_hours: 12", "composite_hours: 14")
    run = simulated(tmp_path / "run", long.replace("utilisation: 0.8", "utilisation: 1.0"), until="week:2", stubs={"decompose": parallel})
    first = [row for row in run.table("subtasks") if "/W01@" in row["id"]]
    worked = sum(row["booked"] for row in rows(run, "load", week=1))
    spilled = sum(row["spilled"] for row in rows(run, "load", week=1))
    assert 0 < spilled == sum(row["hours"] for row in first) - worked


def test_two_urgent_tasks_are_planned_where_the_week_is_free_though_there_is_one_role(tmp_path: Path) -> None:
    storm = {"title": "Roof leaks", "severity": "high", "at": "2026-01-06", "affects": ["Joiner"], "duration": "1 week"}
    free = simulated(tmp_path / "free", WORKSHOP.replace("utilisation: 0.8", "utilisation: 0.3"), until="week:1", incidents=[storm])
    assert len(rows(free, "tasks", priority="urgent")) == 2
    busy = simulated(tmp_path / "busy", until="week:1", incidents=[storm])
    assert len(rows(busy, "tasks", priority="urgent")) == 1


def test_two_grave_incidents_of_one_morning_do_not_plan_the_same_hours(tmp_path: Path) -> None:
    storms = [{"title": title, "severity": "high", "at": "2026-01-06", "affects": ["Joiner"]} for title in ("Roof leaks", "Cellar floods")]
    spare = WORKSHOP.replace("utilisation: 0.8", "utilisation: 0.3").replace("composite_hours: 12", "composite_hours: 4")
    run = simulated(tmp_path / "run", spare, until="week:1", incidents=storms)
    urgent = [row["id"] for row in rows(run, "tasks", priority="urgent")]
    alone = simulated(tmp_path / "alone", spare, until="week:1", incidents=storms[:1])
    assert len(rows(alone, "tasks", priority="urgent")) == 2
    assert 2 < len(urgent) <= 4


# ---------------------------------------------------------------- what code changed
def test_subtasks_that_are_asked_for_again_are_as_many_as_are_missing_and_those_there_are_shown(tmp_path: Path) -> None:
    asked: list[tuple[int, int, list[str]]] = []

    def short(request: Request) -> Any:
        least = request.schema["properties"]["subtasks"]["minItems"] if request.schema else 0
        asked.append(
            (len(request.inputs["subtasks"]), least, [entry["id"] for entry in request.inputs["upstream"] if entry["id"][0] == "s"])
        )
        answer = parallel(request)
        return {"subtasks": answer["subtasks"][:1]} if not asked[-1][2] else answer

    simulated(tmp_path / "run", stubs={"decompose": short}, until="week:1")
    assert [entry for entry in asked if entry[2]], "some were asked again"
    assert all(wanted == least for wanted, least, _ in asked)
    assert {tuple(shown) for *_, shown in asked} == {(), ("s1",)}


def test_an_unknown_activity_is_replaced_and_an_unknown_goal_left_out_and_both_are_said(tmp_path: Path) -> None:
    def odd(request: Request) -> Any:
        return {"tasks": [task | {"goals": ["world peace", "ORDERS"], "activity": "zzz"} for task in Scripted().answer(request)["tasks"]]}

    run = simulated(tmp_path / "run", stubs={"partition_week": odd}, until="week:1")
    tasks = rows(run, "tasks", kind="composite")
    assert all(task["goals"] == ["orders"] and task["activity"] != "zzz" for task in tasks)
    assert sum("'zzz' is not a legal name here" in note for note in repairs(run)) == len(tasks)
    assert sum("'world peace' is no goal here and was left out" in note for note in repairs(run)) == len(tasks)


def test_an_unknown_activity_of_a_subtask_is_said(tmp_path: Path) -> None:
    def odd(request: Request) -> Any:
        return {"subtasks": [step | {"activity": "zzz"} for step in parallel(request)["subtasks"]]}

    assert any(
        "s1: 'zzz' is not a legal name here" in note
        for note in repairs(simulated(tmp_path / "run", stubs={"decompose": odd}, until="week:1"))
    )


def test_what_was_proposed_stands_beside_the_role_that_it_was_taken_for(tmp_path: Path) -> None:
    def wizards(request: Request) -> Any:
        return {"subtasks": [step | {"role": "Wizard"} for step in parallel(request)["subtasks"]]}

    run = simulated(tmp_path / "run", stubs={"decompose": wizards}, until="week:1")
    assert {(row["role"], row["proposed"]) for row in run.table("subtasks")} == {("Joiner", "Wizard")}


def test_a_result_whose_kind_code_had_to_change_is_a_repaired_one(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", stubs={"execute": lambda r: Scripted().answer(r) | {"artifact": "sonnet"}}, until="week:1")
    assert {row["quality"] for row in run.table("results") if row["subtask"]} == {"repaired"}


def test_a_diagnosis_hears_of_substitutes_within_a_merged_result(tmp_path: Path) -> None:
    told: list[int] = []

    def diagnoses(request: Request) -> Any:
        told.append(request.inputs["counts"]["fallback"])
        return {"summary": "So it went.", "deviations": [], "blockers": []}

    run = simulated(tmp_path / "run", until="week:1", stubs={"execute": lambda r: "no", "diagnose": diagnoses})
    merged = [row for row in run.table("results") if row["subtask"] is None]
    assert told == [len(merged)]


def test_a_response_that_failed_is_an_event_also_where_nobody_is_left_to_work(tmp_path: Path) -> None:
    flood = {"title": "Flood", "severity": "high", "at": "2026-01-06", "effects": [{"absence": {"role": "Joiner", "for": "3 weeks"}}]}
    run = simulated(tmp_path / "run", until="week:1", incidents=[flood], stubs={"respond": lambda r: "no"})
    assert [event["subject"] for event in events(run, "fallback")] == ["Y1/Q1/M01/W01@head"]
