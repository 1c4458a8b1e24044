"""Every field of the organization file that the simulation acts on does something when it is turned; `share` does nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.records import Request
from tests.simulated import rows, simulated

FIRM = """
name: Firm
domain: Consulting
description: A firm of five.
calendar: {start: 2026-01-05, hours: 8}
goals:
  firms: {text: Thirty firms served, kpi: firms, target: 30, by: 2026-12-18, owner: Chief}
roles:
  Chief: {}
  North: {reports_to: Chief, leads: North Office}
  Clerk: {reports_to: North, count: 2, hours: 3-5}
  Typist: {reports_to: North, hours: 3-5}
people:
  Ann Bell: {role: Clerk, years: 12, knows: [tax returns]}
workload: {utilisation: 0.8, composite_hours: 14, variation: 0.2}
environment: {firms: {start: 10, drift: +0.1/week}}
"""

TURNS = {
    "name": ("name: Firm", "name: Other Firm"),
    "calendar.start": ("start: 2026-01-05", "start: 2026-03-02"),
    "calendar.hours": ("hours: 8}", "hours: 7}"),
    "calendar.holidays": ("hours: 8}", "hours: 8, holidays: [2026-01-06]}"),
    "goals.text": ("Thirty firms served", "Forty firms served"),
    "goals.target": ("target: 30", "target: 40"),
    "goals.owner": ("owner: Chief", "owner: North"),
    "roles.leads": ("leads: North Office", "leads: Northern Office"),
    "roles.count": ("count: 2", "count: 3"),
    "roles.hours": ("count: 2, hours: 3-5", "count: 2, hours: 5-7"),
    "roles.fte": ("Typist: {reports_to: North", "Typist: {fte: 0.5, reports_to: North"),
    "roles.demand": ("Typist: {reports_to: North", "Typist: {demand: 0.5, reports_to: North"),
    "roles.like": ("Typist: {reports_to: North", "Typist: {like: Data Analyst, reports_to: North"),
    "roles.executes": ("North: {reports_to: Chief", "North: {executes: 40%, reports_to: Chief"),
    "roles.responsibilities": ("Typist: {reports_to: North", "Typist: {responsibilities: [Type letters], reports_to: North"),
    "roles.subjects": ("Typist: {reports_to: North", "Typist: {subjects: [letter templates], reports_to: North"),
    "people.years": ("years: 12", "years: 3"),
    "people.knows": ("knows: [tax returns]", "knows: [bread]"),
    "people.away": ("knows: [tax returns]", "away: [2026-01-07/2026-01-09]"),
    "cadence": ("workload:", "cadence: {year: 1, quarter: 2, month: 2, week: 2}\nworkload:"),
    "workload.utilisation": ("utilisation: 0.8", "utilisation: 0.6"),
    "workload.composite_hours": ("composite_hours: 14", "composite_hours: 8"),
    "workload.variation": ("variation: 0.2", "variation: 0"),
    "activities": ("workload:", "activities: [write, review]\nworkload:"),
    "environment.start": ("start: 10", "start: 11"),
    "environment.drift": ("drift: +0.1/week", "drift: +0.2/week"),
    "environment.noise": ("drift: +0.1/week", "drift: +0.1/week, noise: 0.3"),
    "environment.raised_by": ("drift: +0.1/week", "drift: +0.1/week, raised_by: {firms: 0.1}"),
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("before") / "run", FIRM, until="week:2")


@pytest.mark.parametrize("field", TURNS)
def test_turning_a_field_changes_the_run(tmp_path: Path, before: Run, field: str) -> None:
    old, new = TURNS[field]
    assert FIRM.count(old) >= 1
    assert simulated(tmp_path / "run", FIRM.replace(old, new, 1), until="week:2").digest() != before.digest()


def test_domain_description_and_the_goals_dates_stand_in_every_prompt_that_plans_or_makes_something(tmp_path: Path) -> None:
    asked: list[Request] = []

    def listen(request: Request) -> Any:
        asked.append(request)
        return Scripted().answer(request)

    steps = ("formulate", "partition", "partition_week", "decompose", "execute", "merge", "diagnose", "align", "roll_up")
    simulated(tmp_path / "run", FIRM, until="week:1", stubs=dict.fromkeys(steps, listen))
    assert {request.prompt for request in asked} == set(steps)
    assert all("Consulting" in request.messages[0][1] for request in asked)
    # A merge has its parts, and a roll-up its summaries, to say; what the organization is, they are not to add.
    assert all("A firm of five." in request.messages[0][1] for request in asked if request.prompt != "merge")
    for request in asked:
        if request.prompt == "decompose":
            assert ("by 2026-12-18" in request.messages[1][1]) == bool(request.inputs["task"]["goals"]), "the goals that its task serves"
        elif request.prompt not in ("merge", "roll_up"):
            assert "by 2026-12-18" in request.messages[0][1]


def test_a_goals_date_that_has_passed_is_what_later_plans_speak_of_and_begin_work_for(tmp_path: Path) -> None:
    # A Sunday: no other date in a plan falls on it.
    early = simulated(tmp_path / "early", FIRM.replace("by: 2026-12-18", "by: 2026-01-18"), until="month:2")
    late = simulated(tmp_path / "late", FIRM, until="month:2")

    def naming(run: Run) -> list[str]:
        return [row["since"] for row in rows(run, "states") if "18 January" in row["plan"]]

    def titles(run: Run, *weeks: str) -> list[str]:
        return [row["title"] for row in rows(run, "tasks", kind="composite") if row["id"].split("@")[0][-3:] in weeks]

    assert naming(early)
    assert min(naming(early)) > "2026-01-18"
    assert not naming(late)
    before, after = ("W01", "W02"), ("W04", "W05", "W06", "W07", "W08")
    assert titles(early, *before) == titles(late, *before)
    assert titles(early, *after) != titles(late, *after)


def test_turning_share_changes_nothing(tmp_path: Path, before: Run) -> None:
    shared = FIRM.replace("Typist: {reports_to: North", "Typist: {share: 0.3, reports_to: North")
    assert simulated(tmp_path / "run", shared, until="week:2").digest() == before.digest()


def test_part_of_a_day_and_days_away_are_hours_that_nobody_offers(tmp_path: Path, before: Run) -> None:
    def offered(run: Run, agent: str) -> float:
        return sum(row["available"] for row in rows(run, "load", agent=agent, week=1))

    part = simulated(tmp_path / "part", FIRM.replace("Typist: {reports_to: North", "Typist: {fte: 0.5, reports_to: North"), until="week:1")
    away = simulated(tmp_path / "away", FIRM.replace("knows: [tax returns]", "away: [2026-01-07/2026-01-09]"), until="week:1")
    assert (offered(before, "typist"), offered(part, "typist")) == (40, 20)
    assert (offered(before, "clerk-1"), offered(away, "clerk-1")) == (40, 16)


def test_cadence_says_who_owns_a_level(tmp_path: Path, before: Run) -> None:
    text = FIRM.replace("workload:", "cadence: {year: 1, quarter: 2, month: 2, week: 2}\nworkload:")
    north = simulated(tmp_path / "run", text, until="week:1")
    assert {row["owner"] for row in rows(before, "states", level="quarter")} == {"chief"}
    assert {row["owner"] for row in rows(north, "states", level="quarter")} == {"north"}
