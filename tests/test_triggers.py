"""Incidents that happen by chance, or when a key figure is beyond a bound."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskweave.api import Run
from taskweave.errors import IncidentInvalid
from taskweave.org.calendar import WorkCalendar
from taskweave.org.population import Population
from taskweave.org.schema import parse
from taskweave.simulation.incidents import load_incidents
from tests.simulated import events, rows, simulated

SHOP = """
name: Shop
domain: Furniture repair
calendar: {start: 2026-01-05, hours: 8}
goals: {orders: {text: Repair 400 chairs, owner: Head}}
roles:
  Head: {leads: Repair}
  Joiner: {reports_to: Head, count: 2, hours: 3-5}
environment: {returns: {start: 3.0, unit: "%", drift: +0.25/week}}
workload: {utilisation: 0.3, composite_hours: 12, variation: 0}
"""


def run_of(where: Path, *incidents: dict[str, Any], until: str = "week:6", seed: int = 1) -> Run:
    return simulated(where, SHOP, incidents=incidents, until=until, seed=seed)


def happened(run: Run) -> list[tuple[str, str]]:
    return [(row["id"], row["since"]) for row in rows(run, "incidents")]


def test_a_figure_beyond_its_bound_lets_it_happen_at_the_opening_of_that_week_and_once(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", {"title": "Recall", "when": {"kpi": "returns", "above": 3.4}, "duration": "1 week"})
    assert [reading["value"] for reading in rows(run, "readings")][:4] == [3.0, 3.25, 3.5, 3.75]
    assert happened(run) == [("recall", "2026-01-19")]
    assert [event["subject"] for event in events(run, "arm")] == ["recall"]


def test_what_repeats_happens_again_when_its_last_time_is_over(tmp_path: Path) -> None:
    recall = {"title": "Recall", "when": {"kpi": "returns", "above": 3.4}, "duration": "2 weeks", "repeats": "true"}
    run = run_of(tmp_path / "run", recall)
    assert happened(run) == [("recall", "2026-01-19"), ("recall.2", "2026-02-02")]


def test_chance_is_drawn_week_by_week_from_the_seed(tmp_path: Path) -> None:
    storm = {"title": "Storm", "chance": "0.4/week", "duration": "1 week", "repeats": "true"}
    found = [happened(run_of(tmp_path / f"{seed}", storm, seed=seed, until="week:8")) for seed in (1, 2, 3)]
    assert len({tuple(weeks) for weeks in found}) > 1
    assert 3 <= sum(map(len, found)) <= 16
    assert happened(run_of(tmp_path / "again", storm, until="week:8")) == found[0]
    never, always = ({**storm, "chance": f"{chance}/week"} for chance in (0, 1))
    assert happened(run_of(tmp_path / "never", never, until="week:3")) == []
    assert len(happened(run_of(tmp_path / "always", always, until="week:3"))) == 3


def test_what_a_trigger_let_happen_acts_and_repeats_byte_for_byte_also_when_the_run_is_resumed(tmp_path: Path) -> None:
    hires = [{"hire": {"role": "Joiner", "in": "1 week"}}, {"absence": {"role": "Joiner", "count": 1, "for": "1 week"}}]
    growth = {"title": "Growth", "when": {"kpi": "returns", "above": 3.2}, "chance": "0.9/week", "effects": hires}
    whole = run_of(tmp_path / "whole", growth)
    assert events(whole, "hire")
    assert events(whole, "absent")
    first = run_of(tmp_path / "first", growth, until="week:2")
    first.resume(until="week:6")
    assert Run.open(tmp_path / "first").digest() == whole.digest()
    whole.verify()


def test_one_that_is_injected_into_a_run_waits_from_then_on(tmp_path: Path) -> None:
    run = run_of(tmp_path / "run", until="week:3")
    file = tmp_path / "late.yaml"
    file.write_text("title: Recall\nwhen: {kpi: returns, above: 3.4}\n")
    run.inject(file, at="week:5")
    run.resume(until="week:6")
    assert happened(Run.open(tmp_path / "run")) == [("recall", "2026-02-02")]


def test_a_trigger_that_cannot_be_read_is_told_with_its_line(tmp_path: Path) -> None:
    org = parse(SHOP, "shop.yaml")
    file = tmp_path / "bad.yaml"
    file.write_text(
        "- {title: A, chance: 0.02}\n- {title: B, chance: 3/week}\n- {title: C, when: {kpi: retuns, above: 1}}\n"
        "- {title: D, when: {kpi: returns}}\n- {title: E, repeats: true}\n- {title: F, when: {kpi: returns, above: much}}\n"
    )
    with pytest.raises(IncidentInvalid) as trouble:
        load_incidents(file, org, Population.sample(org, 1), WorkCalendar(org.calendar))
    said = {problem.line: problem.what for problem in trouble.value.problems}
    assert list(said) == [1, 2, 3, 4, 5, 6]
    assert "a week" in said[1]
    assert "from 0 to 1" in said[2]
    assert "did you mean 'returns'?" in said[3]
    assert "`above: 4.0`" in said[4]
    assert "`repeats` goes with" in said[5]
    assert "a number" in said[6]
