"""What incidents asked for, who turned to it and whether it ended, against a base and controls; activities by category."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import pytest

from taskweave.api import Run, reacted
from taskweave.errors import BadInput
from taskweave.evaluation.keywords import phrases
from taskweave.experiments.reactions import GIVEN, PLANNED, SPEAKING, Group, Reaction, Reactions, When, _says, reactions
from taskweave.experiments.rows import RunRows
from taskweave.experiments.telling import LEAST_WIDTH, WIDTH
from taskweave.experiments.telling_reactions import told
from taskweave.org.calendar import WorkCalendar
from taskweave.org.population import Population
from taskweave.org.schema import load
from taskweave.pool.tables import Row
from taskweave.report.asking import asked
from taskweave.shipped import built_in
from taskweave.simulation.incidents import load_incidents
from tests import pool_rows as some
from tests.run_rows import run_rows
from tests.simulated import simulated

TWO = """
name: Two
domain: Furniture
calendar: {start: 2026-01-05, hours: 8}
goals: {orders: {text: Repair 400 chairs, owner: Boss}}
roles:
  Boss: {}
  Master: {reports_to: Boss, leads: Workshop}
  Joiner: {reports_to: Master, count: 2, hours: 3-5}
  Seller: {reports_to: Boss, leads: Shop}
  Clerk: {reports_to: Seller, count: 2, hours: 3-5}
workload: {utilisation: 0.8, composite_hours: 12}
"""
BAN = {
    "title": "Mahogany embargo",
    "category": "policy",
    "severity": "medium",
    "description": "Mahogany must not be used any more.",
    "affects": ["Joiner"],
    "duration": "2 weeks",
    "effects": [
        {"workload": {"role": "Joiner", "title": "Replace the mahogany", "hours": 12, "due": "2 weeks", "priority": "high"}},
        {"capacity": {"factor": 0.7}},
    ],
}
SLUMP = {
    "title": "Slump of veneer",
    "category": "economic",
    "affects": ["Clerk"],
    "duration": "3 weeks",
    "description": "Nobody buys veneer.",
}


class Runs(NamedTuple):
    base: Run
    events: list[Run]
    controls: list[Run]
    found: Reactions


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Eight weeks of a workshop and its shop; forks in week 3 with an incident each, and three redrawn ones."""
    place = tmp_path_factory.mktemp("reactions")
    base = simulated(place / "base", TWO, until="week:8")
    events = []
    for name, incident in (("ban", BAN), ("slump", SLUMP)):
        (place / f"{name}.yaml").write_text(json.dumps(incident), encoding="utf-8")
        events.append(base.fork(at="week:3", incidents=place / f"{name}.yaml", out=place / name))
    controls = [base.fork(at="week:3", redraw=draw, out=place / f"control-{draw}") for draw in (1, 2, 3)]
    return Runs(base, events, controls, reacted(base, events, controls)[0])


def figures(one: Reaction, what: str, group: Group) -> list[tuple[float | None, float | None]]:
    found = []
    whens: tuple[When, ...] = ("before", "while", "after")
    for when in whens:
        difference = one.found(what, group, when)
        assert difference is not None
        found.append((difference.other.value, difference.other.of))
    return found


# ---------------------------------------------------------------- one incident
def test_it_says_what_an_incident_asks_for_who_hears_of_it_and_how_long_it_lasts(runs: Runs) -> None:
    ban, slump = runs.found.reactions
    assert ban.asks == ("'Replace the mahogany': 12 h of Joiner, due in 2 weeks, high", "30 % fewer hours to plan with for whom it affects")
    assert (ban.first, ban.last, ban.compared, ban.controls) == (3, 4, 8, ("control-1", "control-2", "control-3"))
    assert ban.owners == {"affected": ("master",), "others": ("seller",)}
    assert slump.asks == ()
    assert slump.owners == {"affected": ("seller",), "others": ("master",)}


def test_those_who_hear_of_it_turn_to_it_the_others_do_not_and_it_ends(runs: Runs) -> None:
    ban, slump = runs.found.reactions
    for one, weeks in ((ban, 2), (slump, 3)):
        before, while_, after = figures(one, SPEAKING, "affected")
        assert (before, while_, after) == ((0, 2), (1, weeks), (0, 6 - weeks))
        difference = one.found(SPEAKING, "affected", "while")
        assert difference is not None
        assert difference.judged is not None
        assert difference.judged.verdict == "stands out"
        assert [value for value, _ in figures(one, SPEAKING, "others")] == [0, 0, 0]
    hours = [(value or 0) * (of or 0) for value, of in figures(ban, GIVEN, "affected")]
    assert hours[0] == 0
    assert hours[1] >= 11  # the hours of the task are split in whole subtasks
    assert [value for value, _ in figures(ban, GIVEN, "others")] == [0, 0, 0]


def test_hours_planned_are_set_against_those_of_the_base_in_the_same_weeks_and_units(runs: Runs) -> None:
    ban = runs.found.reactions[0]
    planned = ban.found(PLANNED, "affected", "while")
    assert planned is not None
    assert planned.judged is not None
    assert planned.difference is not None
    assert planned.difference < 0
    assert planned.judged.verdict == "stands out"
    before = ban.found(PLANNED, "affected", "before")
    assert before is not None
    assert before.difference == 0
    others = ban.found(PLANNED, "others", "while")
    assert others is not None
    assert others.judged is not None
    assert others.judged.verdict == "not distinguishable"


# ---------------------------------------------------------------- by category
def test_activities_are_shares_of_the_tasks_planned_while_incidents_of_a_category_were_in_force(runs: Runs) -> None:
    assert [(shift.category, shift.group, shift.incidents) for shift in runs.found.shifts] == [
        ("policy", "affected", 1), ("policy", "others", 1), ("economic", "affected", 1), ("economic", "others", 1)
    ]  # fmt: skip
    policy = runs.found.shifts[0]
    tasks = [t for t in runs.events[0].tasks() if t["kind"] == "composite" and t["id"].partition("@")[0][-3:] in ("W03", "W04")]
    mine = [task for task in tasks if task["state"].endswith("@master")]
    for one in policy.activities:
        count = sum(task["activity"] == one.name for task in mine)
        assert one.other.of == len(mine)
        assert (one.other.value or 0) * len(mine) == pytest.approx(count)
    assert sum(one.other.value or 0 for one in policy.activities) == pytest.approx(1)
    assert sum(one.base.value or 0 for one in policy.activities) == pytest.approx(1)


def a_run(where: Path, name: str, activities: str, *, more: list[Row] | None = None) -> RunRows:
    """Four weeks in which the CTO's unit plans a task of each activity in week 3; a letter an activity."""
    unit = "Y1/Q1/M01/W03@cto"
    people = [some.agent("cto", "CTO", tier=1), some.agent("ada", "Engineer")]
    plan = [some.state(unit, level="week", owner="cto", plan="As ever.", since="2026-01-19T09:00", origin="model")]
    tasks = [some.task(f"{unit}/t{place}", activity=letter, origin="model") for place, letter in enumerate(activities, 1)]
    edges: list[Row] = [("edges", {"source": "cto", "target": "ada", "kind": "tier"})]
    digests = dict(enumerate(["a", "b", name + "c", name + "d"], 1))
    return run_rows(where / name, [*people, *plan, *tasks, *edges, *(more or [])], digests=digests)


def test_several_runs_of_a_category_are_put_together_and_set_against_controls_of_the_same_weeks(tmp_path: Path) -> None:
    row = {"id": "law", "title": "Law", "category": "policy", "description": "A law.", "severity": "low", "effects": [], "affects": "all"}
    law: Row = ("incidents", {**row, "tick": 10, "since": "2026-01-19", "until": "2026-01-26"})
    base = a_run(tmp_path, "base", "wwwwwwwwww")
    events = [a_run(tmp_path, f"event-{number}", text, more=[law]) for number, text in ((1, "aaawwwwwww"), (2, "aaaaaawwww"))]
    controls = [a_run(tmp_path, f"control-{number}", text) for number, text in ((1, "awwwwwwwww"), (2, "wwwwwwwwww"), (3, "rwwwwwwwww"))]
    found = reactions(base, events, controls)
    assert not found.scripted
    (shift,) = found.shifts
    assert shift.incidents == 2
    audit = next(one for one in shift.activities if one.name == "a")
    assert (audit.base.value, audit.other.value, audit.other.of) == (0, 0.45, 20)
    assert audit.judged is not None
    assert audit.judged.verdict == "stands out"
    review = next(one for one in shift.activities if one.name == "r")
    assert review.judged is not None
    assert review.judged.verdict == "not distinguishable"
    text = told(found)
    assert "nothing is claimed" not in text
    assert "* a " in text
    assert "policy, 2 incidents, units that hear of it: 20 tasks, 20 in base" in text
    assert [one.group for one in found.shifts] == ["affected"]  # nobody does not hear of it


# ---------------------------------------------------------------- telling
def test_a_scripted_run_claims_nothing_of_what_people_would_turn_to(runs: Runs) -> None:
    text = " ".join(told(runs.found).split())
    assert "nothing is claimed here of what people would turn to: a run with a model shows that, with the same command" in text
    assert "affected units speak of it while in force: in 2 of 2 incidents, 2 beyond chance (5 of 5 plans, 100.0 %)" in text
    assert "other units do: in 0 of 2 incidents" in text
    assert "affected units speak of it after its end: in 0 of 2 incidents" in text


@pytest.mark.parametrize("width", [LEAST_WIDTH, 80, WIDTH])
def test_no_line_is_wider_than_a_terminal(runs: Runs, width: int) -> None:
    assert max(map(len, told(runs.found, all=True, width=width).splitlines())) <= width
    assert json.loads(json.dumps(runs.found.to_dict()))["reactions"][0]["title"] == "Mahogany embargo"


def test_without_controls_nothing_is_said_of_chance_and_without_incidents_nothing_at_all(runs: Runs) -> None:
    found = reacted(runs.base, runs.events)[0]
    assert "With fewer than 2 controls nothing can be said of chance" in " ".join(told(found).split())
    assert "--redraw 5" in " ".join(told(found).split())
    assert not any(one.difference.judged for reaction in found.reactions for one in reaction.measures)
    with pytest.raises(BadInput, match="has an incident that it has not.*--each 5"):
        reacted(runs.base, [runs.controls[0]], [runs.controls[1]])[0]


def test_an_incident_that_is_in_force_to_the_end_has_no_after(runs: Runs) -> None:
    (ban, _) = reacted(runs.base, runs.events, runs.controls, until="week:4")[0].reactions
    assert ban.last == 4
    assert ban.found(SPEAKING, "affected", "after") is None
    (ban, _) = reacted(runs.base, runs.events, runs.controls, until="week:3")[0].reactions
    assert ban.last is None
    assert "and beyond" in told(reacted(runs.base, runs.events, runs.controls, until="week:3")[0])


@pytest.mark.parametrize("name", ["company_a", "gov"])
def test_every_incident_of_the_library_says_what_it_asks_for(name: str) -> None:
    org = load(built_in()[name])
    for payload in load_incidents(Path("library:all"), org, Population.sample(org, 1), WorkCalendar(org.calendar)):
        said = asked(payload["effects"])
        assert len(said) == len(payload["effects"]) >= 1, payload["title"]
        assert all(len(one) > 8 for one in said)


def test_one_word_in_common_is_not_work_for_an_incident_and_two_are() -> None:
    event = cast(Any, SimpleNamespace(row={"title": "Cookies end"}, words=phrases("consent of visitors; costs of tracking")))
    assert not _says("Count the visitors of the fair", event)
    assert not _says("Lower the costs of paper", event)
    assert _says("Ask visitors before tracking", event)
    assert _says("What the cookies end means", event)
