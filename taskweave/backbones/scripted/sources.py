"""What a text builds on: the slots of a dependency, a sentence worth repeating out of its excerpt, and the sentences that name them.

`borrowed` looks for a finding with figures that stands on its own; what is merely method, or leans on the sentence before, is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from taskweave.backbones.scripted import wording
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
_LEAN = re.compile(
    r"\bof (?:them|these)\b|\b(?:I|my|me|below|above)\b"
    r"|^(?:Here|This|These|It|They|For these|In their|Among|If|To|By|On|We expect|As|Who|My|Each|Every|Asked|Case)\b"
    r"|^(?:Repeat|Take|Pick|Open|Filter|Compare|Note|Look|Do|Follow|Use|Start|Send|Stop|Save|Tell|Confirm|Read)\b"
    r"|^(?:Then|Next|Before|After|Owners|Period|Dates)\b"
)
_THIN = re.compile(
    r"\b(?:period|basis|figures come|pass(?:es)?|passed|sorted|samples?|labelled|hours went|pieces?|contributions?|result|outcome|goal)\b"
    r"|\b(?:task|annex|opinions|nobody|asked|not tested|before that|count over|by hand|told on|in person|taken from|be drawn again)\b"
    r"|\bread:",
    re.IGNORECASE,
)


@lru_cache(maxsize=2048)
def borrowed(excerpt: str) -> str:
    """A sentence worth repeating out of an excerpt, a finding with figures where there is one; '' where none stands on its own."""
    best, most = "", 2
    for sentence in wording.sentences(excerpt.replace("\n-- ", " ")):
        if (
            '"' in sentence
            or "@" in sentence
            or " | " in sentence
            or "'" in sentence.replace("'s ", " ")
            or sentence.startswith(_HEADS)
            or "SELECT" in sentence
        ):
            continue
        text = _CITED.sub("", _LABEL.sub("", sentence)).strip()
        text = wording.upper_first(text.rstrip(".;:, "))
        if not 5 <= wording.words(text) <= 24 or text.count("(") != text.count(")"):
            continue
        if not _FIGURE.search(text):
            continue
        score = (
            2 + 2 * min(len(_FIGURE.findall(text)), 3) - 5 * bool(_LEAN.search(text)) - 3 * bool(_THIN.search(text)) + (" that " in text)
        )
        if score > most:
            best, most = text, score
    return best


def dependency_slots(dependency: Mapping[str, Json]) -> dict[str, str]:
    slots = {
        "dep": str(dependency["title"]).rstrip("."),
        "dep_author": str(dependency["author"]),
        "dep_kind": str(dependency["artifact"] or "report"),
        "dep_role": str(dependency["role"]),
    }
    slots["dep_kind_low"] = "query" if slots["dep_kind"] == "SQL" else wording.lower_first(slots["dep_kind"])
    slots["dep_first"] = slots["dep_author"].split(" ", 1)[0]
    quote = borrowed(str(dependency["excerpt"]))
    if quote:
        slots["quote"] = quote
    return slots


def named(slots: Mapping[str, str]) -> str:
    return f"'{slots['dep']}' by {slots['dep_author']}"


def know_dependencies(draft: Draft, dependencies: Sequence[Mapping[str, str]], head: str) -> None:
    """`builds`: what the text builds on, a sentence each for the first three; and the people who were involved."""
    author = draft.slots["author"]
    said = []
    for position, slots in enumerate(dependencies[:3]):
        rule = "basis_own" if slots["dep_author"] == author else "basis_more" if position else "basis"
        said.append(local(draft, rule, slots))
    rest = wording.join([named(slots) for slots in dependencies[1:3]])
    every = wording.join([named(slots) for slots in dependencies[:3]])
    if every:
        draft.know(
            builds_brief=f"{said[0]} {local(draft, 'also_used', {'named': rest})}" if rest else said[0],
            builds_bare=local(draft, "basis_bare", {"named": every}),
        )
    said.append(draft.say("evidence_line"))
    draft.know(builds=" ".join(said), builds_or=" ".join(said).strip() or "Nothing on this was found in the pool.")
    others = wording.unique(slots["dep_author"] for slots in dependencies if slots["dep_author"] != author)
    if others:
        draft.know(colleague=others[0], colleague_first=others[0].split(" ", 1)[0])
    draft.know(
        present=wording.join([author, *others[:3]] if others else [author, f"the {head}"]),
        owner2=others[0] if others else f"the {head}",
        mail_to=head,
    )
    if others:
        draft.know(copy_to=wording.join(others[:2]))
