"""The small questions of the compact style: the step's own answerer is asked about the one item, and the field that is wanted is taken.

`QUESTIONS` has them by prompt id, `INPUTS` what each reads.  A text is kept within its length at the end of a sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any

from taskweave.backbones.scripted import closing, decompose, deliverables, merging, planning, tasks, tooling, wording
from taskweave.backbones.scripted.dice import Dice
from taskweave.backbones.scripted.wording import within
from taskweave.records import Json

Inputs = Mapping[str, Json]
TITLE, SENTENCE, SENTENCES, GOAL, PLAN, SUMMARY, CONTENT = 80, 160, 280, 240, 600, 480, 900  # characters
_TRIES = 5  # for a goal that no earlier subtask has
_SERVES = 0.85  # how often a task serves one of the goals


def _plan_of(step: Callable[[Inputs, Dice], Json], **more: Json) -> Callable[[Inputs, Dice], Json]:
    """The plan of a step's whole answer; `more` are inputs that the small question has not."""
    return lambda inputs, dice: {"plan": within(step({**inputs, **more}, dice)["plan"], PLAN)}


def _reconciled(inputs: Inputs, dice: Dice) -> Json:
    return {"plan": within(planning.reconcile({**inputs, "siblings": inputs["others"]}, dice)["plan"], PLAN)}


def _responded(inputs: Inputs, dice: Dice) -> Json:
    more: dict[str, Json] = {"slots": [], "roles": [], "activities": [], "goals": []}
    return {"plan": within(tasks.respond({**inputs, **more}, dice)["plan"], PLAN)}


def _diagnosed(inputs: Inputs, dice: Dice) -> Json:
    return {"summary": within(closing.diagnose({**inputs, "children": inputs["reports"], "incidents": []}, dice)["summary"], SUMMARY)}


def _rolled_up(inputs: Inputs, dice: Dice) -> Json:
    return {"summary": within(closing.roll_up({**inputs, "children": inputs["reports"]}, dice)["summary"], SUMMARY)}


# ---------------------------------------------------------------- objectives, tasks, subtasks
def _objective(inputs: Inputs, dice: Dice) -> Json:
    goals = [inputs["goal"]] if inputs["goal"] else []
    first = planning.partition({**inputs, "recipients": [inputs["recipient"]], "goals": goals}, dice)["objectives"][0]
    return {"text": within(first["text"], GOAL), "measure": within(first["measure"], SENTENCE)}


def _goal_of_recipient(inputs: Inputs, dice: Dice) -> Json:
    title = inputs["recipient"]["title"]
    owned = [goal["name"] for goal in inputs["organization"]["goals"] if goal["owner"] == title]
    names = [goal["name"] for goal in inputs["goals"]]
    return {"goal": _pick(dice.words, [name for name in names if name in owned] or names)}


def _goal_of_task(inputs: Inputs, dice: Dice) -> Json:
    serves = dice.words.random() < _SERVES
    return {"goal": _pick(dice.words, [goal["name"] for goal in inputs["goals"]]) if serves else "none"}


def _activity(inputs: Inputs, dice: Dice) -> Json:
    return {"activity": _pick(dice.words, inputs["activities"])}


def _roles(inputs: Inputs) -> list[Json]:
    """The roles of a slot as far as the small question tells of them."""
    activity = inputs["activity"]
    return [
        {
            "role": duty["role"],
            "responsibilities": [duty["duty"]],
            "skills": [],
            "activities": [activity],
            "artifacts": [],
            "subjects": duty["subjects"],
        }
        for duty in inputs["duties"]
    ]


def _task(inputs: Inputs, answer: Callable[[Inputs], Json]) -> Json:
    more = {
        "slots": [inputs["slot"]],
        "roles": _roles(inputs),
        "activities": [inputs["activity"]],
        "goals": [inputs["goal"]] if inputs["goal"] else [],
    }
    made = answer({**inputs, **more})
    return {
        "title": within(made["title"], TITLE),
        "background": within(made["background"], SENTENCE),
        "description": within(made["description"], SENTENCES),
    }


def _week_task(inputs: Inputs, dice: Dice) -> Json:
    more = {"focus": [], "carried": [], "recent": inputs["titles"]}
    return _task(inputs, lambda whole: tasks.partition_week({**whole, **more}, dice)["tasks"][0])


def _urgent_task(inputs: Inputs, dice: Dice) -> Json:
    had = [{"id": "", "title": title, "status": "open"} for title in inputs["titles"]]
    return _task(inputs, lambda whole: tasks.respond({**whole, "open": had}, dice)["urgent"][0])


def _subtask(inputs: Inputs, dice: Dice) -> Json:
    """A subtask's goal, not one of the earlier ones."""
    role, task = inputs["role"], {"goals": [], **inputs["task"]}
    lists: dict[str, Json] = {"responsibilities": role["duties"], "skills": [], "activities": [], "artifacts": [], "subjects": []}
    # All stand beside it, so that it gets the words of its place in the task.
    shapes = [{"n": n + 1, "role": role["role"], "hours": 1} for n in range(inputs["count"])]
    whole = {
        "task": task,
        "subtasks": shapes,
        "hours": len(shapes),
        "roles": [{"role": role["role"], **lists}],
        "upstream": [],
        "activities": [task["activity"]],
    }
    had = {str(goal).casefold() for goal in inputs["goals"]}
    found: list[str] = []
    for _ in range(_TRIES):
        found += [within(one["goal"], GOAL) for one in decompose.decompose(whole, dice)["subtasks"][inputs["number"] - 1 :]]
        if goal := next((goal for goal in found if goal.casefold() not in had), ""):
            return {"goal": goal}
    return {"goal": found[0]}


def _role(inputs: Inputs, dice: Dice) -> Json:
    return {"role": _pick(dice.words, [role["role"] for role in inputs["roles"]])}


def _after(inputs: Inputs, dice: Dice) -> Json:
    """Mostly the subtask before, seldom another piece of work."""
    offered = [one["id"] for one in inputs["offered"]]
    chained, outside = dice.words.random() < 0.62, dice.words.random() < 0.12
    own = [id for id in offered if id[:1] == "s" and id[1:].isdigit()]
    return {"after": own[-1] if own and chained else _pick(dice.words, offered) if outside else "nothing"}


def _whom(inputs: Inputs, dice: Dice) -> Json:
    asks = dice.words.random() < 0.75
    return {"to": _pick(dice.words, [one["owner"] for one in inputs["others"]]) if asks else "nobody"}


def _request(inputs: Inputs, dice: Dice) -> Json:
    sibling = {"department": "", "name": "", **inputs["other"]}
    for _ in range(_TRIES):
        if requests := planning.reconcile({**inputs, "siblings": [sibling]}, dice)["requests"]:
            break
    return {"text": within(requests[0]["text"] if requests else f"Tell us what you need for {inputs['unit']['period']}.", GOAL)}


# ---------------------------------------------------------------- documents
def _executed(inputs: Inputs, dice: Dice) -> Json:
    role = {**inputs["role"], "artifacts": [inputs["kind"]]}
    made = deliverables.execute({**inputs, "role": role, "goals": []}, dice)
    return {"title": within(made["title"], TITLE), "content": within(made["content"], CONTENT)}


def _merged(inputs: Inputs, dice: Dice) -> Json:
    made = merging.merge({**inputs, "goals": [], "references": []}, dice)
    return {"title": within(made["title"], TITLE), "content": within(made["content"], CONTENT)}


def _pick(draws: Random, options: Sequence[Any]) -> Any:
    return options[int(draws.random() * len(options))]


QUESTIONS: Mapping[str, Callable[[Inputs, Dice], Json]] = {
    "formulate": _plan_of(planning.formulate, parent_diagnosis=""),
    "align": _plan_of(planning.align, incidents=[]),
    "reconcile": _reconciled,
    "reconcile_whom": _whom,
    "reconcile_request": _request,
    "diagnose": _diagnosed,
    "roll_up": _rolled_up,
    "partition": _objective,
    "partition_goal": _goal_of_recipient,
    "partition_week": _week_task,
    "partition_week_goal": _goal_of_task,
    "partition_week_activity": _activity,
    "respond": _responded,
    "respond_task": _urgent_task,
    "respond_goal": _goal_of_task,
    "respond_activity": _activity,
    "decompose": _subtask,
    "decompose_role": _role,
    "decompose_after": _after,
    "execute": _executed,
    "execute_tool": tooling.chosen,
    "execute_tool_arguments": tooling.flat,
    "merge": _merged,
}

_NAMES = {
    "formulate": "organization unit parent_plan last_diagnosis objectives readings incidents requests carried",
    "align": "organization unit plan diagnosis readings",
    "reconcile": "organization unit plan others",
    "reconcile_whom": "others",
    "reconcile_request": "organization unit plan other",
    "diagnose": "organization unit counts tasks results reports readings",
    "roll_up": "organization unit last_summary reports",
    "partition": "organization unit plan recipient goal",
    "partition_goal": "organization recipient goals",
    "partition_week": "organization unit plan objectives incidents slot duties goal activity titles",
    "partition_week_goal": "goals",
    "partition_week_activity": "activities",
    "respond": "organization unit plan incident open",
    "respond_task": "organization unit plan incident slot duties goal activity titles",
    "respond_goal": "goals",
    "respond_activity": "activities",
    "decompose": "task role number count goals",
    "decompose_role": "roles",
    "decompose_after": "offered",
    "execute": "organization date task role author dependencies evidence subtask kind",
    "execute_tool": "date author subtask tools at_hand had",
    "execute_tool_arguments": "date author task subtask tool at_hand colleagues",
    "merge": "organization date task partials",
}
INPUTS: Mapping[str, frozenset[str]] = {name: frozenset(wording.listed(names)) for name, names in _NAMES.items()}
