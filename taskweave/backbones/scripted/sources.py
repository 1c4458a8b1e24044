"""What a text builds on: the slots of an earlier result, and the sentences that name it with the figure taken from it.

Only results that share the subject or the fault are told of; where there is none, one is named without a word on what it was good for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskweave.backbones.scripted import fields, topics, wording
from taskweave.backbones.scripted.figures import percent
from taskweave.backbones.scripted.findings import Finding, findings_in
from taskweave.backbones.scripted.grammar import Draft
from taskweave.backbones.scripted.planning import local
from taskweave.records import Json

_NEAR_TOP = 200  # characters at the beginning of a text that say what it is about


@dataclass(frozen=True, slots=True)
class Source:
    """An earlier result: how it is named, what it has counted, and its text as far as it is known."""

    slots: Mapping[str, str]
    found: tuple[Finding, ...]
    text: str
    id: str
    week: tuple[int, ...]  # the year and the week of the task that it is a result of; none where its id does not say
    part: bool  # of a task whose other parts are being written, rather than what a task ended in

    def about(self, *subjects: str) -> bool:
        return any(on_subject(self.slots["dep"], self.text, subject) for subject in subjects)


def source(raw: Mapping[str, Json]) -> Source:
    text = str(raw["excerpt"])
    id = str(raw.get("id") or "")
    last = id.rpartition("/")[2]
    week = tuple(map(int, found.groups())) if (found := _WEEK.match(id)) else ()
    return Source(dependency_slots(raw), findings_in(text), text, id, week, last[:1] == "s" and last[1:].isdigit())


_WEEK = re.compile(r"Y(\d+)/.*?\bW(\d+)")


def latest(sources: Sequence[Source], problem: fields.Problem) -> tuple[Source, Finding] | None:
    """The latest earlier count of a flaw, with the result that has it; of one week the one that is named last."""
    found = [(one, finding) for one in sources for finding in one.found if finding.flaw.problem is problem and finding.total]
    return max(enumerate(found), key=lambda pair: (pair[1][0].week, pair[0]))[1] if found else None


def dependency_slots(dependency: Mapping[str, Json]) -> dict[str, str]:
    slots = {
        "dep": str(dependency["title"]).rstrip("."),
        "dep_author": str(dependency["author"]),
        "dep_kind": str(dependency["artifact"] or "report"),
        "dep_role": str(dependency["role"]),
    }
    slots["dep_role_the"] = slots["dep_role"] if slots["dep_role"].isupper() else f"the {slots['dep_role']}"
    slots["dep_kind_low"] = "query" if slots["dep_kind"] == "SQL" else wording.lower_first(slots["dep_kind"])
    return slots


def named(slots: Mapping[str, str]) -> str:
    return f"'{slots['dep']}' by {slots['dep_author']}"


def on_subject(title: str, text: str, subject: str) -> bool:
    """Whether a result is about a subject: its title names it, or the beginning of its text does."""
    if topics.answer_in(subject) == subject:
        subject = subject.partition(' to "')[2].rstrip('"')
    wanted = subject.lower()
    return wanted in title.lower() or wanted in text[:_NEAR_TOP].lower()


def compared(draft: Draft, before: Finding) -> dict[str, str]:
    """An earlier count beside the one of the text (`k` of `n`): by their shares, not their counts."""
    then = round(100 * before.rate)
    now = int(draft.slots["pct"].split()[0])
    longer = {} if wording.number(before.total) == draft.slots["n"] else {"dep_items": before.items, "longer": "yes"}
    return longer | {
        "then": wording.number(before.count),
        "then_of": wording.number(before.total),
        "then_pct": percent(before.count, before.total),
        "than": "a larger share" if now > then else "a smaller share" if now < then else "the same share",
    }


def _own(draft: Draft, one: Source) -> str:
    """How rules end that tell of a result of the author's own: who writes says 'I', except in minutes."""
    return "_own" if one.slots["dep_author"] == draft.slots["author"] and "third" not in draft.slots else ""


def _named(draft: Draft, one: Source) -> str:
    return f"my own '{one.slots['dep']}'" if _own(draft, one) else named(one.slots)


def at_odds(draft: Draft, than: str) -> bool:
    """Whether a text says that the share went the other way since a day later than that of an earlier result."""
    return not draft.slots["trend"].startswith(than)


def know_sources(draft: Draft, sources: Sequence[Source], problem: fields.Problem) -> None:
    """`builds`: the figure that the text takes from an earlier result or is set against; `sources_all`: the others on the subject, by name.

    `sources_brief` and `sources_last` are for texts that grow too long, the latter instead of `builds`.
    """
    slots = draft.slots
    near = [one for one in sources if one.part or one.about(slots["O"], slots["T"])]
    builds, lead = "", None
    if before := latest(near, problem):
        lead, finding = before
        same = f"{wording.number(finding.count)} {wording.number(finding.total)}" == f"{slots['k']} {slots['n']}"
        told = {**lead.slots, **compared(draft, finding)}
        own = _own(draft, lead)
        builds = local(draft, f"basis_{'same' if same else 'then'}{own}", told)
        if not same and at_odds(draft, told["than"]):
            draft.know(builds_than=builds, builds_older=local(draft, f"basis_older{own}", told))
    else:  # what a colleague has counted for the same task, or of the same things
        for one in sorted(near, key=lambda one: not one.part):
            other = next((finding for finding in one.found if finding.flaw.problem is not problem), None)
            if other is not None and (one.part or other.items == slots["items"]):
                lead = one
                rule = "basis_other" if other.items == slots["items"] else "basis_told"
                builds = local(draft, f"{rule}{_own(draft, one)}", {**one.slots, "told": other.told})
                break
    if not builds and "evidence" in slots:
        builds = draft.say("evidence_line")
    rest = [one for one in near if one is not lead]
    if rest:
        near_by = local(draft, "basis_near", {"named": wording.join([_named(draft, one) for one in rest[:2]])})
        brief = local(draft, "basis_near", {"named": _named(draft, rest[0])})
    else:  # what the pool found and bears on nothing here is not worth a line
        near_by = brief = ""
    last = local(draft, "basis_near", {"named": _named(draft, lead)}) if lead else brief
    draft.know(builds=builds, sources_all=near_by, sources_brief=brief if lead is None else "", sources_last=last)
