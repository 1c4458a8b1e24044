"""`--style compact`: a step asked in small questions, for models that lose a whole step's answer.

Entry point: `Compact`.  A question has one to three fields and at most one decision; numbers, lists and what can be derived are code's.
The pieces are composed into the very answer that the step's own parser takes, so that the steps do not know how they were asked.  What
cannot be answered is filled in its place, with a note.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

from taskweave.backbones.legal import nearest
from taskweave.backbones.structured import Answered
from taskweave.cutting import cut
from taskweave.engine.promises import Context as WorkContext
from taskweave.records import Json, TaskSpec
from taskweave.simulation import bundles, execution
from taskweave.simulation import small_answers as small
from taskweave.simulation.capacity import Slot
from taskweave.simulation.compact_tools import choose_tool
from taskweave.simulation.questions import Inputs, Questions
from taskweave.simulation.setting import Setting
from taskweave.simulation.small_texts import closest, is_form_of, means, turned, untaken, words

T = TypeVar("T")
OPTIONS = 8  # that a weak model is given to choose from
SHOWN = 20  # tokens of what stands beside an option: all of them are shown, none is cut away
BUILDS_ON = 4  # earlier pieces of work among which a subtask chooses


class Compact:
    """Every step in small questions."""

    async def ask(
        self,
        setting: Setting,
        ctx: WorkContext,
        step: str,
        inputs: Inputs,
        schema: Inputs,
        parse: Callable[[Json], T],
        fallback: Callable[[], T],
        agent: str,
    ) -> Answered[T]:
        questions = Questions(setting, ctx, agent, inputs)
        return questions.answered(parse(await STEPS[step](questions, fallback())))


# ---------------------------------------------------------------- plans and summaries: one question each
async def formulate(q: Questions, spare: Any) -> Json:
    """The plan is asked; its focus is what was heard and asked for, its risks the news."""
    given = q.inputs
    objectives = given["objectives"]
    above = given["parent_plan"] if not objectives else ""
    more = {
        "parent_plan": above,
        "goals": [] if objectives or above else q.setting.goals(),
        "readings": _own_first(given),
    }
    plan = await _plan(q, "formulate", more, spare, names="unit objectives last_diagnosis incidents carried requests")
    titles = [incident["title"] for incident in given["incidents"]]
    leading = objectives or [goal.text for goal in q.setting.org.goals.values()]
    return {"plan": plan, "focus": [cut(text, 20) for text in [*titles[:2], *leading[:2], *given["carried"][:1]]], "risks": titles[:4]}


async def align(q: Questions, spare: Any) -> Json:
    """The plan is asked; what changed is what was late or blocked, where the plan is another one."""
    plan = await _plan(q, "align", {"readings": _own_first(q.inputs)}, spare, names="unit plan diagnosis")
    found = q.inputs["diagnosis"]
    changed = plan.strip() != q.inputs["plan"].strip()
    return {"plan": plan, "changes": [*found["deviations"], *found["blockers"]][:6] if changed else []}


async def reconcile(q: Questions, spare: Any) -> Json:
    """The plan, then whom something is asked of, then what."""
    siblings = q.inputs["siblings"]
    plan = await _plan(q, "reconcile", {"others": siblings}, spare, names="unit plan")
    near = closest(siblings, plan, OPTIONS, lambda one: f"{one['title']} {one['department']}")
    offered = [{name: one[name] for name in ("owner", "title", "department")} for one in near]
    schema = small.choice("to", (small.NOBODY, *(one["owner"] for one in offered)))
    asked = await q.ask(
        "reconcile_whom", {"plan": plan, "others": offered}, schema, small.Asked, lambda: small.Asked(to=small.NOBODY), names="unit"
    )
    requests: list[Json] = []
    if not means(asked.to, small.NOBODY):
        other = next((one for one in near if one["owner"] == asked.to), {"owner": asked.to, "title": asked.to, "plan": ""})
        other = {name: other[name] for name in ("owner", "title", "plan")}
        more = {"plan": plan, "other": other}
        said = await q.ask("reconcile_request", more, small.texts("text"), small.RequestText, _nothing, names="unit")
        requests += [{"to": asked.to, "text": said.text}] if said is not None else []
    return {"plan": plan, "requests": requests}


async def diagnose(q: Questions, spare: Any) -> Json:
    """The summary is asked; what was late or blocked is known."""
    more = {"reports": q.inputs["children"], "readings": _own_first(q.inputs)}
    summary = await _summary(q, "diagnose", more, spare, names="unit plan counts tasks results")
    return {"summary": summary, "deviations": list(spare.deviations), "blockers": list(spare.blockers)}


async def roll_up(q: Questions, spare: Any) -> Json:
    """The summary is asked."""
    return {"summary": await _summary(q, "roll_up", {"reports": q.inputs["children"]}, spare, names="unit last_summary")}


async def _plan(q: Questions, prompt: str, more: Inputs, spare: Any, *, names: str) -> str:
    said = await q.ask(prompt, more, small.texts("plan"), small.PlanText, lambda: small.PlanText(plan=spare.plan), names=names)
    return said.plan


async def _summary(q: Questions, prompt: str, more: Inputs, spare: Any, *, names: str) -> str:
    schema = small.texts("summary")
    said = await q.ask(prompt, more, schema, small.SummaryText, lambda: small.SummaryText(summary=spare.summary), names=names)
    return said.summary


# ---------------------------------------------------------------- bundles: some questions an item
async def partition(q: Questions, spare: Any) -> Json:
    """One objective a recipient; who gets none from the backbone is given the plan itself by the step."""
    objectives: list[Json] = []
    for turn, recipient in enumerate(q.inputs["recipients"]):
        q.next_item()
        place = recipient["owner"]
        owned = next((goal["name"] for goal in q.inputs["organization"]["goals"] if goal["owner"] == recipient["title"]), small.NONE)
        goal = await _goal(q, "partition_goal", {"recipient": recipient}, turn, place, owned)
        more = {"recipient": recipient, "goal": goal, "given": [one["text"] for one in objectives[-2:]]}
        said = await q.ask("partition", more, small.texts("text", "measure"), small.ObjectiveText, _nothing, names="unit plan", place=place)
        if said is not None:
            objectives.append({"owner": place, "text": said.text, "goals": [goal["name"]] if goal else [], "measure": said.measure})
            q.item(filled=False)
    return {"objectives": objectives}


class TaskPrompts(NamedTuple):
    """The three questions of a composite task, each with the inputs of the step that it is shown."""

    goal: tuple[str, str]
    activity: tuple[str, str]
    words: tuple[str, str]


WEEK = TaskPrompts(
    ("partition_week_goal", "unit objectives"), ("partition_week_activity", "unit"), ("partition_week", "unit objectives incidents plan")
)
URGENT = TaskPrompts(("respond_goal", "unit incident"), ("respond_activity", "unit incident"), ("respond_task", "unit incident plan"))


async def partition_week(q: Questions, spare: Any) -> Json:
    """A composite task a slot."""
    return {"tasks": await _tasks(q, WEEK, [*q.inputs["recent"], *q.inputs["carried"]], "normal", q.inputs["plan"])}


async def respond(q: Questions, spare: Any) -> Json:
    """The plan, then an urgent task a slot."""
    incident, had = q.inputs["incident"], [task["title"] for task in q.inputs["open"]]
    plan = await _plan(q, "respond", {}, spare, names="unit plan incident open")
    return {"plan": plan, "urgent": await _tasks(q, URGENT, had, "high", incident["title"])}


async def _tasks(q: Questions, prompts: TaskPrompts, had: Sequence[str], priority: str, spare_background: str) -> list[Json]:
    """A composite task a slot; one that the backbone does not name is the one that the step would have filled in."""
    tasks: list[Json] = []
    for turn, slot in enumerate(q.inputs["slots"]):
        q.next_item()
        taken = [*(task["title"] for task in reversed(tasks)), *had]
        roles = tuple(shape["role"] for shape in slot["roles"] for _ in range(shape["subtasks"]))
        filler = bundles.filler(q.setting, Slot(roles=roles, hours=slot["hours"]), spare_background)
        task = await _task(q, prompts, turn, slot, taken)
        filled = task is None
        if task is None:
            task = asdict(filler)
        else:
            last_day = q.inputs["unit"]["period"].rpartition(" ")[2]
            task |= {"priority": priority, "constraints": f"Within {slot['hours']:g} hours, by {last_day}."}
            task["title"] = q.own_title(f"{prompts.words[0]} {turn + 1}", task["title"], filler.title)
        title = untaken(task["title"], f" ({roles[0]})", taken)
        if title != task["title"]:
            q.changed(f"task {turn + 1}: the title {task['title']!r} is taken; {title!r} was made of it")
        tasks.append({**task, "title": title})
        q.item(filled=filled)
    return tasks


async def _task(q: Questions, prompts: TaskPrompts, turn: int, slot: Json, taken: Sequence[str]) -> Json | None:
    """Goal, then activity, then the words for them; None where no words came."""
    place = f"{turn + 1}"
    prompt, names = prompts.goal
    goal = await _goal(q, prompt, {"slot": slot}, turn, place, small.NONE, names=names)
    duties, activities = _duties(q, slot, turn)
    more = {"slot": slot, "duties": duties, "goal": goal}
    activity = activities[0]
    if len(activities) > 1:
        prompt, names = prompts.activity
        schema, spare = small.choice("activity", tuple(activities)), small.ChosenActivity(activity=activity)
        offered = {**more, "activities": activities}
        chosen = await q.ask(prompt, offered, schema, small.ChosenActivity, lambda: spare, names=names, place=place)
        activity = chosen.activity
    prompt, names = prompts.words
    schema, more = small.texts("title", "background", "description"), {**more, "activity": activity, "titles": list(taken)}
    said = await q.ask(prompt, more, schema, small.TaskText, _nothing, names=names, place=place)
    if said is None:
        return None
    return {**said.model_dump(), "activity": activity, "goals": [goal["name"]] if goal else []}


async def _goal(
    q: Questions, prompt: str, more: Inputs, turn: int, place: str, spare: str, *, names: str = "unit"
) -> dict[str, Json] | None:
    """The goal that an item serves, as {name, text}; None for none, and without a question where there is none to choose from.

    A name that is no goal stays as it is: the step leaves it out, and says so.
    """
    goals = turned(closest(q.setting.goals(), q.inputs["plan"], OPTIONS, lambda goal: f"{goal['name']} {goal['text']}"), turn)
    if not goals:
        return None
    schema = small.choice("goal", (*(goal["name"] for goal in goals), small.NONE))
    shown = [{"name": goal["name"], "text": cut(goal["text"], SHOWN)} for goal in goals]
    chosen = await q.ask(
        prompt, {**more, "goals": shown}, schema, small.ServedGoal, lambda: small.ServedGoal(goal=spare), names=names, place=place
    )
    if means(chosen.goal, small.NONE):
        return None
    named = chosen.goal.strip().casefold()
    return next((goal for goal in q.setting.goals() if goal["name"].casefold() == named), {"name": chosen.goal, "text": chosen.goal})


# ---------------------------------------------------------------- execution
async def decompose(q: Questions, spare: Any) -> Json:
    """Each subtask in its order: whose it is (where that is not given), its goal, what it builds on."""
    task, asked = q.inputs["task"], q.inputs["subtasks"]
    earlier = [{"id": one["id"], "title": one["title"]} for one in q.inputs["upstream"]]
    subtasks: list[Json] = []
    for turn, shape in enumerate(asked):
        q.next_item()
        place = f"s{shape['n']}"
        goals = [one["goal"] for one in subtasks]
        title = shape["role"] or await _role(q, task, goals, turn, place)
        role = {"role": title, "duties": list(q.setting.org.roles[title].responsibilities[:2])}
        more = {"role": role, "number": turn + 1, "count": len(asked), "goals": goals}
        said = await q.ask("decompose", more, small.texts("goal"), small.SubtaskGoal, _nothing, names="task", place=place)
        hours = shape["hours"] or q.inputs["hours"] / len(asked)
        if said is None:
            spec = TaskSpec(**{**task, "goals": tuple(task["goals"])})
            filled = execution.filler(q.setting, spec, title, chained=bool(subtasks), number=shape["n"] - 1)
            subtasks.append(filled.model_dump(mode="json") | {"hours": hours})
        else:
            goal = untaken(said.goal, f", as the {title}", goals)
            if goal != said.goal:
                q.changed(f"{place}: its goal was that of an earlier subtask; {goal!r} was made of it")
            after = await _after(q, goal, earlier, place, chained=bool(subtasks))
            subtasks.append(
                {
                    "goal": goal,
                    "activity": _activity(q, title, goal, task["activity"]),
                    "role": title,
                    "hours": hours,
                    "after": after,
                    "need": goal,
                    # What goes on from a colleague's piece has enough to read.
                    "sources": [*([] if after else ["pool"]), *_beyond(q, title, task)],
                }
            )
        q.item(filled=said is None)
        earlier.append({"id": place, "title": subtasks[-1]["goal"]})
    return {"subtasks": subtasks}


async def _role(q: Questions, task: Json, goals: Sequence[str], turn: int, place: str) -> str:
    """Whose work the next subtask is, of those who may be given work."""
    titles = [role["role"] for role in q.inputs["roles"]]
    org = q.setting.org
    spare = next((title for title in titles if task["activity"] in org.roles[title].activities), titles[0])
    duties = [{"role": title, "duty": cut((*org.roles[title].responsibilities, title)[0], SHOWN)} for title in titles]
    about = f"{task['title']} {task['description']}"
    offered = turned(closest(duties, about, OPTIONS, lambda one: f"{one['role']} {one['duty']}"), turn)
    if len(offered) == 1:
        return str(offered[0]["role"])
    schema = small.choice("role", tuple(one["role"] for one in offered))
    more = {"roles": offered, "goals": list(goals)}
    said = await q.ask("decompose_role", more, schema, small.ChosenRole, lambda: small.ChosenRole(role=spare), names="task", place=place)
    role, note = nearest(said.role, titles)
    if note:
        q.changed(f"{place}: {note}")
    return role


async def _after(q: Questions, goal: str, earlier: Sequence[Json], place: str, *, chained: bool) -> list[str]:
    """What a subtask builds on: at most one piece of earlier work, none where there is none."""
    offered = [{"id": one["id"], "title": cut(one["title"], SHOWN)} for one in earlier[-BUILDS_ON:]]
    if not offered:
        return []
    schema = small.choice("after", (small.NOTHING, *(one["id"] for one in offered)))
    spare = small.Upstream(after=offered[-1]["id"] if chained else small.NOTHING)
    said = await q.ask("decompose_after", {"goal": goal, "offered": offered}, schema, small.Upstream, lambda: spare, place=place)
    return [] if means(said.after, small.NOTHING) else [said.after]


def _activity(q: Questions, title: str, goal: str, task_activity: str) -> str:
    """What the goal's own words say, else the task's activity, where the role has it, else the role's first."""
    legal = [activity for activity in q.setting.org.roles[title].activities if activity in q.setting.org.activities]
    named = [activity for activity in legal if any(is_form_of(activity, word) for word in words(goal))]
    return (named or [activity for activity in legal if activity == task_activity] or legal or [task_activity])[0]


async def execute(q: Questions, spare: Any) -> Json:
    """Title and content are asked; of the role's kinds that is taken which the goal names, else the first."""
    given = q.inputs
    artifacts = q.setting.org.roles[given["role"]["role"]].artifacts or (spare.artifact,)
    wanted = set(words(f"{given['subtask']['goal']} {given['task']['title']}"))
    kind = max(artifacts, key=lambda artifact: len(wanted & set(words(artifact))))  # the role's first where none is named
    more = {"kind": kind, "plan": given["plans"][-1]["text"] if given["plans"] else ""}
    said = await _document(q, "execute", more, spare, names="task role author dependencies evidence subtask")
    return {"artifact": kind, **said}


async def merge(q: Questions, spare: Any) -> Json:
    """Title and content are asked."""
    return await _document(q, "merge", {}, spare, names="task partials")


async def _document(q: Questions, prompt: str, more: Inputs, spare: Any, *, names: str) -> dict[str, Json]:
    schema = small.texts("title", "content")
    said = await q.ask(prompt, more, schema, small.Document, lambda: small.Document(title=spare.title, content=spare.content), names=names)
    return {"title": q.own_title(prompt, said.title, spare.title), "content": said.content}


STEPS: Mapping[str, Callable[[Questions, Any], Awaitable[Json]]] = {
    "formulate": formulate,
    "partition": partition,
    "partition_week": partition_week,
    "decompose": decompose,
    "execute": execute,
    "execute_tool": choose_tool,
    "merge": merge,
    "diagnose": diagnose,
    "align": align,
    "reconcile": reconcile,
    "roll_up": roll_up,
    "respond": respond,
}


# ---------------------------------------------------------------- what code decides
def _nothing() -> None:
    return None


def _beyond(q: Questions, title: str, task: Json) -> list[str]:
    """What a subtask looks for beside the work of others: figures where goals are served, tools where the role has any."""
    tooling = q.setting.tooling
    return [*(["environment"] if task["goals"] else []), *(["tools"] if tooling is not None and tooling.of(title) else [])]


def _own_first(given: Inputs) -> list[Json]:
    """The readings, those of the unit owner's goals first."""
    owned = {goal["name"] for goal in given["organization"]["goals"] if goal["owner"] == given["unit"]["owner"]}
    return sorted(given["readings"], key=lambda reading: reading["goal"] not in owned)


def _duties(q: Questions, slot: Json, turn: int) -> tuple[list[Json], list[str]]:
    """What the roles of a slot do and work on, other subjects each slot and week; and the activities among which its task has one."""
    org = q.setting.org
    roles = [org.roles[shape["role"]] for shape in slot["roles"]]
    week = next(map(int, re.findall(r"\d+", q.inputs["unit"]["period"])), 0)
    duties = [
        {"role": role.title, "duty": (*role.responsibilities, role.title)[0], "subjects": turned(role.subjects, week + turn)[:2]}
        for role in roles[:3]
    ]
    named = dict.fromkeys(activity for role in roles for activity in role.activities if activity in org.activities)
    return duties, turned(list(named) or list(org.activities), turn)[:OPTIONS]
