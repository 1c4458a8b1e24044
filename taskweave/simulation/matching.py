"""Who fits this subtask?  s_match and the argmax of Eq. 6 (TaskWeave, Sec. 3.3).

Entry points: `Matcher.score`, `choose`.  Match is the idf-weighted cosine between a subtask and what stands about an agent, plus
PROPOSED where the agent has the role that the backbone proposed.  It refuses to know about calendars and edges: callers pass the eligible.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

PROPOSED = 0.5  # added where the agent has the proposed role
TIE = 0.1  # matches that round to the same multiple of this are equal
_WORD = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """Lower-case words; a plural s is dropped, so that 'cohorts' finds 'cohort'."""
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in _WORD.findall(text.lower())]


class Matcher:
    """Documents of agents, and how well a text fits each.  Documents only grow: `add` appends to one."""

    def __init__(self, documents: Mapping[str, Iterable[str]]) -> None:
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in documents}
        self._logs: dict[str, dict[str, float]] = {name: {} for name in documents}  # 1 + ln tf of each term
        self._df: Counter[str] = Counter()
        self._idf: dict[str, float] = {}
        self._norms: dict[str, float] = {}
        for name, texts in documents.items():
            self.add(name, texts)

    def add(self, name: str, texts: Iterable[str]) -> None:
        """Append texts to the document of `name`."""
        counts, added = self._counts[name], Counter(chain.from_iterable(map(terms, texts)))
        if not added:
            return
        for term, count in added.items():
            if term not in counts:
                self._df[term] += 1
                self._idf[term] = self._rarity(self._df[term])
            counts[term] += count
            self._logs[name][term] = 1 + math.log(counts[term])
        self._norms.clear()

    def score(self, text: str, names: Sequence[str]) -> dict[str, float]:
        """Cosine of `text` with each named document, 0 to 1; a term weighs (1 + ln tf) · idf."""
        asked, unknown = Counter(terms(text)), self._rarity(0)
        query = {term: (1 + math.log(tf)) * self._idf.get(term, unknown) for term, tf in asked.items()}
        length = math.sqrt(sum(weight * weight for weight in query.values()))
        return {name: self._dot(query, name) / (length * self._norm(name)) if length and self._norm(name) else 0.0 for name in names}

    def _rarity(self, df: int) -> float:
        """The idf of a term that so many documents have."""
        return math.log(1 + (len(self._counts) - df + 0.5) / (df + 0.5))

    def _dot(self, query: Mapping[str, float], name: str) -> float:
        logs, idf = self._logs[name], self._idf
        return sum([weight * logs[term] * idf[term] for term, weight in query.items() if term in logs])

    def _norm(self, name: str) -> float:
        if name not in self._norms:
            idf = self._idf
            self._norms[name] = math.sqrt(sum([(log * idf[term]) ** 2 for term, log in self._logs[name].items()]))
        return self._norms[name]


def choose(scores: Mapping[str, float], load: Mapping[str, tuple[int, int]]) -> tuple[str, str]:
    """a* of Eq. 6 among the agents in `scores`, and why.  `load` are minutes of work they were given this week, and so far.

    Matches are compared to TIE: below it they are no evidence, and whoever has worked on the like before would get all of it.
    Ties go to the least loaded, then to the first name: a run must repeat.
    """
    ranked = sorted(scores, key=lambda name: (-round(scores[name] / TIE), load[name], name))
    best = ranked[0]
    if len(ranked) == 1:
        return best, f"only eligible; match {scores[best]:.2f}"
    second = ranked[1]
    if round(scores[second] / TIE) != round(scores[best] / TIE):
        return best, f"match {scores[best]:.2f}; next {second} {scores[second]:.2f}"
    reason = "less loaded" if load[best] < load[second] else "first name"
    return best, f"match {scores[best]:.2f}, tied with {second} {scores[second]:.2f}; {reason}"
