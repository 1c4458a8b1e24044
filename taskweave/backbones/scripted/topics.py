"""What is a task about, and which field of work does a role belong to?

`field_of(role)` finds the field (its cases, metrics, angles) by the role's title, else by its subjects and skills; `topic(title)` reads
the subject back out of a task's title; `own_subject(role, text)` finds which of a role's subjects a text names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, TypeVar

from taskweave.backbones.scripted import wording
from taskweave.backbones.scripted.grammar import Draft, load
from taskweave.backbones.scripted.known import Goal
from taskweave.records import Json

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with some of the items, why, and what to do: phrases that belong together."""

    flaw: str
    cause: str
    remedy: str
    text: str  # all three


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of thing that a field looks at: plural, singular, where it comes from, words that call for it, problems."""

    items: str
    item: str
    source: str
    calls: frozenset[str]
    problems: tuple[Problem, ...]
    many: tuple[int, int]  # how many there usually are
    text: str  # all that its problems say


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    low: float
    high: float
    better: str  # lower | higher


@dataclass(frozen=True, slots=True)
class Field:
    """One field of work, such as software or finance."""

    name: str
    titles: tuple[str, ...]
    words: frozenset[str]
    metrics: tuple[Metric, ...]
    cases: tuple[Case, ...]
    lines: Mapping[str, tuple[str, ...]]  # angles, rules, checks, outputs, aims: one phrase a line
    schema: str


def lines(block: object) -> tuple[str, ...]:
    return tuple(line.strip() for line in str(block or "").splitlines() if line.strip())


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
        " ".join(problem.text for problem in problems),
    )


def _metric(line: str) -> Metric:
    name, unit, low, high, better = (piece.strip() for piece in line.split("::"))
    return Metric(name, unit, float(low), float(high), better)


@lru_cache(maxsize=1)
def fields() -> dict[str, Field]:
    known = {}
    for name, raw in sorted(load().tables["fields"].items()):
        phrases = {key: lines(value) for key, value in raw.items() if key not in ("cases", "metrics", "titles", "words", "schema")}
        known[name] = Field(
            name,
            lines(raw["titles"]),
            frozenset(str(raw["words"]).split()),
            tuple(map(_metric, lines(raw["metrics"]))),
            tuple(map(_case, raw["cases"])),
            phrases,
            str(raw.get("schema", "office")),
        )
    return known


@lru_cache(maxsize=1024)
def _field(title: str, vocabulary: tuple[str, ...]) -> Field:
    low = f" {title.lower()} "
    best: tuple[int, str] | None = None
    for name, candidate in fields().items():
        for key in candidate.titles:
            if re.search(rf"\b{re.escape(key)}", low) and (best is None or (-len(key), name) < best):
                best = (-len(key), name)
    if best is not None:
        return fields()[best[1]]
    heard = [word for phrase in vocabulary for word in wording.content_words(phrase)]
    scores = sorted((-sum(word in candidate.words for word in heard), name) for name, candidate in fields().items())
    return fields()[scores[0][1]] if scores[0][0] < 0 else fields()["office"]


@lru_cache(maxsize=8192)
def stems(text: str) -> frozenset[str]:
    """The content words of a text, cut so that plural and singular, noun and verb meet."""
    return frozenset(word.rstrip("s")[:6] for word in wording.content_words(text))


@lru_cache(maxsize=4096)
def _wanted(own: str, near: str, others: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    wanted = stems(own)
    return wanted, stems(near) - wanted, (frozenset().union(*map(stems, others)) if others else frozenset()) - wanted


def ranked(
    random: Random, options: Sequence[T], text: Callable[[T], str], own: str, near: str, others: tuple[str, ...], spread: float = 1.6
) -> list[T]:
    """The options, the one that best suits the subject `own` first.

    Words in common with it count, as do those with `near`; words of the role's other subjects count against.
    `spread` is how much chance may overrule.
    """
    wanted, close, foreign = _wanted(own, near, others)
    scored = []
    for position, option in enumerate(options):
        heard = stems(text(option))
        scored.append((1.2 * len(heard & foreign) - 2.0 * len(heard & wanted) - len(heard & close) - spread * random.random(), position))
    return [options[position] for _, position in sorted(scored)]


@lru_cache(maxsize=4096)
def suited(phrases: tuple[str, ...], subject: str) -> tuple[str, ...]:
    """The phrases that may be said of a subject: those without tags (`phrase :: words`) and those whose tags name a word of it."""
    wanted = stems(subject)
    pairs = [(phrase.strip(), tags) for phrase, _, tags in (line.partition("::") for line in phrases)]
    return tuple(phrase for phrase, tags in pairs if not tags or wanted & stems(tags))


def possible(activities: Sequence[str], subject: str) -> list[str]:
    """The activities that a subject can take: nobody recruits with a leave calendar.  All of them where none can."""
    only: Mapping[str, str] = load().tables["only_for"]
    wanted = stems(subject)
    return [activity for activity in activities if activity not in only or wanted & stems(only[activity])] or list(activities)


def field_of(role: Mapping[str, Json] | str) -> Field:
    """The field of work of a role, given as a title or as the ROLE of a request."""
    if isinstance(role, str):
        return _field(role, ())
    return _field(str(role["role"]), (*role.get("subjects", ()), *role.get("skills", ())))


def bare_role(title: str) -> dict[str, Json]:
    """A role of which nothing but the title is known."""
    return {"role": title, "responsibilities": [], "skills": [], "activities": [], "artifacts": [], "subjects": []}


def bears_on(goal: Goal, subject: str, role: Mapping[str, Json]) -> float:
    """How directly work of a role on a subject bears on a goal: by words in common."""
    wanted = stems(f"{goal.text} {goal.kpi} {goal.short}")
    nearby = frozenset().union(*(stems(str(line)) for line in (*role["responsibilities"], *role["skills"])))
    return 2.0 * len(wanted & stems(subject)) + 0.4 * min(len(wanted & nearby), 4)


def other_subjects(role: Mapping[str, Json], subject: str) -> tuple[str, ...]:
    return tuple(str(s) for s in role["subjects"] if s != subject)


@lru_cache(maxsize=1)
def _general() -> tuple[Case, ...]:
    return tuple(map(_case, load().tables["general_cases"]))


@lru_cache(maxsize=8192)
def _called(work: str, own: str) -> tuple[Case, ...]:
    """The cases that the words of a subject call for: of the field, else general ones by the subject's head word, else the last resort."""
    heard = {word.rstrip("s") for word in wording.content_words(own)}
    for cases, words in ((fields()[work].cases, heard), (_general(), set(wording.head_word(own))), (_general(), heard)):
        most = max(len(case.calls & words) for case in cases)
        if most:
            return tuple(case for case in cases if len(case.calls & words) == most)
    return _general()[-1:]


def best_case(draft: Draft, work: Field, own: str) -> Case:
    """A case that suits the subject."""
    chosen: Case = draft.pick(_called(work.name, own))
    return chosen


def own_subject(subjects: Sequence[str], *texts: str) -> str | None:
    """The longest of a role's subjects that one of the texts names, texts in order of weight."""
    for text in texts:
        low = text.lower()
        found = [subject for subject in subjects if subject.lower() in low]
        if found:
            return max(found, key=lambda s: (len(s), s))
    return None


@lru_cache(maxsize=1)
def _openings() -> tuple[str, ...]:
    """How scripted titles begin, up to their subject, longest first."""
    starts = {line.partition("{S}")[0] for block in load().tables["titles"].values() for line in lines(block)}
    plain = {option.lower() for start in starts for option in _spelled(start)}
    return tuple(sorted(plain, key=lambda s: (-len(s), s)))


def _spelled(text: str) -> list[str]:
    """Every reading of a text with one level of [a|b]."""
    found = re.search(r"\[([^\]]*)\]", text)
    if not found:
        return [text]
    return [out for option in found.group(1).split("|") for out in _spelled(text[: found.start()] + option + text[found.end() :])]


@lru_cache(maxsize=1)
def _angle_start() -> re.Pattern[str]:
    starting = [*lines(load().tables["angles"])]
    for known in fields().values():
        starting += known.lines.get("angles", ())
    starting = [line.partition("::")[0].strip() for line in starting]
    starting += [line.partition("{S}")[2].strip() for block in load().tables["titles"].values() for line in lines(block)]
    starts = set()
    for line in starting:
        for reading in _spelled(line):
            words = [re.escape(word) for word in reading.split()[:2] if "{" not in word]
            if words:
                starts.add(" ".join(words))
    ordered = sorted(starts, key=lambda s: (-len(s), s))
    return re.compile(r",? (?:" + "|".join(ordered) + r")\b|[:;(]| (?:so that|in order to|ahead of|based on|before|after) ")


@lru_cache(maxsize=8192)
def topic(title: str) -> str:
    """The noun phrase that a title is about: 'Analyse the churn cohort table ahead of the review' -> 'churn cohort table'."""
    text = title.replace("_", " ").strip().rstrip(".")
    low = text.lower()
    head, colon, tail = text.partition(": ")
    if colon and len(head.split()) > 3 and any(tail.lower().startswith(start) for start in _openings()):
        text, low = tail, tail.lower()
    for start in _openings():
        if start and low.startswith(start):
            text = text[len(start) :]
            break
    else:
        first, _, rest = text.partition(" ")
        if rest and first.lower().rstrip("e") in _VERBS:
            text = rest
    found = _angle_start().search(text)
    if found and found.start() > 2:
        text = text[: found.start()]
    text = re.sub(r"^(?:the|a|an|our)\s+", "", text, flags=re.IGNORECASE).strip(" ,.")
    words = text.split()[:9]
    if len(words) > 1 and sum(word[:1].isupper() for word in words) > len(words) / 2:  # a title in capitals, as models like them
        words = [wording.lower_first(word) for word in words]
    return wording.lower_first(" ".join(words)) or wording.lower_first(title)


_VERBS = frozenset(
    verb.rstrip("e")
    for verb in wording.listed(
        """analyse analyze conduct monitor optimize optimise launch create enhance refine review engage initiate revise design implement
        build test deploy support research write plan train recruit negotiate audit report prepare draft check run collect define update
        improve respond answer set fix assess evaluate develop document measure migrate investigate identify map compare establish
        organize organise coordinate present publish produce verify validate"""
    )
)
