"""Which words and phrases tell some documents from others?  Entry points: `phrases`, `weights`, `changed`; all are pure.

App. K.1.2 of the paper sets keywords of plans before and after an event side by side.  Here a keyword is a run of one to four words
between stop words and punctuation; its weight is how much larger the share of documents with it has become, times its inverse document
frequency.  Nothing is drawn and nothing learnt.  Knows nothing of plans and runs: it is handed sets of phrases.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from taskweave.evaluation.text import CALENDAR

WORDS = 4  # of a phrase at most
_BREAK = re.compile(r"[^\w\s'’/-]+|\s[-/]+\s|\n+")
_WORD = re.compile(r"[^\W_]+(?:['’/-][^\W_]+)*")
_DIGIT = re.compile(r"\d")
_STOP_WORDS = """
    a about above after again against all almost already also although always am among an and another any are around as ask asks at away
    be because become been before being below better between both but by can cannot come comes could did do does doing done down due
    during each eight either eleven else end enough even ever every few first five for four from further get gets give given gives go
    goes going had has have having he her here hers him his how however i if in instead into is it it's its itself just keep keeps last
    later least less let like made make makes many may me might more most much must my near need needs never new next nine no none nor
    not nothing now of off often on once one only onto or other others our ours out over own per put quite rather same say says see seen
    set seven she should since six so some soon still such take takes ten than that that's the their theirs them themselves then there
    therefore these they thing things this those three through thus to together too toward towards twelve two under until up upon us use
    used uses very via was way we well were what whatever when where whether which while who whom whose why will with within without
    would yet you your yours
"""
_STOP = frozenset(_STOP_WORDS.split())

Phrases = frozenset[str]  # of one document


@dataclass(frozen=True, kw_only=True, slots=True)
class Keyword:
    """A phrase in `hits` of a group's documents, `before` in those of the base; `weight` > 0 where it comes, < 0 where it goes."""

    term: str
    before: int
    hits: int
    weight: float


def phrases(text: str, names: Collection[str] = ()) -> Phrases:
    """The phrases of a text, in small letters.

    Stop words, words with a digit, names of months and days, and `names` (words in small letters) are in none; "zero-trust" is one word.
    """
    found: set[str] = set()
    for part in _BREAK.split(text.casefold()):
        run: list[str] = []
        for word in [*_WORD.findall(part), ""]:
            if word and word not in _STOP and word not in CALENDAR and word not in names and not _DIGIT.search(word):
                run.append(word)
                continue
            found.update(" ".join(run[at : at + size]) for size in range(1, WORDS + 1) for at in range(len(run) - size + 1))
            run = []
    return frozenset(term for term in found if len(term) > 1)


def shares(documents: Sequence[Phrases]) -> Mapping[str, float]:
    """The share of the documents that each phrase is in."""
    counts = Counter(term for document in documents for term in document)
    return {term: count / len(documents) for term, count in counts.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """In how many of so many documents of one or more runs each phrase is; `size` is how many documents one run has.

    `less` are documents that are left out.
    """

    counts: Mapping[str, int]
    documents: int
    size: int
    less: Usage | None = None

    @classmethod
    def of(cls, documents: Iterable[Phrases]) -> Usage:
        """What the documents of one run say."""
        known = list(documents)
        return cls(counts=Counter(term for document in known for term in document), documents=len(known), size=len(known))

    @classmethod
    def of_all(cls, runs: Sequence[Usage]) -> Usage:
        """What several runs say, the first of which tells how large one is."""
        counts = Counter[str]()
        for run in runs:
            counts.update(run.counts)
        return cls(counts=counts, documents=sum(run.documents for run in runs), size=runs[0].size)

    def without(self, some: Usage) -> Usage:
        """The same without one of the runs."""
        return Usage(counts=self.counts, documents=self.documents, size=self.size, less=some)

    def rarity(self, term: str) -> float:
        """Inverse document frequency: 1 where all documents have the phrase, 1 + ln(1 + size) where none has, however many runs there are.

        1 + ln((1 + 1 / size) / (share + 1 / size)): of one run that is 1 + ln((1 + documents) / (1 + those with the phrase)).
        """
        count, documents, size = self.counts.get(term, 0), self.documents, max(self.size, 1)
        if self.less is not None:
            count, documents = count - self.less.counts.get(term, 0), documents - self.less.documents
        share = count / documents if documents else 0.0
        return 1 + math.log((1 + 1 / size) / (share + 1 / size))


def weights(base: Sequence[Phrases], other: Sequence[Phrases], usual: Mapping[str, float], usage: Usage) -> Mapping[str, float]:
    """How much each phrase tells `other` from what is usual: > 0 where it comes, < 0 where it goes; what tells nothing is left out.

    `usual` is the share of documents that a phrase is in otherwise: that in `base`, or the mean of several runs' where there are more; and
    `usage` that of all that is usual.  A phrase must have moved from `base` in that direction too.
    """
    now, before = shares(other), shares(base)
    found = {}
    for term in now.keys() | usual.keys():
        share = now.get(term, 0.0)
        moved = share - usual.get(term, 0.0)
        if moved * (share - before.get(term, 0.0)) > 0:
            found[term] = moved * usage.rarity(term)
    return found


def reach(weights: Mapping[str, float]) -> tuple[float, float]:
    """The largest weight of what comes and of what goes, both as positive numbers; 0 where there is none."""
    return max(weights.values(), default=0.0), -min(weights.values(), default=0.0)


def changed(
    base: Sequence[Phrases], other: Sequence[Phrases], weights: Mapping[str, float], most: int
) -> tuple[tuple[Keyword, ...], tuple[Keyword, ...]]:
    """(what comes, what goes) in `other`, at most `most` each, by weight, ties by the phrase.

    A phrase that says what a heavier or longer one says, in as many documents, is left out for that.
    """
    before, hits = (Counter(term for document in documents for term in document) for documents in (base, other))
    comes: list[Keyword] = []
    goes: list[Keyword] = []
    for term in sorted(weights, key=lambda term: (-abs(weights[term]), -term.count(" "), term)):
        kept = comes if weights[term] > 0 else goes
        if len(kept) < most and not any(_within(term, before[term], hits[term], one) for one in kept):
            kept.append(Keyword(term=term, before=before[term], hits=hits[term], weight=weights[term]))
        if len(comes) >= most and len(goes) >= most:
            break
    return tuple(comes), tuple(goes)


def _within(term: str, before: int, hits: int, other: Keyword) -> bool:
    """Whether a phrase says what one that stands already says: the same words or two of them, in as many documents."""
    mine = set(term.split())
    shared = len(mine & set(other.term.split()))
    return (before, hits) == (other.before, other.hits) and (shared == len(mine) or shared > 1)
