"""Composite tasks and their parts: partition_week, respond (urgent tasks) and decompose."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from taskweave.backbones.scripted import known, topics, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, frame, load, tidy
from taskweave.backbones.scripted.known import Goal
from taskweave.backbones.scripted.planning import incident_sentences, local, parent_goal, revised
from taskweave.records import Json

Inputs = Mapping[str, Json]

# Where in a task an activity usually stands, 0 first to 1 last.
_STAGE = {"research": 0.0, "analyse": 0.15, "plan": 0.2, "negotiate": 0.3, "recruit": 0.3, "design": 0.35, "write": 0.55, "implement": 0.5, "support": 0.5,
          "train": 0.7, "test": 0.75, "audit": 0.7, "deploy": 0.85, "review": 0.85, "report": 1.0}


def skeleton(title: str) -> str:
    """A title without figures and capitals, to tell whether two say the same."""
    return re.sub(r"[^a-z]+", " ", title.lower()).strip()


@dataclass(slots=True)
class _Week:
    """What the tasks of one answer share: the roles, goals, words for why now, and the titles and subjects already taken."""

    draft: Draft
    roles: Mapping[str, Mapping[str, Json]]
    activities: Sequence[str]
    goals: Sequence[Goal]
    taken: set[str]
    recent: str
    subjects: set[str] = field(default_factory=set)
    preferred: Goal | None = None

    def lead(self, slot: Mapping[str, Json], draws: Random) -> Mapping[str, Json]:
        shapes = sorted(slot["roles"], key=lambda shape: (-float(shape["hours"] or 0), str(shape["role"])))
        shape = shapes[0] if len(shapes) < 2 or draws.random() < 0.7 else shapes[1 + int(draws.random() * (len(shapes) - 1))]
        return self.roles.get(str(shape["role"])) or bare_role(str(shape["role"]))

    def subject(self, role: Mapping[str, Json]) -> str:
        options = [str(s) for s in role["subjects"]] or [f"{str(role['role']).lower()} work"]
        fresh = [s for s in options if s not in self.subjects and s.lower() not in self.recent]
        fresh = fresh or [s for s in options if s not in self.subjects] or options
        chosen: str = self.draft.pick(fresh)
        self.subjects.add(chosen)
        return chosen

    def title(self, activity: str, subject: str, field_lines: Sequence[str], general: Sequence[str]) -> str:
        """A title that no other task of the answer, and none of the recent ones, has."""
        heads = topics.lines(load().tables["titles"].get(activity) or load().tables["titles"]["analyse"])
        wanted = topics.stems(subject)
        suited = [angle for angle, _, tags in (line.partition("::") for line in field_lines) if not tags.strip() or wanted & topics.stems(tags)]
        title = ""
        for attempt in range(12):
            angle = self.draft.pick(suited if suited and self.draft.random.random() < 0.62 else general)
            if not self.draft.fits(frame(angle)):
                continue
            head = self.draft.phrase(self.draft.pick(heads).replace("{S}", subject)) if attempt < 10 else self.draft.say("plain")
            title = f"{head} {self.draft.phrase(angle)}".strip()
            if skeleton(title) not in self.taken:
                break
        self.taken.add(skeleton(title))
        return title


def bare_role(title: str) -> dict[str, Json]:
    """A role of which nothing but the title is known."""
    return {"role": title, "responsibilities": [], "skills": [], "activities": [], "artifacts": [], "subjects": []}


_SUPPORTING = frozenset(("people", "office"))  # fields whose work reaches a goal only through others


def bears_on(goal: Goal, subject: str, role: Mapping[str, Json]) -> float:
    """How directly work of a role on a subject bears on a goal: by words in common."""
    wanted = topics.stems(f"{goal.text} {goal.kpi} {goal.short}")
    nearby = topics.stems(" ".join(map(str, (*role["responsibilities"], *role["skills"]))))
    return 2.0 * len(wanted & topics.stems(subject)) + 0.4 * min(len(wanted & nearby), 4)


def _goal_for(week: _Week, subject: str, role: Mapping[str, Json]) -> tuple[Goal, bool] | None:
    """A goal that the work serves, the unit's own and near ones more often, and whether it serves it directly."""
    if not week.goals:
        return None
    owner = week.draft.slots["owner"]
    weights = [0.05 + (1.6 if goal.owner == owner else 0.0) + bears_on(goal, subject, role) + (0.5 if goal is week.preferred else 0.0) for goal in week.goals]
    goal = week.draft.random.choices(week.goals, [weight * weight for weight in weights])[0]
    near = bears_on(goal, subject, role)
    return goal, near >= 2 or (topics.field_of(role).name not in _SUPPORTING and (goal.owner == owner or near >= 1.2))


def _task(week: _Week, slot: Mapping[str, Json], dice: Dice, first: bool, incident: Mapping[str, Json] | None, urgent: bool) -> dict[str, Json]:
    draft = week.draft
    role = week.lead(slot, dice.draws)
    work = topics.field_of(role)
    subject = week.subject(role)
    served = _goal_for(week, subject, role)
    goal = served[0] if served else None
    usable = [a for a in role["activities"] if a in week.activities] or list(role["activities"]) or list(week.activities)
    activity = str(draft.pick(usable)) if usable else "analyse"
    others = [str(shape["role"]) for shape in slot["roles"] if shape["role"] != role["role"]]
    foreign = other_subjects(role, subject)
    metric = topics.ranked(draft.random, work.metrics, lambda m: m.name, subject, "", foreign)[0]
    case = best_case(draft, work, foreign, subject)
    problem = topics.ranked(draft.random, case.problems, lambda p: p.text, subject, "", foreign)[0]
    slots = {"S": subject, "T": subject, "lead": role_name(role), "metric": metric.name, "items": case.items, "item": case.item, "source": case.source,
             "flaw": draft.phrase(problem.flaw), "hours": wording.number(float(slot["hours"]))}
    if role["responsibilities"]:
        slots["duty"] = wording.lower_first(str(topics.ranked(draft.random, role["responsibilities"], str, subject, "", ())[0]).rstrip("."))
    if others:
        slots |= {"others": wording.join(others), "other": others[0], "several" if len(others) > 1 else "single": "yes"}
    if served:
        slots |= served[0].slots() | {"linked" if served[1] else "unlinked": "yes"}
    if incident:
        slots |= known.incident_slots(incident)
    before = draft.slots
    draft.slots = before | slots
    title = week.title(activity, subject, work.lines["angles"], topics.lines(load().tables["angles"]))
    if urgent and incident:
        title = f"{slots['incident']}: {wording.lower_first(title)}"
    background = [draft.say("background_incident") if incident else draft.say("background"), draft.say("background_more")]
    description = [draft.say(f"describe_{activity}" if draft.has(f"describe_{activity}") else "describe"),
                   draft.phrase(draft.pick(work.lines["outputs"])) if draft.random.random() < 0.75 else "",
                   draft.say("describe_others") if others else ""]
    constraints = draft.say("constraint") if draft.random.random() < 0.5 else draft.phrase(draft.pick(work.lines["rules"]))
    draft.slots = before
    chance = draft.random.random()
    priority = "high" if urgent or (first and chance < 0.5) or chance < 0.18 else ("low" if chance > 0.85 else "normal")
    goals = [goal.name] if goal else []
    if len(week.goals) > 1 and draft.random.random() < 0.2:
        goals = wording.unique([*goals, draft.pick(week.goals).name])
    return {"title": wording.upper_first(title), "background": tidy(" ".join(background)), "description": tidy(" ".join(description)), "activity": activity,
            "priority": priority, "goals": goals, "constraints": tidy(constraints)}


def role_name(role: Mapping[str, Json]) -> str:
    return str(role["role"])


def other_subjects(role: Mapping[str, Json], subject: str) -> tuple[str, ...]:
    return tuple(str(s) for s in role["subjects"] if s != subject)


def best_case(draft: Draft, work: topics.Field, foreign: tuple[str, ...], own: str, near: str = "") -> topics.Case:
    """A case of the field that the words of the subject call for, else of what the subject serves, else any."""
    for text in (own, near):
        heard = {word.rstrip("s") for word in wording.content_words(text)}
        called = [case for case in work.cases if case.calls & heard]
        if called:
            most = max(len(case.calls & heard) for case in called)
            chosen: topics.Case = draft.pick([case for case in called if len(case.calls & heard) == most])
            return chosen
    return topics.ranked(draft.random, work.cases, lambda case: " ".join(p.text for p in case.problems), own, near, ())[0]


def _week(inputs: Inputs, dice: Dice, recent: Sequence[str]) -> _Week:
    full = {goal.name: goal for goal in known.goals(inputs["organization"]["goals"])}
    stated = [full.get(goal.name, goal) for goal in known.goals(inputs["goals"])]
    slots = known.unit_slots(inputs["organization"], inputs["unit"])
    roles = {str(role["role"]): role for role in inputs["roles"]}
    return _Week(Draft(dice.words, slots), roles, list(inputs["activities"]), stated, {skeleton(str(title)) for title in recent},
                 " ".join(recent).lower(), preferred=parent_goal(str(inputs["plan"]), stated))


def partition_week(inputs: Inputs, dice: Dice) -> Json:
    week = _week(inputs, dice, [*map(str, inputs["recent"]), *map(str, inputs["carried"])])
    for position, text in enumerate(list(inputs["objectives"])[:2], 1):
        text = str(text.get("text") if isinstance(text, Mapping) else text).strip().rstrip(".")
        if wording.words(text) <= 34:
            week.draft.know(**{f"objective{position}": wording.lower_first(text)})
    focus = [wording.clip(wording.lower_first(str(item)), 16) for item in inputs["focus"]]
    titles = [str(incident["title"]) for incident in inputs["incidents"]]
    focus = [item for item in focus if item and ":" not in item and not any(title.lower() in item.lower() for title in titles)]
    if focus:
        week.draft.know(focus=draft_pick(week.draft, focus))
    if inputs["carried"]:
        week.draft.know(carried=str(inputs["carried"][0]).rstrip("."))
    incidents = list(inputs["incidents"])
    tasks = []
    for position, slot in enumerate(inputs["slots"]):
        incident = incidents[position % len(incidents)] if incidents and (position < len(incidents) or week.draft.random.random() < 0.2) else None
        tasks.append(_task(week, slot, dice, position == 0, incident, False))
    return {"tasks": tasks}


def draft_pick(draft: Draft, items: Sequence[str]) -> str:
    return str(draft.pick(items))


def respond(inputs: Inputs, dice: Dice) -> Json:
    incident = inputs["incident"]
    week = _week(inputs, dice, [str(task["title"]) for task in inputs["open"]])
    draft = week.draft
    waiting = [str(task["title"]) for task in inputs["open"] if str(task.get("status", "open")) != "done"]
    slots = known.incident_slots(incident)
    if waiting:
        slots["waiting"] = waiting[-1].rstrip(".")
    if len(waiting) > 1:
        slots["kept_task"] = waiting[0].rstrip(".")
    urgent = [_task(week, slot, dice, position == 0, incident, True) for position, slot in enumerate(inputs["slots"])]
    said = [local(draft, "respond_first", slots), local(draft, "respond_work", slots | ({"urgent": urgent[0]["title"].partition(": ")[2]} if urgent else {}))]
    if incident["title"] not in said[0]:
        said.insert(0, incident_sentences(draft, [incident])[0])
    return {"plan": revised(draft, said, str(inputs["plan"]), [str(incident["title"])], inputs["unit"]), "urgent": urgent}


# ---------------------------------------------------------------- decompose
def decompose(inputs: Inputs, dice: Dice) -> Json:
    task, asked, draws = inputs["task"], list(inputs["subtasks"]), dice.draws
    roles = {str(role["role"]): role for role in inputs["roles"]}
    draft = Draft(dice.words, {})
    subject, lead = _lead(task, list(inputs["roles"]))
    draft.know(T=subject)
    if task["goals"]:
        draft.know(goal=known.spaced(str(task["goals"][0])))
    names = _roles(asked, list(roles), lead, draws)
    hours = _hours(asked, inputs["hours"], draws)
    chosen: list[str] = []
    said: set[str] = set()
    served: set[str] = {subject}
    led = False
    subtasks = []
    for position, (name, spent) in enumerate(zip(names, hours, strict=True)):
        role = roles.get(name) or bare_role(name)
        own = name == lead
        stage = position / max(len(asked) - 1, 1) if len(asked) > 1 else 0.5
        activity = _activity(role, inputs["activities"], stage, chosen, draft)
        if own and (not led or len(asked) == 1) and task["activity"] in inputs["activities"] and (len(asked) == 1 or stage > 0.3 or draft.random.random() < 0.5):
            activity, led = str(task["activity"]), True
        chosen.append(activity)
        mine = subject if own else _serving(draft, role, subject, served)
        served.add(mine)
        work = topics.field_of(role)
        foreign = other_subjects(role, mine)
        case = best_case(draft, work, foreign, mine, subject)
        metric = topics.ranked(draft.random, work.metrics, lambda m: m.name, mine, subject, foreign)[0]
        slots = {"T": subject, "O": mine, "items": case.items, "source": case.source, "metric": metric.name}
        kind = "step" if own or mine == subject else "assist"
        rule = f"{kind}_{activity}" if draft.has_rule(f"{kind}_{activity}") else f"{kind}_other"
        goal = local(draft, rule, slots)
        for _ in range(4):
            if goal not in said:
                break
            goal = local(draft, rule, slots)
        said.add(goal)
        need = local(draft, "need", slots)
        subtasks.append({
            "goal": tidy(goal), "activity": activity, "role": name, "hours": spent, "after": _after(position, list(inputs["upstream"]), draws), "need": need,
            "sources": ["pool", "environment"] if draws.random() < 0.15 else ["pool"],
        })
    return {"subtasks": subtasks}


def _lead(task: Mapping[str, Json], roles: Sequence[Mapping[str, Json]]) -> tuple[str, str]:
    """The task's subject and the role that it belongs to."""
    title = str(task["title"])
    found = [(own, str(role["role"])) for role in roles if (own := topics.own_subject([str(s) for s in role["subjects"]], title))]
    if found:
        return max(found, key=lambda pair: (len(pair[0]), pair[1]))
    return topics.topic(title), str(roles[0]["role"]) if roles else ""


def _roles(asked: Sequence[Mapping[str, Json]], known_roles: Sequence[str], lead: str, draws: Random) -> list[str]:
    names = []
    for shape in asked:
        if shape.get("role"):
            names.append(str(shape["role"]))
        elif known_roles:
            names.append(lead if not names or draws.random() < 0.35 else known_roles[int(draws.random() * len(known_roles))])
        else:
            names.append("")
    return names


def _hours(asked: Sequence[Mapping[str, Json]], total: object, draws: Random) -> list[float]:
    free = [position for position, shape in enumerate(asked) if shape.get("hours") is None]
    hours = [0.0 if shape.get("hours") is None else float(shape["hours"]) for shape in asked]
    if free:
        left = max(float(str(total or 0)) - sum(hours), len(free) * 1.0)
        weights = [0.7 + 0.6 * draws.random() for _ in free]
        for position, weight in zip(free, weights, strict=True):
            hours[position] = round(left * weight / sum(weights) * 4) / 4 or 0.25
    return [int(h) if h.is_integer() else h for h in hours]


def _activity(role: Mapping[str, Json], allowed: Sequence[str], stage: float, chosen: Sequence[str], draft: Draft) -> str:
    usable = [a for a in role["activities"] if a in allowed] or list(role["activities"]) or list(allowed)
    near = sorted(usable, key=lambda a: (abs(_STAGE.get(a, 0.5) - stage) + 0.5 * draft.random.random() + 0.3 * (a in chosen), a))
    return str(near[0]) if near else "analyse"


def _serving(draft: Draft, role: Mapping[str, Json], subject: str, served: set[str]) -> str:
    """The subject of another role through which it serves this task: one with words in common, else any not yet used."""
    options = [str(s) for s in role["subjects"] if s not in served] or [str(s) for s in role["subjects"]]
    if not options:
        return subject
    words = set(wording.content_words(subject))
    close = [s for s in options if words & set(wording.content_words(s))]
    chosen: str = draft.pick(close if close and draft.random.random() < 0.7 else options)
    return chosen


def _after(position: int, upstream: Sequence[Mapping[str, Json]], draws: Random) -> list[str]:
    after: list[str] = []
    chained, second, outside, which, other = (draws.random() for _ in range(5))
    if position and chained < 0.62:
        after.append(f"s{position}" if which < 0.75 else f"s{1 + int(other * position)}")
        if position > 1 and second < 0.2:
            after.append(next(f"s{n}" for n in range(position, 0, -1) if f"s{n}" not in after))
    if upstream and outside < 0.12:
        after.append(str(upstream[int(which * len(upstream))]["id"]))
    return after
