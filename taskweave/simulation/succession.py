"""Who plans on what somebody planned who plans no weeks any more?  Entry point: `successor`.

Another of the same title; else whoever plans the weeks of most of those who worked in this one's; else the nearest head who plans weeks;
else the first who does.  Ties go to the population's order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.setting import Setting


def successor(owner: str, was: Setting, now: Setting, calendars: Mapping[str, AgentCalendar]) -> str | None:
    """The id of who takes over from `owner` between two organizations; None where nobody plans weeks."""
    planners = [agent for agent in now.delegation.planners("week") if calendars[agent].gone is None]
    if not planners:
        return None
    role = was.population.agent(owner).role
    if titled := [agent for agent in planners if now.population.agent(agent).role == role]:
        return min(titled, key=lambda agent: len(now.delegation.reports(agent)))
    here = {agent.id for agent in now.population.agents}
    units = Counter(now.delegation.unit_of(agent) for agent in was.delegation.executors(owner) if agent in here)
    if found := [agent for agent in planners if units[agent]]:
        return max(found, key=lambda agent: units[agent])
    above = [agent for agent in was.delegation.ancestors(owner) if agent in planners]
    return (above or planners)[0]
