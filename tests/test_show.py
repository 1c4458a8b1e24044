"""How the organizations that come with the package are shown: three drawings of the same edges, and a full file with everybody in it."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from taskweave.org import show
from taskweave.org.population import Population
from taskweave.org.schema import load
from taskweave.shipped import built_in, find_organization
from tests.test_organization_file import loads_again, resolved

BUILT_IN = sorted(built_in())


@pytest.mark.parametrize("name", BUILT_IN)
def test_tree_mermaid_and_graphml_tell_of_the_same_edges_in_the_same_direction(name: str) -> None:
    found = load(find_organization(name))
    people = Population.sample(found, 1)
    titles = [agent.role for agent in people]
    said = show.tree(found, people).partition("cross links:")[2]
    in_tree = set(re.findall(r"^  (?!.* adds nothing)(.+?) -> (.+?)(?: \(by|$)", said, re.MULTILINE))
    drawn = re.findall(r"a(\d+) -\.-> a(\d+)", show.mermaid(found, people))
    graph = ElementTree.fromstring(show.graphml(found, people))
    tag = "{http://graphml.graphdrawing.org/xmlns}"
    kinds = [(e.get("source"), e.get("target")) for e in graph.iter(f"{tag}edge") if [d.text for d in e] == ["cross"]]
    assert in_tree == {(titles[int(a)], titles[int(b)]) for a, b in drawn}
    assert in_tree == {(people.agent(str(a)).role, people.agent(str(b)).role) for a, b in kinds}


@pytest.mark.parametrize("name", BUILT_IN)
def test_the_resolved_file_names_everybody_and_runs_with_the_same_people(name: str) -> None:
    found = load(find_organization(name))
    assert loads_again(found)
    written = resolved(found)
    for agent in Population.sample(found, 1):
        here = written.partition(f"\n  {agent.persona.name}:\n")[2].splitlines()
        mark = "given" if agent.persona.name in found.people else "inferred"
        assert here[0].replace('"', "") == f"    role: {agent.role}  # {mark}"
