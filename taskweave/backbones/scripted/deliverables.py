"""What an agent hands in (execute).

A deliverable tells one story: a case of the author's field with its figures, what is wrong, why, what to do, and what it builds on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache, partial
from zlib import crc32

from taskweave.backbones.scripted import facts, fields, known, payloads, products, queries, topics, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.figures import OF_SECOND, Setting, count, figures
from taskweave.backbones.scripted.findings import Finding
from taskweave.backbones.scripted.grammar import Draft, load, shortened, tidy, words_of
from taskweave.backbones.scripted.sources import Source, know_sources, source
from taskweave.backbones.scripted.topics import bears_on, other_subjects
from taskweave.records import Json

Inputs = Mapping[str, Json]
SHORTEST, LONGEST = 66, 200
_START = date(2026, 1, 5)
_TOLD_GOAL = 0.5  # how often a text that bears on a goal says so


@lru_cache(maxsize=1024)
def kind_of(artifact: str) -> str:
    """The form in which an artifact is written, whatever a role calls it."""
    low = artifact.lower().strip()
    kinds = load().tables["kinds"]
    if low in kinds:
        return low
    named = [(len(word), str(kind)) for kind, spec in kinds.items() for word in str(spec["also"]).split(", ") if word in low]
    return max(named)[1] if named else "report"


@lru_cache(maxsize=1024)
def _suiting(artifacts: tuple[str, ...], activity: str) -> tuple[float, ...]:
    """How well the form of each artifact suits an activity."""
    kinds = load().tables["kinds"]
    return tuple(float(kinds[kind_of(artifact)]["suits"].get(activity, _UNSUITED)) for artifact in artifacts)


_UNSUITED = 0.001  # the weight of a form that does not suit an activity: taken where no other one does


def choose_artifact(draft: Draft, artifacts: tuple[str, ...], activity: str, meeting: bool = True) -> str:
    """One of the role's artifacts, weighted by how well its form suits the activity; minutes only of a `meeting`."""
    options = artifacts or ("report",)
    weights = _suiting(options, activity)
    if not meeting:
        weights = tuple(0.0 if kind_of(one) == "minutes" else weight for one, weight in zip(options, weights, strict=True))
    at = draft.random.random() * sum(weights)
    for artifact, weight in zip(options, weights, strict=True):
        at -= weight
        if at < 0:
            return artifact
    return options[-1]


_SPARE = frozenset(("metric_line", "limit", "method", "finding2", "implication", "opening", "next", "remedy2", "second"))
_ONCE = frozenset(("do1", "do2", "why1", "why2", "check", "check2", "m_now"))
_INHERITED = 0.6  # how often a part goes on with the finding of the part before it where the task names none


@dataclass(frozen=True, slots=True)
class Story:
    """What a text is about: the author's subject and the task's, the things counted, and a flaw of them with a smaller one, if any."""

    own: str
    about: str
    case: fields.Case
    problems: tuple[fields.Problem, fields.Problem | None]
    found: tuple[Finding | None, Finding | None]
    setting: Setting
    whole: int  # how many items there are according to an earlier part; 0 where none says so


def case_of(
    draft: Draft, inputs: Inputs, role: known.Role, works: tuple[str, ...], sources: Sequence[Source], own: str, about: str
) -> fields.Case:
    """What is looked at for the subject `own`; `works` are the fields of the author and those near.

    Who does not own a subject looks at what its owner looks at, as far as the task's words or earlier results tell.
    """
    task, goal, work = inputs["task"], str(inputs["subtask"]["goal"]), topics.field_of(role)
    if topics.answer_in(own):
        chosen: fields.Case = named_case(work, goal, own) or draft.pick(fields.incident_cases())
        return chosen
    if named := named_case(work, goal, own):
        return named
    if own in role.subjects:
        return topics.best_case((work.name,), own)
    told = topics.case_told(f"{task['description']} {task['background']}".lower(), work, works, own) if own == about else None
    seen = next((finding.flaw.case for one in sources if one.about(own) for finding in one.found[:1]), None)
    return told or seen or topics.best_case(works, own)


def story_of(draft: Draft, inputs: Inputs, role: known.Role, near: Sequence[str], sources: Sequence[Source]) -> Story:
    """The story of a text: of the flaw that the task names, else of one that an earlier part has counted, else of one that suits."""
    task = inputs["task"]
    title = str(task["title"])
    own, about = subjects_of(role, str(inputs["subtask"]["goal"]), title)
    works = topics.homes(*near)
    case = case_of(draft, inputs, role, works, sources, own, about)
    served = topics.best_case(works, about)
    place = about if own == about or case.items == served.items else own
    today = wording.parse_date(inputs["date"]) or _START
    setting = Setting.of(f"{inputs['organization']['name']}:{place}", title, today, str(task["background"] or ""))
    counted = {finding.flaw.problem: finding for one in reversed(sources) if one.part for finding in one.found if finding.flaw.case is case}
    whole = next((finding.total for finding in counted.values() if finding.total), 0)
    ranked = topics.ranked(draft.random, case.problems, case.texts, own, about, other_subjects(role, own), spread=1.4)
    ranked.sort(key=topics.foreign(case, own, about).__contains__)
    asked = [flaw.problem for flaw in fields.flaws_in(f"{task['description']} {task['background']}") if flaw.case is case]
    inherits = draft.random.random() < _INHERITED
    first = [*asked[:1], *(list(counted)[-1:] if inherits else ()), *ranked][0]

    def size(problem: fields.Problem) -> int:
        return counted[problem].count if problem in counted else count(setting, case, problem.flaw)

    second = next((problem for problem in [*counted, *ranked] if problem is not first and size(problem) < size(first)), None)
    return Story(own, about, case, (first, second), (counted.get(first), counted.get(second) if second else None), setting, whole)


def colleagues(organization: Mapping[str, Json], role: str) -> list[str]:
    """The roles of the departments that have a role, itself among them."""
    found = [
        str(title)
        for department in organization["departments"]
        if role in department["roles"]
        for title in known.listed(department["roles"])
    ]
    return found or [role]


def execute(inputs: Inputs, dice: Dice) -> Json:
    role, task, subtask, author = known.role(inputs["role"]), inputs["task"], inputs["subtask"], inputs["author"]
    today = wording.parse_date(inputs["date"]) or _START
    salt = crc32(str(author["name"]).encode()) + today.isocalendar().week  # the same author words it otherwise the week after
    draft = Draft(dice.words, {}, once=_ONCE, spare=_SPARE, salt=salt)
    sources = [source(raw) for raw in inputs["dependencies"]]
    near = colleagues(inputs["organization"], role.title)
    story = story_of(draft, inputs, role, near, sources)
    others = payloads.others_of(sources, str(author["name"]), near, story.own, story.about)
    artifact = choose_artifact(draft, role.artifacts, str(subtask["activity"]), meeting=bool(others))
    kind = kind_of(artifact)
    description, constraint = str(task.get("description") or ""), str(task.get("constraints") or "")
    head = head_of(inputs["organization"], role.title, [one.id for one in sources if one.part], f"{task['background']} {constraint}")
    know_author(draft, author, role, head)
    know_story(draft, inputs, story, role)
    know_goal(draft, inputs, f"{story.own} {story.about}", role)
    payloads.know_people(draft, near, role.title, others, head, meeting=kind == "minutes")
    if kind in ("minutes", "e-mail"):
        draft.know(**{"third" if kind == "minutes" else "mail": "yes"})
    asked = payloads.asked(str(subtask["goal"]), story.own, story.about, str(subtask["activity"]))
    payloads.know_question(draft, asked)
    know_sources(draft, sources, story.problems[0])
    leads = topics.own_subject(role.subjects, str(task["title"])) == story.own and "incident" not in draft.slots
    wanted = (description, str(task["title"])) if leads and kind != "sql" else ("", "")

    known_facts = facts.say_facts(draft, facts.offered(inputs["evidence"])[1])

    second = {name: draft.slots[name] for name in (*OF_SECOND, "rest") if name in draft.slots}

    def begin(attempt: int) -> None:
        draft.know(**second)
        payloads.know_payload(draft, asked)
        product = products.say_products(draft, story.case, *wanted, told=asked) if attempt < 9 else ""
        draft.slots.pop("rich", None)
        if product:
            draft.know(payload=f"{draft.slots['payload']}\n\n{product}")
        if product or attempt > 3:
            draft.know(rich="yes")
        payloads.know_told(draft)
        kept = products.say_condition(draft, constraint) if attempt < 6 else ""
        level = "all" if attempt < 4 else "brief" if attempt < 7 else "last"
        draft.know(sources=f"{known_facts}\n{kept}\n{draft.slots[f'sources_{level}']}".strip())
        if level == "last":
            draft.know(builds="")

    rule: str | Callable[[], str] = partial(queries.content, draft, story.case) if kind == "sql" else f"layout_{kind}"
    content = fitted(draft, rule, begin)
    rules = [f"title_{kind}", "title", f"titled_{asked}"]
    draft.random.shuffle(rules)
    title = headline(draft, *rules, told=content)
    if story.case.people:
        flaws = [problem.flaw for problem in story.problems if problem] + [draft.slots["flaw1"], draft.slots.get("flaw2", "")]
        title, content = (people_as_who(text, filter(None, flaws)) for text in (title, content))
    return {"artifact": artifact, "title": title, "content": content}


def know_author(draft: Draft, author: Mapping[str, Json], role: known.Role, head: str) -> None:
    draft.know(
        author=str(author["name"]),
        first=str(author["name"]).split(" ", 1)[0],
        role=role.title,
        role_the=role.title if role.title.isupper() else f"the {role.title}",
        head=head,
        head_the=f"the {head}",
        tag="".join(word[0] for word in role.title.split() if word[0].isalpha()).upper()[:3],
    )


def know_story(draft: Draft, inputs: Inputs, story: Story, role: known.Role) -> None:
    """The figures, the flaws with causes and remedies, the checks and the measure of a text."""
    task, case, own, about = inputs["task"], story.case, story.own, story.about
    first, second = story.problems
    draft.know(**figures(story.setting, case, story.problems, measures_of(draft, inputs, story, role), story.found, story.whole))
    draft.know(
        O=own,
        T=about,
        items=case.items,
        item=case.item,
        source=case.source,
        company=str(inputs["organization"]["name"]),
        flaw1=story.found[0].flaw.text if story.found[0] else draft.phrase(first.flaw),
        why1=draft.phrase(first.cause),
        do1=draft.phrase(first.remedy),
        task=str(task["title"]).rstrip("."),
        severity=severity(draft),
        few_number=wording.in_words(2 + int(draft.random.random() * 4)),
    )
    if second:
        draft.know(
            flaw2=story.found[1].flaw.text if story.found[1] else draft.phrase(second.flaw),
            why2=draft.phrase(second.cause),
            do2=draft.phrase(second.remedy),
        )
    draft.know(**({"same": "yes"} if own == about else {"served": about}), whom=whom(case))
    know_nature(draft, case)
    possible = topics.checks(case, own)
    checks = topics.ranked(draft.random, possible, possible, f"{own} {case.items} {case.source}", about, other_subjects(role, own))
    draft.know(check=draft.phrase(checks[0]), check2=draft.phrase(checks[1]))
    if topics.answer_in(str(task["title"])):
        draft.know(incident=known.quoted(about)[0], **known.asked_for(f"{task.get('background') or ''} {task.get('description') or ''}"))
    if duties := role.responsibilities:
        duty = topics.ranked(draft.random, duties, duties, own, about, ())[0].rstrip(".")
        if topics.telling_stems(duty) & wording.stems(f"{own} {about} {case.items} {case.source}"):
            draft.know(duty=wording.lower_first(duty))
    if measured := facts.offered(inputs["evidence"])[0]:
        reading = wording.clip(measured[0].replace("\n", " ").replace("_", " ").replace(": ", " at ", 1), 24)
        if len(wording.stems(f"{own} {about} {case.items}") & wording.stems(reading)) > 1:
            draft.know(evidence=reading)


def know_nature(draft: Draft, case: fields.Case) -> None:
    """What can be done about items by hand, and what is hoped for: things are put right one by one, of what happens fewer are to come."""
    slots = draft.slots
    if case.passing:
        aimed = f"at most {slots['below_pct']} of the next {case.items} {slots['flaw1']}"
        draft.know(event="yes", by_hand="make up for each one afterwards", aimed=aimed, less=f"{slots['below_pct']} of the next ones")
    else:
        aimed = f"at most {slots['below']} of {slots['n']} {case.items} {slots['flaw1']}"
        draft.know(stock="yes", by_hand="correct them by hand each month", aimed=aimed, less=f"{slots['below']} of {slots['n']}")


def severity(draft: Draft) -> str:
    """How grave the main finding is, by its share."""
    share = int(draft.slots["pct"].split()[0])
    return "high" if share > 22 else "medium" if share > 9 else "low"


def whom(case: fields.Case) -> str:
    """What those are called who are behind the items of a case."""
    return str(load().tables["concerned"].get(case.field, "people"))


def measures_of(draft: Draft, inputs: Inputs, story: Story, role: known.Role) -> list[fields.Metric]:
    """The metric that the subtask or its task names; without one, now and then one that suits, so that texts are not about two things."""
    named = fields.measured_in(str(inputs["subtask"]["goal"])) or fields.measured_in(str(inputs["task"]["description"]))
    if named:
        return [named]
    measures = topics.measures(story.case, story.own)
    if not measures or draft.random.random() > _MEASURED:
        return []
    return topics.ranked(draft.random, measures, fields.names_of(measures), story.own, story.about, other_subjects(role, story.own))[:1]


_MEASURED = 0.3  # how often a text speaks of a metric that nobody has asked for


def people_as_who(text: str, flaws: Iterable[str]) -> str:
    """The text with 'who' for 'that' where the flaws are of people, some of whom are called new already."""
    for flaw in flaws:
        text = text.replace(f" that {flaw}", f" who {flaw}")
    return text.replace("new new ", "new ")


def subjects_of(role: known.Role, goal: str, title: str) -> tuple[str, str]:
    """What the author works on, and what the task is about; the same where the author does not serve it through a subject of its own."""
    subjects = role.subjects
    about = topics.topic(title)
    if topics.answer_in(title):
        return about, about
    about = topics.widened(about, title, goal)
    named = topics.own_subject(subjects, title)
    for subject in (named, about):
        if subject and (found := topics.assisting_subject(goal, subject)):
            return found, subject
    about = named or about
    if about.lower() in goal.lower():
        return about, about
    return topics.own_subject(subjects, goal) or about, about


def know_goal(draft: Draft, inputs: Inputs, subjects: str, role: known.Role) -> None:
    """One of the goals served, and whether the work bears on it directly."""
    if inputs["goals"]:
        raw = draft.pick(inputs["goals"])
        owner = next((goal.get("owner") for goal in inputs["organization"]["goals"] if goal["name"] == raw["name"]), None)
        goal = known.goal_of(raw, owner)
        linked = bears_on(goal, subjects, role) >= 1.2 and draft.random.random() < _TOLD_GOAL
        draft.know(**goal.slots(), **({"linked": "yes"} if linked else {}))


def named_case(work: fields.Field, goal: str, subject: str) -> fields.Case | None:
    """The case whose things the subtask's goal names."""
    low = goal.lower()
    if topics.answer_in(subject):
        return next((case for case in fields.incident_cases() if case.source in low or f" {case.items} " in low), None)
    return fields.case_by_source(low, work) or next((case for case in work.cases if f"{case.items} " in low), None)


def head_of(organization: Mapping[str, Json], role: str, ids: Sequence[str] = (), told: str = "") -> str:
    """The title of the head of the unit that owns a task: of the one in the ids of its parts, or that is named in what is `told` of it.

    Where neither tells, the head of the department of `role`, of which the role itself can be no head.
    """
    heads = [(str(department["head"]), str(department["name"])) for department in organization["departments"]]
    for owner in (found.group(1) for found in map(_OWNER.search, ids) if found):
        for head, _ in heads:
            if _slug(head) == owner:
                return head
    named = [(told.find(name), head) for head, department in heads for name in (head, department) if name and name in told]
    if named:
        return min(named)[1]
    for department in organization["departments"]:
        if role in department["roles"] and department["head"] != role:
            return str(department["head"])
    return "management team"


_OWNER = re.compile(r"@([a-z0-9-]+)/")


@lru_cache(maxsize=256)
def _slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


_NUMBER = re.compile(r"\d[\d,.]*")


def headline(draft: Draft, *rules: str, told: str = "") -> str:
    """A title of at most eleven words whose figures come up in the text below it, and that names the subject where the text does not."""
    best, worst = "", 99
    subject = draft.slots["O"].lower() if told else ""
    if subject in told or subject in told.replace("\n-- ", " ").lower():
        subject = ""
    for attempt in range(8):
        text = wording.upper_first(draft.say(rules[attempt % len(rules)]))
        faults = (
            max(0, wording.words(text) - 11)
            + 9 * (subject not in text.lower())
            + 5 * (bool(told) and bool(figures := _NUMBER.findall(text)) and not set(figures) <= set(_NUMBER.findall(told)))
        )
        if not faults:
            return text
        if faults < worst:
            best, worst = text, faults
    return best


def fitted(draft: Draft, rule: str | Callable[[], str], begin: Callable[[int], None]) -> str:
    """A text said until it has a good length; `begin` is told before each try how many there were, to say ever less."""
    best, off = "", 10_000
    for attempt in range(12):
        draft.restart()
        begin(attempt)
        if isinstance(rule, str):
            text = tidy(shortened(draft.say(rule), LONGEST))
            size = words_of(text)
        else:
            text = rule()
            size = wording.words(text)
        if SHORTEST <= size <= LONGEST:
            return text
        miss = max(SHORTEST - size, 3 * (size - LONGEST))
        if miss < off:
            best, off = text, miss
    return best
