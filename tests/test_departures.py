"""Who left: nobody assigns to them afterwards, and each subtask that they had is handed over or dropped, with a record."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import taskweave as tw
from taskweave.api import Run
from taskweave.report.departures import departures, told
from tests.simulated import rows, simulated

TWO = {
    "title": "Two leave",
    "severity": "high",
    "at": "2026-02-04",
    "duration": "6 weeks",
    "effects": [{"departure": {"role": "Backend Engineer", "count": 1}}, {"departure": {"role": "Data Analyst", "count": 1}}],
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("base") / "base", "company_a", until="week:7")


@pytest.fixture(scope="module")
def left(base: Run) -> Run:
    """The same, with two who leave in the middle of week 5."""
    file = base.path.parent / "two.json"
    file.write_text(json.dumps(TWO), encoding="utf-8")
    return base.fork(at="week:5", incidents=file, out=base.path.parent / "left")


def test_two_who_leave_in_week_5_hand_over_what_they_had_and_get_nothing_more(left: Run) -> None:
    found = departures(left.events())
    assert [one.agent for one in found] == ["backend-engineer", "data-analyst"]
    assert all(one.open and one.cause == "two-leave" and one.time == "2026-02-04T09:00" for one in found)
    assert all(one.afterwards == () for one in found)
    subtasks = {row["id"]: row for row in rows(left, "subtasks")}
    for one in found:
        for fate in one.open:
            assert fate.kind in ("handed over", "dropped")
            if fate.kind == "handed over":
                assert fate.successor is not None
                assert subtasks[fate.successor]["assignee"] == fate.to != one.agent
            if fate.successor != fate.subtask:
                assert subtasks[fate.subtask]["status"] == "dropped"
        mine = [row for row in subtasks.values() if row["assignee"] == one.agent]
        assert {row["status"] for row in mine} <= {"done", "dropped"}
        assert all(row["finished"] is None or row["finished"] <= one.time for row in mine)


def test_the_same_answers_and_the_same_departure_give_the_same_digest(left: Run) -> None:
    file = left.path.parent / "two.json"
    again = tw.simulate("company_a", until="week:7", backbone=f"replay:{left.path}", incidents=file, out=left.path.parent / "again")
    assert again.digest() == left.digest()
    assert left.verify().ok


def test_a_comparison_says_who_left_and_overdue_hours_by_department(base: Run, left: Run) -> None:
    controls = [base.fork(at="week:5", redraw=draw, out=base.path.parent / f"control-{draw}") for draw in (1, 2)]
    shown = str(tw.diff(base, left, controls=controls))
    assert "backend-engineer left on 2026-02-04 (two-leave)" in " ".join(shown.split())
    assert "nothing was assigned to it afterwards" in " ".join(shown.split())
    (one,) = tw.diff(base, left, controls=controls).to_dict()["comparisons"]
    (overdue,) = [family for family in one["families"] if family["name"] == "overdue"]
    figures = {row["name"]: row for row in overdue["differences"]}
    assert {"all", "Technology", "Strategy", "Marketing"} <= figures.keys()
    assert figures["all"]["base"]["of"] == pytest.approx(sum(figures[name]["base"]["of"] for name in figures if name != "all"))
    assert all(row["judged"]["verdict"] in ("stands out", "not distinguishable") for row in figures.values())


def test_what_has_no_record_is_not_passed_over_in_silence() -> None:
    def event(kind: str, subject: str, actor: str = "", object: str = "") -> dict[str, str]:
        return {"kind": kind, "subject": subject, "actor": actor, "object": object, "time": "2026-02-04T09:00", "case": ""}

    log = [
        *(event("assign", f"W05@head/t{task}/s1", object="ada") for task in (1, 2, 3, 4, 5)),
        event("assign", "W05@head/t1/s2", object="bob"),
        event("finish", "W05@head/t5/s1", actor="ada"),
        event("departure", "ada", actor="ada", object="gone"),
        event("handover", "W05@head/t1/s1.2", actor="ada"),
        event("assign", "W05@head/t1/s1.2", object="bob"),
        event("abandon", "W05@head/t2/s1"),
        event("supersede", "W05@head/t3"),
        event("assign", "W06@head/t1/s1", object="ada"),
    ]
    (one,) = departures(log)
    assert [(fate.subtask[-5:], fate.kind, fate.to) for fate in one.open] == [
        ("t1/s1", "handed over", "bob"), ("t2/s1", "dropped", None), ("t3/s1", "dropped", None), ("t4/s1", "unrecorded", None)
    ]  # fmt: skip
    assert one.afterwards == ("W06@head/t1/s1",)
    assert told(one) == (
        "ada left on 2026-02-04 (gone): of 4 open subtasks 1 handed over, 2 dropped, 1 have no record; 1 subtask assigned to it afterwards"
    )


def test_what_nobody_else_may_do_is_dropped_with_a_record(tmp_path: Path) -> None:
    organization = """
name: Shop
domain: Repair
calendar: {start: 2026-01-05, hours: 8}
goals: {orders: {text: Repair, owner: Head}}
roles:
  Head: {leads: Repair}
  Smith: {reports_to: Head, hours: 3-5}
workload: {utilisation: 0.9, composite_hours: 12}
"""
    gone = {"title": "Gone", "at": "2026-01-14", "severity": "low", "effects": [{"departure": {"role": "Smith"}}]}
    run = simulated(tmp_path / "run", organization, incidents=[gone])
    (one,) = departures(run.events())
    assert one.open
    assert {fate.kind for fate in one.open} == {"dropped"}
    assert {row["status"] for row in rows(run, "subtasks") if row["assignee"] == "smith"} <= {"done", "dropped"}
