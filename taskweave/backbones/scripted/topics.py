"""What is a task about, and which field of work does a role belong to?

`field_of(role)` finds the field (its cases, metrics, angles) by the role's title, else by its subjects and skills; `topic(title)` reads
the subject back out of a task's title; `own_subject(role, text)` finds which of a role's subjects a text names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import TypeVar
from zlib import crc32

from taskweave.backbones.scripted import wording
from taskweave.backbones.scripted.fields import Case, Field, Metric, Problem, all_fields, case_by_source, general_cases, lines, spelled
from taskweave.backbones.scripted.grammar import Slot, load
from taskweave.backbones.scripted.known import Goal, Role, bare_role
from taskweave.backbones.scripted.wording import stems

T = TypeVar("T")


def _begins_word(key: str, text: str) -> bool:
    """Whether `key` stands in the text at the beginning of a word."""
    at = text.find(key)
    while at >= 0:
        if at == 0 or not (text[at - 1].isalnum() or text[at - 1] == "_"):
            return True
        at = text.find(key, at + 1)
    return False


@lru_cache(maxsize=2048)
def _stems_of_all(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*map(stems, texts))


@lru_cache(maxsize=4096)
def _wanted(own: str, near: str, others: tuple[str, ...]) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    wanted = stems(own)
    return wanted, stems(near) - wanted, _stems_of_all(others) - wanted


@lru_cache(maxsize=4096)
def _faults(texts: tuple[str, ...], own: str, near: str, others: tuple[str, ...]) -> tuple[float, ...]:
    """How little each of the texts suits the subject `own`."""
    wanted, close, foreign = _wanted(own, near, others)
    return tuple(1.2 * len(heard & foreign) - 2.0 * len(heard & wanted) - len(heard & close) for heard in map(stems, texts))


def ranked(
    random: Random, options: Sequence[T], texts: tuple[str, ...], own: str, near: str, others: tuple[str, ...], spread: float = 1.6
) -> list[T]:
    """The options, the one whose text best suits the subject `own` first.

    Words in common with it count, as do those with `near`; words of the role's other subjects count against.
    `spread` is how much chance may overrule.
    """
    roll = random.random
    scored = [(fault - spread * roll(), position) for position, fault in enumerate(_faults(texts, own, near, others))]
    return [options[position] for _, position in sorted(scored)]


@lru_cache(maxsize=4096)
def suited(phrases: tuple[str, ...], subject: str) -> tuple[str, ...]:
    """The phrases that may be said of a subject: those without tags (`phrase :: words`) and those whose tags name a word of it."""
    wanted = stems(subject)
    pairs = [(phrase.strip(), tags) for phrase, _, tags in (line.partition("::") for line in phrases)]
    return tuple(phrase for phrase, tags in pairs if not tags or wanted & stems(tags))


@lru_cache(maxsize=4096)
def possible(activities: tuple[str, ...], subject: str) -> tuple[str, ...]:
    """The activities that a subject can take: nobody recruits with a leave calendar.  All of them where none can."""
    only: Mapping[str, str] = load().tables["only_for"]
    wanted = stems(subject)
    return tuple(activity for activity in activities if activity not in only or wanted & stems(only[activity])) or activities


@lru_cache(maxsize=1024)
def field_of(role: Role) -> Field:
    """The field of work of a role: by its title, else by its subjects and skills."""
    low = f" {role.title.lower()} "
    best: tuple[int, str] | None = None
    for name, candidate in all_fields().items():
        for key in candidate.titles:
            if _begins_word(key, low) and (best is None or (-len(key), name) < best):
                best = (-len(key), name)
    if best is not None:
        return all_fields()[best[1]]
    heard = [word for phrase in (*role.subjects, *role.skills) for word in wording.content_words(phrase)]
    scores = sorted((-sum(word in candidate.words for word in heard), name) for name, candidate in all_fields().items())
    return all_fields()[scores[0][1]] if scores[0][0] < 0 else all_fields()["office"]


def bears_on(goal: Goal, subject: str, role: Role) -> float:
    """How directly work of a role on a subject bears on a goal: by words in common."""
    wanted = stems(goal.words)
    return 2.0 * len(wanted & stems(subject)) + 0.4 * min(len(wanted & _doing(role)), 4)


@lru_cache(maxsize=1024)
def _doing(role: Role) -> frozenset[str]:
    """The stems of what a role does and can."""
    return _stems_of_all((*role.responsibilities, *role.skills))


@lru_cache(maxsize=4096)
def other_subjects(role: Role, subject: str) -> tuple[str, ...]:
    return tuple(own for own in role.subjects if own != subject)


@lru_cache(maxsize=1)
def _weights() -> dict[str, float]:
    """How much a word says about which case is meant: the more cases it calls for, the less."""
    calls = [word for known in all_fields().values() for case in known.cases for word in case.calls]
    return {word: 1 / calls.count(word) ** 0.5 for word in set(calls)}


@lru_cache(maxsize=1)
def _callers() -> Mapping[str, tuple[tuple[int, Case], ...]]:
    """The cases of all fields with their places, by each word that calls for them."""
    found: dict[str, list[tuple[int, Case]]] = {}
    for place, case in enumerate(case for known in all_fields().values() for case in known.cases):
        for word in case.calls:
            found.setdefault(word, []).append((place, case))
    return {word: tuple(cases) for word, cases in found.items()}


@lru_cache(maxsize=8192)
def _called(works: tuple[str, ...], subject: str) -> tuple[Case, ...]:
    """The cases that a subject calls for, of whatever field; those of the fields `works` first where several would do.

    Else general ones by the subject's head word, else what a single word of it calls for, else the last resort.
    """
    heard = {word.rstrip("s") for word in wording.content_words(subject)}
    head = {word.rstrip("s") for word in wording.head_word(subject)}
    weights = _weights()
    scored: list[tuple[float, bool, Case]] = []
    calling = {place: case for word in heard for place, case in _callers().get(word, ())}
    for _, case in sorted(calling.items()):
        common = case.calls & heard
        score = sum(weights[word] * (1.6 if word in head else 1.0) for word in sorted(common))
        close = len(common) > 1 or case.field in works
        sure = close or any(weights[word] == 1 and (word in head or len(word) > 7) for word in common)
        scored.append((score * (3.0 if case.field in works else 1.0) + (10.0 if close else 0.0), sure, case))
    most = max((score for score, sure, _ in scored if sure), default=0.0)
    if most:
        return tuple(case for score, sure, case in scored if sure and score == most)
    by_head = tuple(case for case in general_cases() if case.calls & head)
    if by_head:
        return by_head
    most = max((score for score, _, _ in scored), default=0.0)
    if most:
        return tuple(case for score, _, case in scored if score == most)
    return general_cases()[-1:]


@lru_cache(maxsize=8192)
def best_case(works: tuple[str, ...], subject: str) -> Case:
    """The case that suits a subject in the fields where it may be at home: the same for all who ask with these."""
    options = _called(works, subject)
    return options[crc32(subject.encode()) % len(options)]


@lru_cache(maxsize=4096)
def case_told(low: str, work: Field, works: tuple[str, ...], subject: str) -> Case | None:
    """The case whose source, or whose items, a text in lower case names; of several, one that the subject calls for."""
    if named := case_by_source(low, work):
        return named
    told = [case for known in all_fields().values() for case in known.cases if f" {case.items} " in f" {low} "]
    called = [case for case in told if case in _called(works, subject)]
    at_home = [case for case in told if case.field in works]
    return next(iter(called or at_home), None)


@lru_cache(maxsize=8192)
def foreign(case: Case, *subjects: str) -> frozenset[Problem]:
    """The problems that speak of what other subjects call the case for, such as certificates where thresholds are looked at."""
    others = stems(" ".join(sorted(case.calls))) - stems(case.items) - _stems_of_all(subjects)
    return frozenset(problem for problem in case.problems if stems(problem.text) & others)


@lru_cache(maxsize=1024)
def homes(*roles: str) -> tuple[str, ...]:
    """The fields of work of some roles, by their titles."""
    return tuple(sorted({field_of(bare_role(role)).name for role in roles}))


@lru_cache(maxsize=1)
def _chance() -> frozenset[str]:
    """Stems that two texts have in common by chance: sorts of things, and words that go with any subject."""
    return frozenset().union(*(stems(" ".join(sorted(case.calls))) for case in general_cases()), stems(load().tables["chance_words"]))


@lru_cache(maxsize=8192)
def telling_stems(text: str) -> frozenset[str]:
    """The stems of a text that say what it is about."""
    return stems(text) - _chance()


@lru_cache(maxsize=8192)
def related(own: str, subject: str) -> bool:
    """Whether two subjects have to do with each other: they share a telling word, or what is counted for them is of one source or field."""
    if telling_stems(own) & telling_stems(subject):
        return True
    mine, theirs = _sure(own), _sure(subject)
    return any(case.source == other.source or case.field == other.field for case in mine for other in theirs)


@lru_cache(maxsize=8192)
def _sure(subject: str) -> tuple[Case, ...]:
    """The cases of fields that a subject calls for, of whatever field; none where it calls for a general one only."""
    return tuple(case for case in _called((), subject) if case.field)


@lru_cache(maxsize=8192)
def measures(case: Case, subject: str) -> tuple[Metric, ...]:
    """The metrics that say something about a case of a subject; none for a general case."""
    if not case.field:
        return ()
    wanted = case.mark | stems(subject)
    fitting = [metric for metric in all_fields()[case.field].metrics if not metric.tags or wanted & stems(metric.tags)]
    close = [metric for metric in fitting if stems(subject) & (stems(metric.name) | stems(metric.tags))]
    return tuple(close or fitting)


@lru_cache(maxsize=8192)
def checks(case: Case, subject: str) -> tuple[str, ...]:
    """What may be done to check a finding of a case: as its field does it, else in ways that suit anything that can be counted."""
    found = []
    if case.field:
        wanted = case.mark | stems(subject)
        for line in all_fields()[case.field].lines["checks"]:
            phrase, _, tags = line.partition("::")
            if not tags or wanted & stems(tags):
                found.append(phrase.strip())
    neutral = lines(load().tables["neutral_checks"])
    return tuple(found) if len(found) > 1 else (*found, *neutral)


@lru_cache(maxsize=1)
def _assisting() -> tuple[tuple[str, re.Pattern[str]], ...]:
    """How the goal of a subtask that serves a task reads: its first words, and a pattern with the subject `O` and the task's `T`."""
    found = []
    for rule, frames in load().rules.items():
        if rule.startswith("assist_"):
            for known in frames:
                seen: set[str] = set()
                pattern = "".join(_piece(part, seen) for part in known.parts)
                first = known.parts[0]
                found.append((first.lower() if isinstance(first, str) else "", re.compile(pattern, re.IGNORECASE)))
    return tuple(found)


def _piece(part: object, seen: set[str]) -> str:
    if isinstance(part, Slot):
        if part.filters:
            return r"\w*"
        if part.name in seen:
            return f"(?P={part.name})"
        seen.add(part.name)
        return f"(?P<{part.name}>.+?)"
    return re.escape(part) if isinstance(part, str) else ".*?"


@lru_cache(maxsize=8192)
def assisting_subject(goal: str, about: str) -> str | None:
    """The subject through which a subtask serves the task's subject, read out of its goal; None where it works on the latter itself."""
    low, wanted = goal.lower(), about.lower()
    for first, pattern in _assisting():
        if low.startswith(first) and (match := pattern.fullmatch(goal.strip().rstrip("."))):
            own = match.groupdict()
            if own.get("T", "").lower() == wanted and own.get("O"):
                return own["O"]
    return None


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
    plain = {option.lower() for start in starts for option in spelled(start)}
    return tuple(sorted(plain, key=lambda s: (-len(s), s)))


@lru_cache(maxsize=1)
def _angle_start() -> re.Pattern[str]:
    starting = [*lines(load().tables["angles"])]
    for known in all_fields().values():
        starting += known.lines.get("angles", ())
    starting = [line.partition("::")[0].strip() for line in starting]
    starting += [line.partition("{S}")[2].strip() for block in load().tables["titles"].values() for line in lines(block)]
    starts = set()
    for line in starting:
        for reading in spelled(line):
            words = [re.escape(word) for word in reading.split()[:2] if "{" not in word]
            if words:
                starts.add(" ".join(words))
    ordered = sorted(starts, key=lambda s: (-len(s), s))
    return re.compile(r",? (?:" + "|".join(ordered) + r")\b|[:;(]| (?:so that|in order to|ahead of|based on|before|after) ")


@lru_cache(maxsize=8192)
def topic(title: str) -> str:
    """The noun phrase that a title is about: 'Analyse the churn cohort table ahead of the review' -> 'churn cohort table'."""
    text = title.replace("_", " ").strip().rstrip(".")
    if answer := answer_in(text):
        return answer
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


def widened(subject: str, title: str, *others: str) -> str:
    """A subject read out of a title, with the words that follow it there as long as another text about it has them too."""
    low = title.lower().replace("_", " ")
    at = low.find(subject.lower())
    if at < 0 or not subject.strip():
        return subject
    found = subject
    for word in title[at + len(subject) :].split():
        longer = f"{found} {word}".rstrip(",.:;")
        if not any(longer.lower() in other.lower() for other in others):
            break
        found = longer
    return found if found.split()[-1].lower() not in wording.LINKING else subject


_ANSWER = re.compile(r'\b(?:answer|response|reply|exposure) to "[^"]+"')


def answer_in(title: str) -> str | None:
    """The subject of a task that answers an incident: 'answer to "Cross-Border Data Ban"'; None where it answers none."""
    found = _ANSWER.search(title) if '"' in title else None
    return found.group() if found else None


_VERBS = frozenset(
    verb.rstrip("e")
    for verb in wording.listed(
        """analyse analyze conduct monitor optimize optimise launch create enhance refine review engage initiate revise design implement
        build test deploy support research write plan train recruit negotiate audit report prepare draft check run collect define update
        improve respond answer set fix assess evaluate develop document measure migrate investigate identify map compare establish
        organize organise coordinate present publish produce verify validate"""
    )
)
