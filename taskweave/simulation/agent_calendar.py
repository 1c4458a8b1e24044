"""When can this agent work, and on what?  One calendar an agent: capacity 1, priorities, urgent work pre-empts.

Entry point: `AgentCalendar`.  A day offers `quota` working minutes (a part-time agent's, or a head's share for own work, is shorter);
days away offer none.  It refuses to know what the work is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Protocol

import simpy

from taskweave.org.calendar import WorkCalendar
from taskweave.org.population import Agent

NEVER = 1 << 62  # a minute that no year reaches


class Job(Protocol):
    """Work assigned to an agent: `left` minutes, done by `process`."""

    left: int
    process: simpy.Process | None


class AgentCalendar:
    """The working time of one agent, in integer working minutes of the organization's calendar.

    `desk` is the SimPy resource that the agent's work queues for, `jobs` is what is assigned to it and not finished, by id, and `worked`
    the minutes spent in each week (by its index).
    """

    def __init__(self, agent: Agent, env: simpy.Environment, calendar: WorkCalendar) -> None:
        self.agent = agent
        self.desk = simpy.PreemptiveResource(env, capacity=1)
        self.jobs: dict[str, Job] = {}
        self.worked: Counter[int] = Counter()
        self._given: Counter[int] = Counter()
        self._given_so_far = 0
        self._began: int | None = None
        self._in_hand = ""
        self._calendar = calendar
        self._day = calendar.day_minutes
        self.quota = self._quota(agent)
        self._credit = 0  # minutes of the job in hand that were worked before the agent's days became others
        self._away: set[int] = set()
        self._off = self._days_off(agent)  # as the organization file has it
        self.gone: int | None = None  # the first working day on which the agent works here no more

    def _days_off(self, agent: Agent) -> set[int]:
        spans = ((self._calendar.day_of(first), self._calendar.day_of(last + timedelta(days=1))) for first, last in agent.away)
        return {day for first, end in spans for day in range(first, end)}

    def become(self, agent: Agent, now: int) -> bool:
        """The agent's days are others from this minute on, the first of a day; whether they are.  Work in hand is to be interrupted."""
        day, quota = now // self._day, self._quota(agent)
        off = {one for one in self._off if one < day} | {one for one in self._days_off(agent) if one >= day}
        self.agent = agent
        if (quota, off) == (self.quota, self._off):
            return False
        if self._began is not None:
            self._credit += self._settle(now)
            self._began = now
        self.quota, self._off = quota, off
        return True

    def _quota(self, agent: Agent) -> int:
        return max(1, round(self._day * agent.fte * agent.executes)) if agent.executes > 0 else 0

    def be_away(self, days: Iterable[int]) -> None:
        """Take these working days (by index) off."""
        self._away.update(days)

    def leave(self, day: int) -> None:
        """The agent works here no more from this working day on."""
        self.gone = day

    def present(self, day: int) -> bool:
        """Whether the agent works on this working day."""
        return self.quota > 0 and day not in self._away and day not in self._off and (self.gone is None or day < self.gone)

    def minutes(self, first_day: int, day_count: int) -> int:
        """Working minutes that the agent offers in these days."""
        return self.quota * sum(self.present(day) for day in range(first_day, first_day + day_count))

    def next_minute(self, now: int) -> int:
        """The first minute at or after `now` in which the agent can work; NEVER for one who left before it could again, or has no time."""
        if not self.quota:
            return NEVER
        day, minute = divmod(now, self._day)
        if self.present(day) and minute < self.quota:
            return now
        day += 1
        while not self.present(day):
            if self.gone is not None and day >= self.gone:
                return NEVER
            day += 1
        return day * self._day

    def finish(self, start: int, minutes: int) -> int:
        """The minute in which work of `minutes`, begun at `start` and not interrupted, is done."""
        now = start
        while True:
            now = self.next_minute(now)
            left_today = self.quota - now % self._day
            if minutes <= left_today:
                return now + minutes
            minutes -= left_today
            now = (now // self._day + 1) * self._day

    def work(self, start: int, end: int) -> int:
        """Minutes that the agent works between `start` and `end`, by the calendar alone."""
        total = 0
        for day in range(start // self._day, -(-end // self._day)):
            if self.present(day):
                first, last = max(start, day * self._day), min(end, day * self._day + self.quota)
                total += max(0, last - first)
        return total

    def load(self, now: int) -> int:
        """Minutes of work assigned and not done."""
        return sum(job.left - self.in_hand(name, now) for name, job in self.jobs.items())

    def in_hand(self, name: str, now: int) -> int:
        """Minutes worked on this job since it was begun or taken up again: 0 where the agent is not at it."""
        return self._credit + self.work(self._began, now) if self._began is not None and name == self._in_hand else 0

    def interrupt(self, names: Iterable[str], cause: str) -> None:
        """Tell those who do these jobs, by id, that something has come up."""
        for name in names:
            process = self.jobs[name].process
            if process is not None and process.is_alive:
                process.interrupt(cause)

    def at_work(self, name: str) -> bool:
        """Whether the agent has this job in hand."""
        return self._began is not None and name == self._in_hand

    def take(self, name: str, job: Job, week: int) -> None:
        """Work is assigned to the agent in this week."""
        self.jobs[name] = job
        self._given[week] += job.left
        self._given_so_far += job.left

    def given(self, week: int) -> tuple[int, int]:
        """Minutes of work that the agent was given in this week, and in all weeks."""
        return self._given[week], self._given_so_far

    def begin(self, name: str, now: int) -> None:
        """Work on a job starts, or goes on after an interruption."""
        self._in_hand, self._began = name, now

    def stop(self, now: int) -> int:
        """Work ends or is interrupted; returns the minutes since it began, and counts them towards the weeks they fell into."""
        if self._began is None:
            return 0
        minutes = self._credit + self._settle(now)
        self._began, self._credit = None, 0
        return minutes

    def _settle(self, now: int) -> int:
        """The minutes since work began, counted towards the weeks they fell into."""
        assert self._began is not None
        began = self._began
        for day in range(began // self._day, -(-now // self._day)):
            minutes = self.work(max(began, day * self._day), min(now, (day + 1) * self._day))
            if minutes:
                self.worked[self._calendar.week_of_day(day).index] += minutes
        return self.work(began, now)

    def spent(self, week: int, since: int, now: int) -> int:
        """Minutes worked in the week of this index, which began at `since`, work in hand included."""
        in_hand = self.work(max(self._began, since), now) if self._began is not None else 0
        return self.worked[week] + in_hand
