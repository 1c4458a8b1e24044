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
from taskweave.tools.hand import Person
from taskweave.tools.mcp_servers import McpServers
from taskweave.tools.outside.leaving import Leaving, leaving
from taskweave.tools.outside.servers import Servers
from taskweave.tools.shelf import by_role, kits_of, world_of
from taskweave.tools.tool import Tool
from taskweave.tools.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from taskweave.org.organization import Organization
    from taskweave.org.population import Population


class Tooling:
    """The tools of an organization's roles, and the world they act on."""

    def __init__(self, world: World, tools: Mapping[str, tuple[Tool, ...]], mcp: McpServers, servers: Servers | None = None) -> None:
        self.world, self.mcp, self._tools = world, mcp, tools
        self._reaching = Reaching(servers or Servers())
        self._leaving: list[Leaving] = []
        self._coming: dict[int, list[Person]] = {}  # week -> who joins then

    @classmethod
    def begin(
        cls, org: Organization, population: Population, folder: Path, mcp: Mapping[str, Json], servers: Servers | None = None
    ) -> Tooling | None:
        """That of a run, whose files go below `folder`; None where the organization's tools are off.

        `mcp` is what the run keeps of the MCP servers that its organization names.
        """
        if not org.tools:
            return None
        world = world_of(landing.people_of(population), domain=population.agents[0].persona.email.partition("@")[2], folder=folder)
        return cls(world, by_role(org, mcp), McpServers(org, mcp), servers)

    def close(self) -> None:
        """Let go of the world, and end the servers that were called."""
        self.mcp.close()
        self.world.close()

    def amended(self, org: Organization, population: Population, week: int) -> Tooling:
        """The tools of the same world as another organization gives them from a week on; whoever joins is known from then on."""
        self._coming[week] = landing.people_of(population)
        return Tooling(self.world, by_role(org, self.mcp.kept), self.mcp)

    def of(self, role: str, failing: frozenset[str] = frozenset()) -> tuple[Tool, ...]:
        """What an agent of this role may use, without what is `failing`: names of tools or of kits."""
        return tuple(tool for tool in self._tools[role] if not failing.intersection((tool.name, *kits_of(tool))))

    def land(self, week: int, rows: Sequence[Row]) -> list[tuple[str, str, str]]:
        """Perform what the calls among a week's rows change; returns (call, agent, what stood against it) for each conflict."""
        landings = landing.land(self.world, week, rows)
        self._leaving = leaving(self.world, landings, self._reaching.servers)
        self.world.meet(self._coming.get(week + 1, ()))
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
