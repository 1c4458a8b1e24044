"""What an agent hands in (execute) and what a composite task ends in (merge).

A deliverable tells one story: a case of the author's field with its figures, what is wrong, why, what to do, and what it builds on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from functools import partial
from zlib import crc32

from taskweave.backbones.scripted import known, payloads, queries, topics, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.figures import due, figures, share
from taskweave.backbones.scripted.grammar import Draft, frame, load, shortened, tidy
from taskweave.backbones.scripted.planning import local
from taskweave.backbones.scripted.sources import bears, dependency_slots, found_in, know_dependencies, named
from taskweave.backbones.scripted.topics import bare_role, bears_on, best_case, other_subjects
from taskweave.records import Json

Inputs = Mapping[str, Json]
SHORTEST, LONGEST = 66, 200
_START = date(2026, 1, 5)
_TOLD_GOAL = 0.5  # how often a text that bears on a goal says so


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


_SPARE = frozenset(("metric_line", "limit", "method", "finding2", "implication", "opening", "next", "remedy2"))
_ONCE = frozenset(("do1", "do2", "why1", "why2", "check", "check2", "m_now"))


def execute(inputs: Inputs, dice: Dice) -> Json:
    role, task, subtask, author = known.role(inputs["role"]), inputs["task"], inputs["subtask"], inputs["author"]
    today = wording.parse_date(inputs["date"]) or _START
    salt = crc32(str(author["name"]).encode()) + today.isocalendar().week  # the same author words it otherwise the week after
    draft = Draft(dice.words, {}, once=_ONCE, spare=_SPARE, salt=salt)
    goal = str(subtask["goal"])
    own, about = subjects_of(role, goal, str(task["title"]))
    foreign = other_subjects(role, own)
    case = named_case(topics.field_of(role), goal, own) or best_case(draft, topics.field_of(role), own)
    first, second = topics.ranked(draft.random, case.problems, lambda p: p.text, own, about, foreign, spread=2.6)[:2]
    first, second = sorted((first, second), key=lambda problem: -share(str(task["title"]), problem.flaw))
    named = topics.measured_in(goal)
    metrics = [*([named] if named else []), *topics.ranked(draft.random, topics.measures(case, own), lambda m: m.name, own, about, foreign)]
    checks = topics.ranked(draft.random, topics.checks(case, own), str, f"{own} {case.items} {case.source}", about, foreign)[:2]
    artifact = choose_artifact(draft, [str(a) for a in role["artifacts"]], str(subtask["activity"]))
    kind = kind_of(artifact)
    draft.know(**figures(draft, case, (first, second), metrics[:2], today, str(task["title"])))
    draft.know(
        O=own,
        T=about,
        items=case.items,
        item=case.item,
        source=case.source,
        author=str(author["name"]),
        first=str(author["name"]).split(" ", 1)[0],
        role=str(role["role"]),
        role_the=str(role["role"]) if str(role["role"]).isupper() else f"the {role['role']}",
        step=wording.lower_first(str(subtask["goal"]).strip().rstrip(".")),
        company=str(inputs["organization"]["name"]),
        flaw1=draft.phrase(first.flaw),
        why1=draft.phrase(first.cause),
        do1=draft.phrase(first.remedy),
        flaw2=draft.phrase(second.flaw),
        why2=draft.phrase(second.cause),
        do2=draft.phrase(second.remedy),
        task=str(task["title"]).rstrip("."),
        head=head_of(inputs["organization"], str(role["role"])),
    )
    if topics.answer_in(str(task["title"])):
        draft.know(incident=known.quoted(about)[0], **known.asked_for(f"{task.get('background') or ''} {task.get('description') or ''}"))
    draft.know(check=draft.phrase(checks[0]), check2=draft.phrase(checks[1]))
    draft.know(**({"same": "yes"} if own == about else {"served": about}))
    head = draft.slots["head"]
    draft.know(
        head_the=f"the {head}",
        tag="".join(word[0] for word in str(role["role"]).split() if word[0].isalpha()).upper()[:3],
        severity=draft.pick(("high", "medium", "medium", "low")),
        few_number=wording.in_words(2 + int(draft.random.random() * 4)),
    )
    if role["responsibilities"]:
        draft.know(duty=wording.lower_first(str(topics.ranked(draft.random, role["responsibilities"], str, own, about, ())[0]).rstrip(".")))
    if role["skills"]:
        draft.know(skill=wording.lower_first(str(draft.pick(role["skills"]))))
    know_goal(draft, inputs, f"{own} {about}", role)
    if inputs["evidence"]:
        reading = wording.clip(str(inputs["evidence"][0]).replace("\n", " ").replace("_", " ").replace(": ", " at ", 1), 24)
        if reading:
            draft.know(evidence=reading)
    if task["constraints"] and "…" not in task["constraints"] and 3 < wording.words(str(task["constraints"])) <= 20:
        draft.know(constraint=wording.lower_first(str(task["constraints"]).strip().rstrip(".")))
    dependencies = [dependency_slots(dependency) for dependency in inputs["dependencies"]]
    payloads.know_people(draft, inputs["organization"], str(role["role"]), dependencies, head)
    if kind == "minutes":
        draft.know(third="yes")
    asked = payloads.asked(goal, own, about, str(subtask["activity"]))
    payloads.know_question(draft, asked)
    know_dependencies(draft, dependencies, topics.stems(f"{own} {about} {case.items} {case.item}"))

    def begin(attempt: int) -> None:
        payloads.know_payload(draft, asked)

    rule: str | Callable[[], str] = partial(queries.content, draft, case) if kind == "sql" else f"layout_{kind}"
    content = fitted(draft, rule, begin)
    rules = [f"title_{kind}", "title", f"titled_{asked}"]
    draft.random.shuffle(rules)
    title = headline(draft, *rules, told=content)
    if case.people:
        title, content = (people_as_who(text, (draft.slots["flaw1"], draft.slots["flaw2"])) for text in (title, content))
    return {"artifact": artifact, "title": title, "content": content}


def people_as_who(text: str, flaws: Iterable[str]) -> str:
    """The text with 'who' for 'that' where the flaws are of people."""
    for flaw in flaws:
        text = text.replace(f" that {flaw}", f" who {flaw}")
    return text


def subjects_of(role: Mapping[str, Json], goal: str, title: str) -> tuple[str, str]:
    """What the author works on, and what the task is about; the same where the author does not serve it through a subject of its own."""
    subjects = [str(s) for s in role["subjects"]]
    about = topics.topic(title)
    if topics.answer_in(title):
        return about, about
    named = topics.own_subject(subjects, title)
    for subject in (named, about):
        if subject and (found := topics.assisting_subject(goal, subject)):
            return found, subject
    about = named or about
    if about.lower() in goal.lower():
        return about, about
    return topics.own_subject(subjects, goal) or about, about


def know_goal(draft: Draft, inputs: Inputs, subjects: str, role: Mapping[str, Json]) -> None:
    """One of the goals served, and whether the work bears on it directly."""
    owners = {str(goal["name"]): goal.get("owner") for goal in inputs["organization"]["goals"]}
    stated = known.goals([{**goal, "owner": owners.get(str(goal["name"]))} for goal in inputs["goals"]])
    if stated:
        goal = draft.pick(stated)
        linked = bears_on(goal, subjects, role) >= 1.2 and draft.random.random() < _TOLD_GOAL
        draft.know(**goal.slots(), **({"linked": "yes"} if linked else {}))


def named_case(work: topics.Field, goal: str, subject: str) -> topics.Case | None:
    """The case whose things the subtask's goal names."""
    low = goal.lower()
    if topics.answer_in(subject):
        return next((case for case in topics.incident_cases() if case.source in low or f" {case.items} " in low), None)
    others = (known for known in topics.fields().values() if known is not work)
    found = [case for known in (work, *others) for case in known.cases if case.source in low]
    found += [case for case in work.cases if f"{case.items} " in low]
    return found[0] if found else None


def head_of(organization: Mapping[str, Json], role: str) -> str:
    """The title of the head of the role's department, else the role's own title."""
    for department in organization["departments"]:
        if role in department["roles"] and department["head"] != role:
            return str(department["head"])
    return "management team"


_NUMBER = re.compile(r"\d[\d,.]*")


def headline(draft: Draft, *rules: str, told: str = "") -> str:
    """A title of at most eleven words whose figures come up in the text below it, and that names the subject where the text does not."""
    best, worst = "", 99
    figures = set(_NUMBER.findall(told))
    subject = draft.slots["O"].lower() if told and draft.slots["O"].lower() not in told.replace("\n-- ", " ").lower() else ""
    for attempt in range(8):
        text = wording.upper_first(draft.say(rules[attempt % len(rules)]))
        faults = (
            max(0, wording.words(text) - 11)
            + 9 * (subject not in text.lower())
            + 5 * (bool(told) and not figures.issuperset(_NUMBER.findall(text)))
        )
        if not faults:
            return text
        if faults < worst:
            best, worst = text, faults
    return best


def fitted(draft: Draft, rule: str | Callable[[], str], begin: Callable[[int], None] = lambda attempt: None) -> str:
    """A text said until it has a good length; from the second try on with ever less of what it builds on, at last by name only."""
    best, off = "", 10_000
    for attempt in range(12):
        draft.restart()
        shorter = {1: "_brief", 3: "_bare", 5: "_last"}.get(attempt)
        if shorter:
            draft.know(**{name.removesuffix(shorter): text for name, text in draft.slots.items() if name.endswith(shorter)})
        begin(attempt)
        text = tidy(shortened(draft.say(rule), LONGEST)) if isinstance(rule, str) else rule()
        size = wording.words(text)
        if SHORTEST <= size <= LONGEST:
            return text
        miss = max(SHORTEST - size, 3 * (size - LONGEST))
        if miss < off:
            best, off = text, miss
    return best
