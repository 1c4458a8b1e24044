"""What lies within what chance makes: the interval for one further run, against tables and by simulation."""

from __future__ import annotations

import random

import pytest

from taskweave.experiments.spread import judge
from taskweave.report.intervals import quantile


@pytest.mark.parametrize(("degrees", "t"), [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042)])
def test_quantiles_of_t_are_those_of_the_tables(degrees: int, t: float) -> None:
    assert quantile(degrees) == pytest.approx(t, abs=5e-4)
    assert quantile(degrees, 0.5) < quantile(degrees) < quantile(degrees, 0.99)


def test_the_interval_is_that_for_one_further_value_around_the_mean_of_base_and_controls() -> None:
    # 10, 12, 14: mean 12, s 2, t(2) = 4.3027; 4.3027 x 2 x sqrt(4/3) = 9.937; as differences from 10
    judged = judge(10, 13, [12, 14])
    assert judged is not None
    assert (judged.low, judged.high) == pytest.approx((2 - 9.937, 2 + 9.937), abs=1e-3)
    assert judged.spread


def test_inside_it_nothing_can_be_told_apart_and_outside_it_stands_out() -> None:
    for other, verdict in ((21.9, "not distinguishable"), (22, "stands out"), (2.1, "not distinguishable"), (2, "stands out")):
        judged = judge(10, other, [12, 14])
        assert judged is not None
        assert judged.verdict == verdict


def test_without_any_spread_every_difference_stands_out() -> None:
    for other, verdict in ((5.0, "not distinguishable"), (5 + 1e-12, "not distinguishable"), (5.1, "stands out")):
        judged = judge(5, other, [5, 5 + 1e-13])
        assert judged is not None
        assert not judged.spread
        assert (judged.low, judged.high, judged.verdict) == (0, 0, verdict)


def test_fewer_than_two_controls_say_nothing() -> None:
    assert judge(1, 9, []) is None
    assert judge(1, 9, [1]) is None


def test_of_runs_that_differ_by_chance_alone_one_in_twenty_stands_out() -> None:
    rng = random.Random(1)
    trials = 4_000
    found = 0
    for _ in range(trials):
        base, other, *controls = (rng.gauss(50, 7) for _ in range(7))
        judged = judge(base, other, controls)
        assert judged is not None
        found += judged.verdict == "stands out"
    assert found / trials == pytest.approx(0.05, abs=0.012)
