"""How much a unit plans for a week."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweave.org.schema import parse
from taskweave.simulation.capacity import MOST_SUBTASKS, Capacity, share_out


def firm(workload: str = "{utilisation: 1.0, composite_hours: 12}", maker: str = "") -> Any:
    return parse(
        f"""
name: Firm
domain: Consulting
roles:
  Head: {{}}
  Maker: {{reports_to: Head, hours: 2-6{maker}}}
  Painter: {{reports_to: Head, hours: 4-8}}
workload: {workload}
""",
        "firm.yaml",
    )


def counts(slots: Any) -> Counter[str]:
    return Counter(role for slot in slots for role in slot.roles)


def test_free_hours_become_subtasks_of_the_roles_middle_hours() -> None:
    slots = Capacity(firm(), 1).slots("head", "W01", {"Maker": 40, "Painter": 24}, {})
    assert counts(slots) == {"Maker": 10, "Painter": 4}
    assert sum(slot.hours for slot in slots) == 64
    assert len(slots) == round(64 / 12)


@pytest.mark.parametrize(
    ("organization", "expected"),
    [
        (firm("{utilisation: 0.5, composite_hours: 12}"), 5),
        (firm(maker=", demand: 0.5"), 5),
    ],
)
def test_utilisation_and_demand_scale_what_is_planned(organization: Any, expected: int) -> None:
    assert counts(Capacity(organization, 1).slots("head", "W01", {"Maker": 40}, {})) == {"Maker": expected}


def test_composite_hours_decide_how_many_composites_there_are() -> None:
    for hours, composites in ((8, 5), (20, 2)):
        slots = Capacity(firm(f"{{utilisation: 1.0, composite_hours: {hours}}}"), 1).slots("head", "W01", {"Maker": 40}, {})
        assert len(slots) == composites


def test_carried_hours_are_not_planned_again() -> None:
    assert counts(Capacity(firm(), 1).slots("head", "W01", {"Maker": 40}, {"Maker": 20})) == {"Maker": 5}


def test_more_carried_than_present_plans_nothing_and_owes_nothing() -> None:
    capacity = Capacity(firm(), 1)
    assert capacity.slots("head", "W01", {"Maker": 40}, {"Maker": 90}) == []
    assert counts(capacity.slots("head", "W02", {"Maker": 40}, {})) == {"Maker": 10}


def test_what_makes_no_whole_subtask_is_owed_until_it_does() -> None:
    capacity = Capacity(firm(), 1)
    per_week = [counts(capacity.slots("head", f"W{week}", {"Painter": 9}, {}))["Painter"] for week in range(1, 9)]
    assert per_week == [1, 2, 1, 2, 1, 2, 1, 2]


@given(st.dictionaries(st.sampled_from(["Maker", "Painter"]), st.floats(0, 400), min_size=1), st.integers(0, 50))
def test_every_composite_has_one_to_five_subtasks_and_all_are_dealt(present: dict[str, float], seed: int) -> None:
    slots = Capacity(firm(), seed).slots("head", "W01", present, {})
    assert all(1 <= len(slot.roles) <= MOST_SUBTASKS for slot in slots)
    for role, hours in present.items():
        assert counts(slots)[role] == int(hours / (4 if role == "Maker" else 6) + 1e-9)


def test_proposed_hours_are_clamped_to_the_range_and_scaled_to_the_sum() -> None:
    assert share_out([1, 100], [(2, 6), (2, 6)], 8) == [2, 6]
    assert share_out([4, 4], [(2, 6), (2, 6)], 12) == [6, 6]
    assert share_out([None, 6], [(2, 6), (2, 6)], 10) == [4, 6]


def test_shared_out_hours_are_quarters_and_never_nothing() -> None:
    assert share_out([3, 3, 3], [(2, 6)] * 3, 0.3) == [0.25, 0.25, 0.25]
