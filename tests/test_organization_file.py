from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from taskweave.errors import OrganizationInvalid, Problem
from taskweave.org import catalogue, show
from taskweave.org.delegation import Delegation
from taskweave.org.form import alike
from taskweave.org.organization import ACTIVITIES, Organization, ascii_slug, slug
from taskweave.org.population import Population
from taskweave.org.schema import json_schema, load, parse

CATALOGUE = """
Backend Engineer:
  responsibilities: [Build services]
  skills: [Python, SQL]
  hours: 5-12
  activities: [implement, test]
  artifacts: [SQL, specification]
  tools: [sqlite]
  subjects: [checkout API, ledger]
Technical Support Engineer:
  responsibilities: [Answer cases]
  skills: [patience]
  hours: 3-8
  activities: [support]
  artifacts: [ticket]
  subjects: [case queue]
"""

STARTUP = """
name: Bright Ledger
domain: SaaS, invoicing for small firms
goals:
  grow: {text: 220 paying firms, kpi: customers, target: 220, by: 2027-12-17, owner: CEO}
roles:
  CEO:              {executes: 30%}
  CTO:              {reports_to: CEO, leads: Product, executes: 40%, like: Backend Engineer}
  Backend Engineer: {reports_to: CTO, count: 3}
  Support Agent:    {reports_to: CTO, like: Technical Support Engineer, fte: 0.8}
people:
  Ines Roux: {role: Backend Engineer, years: 12, knows: [tax engine], away: [2027-05-03/2027-05-14]}
cross_links: [Support Agent -> Backend Engineer]
"""

FULL = """
name: Company A
domain: Software as a service
description: >-
  Sells one product
  in three plans: Solo, Team and "Business".
calendar: {start: 2026-01-05, hours: 7.5, holidays: [2026-05-01, 2026-12-24/2026-12-26]}
goals:
  retention: {text: Monthly churn under 2 %, kpi: churn, target: 2.0, by: 2026-12-18, owner: Strategy Manager}
  calm: Fewer night calls
departments: {Technology: {head: Technology Manager}, Strategy: Strategy Manager}
roles:
  Chief Executive Officer:
  Technology Manager: {reports_to: Chief Executive Officer, executes: 20%}
  Strategy Manager: {reports_to: Chief Executive Officer}
  Backend Engineer: {reports_to: Technology Manager, count: 2, fte: 50%, like: backend ENGINEER, share: 0.07, hours: 5-14, demand: 1.5,
    tools: [sql], responsibilities: [Keep it up], skills: [calm], activities: [audit], artifacts: [runbook], subjects: [pager]}
  Data Analyst: {reports_to: Strategy Manager, department: Technology, hours: 4, tools: []}
people:
  Ines Roux: {role: Backend Engineer, years: 12, knows: [tax engine], away: [2026-08-03/2026-08-14, 2026-09-01]}
cross_links: [Data Analyst -> Backend Engineer]
cadence: {year: 1, quarter: 1, month: 2, week: 2}
workload: {utilisation: 80%, composite_hours: 24, variation: 0.2}
activities: [audit, support, "on-call: night"]
environment:
  churn: {start: 3.1, unit: "%", drift: +0.02/week, noise: 0.1, lowered_by: {retention: 0.01}, raised_by: {calm: 0.5}}
"""


@pytest.fixture(autouse=True)
def _small_catalogue(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("orgs")
    (folder / "roles").mkdir()
    (folder / "roles" / "some.yaml").write_text(CATALOGUE, encoding="utf-8")
    monkeypatch.setattr(catalogue, "shipped", lambda name: folder)
    catalogue._shipped_catalogue.cache_clear()
    yield
    catalogue._shipped_catalogue.cache_clear()


def org(text: str, warn: list[str] | None = None) -> Organization:
    return parse(text, "acme.yaml", warn=warn)


def resolved(found: Organization) -> str:
    return show.resolved(found, Population.sample(found, 1))


def loads_again(found: Organization) -> bool:
    """Whether the resolved file is that organization, with the people that were made up named in it and the same as before."""
    again = parse(resolved(found), "resolved.yaml")
    same = again.model_copy(update={"people": found.people}) == found
    return same and Population.sample(again, 1).to_json() == Population.sample(found, 1).to_json()


def problems(text: str | bytes) -> list[str]:
    with pytest.raises(OrganizationInvalid) as refused:
        parse(text, "acme.yaml")
    assert str(refused.value) == "\n".join(map(str, refused.value.problems))
    return [str(problem) for problem in refused.value.problems]


def only_problem(text: str | bytes) -> str:
    (problem,) = problems(text)
    return problem


# ------------------------------------------------------------ the short file
def test_a_startup_in_a_dozen_lines_loads_with_nothing_else_given() -> None:
    warned: list[str] = []
    found = org(STARTUP, warned)
    assert {title: role.tier for title, role in found.roles.items()} == {"CEO": 1, "CTO": 2, "Backend Engineer": 3, "Support Agent": 3}
    assert {title: role.department for title, role in found.roles.items()} == {
        "CEO": None,
        "CTO": "Product",
        "Backend Engineer": "Product",
        "Support Agent": "Product",
    }
    assert found.departments["Product"].head == "CTO"
    assert found.cadence == {"year": 1, "quarter": 1, "month": 2, "week": 2}
    assert [role.executes for role in found.roles.values()] == [0.3, 0.4, 1.0, 1.0]
    assert found.roles["Support Agent"].skills == ("patience",)
    assert found.roles["Backend Engineer"].hours == (5, 12)
    assert found.roles["Backend Engineer"].middle_hours == 8.5
    assert found.activities == ACTIVITIES
    assert found.root.title == "CEO"
    assert "6 people in 3 tiers" in found.description
    (unknown,) = warned
    assert unknown.startswith("acme.yaml:7: the role catalogue does not know 'CEO'; it is taken as a generic role")


def test_a_file_with_one_role_is_an_organization() -> None:
    found = org("roles: {Founder: {}}")
    assert (found.name, found.slug, found.domain) == ("Acme", "acme", "general business")
    assert found.calendar.start == date(2026, 1, 5)
    assert found.calendar.hours == 8
    assert set(found.cadence.values()) == {1}
    assert (found.workload.utilisation, found.workload.composite_hours, found.workload.variation) == (0.85, 30, 0.3)
    assert "Plan and finish the work that falls to the Founder" in found.roles["Founder"].responsibilities
    assert found.roles["Founder"].like is None


def test_a_year_that_nobody_named_starts_in_the_first_year_that_the_file_names() -> None:
    assert org(STARTUP).calendar.start == date(2027, 1, 4), "Ines Roux is away in 2027, and the year must have her away"
    assert org(STARTUP.replace("2027-12-17", "2024-12-17")).calendar.start == date(2024, 1, 1)
    assert org("calendar: {start: 2026-03-18}" + STARTUP).calendar.start == date(2026, 3, 18)


# ------------------------------------------------------------ every field arrives
def test_every_field_of_the_full_file_reaches_the_organization() -> None:
    found = org(FULL)
    assert (found.name, found.domain) == ("Company A", "Software as a service")
    assert found.description == 'Sells one product in three plans: Solo, Team and "Business".'
    assert (found.calendar.start, found.calendar.hours) == (date(2026, 1, 5), 7.5)
    assert found.calendar.holidays == (date(2026, 5, 1), date(2026, 12, 24), date(2026, 12, 25), date(2026, 12, 26))
    retention = found.goals["retention"]
    assert (retention.text, retention.kpi, retention.target) == ("Monthly churn under 2 %", "churn", 2.0)
    assert (retention.by, retention.owner) == (date(2026, 12, 18), "Strategy Manager")
    assert (found.goals["calm"].text, found.goals["calm"].owner) == ("Fewer night calls", "Chief Executive Officer")
    assert {name: department.head for name, department in found.departments.items()} == {
        "Technology": "Technology Manager",
        "Strategy": "Strategy Manager",
    }
    engineer = found.roles["Backend Engineer"]
    assert (engineer.title, engineer.reports_to, engineer.count, engineer.fte) == ("Backend Engineer", "Technology Manager", 2, 0.5)
    assert (engineer.like, engineer.share, engineer.hours, engineer.demand) == ("Backend Engineer", 0.07, (5, 14), 1.5)
    assert (engineer.tools, engineer.responsibilities, engineer.skills) == (("sql",), ("Keep it up",), ("calm",))
    assert (engineer.activities, engineer.artifacts, engineer.subjects) == (("audit",), ("runbook",), ("pager",))
    assert found.roles["Technology Manager"].leads == "Technology"
    assert found.roles["Technology Manager"].executes == 0.2
    assert found.roles["Strategy Manager"].executes == 0.0
    assert (found.roles["Data Analyst"].department, found.roles["Data Analyst"].hours) == ("Technology", (4, 4))
    ines = found.people["Ines Roux"]
    assert (ines.role, ines.years, ines.knows) == ("Backend Engineer", 12, ("tax engine",))
    assert ines.away == ((date(2026, 8, 3), date(2026, 8, 14)), (date(2026, 9, 1), date(2026, 9, 1)))
    assert [(link.source, link.target) for link in found.cross_links] == [("Data Analyst", "Backend Engineer")]
    assert (found.workload.utilisation, found.workload.composite_hours, found.workload.variation) == (0.8, 24, 0.2)
    assert found.activities == ("audit", "support", "on-call: night")
    churn = found.environment["churn"]
    assert (churn.start, churn.unit, churn.drift, churn.noise) == (3.1, "%", 0.02, 0.1)
    assert (churn.lowered_by, churn.raised_by) == ({"retention": 0.01}, {"calm": 0.5})


def test_a_role_keeps_of_its_catalogue_activities_those_of_the_vocabulary() -> None:
    text = "roles: {Technical Support Engineer: {}, Backend Engineer: {reports_to: Technical Support Engineer}}\nactivities: [support, dig]"
    assert org(text).roles["Technical Support Engineer"].activities == ("support",)
    assert org(text).roles["Backend Engineer"].activities == ("support", "dig")


@pytest.mark.parametrize("given", ["tiers: {1: [A], 3: [C], 2: B}", "tiers: {3: C}"])
def test_tiers_may_be_given_for_all_or_on_the_role(given: str) -> None:
    found = org(f"roles: {{A: {{}}, B: {{reports_to: A}}, D: {{reports_to: A, tier: 3}}, C: {{reports_to: A}}}}\n{given}")
    assert {title: role.tier for title, role in found.roles.items()} == {"A": 1, "B": 2, "D": 3, "C": 3}
    assert {"roles.C.tier", "roles.D.tier"} <= found.given


def test_a_department_without_a_named_head_is_headed_by_its_one_role_whose_superior_is_outside() -> None:
    roles = "roles: {A: {}, B: {reports_to: A, department: Lab}, C: {reports_to: B, department: Lab}, D: {reports_to: C}}"
    found = org(f"departments: {{Lab: }}\n{roles}")
    assert found.departments["Lab"].head == "B"
    assert found.roles["D"].department == "Lab"


def test_a_given_level_moves_the_levels_that_the_file_leaves_open_no_more_than_needed() -> None:
    roles = "roles: {A: {}, B: {reports_to: A}, C: {reports_to: B}, D: {reports_to: C}}\n"
    assert org(roles).cadence == {"year": 1, "quarter": 2, "month": 3, "week": 3}
    assert org(roles + "cadence: {month: 1}").cadence == {"year": 1, "quarter": 1, "month": 1, "week": 3}
    assert org(roles + "cadence: {month: 4}").cadence == {"year": 1, "quarter": 2, "month": 4, "week": 4}


# ------------------------------------------------------------ plain scalars are text
def test_plain_scalars_stay_what_was_written() -> None:
    text = "name: 012\ndomain: NO\nroles: {yes: {}, 9:30: {reports_to: yes}, 1_000: yes, null: {reports_to: yes}}\ngoals: {on: 0x1F}"
    found = org(text)
    assert (found.name, found.domain) == ("012", "NO")
    assert list(found.roles) == ["yes", "9:30", "1_000", "null"]
    assert found.goals["on"].text == "0x1F"


@pytest.mark.parametrize(("written", "value"), [("30%", 0.3), ("0.3", 0.3), ("30 %", 0.3), ("100%", 1.0), ("0", 0.0), (".5", 0.5)])
def test_a_part_may_be_written_as_percentage_or_fraction(written: str, value: float) -> None:
    assert org(f"roles: {{A: {{executes: {written}}}}}").roles["A"].executes == pytest.approx(value)


# ------------------------------------------------------------ what is wrong
ROLES = "roles: {CEO: {}, CTO: {reports_to: CEO, leads: Product}, Engineer: {reports_to: CTO, count: 2}}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (ROLES + "colour: red", "acme.yaml:2: unknown key 'colour'; there are 'name', 'domain'"),
        (ROLES + "gaols: {}", "acme.yaml:2: unknown key 'gaols'; did you mean 'goals'?"),
        ("roles:\n  CEO: {excutes: 30%}", "acme.yaml:2: unknown key 'excutes' in roles.CEO; did you mean 'executes'?"),
        (
            "roles:\n  CEO: {}\n  CTO:\n    reports_to: CEOs",
            "acme.yaml:4: unknown role 'CEOs' in roles.CTO.reports_to; did you mean 'CEO'?",
        ),
        ("roles:\n  CEO: {}\n  CTO: {reports_to: ceo}", "acme.yaml:3: unknown role 'ceo' in roles.CTO.reports_to; did you mean 'CEO'?"),
        (ROLES + "goals: {g: {text: t, owner: CFO}}", "unknown role 'CFO' in goals.g.owner; did you mean"),
        (ROLES + "people: {Bo: {role: Enginer}}", "unknown role 'Enginer' in people.Bo.role; did you mean 'Engineer'?"),
        (ROLES + "cross_links:\n  - CTO -> Egineer", "acme.yaml:3: unknown role 'Egineer' in cross_links; did you mean 'Engineer'?"),
        (ROLES + "cross_links: [CEO <- CTO]", "'CEO <- CTO' is not a link such as"),
        (ROLES + "cross_links: [CTO -> CTO]", "'CTO' is linked to itself"),
        (ROLES + "departments: {Sales: {head: CSO}}", "acme.yaml:2: unknown role 'CSO' in departments.Sales.head"),
        (ROLES + "departments: {Sales: }", "acme.yaml:2: the department 'Sales' has no head"),
        (ROLES + "departments: {Sales: {head: CTO}}", "'CTO' heads both 'Sales' and 'Product'"),
        (ROLES + "departments: {Product: {head: CEO}}", "'CTO' leads 'Product', whose head is 'CEO'"),
        (ROLES.replace("leads: Product", "department: Prodcut") + "departments: {Product: CEO}", "did you mean 'Product'?"),
        (
            ROLES.replace("Product", "Product, department: Sales") + "departments: {Sales: CEO}",
            "is outside the department: its own is 'Sales'",
        ),
        (ROLES + "tiers: {2: [CTO], 1: [CTO, CEO]}", "'CTO' stands in 2 tiers"),
        (ROLES + "tiers: {2: [COO]}", "unknown role 'COO' in tiers"),
        (ROLES + "tiers: {zero: [CTO]}", "'zero' is not a tier from 1 to 20"),
        (ROLES.replace("count: 2", "tier: 2"), "'Engineer' is in tier 2, not below 'CTO' in tier 2"),
        (ROLES.replace("count: 2", "tier: 5"), "tier 3 has no role, tier 5 has 'Engineer'"),
        (ROLES.replace("CEO: {}", "CEO: {tier: 2}"), "the root is in tier 1"),
        (ROLES + "cadence:\n  week: 4", "acme.yaml:3: unknown tier 4 in cadence.week; the organization has the tiers 1 to 3"),
        (ROLES + "cadence: {week: 0}", "cadence.week: '0' lies outside 1 to 20"),
        (ROLES + "cadence: {wek: 2}", "unknown key 'wek' in cadence; did you mean 'week'?"),
        (ROLES + "cadence: {quarter: 3, week: 2}", "the week (tier 2) stands above the quarter (tier 3)"),
        (ROLES + "cadence: {year: 2}", "the year belongs to tier 1"),
        (ROLES + "name: A\nname: B", "acme.yaml:3: 'name' is written twice; first on line 2"),
        ("roles:\n  CEO: {}\n  CEO: {count: 1}", "acme.yaml:3: 'CEO' is written twice in roles; first on line 2"),
        (ROLES + "people: {Bo: {role: CTO, role: CEO}}", "'role' is written twice in people.Bo; first on line 2"),
        ("roles:\n  CEO: {}\n  CFO: {}", "acme.yaml:3: a second root: 'CFO' reports to nobody, nor does 'CEO' on line 2"),
        ("roles: {CEO: {count: 2}}", "the root 'CEO' has count 2; it can be only one"),
        ("roles: {}", "acme.yaml:1: roles names no role; one that reports to nobody is the least"),
        ("name: A", "acme.yaml:1: the file needs the key 'roles'"),
        ("roles: {CEO: {count: 0}}", "roles.CEO.count: '0' lies outside 1 to 1,000"),
        ("roles: {CEO: {count: 1.5}}", "'1.5' is not a whole number"),
        ("roles: {CEO: {fte: 0}}", "roles.CEO.fte: '0' must be more than 0% and at most 100%"),
        ("roles: {CEO: {fte: 80}}", "did you mean '80%'?"),
        ("roles: {CEO: {executes: 130%}}", "'130%' must be at least 0% and at most 100%"),
        ("roles: {CEO: {executes: -1%}}", "'-1%' must be at least 0%"),
        ("roles: {CEO: {demand: 0}}", "roles.CEO.demand: '0' must be more than 0"),
        ("roles: {CEO: {demand: -2}}", "'-2' must be more than 0"),
        ("roles: {CEO: {demand: nan}}", "'nan' is not a number"),
        ("roles: {CEO: {share: -0.1}}", "'-0.1' must be at least 0"),
        ("roles: {CEO: {hours: 9-4}}", "'9-4' is reversed; write '4-9'"),
        ("roles: {CEO: {hours: -4}}", "roles.CEO.hours: '-4': a subtask takes at least 0.25 hours"),
        ("roles: {CEO: {hours: 0-4}}", "a subtask takes at least 0.25 hours"),
        ("roles: {CEO: {demand: 1e308}}", "must be at most 100"),
        ("roles: {CEO: {}}\nenvironment: {x: {start: 1e308}}", "is too large: figures go up to 1e+15"),
        ("roles: {CEO: {}}\nenvironment: {x: {start: 1, drift: 1e300/week}}", "is too large: figures go up to 1e+15"),
        ("roles: {CEO: {hours: 9:30}}", "'9:30' is not a range of hours such as '5-14'"),
        ("roles: {CEO: {like: Backend Enginer}}", "the role catalogue has no 'Backend Enginer'; did you mean 'Backend Engineer'?"),
        ("roles: {CEO: {activities: [analyze]}}", "unknown activity 'analyze' of 'CEO'; did you mean 'analyse'?"),
        ("roles: {CEO: {}}\nactivities: []", "'activities' is empty"),
        ("roles: {CEO: {tools: {a: b}}}", "roles.CEO.tools must be a list, not a mapping"),
        ("roles: {CEO: [a]}", "roles.CEO must be a mapping with keys such as"),
        ("roles: [CEO]", "roles must be a mapping from a role to its values, not a list"),
        (ROLES + "name: [A]", "name must be a name, not a list"),
        (ROLES + "domain:", "domain has no value; write a text or leave the key out"),
        (ROLES + "calendar: {start: 2026-02-30}", "calendar.start: '2026-02-30' is not a date"),
        (ROLES + "calendar: {start: 05.01.2026}", "is not a date such as '2026-01-31'"),
        (ROLES + "calendar: {hours: 24}", "calendar.hours: '24' must be at most 14"),
        (ROLES + "calendar: {holidays: 2026-01-05/2027-01-04}", "no working day is left in the year"),
        (ROLES + "calendar: {holidays: [2026-12-31/2026-12-24]}", "ends before it starts; write '2026-12-24/2026-12-31'"),
        (ROLES + "people: {Bo: {role: CTO, away: [2026-08-14/2026-08-03]}}", "'2026-08-14/2026-08-03' ends before it starts"),
        (ROLES + "people: {Bo: {role: CTO, away: [2026-13-01]}}", "people.Bo.away: '2026-13-01' is not a date"),
        (ROLES + "people: {Bo: {role: CTO, years: -1}}", "people.Bo.years: '-1' lies outside 0 to 70"),
        (ROLES + "people: {Bo: {years: 4}}", "people.Bo needs the key 'role'"),
        (ROLES + "people:\n  Bo: CTO\n  Cy: CTO", "acme.yaml:4: 'Cy' is person 2 of 'CTO', whose count is 1"),
        (ROLES + "goals: {g: {kpi: k}}", "goals.g needs the key 'text'"),
        (ROLES + "goals: {g: {text: t, target: 2%}}", "goals.g.target: '2%' is not a number"),
        (
            ROLES + "goals: {grow: t}\nenvironment: {k: {start: 1, raised_by: {grwo: 1}}}",
            "unknown goal 'grwo' in environment.k.raised_by; did you",
        ),
        (ROLES + "environment: {k: {start: 1, drift: 0.1/month}}", "'0.1/month' is not a change a week such as '+0.02/week'"),
        (ROLES + "environment: {k: {unit: x}}", "environment.k needs the key 'start'"),
        (
            ROLES + "environment:\n  k:\n    start: 5\n    least: 6",
            "acme.yaml:5: environment.k: 'least' is 6 and 'start' 5; a figure starts between its 'least' and its 'most'",
        ),
        (ROLES + "environment:\n  k:\n    most: 4\n    start: 5", "acme.yaml:4: environment.k: 'start' is 5 and 'most' 4;"),
        (ROLES + "workload: {utilisation: 0}", "workload.utilisation: '0' must be more than 0%"),
        (ROLES + "workload: {composite_hours: 0}", "must be at least 1"),
        (
            "roles: {Data Analyst: {}, data-analyst: {reports_to: Data Analyst}}",
            "would both have an agent 'data-analyst'; rename one of them",
        ),
        (
            "roles: {CEO: {}, Dev: {reports_to: CEO, count: 2}, Dev 2: {reports_to: CEO}}",
            "'Dev 2' and 'Dev' would both have an agent 'dev-2'",
        ),
        ("roles: {🙂: {}}", "the title '🙂' needs a letter or a digit"),
        ('roles: {"": {}}', "a role in roles: the name is empty"),
        ('roles: {" ": {}}', "the name is empty"),
        (f"roles: {{{'x' * 81}: {{}}}}", "has 81 characters; at most 80 are possible"),
        ('roles: {"C\\u200bEO": {}}', "holds the invisible character U+200B"),
        ('roles: {"C\\u0007EO": {}}', "holds the invisible character U+0007"),
        ("roles: {All: {}}", "an incident that affects 'all' affects everybody"),
        ('roles: {"A -> B": {}}', "holds an arrow"),
        (ROLES + f"description: {'long ' * 1001}", "has 5,004 characters; at most 5,000 are possible"),
    ],
)
def test_what_is_wrong_is_said_with_its_place_and_what_to_do(text: str, expected: str) -> None:
    assert expected in only_problem(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "acme.yaml:1: is empty"),
        ("# nothing\n", "is empty"),
        ("---\n", "is empty"),
        ("- CEO\n- CTO", "acme.yaml:1: the file must be a mapping with keys such as name, domain, description, not a list"),
        ("42", "not the text '42'"),
        (b"name: Caf\xe9\n", "acme.yaml:1: is not UTF-8: byte 0xe9; save the file as UTF-8"),
        (b"roles:\n  A: {}\n  B\xff: {}\n", "acme.yaml:3: is not UTF-8"),
        ("name: A\n".encode("utf-16"), "is not UTF-8"),
        ("roles:\n  CEO: {}\n CTO: {}", "acme.yaml:3: is not YAML"),
        ("roles:\n\tCEO: {}", "acme.yaml:2: is not YAML"),
        ("roles: {CEO: {}", "is not YAML"),
        ("name: a\x00b", "acme.yaml:1: is not YAML: the control character '\\x00'"),
        ("name: &n A\ndomain: *n", "acme.yaml:2: aliases are not read: write out what '*n' stands for"),
        (
            "name: !!python/object/apply:os.system [ls]",
            "acme.yaml:1: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not read",
        ),
        ("roles: {A: {}}\n---\nroles: {B: {}}", "acme.yaml:2: holds a second document"),
        ("? [a, b]\n: c", "acme.yaml:1: a key must be a text"),
        ("name: " + "[" * 30 + "]" * 30, "holds more than 20 levels"),
        ("[" * 200_000, "acme.yaml:1: "),
        ("name: [" + "a," * 200_000 + "]", "holds more than 100,000 values"),
        ("x" * 1_000_001, "acme.yaml: is larger than 1,000,000 bytes"),
    ],
)
def test_a_text_that_is_no_organization_at_all_is_refused(text: str | bytes, expected: str) -> None:
    assert expected in only_problem(text)


def test_an_alias_bomb_is_refused_before_it_expands() -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert "aliases are not read" in only_problem(bomb)


def test_every_problem_is_reported_at_once_in_the_order_of_the_file() -> None:
    text = """name: Bad
calendar: {start: 2026-02-30}
goals: {g: {text: x, owner: CEOO}}
roles:
  CEO: {executes: 130%}
  CTO: {reports_to: CE0, cuont: 2}
  D: {reports_to: CEO, count: 0}
people: {X: {role: CTOO}}
environment: {churn: {start: 3, lowered_by: {gg: 1}}}
"""
    found = problems(text)
    assert [int(line.split(":")[1]) for line in found] == [2, 3, 5, 6, 6, 7, 8, 9]
    assert "\n".join(found).count("did you mean") == 5


def test_a_cycle_is_shown_once_with_those_whom_it_cuts_off() -> None:
    found = problems(
        "roles:\n  CEO: {}\n  A: {reports_to: C}\n  B: {reports_to: A}\n  C: {reports_to: B}\n  D: {reports_to: C}\n  E: {reports_to: D}"
    )
    assert found == [
        "acme.yaml:3: a cycle in reporting lines: A -> C -> B -> A",
        "acme.yaml:6: 'D' cannot be reached from the root: its line ends in the cycle at 'C'",
        "acme.yaml:7: 'E' cannot be reached from the root: its line ends in the cycle at 'C'",
    ]


def test_an_organization_in_which_everybody_reports_to_another_has_no_root() -> None:
    found = problems("roles:\n  A: {reports_to: B}\n  B: {reports_to: A}\n  C: {reports_to: C}")
    assert found[0].startswith("acme.yaml:1: no root: every role reports to another")
    assert [line.split("lines: ")[1] for line in found[1:]] == ["A -> B -> A", "C -> C"]


def test_a_role_whose_superior_cannot_be_read_is_no_second_root() -> None:
    assert only_problem("roles: {CEO: {}, CTO: {reports_to: }}").endswith("write a role's title or leave the key out")


def test_too_many_agents_together_are_refused() -> None:
    roles = "".join(f"  R{n}: {{reports_to: CEO, count: 1000}}\n" for n in range(6))
    assert "the roles have 6,001 agents together; at most 5,000" in only_problem(f"roles:\n  CEO: {{}}\n{roles}")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_whatever_is_done_to_a_file_it_loads_or_is_refused_with_a_line(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([FULL, STARTUP]))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        size = data.draw(st.integers(0, 12))
        text = (
            text[:place]
            + data.draw(st.sampled_from(["", ":", "{", "}", "[", "]", "\n", ", ", "0", "-", "%", "\0", "&a ", "*a", "'", "é"]))
            + text[place + size :]
        )
    refusal: tuple[Problem, ...] = ()
    try:
        found = org(text)
    except OrganizationInvalid as refused:
        refusal = refused.problems
    if refusal:
        assert [problem for problem in refusal if problem.line is None] == []
    else:
        assert loads_again(found)
        assert Delegation(found, Population.sample(found, 1)).planners("year")


# ------------------------------------------------------------ files
def test_a_file_that_cannot_be_read_is_refused_by_its_name(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    large.write_bytes(b"# padding\n" * 2_000_000)
    for path, expected in [
        (tmp_path / "none.yaml", "there is no such file"),
        (tmp_path, "is a folder"),
        (large, "is larger than 1,000,000 bytes"),
    ]:
        with pytest.raises(OrganizationInvalid) as refused:
            load(path)
        assert str(refused.value).startswith(f"{path}: {expected}")
        assert refused.value.exit_code == 2


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "win.yaml"
    path.write_bytes("\ufeffname: A\r\nroles:\r\n  CEO: {}\r\n".encode())
    assert isinstance(load(path), Organization)
    assert load(path).name == "A"


# ------------------------------------------------------------ warnings
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("roles: {Wizard: {}}", "acme.yaml:1: the role catalogue does not know 'Wizard'"),
        (
            STARTUP + "environment: {custommers: 3}",
            "names the reading 'customers', which 'environment' does not have; did you mean 'custommers'?",
        ),
        (STARTUP + "calendar: {start: 2025-01-06}", "'Ines Roux' is away from 2027-05-03 to 2027-05-14, outside the year"),
        (STARTUP + "calendar: {start: 2027-01-04, holidays: 2027-01-04/2027-06-30}", "only 27 of 52 weeks have a working day"),
        (ROLES + "cross_links: [Engineer -> CEO]", "the link to 'CEO' brings it no work: it has no time for tasks"),
    ],
)
def test_what_is_legal_and_odd_is_a_warning(text: str, expected: str) -> None:
    warned: list[str] = []
    org(text, warned)
    assert any(expected in line for line in warned), warned


@pytest.mark.parametrize(
    ("title", "near"),
    [
        ("Senior Backend Developer", "such as 'Backend Engineer'"),
        ("Wizzard", "under 'like', or describe it with responsibilities, skills, activities, artifacts, subjects, hours"),
    ],
)
def test_a_title_that_nobody_described_is_told_the_nearest_known_ones_and_what_would_describe_it(title: str, near: str) -> None:
    warned: list[str] = []
    org(f"roles: {{{title}: {{}}}}", warned)
    assert near in warned[0]
    warned.clear()
    org(f"roles: {{{title}: {{skills: [x], hours: 3-5}}}}", warned)
    assert "with responsibilities, activities, artifacts, subjects)" in warned[0]


def test_titles_are_alike_by_words_letters_or_initials() -> None:
    titles = ("Chief Product Officer", "Data Analyst", "Procurement Manager")
    assert alike("CPO", titles) == ["Chief Product Officer"]
    assert alike("Senior Data Analist", titles) == ["Data Analyst"]
    assert alike("Wizard", titles) == []


def test_warnings_are_told_beside_errors() -> None:
    warned: list[str] = []
    with pytest.raises(OrganizationInvalid):
        org("roles:\n  Wizard: {cuont: 2}\n  Imp: {reports_to: Wizard}\n  Elf: {reports_to: Imp}\ncross_links: [Elf -> Imp]", warned)
    assert [line.split(":")[1] for line in warned] == ["5", "2", "3", "4"]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        *(("duties", "responsibilities"), ("Duty", "responsibilities"), ("tasks", "responsibilities"), ("knowledge", "skills")),
        *(("deliverable", "artifacts"), ("manager", "reports_to"), ("boss", "reports_to"), ("report_to", "reports_to")),
    ],
)
def test_a_word_that_people_use_for_a_key_of_a_role_is_understood_in_the_hint(key: str, meant: str) -> None:
    with pytest.raises(OrganizationInvalid, match=rf"unknown key '{key}' in roles\.Clerk; did you mean '{meant}'\?"):
        org(f"roles: {{Boss: {{}}, Clerk: {{reports_to: Boss, {key}: Boss}}}}")


def test_the_full_description_of_an_unknown_title_needs_no_warning() -> None:
    warned: list[str] = []
    org(resolved(org("roles: {Wizard: {}}")), warned)
    assert warned == []


# ------------------------------------------------------------ the catalogue
def test_a_title_is_found_whatever_its_case() -> None:
    found = catalogue.lookup("backend  ENGINEER")
    assert found is not None
    assert found.title == "Backend Engineer"
    assert catalogue.lookup("Wizard") is None


def test_a_generic_role_speaks_of_its_title() -> None:
    wizard = catalogue.generic("Wizard")
    assert wizard.title == "Wizard"
    assert "work plan of the Wizard" in wizard.subjects
    assert not [text for text in (*wizard.responsibilities, *wizard.skills, *wizard.subjects) if "{" in text]
    assert set(wizard.activities) <= set(ACTIVITIES)


def test_the_catalogue_is_strict_and_reports_every_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(CATALOGUE)
    (tmp_path / "b.yaml").write_text(
        CATALOGUE.replace("Backend", "BACKEND").replace("[support]", "[suport]").replace("skills: [p", "skils: [p")
    )
    (tmp_path / "c.yaml").write_text("- x")
    with pytest.raises(OrganizationInvalid) as refused:
        catalogue.read_catalogue(tmp_path)
    text = str(refused.value)
    for expected in [
        "has an entry already",
        "unknown activity 'suport'; did you mean 'support'?",
        "unknown key 'skils'",
        "needs the key 'skills'",
    ]:
        assert expected in text
    assert f"{tmp_path / 'c.yaml'}:1: the file must be a mapping" in text


# ------------------------------------------------------------ showing
@pytest.mark.parametrize("text", [STARTUP, FULL, "roles: {🙂 x: {}}", ROLES + "tiers: {3: Engineer}"])
def test_the_resolved_file_loads_again_to_an_equal_organization(text: str) -> None:
    first = org(text)
    written = resolved(first)
    again = parse(written, "resolved.yaml")
    assert loads_again(first)
    assert again.given >= first.given - {"tiers", "tiers.3", "tiers.3.0"} - {path for path in first.given if path[-1].isdigit()}
    marked = [line for line in written.splitlines() if ":" in line and not line.strip().startswith("- ") and not line.endswith(":")]
    assert all(re.search(r"  # (given|inferred)$", line) for line in marked)


def test_the_resolved_file_says_what_was_given_and_what_inferred() -> None:
    written = resolved(org(STARTUP))
    for line in [
        "name: Bright Ledger  # given",
        "    executes: 0.3  # given",
        "    executes: 1  # inferred",
        "    leads: Product  # given",
        "    head: CTO  # inferred",
        "    hours: 5-12  # inferred",
        "      - 2027-05-03/2027-05-14",
        "  start: 2027-01-04  # inferred",
    ]:
        assert line in written.splitlines()


@settings(max_examples=60, deadline=None)
@given(st.text(min_size=1, max_size=40).filter(str.strip), st.floats(0.25, 100), st.floats(-1e6, 1e6), st.floats(0, 1))
def test_any_text_and_number_survives_the_resolved_file(text: str, hours: float, drift: float, part: float) -> None:
    first = org(FULL)
    engineer = first.roles["Backend Engineer"].model_copy(update={"hours": (hours, 200.0), "executes": part, "subjects": (text.strip(),)})
    churn = first.environment["churn"].model_copy(update={"drift": drift, "unit": text.strip()})
    changed = first.model_copy(
        update={"domain": text.strip(), "roles": {**first.roles, "Backend Engineer": engineer}, "environment": {"churn": churn}}
    )
    try:
        assert loads_again(changed)
    except OrganizationInvalid:
        assert any(0xD800 <= ord(char) <= 0xDFFF for char in text), "only what UTF-8 cannot hold may fail"


def test_two_organizations_differ_where_a_value_does_and_not_where_only_its_mark_does() -> None:
    assert org(STARTUP) == org(STARTUP + "activities: [" + ", ".join(ACTIVITIES) + "]")
    assert org(STARTUP) != org(STARTUP.replace("fte: 0.8", "fte: 0.9"))
    assert org(STARTUP) != "an organization"


def test_the_tree_shows_every_agent_below_its_head() -> None:
    found = org(STARTUP)
    lines = show.tree(found, Population.sample(found, 1)).splitlines()
    assert lines[0] == "Bright Ledger: 6 agents, 3 tiers, 1 department"
    assert lines[1].startswith("CEO: ")
    assert lines[1].endswith("(tier 1; plans year, quarter, month, week; executes 30%)")
    assert lines[3].startswith("   ├─ Backend Engineer: Ines Roux (tier 3; Product)")
    assert lines[-2:] == ["cross links:", "  Support Agent -> Backend Engineer adds nothing: both are in the unit of CTO"]


def test_a_link_with_an_edge_of_its_own_is_shown_with_who_gives_the_work() -> None:
    heads = "Boss: {}, North: {reports_to: Boss}, South: {reports_to: Boss}"
    text = f"roles: {{{heads}, Clerk: {{reports_to: North}}, Typist: {{reports_to: South}}}}\n"
    found = org(text + "cross_links: [Clerk -> Typist, South -> Clerk]")
    lines = show.tree(found, Population.sample(found, 1)).splitlines()
    assert lines[-3:] == ["cross links:", "  North -> Typist (by Clerk -> Typist)", "  South -> Clerk"]


def test_mermaid_has_a_node_for_each_agent_and_a_dotted_arrow_for_a_cross_link() -> None:
    found = org(FULL.replace("Chief Executive Officer", 'Chief "X" Officer'))
    people = Population.sample(found, 1)
    text = show.mermaid(found, people)
    assert text.count('["') == len(people)
    assert "#quot;X#quot;" in text
    assert len(re.findall(r"-\.->", text)) == 2
    assert len(re.findall(r"a\d+ --> a\d+", text)) == len(people) - 1
    assert not re.search(r"(a\d+) --> \1$", text, re.MULTILINE), "no loops: they are said in the box"
    assert [line.split("<br/>")[0].partition('["')[2] for line in text.splitlines() if "executes" in line] == ["Technology Manager"]


def test_graphml_holds_the_delegation_graph() -> None:
    found = org(STARTUP)
    people = Population.sample(found, 1)
    tree = ElementTree.fromstring(show.graphml(found, people))
    tag = "{http://graphml.graphdrawing.org/xmlns}"
    assert len(list(tree.iter(f"{tag}node"))) == len(people)
    assert len(list(tree.iter(f"{tag}edge"))) == Delegation(found, people).graph.number_of_edges()


# ------------------------------------------------------------ the JSON Schema
def fits(value: Any, schema: dict[str, Any]) -> bool:
    """As much of JSON Schema as the file's schema uses."""
    if "anyOf" in schema:
        return any(fits(value, form) for form in schema["anyOf"])
    types = {"string": str, "number": (int, float), "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}
    named = schema["type"] if isinstance(schema.get("type"), list) else [schema["type"]]
    if not any(isinstance(value, types[name]) for name in named):
        return False
    if isinstance(value, dict):
        known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
        within = all(fits(one, known.get(str(key), other)) if str(key) in known or other else False for key, one in value.items())
        return within and set(schema.get("required", [])) <= set(value)
    if isinstance(value, list):
        return all(fits(one, schema["items"]) for one in value)
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if value is None:
        return True
    return schema.get("minimum", value) <= value <= schema.get("maximum", value) and value > schema.get("exclusiveMinimum", value - 1)


def as_an_editor_reads_it(text: str) -> Any:
    loader = type("Loader", (yaml.SafeLoader,), {"yaml_implicit_resolvers": dict(yaml.SafeLoader.yaml_implicit_resolvers)})
    dates = "tag:yaml.org,2002:timestamp"
    loader.yaml_implicit_resolvers = {
        key: [one for one in found if one[0] != dates] for key, found in loader.yaml_implicit_resolvers.items()
    }
    return yaml.load(text, loader)


@pytest.mark.parametrize("text", [STARTUP, FULL, "roles: {CEO: , CTO: CEO}", ROLES + "environment: {churn: 3}\npeople: {Bo: CTO}"])
def test_the_json_schema_accepts_the_file_as_people_write_it(text: str) -> None:
    org(text)
    assert fits(as_an_editor_reads_it(text), json_schema())


@pytest.mark.parametrize(
    "text",
    [
        "name: A",
        ROLES + "gaols: {}",
        "roles: {CEO: {excutes: 30%}}",
        "roles: {CEO: {count: 0}}",
        "roles: {CEO: {demand: 0}}",
        "roles: [CEO]",
    ]
    + [ROLES + "cross_links: [A]", ROLES + "calendar: {hours: 24}", "roles: {CEO: {executes: lots}}", ROLES + "people: {Bo: {years: 3}}"],
)
def test_the_json_schema_refuses_what_the_reader_refuses(text: str) -> None:
    problems(text)
    assert not fits(as_an_editor_reads_it(text), json_schema())


def test_the_json_schema_describes_every_key_of_the_file() -> None:
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema")
    assert set(Organization.model_fields) - {"given"} < set(schema["properties"])
    assert all(one["description"] for one in schema["properties"].values())


# ------------------------------------------------------------ slugs
@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("Backend Engineer", "backend-engineer"),
        ("UI/UX Designer", "ui-ux-designer"),
        ("Größe & Söhne", "grosse-sohne"),
        ("研究員", "研究員"),
    ]
    + [("HR_Lead", "hr-lead"), ("--", ""), ("🙂", ""), ("ﬁnance", "finance"), ("e\u0301cole", "ecole"), ("x" * 80, "x" * 60)],
)
def test_a_slug_keeps_letters_and_digits_of_any_script(title: str, found: str) -> None:
    assert slug(title) == found


def test_an_ascii_slug_is_never_empty_and_differs_for_different_scripts() -> None:
    assert ascii_slug("Søren Ærø") == "soren-aero"
    assert ascii_slug("研究員") != ascii_slug("工程師")
    assert all(re.fullmatch("[a-z0-9-]+", ascii_slug(title)) for title in ("研究員", "🙂", "a研b", "É"))
