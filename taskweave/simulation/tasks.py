"""Who works on what, and when?  Composite tasks and their subtasks as SimPy processes on the agents' calendars (Sec. 3.3).

Entry points: `Tasks.open`, `Tasks.close_week`, `Tasks.supersede`, `Tasks.take_off`.  Only work takes simulated time here; what it
produces is a promise.  It refuses to know how plans come about.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import simpy
from simpy.events import Event

from taskweave.engine.clock import START
from taskweave.engine.promises import Promise
from taskweave.org.entities import Entity
from taskweave.org.kpis import ROLE
from taskweave.records import Json, Priority
from taskweave.simulation import execution, hours_left
from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.capacity import Slot, minutes_spent
from taskweave.simulation.dependencies import heights
from taskweave.simulation.execution import Breakdown
from taskweave.simulation.matching import choose
from taskweave.simulation.moments import moments
from taskweave.simulation.open_work import URGENT, OpenSubtask, OpenTask, Status
from taskweave.simulation.result_rows import result_rows
from taskweave.simulation.stage import Stage


class Tasks:
    """All composite tasks that are not finished, by owner, and the processes that work on them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._by_id: dict[str, OpenTask] = {}
        self._by_owner: dict[str, dict[str, OpenTask]] = {}
        self._changed: dict[str, OpenTask | OpenSubtask] = {}
        self._merged: dict[str, Promise] = {}
        self._finished: dict[str, list[tuple[OpenTask, Promise | None]]] = {}
        self._ended = {"done": 0, "dropped": 0}
        self.subtasks_done = 0
        self.hours_done = 0.0
        self._worked: dict[str, float] = {}

    # ------------------------------------------------------------ opening
    def open(
        self,
        task_id: str,
        *,
        state: str,
        owner: str,
        unit: Json,
        bundle: Promise,
        plan: Promise,
        plans: Mapping[str, Promise],
        index: int,
        slot: Slot,
        due: tuple[str, int],
        urgent: bool = False,
        cause: str | None = None,
        siblings: Sequence[str] = (),
        about: tuple[Entity, ...] = (),
    ) -> OpenTask:
        """Begin a composite task: its count and shape are known, its words come with the bundle.

        `siblings` are ids of earlier tasks of the bundle, which may be named as upstream, as may carried ones; `about` is its subject.
        """
        stage = self._stage
        upstream: dict[str, tuple[str, str | int]] = {f"t{place + 1}": (sibling, place) for place, sibling in enumerate(siblings)}
        if not urgent:
            beside = set(siblings)
            for task in self.of(owner):
                if task.id not in beside and task.spec is not None and not task.urgent:
                    upstream[task.id.split("@")[0].rsplit("/", 1)[1] + "/" + task.id.rsplit("/", 1)[1]] = (task.id, task.spec.title)
        work = execution.decompose(
            stage.setting,
            stage.pool,
            stage.documents,
            date=stage.date(),
            unit=unit,
            index=index,
            slot=slot,
            eligible=self.eligible(owner),
            upstream=upstream,
        )
        breakdown = stage.launch(f"{task_id}:decompose", work, {"bundle": bundle, "plan": plan}, reads=True, case=task_id)
        task = OpenTask(
            id=task_id,
            state=state,
            owner=owner,
            slot=slot,
            due=due[0],
            due_minute=due[1],
            plans=dict(plans),
            finished=stage.env.event(),
            urgent=urgent,
            breakdown=breakdown,
            cause=cause,
            about=about,
        )
        self._by_id[task_id] = self._by_owner.setdefault(owner, {})[task_id] = task
        stage.env.process(self._composite(task))
        return task

    def of(self, owner: str) -> list[OpenTask]:
        """The owner's unfinished tasks, oldest first."""
        return list(self._by_owner.get(owner, {}).values())

    def open_tasks(self) -> list[OpenTask]:
        """All unfinished tasks, oldest first."""
        return list(self._by_id.values())

    def is_open(self, task_id: str) -> bool:
        """Whether the task is neither done nor dropped."""
        return task_id in self._by_id

    def eligible(self, owner: str) -> dict[str, tuple[str, ...]]:
        """Whom `owner` may assign to, by role: over tier, self and cross edges of ℍ."""
        setting = self._stage.setting
        by_role: dict[str, list[str]] = {}
        for agent in dict.fromkeys([*setting.delegation.executors(owner), *setting.delegation.cross(owner)]):
            if self._stage.calendars[agent].quota and self._here(agent):
                by_role.setdefault(setting.population.agent(agent).role, []).append(agent)
        return {role: tuple(agents) for role, agents in by_role.items()}

    # ------------------------------------------------------------ the processes
    def _composite(self, task: OpenTask) -> Generator[Event, Any, None]:
        stage = self._stage
        yield stage.clock.wait(task.breakdown)
        breakdown: Breakdown = task.breakdown.value
        task.spec, task.mark = breakdown.spec, breakdown.mark
        task.lift(stage.setting.priorities)
        self._change(task)
        stage.ledger.event("create", actor=task.owner, subject=task.id, object=task.spec.activity, case=task.id)
        chains = heights([step.after for step in breakdown.steps])
        for index, step in enumerate(breakdown.steps):
            site = f"{task.id}/s{index + 1}"
            minutes = minutes_spent(step.hours, stage.setting.org.workload.variation, stage.random("hours", site))
            subtask = OpenSubtask(
                id=site,
                task=task,
                index=index,
                step=step,
                minutes=minutes,
                left=minutes,
                created=stage.moment(stage.now),
                done=stage.env.event(),
                height=chains[index],
            )
            task.subtasks.append(subtask)
            self._change(subtask)
        for subtask in task.subtasks:
            subtask.process = stage.env.process(self._subtask(subtask))
        yield stage.env.all_of([subtask.done for subtask in task.subtasks])
        del self._by_id[task.id], self._by_owner[task.owner][task.id]
        if task.status != "dropped" and all(subtask.status == "dropped" for subtask in task.subtasks):
            self._give_up(task)
        if task.status == "dropped":
            self._finished.setdefault(task.owner, []).append((task, None))
        else:
            self._merge(task)
        task.finished.succeed()

    def _subtask(self, subtask: OpenSubtask) -> Generator[Event, Any, None]:
        stage, task = self._stage, subtask.task
        env, clock = stage.env, stage.clock
        try:
            waits = [task.subtasks[other].done for other in subtask.step.after]
            waits += [self._by_id[other].finished for other in subtask.step.upstream if other in self._by_id]
            yield env.all_of(waits)
            subtask.ready = True
            first = stage.now
            while subtask.left:
                if subtask.agent is None:
                    yield from self._assign(subtask)
                if subtask.agent is None:
                    raise simpy.Interrupt("departed")  # whoever might have done it has left
                calendar = stage.calendars[subtask.agent]
                # Urgent work pre-empts; among equals who asked first goes first, whoever was interrupted keeps its place.
                priority: Any = (task.rank, first, subtask.id)  # SimPy compares whatever it is given
                with calendar.desk.request(priority=priority, preempt=task.rank == URGENT) as turn:
                    began: int | None = None
                    try:
                        yield turn
                        yield clock.at(START)  # after this minute's closings, tick and openings: sees the sealed week
                        while (available := calendar.next_minute(stage.now)) > stage.now:
                            yield env.timeout(available - stage.now)
                            yield clock.at(START)
                        began = stage.now
                        calendar.begin(subtask.id, began)
                        if subtask.execution is None:
                            self._start(subtask, calendar)
                        yield env.timeout(calendar.finish(began, subtask.left) - began)
                        subtask.left -= calendar.stop(stage.now)
                    except simpy.Interrupt as interrupt:
                        if began is not None:
                            subtask.left = max(0, subtask.left - calendar.stop(stage.now))
                        self._interrupted(subtask, interrupt.cause)
                        if interrupt.cause == "superseded" or (subtask.agent and subtask.left and not self._here(subtask.agent)):
                            raise
            self._finish(subtask)
        except simpy.Interrupt as interrupt:
            if interrupt.cause == "departed":
                stage.ledger.event("abandon", actor=task.owner, subject=subtask.id, case=task.id)
            self._drop(subtask)
        subtask.done.succeed()

    def _assign(self, subtask: OpenSubtask) -> Generator[Event, Any, None]:
        """a* of Eq. 6 among those present; waits while nobody eligible is, and assigns to nobody where all of them have left.

        Agents of one title are interchangeable in authority: one whose week is full steps back for another who has room.
        """
        stage = self._stage
        while True:
            scores = {agent: score for agent, score in subtask.step.scores.items() if self._here(agent)}
            if not scores:
                return
            present = {agent: score for agent, score in scores.items() if self._present(agent)}
            if present:
                break
            try:
                yield stage.env.timeout(min(stage.calendars[agent].next_minute(stage.now) for agent in scores) - stage.now)
            except simpy.Interrupt as interrupt:  # meant for the agent that had it before
                if interrupt.cause == "superseded":
                    raise
        load = {agent: stage.calendars[agent].given(stage.week.index) for agent in present}
        titles = {agent: stage.setting.population.agent(agent).role for agent in present}
        best, _ = choose(present, titles, load)
        title = titles[best]
        peers = {agent: score for agent, score in present.items() if titles[agent] == title}
        roomy = {agent: score for agent, score in peers.items() if self._has_room(agent, subtask.left)}
        agent, why = choose(roomy or peers, titles, load)
        if roomy and best not in roomy:
            why += f"; {best} is booked for the week"
        if title != subtask.step.role:
            why += f"; proposed was a {subtask.step.role}"
        subtask.agent, subtask.why = agent, why
        stage.calendars[agent].take(subtask.id, subtask, stage.week.index)
        self._change(subtask)
        stage.ledger.event("assign", actor=subtask.task.owner, subject=subtask.id, object=agent, case=subtask.task.id)

    def _present(self, agent: str) -> bool:
        """At work within a working day from now."""
        day = self._stage.setting.calendar.day_minutes
        return self._stage.calendars[agent].next_minute(self._stage.now) <= self._stage.now + day

    def _here(self, agent: str) -> bool:
        """Whether the agent has not left for good, and has time for tasks."""
        return self._stage.calendars[agent].gone is None and self._stage.calendars[agent].quota > 0

    def _has_room(self, agent: str, minutes: int) -> bool:
        stage, calendar = self._stage, self._stage.calendars[agent]
        week_end = stage.week.first_day + stage.week.day_count
        return calendar.load(stage.now) + minutes <= calendar.minutes(stage.day, week_end - stage.day)

    def _start(self, subtask: OpenSubtask, calendar: AgentCalendar) -> None:
        """Launch the execution: from here on its words are a promise, and only its time is simulated."""
        stage, task, step = self._stage, subtask.task, subtask.step
        assert subtask.agent is not None
        subtask.started = stage.moment(stage.now)
        self._change(subtask)
        stage.ledger.event("start", actor=subtask.agent, subject=subtask.id, object=step.activity, case=task.id)
        upstream: list[tuple[str, str]] = []
        needs: list[Promise] = []
        for other in step.after:
            promise = task.subtasks[other].execution
            if promise is not None and task.subtasks[other].status == "done":
                upstream.append((task.subtasks[other].id, task.id))
                needs.append(promise)
        for name in step.upstream:
            merged = self._merged.get(name)
            if merged is not None:
                upstream.append((name, name))
                needs.append(merged)
            else:
                stage.ledger.event("release", subject=subtask.id, object=name, case=task.id)
        searching = stage.setting.has("retrieval") and "pool" in step.need.sources and stage.ledger.sealed is not None
        work = execution.execute(
            stage.setting,
            stage.pool,
            result=subtask.id,
            date=stage.date(),
            agent=subtask.agent,
            index=subtask.index,
            task=task.id,
            upstream=upstream,
            readings=stage.environment.readings(),
            searching=searching,
            moments=moments(stage, calendar, subtask.left, subtask.id),
            about=task.about,
        )
        work_calendar = stage.setting.calendar
        last_day = min((calendar.finish(stage.now, subtask.left) - 1) // work_calendar.day_minutes, len(work_calendar.days) - 1)
        subtask.execution = stage.launch(
            f"{subtask.id}:execute",
            work,
            {"breakdown": task.breakdown, "plans": task.plans, "upstream": needs},
            due=(work_calendar.week_of_day(last_day).index, -subtask.height),
            reads=searching or stage.setting.uses_tools(subtask.agent, step.need),
            case=task.id,
        )

    def _interrupted(self, subtask: OpenSubtask, cause: Any) -> None:
        """Pre-emption moves the finish only; an absence past the week hands the work over where somebody else may do it."""
        stage, agent = self._stage, subtask.agent
        assert agent is not None
        if isinstance(cause, simpy.resources.resource.Preempted):
            stage.ledger.event("preempt", actor=agent, subject=subtask.id, case=subtask.task.id)
        elif cause == "absent" and subtask.left:
            week_end = (stage.week.first_day + stage.week.day_count) * stage.setting.calendar.day_minutes
            back = stage.calendars[agent].next_minute(stage.now)
            if back >= week_end and any(other != agent and self._present(other) for other in subtask.step.scores):
                self._hand_over(subtask)
        elif subtask.left and (cause == "moved" or (not self._here(agent) and any(map(self._here, subtask.step.scores)))):
            self._hand_over(subtask)

    def _hand_over(self, subtask: OpenSubtask) -> None:
        """Free the subtask for another agent; what had begun goes on under a new site and what was answered yields no result."""
        stage = self._stage
        assert subtask.agent is not None
        before = subtask.agent
        self._leave(subtask)
        if subtask.execution is not None:
            subtask.status = "dropped"
            stage.ledger.rows(subtask.row())
            base, _, turn = subtask.id.rpartition("/")[2].partition(".")
            subtask.id = f"{subtask.task.id}/{base}.{int(turn or 1) + 1}"
            subtask.created, subtask.started, subtask.execution = stage.moment(stage.now), None, None
            subtask.status = "open"
        subtask.agent = None
        self._change(subtask)
        stage.ledger.event("handover", actor=before, subject=subtask.id, case=subtask.task.id)

    def _leave(self, subtask: OpenSubtask) -> None:
        if subtask.agent is not None:
            self._stage.calendars[subtask.agent].jobs.pop(subtask.id, None)

    def _finish(self, subtask: OpenSubtask) -> None:
        stage, task = self._stage, subtask.task
        assert subtask.agent is not None
        assert subtask.execution is not None
        self._leave(subtask)
        subtask.status, subtask.finished = "done", stage.moment(stage.now, end=True)
        self.subtasks_done += 1
        self.hours_done += subtask.step.hours
        self._add_worked(ROLE + stage.setting.population.agent(subtask.agent).role, subtask.step.hours)
        self._change(subtask)
        stage.ledger.event("finish", actor=subtask.agent, subject=subtask.id, object=subtask.step.activity, case=task.id)
        self._book_result(task, subtask.execution, subtask=subtask.id, finished=subtask.finished)

    def _drop(self, subtask: OpenSubtask) -> None:
        """Superseded: its answer, if there is one, stays journaled and yields no result."""
        self._leave(subtask)
        subtask.status = "dropped"
        self._change(subtask)

    def _merge(self, task: OpenTask) -> None:
        """Write back: ℝ ← ℝ ∪ {(η, δ, ξ)}, Eq. 8."""
        stage = self._stage
        finished = [subtask for subtask in task.subtasks if subtask.status == "done"]
        partials = [subtask.execution for subtask in finished if subtask.execution is not None]
        agent = finished[-1].agent
        assert agent is not None
        task.status, task.on_time = "done", stage.now <= task.due_minute
        assert task.spec is not None
        for goal in task.spec.goals:
            self._add_worked(goal, task.slot.hours)
        self._ended["done"] += 1
        self._change(task)
        work = execution.merge(stage.setting, result=task.id, date=stage.date(), agent=agent)
        task.merged = stage.launch(f"{task.id}:merge", work, {"breakdown": task.breakdown, "partials": partials}, case=task.id)
        self._merged[task.id] = task.merged
        stage.ledger.event("done", actor=task.owner, subject=task.id, object=agent, case=task.id)
        self._book_result(task, task.merged, subtask=None, finished=stage.moment(stage.now, end=True))
        self._finished.setdefault(task.owner, []).append((task, task.merged))

    def _book_result(self, task: OpenTask, promise: Promise, *, subtask: str | None, finished: str) -> None:
        self._stage.ledger.book(result_rows(task, subtask=subtask, finished=finished), promise)

    @property
    def counts(self) -> dict[str, int]:
        """How many composite tasks are done, dropped, and now spilled or blocked: a status, not how often a close found it."""
        open_ones = [task.status for task in self._by_id.values()]
        return {**self._ended, "spilled": open_ones.count("spilled"), "blocked": open_ones.count("blocked")}

    # ------------------------------------------------------------ what units ask for
    def close_week(self, owner: str) -> tuple[list[OpenTask], list[tuple[OpenTask, Promise | None]]]:
        """Tell spilled from blocked among the owner's open tasks; returns those, and what was finished since the last close."""
        stage = self._stage
        still_open = self.of(owner)
        for task in still_open:
            for subtask in task.subtasks:
                if subtask.status in ("done", "dropped"):
                    continue
                here = subtask.agent is not None and self._was_here(subtask.agent)
                status: Status = "spilled" if subtask.started is not None or (subtask.ready and here) else "blocked"
                if subtask.status != status:
                    subtask.status = status
                    self._change(subtask)
            begun = any(subtask.status in ("spilled", "done") for subtask in task.subtasks)
            task.status = "spilled" if begun else "blocked"
            self._change(task)
            stage.ledger.event(task.status, actor=owner, subject=task.id, case=task.id)
        return still_open, self._finished.pop(owner, [])

    def _was_here(self, agent: str) -> bool:
        """Whether the agent was there on any day of the week that closes: else it was its absence that kept the work."""
        week = self._stage.week
        return any(self._stage.calendars[agent].present(day) for day in range(week.first_day, week.first_day + week.day_count))

    def _add_worked(self, what: str, hours: float) -> None:
        self._worked[what] = self._worked.get(what, 0.0) + hours

    def take_worked(self) -> dict[str, float]:
        """Planned hours finished since this was last asked, of composite tasks by goal and of subtasks by role:TITLE.

        A task of two goals counts for both.
        """
        worked, self._worked = self._worked, {}
        return worked

    def carried_hours(self, owner: str) -> dict[str, float]:
        """Planned hours of the owner's open work still to be done, by role."""
        return hours_left.by_role(self._stage, self.of(owner))

    def carried_hours_by_agent(self) -> dict[str, float]:
        """Planned hours of unfinished subtasks, by the agent to whom they are assigned."""
        return hours_left.by_agent(self._stage, self._by_id.values())

    def supersede(self, owner: str, hours: float) -> list[OpenTask]:
        """Drop tasks of lowest priority that nobody has begun until `hours` are free; the newest of equals first."""
        freed, dropped = 0.0, []
        candidates = [t for t in self.of(owner) if not t.urgent and t.subtasks and all(s.started is None for s in t.subtasks)]
        for task in sorted(reversed(candidates), key=lambda t: -t.rank):
            if freed >= hours:
                break
            freed += task.slot.hours
            dropped.append(task)
            self.drop(task)
        return dropped

    def _give_up(self, task: OpenTask) -> None:
        """No result will come of the task."""
        task.status = "dropped"
        self._ended["dropped"] += 1
        self._change(task)

    def drop(self, task: OpenTask) -> None:
        """Supersede the task: what runs is interrupted, nothing is merged."""
        stage = self._stage
        self._give_up(task)
        stage.ledger.event("supersede", actor=task.owner, subject=task.id, case=task.id)
        for subtask in task.subtasks:
            if subtask.process is not None and subtask.process.is_alive:
                subtask.process.interrupt("superseded")

    def take_off(self, agent: str, days: range) -> None:
        """The agent is away on these working days: work in hand stops, and is handed over where it would outlast the week."""
        calendar = self._stage.calendars[agent]
        calendar.be_away(days)
        self._stage.ledger.event("absent", actor=agent, subject=agent)
        calendar.interrupt(sorted(calendar.jobs), "absent")

    def inherit(self, owner: str, successor: str, *, all: bool = True) -> None:
        """What was planned by an owner who leaves is another's from now on: `all` of it, or what is not done yet."""
        for task in self.of(owner):
            task.owner = successor
            self._changed.update({one.id: one for one in task.subtasks if all or one.status not in ("done", "dropped")})
        self._by_owner.setdefault(successor, {}).update(self._by_owner.pop(owner, {}))
        self._finished.setdefault(successor, []).extend(self._finished.pop(owner, []))

    def let_go(self, agent: str, cause: str) -> None:
        """The agent has left for good: its work is handed over, or dropped where nobody else may do it."""
        calendar = self._stage.calendars[agent]
        calendar.leave(self._stage.day)
        self._stage.ledger.event("departure", actor=agent, subject=agent, object=cause)
        calendar.interrupt(sorted(calendar.jobs), "departed")

    def reorder(self, priorities: Mapping[str, Priority]) -> None:
        """Goals have these priorities from now on: what waits for an agent's time takes the place that they give it."""
        ranks = {task.id: task.rank for task in self._by_id.values()}
        for task in self._by_id.values():
            task.lift(priorities)
        moved = {task.id for task in self._by_id.values() if task.rank != ranks[task.id]}
        for calendar in self._stage.calendars.values():
            waiting = [site for site in sorted(calendar.jobs) if not calendar.at_work(site) and site.rpartition("/")[0] in moved]
            calendar.interrupt(waiting, "reordered")

    def flush(self) -> None:
        """Book the rows of everything that changed since the last flush."""
        self._stage.ledger.rows(*(changed.row() for changed in self._changed.values()))
        self._changed.clear()

    def _change(self, changed: OpenTask | OpenSubtask) -> None:
        self._changed[changed.id] = changed
