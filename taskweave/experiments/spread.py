"""Does a difference lie within what chance alone makes?  Entry points: `judge`, `same`.

Runs in which nothing but chance differs - the base and redrawn controls - say where one further such run would lie: a 95 % prediction
interval, mean ± t · s · √(1 + 1/n), with Student's t at n - 1 degrees of freedom.  Pure; knows nothing of what is measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

LEVEL = 0.95
LEAST = 2  # controls, below which nothing can be said of noise
_SAME = 1e-9  # of the larger value: what rounding does to sums of hours

Verdict = Literal["stands out", "not distinguishable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """Between which differences one further control would lie, and whether this one does.

    `spread` is whether the base and the controls differ among themselves: without that there is no telling by chance.
    """

    low: float
    high: float
    spread: bool
    verdict: Verdict


def judge(base: float, other: float, controls: Sequence[float]) -> Judged | None:
    """Set other - base against the spread of base and controls; None with fewer than LEAST of these.

    Where they are all equal, any difference stands out.
    """
    if len(controls) < LEAST:
        return None
    values = [base, *controls]
    middle = reach = 0.0
    if spread := not same(min(values), max(values)):
        middle = statistics.fmean(values) - base
        reach = quantile(len(controls)) * statistics.stdev(values) * math.sqrt(1 + 1 / len(values))
    inside = abs(other - base - middle) <= reach or (not spread and same(base, other))
    return Judged(low=middle - reach, high=middle + reach, spread=spread, verdict="not distinguishable" if inside else "stands out")


def same(a: float, b: float) -> bool:
    """Whether two values differ by no more than rounding does."""
    return math.isclose(a, b, rel_tol=_SAME, abs_tol=_SAME)


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
