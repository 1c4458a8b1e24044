"""95 % intervals of counts, shares, means and of means over weeks: against tables, and by how often they hold what is true."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from taskweave.report import intervals


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"), [(0, 10, 0.0, 0.2775), (10, 10, 0.7225, 1.0), (5, 10, 0.2366, 0.7634), (81, 263, 0.2553, 0.3662)]
)
def test_a_share_lies_where_wilson_says(hits: int, of: int, low: float, high: float) -> None:
    found = intervals.share(hits, of)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low, abs=5e-4), pytest.approx(high, abs=5e-4))
    assert found.holds(hits / of)


@pytest.mark.parametrize(("number", "low", "high"), [(0, 0, 3.689), (1, 0.0253, 5.572), (10, 4.795, 18.39), (100, 81.36, 121.63)])
def test_a_count_lies_where_the_tables_of_poisson_say(number: int, low: float, high: float) -> None:
    found = intervals.count(number)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.02), pytest.approx(high, rel=0.005))


def test_the_mean_of_two_values_is_hardly_known_and_of_one_not_at_all() -> None:
    found = intervals.mean([10, 12])
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(11 - 12.706, abs=1e-3), pytest.approx(11 + 12.706, abs=1e-3))
    assert intervals.mean([3]) is intervals.ratio([3], [1]) is intervals.share(0, 0) is None


def test_nineteen_of_twenty_intervals_hold_what_is_true_also_where_a_week_waits_as_a_whole() -> None:
    draw, held = random.Random(1), {"week": 0, "case": 0, "dispersion": 0}
    for _ in range(400):
        weeks = [[draw.gauss(1, 0.2) * common for _ in range(draw.randint(10, 20))] for common in (draw.choice([1, 3]) for _ in range(40))]
        by_week = intervals.ratio([sum(week) for week in weeks], [len(week) for week in weeks])
        by_case = intervals.mean([one for week in weeks for one in week])
        counts = [sum(draw.random() < 0.018 for _ in range(500)) for _ in range(30)]
        middle = fmean(counts)
        found = intervals.dispersion(sum((one - middle) ** 2 / middle for one in counts) / 29, 29)
        assert by_week is not None
        assert by_case is not None
        held["week"] += by_week.holds(2)
        held["case"] += by_case.holds(2)
        held["dispersion"] += found.holds(1)
    assert 360 <= held["week"] <= 396
    assert held["case"] < 300  # cases of a week wait together: to take them for independent claims too much
    assert 360 <= held["dispersion"] <= 396
