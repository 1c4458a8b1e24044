"""The fields of work of the phrase banks: what each looks at, what may be wrong with it, what is measured, and where a text names these.

`all_fields()` gives them by name; `flaws_in(text)`, `measured_in(goal)` and `case_by_source(text, field)` find what a text speaks of.
Knows nothing of tasks, titles or roles.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from taskweave.backbones.scripted.grammar import load
from taskweave.backbones.scripted.wording import listed, stems

T = TypeVar("T")


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """What is wrong with some of the items, why, and what to do: phrases that belong together."""

    flaw: str
    cause: str
    remedy: str
    text: str  # all three


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A kind of thing that a field looks at: plural, singular, where it comes from, words that call for it, problems."""

    items: str
    item: str
    source: str
    calls: frozenset[str]
    problems: tuple[Problem, ...]
    many: tuple[int, int]  # how many there usually are
    texts: tuple[str, ...]  # what its problems say, one by one
    field: str = ""  # the field of work that it belongs to; none for a general one
    mark: frozenset[str] = frozenset()  # the stems that tell its items from those of the field's other cases

    @property
    def people(self) -> bool:
        return self.items in _PEOPLE

    @property
    def passing(self) -> bool:
        """Whether its items happen, such as interviews, and cannot be put right afterwards."""
        return self.items in _PASSING


_PASSING = frozenset(
    listed(
        """alerts answers applications cases changeovers checks comments complaints deliveries deployments interviews jobs moves
        observations participants questions readings recipients remarks reports requests reviews sessions stops talks trials visitors"""
    )
) | {"form submissions", "page views", "new customers", "restore attempts", "test runs"}
_PEOPLE = frozenset(("participants", "recipients", "visitors", "contacts", "new customers"))


@dataclass(frozen=True, slots=True, eq=False)
class Flaw:
    """A flaw as a text puts it, the case that it is of, and the ways of putting what remedies it."""

    text: str
    case: Case
    remedies: tuple[str, ...]
    problem: Problem


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    name: str
    unit: str
    low: float
    high: float
    better: str  # lower | higher
    tags: str = ""  # the items and subjects that it measures; none for every case of its field


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One field of work, such as software or finance."""

    name: str
    titles: tuple[str, ...]
    words: frozenset[str]
    metrics: tuple[Metric, ...]
    cases: tuple[Case, ...]
    lines: Mapping[str, tuple[str, ...]]  # angles, rules, checks, outputs, aims: one phrase a line


@lru_cache(maxsize=512)
def lines(block: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in block.splitlines() if line.strip())


def _singular(plural: str) -> str:
    head, _, tail = plural.partition(" of ")
    word = (
        head[:-3] + "y" if head.endswith("ies") else head[:-2] if head.endswith(("sses", "xes", "ches", "shes")) else head.removesuffix("s")
    )
    return f"{word} of {tail}" if tail else word


def _case(raw: Mapping[str, Any]) -> Case:
    problems = []
    for line in lines(raw["problems"]):
        flaw, cause, remedy = (piece.strip() for piece in line.split("::"))
        problems.append(Problem(flaw, cause, remedy, f"{flaw} {cause} {remedy}"))
    items = str(raw["items"])
    few, most = (int(number) for number in str(raw.get("many", "60-480")).split("-"))
    return Case(
        items,
        str(raw.get("item") or _singular(items)),
        str(raw["source"]),
        frozenset(word.rstrip("s") for word in str(raw.get("for", "")).split()),
        tuple(problems),
        (few, most),
        tuple(problem.text for problem in problems),
    )


def _metric(line: str) -> Metric:
    name, unit, low, high, better, *tags = (piece.strip() for piece in line.split("::"))
    return Metric(name, unit, float(low), float(high), better, " ".join(tags))


def _cases(name: str, raw: Sequence[Mapping[str, Any]]) -> tuple[Case, ...]:
    found = tuple(map(_case, raw))
    heard = [stems(case.items) for case in found]
    marks = [own - frozenset().union(*(other for other in heard if other is not own)) for own in heard]
    return tuple(replace(case, field=name, mark=mark or own) for case, mark, own in zip(found, marks, heard, strict=True))


@lru_cache(maxsize=1)
def all_fields() -> dict[str, Field]:
    known = {}
    for name, raw in sorted(load().tables["fields"].items()):
        phrases = {key: lines(value) for key, value in raw.items() if key not in ("cases", "metrics", "titles", "words")}
        known[name] = Field(
            name,
            lines(raw["titles"]),
            frozenset(str(raw["words"]).split()),
            tuple(map(_metric, lines(raw["metrics"]))),
            _cases(name, raw["cases"]),
            phrases,
        )
    return known


@lru_cache(maxsize=1)
def general_cases() -> tuple[Case, ...]:
    return tuple(map(_case, load().tables["general_cases"]))


@lru_cache(maxsize=1)
def incident_cases() -> tuple[Case, ...]:
    """What an answer to an incident looks at, whatever happened."""
    return tuple(map(_case, load().tables["incident_cases"]))


@lru_cache(maxsize=1024)
def names_of(metrics: tuple[Metric, ...]) -> tuple[str, ...]:
    return tuple(metric.name for metric in metrics)


@lru_cache(maxsize=1)
def _flaws() -> Mapping[str, Mapping[str, tuple[Flaw, ...]]]:
    """Every way of putting each flaw of the banks, by its first word and its second."""
    found: dict[str, dict[str, list[Flaw]]] = {}
    for case in (*(case for known in all_fields().values() for case in known.cases), *general_cases(), *incident_cases()):
        for problem in case.problems:
            for text in spelled(problem.flaw):
                first, second = text.split()[:2]
                found.setdefault(first, {}).setdefault(second, []).append(Flaw(text, case, tuple(spelled(problem.remedy)), problem))
    return {first: {second: tuple(flaws) for second, flaws in seconds.items()} for first, seconds in found.items()}


@lru_cache(maxsize=1024)
def flaws_in(text: str) -> tuple[Flaw, ...]:
    """The flaws of the banks that a text names, about in its order."""
    words, flaws = text.split(), _flaws()
    starts = [(first, second) for first, second in zip(words, words[1:], strict=False) if first in flaws and second in flaws[first]]
    found = [flaw for first, second in dict.fromkeys(starts) for flaw in flaws[first][second] if flaw.text in text]
    return tuple(dict.fromkeys([*found, *(flaw for flaw in _short_flaws() if flaw.text in text)]))


@lru_cache(maxsize=1)
def _short_flaws() -> tuple[Flaw, ...]:
    """The flaws of two words, whose second one may stand before a full stop."""
    return tuple(flaw for seconds in _flaws().values() for flaws in seconds.values() for flaw in flaws if flaw.text.count(" ") < 2)


def spelled(text: str) -> list[str]:
    """Every reading of a text with one level of [a|b]."""
    found = re.search(r"\[([^\]]*)\]", text)
    if not found:
        return [text]
    return [out for option in found.group(1).split("|") for out in spelled(text[: found.start()] + option + text[found.end() :])]


def _by_longest_word(named: Iterable[tuple[str, T]]) -> Mapping[str, tuple[tuple[str, int, T], ...]]:
    """What is found by a phrase, with the phrase and its place among all, by the longest word of the phrase."""
    found: dict[str, list[tuple[str, int, T]]] = {}
    for place, (phrase, value) in enumerate(named):
        found.setdefault(max(_WORD.findall(phrase), key=len), []).append((phrase, place, value))
    return {word: tuple(entries) for word, entries in found.items()}


def _named(low: str, index: Mapping[str, tuple[tuple[str, int, T], ...]]) -> list[tuple[str, int, T]]:
    """The entries whose phrase stands in a text in lower case."""
    return [entry for word in _WORD.findall(low) if word in index for entry in index[word] if entry[0] in low]


_WORD = re.compile(r"\w+")


@lru_cache(maxsize=1)
def _metrics() -> Mapping[str, tuple[tuple[str, int, Metric], ...]]:
    """The metrics of all fields whose names cannot be meant by chance."""
    return _by_longest_word((metric.name, metric) for known in all_fields().values() for metric in known.metrics if len(metric.name) > 9)


@lru_cache(maxsize=1)
def _sources() -> Mapping[str, tuple[tuple[str, int, Case], ...]]:
    """The cases of all fields, by where their items come from."""
    return _by_longest_word((case.source, case) for known in all_fields().values() for case in known.cases)


def measured_in(goal: str) -> Metric | None:
    """The metric that a goal names, of whatever field; of several the one with the longest name."""
    named = _named(goal.lower(), _metrics())
    return min(named, key=lambda entry: (-len(entry[0]), entry[1]))[2] if named else None


def case_by_source(low: str, work: Field) -> Case | None:
    """The first case whose source a text in lower case names, one of the field `work` before others."""
    named = _named(low, _sources())
    return min(named, key=lambda entry: (entry[2].field != work.name, entry[1]))[2] if named else None
