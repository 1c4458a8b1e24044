"""`--without PART`: what a part of the loop does is seen in a run that leaves it out; all else goes on (TaskWeave, Sec. 3.2, 3.3)."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave.api import Run
from taskweave.backbones.scripted import STEPS
from taskweave.errors import BadInput, Divergence
from taskweave.estimating import estimate
from taskweave.exports.lengths import measure
from taskweave.given import left_out
from taskweave.pool.pool import Pool
from taskweave.runs.config import PARTS
from tests.simulated import rows, simulated
from tests.test_paper import FIRM, Asked

CLOSING = ("diagnose", "align", "reconcile", "roll_up")  # the parts that are steps of their own
FORMER = "Y1/Q1/M01/W04@north"  # a unit that closes its month as well


class Left:
    """A run that leaves parts out, and what it asked."""

    def __init__(self, place: Path, *without: str, until: str = "week:6", **more: Any) -> None:
        self.asked = Asked()
        self.run = simulated(place, FIRM, until=until, stubs=self.asked.stubs(*STEPS), without=without, **more)

    def inputs(self, step: str) -> list[dict[str, Any]]:
        return [dict(request.inputs) for request in self.asked.requests.get(step, [])]

    def steps(self) -> Counter[str]:
        return Counter(call["prompt"] for call in self.run.table("calls"))

    def revisions(self, unit: str) -> list[dict[str, Any]]:
        return sorted(rows(self.run, "states", id=unit), key=lambda row: int(row["revision"]))


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Left]:
    """By the part that is left out: six weeks, with the first close of a month; "" is the whole, "all" leaves out all."""
    place = tmp_path_factory.mktemp("left")
    found = {part: Left(place / part, part) for part in PARTS}
    return {**found, "": Left(place / "whole"), "all": Left(place / "all", *PARTS)}


# ---------------------------------------------------------------- each part
@pytest.mark.parametrize("part", CLOSING)
def test_a_step_that_is_left_out_is_not_asked_and_all_others_are(left: dict[str, Left], part: str) -> None:
    whole, without = left[""].steps(), left[part].steps()
    assert whole[part] > 10
    assert without.keys() == whole.keys() - {part}
    assert not [site for call in left[part].run.table("calls") if f":{part}" in (site := call["site"])]


@pytest.mark.parametrize("part", [*PARTS, "all"])
def test_a_run_without_a_part_does_its_work_and_counts_it(left: dict[str, Left], part: str) -> None:
    run = left[part].run
    assert run.finished
    status = Counter(row["status"] for row in rows(run, "tasks", kind="composite"))
    assert status["done"] > 30
    assert rows(run, "tasks", kind="objective", status="done")
    assert {row["quality"] for row in run.results()} == {"ok"}


@pytest.mark.parametrize("part", ["", *PARTS, "all"])
def test_no_revision_of_a_state_says_what_the_one_before_said(left: dict[str, Left], part: str) -> None:
    for unit in {row["id"] for row in left[part].run.table("states")}:
        said = [(row["plan"], row["diagnosis"]) for row in left[part].revisions(unit)]
        assert all(plan.strip() for plan, _ in said)
        assert "" not in {diagnosis for _, diagnosis in said}
        assert [one for one, other in pairwise(said) if one == other] == [], unit


def test_without_all_of_them_a_plan_stays_what_it_was_formulated_as(left: dict[str, Left]) -> None:
    assert {row["revision"] for row in left["all"].run.table("states")} == {1}
    assert left["all"].steps().keys() == set(STEPS) - {*CLOSING, "respond"}


def test_without_diagnose_later_plans_have_no_diagnosis(left: dict[str, Left]) -> None:
    assert [row["diagnosis"] for row in left[""].revisions(FORMER)][-1]
    assert {row["diagnosis"] for row in left["diagnose"].revisions(FORMER)} == {None}
    assert any(one["last_diagnosis"] for one in left[""].inputs("formulate"))
    assert {one["last_diagnosis"] for one in left["diagnose"].inputs("formulate")} == {""}


def test_without_diagnose_the_other_closing_steps_get_what_code_counted_in_its_place(left: dict[str, Left]) -> None:
    told = re.compile(r"Tasks of the period: \d+ done, \d+ spilled, \d+ blocked, \d+ dropped\.")
    one = left["diagnose"]
    assert all(told.match(asked["diagnosis"]["summary"]) for asked in one.inputs("align"))
    assert all(told.match(sibling["diagnosis"]) for asked in one.inputs("reconcile") for sibling in asked["siblings"])
    assert all(told.match(child["summary"]) for asked in one.inputs("roll_up") for child in asked["children"])
    late = [asked["diagnosis"]["deviations"] for asked in one.inputs("align") if asked["unit"]["level"] == "week"]
    titles = {row["title"] for row in rows(one.run, "tasks", kind="composite")}
    assert {title for titles in late for title in titles} <= titles
    assert any(late)
    month = next(asked for asked in one.inputs("align") if asked["unit"]["level"] == "month")
    assert len(month["diagnosis"]["summary"]) > 150, "and what was rolled up from below"


def test_without_align_a_diagnosis_is_a_revision_that_keeps_the_plan(left: dict[str, Left]) -> None:
    for part, keeps in (("", False), ("align", True)):
        before, diagnosed, *reconciled = left[part].revisions(FORMER)
        assert before["diagnosis"] is None
        assert diagnosed["diagnosis"]
        assert (diagnosed["plan"] == before["plan"]) is keeps
        assert [row["plan"] != diagnosed["plan"] for row in reconciled] == [True], "siblings still move it"


def test_without_reconcile_nobody_asks_anything_of_a_sibling_and_plans_are_still_aligned(left: dict[str, Left]) -> None:
    assert any(one["requests"] for one in left[""].inputs("formulate"))
    assert not any(one["requests"] for one in left["reconcile"].inputs("formulate"))
    before, closed = left["reconcile"].revisions(FORMER)
    assert before["plan"] != closed["plan"]
    assert closed["diagnosis"]


def test_without_roll_up_nothing_that_was_found_goes_up_but_what_code_counts_does(left: dict[str, Left]) -> None:
    for part, hears in (("", True), ("roll_up", False)):
        below = [one for one in left[part].inputs("formulate") if one["unit"]["level"] == "week"]
        assert any(one["parent_diagnosis"] for one in below) is hears
        months = [one for one in left[part].inputs("diagnose") if one["unit"]["level"] == "month"]
        assert any(one["children"] for one in months) is hears
        assert all(one["counts"]["done"] > 0 for one in months)
        with Pool.open(left[part].run.folder.run_db_path) as pool:
            rolled = [link.id for link in pool.trace("Y1/Q1/M01@north").upward if link.how == "rolled up"]
        assert bool(rolled) is hears
    assert any(one["last_diagnosis"] for one in left["roll_up"].inputs("formulate")), "each unit still has its own"


def test_without_retrieval_only_what_was_named_as_upstream_is_used(left: dict[str, Left]) -> None:
    ways = {part: Counter(row["how"] for row in left[part].run.table("uses") if row["kind"] == "result") for part in ("", "retrieval")}
    assert ways[""]["retrieved"] > 20
    assert ways["retrieval"].keys() == {"explicit", "merged"}
    assert ways["retrieval"]["explicit"] > 20
    looked = {}
    for part in ways:
        with contextlib.closing(sqlite3.connect(left[part].run.folder.journal_path)) as db:
            (looked[part],) = db.execute("SELECT count(*) FROM outcomes WHERE kind = 'search'").fetchone()
    assert looked[""] > 0
    assert looked["retrieval"] == 0
    tasks = {row["id"]: row["task"] for row in left["retrieval"].run.results()}
    used = [row for row in left["retrieval"].run.table("uses") if row["how"] == "explicit" and row["kind"] == "result"]
    assert [row for row in used if tasks[row["used"]] != tasks[row["result"]]], "carried work of other tasks among it"


TOWER = """
name: Tower
domain: Construction
roles:
  Minister: {}
  Director: {reports_to: Minister}
  Chief: {reports_to: Director}
  Manager: {reports_to: Chief}
  Lead: {reports_to: Manager}
  Officer: {reports_to: Lead, count: 3, hours: 2-5}
workload: {composite_hours: 12}
"""


@pytest.mark.parametrize(("part", "step"), [("roll_up", "diagnose"), ("diagnose", "align")])
def test_a_head_that_passes_its_weeks_down_counts_what_was_done_below(tmp_path: Path, part: str, step: str) -> None:
    asked = Asked()
    simulated(tmp_path / "run", TOWER, until="week:1", stubs=asked.stubs(step), without=[part])
    units = asked.of(step)
    above, below = (units[f"Y1/Q1/M01/W01@{owner}"].inputs for owner in ("manager", "lead"))
    if step == "diagnose":
        assert above["children"] == []
        assert above["counts"]["done"] == below["counts"]["done"] > 0
    else:
        counted = str(below["diagnosis"]["summary"])
        assert str(above["diagnosis"]["summary"]).startswith(counted), "and then what was rolled up from below"
        assert "Tasks of the period: 0 done" not in counted


# ---------------------------------------------------------------- the promises
@pytest.mark.parametrize("style", ["full", "compact"])
@pytest.mark.parametrize("part", PARTS)
def test_a_run_without_a_part_repeats_at_any_limit_and_when_it_is_stopped_and_resumed(tmp_path: Path, part: str, style: str) -> None:
    one = simulated(tmp_path / "one", FIRM, until="week:2", limit=1, style=style, without=[part])
    many = simulated(tmp_path / "many", FIRM, until="week:1", limit=32, style=style, without=[part]).resume(until="week:2")
    assert one.digest() == many.digest()
    asked = {call["prompt"] for call in one.table("calls")}
    assert not [prompt for prompt in asked if prompt.startswith(part)]
    assert {"formulate", "execute", *CLOSING} - {part} <= asked
    assert many.status().without == (part,)


def test_half_of_the_answers_lost_a_run_without_all_parts_is_what_it_was(tmp_path: Path, left: dict[str, Left]) -> None:
    run = simulated(tmp_path / "run", FIRM, until="week:6", without=PARTS)
    assert run.digest() == left["all"].run.digest()
    with contextlib.closing(sqlite3.connect(run.folder.journal_path)) as db, db:
        assert db.execute("DELETE FROM outcomes WHERE rowid % 2").rowcount > 50
        db.execute("DELETE FROM weeks")  # of a closed week nothing is asked again
    assert run.resume().digest() == left["all"].run.digest()


@pytest.mark.parametrize(("before", "after"), [((), ["align"]), (("align",), []), (("align",), ["align", "diagnose"])])
def test_what_is_left_out_is_what_the_run_was_made_with(tmp_path: Path, before: tuple[str, ...], after: list[str]) -> None:
    run = simulated(tmp_path / "run", until="week:1", without=before)
    file = tmp_path / "run" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"without": after}), encoding="utf-8")
    with pytest.raises(Divergence, match=r"config\.json: without"):
        Run.open(run.path).resume(until="week:2")


def test_the_order_in_which_parts_stand_in_the_config_is_no_change(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1", without=["retrieval", "align", "align"])
    assert run.config.without == ("align", "retrieval")
    file = tmp_path / "run" / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text(encoding="utf-8")) | {"without": ["retrieval", "align"]}), encoding="utf-8")
    assert Run.open(run.path).resume(until="week:2").status().week == 2


# ---------------------------------------------------------------- from Python
def test_python_takes_one_name_or_several_and_refuses_others_with_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = tw.simulate("tiny", until="week:1", out="r", without="diagnose")
    assert run.status().without == ("diagnose",)
    assert [row["without"] for row in tw.runs("r")] == [("diagnose",)]
    for given, says in (
        (["diagnos"], "'diagnos': the loop has no such part. Did you mean 'diagnose'"),
        ("Roll-Up", "Did you mean 'roll_up'"),
        (["align", 3], "without 3: .*diagnose, align, reconcile, roll_up, retrieval"),
        (7, "without 7"),
    ):
        with pytest.raises(BadInput, match=says):
            tw.simulate("tiny", until="week:1", out="s", without=given)  # type: ignore[arg-type]
        assert not (tmp_path / "s").exists()
    assert left_out(()) == ()
    assert left_out(PARTS[::-1]) == PARTS


def test_an_estimate_leaves_out_the_same() -> None:
    org = tw.Organization.load("tiny")
    whole, without = (estimate(org, backbone="openai:gpt-4o-mini", until="week:2", without=parts).spans[0] for parts in ((), ["align"]))
    assert {row.name for row in whole.steps} - {row.name for row in without.steps} == {"align"}
    assert without.total.calls < whole.total.calls


def test_lengths_of_a_run_without_a_part_are_not_those_of_the_whole(left: dict[str, Left]) -> None:
    marks = {part: planned.prompts for part in ("", "align") if (planned := measure(left[part].run.folder).planned) is not None}
    assert len(set(marks.values())) == 2
