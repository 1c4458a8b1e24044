"""What an agent hands in (execute) and what a composite task ends in (merge).

A deliverable tells one story: a case of the author's field with its figures, what is wrong, why, what to do, and what it builds on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date

from taskweave.backbones.scripted import known, queries, topics, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, load, tidy
from taskweave.backbones.scripted.planning import local
from taskweave.backbones.scripted.tasks import bare_role, bears_on, best_case, other_subjects
from taskweave.records import Json

Inputs = Mapping[str, Json]
SHORTEST, LONGEST = 66, 196
_START = date(2026, 1, 5)


def kind_of(artifact: str) -> str:
    """The form in which an artifact is written, whatever a role calls it."""
    low = artifact.lower().strip()
    kinds = load().tables["kinds"]
    if low in kinds:
        return low
    named = [(len(word), str(kind)) for kind, spec in kinds.items() for word in str(spec["also"]).split(", ") if word in low]
    return max(named)[1] if named else "report"


def choose_artifact(draft: Draft, artifacts: Sequence[str], activity: str) -> str:
    """One of the role's artifacts, weighted by how well its form suits the activity."""
    options = list(artifacts) or ["report"]
    kinds = load().tables["kinds"]
    weights = [float(kinds[kind_of(artifact)]["suits"].get(activity, 1)) for artifact in options]
    at = draft.random.random() * sum(weights)
    for artifact, weight in zip(options, weights, strict=True):
        at -= weight
        if at < 0:
            return artifact
    return options[-1]


def figures(draft: Draft, case: topics.Case, metric: topics.Metric, other: topics.Metric, today: date) -> dict[str, str]:
    """Numbers and dates that agree with each other throughout one text."""
    roll = draft.random.random
    n = int(case.many[0] + roll() * (case.many[1] - case.many[0]))
    k = max(2, round(n * (0.07 + 0.25 * roll())))
    k2 = max(2, round(n * (0.03 + 0.12 * roll())))
    if k2 == k:
        k += 1
    slots = {"n": wording.number(n), "k": wording.number(k), "k2": wording.number(k2), "rest": wording.number(n - k), "pct": f"{round(100 * k / n)} %",
             "pct2": f"{round(100 * k2 / n)} %", "sample": str(max(2, min(n // 3, 5 + int(roll() * 20)))), "half": wording.number(k // 2),
             "one_in": wording.in_words(round(n / k))}
    slots |= movement(draft, metric, "m") | movement(draft, other, "o")
    weeks = 2 + int(roll() * 7)
    start = wording.working_day(today, -5 * weeks)
    soon, later, check = 2 + int(roll() * 4), 6 + int(roll() * 6), 13 + int(roll() * 12)
    for name, day in (("since", start), ("today", today), ("soon", wording.working_day(today, soon)), ("later", wording.working_day(today, later)),
                      ("check_day", wording.working_day(today, check))):
        slots[name] = wording.day_month(day)
    slots |= {"soon_day": wording.weekday(wording.working_day(today, soon)), "weeks": wording.in_words(weeks), "iso": today.isoformat(),
              "days": wording.in_words(3 + int(roll() * 7)), "effort": wording.in_words(2 + int(roll() * 5)), "month": wording.month(today),
              "ref": str(100 + int(roll() * 900)), "owners": wording.in_words(2 + int(roll() * 3)), "minutes": str(20 + 5 * int(roll() * 6))}
    return slots


def movement(draft: Draft, metric: topics.Metric, name: str) -> dict[str, str]:
    """A metric now, before and as hoped for, with the verbs that fit."""
    span = metric.high - metric.low
    now = metric.low + span * (0.15 + 0.7 * draft.random.random())
    shift = max(now * (0.05 + 0.2 * draft.random.random()), 10 ** -_decimals(metric))
    better = draft.random.random() < 0.5
    rose = better == (metric.better == "higher")
    places = _decimals(metric)
    then = now - shift if rose else now + shift
    hoped = now * (0.9 - 0.1 * draft.random.random()) if metric.better == "lower" else now * (1.08 + 0.1 * draft.random.random())
    if metric.unit == "%":
        then, hoped = (min(max(value, 0.1), 99.5) for value in (then, hoped))
    return {name: metric.name, f"{name}_now": wording.measured(now, metric.unit, places), f"{name}_then": wording.measured(then, metric.unit, places),
            f"{name}_aim": wording.measured(hoped, metric.unit, places), f"{name}_moved": "rose" if rose else "fell",
            f"{name}_good": "better" if better else "worse", f"{name}_bad": "higher" if metric.better == "lower" else "lower", f"{name}_want": "lower" if metric.better == "lower" else "higher",
            f"{name}_push": "bring down" if metric.better == "lower" else "raise", ("m_improved" if better else "m_slipped") if name == "m" else "o_any": "yes"}


def _decimals(metric: topics.Metric) -> int:
    return 0 if metric.high >= 40 else 1 if metric.high >= 3 else 2


_LABEL = re.compile(r"^(?:[-*>#|] |-- )?(?:\[.\] )?(?:(?:R|Case )?\d+[.:]? )?(?:[A-Z][A-Za-z' ]{1,28}[:.] )?")
_LEAN = re.compile(r"\bof (?:them|these)\b|^(?:Here|This|These|It|They|For these|In their|Among)\b|\b(?:I|my|me|below|above)\b")


def borrowed(excerpt: str) -> str:
    """A sentence worth repeating out of an excerpt, one with figures where there is one; '' where none stands on its own."""
    best, most = "", 0
    for sentence in wording.sentences(excerpt):
        if '"' in sentence or "@" in sentence or "'" in sentence.replace("'s ", " ") or sentence.startswith(_HEADS) or "SELECT" in sentence:
            continue
        text = _CITED.sub("", _LABEL.sub("", sentence)).strip()
        text = wording.upper_first(wording.clip(text, 20))
        if not 5 <= wording.words(text) <= 20 or text.count("(") != text.count(")"):
            continue
        score = 1 + 3 * len(_FIGURE.findall(text)) - 4 * bool(_LEAN.search(text))
        if score > most:
            best, most = text, score
    return best


_HEADS = ("From:", "To:", "Cc:", "Subject:", "Dear", "Hello", "Ref", "Reporter", "Present", "Attendees", "Minutes", "Meeting", "When:", "Time needed")
_FIGURE = re.compile(r"\b\d[\d,.]*\b(?! (?:January|February|March|April|May|June|July|August|September|October|November|December))")
_CITED = re.compile(r"\s*\([^()]*\)\s*(?=[.]?$)")


def dependency_slots(dependency: Mapping[str, Json]) -> dict[str, str]:
    slots = {"dep": str(dependency["title"]).rstrip("."), "dep_author": str(dependency["author"]), "dep_kind": str(dependency["artifact"] or "report"),
             "dep_role": str(dependency["role"])}
    slots["dep_kind_low"] = "query" if slots["dep_kind"] == "SQL" else wording.lower_first(slots["dep_kind"])
    slots["dep_first"] = slots["dep_author"].split(" ", 1)[0]
    quote = borrowed(str(dependency["excerpt"]))
    if quote:
        slots["quote"] = quote
    return slots


_DEP_SLOTS = ("quote",)
_ONCE = frozenset(("do1", "do2", "why1", "why2", "check", "check2"))


def execute(inputs: Inputs, dice: Dice) -> Json:
    role, task, subtask, author = inputs["role"], inputs["task"], inputs["subtask"], inputs["author"]
    draft = Draft(dice.words, {}, once=_ONCE)
    today = wording.parse_date(inputs["date"]) or _START
    subjects = [str(s) for s in role["subjects"]]
    about = topics.own_subject(subjects, str(task["title"])) or topics.topic(str(task["title"]))
    own = topics.own_subject(subjects, str(subtask["goal"])) or about
    if about.lower() in str(subtask["goal"]).lower() and about in subjects:
        own = about
    work = topics.field_of(role)
    foreign = other_subjects(role, own)
    case = named_case(work, str(subtask["goal"])) or best_case(draft, work, foreign, own, about)
    first, second = topics.ranked(draft.random, case.problems, lambda p: p.text, own, about, foreign)[:2]
    metrics = topics.ranked(draft.random, work.metrics, lambda m: m.name, own, about, foreign)[:2]
    checks = topics.ranked(draft.random, work.lines["checks"], str, f"{own} {case.text}", about, foreign)[:2]
    artifact = choose_artifact(draft, [str(a) for a in role["artifacts"]], str(subtask["activity"]))
    kind = kind_of(artifact)
    draft.know(**figures(draft, case, metrics[0], metrics[-1], today))
    draft.know(
        O=own, T=about, items=case.items, item=case.item, source=case.source, author=str(author["name"]), first=str(author["name"]).split(" ", 1)[0],
        role=str(role["role"]), step=wording.lower_first(str(subtask["goal"]).strip().rstrip(".")), company=str(inputs["organization"]["name"]),
        flaw1=draft.phrase(first.flaw), why1=draft.phrase(first.cause), do1=draft.phrase(first.remedy),
        flaw2=draft.phrase(second.flaw), why2=draft.phrase(second.cause), do2=draft.phrase(second.remedy),
        check=draft.phrase(checks[0]), check2=draft.phrase(checks[1]), task=str(task["title"]).rstrip("."),
        head=head_of(inputs["organization"], str(role["role"])),
    )
    draft.know(**({"same": "yes"} if own == about else {"served": about}))
    head = draft.slots["head"]
    draft.know(
        head_the=f"the {head}", tag="".join(word[0] for word in str(role["role"]).split() if word[0].isalpha()).upper()[:3],
        severity=draft.pick(("high", "medium", "medium", "low")), few_number=wording.in_words(1 + int(draft.random.random() * 4)),
    )
    if role["responsibilities"]:
        draft.know(duty=wording.lower_first(str(topics.ranked(draft.random, role["responsibilities"], str, own, about, ())[0]).rstrip(".")))
    if role["skills"]:
        draft.know(skill=wording.lower_first(str(draft.pick(role["skills"]))))
    know_goal(draft, inputs, f"{own} {about}", role)
    if inputs["evidence"]:
        reading = wording.clip(str(inputs["evidence"][0]).replace("\n", " "), 24)
        if reading:
            draft.know(evidence=reading)
    if task["constraints"] and 3 < wording.words(str(task["constraints"])) <= 20:
        draft.know(constraint=wording.lower_first(str(task["constraints"]).strip().rstrip(".")))
    dependencies = [dependency_slots(dependency) for dependency in inputs["dependencies"]]
    know_dependencies(draft, dependencies, head)
    if kind == "sql":
        content = queries.content(draft, work.schema)
    else:
        content = fitted(draft, f"layout_{kind}")
    rules = (f"title_{kind}", "title")
    title = headline(draft, *(rules if draft.random.random() < 0.55 else reversed(rules)))
    return {"artifact": artifact, "title": title, "content": content}


def know_goal(draft: Draft, inputs: Inputs, subjects: str, role: Mapping[str, Json]) -> None:
    """One of the goals served, and whether the work bears on it directly."""
    owners = {str(goal["name"]): goal.get("owner") for goal in inputs["organization"]["goals"]}
    stated = known.goals([{**goal, "owner": owners.get(str(goal["name"]))} for goal in inputs["goals"]])
    if stated:
        goal = draft.pick(stated)
        linked = bears_on(goal, subjects, role) >= 1.2
        draft.know(**goal.slots(), **({"linked": "yes"} if linked else {}))


def named_case(work: topics.Field, goal: str) -> topics.Case | None:
    """The case whose things the subtask's goal names."""
    low = goal.lower()
    found = [case for case in work.cases if case.items in low or case.source in low]
    return found[0] if found else None


def head_of(organization: Mapping[str, Json], role: str) -> str:
    """The title of the head of the role's department, else the role's own title."""
    for department in organization["departments"]:
        if role in department["roles"] and department["head"] != role:
            return str(department["head"])
    return "management team"


def know_dependencies(draft: Draft, dependencies: Sequence[Mapping[str, str]], head: str) -> None:
    """`builds`: what the text builds on, a sentence each for the first three; and the people who were involved."""
    author = draft.slots["author"]
    said = []
    for position, slots in enumerate(dependencies[:3]):
        rule = "basis_own" if slots["dep_author"] == author else "basis_more" if position else "basis"
        said.append(local(draft, rule, slots))
    draft.know(builds=" ".join(said), builds_or=" ".join(said) or "Nothing on this was found in the pool.")
    others = wording.unique(slots["dep_author"] for slots in dependencies if slots["dep_author"] != author)
    if others:
        draft.know(colleague=others[0], colleague_first=others[0].split(" ", 1)[0])
    draft.know(present=wording.join([author, *others[:3]] if others else [author, f"the {head}"]), owner2=others[0] if others else f"the {head}",
               mail_to=head)
    if others:
        draft.know(copy_to=wording.join(others[:2]))


def headline(draft: Draft, *rules: str) -> str:
    """A title of at most eleven words."""
    best = ""
    for attempt in range(6):
        text = wording.upper_first(draft.say(rules[attempt % len(rules)]))
        if wording.words(text) <= 11:
            return text
        best = text if not best or wording.words(text) < wording.words(best) else best
    return best


def fitted(draft: Draft, rule: str) -> str:
    """A layout of the rule said until it has a good length; the closest try where none has."""
    best, off = "", 10_000
    for _ in range(4):
        draft.restart()
        text = tidy(draft.say(rule))
        size = wording.words(text)
        if SHORTEST <= size <= LONGEST:
            return text
        miss = max(SHORTEST - size, size - LONGEST)
        if miss < off:
            best, off = text, miss
    return best


def merge(inputs: Inputs, dice: Dice) -> Json:
    task = inputs["task"]
    about = topics.topic(str(task["title"]))
    today = wording.parse_date(inputs["date"]) or _START
    draft = Draft(dice.words, {"T": about, "task": str(task["title"]).rstrip("."), "company": str(inputs["organization"]["name"]),
                               "today": wording.day_month(today), "soon": wording.day_month(wording.working_day(today, 3 + int(dice.words.random() * 4))),
                               "later": wording.day_month(wording.working_day(today, 9 + int(dice.words.random() * 8)))})
    know_goal(draft, inputs, about, bare_role(""))
    partials = [dependency_slots(partial) for partial in inputs["partials"]]
    references = [dependency_slots(reference) for reference in inputs["references"]]
    telling = [part for part in partials if "quote" in part]
    if telling:
        lead = draft.pick(telling)
        draft.know(fact=lead["quote"], fact_author=lead["dep_author"], fact_title=lead["dep"])
    spoken = sorted(range(len(partials)), key=lambda at: ("quote" not in partials[at], at))[:3]
    parts = [local(draft, "merge_part" if at in spoken and "quote" in part and part["quote"] != draft.slots.get("fact") else "merge_part_bare", part)
             for at, part in enumerate(partials[:5])]
    draft.know(authors=wording.join(wording.unique(part["dep_author"] for part in partials)) or draft.slots["company"],
               part_count=wording.in_words(len(partials)), pieces="piece" if len(partials) == 1 else "pieces",
               parts=" ".join(parts), listed="\n".join(f"- {part}" for part in parts),
               used=" ".join(local(draft, "merge_reference", reference, _DEP_SLOTS) for reference in references[:3]))
    if len(partials) > 1:
        draft.know(one=partials[0]["dep_author"], other=partials[-1]["dep_author"])
        if partials[0]["dep_author"] != partials[-1]["dep_author"]:
            draft.know(two="yes")
    if partials:
        work = topics.field_of(partials[-1]["dep_role"])
        text = " ".join(part.get("quote", "") for part in partials)
        draft.know(check=draft.phrase(topics.ranked(draft.random, work.lines["checks"], str, about, text, ())[0]))
    content = fitted(draft, "layout_merge")
    for _ in range(4):
        if wording.words(content) >= 84:
            break
        content = tidy(f"{content} {draft.say('merge_close')}")
    title = headline(draft, "title_merge")
    return {"title": title, "content": content}
