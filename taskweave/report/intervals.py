"""Between which values does a figure lie, as far as so many observations tell?  95 % intervals of counts, shares and means.

Entry points: `share`, `count`, `mean`, `ratio`, `dispersion`, `quantile`.  Pure; knows nothing of what is observed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95
_Z = NormalDist().inv_cdf((1 + LEVEL) / 2)


class Interval(NamedTuple):
    """From `low` to `high`, both included."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value lies within."""
        return self.low <= value <= self.high


def share(hits: int, of: int) -> Interval | None:
    """Wilson's interval for a binomial share; None where there is nothing that it could be a share of."""
    if not of:
        return None
    part, square = hits / of, _Z * _Z / of
    middle = (part + square / 2) / (1 + square)
    reach = _Z / (1 + square) * math.sqrt(part * (1 - part) / of + square / (4 * of))
    # At the ends the formula gives 0 and 1 but for rounding.
    return Interval(0.0 if hits == 0 else middle - reach, 1.0 if hits == of else middle + reach)


def count(found: int) -> Interval:
    """The mean of a Poisson count of which one was observed: the exact interval by chi-square quantiles."""
    low = 0.0 if found == 0 else _chi_square(2 * found, (1 - LEVEL) / 2) / 2
    return Interval(low, _chi_square(2 * found + 2, (1 + LEVEL) / 2) / 2)


def mean(values: Sequence[float]) -> Interval | None:
    """Of independent values, by Student's t; None with fewer than two."""
    if len(values) < 2:
        return None
    reach = quantile(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values))
    middle = statistics.fmean(values)
    return Interval(middle - reach, middle + reach)


def ratio(totals: Sequence[float], counts: Sequence[float]) -> Interval | None:
    """Of sum(totals) / sum(counts), where only the groups are about independent, such as weeks of a queue; None with fewer than two.

    By the residuals of the groups (Cochran, Sampling Techniques, 6.4), with Student's t.
    """
    groups, of = len(totals), math.fsum(counts)
    if groups < 2 or not of:
        return None
    middle = math.fsum(totals) / of
    squares = math.fsum((total - middle * number) ** 2 for total, number in zip(totals, counts, strict=True))
    reach = quantile(groups - 1) * math.sqrt(squares * groups / (groups - 1)) / of
    return Interval(middle - reach, middle + reach)


def dispersion(found: float, degrees: int) -> Interval:
    """Of the true dispersion of counts whose chi-square / degrees was found; it holds 1 in 95 % of cases if they are Poisson."""
    return Interval(*(found * degrees / _chi_square(degrees, part) for part in ((1 + LEVEL) / 2, (1 - LEVEL) / 2)))


@cache
def quantile(degrees: int, level: float = LEVEL) -> float:
    """t with P(|T| < t) = level for Student's T at so many degrees of freedom, by halving."""
    low, high = 0.0, 1.0
    while _within(high, degrees) < level:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < level else (low, middle)
    return (low + high) / 2


def _within(t: float, degrees: int) -> float:
    """P(|T| < t), as the finite sum for whole degrees of freedom (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    odd, square = degrees % 2, math.cos(angle) ** 2
    term, total = (math.cos(angle) if odd else 1.0), 0.0
    for j in range(1, (degrees - odd) // 2 + 1):
        total += term
        term *= square * (2 * j / (2 * j + 1) if odd else (2 * j - 1) / (2 * j))
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def _chi_square(degrees: int, part: float) -> float:
    """The quantile below which `part` of the distribution lies (Wilson and Hilferty; off by less than 1 % from 2 degrees on)."""
    if degrees == 2:
        return -2 * math.log(1 - part)
    ninth = 2 / (9 * degrees)
    return degrees * max(0.0, 1 - ninth + NormalDist().inv_cdf(part) * math.sqrt(ninth)) ** 3
