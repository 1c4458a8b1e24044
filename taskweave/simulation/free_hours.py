"""How much may an owner plan?  The hours that its agents are there for, less what incidents and open work take, as composite tasks.

Entry points: `FreeHours.planned` (a week), `FreeHours.urgent` (the rest of one, after a grave incident).  It refuses to open them.
"""

from __future__ import annotations

from taskweave.org.calendar import Week
from taskweave.simulation.capacity import CROSS_SHARE, Capacity, Slot
from taskweave.simulation.demands import Demands, added
from taskweave.simulation.incidents import Incidents, InForce
from taskweave.simulation.recurring import Recurring
from taskweave.simulation.stage import Stage
from taskweave.simulation.tasks import Tasks
from taskweave.simulation.units import Unit


class FreeHours:
    """The free hours of each owner's agents, and the composite tasks that they make."""

    def __init__(self, stage: Stage, tasks: Tasks, incidents: Incidents, recurring: Recurring, demands: Demands) -> None:
        self._stage, self._tasks, self._incidents = stage, tasks, incidents
        self._recurring, self._demands = recurring, demands
        self._capacity = Capacity(stage.setting.org, stage.setting.seed)

    def amend(self) -> None:
        """The organization is another one from now on."""
        self._capacity.amend(self._stage.segment.org)

    def planned(self, unit: Unit, week: Week) -> list[Slot]:
        """The composite tasks that the unit's owner plans for the week, as far as a budget allows."""
        owner, incidents = unit.owner, self._incidents
        demanded = added(self._tasks.carried_hours(owner), self._demands.hours(owner))
        taken = self._recurring.beside(demanded, self._present(owner, week), week)
        slots = self._capacity.slots(owner, unit.id, self._present(owner, week, cut=True), taken)
        team = (owner, *self._stage.setting.delegation.executors(owner))
        allowed = incidents.affordable(team, week.first_day)
        if allowed is not None:
            wanted = len(slots)
            while slots and sum(slot.hours for slot in slots) > allowed:
                slots.pop()
            incidents.spend(team, week.first_day, sum(slot.hours for slot in slots))
            if len(slots) < wanted:
                self._stage.ledger.event("budget", actor=owner, subject=unit.id, object=f"{wanted - len(slots)} tasks not planned")
        return slots

    def urgent(self, unit: Unit, heard: InForce) -> list[Slot]:
        """One urgent task, or two when more than half of the unit's hours are free, for the affected roles first."""
        stage, setting = self._stage, self._stage.setting
        days = stage.week.first_day + stage.week.day_count - stage.day
        here = [a for a in setting.delegation.executors(unit.owner) if stage.calendars[a].minutes(stage.day, days) > 0]
        if not here:
            return []
        affected = [agent for agent in here if agent in heard.agents] or here
        free = sorted(affected, key=lambda agent: (stage.calendars[agent].load(stage.now), agent))
        roles = list(dict.fromkeys(setting.population.agent(agent).role for agent in free))[:3]
        total = self._left(unit.owner)
        count = 2 if total > 0 and self.unasked(unit.owner) > total / 2 else 1
        return self._capacity.deal(f"{unit.id}:respond.{unit.turn - 1}", roles if len(roles) >= count else roles * count, count)

    def unasked(self, owner: str) -> float:
        """Hours of the rest of the week that nobody has asked for yet."""
        return max(0.0, self._left(owner) - sum(self._tasks.carried_hours(owner).values()))

    def _left(self, owner: str) -> float:
        """Those of the owner's own agents from today to the week's end, at the organization's utilisation, less recurring work."""
        stage = self._stage
        days = stage.week.first_day + stage.week.day_count - stage.day
        agents = stage.setting.delegation.executors(owner)
        present = sum(stage.calendars[agent].minutes(stage.day, days) * self._incidents.factor(agent, stage.day) for agent in agents) / 60
        recurring = sum(self._recurring.load(self._present(owner, stage.week), stage.week).values())
        return max(0.0, present * stage.setting.org.workload.utilisation - recurring * days / stage.week.day_count)

    def _present(self, owner: str, week: Week, *, cut: bool = False) -> dict[str, float]:
        """Working hours by role that this owner may plan with; an agent reached by cross links keeps most of its time for its own unit.

        `cut`: less what incidents take of them.  Recurring work arises whether or not they do.
        """
        setting = self._stage.setting
        hours: dict[str, float] = {}
        for agent in setting.delegation.executors(owner):
            self._add(hours, agent, max(0.0, 1 - CROSS_SHARE * setting.delegation.links_to(agent)), week, cut)
        for agent in setting.delegation.cross(owner):
            self._add(hours, agent, CROSS_SHARE, week, cut)
        return hours

    def _add(self, hours: dict[str, float], agent: str, share: float, week: Week, cut: bool) -> None:
        role = self._stage.setting.population.agent(agent).role
        factor = self._incidents.factor(agent, week.first_day) if cut else 1.0
        offered = self._stage.calendars[agent].minutes(week.first_day, week.day_count) * factor
        hours[role] = hours.get(role, 0.0) + share * offered / 60
