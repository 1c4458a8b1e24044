"""Plans of a unit: formulate, partition into objectives, align, reconcile.

`compose` builds a plan out of sentences, the weightiest first: what is cut later is cut from its end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from taskweave.backbones.scripted import known, topics, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.grammar import Draft, tidy
from taskweave.backbones.scripted.known import Goal
from taskweave.records import Json

Inputs = Mapping[str, Json]
UPPER, WEEK = (84, 140), (64, 104)


def bounds(unit: Mapping[str, Json]) -> tuple[int, int]:
    """Words of a plan, by level."""
    return WEEK if unit["level"] == "week" else UPPER


def local(draft: Draft, rule: str, slots: Mapping[str, str], forget: Sequence[str] = ()) -> str:
    """The rule said with slots that hold for this sentence only."""
    before = draft.slots
    draft.slots = before.copy()
    for name in forget:
        draft.slots.pop(name, None)
    draft.slots.update(slots)
    text = draft.say(rule)
    draft.slots = before
    return text


def compose(sentences: Sequence[str], low: int, high: int, draft: Draft, rule: str) -> str:
    """The sentences as far as they fit into `high` words; more of `rule` until there are `low`."""
    text: list[str] = []
    total = 0
    for sentence in sentences:
        size = wording.words(sentence)
        if sentence and (total + size <= high or not text):
            text.append(sentence)
            total += size
    for _ in range(8):
        if total >= low:
            break
        sentence = draft.say(rule)
        text.append(sentence)
        total += wording.words(sentence)
    return tidy(" ".join(text))


def names_of(organization: Mapping[str, Json]) -> list[str]:
    """Names that keep their capital inside a sentence."""
    return [str(organization["name"]), *(str(department["name"]) for department in organization["departments"])]


def incident_sentences(draft: Draft, incidents: Sequence[Mapping[str, Json]]) -> list[str]:
    return [local(draft, "plan_incident", known.incident_slots(incident), ("until", "happened")) for incident in incidents]


def reading_sentences(draft: Draft, measured: Sequence[known.Reading], stated: Sequence[Goal], most: int, first: str = "") -> list[str]:
    by_short = {goal.short: goal for goal in stated}
    said = []
    for reading in order_readings(measured, stated, draft.slots["owner"], first)[:most]:
        slots = reading.slots() | (by_short[reading.goal].slots() if reading.goal in by_short else {})
        said.append(local(draft, "plan_reading", slots, ("gap", "side", "met", "target", "goal", "goal_text", "aim", "by", "goal_kpi")))
    return said


def order_readings(measured: Sequence[known.Reading], stated: Sequence[Goal], owner: str, first: str = "") -> list[known.Reading]:
    """The readings in the order in which a unit speaks of them: of its leading goal, of goals it owns, the farthest from target."""
    owned = {goal.short for goal in stated if goal.owner == owner}
    return sorted(measured, key=lambda r: (bool(first) and r.goal != first, r.goal not in owned, -r.distance, r.kpi))


def leading_goal(inputs: Inputs, measured: Sequence[known.Reading], stated: Sequence[Goal], draft: Draft) -> Goal | None:
    """The goal a unit puts first: one its objectives name, one it owns, one its parent's plan names, the farthest from its target.

    A goal that is reached is put first only where the objectives name it, or where all are.
    """
    asked = " ".join(str(text) for text in inputs["objectives"])
    done = known.reached(measured)
    kept = parent_goal(asked, stated)
    stated = [goal for goal in stated if not done.get(goal.short)] or stated
    owner = str(inputs["unit"]["owner"])
    owned = [goal for goal in stated if goal.owner == owner]
    named = parent_goal(asked, stated) or kept
    above = parent_goal(str(inputs["parent_plan"] or ""), stated)
    far = next((goal for goal in stated if measured and measured[0].distance and goal.short == measured[0].goal), None)
    if named:
        return named
    if inputs["unit"]["level"] == "year":
        return far or (draft.pick(stated) if stated else None)
    if owned and (above is None or above not in owned):
        mine: Goal = draft.pick(owned)
        return mine
    return above or far or (draft.pick(stated) if stated else None)


def parent_goal(text: str, stated: Sequence[Goal]) -> Goal | None:
    """The goal that a parent's plan speaks of first."""
    low = text.lower()
    places = sorted((at, goal.name) for goal in stated for key in (goal.short, goal.kpi) if key and (at := low.find(key.lower())) >= 0)
    return next(goal for goal in stated if goal.name == places[0][1]) if places else None


def leads_in(text: str, goal: Goal, stated: Sequence[Goal]) -> bool:
    """Whether a parent's plan really names the goal, and names none before it."""
    named = re.search(rf"\b{re.escape(goal.short)}\b", text, re.IGNORECASE) or goal.text.lower() in text.lower()
    return bool(named) and parent_goal(text, stated) == goal


def formulate(inputs: Inputs, dice: Dice) -> Json:
    unit, stated = inputs["unit"], known.goals(inputs["organization"]["goals"])
    draft = Draft(dice.words, known.unit_slots(inputs["organization"], unit))
    low, high = bounds(unit)
    objectives = [wording.lower_first(str(text).strip().rstrip(".")).replace(": ", ", ") for text in known.listed(inputs["objectives"])]
    carried = known.listed(inputs["carried"])
    measured = known.readings(inputs["readings"], stated)
    followed = leading_goal(inputs, measured, stated, draft)
    if followed:
        draft.know(**known.standing(followed, str(unit["period"]), known.reached(measured)))
        draft.once = frozenset(("goal_text",))
        if any(followed.text in objective for objective in objectives):
            draft.spent.add("goal_text")

    said = incident_sentences(draft, inputs["incidents"])
    if objectives:
        chosen = objectives[0] if len(objectives) == 1 else draft.pick(objectives)
        chosen = wording.clip(chosen, 18) or chosen
        if wording.words(chosen) <= 40:
            said.append(local(draft, "plan_objective", {"objective": chosen}))
    elif followed:
        said.append(draft.say("plan_goal"))
    if carried:
        slots = {
            "carried": carried[0].rstrip("."),
            "carried_count": wording.in_words(len(carried)),
            "carried_tasks": "task" if len(carried) == 1 else "tasks",
        }
        said.append(local(draft, "plan_carried_many" if len(carried) > 1 else "plan_carried", slots))
    for request in inputs["requests"][:2]:
        text = str(request["text"]).strip().rstrip(".")
        if wording.words(text) <= 34:
            said.append(local(draft, "plan_request", {"from": str(request["from"]), "request": text[:1].lower() + text[1:]}))
    if unit["level"] != "week" and len(said) < 2 and followed and objectives:
        said.append(draft.say("plan_goal"))
    first = followed.short if followed and "kept" not in draft.slots else ""
    said += reading_sentences(draft, measured, stated, 1 if unit["level"] == "week" else 2, first)
    if followed and unit["level"] != "year" and leads_in(str(inputs["parent_plan"] or ""), followed, stated):
        said.append(draft.say("plan_parent"))
    told = known.telling(inputs["last_diagnosis"] or inputs["parent_diagnosis"], names=names_of(inputs["organization"]))
    if told:
        said.append(local(draft, "plan_last" if inputs["last_diagnosis"] else "plan_above", {"told": told}))
    said.append(draft.say("plan_more"))
    risk = draft.say("plan_risk")
    body = compose(said, low, high - wording.words(risk), draft, "plan_more")
    plan = tidy(f"{body} {risk}")

    focus = [f"answer to {incident['title']}" for incident in inputs["incidents"][:2]]
    focus += [wording.clip(objective, 14) for objective in objectives[:2] if wording.clip(objective, 14)]
    if followed:
        focus.append(draft.say("focus_goal"))
    if carried:
        focus.append(local(draft, "focus_carried", {"carried": carried[0].rstrip(".")}))
    while len(focus) < 2:
        focus.append(draft.say("focus_more"))
    risks = [draft.say("risk_item") for _ in range(1 + (draft.random.random() < 0.6))]
    return {"plan": plan, "focus": wording.unique(focus)[:4], "risks": [wording.upper_first(risk) for risk in risks]}


def partition(inputs: Inputs, dice: Dice) -> Json:
    organization, unit, stated = inputs["organization"], inputs["unit"], known.goals(inputs["goals"])
    full = {goal.name: goal for goal in known.goals(organization["goals"])}
    draft = Draft(dice.words, known.unit_slots(organization, unit))
    mentioned = parent_goal(str(inputs["plan"]), stated)
    recipients = list(inputs["recipients"])
    objectives = []
    for recipient in recipients:
        many = 1 + (dice.draws.random() < (0.7 if len(recipients) < 3 else 0.35))
        titles = [str(title) for title in recipient.get("roles") or ()] or [str(recipient["title"])]
        for _ in range(many):
            field = topics.field_of(known.bare_role(titles[int(dice.words.random() * len(titles))]))
            pairs = field.lines["aims"]
            own = [name for name, goal in full.items() if goal.owner == str(recipient["title"])]
            near = [goal for goal in stated if goal.name in own] if draft.random.random() < 0.8 else []
            goal = draft.pick(near) if near else mentioned or (draft.pick(stated) if stated else None)
            aim, _, measure = draft.pick(pairs).partition("::")
            figure = dice.words.randrange(2, 10)
            sized = Draft(dice.words, {"few": str(figure), "many": str(figure * 5 + 40), "share": str(70 + figure * 3)})
            slots = {
                "do": sized.phrase(aim.strip()),
                "measure": sized.phrase(measure.strip()),
                "recipient": str(recipient["title"]),
                "recipient_unit": str(recipient.get("department") or organization["name"]),
            }
            if goal:
                slots |= full.get(goal.name, goal).slots()
            text = tidy(local(draft, "objective_text", slots, ("goal", "goal_text", "aim", "by", "goal_kpi")))
            objectives.append(
                {
                    "owner": recipient["owner"],
                    "text": text,
                    "goals": [goal.name] if goal else [],
                    "measure": tidy(local(draft, "objective_measure", slots)),
                }
            )
    return {"objectives": objectives}


def revised(draft: Draft, first: Sequence[str], plan: str, incidents: Sequence[str] | None, unit: Mapping[str, Json]) -> str:
    """A changed plan: what changed and why, then what of the old plan stands."""
    low, high = bounds(unit)
    titles = known.quoted(plan) if incidents is None else list(incidents)
    changed = tidy(" ".join(first))
    stands = known.kept(plan, titles, max(high - wording.words(changed), 20))
    return compose([changed, *stands], low, high, draft, "plan_more")


def align(inputs: Inputs, dice: Dice) -> Json:
    unit, stated = inputs["unit"], known.goals(inputs["organization"]["goals"])
    draft = Draft(dice.words, known.unit_slots(inputs["organization"], unit))
    diagnosis = inputs["diagnosis"]
    deviations = [wording.lower_first(str(item).strip().rstrip(".")) for item in known.listed(diagnosis.get("deviations"))]
    blockers = [wording.lower_first(str(item).strip().rstrip(".")) for item in known.listed(diagnosis.get("blockers"))]
    titles = [str(incident["title"]) for incident in inputs["incidents"]]
    followed = parent_goal(str(inputs["plan"]), stated) or (draft.pick(stated) if stated else None)
    if followed:
        draft.know(**followed.slots())
    said, changes = [], []
    for rule, items in (("deviation", deviations), ("blocker", blockers)):
        for item in items[:1]:
            if wording.words(item) <= 32:
                change = draft.say(f"change_{rule}")
                said.append(local(draft, f"align_{rule}", {rule: item, "change": change}))
                changes.append(tidy(local(draft, "change_line", {"change": change, "reason": item})))
    measured = order_readings(known.readings(inputs["readings"], stated), stated, str(unit["owner"]))
    if measured and (not said or measured[0].distance > 0.1):
        change = local(draft, "change_reading" if measured[0].distance else "change_steady", measured[0].slots())
        slots = measured[0].slots() | {"change": change}
        said.append(local(draft, "align_reading", slots))
        changes.append(tidy(local(draft, "change_reading_line", slots)))
    if not said:
        change = draft.say("change_steady")
        said.append(local(draft, "align_steady", {"change": change}))
        changes.append(tidy(f"{change}."))
    missing = [incident for incident in inputs["incidents"] if str(incident["title"]) not in str(inputs["plan"])]
    said += incident_sentences(draft, missing)
    return {"plan": revised(draft, said, str(inputs["plan"]), titles, unit), "changes": changes}


def reconcile(inputs: Inputs, dice: Dice) -> Json:
    unit, stated = inputs["unit"], known.goals(inputs["organization"]["goals"])
    draft = Draft(dice.words, known.unit_slots(inputs["organization"], unit))
    own = parent_goal(str(inputs["plan"]), stated) or (draft.pick(stated) if stated else None)
    if own:
        draft.know(**own.slots())
    siblings = list(inputs["siblings"])
    said, requests = [], []
    for sibling in draft.sample(siblings, 1 + (dice.draws.random() < 0.4)):
        theirs = parent_goal(str(sibling.get("plan") or ""), stated)
        slots = {"sibling": str(sibling["title"]), "sibling_unit": str(sibling.get("department") or sibling["title"])}
        if theirs:
            slots["their_goal"] = theirs.short
        if own and theirs and theirs.name == own.name:
            slots["shared_goal"] = own.short
        need = local(draft, "request_text", slots)
        said.append(local(draft, "reconcile_sentence", slots))
        if dice.draws.random() < 0.75:
            requests.append({"to": sibling["owner"], "text": tidy(need)})
    if not said:
        said.append(draft.say("plan_more"))
    return {"plan": revised(draft, said, str(inputs["plan"]), None, unit), "requests": requests}
