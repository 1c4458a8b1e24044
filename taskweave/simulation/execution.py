"""What executing a composite task asks a backbone: decompose, execute, merge (Sec. 3.3, Eq. 4-8).

Each function captures what is known at launch and returns a work: `async (ctx, needs) -> value`.  It refuses to know about agents'
time: `tasks.py` says who works when.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from taskweave.backbones.legal import nearest
from taskweave.backbones.structured import Answered, CallRow
from taskweave.cutting import Kept
from taskweave.engine.promises import Context as WorkContext
from taskweave.org.entities import Entity, Fact
from taskweave.org.population import Agent
from taskweave.pool.pool import Pool
from taskweave.records import BY_CODE, BY_CODE_SAID, Dependency, DependencyQuery, Json, Mark, Origin, Quality, TaskSpec, worst
from taskweave.simulation import answers
from taskweave.simulation.about import offered
from taskweave.simulation.bundles import Bundle, mark_of
from taskweave.simulation.capacity import Slot, share_out
from taskweave.simulation.dependencies import MOST_DEPENDENCIES, Use, break_cycles, read_after, resolve, within
from taskweave.simulation.environment import Reading
from taskweave.simulation.fpda import Needs, Work, plan_text
from taskweave.simulation.matching import PROPOSED, Matcher
from taskweave.simulation.setting import Setting
from taskweave.simulation.tool_use import ToolUse, use


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One subtask as decomposed: its goal, the role that was `proposed`, the legal `role` that it means, and how well agents fit.

    `mark` says what named it.
    """

    goal: str
    activity: str
    proposed: str
    role: str
    hours: float
    after: tuple[int, ...]
    upstream: tuple[str, ...]
    need: DependencyQuery
    scores: Mapping[str, float]
    mark: Mark


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """A composite task, with the mark of its specification, and its subtasks; `notes` say what code had to add or change."""

    spec: TaskSpec
    mark: Mark
    steps: tuple[Step, ...]
    quality: Quality
    calls: tuple[CallRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deliverable:
    """δ and most of ξ of a subtask's or a merged result; `references` are results of other tasks that it rests on.

    `substituted`: it, or a result that it was merged from, is a fallback.  `facts` were offered to whoever made it, or made its parts.
    """

    id: str
    agent: str
    role: str
    artifact: str
    title: str
    content: str
    quality: Quality
    origin: Origin
    prompt: str
    backbone: str
    uses: tuple[Use, ...]
    references: tuple[Dependency, ...]
    calls: tuple[CallRow, ...]
    notes: tuple[str, ...] = ()
    substituted: bool = False
    used: ToolUse = ToolUse()
    facts: tuple[Fact, ...] = ()


class Documents:
    """What stands about each agent, for matching: the persona, the role, and the titles of own results in closed weeks."""

    def __init__(self, setting: Setting) -> None:
        documents = {}
        for agent in setting.population.agents:
            documents[agent.id] = about(setting, agent)
        self._matcher = Matcher(documents)
        self._read: dict[str, int] = {}
        self._writes = 0

    def join(self, setting: Setting, agent: Agent) -> None:
        """Somebody was hired.  At a tick no decompose is under way: the clock waits for each of them."""
        self._matcher.join(agent.id, about(setting, agent))

    def learn(self, setting: Setting, agent: Agent, before: Setting) -> None:
        """Somebody has another role, or a role is another one: what stood there stays, and what is new comes to it.  At a tick likewise."""
        known = set(about(before, before.population.agent(agent.id)))
        self._matcher.add(agent.id, [text for text in about(setting, agent) if text not in known])

    def matcher(self, pool: Pool) -> Matcher:
        """The matcher as of the pool's closed weeks: a work that asks for it is launched with reads."""
        if self._writes != pool.writes:
            for agent, titles in pool.titles_by_agent().items():
                self._matcher.add(agent, titles[self._read.get(agent, 0) :])
                self._read[agent] = len(titles)
            self._writes = pool.writes
        return self._matcher


def about(setting: Setting, agent: Agent) -> list[str]:
    """What stands about an agent when nothing of its work is known."""
    role = setting.org.roles[agent.role]
    return [agent.role, *role.responsibilities, *role.skills, *agent.persona.knows]


def decompose(
    setting: Setting,
    pool: Pool,
    documents: Documents,
    *,
    date: str,
    unit: Json,
    index: int,
    slot: Slot,
    eligible: Mapping[str, tuple[str, ...]],
    upstream: Mapping[str, tuple[str, str | int]],
) -> Work:
    """{τ̂_k} of the task at `index` of the bundle, with the match of every eligible agent.  Needs: bundle, plan.

    `eligible` are the agents by role that the delegator may assign to; `upstream` maps a short name to the id of another task and its
    title, or its index in the bundle.
    """
    count, owner = len(slot.roles), str(unit["id"]).rsplit("@", 1)[1]
    titles = list(dict.fromkeys(slot.roles)) if setting.assign == "match" else sorted(eligible, key=list(setting.org.roles).index)

    async def work(ctx: WorkContext, needs: Needs) -> Breakdown:
        bundle: Bundle = needs["bundle"]
        spec, mark = bundle.tasks[index], bundle.marks[index]
        offered = {name: bundle.tasks[title].title if isinstance(title, int) else title for name, (_, title) in upstream.items()}

        async def ask_for(had: Sequence[answers.ProposedSubtask]) -> Answered[tuple[answers.ProposedSubtask, ...]]:
            first = len(had)
            wanted = slot.roles[first:]
            given = [{"id": f"s{n}", "title": step.goal} for n, step in enumerate(had, 1)]
            inputs = {
                "organization": setting.organization(),
                "date": date,
                "unit": unit,
                "plan": plan_text(needs["plan"]),
                "task": task_input(spec),
                "subtasks": [
                    {"n": n, "role": role, "hours": setting.org.roles[role].middle_hours}
                    if setting.assign == "match"
                    else {"n": n, "role": None, "hours": None}
                    for n, role in enumerate(wanted, first + 1)
                ],
                "hours": slot.hours,
                "roles": setting.roles("decompose", titles),
                "upstream": [*given, *({"id": name, "title": title} for name, title in offered.items())],
                "activities": list(setting.org.activities),
            }
            tools = setting.tooling is not None and any(map(setting.tooling.of, titles))
            schema = answers.decomposition(
                count, tuple(titles), tuple(offered), setting.org.activities, slot.hours, first=first, tools=tools
            )
            return await setting.ask(ctx, "decompose", inputs, schema, read_subtasks, tuple, agent=owner)

        first = await ask_for(())
        found, calls, notes, quality = list(first.value[:count]), list(first.calls), list(first.notes), first.quality
        marks = [mark_of(first, number) for number in range(len(found))]
        if len(first.value) > count:
            notes.append(f"{len(first.value) - count} subtasks more than asked were left out")
            quality = "repaired" if quality == "ok" else quality
        if len(found) < count and quality != "fallback":
            more = await ask_for(found)
            notes.append(f"{count - len(found)} subtasks were missing and asked for again")
            calls, notes, quality = [*calls, *more.calls], [*notes, *more.notes], "repaired" if more.quality == "ok" else more.quality
            found += more.value[: count - len(found)]
            marks += [mark_of(more, number) for number in range(len(found) - len(marks))]
        while len(found) < count:
            notes.append(f"subtask {len(found) + 1} {BY_CODE_SAID}")
            found.append(filler(setting, spec, slot.roles[len(found)], chained=bool(found), number=len(found)))
            marks.append(BY_CODE)
            quality = "fallback"
        steps, changes = read_steps(setting, spec, slot, found, marks, titles, {name: task for name, (task, _) in upstream.items()})
        matcher = documents.matcher(pool)
        scored = tuple(score(setting, matcher, step, eligible) for step in steps)
        quality = worst(quality, "repaired") if changes else quality
        return Breakdown(spec=spec, mark=mark, steps=scored, quality=quality, calls=tuple(calls), notes=(*notes, *changes))

    return work


def read_subtasks(answer: Json) -> tuple[answers.ProposedSubtask, ...]:
    """The subtasks of a decompose answer; ValueError for what is none."""
    return answers.Decomposition.model_validate(answer).subtasks


def read_steps(
    setting: Setting,
    spec: TaskSpec,
    slot: Slot,
    found: Sequence[answers.ProposedSubtask],
    marks: Sequence[Mark],
    titles: Sequence[str],
    upstream: Mapping[str, str],
) -> tuple[list[Step], list[str]]:
    """Subtasks with legal roles and activities, hours clamped and scaled, and dependencies without cycles; and what that changed."""
    notes: list[str] = []
    roles, activities, after, tasks, changed = [], [], [], [], []
    for index, step in enumerate(found):
        role, other_role = nearest(step.role, titles)
        roles.append(role)
        activity, other_activity = nearest(step.activity, setting.org.activities)
        activities.append(activity)
        siblings, others, illegal = read_after(step.after, index, len(found), upstream)
        after.append(siblings)
        tasks.append(tuple(others))
        changes = [*(f"s{index + 1}: {note}" for note in (other_role, other_activity) if note), *illegal]
        notes += changes
        changed.append(bool(changes))
    acyclic, cycles = break_cycles(after)
    hours = share_out([step.hours for step in found], [setting.org.roles[role].hours for role in roles], slot.hours)
    filters = {"goal": spec.goals[0]} if spec.goals else {}
    return [
        Step(
            goal=step.goal,
            activity=activities[index],
            proposed=step.role,
            role=roles[index],
            hours=hours[index],
            after=acyclic[index],
            upstream=tasks[index],
            need=DependencyQuery(
                upstream=tuple(f"s{other + 1}" for other in acyclic[index]) + tasks[index],
                text=step.need,
                filters=filters,
                sources=tuple(source for source in step.sources if source in answers.SOURCES),
            ),
            scores={},
            mark=marks[index].mended if changed[index] or len(acyclic[index]) < len(after[index]) else marks[index],
        )
        for index, step in enumerate(found)
    ], [*notes, *cycles]


def score(setting: Setting, matcher: Matcher, step: Step, eligible: Mapping[str, tuple[str, ...]]) -> Step:
    """The step with s_match of each eligible agent (Eq. 6); with `--assign model` only the proposed role's agents are eligible."""
    others = [] if setting.assign == "model" else [role for role in eligible if role != step.role]
    names = [agent for role in [step.role, *others] for agent in eligible.get(role, ())]
    cosines = matcher.score(f"{step.goal} {step.activity}", names)
    scores = {
        name: round(cosines[name] + (PROPOSED if setting.population.agent(name).role == step.role else 0.0), 6) for name in sorted(names)
    }
    return replace(step, scores=scores)


def filler(setting: Setting, spec: TaskSpec, role: str, *, chained: bool, number: int) -> answers.ProposedSubtask:
    """The subtask that stands in where a backbone named none."""
    return answers.ProposedSubtask.by_code(
        goal=f"{spec.title}: the part of the {role}",
        activity=spec.activity,
        role=role,
        hours=setting.org.roles[role].middle_hours,
        after=(f"s{number}",) if chained else (),
        need=spec.title,
        sources=("pool",),
    )


def execute(
    setting: Setting,
    pool: Pool,
    *,
    result: str,
    date: str,
    agent: str,
    index: int,
    task: str,
    upstream: Sequence[tuple[str, str]],
    readings: Sequence[Reading],
    searching: bool,
    moments: Sequence[str] = (),
    about: Sequence[Entity] = (),
) -> Work:
    """r = ℰ_exec(η̂, Γ, a), Eq. 7.

    Needs: breakdown, plans (year, quarter, month, week: those there are), upstream (deliverables).  `upstream` names the same results
    by id and task; `moments` are those at which a tool may be used, `about` is what the task is about, of which some facts stand among
    the evidence.
    """
    room = setting.budget("execute", "evidence")
    offer = offered(setting.seed, result, about, date, room)

    async def work(ctx: WorkContext, needs: Needs) -> Deliverable:
        breakdown: Breakdown = needs["breakdown"]
        step, spec = breakdown.steps[index], breakdown.spec
        explicit = [
            Dependency(id=id, title=d.title, role=d.role, author=setting.name(d.agent), artifact=d.artifact, excerpt=d.content)
            for (id, _), d in zip(upstream, needs["upstream"], strict=True)
        ]
        measured = [reading for reading in readings if reading.goal in spec.goals]
        context, uses, unseen = await resolve(
            ctx,
            pool,
            step.need,
            explicit=explicit,
            task=task,
            readings=measured or readings,  # of the goals that the task serves, where those are measured
            searching=searching,
            budget=setting.budget("execute", "dependencies"),
        )
        role = setting.population.agent(agent).role
        inputs = {
            "organization": setting.organization(),
            "date": date,
            "plans": [{"level": level, "text": plan_text(plan)} for level, plan in needs["plans"].items()],
            "task": task_input(spec),
            "role": setting.shown_role("execute", role, f"{step.goal} {spec.title} {spec.description}"),
            "author": setting.author(agent),
            "dependencies": [dependency_input(dependency) for dependency in context.results],
            "evidence": offer.beside(context.evidence, room),
            "goals": [goal for goal in setting.goals() if goal["name"] in spec.goals],
            "subtask": {"goal": step.goal, "activity": step.activity, "hours": step.hours},
        }
        used = ToolUse()
        if setting.uses_tools(agent, step.need):
            effects = [effect for d in needs["upstream"] for effect in d.used.effects]
            used = await use(setting, ctx, agent=agent, result=result, inputs=inputs, upstream=effects, moments=moments)
            inputs["evidence"] = offer.beside([*context.evidence, *used.evidence], room)
            uses += [Use(used=row["id"], kind="tool", how="explicit") for row in used.rows]
        uses += [Use(used=entity, kind="environment", how="explicit") for entity in offer.entities]
        artifacts = setting.org.roles[role].artifacts
        answered = await setting.ask(
            ctx,
            "execute",
            inputs,
            answers.deliverable(setting.kinds(role)),
            answers.Deliverable.model_validate,
            lambda: answers.Deliverable.by_code(
                artifact=artifacts[0] if artifacts else "report",
                title=step.goal,
                content=f"No usable text was returned for this subtask: {step.goal}.",
            ),
            agent=agent,
        )
        artifact, note = nearest(answered.value.artifact, artifacts) if artifacts else (answered.value.artifact, None)
        own = {id for id, of in upstream if of == task}
        return Deliverable(
            id=result,
            agent=agent,
            role=role,
            artifact=artifact,
            title=answered.value.title,
            content=answered.value.content,
            quality="repaired" if note and answered.quality == "ok" else answered.quality,
            origin=answered.origin,
            prompt=setting.prompts.label("execute"),
            backbone=answered.calls[-1].backbone,
            uses=tuple(uses),
            references=tuple(dependency for dependency in context.results if dependency.id not in own),
            calls=(*used.calls, *answered.calls),
            notes=(*used.notes, *answered.notes, *((note,) if note else ()), *unseen),
            substituted=answered.quality == "fallback",
            used=used,
            facts=offer.facts,
        )

    return work


def merge(setting: Setting, *, result: str, date: str, agent: str) -> Work:
    """(δ, ξ) = ℳ(ℬ), Eq. 8.  Needs: breakdown, partials (deliverables, in order of the subtasks).  A single partial is taken as it is."""

    async def work(ctx: WorkContext, needs: Needs) -> Deliverable:
        spec: TaskSpec = needs["breakdown"].spec
        partials: list[Deliverable] = needs["partials"]
        last = partials[-1]
        references = list({dependency.id: dependency for partial in partials for dependency in partial.references}.values())
        uses = [Use(used=partial.id, kind="result", how="merged") for partial in partials]
        kept = {use.used: use for partial in partials for use in partial.uses if use.how != "merged"}
        facts = tuple({fact.id: fact for partial in partials for fact in partial.facts}.values())
        partial_ids = {partial.id for partial in partials}
        uses += [use for used, use in kept.items() if used not in partial_ids]
        if len(partials) == 1:
            return Deliverable(
                id=result,
                agent=agent,
                role=last.role,
                artifact=last.artifact,
                title=last.title,
                content=last.content,
                quality=last.quality,
                origin=last.origin,
                prompt=last.prompt,
                backbone=last.backbone,
                uses=tuple(uses),
                references=tuple(references),
                calls=(),
                substituted=last.substituted,
                facts=facts,
            )
        found = [
            Dependency(id=p.id, title=p.title, role=p.role, author=setting.name(p.agent), artifact=p.artifact, excerpt=p.content)
            for p in partials
        ]
        inputs = {
            "organization": setting.organization(),
            "date": date,
            "task": task_input(spec),
            "goals": [goal for goal in setting.goals() if goal["name"] in spec.goals],
            "partials": [dependency_input(d) for d in within(found, setting.budget("merge", "partials"))],
            "references": [dependency_input(d) for d in within(references[:MOST_DEPENDENCIES], setting.budget("merge", "references"))],
        }
        answered = await setting.ask(
            ctx,
            "merge",
            inputs,
            answers.merged(),
            answers.Merged.model_validate,
            lambda: answers.Merged.by_code(title=spec.title, content="\n\n".join(f"{p.title}\n{p.content}" for p in partials)),
            agent=agent,
        )
        return Deliverable(
            id=result,
            agent=agent,
            role=setting.population.agent(agent).role,
            artifact=last.artifact,
            title=answered.value.title,
            content=answered.value.content,
            quality=answered.quality,
            origin=answered.origin,
            prompt=setting.prompts.label("merge"),
            backbone=answered.calls[-1].backbone,
            uses=tuple(uses),
            references=tuple(references),
            calls=answered.calls,
            notes=answered.notes,
            substituted=answered.quality == "fallback" or any(partial.substituted for partial in partials),
            facts=facts,
        )

    return work


@lru_cache(maxsize=1024)
def task_input(spec: TaskSpec) -> Json:
    """The `task` input of prompts, the same for all that is asked of a task."""
    return Kept(
        {
            "title": spec.title,
            "background": spec.background,
            "description": spec.description,
            "activity": spec.activity,
            "priority": spec.priority,
            "goals": list(spec.goals),
            "constraints": spec.constraints,
        }
    )


def dependency_input(dependency: Dependency) -> Json:
    """One entry of `dependencies`, `partials` or `references`."""
    return {
        "id": dependency.id,
        "title": dependency.title,
        "role": dependency.role,
        "author": dependency.author,
        "artifact": dependency.artifact,
        "excerpt": dependency.excerpt,
    }
