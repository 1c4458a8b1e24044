"""How do the rows of a week become true in the world?  Entry points: `land`, `effect_of`, `person_of`.

Both a run that closes a week and whoever rebuilds a run's world from its tables do it here, so that they cannot differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taskweave.org.population import Agent
from taskweave.pool.tables import Row
from taskweave.records import Json
from taskweave.tools.hand import Person
from taskweave.tools.world import Effect, Landing, World


def land(world: World, week: int, rows: Sequence[Row]) -> list[Landing]:
    """Perform what the calls among a week's rows change, and tell the world what the organization knows of itself."""
    return world.land(
        week,
        [effect_of(row) for table, row in rows if table == "tool_calls" and row["outcome"]["writes"]],
        readings=[(row["week"], row["kpi"], row["value"]) for table, row in rows if table == "readings"],
        deliverables=[
            (row["id"], row["title"], row["artifact"], world.name_of(row["agent"]), row["finished"])
            for table, row in rows
            if table == "results" and row["subtask"] is None
        ],
    )


def effect_of(row: Mapping[str, Json]) -> Effect:
    """The effect of a call, as its row of tool_calls has it."""
    outcome = row["outcome"]
    return Effect(
        key=row["id"], tool=row["tool"], arguments=row["arguments"], actor=outcome["by"], moment=outcome["at"], seen=outcome["seen"]
    )


def person_of(agent: Agent) -> Person:
    """An agent as others address it."""
    return Person(id=agent.id, name=agent.persona.name, role=agent.role, department=agent.department or "", email=agent.persona.email)


def person_in(row: Mapping[str, Json]) -> Person:
    """The same, of a row of `agents`."""
    return Person(id=row["id"], name=row["name"], role=row["role"], department=row["department"] or "", email=row["persona"]["email"])
