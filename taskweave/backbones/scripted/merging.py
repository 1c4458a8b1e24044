"""What a composite task ends in (merge): one finding on its subject, what each part adds to it, and one decision.

The parts' counts, causes, remedies and dates are read out of their texts; nothing is counted that no part has counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from zlib import crc32

from taskweave.backbones.scripted import facts, known, products, queries, topics, wording
from taskweave.backbones.scripted.deliverables import (
    fitted,
    head_of,
    headline,
    kind_of,
    know_goal,
    know_nature,
    people_as_who,
    severity,
    whom,
)
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.figures import Setting, dates, due, figures
from taskweave.backbones.scripted.findings import Finding, Step, besides, counted_on, decided_by, steps_in, with_totals
from taskweave.backbones.scripted.grammar import Draft
from taskweave.backbones.scripted.planning import local
from taskweave.backbones.scripted.sources import Source, at_odds, compared, latest, named, source
from taskweave.records import Json

Inputs = Mapping[str, Json]
_START = date(2026, 1, 5)


def parts_of(raw: Sequence[Mapping[str, Json]]) -> list[Source]:
    """The parts, each count with the total of its list where any part of the task gives it."""
    read = [source(part) for part in raw]
    every = iter(with_totals([finding for part in read for finding in part.found]))
    return [replace(part, found=tuple(next(every) for _ in part.found)) for part in read]


# Forms that take many words of their own, and how much tighter they begin.
_LONG_FORMS = {"checklist": 4, "e-mail": 4, "sql": 4, "minutes": 2, "ticket": 2, "specification": 2, "runbook": 2}
# How a part's line is put, from the fullest to the shortest.
_LINES = ("part_full", "part", "part_short", "part_short", "part_least")


def leading(parts: Sequence[Source], about: str, told: str = "") -> tuple[Source, Finding] | None:
    """The largest first finding on the task's subject, else the largest of all, with the part that has it.

    Where parts on the subject have counted different things, those are meant that are `told` of in the task, else what most have counted.
    """
    first = [(part, finding) for part in parts for finding in part.found[:1]]
    on = [pair for pair in first if pair[0].about(about)] or first
    if not on:
        return None
    counted = Counter(finding.items for _, finding in on)
    items = next((name for name in counted if name in told), counted.most_common(1)[0][0])
    largest = max((pair for pair in on if pair[1].items == items), key=lambda pair: (bool(pair[1].total), pair[1].count))
    # where two parts have counted the same, the later count holds
    return [pair for pair in first if pair[1].flaw.problem is largest[1].flaw.problem][-1]


def merge(inputs: Inputs, dice: Dice) -> Json:
    task = inputs["task"]
    title = str(task["title"])
    about = topics.topic(title)
    if not topics.answer_in(title):
        about = topics.widened(about, title, *(str(part["title"]) for part in inputs["partials"]))
    today = wording.parse_date(inputs["date"]) or _START
    setting = Setting.of(f"{inputs['organization']['name']}:{about}", title, today, str(task.get("background") or ""))
    parts = parts_of(inputs["partials"])
    draft = Draft(dice.words, dict(dates(title, today, setting.decided)), salt=crc32(title.encode()) + today.isocalendar().week)
    _know_task(draft, inputs, about, parts)
    incident = "incident" in draft.slots
    kind = kind_of(parts[-1].slots["dep_kind"] if parts else "report")
    lead = leading(parts, about, f"{task.get('background') or ''} {task.get('description') or ''}")
    case = lead[1].flaw.case if lead else None
    if lead:
        _know_lead(draft, setting, parts, lead)
    _know_decision(draft, parts, lead, today)
    references = [source(raw) for raw in inputs["references"]]
    constraint, description = str(task.get("constraints") or ""), str(task.get("description") or "")

    start = 2 * max(0, len(parts) - 2) + _LONG_FORMS.get(kind, 0)

    kept_facts = facts.taken_over(draft, parts)

    def begin(attempt: int) -> None:
        """The pieces of the text: the tighter, the more parts there are, the longer the form is, and the more often it was tried."""
        level = start + 2 * attempt
        if level > 1:
            draft.know(tight="yes")
        product = products.say_products(draft, case, description, title, most=2 if level < 3 else 1) if case and attempt < 6 else ""
        draft.know(
            head_line=draft.say("headline_incident" if incident else "headline") if lead else "",
            head_plain=draft.say("headline_incident" if incident else "headline_plain") if lead else "",
            product=product,
            kept_line=f"{products.say_condition(draft, constraint) if attempt < 4 else ''} {kept_facts}".strip(),
            decision_line=draft.say("decision" if lead else "decision_bare"),
            used=_used(draft, references, lead, about, product, brief=level > 1),
            joint=_joint(draft, parts, lead, brief=level > 6),
        )
        _know_lines(draft, parts, lead, _LINES[min(len(_LINES) - 1, level // 2)])
        if kind == "sql":  # marks of comment and of a list would make two on a line
            draft.know(listed=draft.slots["listed"].removeprefix("- ").replace("\n- ", " "))

    if case and kind == "sql":
        content = fitted(draft, partial(queries.content, draft, case, "sql_merged"), begin)
    else:
        content = fitted(draft, f"layout_merged_{kind}" if lead else "layout_merged_bare", begin)
    title = headline(draft, "title_merge", told=content)
    if lead:
        flaws = {finding.flaw.text for part in parts for finding in part.found if finding.flaw.case.people}
        title, content = (people_as_who(text, flaws) for text in (title, content))
    return {"title": title, "content": content}


def _know_task(draft: Draft, inputs: Inputs, about: str, parts: Sequence[Source]) -> None:
    """What the task is about, who worked on it, and who decides."""
    task, organization = inputs["task"], inputs["organization"]
    company = str(organization["name"])
    authors = wording.unique(part.slots["dep_author"] for part in parts)
    told = f"{task.get('background') or ''} {task.get('constraints') or ''}"
    head = head_of(organization, parts[-1].slots["dep_role"] if parts else "", [part.id for part in parts], told)
    draft.know(
        O=about,
        T=about,
        task=str(task["title"]).rstrip("."),
        company=company,
        author=authors[-1] if authors else company,
        authors=wording.join(authors) or company,
        head=head,
        head_the=f"the {head}",
        part_count=wording.in_words(len(parts)),
        pieces="piece" if len(parts) == 1 else "pieces",
        copy_line=f"\nCc: {wording.join(authors[:-1][:3])}" if len(authors) > 1 else "",
    )
    if len(authors) > 1:
        draft.know(one=authors[0], other=authors[-1], two="yes")
    if topics.answer_in(str(task["title"])):
        draft.know(incident=known.quoted(about)[0], **known.asked_for(f"{task.get('background') or ''} {task.get('description') or ''}"))
    know_goal(draft, inputs, about, known.bare_role(""))


def _know_lead(draft: Draft, setting: Setting, parts: Sequence[Source], lead: tuple[Source, Finding]) -> None:
    """The main finding with its cause and remedy, and the second one where a part has counted it."""
    part, finding = lead
    case, problem = finding.flaw.case, finding.flaw.problem
    others = [
        other
        for one in parts
        for other in one.found
        if other.items == finding.items and other.flaw.problem is not problem and other.count <= finding.count
    ]
    second = max(others, key=lambda other: other.count, default=None)
    draft.know(items=case.items, item=case.item, source=case.source, whom=whom(case))
    draft.know(**figures(setting, case, (problem, second.flaw.problem if second else None), (), (finding, second)))
    apart = {other.flaw.problem: other.count for other in others}
    rest = int(draft.slots["n"].replace(",", "")) - finding.count - sum(apart.values())
    draft.know(rest=wording.number(max(rest, 0)))  # what is in none of the groups that the parts have counted
    if day := counted_on(one.text for one in parts):
        draft.know(counted=day)
    draft.know(
        flaw1=finding.flaw.text,
        why1=draft.phrase(problem.cause),
        do1=finding.remedy or draft.phrase(problem.remedy),
        severity=severity(draft),
        p1=part.slots["dep_author"],
        p2=next((one.slots["dep_author"] for one in parts if one.slots["dep_author"] != part.slots["dep_author"]), draft.slots["head_the"]),
    )
    know_nature(draft, case)
    if second:
        do2 = second.remedy or draft.phrase(second.flaw.problem.remedy)
        draft.know(flaw2=second.flaw.text, why2=draft.phrase(second.flaw.problem.cause), do2=do2)


def _know_decision(draft: Draft, parts: Sequence[Source], lead: tuple[Source, Finding] | None, today: date) -> None:
    """The day by which the head of the department decides: the one that the parts give, where it is still to come."""
    ordered = sorted(parts, key=lambda part: not lead or part is not lead[0])
    for part in ordered:
        day = wording.parse_day_month(decided_by(part.text, draft.slots["head"]), today)
        if day and 0 <= (day - today).days < 60:
            draft.know(soon=wording.day_month(day), soon_iso=day.isoformat())
            latest_day = day
            for name, after in (("later", 5), ("check_day", 6)):
                given = wording.parse_day_month(draft.slots[name], today)
                latest_day = given if given is not None and given > latest_day else due(latest_day, after)
                draft.know(**{name: wording.day_month(latest_day)})
            return


_OF_THE_WRITER = re.compile(r"\b(?:I|my|me|reading time)\b")


def _know_lines(draft: Draft, parts: Sequence[Source], lead: tuple[Source, Finding] | None, rule: str) -> None:
    """`listed` and `ticked`: a line for each part that has something new, a figure first; one clause names those that only agree."""
    told = [lead[1].flaw.problem] if lead else []
    counts = {lead[1].count} if lead else set()
    proposed = [draft.slots.get("do1", "")]
    said: set[str] = set()  # what else has been told by an earlier line
    lines: list[str] = []
    speaking = {one.slots["dep_author"] for one in (*(lead[:1] if lead else ()), *parts[-1:])}  # nobody confirms the own count
    agreeing: list[str] = []
    for part in parts:
        fresh = next((finding for finding in part.found if finding.flaw.problem not in told), None)
        first = part.found[0] if part.found else None
        differs = lead is not None and first is not None and first.flaw.problem is lead[1].flaw.problem and first.count not in counts
        chosen = first if differs else fresh
        if chosen is not None:
            told.append(chosen.flaw.problem)
            counts.add(chosen.count)
            slots = _finding_slots(draft, chosen)
            again = slots["do"] in proposed
            proposed.append(slots["do"])
            lines.append(local(draft, "part_least" if again or differs else rule, {**part.slots, **slots}))
            speaking.add(part.slots["dep_author"])
        elif first is not None:
            line = _other_line(draft, part, first, said)
            (lines if line else agreeing).append(line or part.slots["dep_author"])
            speaking |= {part.slots["dep_author"]} if line else set()
        else:
            gist = "" if part.slots["dep_kind"] == "SQL" else known.telling(part.text, 8)
            gist = "" if _OF_THE_WRITER.search(gist) else gist
            lines.append(local(draft, "part_gist" if gist else "part_bare", {**part.slots, "gist": gist}))
    if names := wording.unique(name for name in agreeing if name not in speaking):
        lines.append(local(draft, "parts_agree", {"names": wording.join(names), "sole" if len(names) == 1 else "more": "yes"}))
    lines = [line.strip() for line in lines]
    draft.know(listed="\n".join(f"- {line}" for line in lines), ticked="\n".join(f"- [x] {line}" for line in lines))


def _other_line(draft: Draft, part: Source, first: Finding, said: set[str]) -> str:
    """The line of a part whose counts have been told: what else it has, or its dates; '' where no line before it has left any of it."""
    slots = {**part.slots, **_finding_slots(draft, first)}
    query = part.slots["dep_kind"] == "SQL" and "part_query" not in said
    rule, more = ("part_query", {}) if query else besides(part.text, said)
    if rule:
        said.add(rule)
        return local(draft, rule, {**slots, **more})
    steps = [step for step in steps_in(part.text) if _to_come(draft, step) and step.what not in said]
    if not steps:
        return ""
    step = next((step for step in steps if step.owner != part.slots["dep_author"]), steps[0])
    said.add(step.what)
    return local(draft, "part_steps", {**slots, "step_day": step.day, "step_what": step.what, "step_owner": step.owner})


def _to_come(draft: Draft, step: Step) -> bool:
    """Whether a step is one besides the decision and its execution, on a day after the decision."""
    slots = draft.slots
    decided = wording.parse_date(slots["soon_iso"])
    day = decided and wording.parse_day_month(step.day, decided)
    other = slots.get("do1", "") not in step.what and not step.what.startswith(("decide", "decision", "say yes", "yes or no", "count"))
    return bool(other and decided and day and day > decided)


def _finding_slots(draft: Draft, finding: Finding) -> dict[str, str]:
    problem = finding.flaw.problem
    return {
        "told": finding.told,
        "why": draft.phrase(problem.cause),
        "do": finding.remedy or draft.phrase(problem.remedy),
        "seen": wording.number(finding.count),
        "seen_of": wording.number(finding.total),
        "dep_items": finding.items,
        "dep_flaw": finding.flaw.text,
    }


def _joint(draft: Draft, parts: Sequence[Source], lead: tuple[Source, Finding] | None, brief: bool) -> str:
    """Which figure holds where two parts differ; unless `brief`, also whether the parts' figures can be put side by side."""
    if lead is None:
        return ""
    pairs = [(part, finding) for part in parts for finding in part.found]
    same = [(part, finding) for part, finding in pairs if finding.items == lead[1].items]
    for at, (part, finding) in enumerate(same):
        for later, other in same[at + 1 :]:
            slots = {"a_author": part.slots["dep_author"], "b_author": later.slots["dep_author"], "a_items": finding.items}
            if later is part:
                continue
            if finding.flaw.problem is other.flaw.problem and finding.count != other.count:
                counts = {"a_count": wording.number(finding.count), "b_count": wording.number(other.count), "a_flaw": finding.flaw.text}
                return local(draft, "conflict", slots | counts)
            if finding.total and other.total and finding.total != other.total:
                most, who = max((finding.total, slots["a_author"]), (other.total, slots["b_author"]))
                totals = {"a_total": wording.number(finding.total), "b_total": wording.number(other.total), "most": wording.number(most)}
                return local(draft, "conflict_total", slots | totals | {"most_author": who})
    if brief:
        return ""
    apart = wording.unique(finding.items for _, finding in pairs if finding.items != lead[1].items)
    if apart:
        return local(draft, "apart", {"apart_items": wording.join(apart[:2])})
    return draft.say("agree") if len({part.slots["dep"] for part, _ in same}) > 1 else ""


def _used(draft: Draft, references: Sequence[Source], lead: tuple[Source, Finding] | None, about: str, product: str, brief: bool) -> str:
    """The results of other tasks: their figure for the same fault, and those on the same subject."""
    if not references:
        return ""
    said = ""
    near = [reference for reference in references if reference.about(about)]
    if lead is not None and (found := latest(near, lead[1].flaw.problem)):
        reference, before = found
        slots = {**reference.slots, **compared(draft, before)}
        older = draft.slots["trend"] in product and at_odds(draft, slots["than"])
        said = local(draft, "used_older" if older else "used_then", slots)
        near.remove(reference)
    if not near or (said and brief):  # what the pool found and bears on nothing here is not worth a line
        return said
    others = [named(other.slots) for other in near[: 1 if brief or said else 2]]
    return f"{said} {local(draft, 'used_near', {'named': wording.join(others)})}"
