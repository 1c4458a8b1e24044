"""Who does the next step of recurring work?  A line of waiting steps, and the agents of one role who serve it beside planned work.

Entry point: `Line`.  The oldest case comes first, whoever is free takes it.  It refuses to know where steps come from and what follows
one that is finished.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import Any

import simpy
from simpy.events import Event

from taskweave.engine.clock import START
from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.stage import Stage

RELEASED = "released"  # why somebody is called away who serves the line no more
Place = tuple[int, int]  # of a case in every line: the minute in which it began, and its number


@dataclass(slots=True, eq=False)
class CaseStep:
    """One step of a case: `left` of `minutes` are still to be worked, as of its last interruption."""

    id: str
    case: str
    place: Place
    activity: str
    minutes: int
    left: int
    begun: bool = False
    at_work: bool = False
    dropped: bool = False
    process: simpy.Process | None = None


class Line:
    """The steps that wait for the agents of a role, and one process an agent, which works on them at the agent's desk.

    `rank` is their place among an agent's work: a lower one is done first.  Only urgent work interrupts; a step that was interrupted
    comes back to its place in the line, so that a colleague who is free goes on with it.
    """

    def __init__(self, stage: Stage, rank: float, finished: Callable[[CaseStep], None]) -> None:
        self._stage, self.rank, self._finished = stage, rank, finished
        self._waiting: list[tuple[Place, CaseStep]] = []
        self._resting: dict[str, Event] = {}  # agents who wait for a step
        self._serving: dict[str, simpy.Process] = {}
        self._day = stage.setting.calendar.day_minutes
        self.in_hand: dict[str, CaseStep] = {}  # by agent

    def serve(self, agent: str) -> None:
        """From now on this agent works on the line; once for each is enough."""
        if agent not in self._serving:
            self._serving[agent] = self._stage.env.process(self._serve(agent))

    def keep(self, agents: Collection[str]) -> None:
        """Nobody but these works on the line any more; what others have in hand waits for them."""
        for agent in sorted(self._serving.keys() - set(agents)):
            self._resting.pop(agent, None)
            self._serving.pop(agent).interrupt(RELEASED)

    def drop(self, step: CaseStep) -> None:
        """Nothing comes of the step: it waits no more, and whoever is at it stops."""
        step.dropped = True
        self._waiting = [entry for entry in self._waiting if entry[1] is not step]
        heapq.heapify(self._waiting)
        if step.process is not None:
            step.process.interrupt("dropped")

    def put(self, step: CaseStep) -> None:
        """A step waits from this minute on."""
        self._stage.ledger.event("queue", subject=step.id, object=step.activity, case=step.case)
        self._join(step)

    def _join(self, step: CaseStep) -> None:
        heapq.heappush(self._waiting, (step.place, step))
        self._wake()

    def _wake(self) -> None:
        """Call the one who is free now and has least to do; nobody is: all, and the first who gets to it takes it."""
        calendars, now = self._stage.calendars, self._stage.now
        resting = sorted(self._resting, key=lambda agent: (calendars[agent].load(now), agent))
        free = [agent for agent in resting if calendars[agent].desk.count == 0 and calendars[agent].next_minute(now) == now]
        for agent in free[:1] or resting:
            self._resting.pop(agent).succeed()

    # ------------------------------------------------------------ at a desk
    def _serve(self, agent: str) -> Generator[Event, Any, None]:
        stage, calendar = self._stage, self._stage.calendars[agent]
        held: simpy.resources.resource.PriorityRequest | None = None
        while True:
            if not self._waiting:
                if held is not None:
                    _give_back(calendar, held)
                held, rest = None, stage.env.event()
                self._resting[agent] = rest
                try:
                    yield rest
                except simpy.Interrupt as interrupt:
                    if interrupt.cause == RELEASED:
                        return
                continue
            # Asked for before the desk is given back: else planned work would come between two steps of a case.
            before, held = held, calendar.desk.request(priority=self._priority(agent), preempt=False)
            if before is not None:
                _give_back(calendar, before)
            step: CaseStep | None = None
            released = False
            try:
                if not held.triggered:
                    self._wake()
                yield held
                yield stage.clock.at(START)
                while (available := calendar.next_minute(stage.now)) > stage.now:
                    self._wake()
                    yield stage.env.timeout(available - stage.now)
                    yield stage.clock.at(START)
                if self._waiting:
                    _, step = heapq.heappop(self._waiting)
                    yield from self._work(step, agent, calendar)
            except simpy.Interrupt as interrupt:
                released = interrupt.cause == RELEASED
                if step is not None:
                    step.left = max(0, step.left - calendar.stop(stage.now))
                    if step.at_work and step.left:
                        urgent = isinstance(interrupt.cause, simpy.resources.resource.Preempted)
                        self._tell("preempt" if urgent else "pause", step, agent)
            if step is not None:
                self._leave(step, agent, calendar)
            if released:
                _give_back(calendar, held)
                return

    def _priority(self, agent: str) -> Any:
        """As of planned work: rank, who asked first, and a name; SimPy compares whatever it is given."""
        (minute, _), _ = self._waiting[0]
        return (self.rank, minute, agent)

    def _work(self, step: CaseStep, agent: str, calendar: AgentCalendar) -> Generator[Event, Any, None]:
        """Work on a step until it is done, or the agent stays away; one who goes home earlier than others goes on the next morning."""
        stage = self._stage
        step.process, self.in_hand[agent] = stage.env.active_process, step
        calendar.take(step.id, step, stage.week.index)
        while step.left:
            self._tell("resume" if step.begun else "start", step, agent)
            calendar.begin(step.id, stage.now)
            yield stage.env.timeout(self._stop_at(calendar, step.left) - stage.now)
            step.left -= calendar.stop(stage.now)
            if step.left:
                self._tell("pause", step, agent)
                back = calendar.next_minute(stage.now)
                if back // self._day > (stage.now - 1) // self._day + 1:
                    return  # not the next morning: let a colleague go on with it
                yield stage.env.timeout(back - stage.now)
                yield stage.clock.at(START)

    def _stop_at(self, calendar: AgentCalendar, minutes: int) -> int:
        """The minute in which the agent is done, or goes home before others do, or for longer than a night."""
        start = self._stage.now
        finish = calendar.finish(start, minutes)
        for day in range(start // self._day, (finish - 1) // self._day):
            if calendar.quota < self._day or not calendar.present(day + 1):
                return day * self._day + calendar.quota
        return finish

    def _leave(self, step: CaseStep, agent: str, calendar: AgentCalendar) -> None:
        """The step is done, or waits again."""
        calendar.jobs.pop(step.id, None)
        del self.in_hand[agent]
        step.process = None
        if step.dropped:
            return
        if step.left:
            self._join(step)
        else:
            self._tell("finish", step, agent)
            self._finished(step)

    def _tell(self, kind: str, step: CaseStep, agent: str) -> None:
        step.at_work = kind in ("start", "resume")
        step.begun = step.begun or step.at_work
        self._stage.ledger.event(kind, actor=agent, subject=step.id, object=step.activity, case=step.case)


def _give_back(calendar: AgentCalendar, request: simpy.resources.resource.PriorityRequest) -> None:
    """Leave the desk, or its queue."""
    request.cancel()
    calendar.desk.release(request)
