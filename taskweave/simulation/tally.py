"""How often did a backbone give what it was asked for, by step and level, and is that often enough?  Entry point: `Tally`.

Each structured question is one answer: valid at once, repaired, or a fallback.  `Tally` counts them as works end, and halts the run where
more than a given share of them are fallbacks; the ledger takes them for the week that is sealed.  A stop is no part of a trace.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from taskweave.engine.budget import Bound, Halt
from taskweave.records import LEVELS, Quality, step_of, worst

FALLBACK = "fallback"  # the word for a run that stopped because of too many fallbacks
LEAST_OF_ALL = 20  # answers before their share says something
LEAST_OF_A_GROUP = 10  # of one step at one level
EXECUTION = "execution"  # the level below the week: decompose, execute, merge
SHOWN_REASONS = 3
UNSAID = "something that was asked for was missing and was made by code"

Group = tuple[str, str]  # (step, level)
Key = tuple[str, str, str]  # (step, level, backbone)


class One(NamedTuple):
    """One question's answer."""

    key: Key
    quality: Quality
    reason: str


class Counts:
    """Answers: how many there are, and how many of them were repaired or are fallbacks."""

    __slots__ = ("asked", "fallback", "repaired")

    def __init__(self) -> None:
        self.asked = self.repaired = self.fallback = 0

    def add(self, quality: Quality) -> None:
        self.asked += 1
        self.repaired += quality == "repaired"
        self.fallback += quality == "fallback"


class Tally:
    """The answers of a running year.  `most` is the share of fallbacks beyond which `halt` is called; None: there is none."""

    def __init__(self, most: float | None = None) -> None:
        self.most = most
        self.halt: Halt = lambda why, cause, bound=None: None
        self._by_site: dict[str, list[One]] = {}
        self._all = Counts()
        self._groups: defaultdict[Group, Counts] = defaultdict(Counts)
        self._reasons: defaultdict[Group, Counter[str]] = defaultdict(Counter)

    def asked(self, site: str, prompt: str, backbone: str, quality: Quality, reason: str) -> None:
        """A question of the work at a site has been answered, or not."""
        self._by_site.setdefault(site, []).append(One((step_of(prompt), level_of(site), backbone), quality, reason))

    def settle(self, site: str, quality: Quality) -> None:
        """The work at a site has ended with a value of this quality: where code changed more than its answers show, the last says so."""
        ones = self._by_site.get(site)
        if ones is None:
            return
        shown: Quality = "ok"
        for one in ones:
            shown = worst(shown, one.quality)
        if worst(shown, quality) != shown:
            ones[-1] = One(ones[-1].key, quality, UNSAID)
        for one in ones:
            self._all.add(one.quality)
            self._groups[one.key[:2]].add(one.quality)
            if one.quality == "fallback":
                self._reasons[one.key[:2]][one.reason] += 1
        if self.most is not None:
            self._check(dict.fromkeys(one.key[:2] for one in ones))

    def take(self, sites: Iterable[str]) -> list[One]:
        """The answers of the works at these sites, each once."""
        return [one for site in sites for one in self._by_site.pop(site, ())]

    def sealed(self, asked: int, fallback: int) -> None:
        """A week is sealed, with so many answers up to then: their share counts however few they are."""
        if self.most is not None and asked and fallback / asked > self.most:
            self._stop("all answers up to the week that was sealed", asked, fallback, list(self._reasons))

    def _check(self, groups: Iterable[Group]) -> None:
        assert self.most is not None
        for group in groups:
            counts = self._groups[group]
            if counts.asked >= LEAST_OF_A_GROUP and counts.fallback / counts.asked > self.most:
                step, level = group
                self._stop(f"the answers of {step!r} at the level {level!r}", counts.asked, counts.fallback, [group])
        if self._all.asked >= LEAST_OF_ALL and self._all.fallback / self._all.asked > self.most:
            self._stop("all answers", self._all.asked, self._all.fallback, list(self._reasons))

    def _stop(self, what: str, asked: int, fallback: int, groups: Iterable[Group]) -> None:
        assert self.most is not None
        reasons = sum((self._reasons[group] for group in groups), Counter[str]())
        told = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))[:SHOWN_REASONS]
        often = "; ".join(f"{count:,} times {reason!r}" if count > 1 else f"once {reason!r}" for reason, count in told)
        share = fallback / asked
        # The next tenth above their share.
        bound = Bound(
            option="max_fallback",
            allowed=self.most,
            enough=min(math.floor(10 * share + 1), 10) / 10,
            asked=self._all.asked,
            counted=self._all.fallback,
        )
        self.halt(
            FALLBACK,
            f"of {what} {fallback:,} of {asked:,} ({100 * share:.1f} %) could not be used and were made by code, more than the "
            f"{100 * self.most:.12g} % that are allowed; most often: {often}. "
            f"To let it go on, allow --max-fallback {100 * bound.enough:.12g}%",
            bound,
        )


def level_of(site: str) -> str:
    """Y1/Q2@owner:formulate -> quarter; what lies below a task is of the execution."""
    period, _, rest = site.partition("@")
    return EXECUTION if "/" in rest else LEVELS[min(period.count("/"), len(LEVELS) - 1)]
