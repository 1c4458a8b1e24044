"""Which tools has a role, and what do they act on?

Entry points: `Tooling.begin`, `Tooling.of` (what a role has), `Tooling.land` (a week's effects become true).  How somebody comes to use
one is in `tool_use.py`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from taskweave.errors import ToolRefused
from taskweave.pool.tables import Row
from taskweave.records import Json, canonical
from taskweave.simulation.reaching import Reaching, Told
from taskweave.tools import landing
from taskweave.tools.mcp_servers import McpServers
from taskweave.tools.outside.leaving import Leaving, leaving
from taskweave.tools.outside.servers import Servers
from taskweave.tools.shelf import by_role, fails_with, world_of
from taskweave.tools.tool import Tool
from taskweave.tools.world import World

if TYPE_CHECKING:
    from datetime import date
    from pathlib import Path

    from taskweave.org.organization import Organization
    from taskweave.org.population import Agent, Population


class Tooling:
    """The tools of an organization's roles, and the world they act on."""

    def __init__(self, world: World, tools: Mapping[str, tuple[Tool, ...]], mcp: McpServers, servers: Servers | None = None) -> None:
        self.world, self.mcp, self._tools = world, mcp, tools
        self._reaching = Reaching(servers or Servers())
        self._leaving: list[Leaving] = []

    @classmethod
    def begin(
        cls, org: Organization, population: Population, folder: Path, mcp: Mapping[str, Json], servers: Servers | None = None
    ) -> Tooling | None:
        """That of a run, whose files go below `folder`; None where the organization's tools are off.

        `mcp` is what the run keeps of the MCP servers that its organization names.
        """
        if not org.tools:
            return None
        people = [landing.person_of(agent) for agent in population.agents]
        world = world_of(people, domain=people[0].email.partition("@")[2], folder=folder)
        return cls(world, by_role(org, mcp), McpServers(org, mcp), servers)

    def close(self) -> None:
        """Let go of the world, and end the servers that were called."""
        self.mcp.close()
        self.world.close()

    def amended(self, org: Organization) -> Tooling:
        """The tools of the same world as another organization gives them."""
        return Tooling(self.world, by_role(org, self.mcp.kept), self.mcp)

    def of(self, role: str, failing: frozenset[str] = frozenset()) -> tuple[Tool, ...]:
        """What an agent of this role may use, without what is `failing`: names of tools or of kits."""
        return tuple(tool for tool in self._tools[role] if failing.isdisjoint(fails_with(tool)))

    def join(self, agent: Agent, week: int, since: date) -> None:
        """Somebody works here from this day of this week on, or with another role."""
        self.world.join(landing.person_of(agent), week, since)

    def leave(self, agent: str, week: int, since: date) -> None:
        """Somebody has left: uses no tool and is found by none from this day of this week on."""
        self.world.leave(agent, week, since)

    def land(self, week: int, rows: Sequence[Row]) -> list[tuple[str, str, str]]:
        """Perform what the calls among a week's rows change; returns (call, agent, what stood against it) for each conflict."""
        landings = landing.land(self.world, week, rows)
        self._leaving = leaving(self.world, landings, self._reaching.servers)
        return [
            (one.effect.key, one.effect.actor, conflict if one.landed else f"nothing came of it: {conflict}")
            for one in landings
            for conflict in one.conflicts
        ]

    async def deliver(self) -> list[Told]:
        """Send what of the landed week is meant for the outside; says what came of each."""
        return await self._reaching.deliver(self._leaving)


def checked(tool: Tool, arguments: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments of a call as JSON values, as a journal gives them back; raises ValueError for what the tool does not take."""
    try:
        value: dict[str, Json] = json.loads(canonical(tool.checked(arguments)))
        return value
    except ToolRefused as refused:
        raise ValueError(str(refused)) from None
