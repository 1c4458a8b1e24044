"""How varied are the texts of a run, and do they say what they build on?  Entry points: the functions; all are pure.

Measures carry their denominators and are None where there is none.  Knows nothing of the pool: it is handed texts, titles and names.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

GRAM = 4  # words
_WORD = re.compile(r"\w+")
_MONTHS = "january february march april may june july august september october november december"
_SHORT = "jan feb mar apr jun jul aug sep sept oct nov dec"  # "may" is above
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
CALENDAR = frozenset(f"{_MONTHS} {_SHORT} {_DAYS}".split())
_NUMBERED = re.compile(r"\w*\d\w*")


class Share(NamedTuple):
    """`hits` of `of`."""

    hits: int
    of: int

    @property
    def value(self) -> float | None:
        return self.hits / self.of if self.of else None


class Overlap(NamedTuple):
    """The mean overlap of so many pairs; None without a pair."""

    mean: float | None
    pairs: int


class Nearest(NamedTuple):
    """95th percentiles (nearest rank) over so many texts of what each has in common with the text most like it; None without any.

    `contained`: the share of a text's own 4-grams that the other has; `jaccard`: shared of all 4-grams of both.
    """

    contained: float | None
    jaccard: float | None
    texts: int


# ---------------------------------------------------------------- titles
def stripped(title: str, names: Iterable[str] = ()) -> str:
    """What is left of a title without digits, dates and names: small words joined by blanks.

    `names` are full names of people and organizations; each of their words goes too.  Words with a digit in them (W12, Q3, 2026-03-04),
    month and week-day names go.
    """
    return _stripped(title, _name_words(names))


def _name_words(names: Iterable[str]) -> frozenset[str]:
    return frozenset(word.casefold() for name in names for word in _WORD.findall(name))


def _stripped(title: str, names: frozenset[str]) -> str:
    words = _WORD.findall(_NUMBERED.sub(" ", title).casefold())
    return " ".join(word for word in words if word not in CALENDAR and word not in names)


def distinct_titles(titles: Sequence[str], names: Iterable[str] = ()) -> Share:
    """How many of the titles are distinct once digits, dates and names are stripped."""
    words = _name_words(names)
    return Share(len({_stripped(title, words) for title in titles}), len(titles))


# ---------------------------------------------------------------- shared 4-grams
Grams = frozenset[tuple[str, ...]]


def grams(text: str) -> Grams:
    """The distinct sequences of 4 words, in small letters."""
    words = _WORD.findall(text.casefold())
    return frozenset(zip(*(words[n:] for n in range(GRAM)), strict=False))


def pair_overlap(texts: Sequence[tuple[str, str]], *, pairs: int = 2_000, seed: int = 1) -> Overlap:
    """The mean share of 4-grams that two texts of different groups have in common, over `pairs` drawn by seed.

    `texts` are (group, text): the group of a deliverable is its task.  Of a pair: shared / those of the smaller one, so that a short text
    inside a long one counts in full.  Texts of fewer than 4 words are left out.
    """
    known = [(group, found) for group, text in texts if (found := grams(text))]
    if len({group for group, _ in known}) < 2:
        return Overlap(None, 0)
    rng = random.Random(f"{seed}:pairs")
    overlaps: list[float] = []
    while len(overlaps) < pairs:
        (group, one), (other_group, other) = rng.choice(known), rng.choice(known)
        if group != other_group:
            overlaps.append(len(one & other) / min(len(one), len(other)))
    return Overlap(math.fsum(overlaps) / pairs, pairs)


def nearest_neighbours(texts: Sequence[tuple[str, str]]) -> Nearest:
    """For each text the one of another group most like it, exactly, through an inverted index; (group, text) as in `pair_overlap`."""
    known = [(group, found) for group, text in texts if (found := grams(text))]
    if len({group for group, _ in known}) < 2:
        return Nearest(None, None, 0)
    # Equal texts are one entry: a run that repeats itself must not take longest to measure.
    entries: dict[Grams, set[str]] = defaultdict(set)
    for group, found in known:
        entries[found].add(group)
    index = _Index(list(entries), list(entries.values()))
    best = {(group, found): score for place, (found, groups) in enumerate(entries.items()) for group, score in index.nearest(place, groups)}
    scores = [best[entry] for entry in known]
    return Nearest(_percentile([c for c, _ in scores]), _percentile([j for _, j in scores]), len(scores))


class _Index:
    """Which texts have a 4-gram; texts are distinct, each of one or more groups."""

    def __init__(self, texts: Sequence[Grams], groups: Sequence[set[str]]) -> None:
        self.texts, self.groups = texts, groups
        self.sizes = [len(text) for text in texts]
        self.smallest = min(self.sizes)
        self.places: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for gram in text:
                self.places[gram].append(place)

    def nearest(self, place: int, groups: Iterable[str]) -> Iterator[tuple[str, tuple[float, float]]]:
        """(group, (contained, jaccard)): the best of all texts of another group than that one."""
        size = self.sizes[place]
        shared = Counter(itertools.chain.from_iterable(self.places[gram] for gram in self.texts[place]))
        most_first = shared.most_common()
        for group in groups:
            contained = jaccard = 0.0
            for other, count in most_first:
                if count / (size + self.smallest - count) <= jaccard:
                    break  # no text that shares less can be more alike
                if self.groups[other] != {group}:
                    contained = max(contained, count / size)
                    jaccard = max(jaccard, count / (size + self.sizes[other] - count))
            yield group, (contained, jaccard)


def _percentile(values: Sequence[float], share: float = 0.95) -> float:
    """Nearest rank: the smallest value that at least `share` of the values do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


# ---------------------------------------------------------------- naming what is used
class Built(NamedTuple):
    """A text, title and author of everything it is built on, and who wrote it or a part of it."""

    text: str
    sources: tuple[tuple[str, str], ...]  # (title, author's name)
    own: frozenset[str] = frozenset()


def naming_sources(texts: Sequence[Built]) -> Share:
    """How many of the texts that are built on something name at least one of it, by title or by author.

    Case and white space do not matter; a name or title must stand as whole words.  Who wrote a text is named for that, and tells nothing
    of a source.  Texts without sources are no part of it.
    """
    built = [text for text in texts if text.sources]
    return Share(sum(_names_any(text) for text in built), len(built))


def _names_any(built: Built) -> bool:
    text = _flat(built.text)
    names = [part for title, author in built.sources for part in (title, "" if author in built.own else author)]
    return any(name and f" {name} " in text for name in [_flat(part).strip() for part in names])


def _flat(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
