"""The paper's equations as properties of runs: one test an equation, and one a formula of the reports (TaskWeave, Sec. 3)."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from taskweave.api import Run
from taskweave.cutting import tokens
from taskweave.records import Request
from taskweave.report.figures import kl
from taskweave.simulation.dependencies import MOST_DEPENDENCIES
from tests.simulated import rows, simulated

FIRM = """
name: Firm
domain: Accounting for small shops
goals:
  shops: {text: 60 shops served, owner: Chief}
  speed: {text: Every return filed within ten days, owner: North}
roles:
  Chief: {}
  North: {reports_to: Chief, leads: North Office}
  South: {reports_to: Chief, leads: South Office}
  Accountant: {reports_to: North, count: 2, hours: 3-6, share: 0.9}
  Data Analyst: {reports_to: North, hours: 3-6, share: 0.1}
  Clerk: {reports_to: South, count: 2, hours: 2-5}
cross_links: [South -> Data Analyst]
workload: {composite_hours: 15}
"""


class Asked:
    """Stubs that let every answer through and keep the requests by step."""

    def __init__(self) -> None:
        from taskweave.backbones.scripted import Scripted

        self.requests: dict[str, list[Request]] = {}
        self._scripted = Scripted()

    def stub(self, step: str) -> Any:
        def answer(request: Request) -> Any:
            self.requests.setdefault(step, []).append(request)
            return self._scripted.answer(request)

        return answer

    def stubs(self, *steps: str) -> dict[str, Any]:
        return {step: self.stub(step) for step in steps}

    def of(self, step: str) -> dict[str, Request]:
        """The last request of a step by unit."""
        return {request.inputs["unit"]["id"]: request for request in self.requests[step]}


@pytest.fixture(scope="module")
def asked() -> Asked:
    return Asked()


@pytest.fixture(scope="module")
def firm(asked: Asked, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Nine weeks: two whole months and the first close of each level but the quarter."""
    steps = ("formulate", "partition", "partition_week", "decompose", "execute", "merge", "diagnose", "align", "reconcile", "roll_up")
    return simulated(tmp_path_factory.mktemp("firm") / "run", FIRM, until="week:9", stubs=asked.stubs(*steps))


def test_eq1_every_state_inherits_from_one_root_and_its_revisions_are_rows(firm: Run) -> None:
    states = rows(firm, "states")
    by_id: dict[str, list[dict[str, Any]]] = {}
    for state in states:
        by_id.setdefault(state["id"], []).append(state)
    for revisions in by_id.values():
        assert sorted(state["revision"] for state in revisions) == list(range(1, len(revisions) + 1))
        assert len({state["parent"] for state in revisions}) == 1
    for state in states:
        seen, above = [state["id"]], state["parent"]
        while above is not None:
            assert above in by_id
            assert above not in seen
            assert min(s["since"] for s in by_id[above]) <= min(s["since"] for s in by_id[seen[-1]])
            seen.append(above)
            above = by_id[above][0]["parent"]
        assert seen[-1] == "root"
    assert all(task["state"] in by_id for task in firm.table("tasks"))


def test_eq2_a_plan_is_formulated_from_the_parents_plan_and_diagnosis_and_the_owners_own_last(firm: Run, asked: Asked) -> None:
    plans = {(state["id"], state["revision"]): state for state in firm.table("states")}
    month = next(key for key in sorted(plans) if key[0].endswith("M02@north"))
    request = asked.of("formulate")["Y1/Q1/M02/W05@north"]
    before = [plan for (unit, _), plan in sorted(plans.items()) if unit == "Y1/Q1/M01/W04@north"]
    assert request.inputs["parent_plan"].startswith(plans[month]["plan"][:60])
    assert request.inputs["last_plan"].startswith(before[-1]["plan"][:60])
    assert request.inputs["last_diagnosis"].startswith([plan for plan in before if plan["diagnosis"]][-1]["diagnosis"][:60])
    recipients = {r["owner"] for q in asked.requests["partition"] if q.inputs["unit"]["level"] == "quarter" for r in q.inputs["recipients"]}
    assert recipients == {"north", "south"}


def test_eq3_the_aligned_plan_rests_on_the_diagnosis_of_the_bundles_results(firm: Run, asked: Asked) -> None:
    unit = "Y1/Q1/M01/W02@north"
    states = sorted(rows(firm, "states", id=unit), key=lambda state: state["revision"])
    assert [bool(state["diagnosis"]) for state in states] == [False, True, True]
    aligned = asked.of("align")[unit]
    assert aligned.inputs["diagnosis"]["summary"] == states[1]["diagnosis"]
    assert aligned.inputs["plan"].startswith(states[0]["plan"][:60])
    assert states[1]["plan"] != states[0]["plan"]
    shown = {task["title"] for task in asked.of("diagnose")[unit].inputs["tasks"]}
    assert {task["title"] for task in rows(firm, "tasks", state=unit)} <= shown
    rolled = asked.of("roll_up")["Y1/Q1/M01@north"]
    assert [child["owner"] for child in rolled.inputs["children"]] == ["North"]
    assert [sibling["owner"] for sibling in asked.of("reconcile")[unit].inputs["siblings"]] == ["south"]


def test_eq4_a_composite_task_has_its_specification_and_one_result_exactly_when_it_is_done(firm: Run) -> None:
    merged = Counter(result["task"] for result in firm.table("results") if result["subtask"] is None)
    for task in rows(firm, "tasks", kind="composite"):
        assert task["title"]
        assert task["description"]
        assert task["priority"] in ("low", "normal", "high", "urgent")
        assert merged[task["id"]] == (1 if task["status"] == "done" else 0)
    assert {row["result"] for row in firm.table("provenance")} == {row["id"] for row in firm.table("results")}


def test_eq5_the_context_is_what_the_query_names_and_nothing_later_than_the_last_sealed_week(firm: Run, asked: Asked) -> None:
    results = {result["id"]: result for result in firm.table("results")}
    subtasks = {subtask["id"]: subtask for subtask in firm.table("subtasks")}
    retrieved = rows(firm, "uses", kind="result", how="retrieved")
    assert retrieved
    for use in retrieved:
        source, user = results[use["used"]], results[use["result"]]
        assert source["subtask"] is None
        assert source["task"] != user["task"]
        if user["subtask"] is not None:
            monday = subtasks[user["subtask"]]["started"][:10]
            assert week_of(source["finished"]) < week_of(monday)
    explicit = {(use["result"], use["used"]) for use in rows(firm, "uses", kind="result", how="explicit")}
    assert explicit
    assert all(results[used]["finished"] <= subtasks[user]["started"] for user, used in explicit if user in subtasks)
    shown = Counter()
    for request in asked.requests["execute"]:
        dependencies = request.inputs["dependencies"]
        assert len(dependencies) <= MOST_DEPENDENCIES
        assert sum(tokens(d["excerpt"]) for d in dependencies) <= 500
        shown.update(d["id"] for d in dependencies)
    recorded = Counter(use["used"] for use in rows(firm, "uses", kind="result") if use["result"] in subtasks)
    assert all(shown[used] >= count for used, count in recorded.items())


def test_eq6_work_never_leaves_the_delegation_edges_and_goes_to_the_best_match(firm: Run) -> None:
    edges = {(edge["source"], edge["target"]) for edge in firm.table("edges")}
    agents = {agent["id"]: agent for agent in firm.table("agents")}
    assigned = [subtask for subtask in firm.table("subtasks") if subtask["assignee"]]
    assert assigned
    for subtask in assigned:
        assert (subtask["delegator"], subtask["assignee"]) in edges
        assert subtask["why"]
    right = sum(agents[subtask["assignee"]]["role"] == subtask["proposed"] for subtask in assigned)
    assert right >= 0.95 * len(assigned)


def test_eq7_a_result_is_of_its_subtask_its_context_and_its_agent(firm: Run, asked: Asked) -> None:
    subtasks = {subtask["id"]: subtask for subtask in rows(firm, "subtasks", status="done")}
    provenance = {row["result"]: row for row in firm.table("provenance")}
    for result in firm.table("results"):
        if result["subtask"] is None:
            continue
        subtask, why = subtasks[result["subtask"]], provenance[result["id"]]
        assert result["agent"] == subtask["assignee"] == why["agent"]
        assert why["delegator"] == subtask["delegator"]
        assert why["state"] == subtask["task"].rsplit("/", 1)[0]
        assert why["prompt"].startswith("execute@")
        assert why["calls"][0] == f"{subtask['id']}:execute#{why['calls'][0].rsplit('#')[-1]}"
        assert subtask["started"] <= subtask["finished"] == result["finished"]
    names = {agent["id"]: agent["name"] for agent in firm.table("agents")}
    goals = {subtask["goal"]: names[subtask["assignee"]] for subtask in subtasks.values()}
    told = [request for request in asked.requests["execute"] if request.inputs["subtask"]["goal"] in goals]
    assert told
    assert sum(goals[request.inputs["subtask"]["goal"]] == request.inputs["author"]["name"] for request in told) >= 0.9 * len(told)


def test_eq8_partials_are_merged_once_and_written_back_as_one(firm: Run) -> None:
    results = {result["id"]: result for result in firm.table("results")}
    uses = rows(firm, "uses", how="merged")
    for task in rows(firm, "tasks", kind="composite", status="done"):
        partials = {result["id"] for result in results.values() if result["task"] == task["id"] and result["subtask"] is not None}
        assert {use["used"] for use in uses if use["result"] == task["id"]} == partials
        assert results[task["id"]]["finished"] == max(results[partial]["finished"] for partial in partials)


def test_share_is_a_reference_that_only_reports_read(firm: Run, tmp_path: Path) -> None:
    other = simulated(tmp_path / "other", FIRM.replace(", share: 0.9", "").replace("share: 0.1", "share: 0.7"), until="week:9")
    assert other.digest() == firm.digest()


def test_sec_4_2_kl_is_in_nats_against_the_reference() -> None:
    assert kl({"a": 0.5, "b": 0.5}, {"a": 0.9, "b": 0.1}) == pytest.approx(0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(0.5 / 0.1))


def week_of(moment: str) -> tuple[int, int]:
    """The ISO week of a simulated time."""
    from datetime import date

    year, week, _ = date.fromisoformat(moment[:10]).isocalendar()
    return year, week
