"""What a planning unit asks a backbone: formulate, partition, diagnose, align, and reconcile, roll up, respond (Sec. 3.2, Eq. 2-3).

Each function captures what is known at launch and returns a work: `async (ctx, needs) -> value`, needs being promised values by name.
It refuses to know when it is called and how many items there should be: callers say the count.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from taskweave.backbones.legal import nearest
from taskweave.backbones.structured import Answered
from taskweave.engine.promises import Context as WorkContext
from taskweave.org.entities import Entity
from taskweave.records import Json, Priority, TaskSpec
from taskweave.simulation import answers
from taskweave.simulation.about import as_input
from taskweave.simulation.bundles import Bundle, Objectives, complete_objectives, exactly
from taskweave.simulation.capacity import Slot
from taskweave.simulation.setting import Setting

T = TypeVar("T")
Needs = Mapping[str, Any]
Work = Callable[[WorkContext, Needs], Awaitable[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Scene:
    """What a unit's prompts show of the moment in which they are launched."""

    date: str
    unit: Json
    incidents: tuple[Json, ...] = ()
    readings: tuple[Json, ...] = ()

    @property
    def owner(self) -> str:
        """The id of the agent whose unit it is."""
        return str(self.unit["id"]).rsplit("@", 1)[1]


# ---------------------------------------------------------------- opening a unit
def formulate(setting: Setting, scene: Scene, *, carried: Sequence[str]) -> Work:
    """π' = F_form(π, σ, 𝔹).

    Needs: parent, parent_diagnosis, bundle, last_plan, last_diagnosis (each may be None), requests (a list).
    """
    owner = scene.owner

    async def work(ctx: WorkContext, needs: Needs) -> Answered[answers.Formulation]:
        objectives = [o.text for o in needs["bundle"].value.objectives if o.owner == owner] if needs["bundle"] else []
        parent_plan = plan_text(needs["parent"])
        inputs = {
            "organization": setting.organization(),
            "date": scene.date,
            "unit": scene.unit,
            "parent_plan": parent_plan,
            "parent_diagnosis": summary_text(needs["parent_diagnosis"]),
            "last_plan": plan_text(needs["last_plan"]),
            "last_diagnosis": summary_text(needs["last_diagnosis"]),
            "objectives": objectives,
            "readings": list(scene.readings),
            "incidents": list(scene.incidents),
            "requests": requests_to(owner, needs["requests"], setting),
            "carried": list(carried),
        }
        kept = " ".join(objectives) or parent_plan or " ".join(goal.text for goal in setting.org.goals.values())
        return await setting.ask(
            ctx,
            "formulate",
            inputs,
            answers.formulation(),
            answers.Formulation.model_validate,
            lambda: answers.Formulation.by_code(plan=f"Go on with what was asked: {kept}", focus=(), risks=()),
            agent=scene.owner,
        )

    return work


def partition(setting: Setting, scene: Scene, recipients: Sequence[str]) -> Work:
    """𝒯' = F_part(π', 𝒜^[t], ℍ) above the week: one objective for each next owner.  Needs: plan."""

    async def work(ctx: WorkContext, needs: Needs) -> Answered[Objectives]:
        plan = needs["plan"].value
        goals = tuple(setting.org.goals)
        inputs = {
            "organization": setting.organization(),
            "date": scene.date,
            "unit": scene.unit,
            "plan": plan.plan,
            "focus": list(getattr(plan, "focus", ())),
            "recipients": [recipient(setting, agent) for agent in recipients],
            "goals": setting.goals(),
            "incidents": list(scene.incidents),
        }
        answered = await setting.ask(
            ctx,
            "partition",
            inputs,
            answers.partition(tuple(recipients), goals),
            answers.Partition.model_validate,
            lambda: answers.Partition.by_code(objectives=()),
            agent=scene.owner,
        )
        return complete_objectives(setting, answered, recipients, plan.plan)

    return work


def partition_week(
    setting: Setting, scene: Scene, slots: Sequence[Slot], *, carried: Sequence[str], about: Sequence[Sequence[Entity]]
) -> Work:
    """𝒯' of a week: exactly one composite task a slot, about what `about` has in its place.

    Needs: plan, bundle (the parent's, or None), last (last week's Bundle, or None).
    """
    owner = scene.owner

    async def work(ctx: WorkContext, needs: Needs) -> Bundle:
        plan = needs["plan"].value
        objectives = [o.text for o in needs["bundle"].value.objectives if o.owner == owner] if needs["bundle"] else []
        recent = [task.title for task in needs["last"].tasks] if needs["last"] else []

        async def ask_for(wanted: Sequence[Slot], had: Sequence[str]) -> Answered[tuple[TaskSpec, ...]]:
            titles, concerned = roles_of(wanted), about[len(slots) - len(wanted) :]
            inputs = {
                "organization": setting.organization(),
                "date": scene.date,
                "unit": scene.unit,
                "plan": plan.plan,
                "focus": list(getattr(plan, "focus", ())),
                "objectives": objectives,
                "incidents": list(scene.incidents),
                "carried": list(carried),
                "recent": [*recent, *had],
                "slots": [slot.as_input(setting.org) | named(those) for slot, those in zip(wanted, concerned, strict=True)],
                "roles": setting.roles("partition_week", titles),
                "activities": list(setting.org.activities),
                "goals": setting.goals(),
            }
            schema = answers.week_partition(len(wanted), setting.org.activities, tuple(setting.org.goals))
            return await setting.ask(ctx, "partition_week", inputs, schema, read_tasks, tuple, agent=owner)

        return await exactly(slots, ask_for, setting, plan.plan)

    return work


def named(entities: Sequence[Entity]) -> dict[str, Json]:
    """What a slot says of whom its task is about; nothing where it is about nobody."""
    return {"about": [as_input(entity) for entity in entities]} if entities else {}


def read_tasks(answer: Json) -> tuple[TaskSpec, ...]:
    """The tasks of a partition_week answer; ValueError for what is none."""
    return tuple(task.spec() for task in answers.WeekPartition.model_validate(answer).tasks)


def respond(setting: Setting, scene: Scene, incident: Json, open_tasks: Sequence[Json], slots: Sequence[Slot]) -> Work:
    """What an affected owner does at once about a grave incident: a new plan, and exactly one urgent task a slot.  Needs: plan."""

    async def work(ctx: WorkContext, needs: Needs) -> tuple[Answered[answers.Response], Bundle]:
        answered: Answered[answers.Response] | None = None

        async def ask_for(wanted: Sequence[Slot], had: Sequence[str]) -> Answered[tuple[TaskSpec, ...]]:
            nonlocal answered
            inputs = {
                "organization": setting.organization(),
                "date": scene.date,
                "unit": scene.unit,
                "plan": plan_text(needs["plan"]),
                "incident": incident,
                "open": [*open_tasks, *({"id": "", "title": title, "status": "urgent"} for title in had)],
                "slots": [slot.as_input(setting.org) for slot in wanted],
                "roles": setting.roles("respond", roles_of(wanted)),
                "activities": list(setting.org.activities),
                "goals": setting.goals(),
            }
            schema = answers.response(len(wanted), setting.org.activities, tuple(setting.org.goals))
            got = await setting.ask(
                ctx,
                "respond",
                inputs,
                schema,
                answers.Response.model_validate,
                lambda: answers.Response.by_code(plan=f"{plan_text(needs['plan'])} Attend to: {incident['title']}.", urgent=()),
                agent=scene.owner,
            )
            answered = answered or got
            return got.with_value(tuple(task.spec() for task in got.value.urgent), ())

        bundle = await exactly(slots, ask_for, setting, incident["title"]) if slots else None
        if answered is None:
            await ask_for((), ())
        assert answered is not None
        return answered, bundle or Bundle(tasks=(), marks=(), quality=answered.quality, calls=answered.calls, notes=answered.notes)

    return work


# ---------------------------------------------------------------- closing a unit
def diagnose(
    setting: Setting,
    scene: Scene,
    *,
    counts: Mapping[str, int],
    tasks: Sequence[Json],
    children: Sequence[str],
) -> Work:
    """σ' = F_diag(ℝ, 𝒯').  What is done, spilled or blocked is given, never asked.

    Needs: plan, results (merged deliverables), children (their last diagnoses, in the order of `children`, the owners), rolled_up (what
    all rounds of children came to so far, or None).
    """

    async def work(ctx: WorkContext, needs: Needs) -> Answered[answers.Diagnosis]:
        fallbacks = sum(result.substituted for result in needs["results"])
        so_far = (
            [{"owner": f"the {scene.unit['level']}'s roll-up", "summary": summary_text(needs["rolled_up"])}] if needs["rolled_up"] else []
        )
        inputs = {
            "organization": setting.organization(),
            "date": scene.date,
            "unit": scene.unit,
            "plan": plan_text(needs["plan"]),
            "counts": {**counts, "fallback": fallbacks},
            "tasks": list(tasks),
            "results": [
                {"title": result.title, "author": setting.name(result.agent), "excerpt": result.content} for result in needs["results"]
            ],
            "children": [
                *so_far,
                *(
                    {"owner": setting.population.agent(owner).role, "summary": summary_text(child)}
                    for owner, child in zip(children, needs["children"], strict=True)
                ),
            ],
            "readings": list(scene.readings),
            "incidents": list(scene.incidents),
        }
        return await setting.ask(
            ctx,
            "diagnose",
            inputs,
            answers.diagnosis(),
            answers.Diagnosis.model_validate,
            lambda: told_by_counts(counts, tasks),
            agent=scene.owner,
        )

    return work


def count(setting: Setting, *, counts: Mapping[str, int], tasks: Sequence[Json]) -> Work:
    """What stands in for σ' where nothing is diagnosed: what code counted, and the roll-up of the units below.  Asks nothing.

    Needs: rolled_up (or None).
    """

    async def work(ctx: WorkContext, needs: Needs) -> Answered[answers.Diagnosis]:
        value = told_by_counts(counts, tasks, summary_text(needs["rolled_up"]))
        return Answered(value=value, quality="ok", reason="", calls=(), origin=setting.origin)

    return work


def told_by_counts(counts: Mapping[str, int], tasks: Sequence[Json], rolled_up: str = "") -> answers.Diagnosis:
    """How many tasks of a period ended how, and which were late or blocked."""
    tally = ", ".join(f"{count} {name}" for name, count in counts.items())
    return answers.Diagnosis.by_code(
        summary=f"Tasks of the period: {tally}. {rolled_up}".rstrip(),
        deviations=tuple(task["title"] for task in tasks if task["status"] == "spilled"),
        blockers=tuple(task["title"] for task in tasks if task["status"] == "blocked"),
    )


def align(setting: Setting, scene: Scene) -> Work:
    """π̃' = F_align(π', σ').  Needs: plan, diagnosis."""

    async def work(ctx: WorkContext, needs: Needs) -> Answered[answers.Alignment]:
        diagnosis = needs["diagnosis"].value
        inputs = {
            "organization": setting.organization(),
            "date": scene.date,
            "unit": scene.unit,
            "plan": plan_text(needs["plan"]),
            "diagnosis": {
                "summary": diagnosis.summary,
                "deviations": list(getattr(diagnosis, "deviations", ())),
                "blockers": list(getattr(diagnosis, "blockers", ())),
            },
            "incidents": list(scene.incidents),
            "readings": list(scene.readings),
        }
        return await setting.ask(
            ctx,
            "align",
            inputs,
            answers.alignment(),
            answers.Alignment.model_validate,
            lambda: answers.Alignment.by_code(plan=plan_text(needs["plan"]), changes=()),
            agent=scene.owner,
        )

    return work


def reconcile(setting: Setting, scene: Scene, siblings: Sequence[str]) -> Work:
    """G_align over 𝒩_sibling: deadlines, budgets, needs across departments.  Needs: plan, plans and diagnoses (of the siblings)."""

    async def work(ctx: WorkContext, needs: Needs) -> Answered[answers.Reconciliation]:
        inputs = {
            "organization": setting.organization(),
            "date": scene.date,
            "unit": scene.unit,
            "plan": plan_text(needs["plan"]),
            "siblings": [
                {
                    "owner": agent,
                    "title": setting.population.agent(agent).role,
                    "name": setting.name(agent),
                    "department": setting.population.agent(agent).department or "",
                    "plan": plan_text(plan),
                    "diagnosis": summary_text(diagnosis),
                }
                for agent, plan, diagnosis in zip(siblings, needs["plans"], needs["diagnoses"], strict=True)
            ],
        }
        answered = await setting.ask(
            ctx,
            "reconcile",
            inputs,
            answers.reconciliation(tuple(siblings)),
            answers.Reconciliation.model_validate,
            lambda: answers.Reconciliation.by_code(plan=plan_text(needs["plan"]), requests=()),
            agent=scene.owner,
        )
        requests, notes = [], []
        for request in answered.value.requests:
            to, note = nearest(request.to, siblings)
            notes += [note] if note else []
            requests.append(request.model_copy(update={"to": to}))
        return answered.with_value(answers.Reconciliation(plan=answered.value.plan, requests=tuple(requests)), notes)

    return work


def roll_up(setting: Setting, scene: Scene, children: Sequence[tuple[str, str]]) -> Work:
    """U_up({σ}): the children's diagnoses become the parent's.

    `children` are (owner, period).  Needs: plan, last (the diagnosis so far, or None), plans, diagnoses.
    """

    async def work(ctx: WorkContext, needs: Needs) -> Answered[answers.RollUp]:
        summaries = [summary_text(diagnosis) for diagnosis in needs["diagnoses"]]
        inputs = {
            "organization": setting.organization(),
            "date": scene.date,
            "unit": scene.unit,
            "plan": plan_text(needs["plan"]),
            "last_summary": summary_text(needs["last"]),
            "children": [
                {"owner": setting.population.agent(owner).role, "period": period, "plan": plan_text(plan), "summary": summary}
                for (owner, period), plan, summary in zip(children, needs["plans"], summaries, strict=True)
            ],
        }
        return await setting.ask(
            ctx,
            "roll_up",
            inputs,
            answers.roll_up(),
            answers.RollUp.model_validate,
            lambda: answers.RollUp.by_code(summary=" ".join(summaries)),
            agent=scene.owner,
        )

    return work


# ---------------------------------------------------------------- reading needs
def plan_text(plan: Any) -> str:
    """The plan in a formulate, align, reconcile or respond answer; '' for None."""
    return plan.value.plan if plan is not None else ""


def summary_text(diagnosis: Any) -> str:
    """The summary in a diagnose or roll-up answer; '' for None."""
    return diagnosis.value.summary if diagnosis is not None else ""


def requests_to(owner: str, reconciled: Mapping[str, Any], setting: Setting) -> list[Json]:
    """What siblings asked of `owner` when they last closed; `reconciled` maps each sibling to its answer."""
    return [
        {"from": setting.name(sibling), "text": request.text}
        for sibling, answered in reconciled.items()
        for request in answered.value.requests
        if request.to == owner
    ]


def recipient(setting: Setting, agent: str) -> Json:
    """One addressee of a partition."""
    person = setting.population.agent(agent)
    below = [setting.population.agent(report).role for report in setting.delegation.reports(agent)]
    return {
        "owner": agent,
        "title": person.role,
        "name": person.persona.name,
        "department": person.department or "",
        "roles": list(dict.fromkeys(below)),
    }


def roles_of(slots: Sequence[Slot]) -> list[str]:
    """The titles that occur in these slots, each once, in order."""
    return list(dict.fromkeys(role for slot in slots for role in slot.roles))


PRIORITY_RANK: Mapping[Priority, int] = {"high": 1, "normal": 2, "low": 3}
