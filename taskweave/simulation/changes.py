"""What have incidents changed about the organization so far?  Who was hired, what goals are due when, and which come first.

Entry point: `Changes.applied`.  A segment's setting stays as it is: what is launched sees it with the changes.  It refuses to know why.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import date

from taskweave.org.delegation import Delegation
from taskweave.org.population import Agent, Population
from taskweave.records import Priority
from taskweave.simulation.setting import Setting


class Changes:
    """The changes of a running year, in the order in which they came."""

    def __init__(self) -> None:
        self.priorities: dict[str, Priority] = {}
        self._failing: frozenset[str] = frozenset()
        self._hired: list[Agent] = []
        self._successors: dict[str, str] = {}
        self._due: dict[str, date] = {}
        self._made: dict[int, tuple[Setting, Setting]] = {}  # by identity of the segment's; kept beside it, so that it stays alive

    def hire(self, agent: Agent) -> None:
        """Somebody works here from now on."""
        self._hired.append(agent)
        self._made.clear()

    def succeed(self, head: str, successor: str) -> None:
        """A head has left; whoever reported to it reports to another of its title."""
        self._successors = {name: successor if after == head else after for name, after in self._successors.items()} | {head: successor}
        self._made.clear()

    def move(self, goal: str, by: date) -> None:
        """A goal is due on this day."""
        self._due[goal] = by
        self._made.clear()

    def rank(self, goal: str, to: Priority) -> None:
        """Tasks of a goal have this priority."""
        self.priorities[goal] = to
        self._made.clear()

    def fail(self, tools: frozenset[str]) -> None:
        """These tools do not work, all others do."""
        if tools != self._failing:
            self._failing = tools
            self._made.clear()

    def settle(self, population: Population, goals: Collection[str]) -> None:
        """The organization was amended: whoever was hired before stands in its `population`, and `goals` are due when it says."""
        known = {agent.id for agent in (*population.agents, *population.former)}
        self._hired = [agent for agent in self._hired if agent.id not in known]
        self._due = {goal: by for goal, by in self._due.items() if goal not in goals}
        self._made.clear()

    def applied(self, setting: Setting) -> Setting:
        """The setting with all changes; the very same where there are none."""
        if not (self._hired or self._successors or self._due or self.priorities or self._failing):
            return setting
        if id(setting) not in self._made:
            self._made[id(setting)] = (setting, self._with(setting))
        return self._made[id(setting)][1]

    def _with(self, setting: Setting) -> Setting:
        goals = {name: goal.due_on(self._due[name]) for name, goal in setting.org.goals.items() if name in self._due}
        org = setting.org.with_goals(goals) if goals else setting.org
        hired = [agent for agent in self._hired if agent.role in org.roles]
        lost = tuple(agent for agent in self._hired if agent.role not in org.roles)
        population = Population(setting.population.agents, setting.population.former + lost) if lost else setting.population
        for agent in hired:
            role, heads = org.roles[agent.role], [one.id for one in population.agents if one.role == org.roles[agent.role].reports_to]
            population = population.joined_by([agent.placed(role, agent.head if agent.head in heads else population.head_for(role))])
        if self._successors:
            population = population.led_by(self._successors)
        return replace(
            setting,
            org=org,
            population=population,
            delegation=(Delegation(org, population, gone=self._successors) if hired or self._successors else setting.delegation),
            priorities={goal: to for goal, to in self.priorities.items() if goal in org.goals},
            failing=self._failing,
            _cache={},
        )
