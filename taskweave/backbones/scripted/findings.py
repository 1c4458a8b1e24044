"""What other texts of the same world say: their counts, the dates of their decisions, and their rows of steps with owners.

A finding is a count of things that have a flaw which the phrase banks know, so that its cause and its remedy are known as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from taskweave.backbones.scripted import fields, wording

_AIMS = ("What we want", "Aim", "Target")
_AIM_HEAD = re.compile(rf"^((?:#+ )?(?:{'|'.join(_AIMS)})[^\n.\d]*)\n+", re.MULTILINE)
_SPACES = re.compile(r" {2,}")
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
# What a sentence says, in lower case, that states an aim or a limit, whose figures were not counted.
_LIMIT_START = re.compile(r"(?:[-*>#] )*(?:what we want|aims?\b|target|limit|done when|measure|expected)")
_LIMIT_HINTS = ("at most", "at least", "fewer", "no more than", "expect", "target", "aim", "goal", "would", "should", "until", "by ", "→")
_LIMIT = re.compile(r"\b(?:at most|at least|fewer|no more than|expect\w*|targets?|aims?|aimed|goal|would|should|until|by \d)\b|→")
_FIGURE = r"\d[\d,]*\d|\d"
_NUMBER = rf"({_FIGURE})"
_WHOLE = rf"{_NUMBER},? (?:out )?of (?:the |our |all )?{_NUMBER},?"
_NUMBER_LAST = re.compile(rf"{_NUMBER} \Z")
_WHOLE_LAST = re.compile(rf"{_WHOLE} \Z")
_OUT_OF_LAST = re.compile(rf"{_NUMBER} ([^\d,]+), out of {_NUMBER}, \Z")
_WHOLE_NEXT = re.compile(rf"(?:: | \| |, ){_WHOLE}")
_NUMBER_NEXT = re.compile(rf"(?:: | \| ){_NUMBER}(?! ?%)")
_ROW_TOTAL = re.compile(rf"{_NUMBER}(?: \| 100 % \|| \|$|$|\n)", re.MULTILINE)
_DAY = r"\d{1,2} (?:January|February|March|April|May|June|July|August|September|October|November|December)"
_BY = re.compile(rf"\b(?:by|until)(?: \w+day)? ({_DAY})")
# A line of a list, or a row of a table of three columns; what is done and who does it are words, not figures.
_ROW = re.compile(
    rf"^(?:(?:- |\d\\. )({_DAY}): ([A-Za-z][^|\n]*?) \(([A-Z][^()\n]+|the [A-Z][^()\n]+)\)"
    rf"|\| ({_DAY}) \| ([a-z][^|\n]*?) \| ([A-Z][^|\n]+?|the [A-Z][^|\n]+?) \|)(?:, [^\n|]*)?$",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Finding:
    """How many items have a flaw, of how many (0 where it is not said), and the remedy in the text's words ('' where it names none)."""

    flaw: fields.Flaw
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
    own = _own_words(excerpt)
    sentences = wording.sentences(own)
    found: list[tuple[int, Finding]] = []
    seen: set[str] = set()
    for flaw in fields.flaws_in(own):
        if flaw.text in seen:
            continue
        telling = [sentence for sentence in sentences if flaw.text in sentence and not _is_limit(sentence.replace(flaw.text, ""))]
        if numbers := _counted(telling, flaw, own):
            seen.add(flaw.text)
            count, total = (int(number.replace(",", "")) for number in (*numbers, "0")[:2])
            remedy = next((way for way in flaw.remedies if any(way in sentence for sentence in sentences)), "")
            if count > 0 and (not total or count <= total):
                place = own.find(telling[0]) + telling[0].find(flaw.text)
                found.append((place, Finding(flaw, count, total or _whole(own, flaw.case.items, count), remedy)))
    return tuple(with_totals(finding for _, finding in sorted(found, key=lambda pair: pair[0])))


def _whole(text: str, items: str, least: int) -> int:
    """How many items there are in all, by a row or a line that says so; 0 where there is none."""
    for row in (f"| all {items} | ", "| all | ", f"{wording.upper_first(items)} in all: "):
        if row in text and (found := _ROW_TOTAL.match(text, text.index(row) + len(row))):
            total = int(found.group(1).replace(",", ""))
            return total if total >= least else 0
    return 0


def _own_words(excerpt: str) -> str:
    """An excerpt without what it quotes, which is another's, and with its headings of aims before what stands under them."""
    text = excerpt.replace("\n-- | ", "\n| ").replace("\n-- - ", "\n- ").replace("\n-- ", " ")
    if '"' in text:
        text = _SPACES.sub(" ", _QUOTED.sub("", text))
    return _AIM_HEAD.sub(r"\1: ", text) if any(map(text.__contains__, _AIMS)) else text


def with_totals(found: Iterable[Finding]) -> list[Finding]:
    """The findings, those without a total with that of another one of the same items."""
    known = list(found)
    totals = {finding.items: finding.total for finding in reversed(known) if finding.total}
    return [
        replace(finding, total=totals[finding.items]) if not finding.total and totals.get(finding.items, 0) >= finding.count else finding
        for finding in known
    ]


def _counted(sentences: Sequence[str], flaw: fields.Flaw, whole: str) -> tuple[str, ...]:
    """How many items have a flaw, and of how many where that is said: by the first of six ways of saying so that is found."""
    items, size = flaw.case.items, len(flaw.text)
    places = [(text, at, _without(text, at, "that ", "who ", "That ", "Who ")) for text in sentences for at in _places(text, flaw.text)]
    counts = [(text, at, head, _without(text, head, f"{items} ")) for text, at, head in places]
    for text, _, _, start in counts:  # 31 of the 400 requests that time out
        if found := _WHOLE_LAST.search(text, 0, start):
            return found.groups()
    for text, at, _, _ in counts:  # 31 requests, out of 400, time out
        if (found := _OUT_OF_LAST.search(text, 0, at)) and found.group(2) == items:
            return found.group(1, 3)
    for text, at, _, _ in counts:  # time out: 31 of 400
        if found := _WHOLE_NEXT.match(text, at + size):
            return found.groups()
    for text, at, head, start in counts:  # 31 requests that time out; the 31 that time out
        if (start < head or head < at) and (found := _NUMBER_LAST.search(text, 0, start)):
            return found.groups()
    for text, at, head, start in counts:  # requests that time out: 31; in a table of requests: that time out | 31
        row = start < head or (head < at and text.endswith(("| ", "- "), 0, head) and items in whole.lower())
        if row and (found := _NUMBER_NEXT.match(text, at + size)):
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
    return bool(_LIMIT_START.match(low) or (any(map(low.__contains__, _LIMIT_HINTS)) and _LIMIT.search(low)))


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
    return tuple(Step(*(first or second for first, second in zip(row[:3], row[3:], strict=True))) for row in _ROW.findall(excerpt))


_NAME = r"[A-Z][\w.'-]+(?: [A-Z][\w.'-]+)*|[Tt]he [A-Z]\w+(?: [A-Z]\w+)*"
# What a text has besides its counts of flaws, with the rule that tells of it: a dissent, a rule, a trial, a session, a target and so on.
# Each is looked for in a text that has its words.
_BESIDES = (
    (
        "part_dissent",
        " wanted it done by ",
        re.compile(rf"(?P<x>{_NAME}) wanted it done by (?P<day>{_DAY}), (?P<y>{_NAME}) by (?P<other>{_DAY})"),
    ),
    ("part_tried", " passed", re.compile(r"(?P<x>\d+) of (?P<y>\d+) passed")),
    ("part_tried", "Passed: ", re.compile(r"Passed: (?P<x>\d+) of (?P<y>\d+)")),
    ("part_changed", " new ", re.compile(r"(?P<x>none|\d+) of (?P<y>\d+) new ")),
    ("part_traced", "traced from", re.compile(r"(?P<x>\d+) were traced from beginning to end; the trail of (?P<y>\d+)")),
    ("part_limit", "at a time", re.compile(r"limit(?:: | \| )(?P<x>\w+) (?:open )?at a time")),
    ("part_refused", "Refused: to ", re.compile(r"Refused: to (?P<x>[a-z][^.|\n]{8,70}?)[.\n]")),
    ("part_course", " found ", re.compile(rf"(?P<x>{_NAME}) found (?:all|four)")),
    ("part_minutes", "minutes each", re.compile(r"about (?P<x>\d+) minutes each")),
    ("part_strike", "trike: the old way", re.compile(r"[Ss]trike: (?P<x>the old way, by which [^.|\n]+)")),
    ("part_scope", "n doubt ", re.compile(rf"[Ii]n doubt (?P<x>{_NAME}) decides within (?P<y>\w+) working days")),
    ("part_wording", "\n> ", re.compile(r"\n> (?P<x>[A-Z][^\n>]{14,90}?)[.\n]")),
    ("part_cost", "ost", re.compile(r"[Cc]ost:? (?P<x>\w+) hours")),
    ("part_past", "On ", re.compile(rf"\bOn (?P<day>{_DAY}) (?:it|the count) was (?P<x>{_FIGURE}) of (?P<y>{_FIGURE})(?!\d)")),
    ("part_target", "arget", re.compile(rf"[Tt]arget(?:: at most| of|.*?at most) (?P<x>{_FIGURE})(?!\d)(?! ?%)")),
)


def besides(excerpt: str, told: Collection[str] = ()) -> tuple[str, Mapping[str, str]]:
    """A rule that tells what else an excerpt has, none of those `told` already, and its slots; ('', {}) where it has nothing."""
    return next(((rule, slots) for rule, slots in _all_besides(excerpt) if rule not in told), ("", {}))


@lru_cache(maxsize=1024)
def _all_besides(excerpt: str) -> tuple[tuple[str, Mapping[str, str]], ...]:
    own = _own_words(excerpt)
    return tuple((rule, found.groupdict()) for rule, words, pattern in _BESIDES if words in own and (found := pattern.search(own)))


_COUNTED = re.compile(rf"\((?:as of|entries up to) ({_DAY})\)")


def counted_on(excerpts: Iterable[str]) -> str:
    """The latest state of a source that one of the excerpts speaks of; '' where none does."""
    return next((found.group(1) for text in excerpts if (found := _COUNTED.search(text))), "")
