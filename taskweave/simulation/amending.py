"""What happens in the week in which another organization begins to hold?  People come, go and change; work finds those who may do it.

Entry point: `Amending.amend`, at the week's first tick, before anybody plans.  An amendment is the difference of two organizations; each
part of it is an event, and nothing is asked of a backbone.  It refuses to know who thought of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from taskweave.org.amendment import Difference, differences
from taskweave.org.calendar import Week
from taskweave.org.delegation import EdgeKind
from taskweave.org.organization import Organization
from taskweave.org.population import Agent
from taskweave.simulation.acting import Acting, edge_rows, person_row
from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.matching import PROPOSED
from taskweave.simulation.planning import Planning
from taskweave.simulation.recurring import Recurring
from taskweave.simulation.setting import Setting
from taskweave.simulation.stage import Stage
from taskweave.simulation.succession import successor
from taskweave.simulation.tasks import Tasks

LEFT, MOVED, CHANGED = "departed", "moved", "amended"  # why work in hand stops: the first of those that hold


class Amending:
    """The amendments of a year."""

    def __init__(self, stage: Stage, tasks: Tasks, planning: Planning, recurring: Recurring, acting: Acting) -> None:
        self._stage, self._tasks, self._planning, self._recurring, self._acting = stage, tasks, planning, recurring, acting

    def amend(self, before: Organization, week: Week, last: Week | None) -> None:
        """The stage's segment is of another organization than `before`; `last` is the last week with a working day before `week`."""
        stage = self._stage
        was, told = stage.setting, differences(before, stage.segment.org)
        self._acting.amended(stage.segment.file, goals_of(told))
        now = stage.setting
        for one in told:
            stage.ledger.event("amend", subject=one.key, object=one.how, case=now.file)
        causes: dict[str, str] = {}  # of the work in hand that stops, by its id
        self._arrive(now)
        changed = self._become(was, now)
        self._tell_edges(was.delegation.edges, now.delegation.edges)
        gone = [agent for agent in sorted(stage.calendars) if agent not in _ids(now) and stage.calendars[agent].gone is None]
        stage.environment.amend(stage.segment.org)
        self._planning.amend(week, last)
        self._succeed(was, now)
        for agent in [*gone, *changed]:
            for name in sorted(stage.calendars[agent].jobs):
                if agent in gone or not stage.calendars[agent].quota:
                    causes.setdefault(name, LEFT)
        for name in self._reach():
            causes.setdefault(name, MOVED)
        for agent in gone:
            stage.calendars[agent].leave(stage.day)
            if now.tooling is not None:
                now.tooling.leave(agent, stage.week.number, now.calendar.days[stage.day])
            stage.ledger.event("leave", actor=agent, subject=agent, object=now.file)
        self._recurring.amend()
        for agent, calendar in stage.calendars.items():
            jobs = sorted(calendar.jobs)
            for cause in (LEFT, MOVED):
                calendar.interrupt([name for name in jobs if causes.get(name) == cause], cause)
            if agent in changed:
                calendar.interrupt([name for name in jobs if name not in causes], CHANGED)

    # ------------------------------------------------------------ people
    def _arrive(self, now: Setting) -> None:
        """Those who join are there before anybody plans."""
        stage = self._stage
        for agent in now.population.agents:
            if agent.id not in stage.calendars:
                stage.calendars[agent.id] = AgentCalendar(agent, stage.env, now.calendar)
                stage.calendars[agent.id].be_away(range(stage.day))
                stage.documents.join(now, agent)
                stage.ledger.rows(("agents", person_row(agent)))
                self._known(now, agent)
                stage.ledger.event("join", actor=agent.head or "", subject=agent.id, object=agent.role, case=now.file)

    def _become(self, was: Setting, now: Setting) -> list[str]:
        """Those who stay are what the new organization says of them; whose days are others is returned."""
        stage, changed = self._stage, []
        # Who has left may stand in it, where the run is a fork of one in which nobody had.
        here = {agent for agent in _ids(now) if stage.calendars[agent].gone is None}
        for before in was.population.agents:
            if before.id not in here:
                continue
            after = now.population.agent(before.id)
            if stage.calendars[after.id].become(after, stage.now):
                changed.append(after.id)
            stage.documents.learn(now, after, was)
            if person_row(before) != person_row(after):
                stage.ledger.rows(("agents", person_row(after)))
                self._known(now, after)
            self._tell(before, after, now.file)
        return changed

    def _known(self, now: Setting, agent: Agent) -> None:
        """Whoever uses tools finds the agent as it is from today on."""
        if now.tooling is not None:
            now.tooling.join(agent, self._stage.week.number, now.calendar.days[self._stage.day])

    def _tell(self, before: Agent, after: Agent, file: str) -> None:
        ledger = self._stage.ledger
        if before.role != after.role:
            ledger.event("role", actor=before.role, subject=after.id, object=after.role, case=file)
        if before.head != after.head:
            ledger.event("head", actor=after.head or "", subject=after.id, object=before.head or "", case=file)

    def _tell_edges(self, was: Mapping[tuple[str, str], EdgeKind], now: Mapping[tuple[str, str], EdgeKind]) -> None:
        stage = self._stage
        stage.ledger.rows(*edge_rows(stage.setting.delegation, was.keys()))
        for kind, edges in (("link", now.keys() - was.keys()), ("unlink", was.keys() - now.keys())):
            for source, target in sorted(edges):
                stage.ledger.event(kind, actor=source, subject=target, object=(now if kind == "link" else was)[source, target])

    # ------------------------------------------------------------ work
    def _succeed(self, was: Setting, now: Setting) -> None:
        """What was planned by those who plan no weeks any more is planned on by others, or put aside where there are none."""
        planners = set(now.delegation.planners("week"))
        owners = dict.fromkeys([*(task.owner for task in self._tasks.open_tasks()), *self._planning.demands.owners()])
        for owner in [owner for owner in owners if owner not in planners]:
            heir = successor(owner, was, now, self._stage.calendars)
            if heir is None:
                for task in self._tasks.of(owner):
                    self._tasks.drop(task)
                continue
            self._tasks.inherit(owner, heir, all=False)
            self._planning.demands.pass_on(owner, heir)
            self._stage.ledger.event("succession", actor=heir, subject=owner, object=now.file)
        for demand in self._planning.demands.of_no_role(now.org.roles):
            self._stage.ledger.event("no_workload", subject=demand.cause, object=f"there is no {demand.role} any more")

    def _reach(self) -> list[str]:
        """Open subtasks may go to those whom their owner reaches now; returns the ids of those that somebody has who may not."""
        setting, moved = self._stage.setting, []
        for task in self._tasks.open_tasks():
            roles = {agent: role for role, agents in self._tasks.eligible(task.owner).items() for agent in agents}
            for subtask in task.subtasks:
                if subtask.status in ("done", "dropped"):
                    continue
                step = subtask.step
                scores = {agent: score for agent, score in step.scores.items() if agent in roles}
                if not scores:  # the best that can be said of those who know nothing of the task
                    alike = {agent: PROPOSED for agent, role in sorted(roles.items()) if role == step.role}
                    others = {} if setting.assign == "model" and alike else dict.fromkeys(sorted(roles.keys() - alike.keys()), 0.0)
                    scores = dict(sorted({**alike, **others}.items()))
                subtask.step = replace(step, scores=scores)
                if subtask.agent is not None and subtask.agent not in scores:
                    moved.append(subtask.id)
        return moved


def goals_of(told: Collection[Difference]) -> list[str]:
    """The goals that are others."""
    return [one.key.removeprefix("goals.") for one in told if one.key.startswith("goals.")]


def _ids(setting: Setting) -> frozenset[str]:
    return frozenset(agent.id for agent in setting.population.agents)
