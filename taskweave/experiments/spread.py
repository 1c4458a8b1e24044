"""Does a difference lie within what chance alone makes?  Entry points: `judge`, `same`.

Runs in which nothing but chance differs - the base and redrawn controls - say where one further such run would lie: a 95 % prediction
interval, mean ± t · s · √(1 + 1/n), with Student's t at n - 1 degrees of freedom.  Pure; knows nothing of what is measured.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from taskweave.report.intervals import quantile

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
