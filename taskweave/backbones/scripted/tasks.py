"""Composite tasks: those of a week (partition_week) and the urgent ones that answer an incident (respond)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random

from taskweave.backbones.scripted import facts, fields, known, topics, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, frame, load, tidy
from taskweave.backbones.scripted.known import Goal
from taskweave.backbones.scripted.planning import incident_sentences, local, parent_goal, revised
from taskweave.records import Json

Inputs = Mapping[str, Json]


@lru_cache(maxsize=4096)
def skeleton(title: str) -> str:
    """A title without figures and capitals, to tell whether two say the same."""
    return re.sub(r"[^a-z]+", " ", title.lower()).strip()


@dataclass(slots=True)
class _Week:
    """What the tasks of one answer share: the roles, goals, words for why now, and the titles and subjects already taken."""

    draft: Draft
    roles: Mapping[str, known.Role]
    activities: Sequence[str]
    goals: Sequence[Goal]
    taken: set[str]
    recent: str
    subjects: set[str] = field(default_factory=set)
    preferred: Goal | None = None

    def lead(self, slot: Mapping[str, Json], draws: Random) -> known.Role:
        shapes = sorted(slot["roles"], key=lambda shape: (-float(shape["hours"] or 0), str(shape["role"])))
        shape = shapes[0] if len(shapes) < 2 or draws.random() < 0.7 else shapes[1 + int(draws.random() * (len(shapes) - 1))]
        return self.roles.get(str(shape["role"])) or known.bare_role(str(shape["role"]))

    def subject(self, role: known.Role) -> str:
        options: Sequence[str] = role.subjects or (f"{role.title.lower()} work",)
        fresh = [s for s in options if s not in self.subjects and s.lower() not in self.recent]
        chosen: str = self.draft.pick(fresh or [s for s in options if s not in self.subjects] or options)
        self.subjects.add(chosen)
        return chosen

    def title(self, activity: str, subject: str, field_lines: tuple[str, ...], general: tuple[str, ...]) -> str:
        """A title that no other task of the answer, and none of the recent ones, has."""
        heads = fields.lines(load().tables["titles"].get(activity) or load().tables["titles"]["analyse"])
        own = topics.suited(field_lines, subject)
        title = ""
        for attempt in range(14):
            angle = self.draft.pick(own if own and self.draft.random.random() < 0.62 else general)
            head = self.draft.phrase(self.draft.pick(heads)) if attempt < 12 else self.draft.say("plain")
            if not self.draft.fits(frame(angle)) or (attempt < 10 and wording.stems(angle) & wording.stems(head)):
                continue
            title = f"{head}{'' if angle.startswith(':') else ' '}{self.draft.phrase(angle)}".strip()
            if skeleton(title) not in self.taken:
                break
        self.taken.add(skeleton(title))
        return title


_SUPPORTING = frozenset(("people", "office"))  # fields whose work reaches a goal only through others


def _goal_for(week: _Week, subject: str, role: known.Role) -> tuple[Goal, bool] | None:
    """A goal that the work serves, the unit's own and near ones more often, and whether it serves it directly."""
    if not week.goals:
        return None
    owner = week.draft.slots["owner"]
    weights = [
        0.05 + (1.6 if goal.owner == owner else 0.0) + topics.bears_on(goal, subject, role) + (0.5 if goal is week.preferred else 0.0)
        for goal in week.goals
    ]
    goal = week.draft.random.choices(week.goals, [weight * weight for weight in weights])[0]
    near = topics.bears_on(goal, subject, role)
    return goal, near >= 2 or (topics.field_of(role).name not in _SUPPORTING and (goal.owner == owner or near >= 1.2))


def _task(
    week: _Week, slot: Mapping[str, Json], dice: Dice, first: bool, incident: Mapping[str, Json] | None, urgent: bool
) -> dict[str, Json]:
    draft = week.draft
    role = week.lead(slot, dice.draws)
    work = topics.field_of(role)
    subject = draft.say("respond_subject") if urgent else week.subject(role)
    served = _goal_for(week, subject, role)
    goal = served[0] if served else None
    usable = topics.possible(tuple(a for a in role.activities if a in week.activities), subject) or role.activities or week.activities
    activity = str(draft.pick(usable)) if usable else "analyse"
    others = [str(shape["role"]) for shape in slot["roles"] if shape["role"] != role.title]
    foreign = topics.other_subjects(role, subject)
    case = topics.best_case((work.name,), subject)
    measures = topics.measures(case, subject)
    metrics = topics.ranked(draft.random, measures, fields.names_of(measures), subject, "", foreign)
    problem = topics.ranked(draft.random, case.problems, case.texts, subject, "", foreign)[0]
    slots = {
        "S": subject,
        "T": subject,
        "lead": role.title,
        "items": case.items,
        "item": case.item,
        "source": case.source,
        "flaw": draft.phrase(problem.flaw),
        "hours": wording.number(float(slot["hours"])),
    }
    if duties := role.responsibilities:
        slots["duty"] = wording.lower_first(topics.ranked(draft.random, duties, duties, subject, "", ())[0].rstrip("."))
    if metrics:
        slots["metric"] = metrics[0].name
    if others:
        slots |= {"others": wording.join(others), "other": others[0], "several" if len(others) > 1 else "single": "yes"}
    if served:
        slots |= served[0].slots() | {"linked" if served[1] else "unlinked": "yes"}
    if incident:
        slots |= known.incident_slots(incident)
    before = draft.slots
    draft.slots = before | slots
    endings = fields.lines(load().tables["urgent_angles" if urgent else "angles"])
    title = week.title("urgent" if urgent else activity, subject, () if urgent else work.lines["angles"], endings)
    about = "respond_background" if urgent else "background_incident" if incident else "background"
    background = [draft.say(about), "" if urgent else draft.say("background_more")]
    outputs = [line for line in topics.suited(work.lines["outputs"], subject) if draft.fits(frame(line))]
    described = draft.say("respond_describe" if urgent else f"describe_{activity}" if draft.has(f"describe_{activity}") else "describe")
    description = [
        draft.phrase(draft.pick(outputs)) if outputs and not urgent and draft.random.random() < 0.75 else "",
        described,
        draft.say("describe_others") if others else "",
        facts.say_about(draft, slot),
    ]
    ruled = not urgent and draft.random.random() < 0.5
    constraints = draft.phrase(draft.pick(topics.suited(work.lines["rules"], subject))) if ruled else draft.say("condition")
    draft.slots = before
    chance = draft.random.random()
    priority = "high" if urgent or (first and chance < 0.5) or chance < 0.18 else ("low" if chance > 0.85 else "normal")
    goals = [goal.name] if goal else []
    if len(week.goals) > 1 and draft.random.random() < 0.2:
        goals = wording.unique([*goals, draft.pick(week.goals).name])
    return {
        "title": wording.upper_first(title),
        "background": tidy(" ".join(background)),
        "description": tidy(" ".join(description)),
        "activity": activity,
        "priority": priority,
        "goals": goals,
        "constraints": tidy(constraints),
    }


def _week(inputs: Inputs, dice: Dice, recent: Sequence[str]) -> _Week:
    full = {goal.name: goal for goal in known.goals(inputs["organization"]["goals"])}
    stated = [full.get(goal.name, goal) for goal in known.goals(inputs["goals"])]
    stated = [replace(goal, by="") if known.overdue(goal, str(inputs["unit"]["period"])) else goal for goal in stated]
    slots = known.unit_slots(inputs["organization"], inputs["unit"])
    roles = {str(raw["role"]): known.role(raw) for raw in inputs["roles"]}
    return _Week(
        Draft(dice.words, slots),
        roles,
        known.listed(inputs["activities"]),
        stated,
        {skeleton(str(title)) for title in recent},
        " ".join(recent).lower(),
        preferred=parent_goal(str(inputs["plan"]), stated),
    )


def partition_week(inputs: Inputs, dice: Dice) -> Json:
    week = _week(inputs, dice, [*known.listed(inputs["recent"]), *known.listed(inputs["carried"])])
    for position, text in enumerate([o for o in inputs["objectives"] if not str(o).startswith("…")][:2], 1):
        text = str(text.get("text") if isinstance(text, Mapping) else text).strip().rstrip(".")
        if wording.words(text) <= 34:
            week.draft.know(**{f"objective{position}": wording.lower_first(text)})
    focus = [wording.clip(wording.lower_first(str(item)), 16) for item in known.listed(inputs["focus"])]
    titles = [str(incident["title"]) for incident in inputs["incidents"]]
    focus = [item for item in focus if item and ":" not in item and not any(title.lower() in item.lower() for title in titles)]
    if focus:
        week.draft.know(focus=str(week.draft.pick(focus)))
    if carried := known.listed(inputs["carried"]):
        week.draft.know(carried=carried[0].rstrip("."))
    incidents = list(inputs["incidents"])
    tasks = []
    for position, slot in enumerate(inputs["slots"]):
        incident = (
            incidents[position % len(incidents)] if incidents and (position < len(incidents) or week.draft.random.random() < 0.2) else None
        )
        tasks.append(_task(week, slot, dice, position == 0, incident, False))
    return {"tasks": tasks}


def respond(inputs: Inputs, dice: Dice) -> Json:
    incident = inputs["incident"]
    week = _week(inputs, dice, [str(task["title"]) for task in inputs["open"]])
    draft = week.draft
    draft.know(**known.incident_slots(incident))
    waiting = [str(task["title"]) for task in inputs["open"] if str(task.get("status", "open")) != "done"]
    slots = known.incident_slots(incident)
    if waiting:
        slots["waiting"] = waiting[-1].rstrip(".")
    if len(waiting) > 1:
        slots["kept_task"] = waiting[0].rstrip(".")
    urgent = [_task(week, slot, dice, position == 0, incident, True) for position, slot in enumerate(inputs["slots"])]
    said = [
        local(draft, "respond_first", slots),
        local(draft, "respond_work", slots | ({"urgent": urgent[0]["title"]} if urgent else {})),
    ]
    if incident["title"] not in said[0]:
        said.insert(0, incident_sentences(draft, [incident])[0])
    return {"plan": revised(draft, said, str(inputs["plan"]), [str(incident["title"])], inputs["unit"]), "urgent": urgent}
