"""What came of a period: diagnose (a unit's own results) and roll_up (its children's).  Every number said is one that was given."""

from __future__ import annotations

from collections.abc import Mapping

from taskweave.backbones.scripted import known, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.findings import findings_in
from taskweave.backbones.scripted.grammar import Draft, tidy
from taskweave.backbones.scripted.planning import local, names_of, order_readings
from taskweave.records import Json

Inputs = Mapping[str, Json]


def count_sentence(draft: Draft, counts: Mapping[str, Json]) -> str:
    """'6 of 8 tasks were finished; 1 spilled over and 1 was blocked' with the given numbers."""
    done, spilled, blocked, dropped, fallback = (int(counts.get(key) or 0) for key in ("done", "spilled", "blocked", "dropped", "fallback"))
    total = done + spilled + blocked + dropped
    parts = [
        f"{n} {'was' if n == 1 else 'were'} {verb}" if verb != "spilled over" else f"{n} spilled over"
        for n, verb in ((spilled, "spilled over"), (blocked, "blocked"), (dropped, "dropped"))
        if n
    ]
    slots = {
        "done": str(done),
        "total": str(total),
        "tasks": "task" if total == 1 else "tasks",
        "done_were": "was" if done == 1 or total == 1 else "were",
    } | ({"sole": "yes"} if total == 1 else {})
    if parts:
        slots["rest"] = wording.join(parts)
    else:
        slots["all"] = "yes"
    if not total:
        return draft.say("count_none")
    sentence = local(draft, "count_rest" if parts else "count_all", slots)
    if fallback:
        sentence += local(draft, "count_fallback", {"fallback": wording.count(fallback, "answer")})
    return sentence


def diagnose(inputs: Inputs, dice: Dice) -> Json:
    unit, stated = inputs["unit"], known.goals(inputs["organization"]["goals"])
    draft = Draft(dice.words, known.unit_slots(inputs["organization"], unit))
    names = names_of(inputs["organization"])
    tasks = list(inputs["tasks"])
    by_status: dict[str, list[Mapping[str, Json]]] = {}
    for task in tasks:
        by_status.setdefault(str(task["status"]), []).append(task)
    said = [count_sentence(draft, inputs["counts"])]
    for result in draft.sample(inputs["results"], 2 if unit["level"] == "week" else 1):
        told = next((finding.told for finding in findings_in(str(result["excerpt"]))), "")
        slots = {"result": str(result["title"]).rstrip("."), "author": str(result["author"])} | ({"told": told} if told else {})
        said.append(local(draft, "diagnose_result", slots))
    if not inputs["results"] and by_status.get("done"):
        done = draft.pick(by_status["done"])
        said.append(local(draft, "diagnose_done", _task_slots(done)))
    for child in list(inputs["children"])[:3]:
        told = known.telling(str(child["summary"]), 5, 30, names=names)
        if told:
            said.append(local(draft, "diagnose_child", {"child": str(child["owner"]), "told": told}))
    deviations, blockers = [], []
    for task in by_status.get("spilled", [])[:3]:
        deviations.append(tidy(local(draft, "deviation_spilled", _task_slots(task))))
    for task in by_status.get("dropped", [])[:1]:
        deviations.append(tidy(local(draft, "deviation_dropped", _task_slots(task))))
    for task in by_status.get("blocked", [])[:3]:
        blockers.append(tidy(local(draft, "blocker_task", _task_slots(task))))
    for reading in order_readings(known.readings(inputs["readings"], stated), stated, str(unit["owner"]))[:1]:
        goal = next((goal for goal in stated if goal.short == reading.goal), None)
        said.append(local(draft, "diagnose_reading", reading.slots() | (goal.slots() if goal else {})))
        if reading.distance > 0.02 and unit["level"] != "week":
            deviations.append(tidy(local(draft, "deviation_reading", reading.slots())))
    for incident in list(inputs["incidents"])[:2]:
        said.append(local(draft, "diagnose_incident", known.incident_slots(incident)))
    for task in (by_status.get("spilled", []) + by_status.get("blocked", []))[:1]:
        said.append(local(draft, f"diagnose_{task['status']}", _task_slots(task)))
    return {"summary": tidy(" ".join(said)), "deviations": deviations, "blockers": blockers}


def _task_slots(task: Mapping[str, Json]) -> dict[str, str]:
    slots = {"task": str(task["title"]).rstrip(".")}
    if task.get("author"):
        slots["author"] = str(task["author"])
    if task.get("hours"):
        slots["hours"] = wording.count(1, "hour") if float(task["hours"]) == 1 else f"{wording.number(float(task['hours']), 1)} hours"
    return slots


def roll_up(inputs: Inputs, dice: Dice) -> Json:
    draft = Draft(dice.words, known.unit_slots(inputs["organization"], inputs["unit"]))
    names = names_of(inputs["organization"])
    children = list(inputs["children"])
    said = [
        local(
            draft,
            "roll_up_open",
            {
                "children": wording.join(wording.unique(str(child["owner"]) for child in children)),
                "child_count": wording.in_words(len(children)),
                "reports": "report" if len(children) == 1 else "reports",
                "several" if len({str(child["owner"]) for child in children}) > 1 else "single": "yes",
            },
        )
    ]
    budget = 110
    for child in children:
        told = " ".join(
            known.kept(str(child["summary"]), known.quoted(str(child["summary"])), max(budget // max(len(children), 1), 18))[:2]
        ).rstrip(".")
        if told:
            said.append(
                local(
                    draft,
                    "roll_up_child",
                    {"child": str(child["owner"]), "child_period": str(child["period"]).partition(",")[0], "told": told},
                )
            )
    if inputs["last_summary"]:
        told = known.telling(str(inputs["last_summary"]), names=names)
        if told:
            said.append(local(draft, "roll_up_before", {"told": told}))
    if len(children) > 1:
        said.append(draft.say("roll_up_close"))
    return {"summary": tidy(" ".join(said))}
