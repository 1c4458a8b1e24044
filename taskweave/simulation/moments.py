"""When, within a piece of work, does somebody use a tool?  Entry point: `moments`: known when the work starts, and never before that.

The work's minutes are those that the agent's calendar has from now on: what interrupts them later moves the finish only.
"""

from __future__ import annotations

from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.stage import Stage
from taskweave.simulation.tool_use import MOST_CALLS


def moments(stage: Stage, calendar: AgentCalendar, minutes: int, site: str) -> tuple[str, ...]:
    """MOST_CALLS moments "YYYY-MM-DD HH:MM" in work of so many minutes that starts now, each later than the one before.

    The work has so many parts of equal length, and a moment is drawn from each by the site.  None where tools are off.
    """
    if stage.setting.tooling is None:
        return ()
    draw = stage.random("moments", site)
    worked = [int((part + draw.random()) * minutes / MOST_CALLS) for part in range(MOST_CALLS)]  # minutes done before each
    return tuple(stage.moment(calendar.finish(stage.now, done + 1) - 1).replace("T", " ") for done in worked)
