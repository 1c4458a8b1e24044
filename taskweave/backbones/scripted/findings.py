"""What other texts of the same world say: their counts, the dates of their decisions, and their rows of steps with owners.

A finding is a count of things that have a flaw which the phrase banks know, so that its cause and its remedy are known as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from taskweave.backbones.scripted import topics, wording

_AIM_HEAD = re.compile(r"^((?:#+ )?(?:What we want|Aim|Target)[^\n.\d]*)\n+", re.MULTILINE)
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
# What a sentence says, in lower case, that states an aim or a limit, whose figures were not counted.
_LIMIT_START = re.compile(r"(?:[-*>#] )*(?:what we want|aims?\b|target|limit|done when|measure|expected|before:)")
_LIMIT = re.compile(r"\b(?:at most|at least|fewer|no more than|expect\w*|targets?|aims?|aimed|goal|would|should|until|by \d|earlier)\b|→")
_NUMBER = r"(\d[\d,]*\d|\d)"
_WHOLE = rf"{_NUMBER},? (?:out )?of (?:the |our |all )?{_NUMBER},?"
_NUMBER_LAST = re.compile(rf"{_NUMBER} \Z")
_WHOLE_LAST = re.compile(rf"{_WHOLE} \Z")
_OUT_OF_LAST = re.compile(rf"{_NUMBER} ([^\d,]+), out of {_NUMBER}, \Z")
_WHOLE_NEXT = re.compile(rf"(?:: | \| |, ){_WHOLE}")
_NUMBER_NEXT = re.compile(rf"(?:: | \| ){_NUMBER}(?! ?%)")
_DAY = r"\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)"
_BY = re.compile(rf"\b(?:by|until)(?: \w+day)? ({_DAY})")
_ROW = re.compile(rf"^(?:- |\| |\d\. )({_DAY})(?:: | \| )([^|\n]+?)(?: \(([^()\n]+)\)| \| ([^|\n]+?) \|)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Finding:
    """How many items have a flaw, of how many (0 where it is not said), and the remedy in the text's words ('' where it names none)."""

    flaw: topics.Flaw
    count: int
    total: int
    remedy: str = ""

    @property
    def items(self) -> str:
        return self.flaw.case.items

    @property
    def rate(self) -> float:
        return self.count / self.total if self.total else 0.0

    @property
    def told(self) -> str:
        """'31 of 400 requests time out'."""
        whole = f" of {wording.number(self.total)}" if self.total else ""
        return f"{wording.number(self.count)}{whole} {self.items} {self.flaw.text}"


@dataclass(frozen=True, slots=True)
class Step:
    """A row of a plan: what is to be done, on which day and by whom."""

    day: str
    what: str
    owner: str


@lru_cache(maxsize=2048)
def findings_in(excerpt: str) -> tuple[Finding, ...]:
    """What an excerpt says that was counted, in its order, each flaw one time."""
    own = _AIM_HEAD.sub(r"\1: ", _QUOTED.sub("", excerpt.replace("\n-- ", " ")))  # what is quoted is another's
    text = " ".join(" ".join(sentence for sentence in wording.sentences(own) if not _is_limit(sentence)).split())
    found: list[Finding] = []
    seen: set[str] = set()
    for flaw in topics.flaws_in(text):
        if flaw.text not in seen and (numbers := _counted(text, flaw)):
            seen.add(flaw.text)
            count, total = (int(number.replace(",", "")) for number in (*numbers, "0")[:2])
            remedy = next((remedy for remedy in flaw.remedies if remedy in text), "")
            if 0 < count <= (total or count):
                found.append(Finding(flaw, count, total, remedy))
    return tuple(with_totals(found))


def with_totals(found: Iterable[Finding]) -> list[Finding]:
    """The findings, those without a total with that of another one of the same items."""
    known = list(found)
    totals = {finding.items: finding.total for finding in reversed(known) if finding.total}
    return [
        replace(finding, total=totals[finding.items])
        if not finding.total and totals.get(finding.items, 0) >= finding.count
        else finding
        for finding in known
    ]


def _counted(text: str, flaw: topics.Flaw) -> tuple[str, ...]:
    """How many items have a flaw, and of how many where that is said: by the first of six ways of saying so that the text has."""
    items = flaw.case.items
    places = list(_places(text, flaw.text))
    heads = [_without(text, at, "that ", "who ") for at in places]
    starts = [_without(text, head, f"{items} ") for head in heads]
    for start in starts:  # 31 of the 400 requests that time out
        if found := _WHOLE_LAST.search(text, 0, start):
            return found.groups()
    for at in places:  # 31 requests, out of 400, time out
        if (found := _OUT_OF_LAST.search(text, 0, at)) and found.group(2) == items:
            return found.group(1, 3)
    for at in places:  # time out: 31 of 400
        if found := _WHOLE_NEXT.match(text, at + len(flaw.text)):
            return found.groups()
    for head, start in zip(heads, starts, strict=True):  # 31 requests that time out
        if start < head and (found := _NUMBER_LAST.search(text, 0, start)):
            return found.groups()
    for at, head, start in zip(places, heads, starts, strict=True):  # requests that time out: 31
        if start < head and (found := _NUMBER_NEXT.match(text, at + len(flaw.text))):
            return found.groups()
    for at, head in zip(places, heads, strict=True):  # a row of a table of requests: that time out | 31
        if head < at and items in text and text.endswith(("| ", "- "), 0, head) and (found := _NUMBER_NEXT.match(text, at + len(flaw.text))):
            return found.groups()
    return ()


def _places(text: str, wanted: str) -> Iterator[int]:
    at = text.find(wanted)
    while at >= 0:
        yield at
        at = text.find(wanted, at + 1)


def _without(text: str, end: int, *tails: str) -> int:
    """Where the text up to `end` ends without one of the tails."""
    return next((end - len(tail) for tail in tails if text.endswith(tail, 0, end)), end)


@lru_cache(maxsize=8192)
def _is_limit(sentence: str) -> bool:
    low = sentence.lower()
    return bool(_LIMIT_START.match(low) or _LIMIT.search(low))


@lru_cache(maxsize=1024)
def decided_by(excerpt: str, head: str) -> str:
    """Until which day the head of the department decides, according to an excerpt; '' where it does not say."""
    for sentence in wording.sentences(excerpt):
        if head in sentence and (found := _BY.search(sentence)):
            return found.group(1)
    return ""


@lru_cache(maxsize=1024)
def steps_in(excerpt: str) -> tuple[Step, ...]:
    """The rows of an excerpt that give a day, a step and an owner."""
    return tuple(Step(day, what.strip(), one or other) for day, what, one, other in _ROW.findall(excerpt))


