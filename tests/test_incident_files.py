"""Incident files: what is read, and every problem with its line."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from taskweave.errors import IncidentInvalid
from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.population import Population
from taskweave.org.schema import load, parse
from taskweave.shipped import find_organization
from taskweave.simulation.incidents import Absence, Incidents, Who, after, load_incidents, read_incident

ORG = load(find_organization("company_a"))
POPULATION = Population.sample(ORG, 1)
CALENDAR = WorkCalendar(ORG.calendar)


def loaded(tmp_path: Path, text: str | bytes) -> list[dict[str, Any]]:
    file = tmp_path / "incidents.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_incidents(file, ORG, POPULATION, CALENDAR)


def problems(tmp_path: Path, text: str | bytes) -> list[tuple[int | None, str]]:
    with pytest.raises(IncidentInvalid) as trouble:
        loaded(tmp_path, text)
    return [(problem.line, problem.what) for problem in trouble.value.problems]


def test_one_mapping_or_a_list_and_what_was_left_out_is_filled_in(tmp_path: Path) -> None:
    (one,) = loaded(tmp_path, "title: Outage\n")
    assert one == {
        "title": "Outage",
        "category": "internal",
        "description": "",
        "severity": "medium",
        "affects": "all",
        "duration": "4 weeks",
        "effects": [],
    }
    two = loaded(tmp_path, "- {title: A, at: week:14}\n- {title: B, at: 2026-03-02, affects: [Marketing]}\n")
    assert [payload["tick"] for payload in two] == [CALENDAR.tick_of("week:14"), CALENDAR.tick_of("2026-03-02")]


def test_every_problem_is_told_at_once_with_its_line_and_the_nearest_right_name(tmp_path: Path) -> None:
    text = """- title: Ban
  category: political
  severity: grave
  affects: [Marketting, Backend Engineer]
  at: week:99
  duration: soon
  efects: []
- description: nameless
- title: Away
  effects:
    - absence: {role: Backend Enginer, for: 2 weeks}
    - absence: {role: Backend Engineer, count: 0, for: 2 weeks}
    - absence: {role: Backend Engineer}
    - hire: {role: Backend Engineer}
    - layoff: {role: Backend Engineer}
"""
    found = problems(tmp_path, text)
    lines = [line for line, _ in found]
    assert lines == sorted(lines, key=lambda line: line or 0)
    said = dict(found)
    assert "policy" in said[2]
    assert "low, medium, high" in said[3]
    assert "did you mean 'Marketing'?" in said[4]
    assert "week:99" in said[5]
    assert "4 weeks" in said[6]
    assert "'effects'" in said[7]
    assert "title" in said[8]
    assert "no role is called 'Backend Enginer'; did you mean 'Backend Engineer'?" in said[11]
    assert "above 0" in said[12]
    assert "how long" in said[13]
    assert "when somebody begins" in said[14]
    assert "'layoff' is not acted on" in said[15]


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"42", b"words", b"\xff\xfe\x00", b"a: [", b"title: &a x\nother: *a\n", b"x" * 2_000_000, b"title: {a: 1}", b"title:"],
)
def test_what_is_no_incident_is_refused(tmp_path: Path, text: bytes) -> None:
    assert problems(tmp_path, text)


def test_agents_are_meant_by_id_name_role_or_department(tmp_path: Path) -> None:
    person = next(agent for agent in POPULATION if agent.role == "Data Analyst")
    for name in (person.id, person.persona.name, "data analyst", "Strategy"):
        (payload,) = loaded(tmp_path, f"{{title: X, affects: [{name}]}}")
        incidents = Incidents(ORG, POPULATION, Delegation(ORG, POPULATION), CALENDAR)
        assert person.id in incidents.hear("x", payload, 0).agents


def test_who_is_absent_is_looked_up_by_the_kind_of_name_that_the_key_says(tmp_path: Path) -> None:
    person = next(agent for agent in POPULATION if agent.role == "Data Analyst")

    def absent(key: str, name: str) -> str:
        return f"{{title: X, effects: [{{absence: {{{key}: {name}, for: 1 week}}}}]}}"

    for key, name in (("agent", person.id), ("agent", person.persona.name.upper()), ("role", "data analyst"), ("department", "strategy")):
        (payload,) = loaded(tmp_path, absent(key, name))
        (absence,) = read_incident(payload, ORG, POPULATION, CALENDAR).effects
        assert isinstance(absence, Absence)
        assert person.id in absence.agents(Who(ORG, POPULATION), frozenset(), random.Random(1))
    for key, name, hint in (
        ("agent", "Data Analyst", "no agent is called 'Data Analyst'; it is the name of a role"),
        ("role", "Strategy", "no role is called 'Strategy'; it is the name of a department"),
        ("department", person.id, f"no department is called {person.id!r}; it is the name of an agent"),
        ("department", "Stratgy", "did you mean 'Strategy'?"),
        ("agent", person.persona.name[:-1], f"did you mean {person.persona.name!r}?"),
    ):
        assert hint in problems(tmp_path, absent(key, name))[0][1]


def test_a_name_that_is_of_two_kinds_means_for_an_absence_those_of_its_kind() -> None:
    org = parse("name: F\ndomain: D\nroles: {Head: {leads: Craft}, Craft: {reports_to: Head, count: 2}, Smith: Head}\n", "f.yaml")
    who = Who(org, Population.sample(org, 1))
    assert set(who.named("craft", "role")) == {"craft-1", "craft-2"}
    assert set(who.named("craft", "department")) == set(who.named("craft")) == {"head", "craft-1", "craft-2", "smith"}


def test_a_payload_from_the_inbox_is_checked_again() -> None:
    assert read_incident({"title": "A", "tick": 4}, ORG, POPULATION, CALENDAR).title == "A"
    for payload in ({}, {"title": "A", "affects": ["nobody"]}, {"title": ["A"]}, {"title": "A", "effects": {"news": "x"}}):
        with pytest.raises(IncidentInvalid):
            read_incident(payload, ORG, POPULATION, CALENDAR)


def test_no_payload_that_a_journal_may_hold_ends_a_run() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    many = "9" * 5000
    for effects in (deep, [{"absence": {"role": "Backend Engineer", "for": "2 weeks", "count": many}}], [{"news": deep}]):
        with pytest.raises(IncidentInvalid):
            read_incident({"title": "T", "effects": effects}, ORG, POPULATION, CALENDAR)


def test_ancestors_hear_it_and_siblings_do_not() -> None:
    incidents = Incidents(ORG, POPULATION, Delegation(ORG, POPULATION), CALENDAR)
    heard = incidents.hear("x", {"title": "X", "affects": ["Backend Engineer"], "duration": "1 week"}, 5)
    assert incidents.in_force("technology-manager", 5) == (heard,)
    assert incidents.in_force("chief-executive-officer", 5) == (heard,)
    assert incidents.in_force("marketing-manager", 5) == ()
    assert incidents.in_force("technology-manager", 4) == ()
    end = CALENDAR.day_of(heard.until)
    assert incidents.in_force("technology-manager", end - 1) == (heard,)
    assert incidents.in_force("technology-manager", end) == ()


@pytest.mark.parametrize(
    ("span", "end"),
    [("1 day", date(2026, 1, 31)), ("2 weeks", date(2026, 2, 13)), ("1 month", date(2026, 2, 28)), ("12 months", date(2027, 1, 30))],
)
def test_spans_are_calendar_time(span: str, end: date) -> None:
    assert after(date(2026, 1, 30), span) == end
