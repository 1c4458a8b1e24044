from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskweave.org.delegation import Delegation, delegation_graph
from taskweave.org.population import Population
from taskweave.org.schema import parse
from taskweave.records import LEVELS


def delegation(roles: str, more: str = "") -> Delegation:
    """Roles as 'A < B: executes: 20%, count: 2' a line: A reports to B."""
    lines = []
    for line in filter(str.strip, roles.splitlines()):
        name, _, facts = line.strip().partition(":")
        title, _, head = (part.strip() for part in name.partition("<"))
        lines.append(f"  {title}: {{{', '.join(filter(None, [f'reports_to: {head}' if head else '', facts.strip()]))}}}")
    org = parse("roles:\n" + "\n".join(lines) + "\n" + more, "org.yaml")
    return Delegation(org, Population.sample(org, 1))


THREE = """
    CEO
    CTO < CEO: leads: Product
    CMO < CEO: leads: Marketing
    Dev < CTO: count: 2
    Tester < CTO
    Writer < CMO
"""


def edges(found: Delegation, kind: str) -> list[tuple[str, str]]:
    return [(source, target) for source, target, edge in found.graph.edges(data=True) if edge["kind"] == kind]


# ------------------------------------------------------------ edges
def test_tier_edges_follow_the_reporting_lines() -> None:
    found = delegation(THREE)
    assert edges(found, "tier") == [
        ("ceo", "cto"),
        ("ceo", "cmo"),
        ("cto", "dev-1"),
        ("cto", "dev-2"),
        ("cto", "tester"),
        ("cmo", "writer"),
    ]
    assert edges(found, "self") == edges(found, "cross") == []


def test_a_head_with_time_for_tasks_has_a_self_edge_and_executes_its_own_work() -> None:
    found = delegation(THREE.replace("leads: Product", "leads: Product, executes: 20%"))
    assert edges(found, "self") == [("cto", "cto")]
    assert found.executors("cto") == ("cto", "dev-1", "dev-2", "tester")
    assert found.executors("ceo") == (), "the time of a head is planned by that head, not by the one above"


def test_a_cross_link_leads_from_the_unit_in_which_the_source_works_to_every_agent_of_the_target() -> None:
    found = delegation(THREE, "cross_links: [Writer -> Dev, CTO -> Writer]")
    assert edges(found, "cross") == [("cto", "writer"), ("cmo", "dev-1"), ("cmo", "dev-2")]
    assert found.cross("cmo") == ("dev-1", "dev-2")
    assert found.cross("ceo") == ()


def test_a_cross_link_adds_nothing_where_a_tier_edge_leads_already_and_no_edge_to_oneself() -> None:
    found = delegation(THREE, "cross_links: [Tester -> Dev, Dev -> CTO]")
    assert edges(found, "cross") == []
    assert found.graph.edges["cto", "dev-1"]["kind"] == "tier"
    assert not found.graph.has_edge("cto", "cto")


def test_a_cross_edge_to_somebody_without_time_for_tasks_brings_no_work() -> None:
    found = delegation(THREE, "cross_links: [Writer -> CTO]")
    assert edges(found, "cross") == [("cmo", "cto")]
    assert found.cross("cmo") == ()


def test_the_graph_says_who_stands_at_each_node() -> None:
    org = parse("roles: {CEO: {}, Dev: {reports_to: CEO}}\npeople: {Bo Li: Dev}", "x.yaml")
    graph = delegation_graph(org, Population.sample(org, 1))
    assert graph.nodes["dev"] == {"name": "Bo Li", "role": "Dev", "tier": 2, "department": ""}


# ------------------------------------------------------------ levels
DEEP = "CEO\n A < CEO\n B < A\n C < B\n D < C\n E < D\n F < E"


@pytest.mark.parametrize(
    ("depth", "owned"),
    [
        (1, {"ceo": ("year", "quarter", "month", "week")}),
        (2, {"ceo": ("year", "quarter", "month", "week")}),
        (3, {"ceo": ("year", "quarter"), "a": ("month", "week")}),
        (4, {"ceo": ("year",), "a": ("quarter",), "b": ("month", "week")}),
        (5, {"ceo": ("year",), "a": ("quarter",), "b": ("month",), "c": ("week",)}),
        (6, {"ceo": ("year",), "a": ("quarter",), "b": ("month",), "c": ("week",), "d": ("week",)}),
        (7, {"ceo": ("year",), "a": ("quarter",), "b": ("month",), "c": ("week",), "d": ("week",), "e": ("week",)}),
    ],
)
def test_the_tiers_share_the_levels_and_the_last_executes(depth: int, owned: dict[str, tuple[str, ...]]) -> None:
    found = delegation("\n".join(DEEP.splitlines()[:depth]))
    assert {agent: found.levels(agent) for agent in found.graph if found.levels(agent)} == owned


def test_deeper_tiers_pass_work_down_from_week_to_week() -> None:
    found = delegation(DEEP)
    assert found.parent("week", "e") == ("week", "d")
    assert found.parent("week", "d") == ("week", "c")
    assert found.parent("week", "c") == ("month", "b")
    assert found.children("week", "c") == (("week", "d"),)


def test_cadence_moves_a_level_to_another_tier() -> None:
    found = delegation(THREE, "cadence: {month: 1}")
    assert found.levels("ceo") == ("year", "quarter", "month")
    assert found.levels("cto") == ("week",)
    assert found.planners("month") == ("ceo",)
    assert found.parent("week", "cto") == ("month", "ceo")


def test_a_head_above_the_weeks_with_an_executing_report_owns_weeks_too() -> None:
    found = delegation(THREE + "\n Assistant < CEO")
    assert found.levels("ceo") == ("year", "quarter", "month", "week")
    assert found.executors("ceo") == ("assistant",)
    assert found.parent("month", "cto") == ("quarter", "ceo"), "a month is planned under a quarter, not under another month"
    assert found.children("quarter", "ceo") == (("month", "ceo"), ("month", "cto"), ("month", "cmo"))


def test_a_head_above_the_weeks_with_time_for_tasks_owns_weeks_too() -> None:
    found = delegation(THREE.replace("CEO\n", "CEO: executes: 30%\n", 1))
    assert found.planners("week") == ("ceo", "cto", "cmo")
    assert found.executors("ceo") == ("ceo",)


def test_an_officer_without_reports_and_without_time_plans_without_delegating() -> None:
    found = delegation(THREE + "\n Counsel < CEO: executes: 0%\n Auditor < CTO: executes: 0%")
    assert found.levels("counsel") == ("month", "week")
    assert found.levels("auditor") == ("week",)
    assert found.parent("month", "counsel") == ("quarter", "ceo")
    assert found.executors("counsel") == found.reports("counsel") == ()
    assert "auditor" not in found.executors("cto")


def test_a_head_between_the_tiers_of_the_cadence_relays_plans_of_the_level_above() -> None:
    found = delegation("CEO\n A < CEO\n B < A\n C < B", "cadence: {year: 1, quarter: 1, month: 3, week: 3}")
    assert found.levels("a") == ("quarter",)
    assert found.parent("quarter", "a") == ("quarter", "ceo")
    assert found.parent("month", "b") == ("quarter", "a")


def test_a_founder_alone_plans_and_executes() -> None:
    found = delegation("Founder")
    assert found.levels("founder") == LEVELS
    assert found.executors("founder") == ("founder",)
    assert found.parent("year", "founder") is None


def test_a_head_who_was_dealt_no_report_executes_as_its_role_says() -> None:
    found = delegation("CEO\n Lead < CEO: count: 3, executes: 40%\n Dev < Lead: count: 2")
    assert found.reports("lead-3") == ()
    assert found.levels("lead-3") == ()
    assert found.executors("ceo") == ("lead-3",)


def test_ancestors_and_descendants_walk_the_lines() -> None:
    found = delegation(THREE)
    assert found.ancestors("dev-2") == ("cto", "ceo")
    assert found.ancestors("ceo") == ()
    assert found.descendants("ceo") == ("cto", "dev-1", "dev-2", "tester", "cmo", "writer")


def test_asking_for_a_level_that_an_agent_does_not_own_is_an_error() -> None:
    with pytest.raises(ValueError, match="'cto' owns no year units; it owns"):
        delegation(THREE).parent("year", "cto")


# ------------------------------------------------------------ any organization
@st.composite
def organizations(draw: st.DrawFn) -> Delegation:
    size = draw(st.integers(1, 9))
    lines = ["R0"]
    for number in range(1, size):
        above = draw(st.integers(0, number - 1))
        facts = [f"count: {draw(st.integers(1, 3))}", *draw(st.sampled_from([[], ["executes: 0%"], ["executes: 30%"]]))]
        lines.append(f"R{number} < R{above}: {', '.join(facts)}")
    depth = draw(st.integers(1, 4))
    tiers = sorted(draw(st.lists(st.integers(1, depth), min_size=3, max_size=3)))
    heights = {0: 1}
    for number, line in enumerate(lines[1:], 1):
        heights[number] = heights[int(line.split("< R")[1].split(":")[0])] + 1
    top = max(heights.values())
    return delegation(
        "\n".join(lines), "cadence: " + str(dict(zip(LEVELS, [1, *(min(tier, top) for tier in tiers)], strict=True))).replace("'", "")
    )


def _units(found: Delegation) -> Iterator[tuple[str, str]]:
    return ((level, agent) for agent in found.graph for level in found.levels(agent))


@settings(max_examples=60, deadline=None)
@given(organizations())
def test_every_unit_hangs_below_the_year_and_under_no_finer_level(found: Delegation) -> None:
    assert found.planners("year")[0] == "r0"
    for level, agent in _units(found):
        above, steps = (level, agent), 0
        while (parent := found.parent(*above)) is not None:
            assert LEVELS.index(parent[0]) <= LEVELS.index(above[0]), f"{above} lies under {parent}"
            assert above in found.children(*parent)
            assert parent[1] == above[1] or found.graph.edges[parent[1], above[1]]["kind"] == "tier"
            above, steps = parent, steps + 1
            assert steps < 50
        assert above == ("year", "r0")


@settings(max_examples=60, deadline=None)
@given(organizations())
def test_everybody_with_time_for_tasks_is_reached_by_exactly_one_owner_of_weeks(found: Delegation) -> None:
    reached = [agent for owner in found.planners("week") for agent in found.executors(owner)]
    assert sorted(reached) == sorted(set(reached))
    working = {agent for agent in found.graph if not found.levels(agent)} | {
        source for source, target in found.graph.edges if source == target
    }
    assert set(reached) == working
