"""The organizations and the role catalogue that come with the package: what they promise, as sentences."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path

import pytest

from taskweave.errors import BadInput
from taskweave.org.catalogue import CatalogueEntry, lookup, titles
from taskweave.org.delegation import Delegation
from taskweave.org.organization import Organization, Role
from taskweave.org.population import Population
from taskweave.org.schema import load
from taskweave.shipped import copy_starter, shipped

SIZES = {  # agents, tiers, departments
    "company_a": (15, 3, 3),
    "fin": (15, 3, 3),
    "manu": (50, 4, 4),
    "gov": (100, 5, 5),
    "startup": (12, 3, 2),
    "tiny": (4, 3, 1),
}
TABLE_8 = {
    "Product Manager": 0.15,
    "Marketing Specialist": 0.15,
    "Data Analyst": 0.15,
    "HR": 0.10,
    "Customer Success Manager": 0.10,
    "Technical Support Engineer": 0.08,
    "Backend Engineer": 0.07,
    "QA Engineer": 0.05,
    "UI/UX Designer": 0.05,
    "Frontend Engineer": 0.05,
    "DevOps Engineer": 0.05,
}
TABLE_12 = {
    "Backend Engineer": ("sqlite", "motherduck"),
    "Data Analyst": ("motherduck", "excel"),
    "Product Manager": ("word", "excel", "email"),
    "Marketing Specialist": ("excel", "email", "twitter"),
    "Customer Success Manager": ("word", "email", "twitter"),
    "DevOps Engineer": ("motherduck", "email"),
    "HR": ("word", "email"),
    "Technical Support Engineer": (),
    "UI/UX Designer": (),
    "Frontend Engineer": (),
    "QA Engineer": (),
}
FIN = """
    Chief Executive Officer;
    Chief Investment Officer, Chief Risk Officer, Chief Operations Officer;
    Equity Trader, Fixed Income Analyst, Portfolio Assistant, Credit Risk Analyst, Market Risk Specialist, Internal Auditor,
    Settlement Officer, Compliance Associate, Fund Accountant, Relationship Manager, Client Onboarding Specialist
"""
MANU = """
    Chief Executive Officer;
    Chief Product Officer, Chief Marketing Officer, Chief Operations Officer, Chief Technology Officer;
    Production Manager, Quality Manager, Maintenance Manager, Logistics Manager, Digital Systems Manager;
    CNC Operator, Tool Setter, Assembly Worker, Soldering Technician, Robotics Technician, Final Inspector, Visual Inspector,
    Compliance Auditor, PLC Technician, Wiring Technician, Machine Repairman, Hydraulics Technician, Predictive Maintenance
    Engineer, Receiving Clerk, Forklift Operator, Shipping Coordinator, Boxing Technician, Packaging Design Engineer, MES Analyst,
    Data Security Officer, AI Vision Specialist, Traceability Systems Specialist
"""
GOV = """
    Minister;
    Director of Strategic Planning, Director of Public Infrastructure, Director of Social Programs, Director of Policy Analysis,
    Director of Inter-Agency Coordination;
    Chief of Strategic Planning, Chief of Infrastructure Development, Chief of Social Programs, Chief Policy Analyst, Chief
    Administrative Officer;
    Senior Planning Manager, Urban Strategy Manager, Infrastructure Project Manager, Public Health Program Manager, Social Policy
    Manager, Sustainability & Environment Manager, Policy Research Supervisor, Regional Coordination Manager, HR & Admin Manager,
    Budget & Resource Allocation Manager;
    Planning Officer, Municipal Data Analyst, Health Policy Assistant, Citizen Complaint Registrar, Administrative Clerk, Digital
    Records Clerk, Public Service Trainee, Construction Analyst, Infrastructure Surveyor, Strategic Affairs Associate, Stakeholder
    Liaison, Legal Compliance Officer, Public Opinion Analyst, Welfare Program Officer, Community Outreach Assistant, Procurement
    Assistant, Citizen Engagement Officer, Smart City Systems Technician, Site Inspector, Field Research Associate, Education Policy
    Aide, Audit Support Officer, Training Coordinator, Statistical Reporting Assistant, HR Specialist, Transportation Planner,
    Scheduling & Logistics Clerk, Project Evaluation Assistant, E-Government Support Officer, Facility Oversight Technician
"""
OF_THE_PAPER = {"fin": FIN, "manu": MANU, "gov": GOV}
KINDS = {
    *("brief", "checklist", "design", "e-mail", "minutes", "plan", "policy"),
    *("report", "runbook", "specification", "SQL", "test plan", "ticket"),
}
TOOLS = {"sqlite", "motherduck", "excel", "word", "email", "twitter"}

every_organization = pytest.mark.parametrize("name", sorted(SIZES))


@cache
def loaded(name: str) -> tuple[Organization, tuple[str, ...]]:
    """A shipped organization and what its loader warned of."""
    warned: list[str] = []
    return load(shipped("orgs") / f"{name}.yaml", warn=warned), tuple(warned)


def organization(name: str) -> Organization:
    return loaded(name)[0]


def entries() -> Iterator[tuple[str, CatalogueEntry]]:
    for title in titles():
        entry = lookup(title)
        assert entry is not None
        yield title, entry


def subtasks_a_week(org: Organization, role: Role) -> float:
    """What the workload lets one expect: present hours x utilisation x demand over the role's middle hours."""
    return role.count * role.fte * role.executes * 5 * org.calendar.hours * org.workload.utilisation * role.demand / role.middle_hours


def kl(found: dict[str, float], reference: dict[str, float]) -> float:
    """Kullback-Leibler divergence in nats of two weightings, each scaled to sum 1."""
    n, m = sum(found.values()), sum(reference.values())
    return sum(found[key] / n * math.log(found[key] / n / (reference[key] / m)) for key in reference)


# ------------------------------------------------------------ every organization
def test_the_six_organizations_ship_and_no_other() -> None:
    assert {path.stem for path in shipped("orgs").glob("*.yaml")} == set(SIZES)


@every_organization
def test_an_organization_has_the_agents_tiers_and_departments_it_promises(name: str) -> None:
    org = organization(name)
    population = Population.sample(org, 1)
    assert (len(population.agents), len({agent.tier for agent in population.agents}), len(org.departments)) == SIZES[name]


@every_organization
def test_an_organization_loads_without_a_warning_and_finds_every_title_in_the_catalogue(name: str) -> None:
    org, warned = loaded(name)
    assert warned == ()
    assert [title for title, role in org.roles.items() if lookup(role.like or title) is None] == []


@every_organization
def test_goals_lie_inside_the_year_and_their_measures_move_towards_them(name: str) -> None:
    org = organization(name)
    first, last = org.calendar.start, org.calendar.start + timedelta(days=364)
    for key, goal in org.goals.items():
        assert goal.by is not None, key
        assert first < goal.by <= last, key
        if goal.kpi is None:
            continue
        measure = org.environment[goal.kpi]
        assert goal.target is not None, key
        assert key in (measure.raised_by if goal.target > measure.start else measure.lowered_by), key
    assert {goal.kpi for goal in org.goals.values()} >= set(org.environment), "a measure that no goal looks at"


@every_organization
def test_a_year_of_planned_work_is_enough_to_reach_each_target(name: str) -> None:
    org = organization(name)
    hours = 52 * sum(subtasks_a_week(org, role) * role.middle_hours for role in org.roles.values()) / len(org.goals)
    for key, goal in org.goals.items():
        if goal.kpi is None or goal.target is None:
            continue
        measure = org.environment[goal.kpi]
        end = measure.start + 52 * measure.drift + hours * (measure.raised_by.get(key, 0) - measure.lowered_by.get(key, 0))
        way = (end - measure.start) / (goal.target - measure.start)
        assert 0.8 <= way <= 1.8, f"{key}: the year's work leads to {end:.2f}, the target is {goal.target}"
        assert end > 0, key


@every_organization
def test_people_know_something_and_are_away_within_the_year(name: str) -> None:
    org = organization(name)
    assert org.people
    for person in org.people.values():
        assert person.knows
        for start, end in person.away:
            assert org.calendar.start <= start <= end <= org.calendar.start + timedelta(days=364)


@every_organization
def test_a_composite_task_fits_into_five_subtasks_in_every_unit(name: str) -> None:
    org = organization(name)
    units: dict[str | None, list[Role]] = defaultdict(list)
    for title, role in org.roles.items():
        if role.executes:
            reported = any(other.reports_to == title for other in org.roles.values())
            units[title if reported else role.reports_to].append(role)
    for owner, roles in units.items():
        work = sum(subtasks_a_week(org, role) * role.middle_hours for role in roles)
        mean = work / sum(subtasks_a_week(org, role) for role in roles)
        composites = max(1, round(work / org.workload.composite_hours))
        assert work / composites / mean <= 5.5, f"{owner}: {work / composites:.0f} hours a composite, {mean:.1f} a subtask"


@pytest.mark.parametrize("name", sorted(set(SIZES) - {"startup", "tiny"}))
def test_cross_links_join_agents_of_different_units(name: str) -> None:
    org = organization(name)
    assert len(org.cross_links) >= 5
    for link in org.cross_links:
        assert org.roles[link.source].reports_to != org.roles[link.target].reports_to, link


def test_only_known_tools_are_given_out() -> None:
    for name in SIZES:
        for title, role in organization(name).roles.items():
            assert set(role.tools) <= TOOLS, (name, title)


# ------------------------------------------------------------ Company A
def test_company_a_has_one_agent_for_each_worker_role_of_table_8_with_its_share() -> None:
    org = organization("company_a")
    workers = {title: role for title, role in org.roles.items() if role.executes}
    assert {title: role.share for title, role in workers.items()} == TABLE_8
    assert {role.count for role in workers.values()} == {1}
    assert set(org.departments) == {"Technology", "Marketing", "Strategy"}


def test_company_a_has_the_tools_of_table_12() -> None:
    org = organization("company_a")
    assert {title: org.roles[title].tools for title in TABLE_12} == TABLE_12


def test_the_demand_of_company_a_follows_table_8_and_fills_a_year() -> None:
    org = organization("company_a")
    expected = {title: subtasks_a_week(org, org.roles[title]) for title in TABLE_8}
    assert kl(expected, TABLE_8) < 0.005
    assert 52 * sum(expected.values()) >= 2600
    assert org.workload.utilisation == 0.81
    assert max(role.demand for role in org.roles.values()) <= 1


def test_the_divergence_sees_a_distribution_that_does_not_follow() -> None:
    assert kl(dict.fromkeys(TABLE_8, 1.0), TABLE_8) > 0.05


# ------------------------------------------------------------ the organizations of App. I
@pytest.mark.parametrize("name", sorted(OF_THE_PAPER))
def test_an_organization_of_appendix_i_has_exactly_its_roles_on_its_tiers(name: str) -> None:
    tiers = [[" ".join(title.split()) for title in tier.split(",")] for tier in OF_THE_PAPER[name].split(";")]
    expected = {title: number for number, tier in enumerate(tiers, start=1) for title in tier}
    assert {title: role.tier for title, role in organization(name).roles.items()} == expected


def test_officers_of_manu_without_reports_plan_and_do_not_execute() -> None:
    org = organization("manu")
    delegation = Delegation(org, Population.sample(org, 1))
    for title, agent in (("Chief Product Officer", "chief-product-officer"), ("Chief Marketing Officer", "chief-marketing-officer")):
        assert org.roles[title].executes == 0
        assert delegation.reports(agent) == ()
        assert agent in delegation.planners("quarter")


def test_a_year_of_gov_asks_for_ten_thousand_subtasks_and_more() -> None:
    org = organization("gov")
    assert 52 * sum(subtasks_a_week(org, role) for role in org.roles.values()) >= 10_500


# ------------------------------------------------------------ the small ones
def test_the_startup_of_twelve_is_written_in_at_most_forty_lines() -> None:
    lines = (shipped("orgs") / "startup.yaml").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 140


def test_in_tiny_year_and_quarter_have_another_owner_than_month_and_week() -> None:
    org = organization("tiny")
    delegation = Delegation(org, Population.sample(org, 1))
    above, below = delegation.planners("year"), delegation.planners("week")
    assert (delegation.planners("quarter"), delegation.planners("month")) == (above, below)
    assert len(above) == len(below) == 1
    assert above != below
    assert (len(org.goals), len(org.environment)) == (2, 2)


# ------------------------------------------------------------ the catalogue
def test_every_entry_has_enough_to_write_from_and_repeats_nothing() -> None:
    least = {"responsibilities": 4, "skills": 5, "activities": 4, "artifacts": 3, "subjects": 8}
    for title, entry in entries():
        for name, count in least.items():
            values = getattr(entry, name)
            assert len(values) >= count, (title, name)
            assert len(set(values)) == len(values), (title, name)
        assert set(entry.artifacts) <= KINDS, title
        assert set(entry.tools) <= TOOLS, title


def test_the_roles_of_company_a_are_described_richly() -> None:
    bounds = {"responsibilities": (6, 8), "skills": (8, 10), "activities": (5, 8), "artifacts": (3, 5), "subjects": (14, 16)}
    for title in organization("company_a").roles:
        entry = lookup(title)
        assert entry is not None
        for name, (low, high) in bounds.items():
            assert low <= len(getattr(entry, name)) <= high, (title, name)


def test_a_subject_is_a_noun_phrase_in_lower_case_and_belongs_to_one_title() -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for title, entry in entries():
        for subject in entry.subjects:
            owners[subject].append(title)
            assert subject[0].islower() or subject.split()[0].isupper(), (title, subject)
            assert subject.split()[0] not in ("the", "a", "an"), (title, subject)
            assert not subject.endswith("."), (title, subject)
    assert {subject: who for subject, who in owners.items() if len(who) > 1} == {}


def test_a_responsibility_is_a_clause_that_starts_with_a_verb_and_has_no_full_stop() -> None:
    for title, entry in entries():
        for text in entry.responsibilities:
            assert text[0].isupper(), (title, text)
            assert not text.endswith("."), (title, text)
            assert text.split()[0].lower() not in ("the", "a", "an", "is", "responsible"), (title, text)


def sequences(text: str, length: int = 6) -> set[tuple[str, ...]]:
    """All runs of so many words of a text."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    return {tuple(words[n : n + length]) for n in range(len(words) - length + 1)}


def statements() -> list[str]:
    """The task statements of O*NET, from the test data."""
    folder = os.environ.get("TASKWEAVE_TEST_DATA")
    path = Path(folder or ".") / "onet" / "roles_tasks.json"
    if not folder or not path.is_file():
        pytest.skip("the comparison with O*NET task statements needs onet/roles_tasks.json in the folder that TASKWEAVE_TEST_DATA names")
    return [task["task"] for role in json.loads(path.read_text(encoding="utf-8")) for task in role["tasks"]]


def test_the_catalogue_repeats_no_six_words_of_a_task_statement_of_onet() -> None:
    theirs = set().union(*map(sequences, statements()))
    assert len(theirs) > 5_000
    for title, entry in entries():
        for text in (*entry.responsibilities, *entry.skills, *entry.subjects):
            assert not sequences(text) & theirs, (title, text)


def test_the_comparison_finds_six_words_whatever_their_case_and_punctuation() -> None:
    assert sequences("Keep the record, of complaints (and) more") & sequences("we keep the record of complaints and go")
    assert not sequences("Keep the record of complaints") & sequences("we keep the record of complaints")


def test_files_informed_by_onet_credit_it() -> None:
    for name in ("business", "finance", "government", "manufacturing", "technology"):
        head = (shipped("orgs") / "roles" / f"{name}.yaml").read_text(encoding="utf-8").split("\n\n")[0]
        assert "O*NET" in head, name


def test_a_starter_that_could_not_be_written_whole_leaves_nothing_and_can_be_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied, copy = [], shutil.copyfile

    def full(source: Path, target: Path) -> None:
        if len(copied) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        copied.append(copy(source, target))

    (tmp_path / "there").mkdir()
    for folder in (tmp_path / "new", tmp_path / "there"):
        copied.clear()
        monkeypatch.setattr(shutil, "copyfile", full)
        with pytest.raises(BadInput, match="No space left"):
            copy_starter(folder)
        assert not folder.exists() or not list(folder.iterdir())
        monkeypatch.undo()
        assert copy_starter(folder)
