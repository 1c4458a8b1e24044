from __future__ import annotations

import subprocess
import sys
from datetime import date

import pytest

from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.org.schema import parse

SHOP = """
name: Søren & Søn, Größe 9
roles:
  Boss: {}
  Lead: {reports_to: Boss, count: 2, executes: 25%}
  Smith: {reports_to: Lead, count: 5, fte: 0.5, subjects: [anvil, bellows, tongs, coal, forge]}
people:
  Ines Roux: {role: Smith, years: 12, knows: [horse shoes], away: [2026-08-03/2026-08-14, 2026-09-01]}
  Bo Li: Smith
"""


def shop(text: str = SHOP) -> Organization:
    return parse(text, "shop.yaml")


def test_agents_stand_in_the_order_of_the_file_then_by_number() -> None:
    ids = [agent.id for agent in Population.sample(shop(), 1)]
    assert ids == ["boss", "lead-1", "lead-2", "smith-1", "smith-2", "smith-3", "smith-4", "smith-5"]


def test_the_same_seed_gives_the_same_population_and_another_seed_another() -> None:
    first, again, other = (Population.sample(shop(), seed).to_json() for seed in (7, 7, 8))
    assert first == again != other


def test_a_population_does_not_depend_on_the_process_that_drew_it() -> None:
    code = (
        "from taskweave.org.schema import parse; from taskweave.org.population import Population; "
        f"print(Population.sample(parse({SHOP!r}, 'shop.yaml'), 3).to_json(), end='')"
    )
    texts = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."}
        )
        for seed in ("1", "2")
    ]
    assert texts[0].stdout == texts[1].stdout == Population.sample(shop(), 3).to_json()


def test_one_agent_more_changes_no_other_persona() -> None:
    before = Population.sample(shop(), 1)
    after = Population.sample(shop(SHOP.replace("count: 5", "count: 6")), 1)
    assert len(after) == len(before) + 1
    assert all(after.agent(agent.id) == agent for agent in before)


def test_names_and_mailboxes_are_unique_and_at_an_example_domain() -> None:
    crowd = Population.sample(parse("roles: {Boss: {}, Clerk: {reports_to: Boss, count: 900}}", "crowd.yaml"), 1)
    names = {agent.persona.name for agent in crowd}
    boxes = {agent.persona.email for agent in crowd}
    assert len(names) == len(boxes) == 901
    assert all(box.isascii() and box.endswith("@crowd.example") and box.count("@") == 1 for box in boxes)
    assert Population.sample(shop(), 1).agents[0].persona.email.endswith("@soren-son-grosse-9.example")


@pytest.mark.parametrize("name", ["研究所", "🙂", "Ωmega"])
def test_a_name_in_another_script_still_has_an_ascii_mailbox(name: str) -> None:
    org = parse(f"name: {name}\nroles: {{研究員: {{}}}}\npeople: {{李 明: 研究員}}", "x.yaml")
    (agent,) = Population.sample(org, 1)
    assert (agent.id, agent.persona.name) == ("研究員", "李 明")
    assert agent.persona.email.isascii()
    assert org.slug
    assert org.slug.isascii()


def test_two_people_whose_names_differ_by_an_accent_do_not_take_a_drawn_mailbox() -> None:
    drawn = Population.sample(parse("roles: {Boss: {}, Clerk: {reports_to: Boss}}", "x.yaml"), 1).agent("boss").persona.name
    namesake = parse(f"roles: {{Boss: {{}}, Clerk: {{reports_to: Boss}}}}\npeople: {{{drawn}: Clerk}}", "x.yaml")
    people = Population.sample(namesake, 1)
    assert people.agent("clerk").persona.name == drawn
    assert people.agent("boss").persona.name != drawn


def test_a_named_person_takes_a_slot_of_the_role_and_keeps_its_id() -> None:
    people = Population.sample(shop(), 1)
    ines, bo = people.agent("smith-1"), people.agent("smith-2")
    assert (ines.persona.name, ines.persona.years, ines.persona.knows) == ("Ines Roux", 12, ("horse shoes",))
    assert ines.away == ((date(2026, 8, 3), date(2026, 8, 14)), (date(2026, 9, 1), date(2026, 9, 1)))
    assert bo.persona.name == "Bo Li"
    assert people.agent("smith-3").away == ()


def test_naming_a_person_leaves_what_else_was_drawn_for_the_agent() -> None:
    unnamed = Population.sample(shop(SHOP.split("people:")[0]), 1).agent("smith-2").persona
    named = Population.sample(shop(), 1).agent("smith-2").persona
    assert named.name != unnamed.name
    assert (named.education, named.years, named.background, named.style, named.knows) == (
        unnamed.education,
        unnamed.years,
        unnamed.background,
        unnamed.style,
        unnamed.knows,
    )


def test_a_persona_knows_two_subjects_of_its_role_and_colleagues_differ() -> None:
    people = [agent for agent in Population.sample(shop(), 1) if agent.role == "Smith"][1:]
    assert all(len(set(agent.persona.knows)) == 2 for agent in people)
    assert {name for agent in people for name in agent.persona.knows} <= {"anvil", "bellows", "tongs", "coal", "forge"}
    assert len({agent.persona.knows for agent in people}) > 1


def test_reports_are_dealt_round_robin_over_the_heads_of_a_role() -> None:
    people = Population.sample(shop(), 1)
    assert [agent.head for agent in people] == [None, "boss", "boss", "lead-1", "lead-2", "lead-1", "lead-2", "lead-1"]


def test_tier_fte_and_executes_come_from_the_role() -> None:
    people = Population.sample(shop(), 1)
    assert [agent.id for agent in people.tier(2)] == ["lead-1", "lead-2"]
    assert [people.agent(name).fte for name in ("boss", "smith-5")] == [1.0, 0.5]
    assert [people.agent(name).executes for name in ("boss", "lead-2", "smith-1")] == [0.0, 0.25, 1.0]


def test_a_population_kept_as_json_is_read_back_unchanged() -> None:
    people = Population.sample(shop(), 5)
    assert Population.from_json(people.to_json()).agents == people.agents
    with pytest.raises(KeyError):
        people.agent("nobody")
