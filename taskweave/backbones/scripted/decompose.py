"""How a composite task falls into subtasks: goals, activities, hours, order and what each needs from earlier work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from taskweave.backbones.scripted import fields, known, topics
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, tidy
from taskweave.backbones.scripted.planning import local
from taskweave.records import Json

Inputs = Mapping[str, Json]

# Where in a task an activity usually stands, 0 first to 1 last.
_STAGE = {
    "research": 0.0,
    "analyse": 0.15,
    "plan": 0.2,
    "negotiate": 0.3,
    "recruit": 0.3,
    "design": 0.35,
    "write": 0.55,
    "implement": 0.5,
    "support": 0.5,
    "train": 0.7,
    "test": 0.75,
    "audit": 0.7,
    "deploy": 0.85,
    "review": 0.85,
    "report": 1.0,
}

SEARCHING = 0.25  # of the subtasks that build on another one look into the pool as well
MEASURING = 0.15  # of all look at the readings
USING_TOOLS = 0.5  # of those whose role has tools


def decompose(inputs: Inputs, dice: Dice) -> Json:
    task, asked, draws = inputs["task"], list(inputs["subtasks"]), dice.draws
    roles = {str(raw["role"]): known.role(raw) for raw in inputs["roles"]}
    tools = {str(raw["role"]): raw.get("tools") for raw in inputs["roles"]}
    allowed = known.listed(inputs["activities"])
    draft = Draft(dice.words, {})
    subject, lead = _lead(task, list(roles.values()))
    home = topics.field_of(roles.get(lead) or known.bare_role(lead)).name
    draft.know(T=subject)
    if task["goals"]:
        draft.know(goal=known.spaced(str(task["goals"][0])))
    answers = topics.answer_in(str(task["title"]))
    if answers:
        draft.know(incident=known.quoted(answers)[0])
    names = _roles(asked, list(roles), lead, draws)
    hours = _hours(asked, inputs["hours"], draws)
    chosen: list[str] = []
    said: set[str] = set()
    served: set[str] = set()
    led = False
    subtasks = []
    for position, (name, spent) in enumerate(zip(names, hours, strict=True)):
        role = roles.get(name) or known.bare_role(name)
        own = name == lead
        stage = position / max(len(asked) - 1, 1) if len(asked) > 1 else 0.5
        activity = _activity(role, allowed, stage, chosen, draft, subject if own else None)
        if (
            own
            and (not led or len(asked) == 1)
            and task["activity"] in allowed
            and (len(asked) == 1 or stage > 0.3 or draft.random.random() < 0.5)
        ):
            activity, led = str(task["activity"]), True
        chosen.append(activity)
        mine = subject if own or answers else _serving(draft, role, subject, served)
        served.add(mine)
        work = topics.field_of(role)
        foreign = topics.other_subjects(role, mine)
        case = topics.best_case((work.name if own or mine != subject else home,), mine)
        measures = topics.measures(case, mine)
        measured = topics.ranked(draft.random, measures, fields.names_of(measures), mine, subject, foreign)
        slots = {"T": subject, "O": mine, "items": case.items, "source": case.source}
        slots |= {"metric": measured[0].name} if measured else {}
        kind = "step" if own else "side" if mine == subject else "assist"
        slots |= {"both": "yes"} if kind == "assist" else {}
        slots["role_the"] = name if name.isupper() else f"the {name}"
        rule = f"{kind}_{activity}" if draft.has_rule(f"{kind}_{activity}") else f"{kind}_other"
        if answers:
            rule = "urgent_first" if stage < 0.4 else "urgent_last" if stage > 0.6 else "urgent_middle"
        goal = local(draft, rule, slots)
        for _ in range(4):
            if goal not in said:
                break
            goal = local(draft, rule, slots)
        said.add(goal)
        need = local(draft, "need", slots)
        after = _after(position, list(inputs["upstream"]), draws)
        # What goes on from a colleague's piece seldom needs the archive too.
        sources = ["pool"] if draws.random() < SEARCHING or not after else []
        sources += ["environment"] if draws.random() < MEASURING else []
        sources += ["tools"] if tools.get(name) and draws.random() < USING_TOOLS else []
        subtasks.append(
            {
                "goal": tidy(goal),
                "activity": activity,
                "role": name,
                "hours": spent,
                "after": after,
                "need": need,
                "sources": sources,
            }
        )
    return {"subtasks": subtasks}


def _lead(task: Mapping[str, Json], roles: Sequence[known.Role]) -> tuple[str, str]:
    """The task's subject and the role that it belongs to."""
    title = str(task["title"])
    if answer := topics.answer_in(title):
        return answer, roles[0].title if roles else ""
    found = [(own, role.title) for role in roles if (own := topics.own_subject(role.subjects, title))]
    if found:
        return max(found, key=lambda pair: (len(pair[0]), pair[1]))
    return topics.topic(title), roles[0].title if roles else ""


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


def _activity(role: known.Role, allowed: Sequence[str], stage: float, chosen: Sequence[str], draft: Draft, subject: str | None) -> str:
    usable = tuple(a for a in role.activities if a in allowed) or role.activities or tuple(allowed)
    if subject is not None:
        usable = topics.possible(usable, subject)
    near = sorted(usable, key=lambda a: (abs(_STAGE.get(a, 0.5) - stage) + 0.5 * draft.random.random() + 0.3 * (a in chosen), a))
    return str(near[0]) if near else "analyse"


def _serving(draft: Draft, role: known.Role, subject: str, served: set[str]) -> str:
    """The subject through which another role serves this task, one not yet used first; the task's own where none bears on it."""
    close = [own for own in role.subjects if topics.related(own, subject)]
    chosen: str = draft.pick([own for own in close if own not in served] or close) if close else subject
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
