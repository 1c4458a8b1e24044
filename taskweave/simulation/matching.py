"""Who fits this subtask?  s_match and the argmax of Eq. 6 (TaskWeave, Sec. 3.3).

Entry points: `Matcher.score`, `choose`.  Match is the idf-weighted cosine between a subtask and what stands about an agent, plus
PROPOSED where the agent has the role that the backbone proposed.  It refuses to know about calendars and edges: callers pass the eligible.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

PROPOSED = 0.5  # added where the agent has the proposed role
TIE = 0.05  # within a title, matches this near to the best are no evidence; see `choose`
_WORD = re.compile(r"[^\W_]+")


def terms(text: str) -> list[str]:
    """Lower-case words; a plural s is dropped, so that 'cohorts' finds 'cohort'."""
    return [word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in _WORD.findall(text.lower())]


class Matcher:
    """Documents of agents, and how well a text fits each.  Documents only grow: `add` appends to one."""

    def __init__(self, documents: Mapping[str, Iterable[str]]) -> None:
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in documents}
        self._logs: dict[str, dict[str, float]] = {name: {} for name in documents}  # 1 + ln tf of each term
        self._having: defaultdict[str, dict[str, float]] = defaultdict(dict)  # the same by term
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
            self._logs[name][term] = self._having[term][name] = 1 + math.log(counts[term])
        self._norms.clear()

    def join(self, name: str, texts: Iterable[str]) -> None:
        """One document more: how rare a term is changes with their number."""
        self._counts[name], self._logs[name] = Counter(), {}
        self._norms.clear()
        self.add(name, texts)
        self._idf = {term: self._rarity(df) for term, df in self._df.items()}

    def score(self, text: str, names: Sequence[str]) -> dict[str, float]:
        """Cosine of `text` with each named document, 0 to 1; a term weighs (1 + ln tf) · idf."""
        asked, unknown = Counter(terms(text)), self._rarity(0)
        query = {term: (1 + math.log(tf)) * self._idf.get(term, unknown) for term, tf in asked.items()}
        length = math.sqrt(sum(weight * weight for weight in query.values()))
        dots = self._dots(query, names)
        return {name: dots[name] / (length * self._norm(name)) if length and self._norm(name) else 0.0 for name in names}

    def _rarity(self, df: int) -> float:
        """The idf of a term that so many documents have."""
        return math.log(1 + (len(self._counts) - df + 0.5) / (df + 0.5))

    def _dots(self, query: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
        """The products of the query with each document, added up in the order of the query's terms.

        A term is looked up where it is, or with those who are asked for, whichever are fewer: neither many agents who have nothing in
        common with the text may cost much, nor a common word of which few are asked.
        """
        dots = dict.fromkeys(names, 0.0)
        for term, weight in query.items():
            having = self._having.get(term)
            if having is None:
                continue
            idf = self._idf[term]
            for name in having if len(having) < len(dots) else dots:
                if name in dots and name in having:
                    dots[name] += weight * having[name] * idf
        return dots

    def _norm(self, name: str) -> float:
        if name not in self._norms:
            idf = self._idf
            self._norms[name] = math.sqrt(sum([(log * idf[term]) ** 2 for term, log in self._logs[name].items()]))
        return self._norms[name]


def choose(scores: Mapping[str, float], titles: Mapping[str, str], load: Mapping[str, tuple[int, int]]) -> tuple[str, str]:
    """a* of Eq. 6 among the agents in `scores`, and why.  `load` are minutes of work they were given this week, and so far.

    Whose match is best names the title; of that title those within TIE of it are tied.  Ties, and equal matches of several titles, go to
    the least loaded, then to the first name: a run must repeat.

    TIE shares out what interchangeable agents would be given: without it whoever has worked on the like before gets more and more of
    it.  In three runs of manu to week 12 (11 titles of several agents), the most used agent of a title worked so many times the hours
    of its least used, of the hours it was there (median of the titles, and the worst), and the best match was chosen in:

        TIE    0           0.02        0.05        0.1         0.2
        ratio  1.48, 2.59  1.19, 1.74  1.11, 1.35  1.10, 1.23  1.05, 1.12
        best   100 %       83 %        68 %        49 %        39 %

    Above 0.05 the balance gains little, and what somebody knows counts for less and less.
    """
    best = min(scores, key=lambda name: (-scores[name], load[name], name))
    tied = [name for name in scores if titles[name] == titles[best] and scores[best] - scores[name] <= TIE]
    chosen = min(tied, key=lambda name: (load[name], name))
    others = [name for name in tied if name != chosen] or [name for name in scores if name != chosen]
    if not others:
        return chosen, f"only eligible; match {scores[chosen]:.2f}"
    second = min(others, key=lambda name: (-scores[name], load[name], name))
    if second not in tied and scores[second] != scores[chosen]:
        return chosen, f"match {scores[chosen]:.2f}; next {second} {scores[second]:.2f}"
    reason = "less loaded" if load[chosen] < load[second] else "first name"
    return chosen, f"match {scores[chosen]:.2f}, tied with {second} {scores[second]:.2f}; {reason}"
