"""What works see of the organization: the roles that a request shows."""

from __future__ import annotations

from typing import Any

import pytest

from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.org.schema import load, parse
from taskweave.prompts import PromptBook
from taskweave.shipped import find_organization
from taskweave.simulation.setting import Setting
from tests.samples import INPUTS

STEPS = ("decompose", "partition_week", "respond")
WIDE = "name: Wide\ndomain: Trade\nroles:\n  Head: {}\n" + "".join(
    f"  Clerk for district {n}: {{reports_to: Head, responsibilities: [Keep the books of district {n} and answer what it asks]}}\n"
    for n in range(1, 31)
)


def setting_of(org: Organization) -> Setting:
    people = Population.sample(org, 1)
    return Setting(
        org=org,
        population=people,
        delegation=Delegation(org, people),
        calendar=WorkCalendar(org.calendar),
        prompts=PromptBook.load(),
        backbone="scripted",
        origin="scripted",
        assign="model",
        seed=1,
        draw=0,
    )


def said(setting: Setting, step: str, titles: list[str]) -> str:
    """The list of roles as the prompt of a step shows it."""
    inputs: dict[str, Any] = INPUTS[step] | {"roles": setting.roles(step, titles)}
    system = setting.prompts.request(step, inputs, schema=None, backbone="").messages[0][1]
    return system.partition("# Roles\n")[2].partition("\n# ")[0]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", ["company_a", "fin", "gov", "manu"])
def test_whoever_may_be_given_work_is_shown_with_what_the_role_does(name: str, step: str) -> None:
    setting = setting_of(load(find_organization(name)))
    for head in setting.population:
        titles = list(dict.fromkeys(setting.population.agent(to).role for source, to in setting.delegation.edges if source == head.id))
        shown = said(setting, step, titles)
        assert [line[3:] for line in shown.split("\n") if line.startswith("## ")] == titles
        assert shown.count("Responsible for: ") == len(titles), (head.id, shown)


@pytest.mark.parametrize("step", STEPS)
def test_where_roles_are_many_the_last_are_told_by_their_titles_and_the_cut_is_said(step: str) -> None:
    org = parse(WIDE, "wide.yaml")
    titles = [title for title in org.roles if title != "Head"]
    shown = said(setting_of(org), step, titles)
    assert [line[3:] for line in shown.split("\n") if line.startswith("## ")] == titles
    told = shown.count("Responsible for: ")
    assert 0 < told < len(titles)
    assert shown.count("\n[…]") == len(titles) - told


@pytest.mark.parametrize("step", STEPS)
def test_roles_that_not_even_their_titles_leave_room_for_are_counted(step: str) -> None:
    org = parse(WIDE, "wide.yaml")
    titles = [title for title in org.roles if title != "Head"] * 20
    shown = said(setting_of(org), step, titles)
    assert f"- … and {len(titles) - shown.count('## ')} more" in shown
