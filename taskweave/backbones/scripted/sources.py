"""What a text builds on: the slots of a dependency, a sentence worth repeating out of its excerpt, and the sentences that name them.

`borrowed` looks for a finding that stands on its own: a count of things that have a known flaw.  Method, targets and readings are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from taskweave.backbones.scripted import topics, wording
from taskweave.backbones.scripted.grammar import Draft
from taskweave.backbones.scripted.planning import local
from taskweave.records import Json

_LABEL = re.compile(r"^(?:[-*>#] |-- |\[.\] |(?:R|Case )\d+[.:]? |\d+[.:] |[A-ZÀ-Þ][A-Za-zÀ-ÿ' -]{1,60}: |[A-Z][a-z]{2,12}\. )+")
_CITED = re.compile(r"(?:\s*\([^()]*\)|, as [A-ZÀ-Þ][^,]* found)\s*(?=[.]?$)|^As [A-ZÀ-Þ][^,]{2,40} established, ")
_HEADS = (
    "From:",
    "To:",
    "Cc:",
    "Subject:",
    "Dear",
    "Hello",
    "Ref",
    "Reporter",
    "Present",
    "Attendees",
    "Minutes",
    "Meeting",
    "When:",
    "Time needed",
    "Measure",
    "Effect",
    "- Effect",
    "- Cost",
    "- Second point",
    "Aim:",
    "What we want",
    "Related",
    "Open",
    "Result -",
    "Used",
    "Also used",
    "Done when",
)
_FIGURE = re.compile(r"\b\d[\d,.]*\b(?! (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec))")
_DIGIT = re.compile(r"\d")
# What comes before a flaw where it is counted: '31 of the 400 requests', '48 screens that', '12 % of the accounts'.
_COUNTED = re.compile(
    r"(?:^|\b(?:and|that|are|were|found|is|of|in|group|save|see|saw|on)\W+)"
    r"\d[\d,]*(?: %)?(?: of (?:the |our |all )?\d[\d,]*)?(?: [\w'-]+){0,5} ?$"
)
_AIMED = re.compile(
    r"\b(?:at most|at least|fewer|expect\w*|target|aim\w*|would|should|will|until|no more|instead of|beginning|none|nobody)\b"
    r"|\bby (?:hand|\d)|→|\||_",
    re.IGNORECASE,
)
# What a sentence says, in lower case, that states an aim or a limit, whose figures were not counted.
_LIMIT_START = re.compile(r"(?:[-*>#] )*(?:what we want|aims?\b|target|limit|done when|measure|expected)")
_LIMIT = re.compile(r"\b(?:at most|at least|fewer|no more than|expect\w*|targets?|aims?|aimed|goal|would|should|until|by \d)\b|→")
_AIM_HEAD = re.compile(r"^((?:#+ )?(?:What we want|Aim|Target)[^\n.\d]*)\n+", re.MULTILINE)
_PART = re.compile(r"\d of (?:the |our )?\d")
_LEAN_START = re.compile(
    r"(?:Here|This|These|It|They|For these|In their|Among|If|To|By|On|We expect|As|Who|My|Each|Every|Asked|Case)\b"
    r"|(?:Repeat|Take|Pick|Open|Filter|Compare|Note|Look|Do|Follow|Use|Start|Send|Stop|Save|Tell|Confirm|Read)\b"
    r"|(?:Then|Next|Before|After|Owners|Period|Dates|Since|First|Second|Changed|Exercise|Question|Excluded|In|Our|Belongs|Handed|Q|A)\b"
    r"|\d[\d,]* (?!of |open |new |people |search |page |form |test |merge |budget |restore |work )\w*[^s\W] "
)
_LEAN = re.compile(
    r"\bof (?:them|these)\b|\b(?:I|my|me|below|above)\b"
    r"|\bcame with\b|\bset aside\b|\bno basis\b|\brely on\b|\bmissing \d|\bshows? \d|\btried\b|\bmeans\b|\bthese \d|(?<!of )\bthe \d"
    r"|\bexpecting\b|\bfollowed the\b|\basked for\b|\bstay\b|\bshould\b|\ball the same\b|\bpattern\b"
    r"|\d{4}-\d\d|\bwould\b|\bthis time\b|^Leave\b|\bnext month\b|, \d[\d,]* \w+ from\b|\bin all\b|\bDone\b|\bLIMIT\b|;"
    r"|\bfall short\b|\btook\b|\blabel\b|\btwo lists\b|\bto be the whole\b|\byielded\b|\bWithout\b|\blines?\b"
    r"|, so look\b|\bhad counted\b|^(?:Apart|There is also|We also|Not to be|Separate|Smaller in|Less frequent|The rest)\b"
    r"|\bfit for use\b|\bloses?\b|\bgoes? from\b"
)
_QUOTED = re.compile(r'"[^"]*(?:"|$)')
_THIN = re.compile(
    r"\b(?:period|basis|figures come|pass(?:es)?|passed|sorted|samples?|labelled|hours went|pieces?|contributions?|result|outcome|goal)\b"
    r"|\b(?:task|annex|opinions|nobody|asked|not tested|before that|count over|by hand|told on|in person|taken from|be drawn again)\b"
    r"|\bread:",
    re.IGNORECASE,
)


_SHORTEST, _LONGEST = 5, 24  # words of a sentence that is worth repeating


@lru_cache(maxsize=2048)
def borrowed(excerpt: str) -> str:
    """A sentence worth repeating out of an excerpt, a finding with figures where there is one; '' where none stands on its own."""
    best, most = "", 2
    for sentence in wording.sentences(excerpt.replace("\n-- ", " ")):
        text, score = _finding(sentence)
        if score > most and (score := score - _against(text)) > most:
            best, most = text, score
    return best


@lru_cache(maxsize=8192)
def _finding(sentence: str) -> tuple[str, int]:
    """A sentence as it may be repeated, and how much there is in it: 0 where it is no finding with figures."""
    if not _DIGIT.search(sentence) or _is_marked(sentence):
        return "", 0
    text = _CITED.sub("", _LABEL.sub("", sentence)).strip()
    text = wording.upper_first(text.rstrip(".;:, "))
    if not _SHORTEST <= wording.words(text) <= _LONGEST or text.count("(") != text.count(")") or ": " in text:
        return "", 0
    flaw = next(topics.flaws_in(text), None)
    before = text.partition(flaw.text)[0] if flaw else ""
    if flaw is None or flaw.case.items not in before or not _COUNTED.search(before) or _AIMED.search(text):
        return "", 0
    figures = len(_FIGURE.findall(text))
    if not figures:
        return "", 0
    return text, 2 + 2 * min(figures, 3) + (" that " in text) + bool(_PART.search(text))


@lru_cache(maxsize=4096)
def _against(text: str) -> int:
    """What speaks against repeating a finding: that it leans on others, or says little."""
    return 8 * bool(_LEAN_START.match(text) or _LEAN.search(text)) + 3 * bool(_THIN.search(text))


def _is_marked(sentence: str) -> bool:
    """Whether a sentence is a row, a heading, a quotation or a statement rather than prose."""
    return (
        '"' in sentence
        or "@" in sentence
        or " | " in sentence
        or "→" in sentence
        or "'" in sentence.replace("'s ", " ")
        or sentence.startswith(_HEADS)
        or "SELECT" in sentence
    )


_NUMBER = r"(\d[\d,]*\d|\d)"
_WHOLE = rf"{_NUMBER},? (?:out )?of (?:the |our |all )?{_NUMBER},?"
_NUMBER_LAST = re.compile(rf"{_NUMBER} \Z")
_WHOLE_LAST = re.compile(rf"{_WHOLE} \Z")
_OUT_OF_LAST = re.compile(rf"{_NUMBER} ([^\d,]+), out of {_NUMBER}, \Z")
_WHOLE_NEXT = re.compile(rf"(?:: | \| |, ){_WHOLE}")
_NUMBER_NEXT = re.compile(rf"(?:: | \| ){_NUMBER}(?! ?%)")


@lru_cache(maxsize=1024)
def found_in(excerpt: str) -> Mapping[str, str]:
    """What an excerpt says that was counted: `told` ('31 of 400 requests time out'), its `dep_items`, and the remedy `do` it names."""
    own = _AIM_HEAD.sub(r"\1: ", _QUOTED.sub("", excerpt.replace("\n-- ", " ")))  # what is quoted is another's
    text = " ".join(" ".join(sentence for sentence in wording.sentences(own) if not _is_limit(sentence)).split())
    for flaw in topics.flaws_in(text):
        if numbers := _counted(text, flaw):
            told = {
                "told": f"{' of '.join(numbers)} {flaw.case.items} {flaw.text}",
                "dep_items": flaw.case.items,
                "dep_flaw": flaw.text,
            }
            do = next((remedy for remedy in flaw.remedies if remedy in text), "")
            return told | ({"do": do} if do else {})
    return {}


def _counted(text: str, flaw: topics.Flaw) -> tuple[str, ...]:
    """How many items have a flaw, and of how many where that is said: by the first of five ways of saying so that the text has."""
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


def dependency_slots(dependency: Mapping[str, Json]) -> dict[str, str]:
    slots = {
        "dep": str(dependency["title"]).rstrip("."),
        "dep_author": str(dependency["author"]),
        "dep_kind": str(dependency["artifact"] or "report"),
        "dep_role": str(dependency["role"]),
    }
    slots["dep_role_the"] = slots["dep_role"] if slots["dep_role"].isupper() else f"the {slots['dep_role']}"
    slots["dep_kind_low"] = "query" if slots["dep_kind"] == "SQL" else wording.lower_first(slots["dep_kind"])
    slots["dep_first"] = slots["dep_author"].split(" ", 1)[0]
    quote = borrowed(str(dependency["excerpt"]))
    if quote:
        slots["quote"] = quote
    return slots


def named(slots: Mapping[str, str]) -> str:
    return f"'{slots['dep']}' by {slots['dep_author']}"


def know_dependencies(draft: Draft, dependencies: Sequence[Mapping[str, str]], wanted: frozenset[str]) -> None:
    """`builds`: what the text takes from earlier results, in their own words only where these bear on it; `sources`: the others, by name.

    `wanted` are the stems of what the text is about.  A figure for the same fault is set against today's.
    """
    known = dict(draft.slots)
    draft.know(builds="", sources="")
    lead = next((slots for slots in dependencies[:3] if _bears(slots, known)), None)
    if lead is not None:
        then = _count_of(lead["quote"], known["items"], known["flaw1"])
        now, before = (int(text.replace(",", "") or "0") for text in (known["k"], then))
        if then and now != before:
            moved = {"fell" if now < before else "rose": "yes"}
            draft.know(builds=local(draft, "then_now", {**lead, **moved, "then": then}))
        else:
            draft.know(builds=local(draft, "basis_own" if lead["dep_author"] == known["author"] else "basis", lead))
    evidence = draft.say("evidence_line") if len(wanted & topics.stems(known.get("evidence", ""))) > 1 else ""
    if evidence:
        draft.know(builds=f"{draft.slots['builds']} {evidence}".strip())
    rest = [slots for slots in dependencies[:3] if slots is not lead]
    if rest:
        named_so = [f"{named(slots)} ({_read_for(draft, slots, wanted)})" if at < 2 else named(slots) for at, slots in enumerate(rest)]
        draft.know(sources=local(draft, "basis_bare", {"named": wording.join(named_so)}))
        draft.know(sources_brief=local(draft, "basis_bare", {"named": wording.join([named(slots) for slots in rest[:2]])}))
    draft.know(builds_bare=draft.slots["builds"] if lead is None or not evidence else draft.slots["builds"].removesuffix(evidence).strip())
    if lead is None and rest:
        draft.know(sources_last=local(draft, "basis_bare", {"named": named(rest[0])}))
    elif lead is not None:
        every = wording.join([named(slots) for slots in [lead, *rest][:2]])
        draft.know(builds_last="", sources_last=local(draft, "basis_bare", {"named": every}))


def bears(quote: str, *subjects: str) -> bool:
    """Whether a finding is about one of the subjects: by more than a word that any two texts have in common."""
    heard = topics.stems(quote)
    named = [subject.partition(' to "')[2] if topics.answer_in(subject) == subject else subject for subject in subjects]
    return any(topics.telling_stems(subject) & heard or len(topics.stems(subject) & heard) > 1 for subject in named)


def _bears(slots: Mapping[str, str], known: Mapping[str, str]) -> bool:
    """Whether a dependency's finding is about what the text is about; last-resort cases say nothing about anything else."""
    quote = slots.get("quote", "")
    if not quote or topics.is_last_resort_in(quote):
        return False
    return f" {known['items']} " in quote or bears(quote, known["O"], known["T"])


def _read_for(draft: Draft, slots: Mapping[str, str], wanted: frozenset[str]) -> str:
    return draft.say("read_near" if wanted & topics.stems(slots["dep"]) else "read_far")


_COUNT_LAST = re.compile(r"(\d[\d,]*)(?: of (?:the |our )?\d[\d,]*)? \Z")


def _count_of(quote: str, items: str, flaw: str) -> str:
    """How many items have the flaw, according to a quote; '' where it does not say."""
    at = quote.find(flaw)
    end = _without(quote, _without(quote, at, "that "), f"{items} ")
    found = _COUNT_LAST.search(quote, 0, end) if at > 0 else None
    return found.group(1) if found else ""
