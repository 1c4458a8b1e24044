"""Who may assign work to whom, and who plans which level?  Entry points: `delegation_graph` (ℍ, Sec. 3.1) and `Delegation`.

ℍ has `tier` edges along the reporting lines, `cross` edges from the links of the organization file, and a `self` edge for an
agent who plans and also has time of its own for tasks.  Refuses to know periods' dates, hours or tasks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from taskweave.org.organization import CrossLink, Organization
from taskweave.org.population import Agent, Population
from taskweave.records import LEVELS, Level

if TYPE_CHECKING:
    import networkx as nx

EdgeKind = Literal["tier", "cross", "self"]
WEEK: Level = "week"


def delegation_graph(org: Organization, population: Population) -> nx.DiGraph[str]:
    """ℍ: nodes are agent ids, edges have `kind` "tier" | "cross" | "self"."""
    return Delegation(org, population).graph


class Delegation:
    """The delegation graph and what follows from it: reporting lines between agents, and who owns which level's units."""

    def __init__(self, org: Organization, population: Population, *, gone: Collection[str] = ()) -> None:
        """`gone` are heads who have left: they plan nothing and nobody reports to them."""
        self._org = org
        self._agents = {agent.id: agent for agent in population}
        former = [agent.id for agent in population.former]
        titled: defaultdict[str, list[str]] = defaultdict(list)
        for agent in population:
            titled[agent.role].append(agent.id)
        self._titled = {title: tuple(agents) for title, agents in titled.items()}
        below: defaultdict[str | None, list[str]] = defaultdict(list)
        for agent in population:
            if agent.id not in gone:
                below[agent.head].append(agent.id)
        self._reports: dict[str, tuple[str, ...]] = {agent.id: tuple(below[agent.id]) for agent in population}
        self._reports |= dict.fromkeys(former, ())  # of whom units and tasks may still speak
        self._levels: dict[str, tuple[Level, ...]] = {agent.id: () if agent.id in gone else self._owned(agent) for agent in population}
        self._levels |= dict.fromkeys(former, ())
        self.edges: dict[tuple[str, str], EdgeKind] = self._edges(gone)
        crossing = [edge for edge, kind in self.edges.items() if kind == "cross"]
        self._links = Counter(target for _, target in crossing)
        # Asked for each task: in an organization of a thousand these may not be looked for among all of them each time.
        self._executors = {agent: self._executing(agent) for agent in self._agents} | dict.fromkeys(former, ())
        place = {agent: number for number, agent in enumerate(self._agents)}
        reached: defaultdict[str, list[str]] = defaultdict(list)
        for source, target in sorted(crossing, key=lambda edge: place[edge[1]]):
            if self._agents[target].executes > 0:
                reached[source].append(target)
        self._cross = {agent: tuple(targets) for agent, targets in reached.items()}

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """ℍ for drawing and for whoever analyses it: a running year needs only its edges."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for agent in self._agents.values():
            graph.add_node(agent.id, name=agent.persona.name, role=agent.role, tier=agent.tier, department=agent.department or "")
        for (source, target), kind in self.edges.items():
            graph.add_edge(source, target, kind=kind)
        return graph

    # ------------------------------------------------------------ agents
    def reports(self, agent: str) -> tuple[str, ...]:
        """Those who report to this agent, in the population's order."""
        return self._reports[agent]

    def ancestors(self, agent: str) -> tuple[str, ...]:
        """The heads of this agent, the nearest first."""
        found: list[str] = []
        while (head := self._agents[found[-1] if found else agent].head) is not None:
            found.append(head)
        return tuple(found)

    def descendants(self, agent: str) -> tuple[str, ...]:
        """Everybody below this agent, each followed by those below it."""
        return tuple(name for report in self._reports[agent] for name in (report, *self.descendants(report)))

    def executors(self, agent: str) -> tuple[str, ...]:
        """Those to whom the owner of a week gives work of its own unit: reports who do not plan, and itself by a self edge."""
        return self._executors[agent]

    def cross(self, agent: str) -> tuple[str, ...]:
        """Those who have time for tasks and whom this agent reaches by a cross edge."""
        return self._cross.get(agent, ())

    def links_to(self, agent: str) -> int:
        """How many owners reach this agent by a cross edge."""
        return self._links[agent]

    def unit_of(self, agent: str) -> str:
        """The owner of the weeks in which the agent works: itself where it has such, else its head."""
        return self._unit_of(self._agents[agent])

    def linked(self, link: CrossLink) -> tuple[str, ...]:
        """The owners of the units that a link lets give work to its target: those in which its source works, or which it leads."""
        return tuple(dict.fromkeys(self._unit_of(self._agents[source]) for source in self._titled.get(link.source, ())))

    # ------------------------------------------------------------ planning
    def levels(self, agent: str) -> tuple[Level, ...]:
        """The levels of which this agent owns units, the coarsest first; none for one who only executes."""
        return self._levels[agent]

    def planners(self, level: Level) -> tuple[str, ...]:
        """The agents that own a unit of this level, in the population's order."""
        return tuple(agent for agent, levels in self._levels.items() if level in levels)

    def parent(self, level: Level, agent: str) -> tuple[Level, str] | None:
        """The unit that an agent's unit of this level is planned under; None for the root's year."""
        levels = self._levels[agent]
        if level not in levels:
            raise ValueError(f"{agent!r} owns no {level} units; it owns {list(levels)}")
        place = levels.index(level)
        if place > 0:
            return levels[place - 1], agent
        head = self._agents[agent].head
        if head is None:
            return None
        above = self._levels[head]
        # A relay nests in the same level of its head: what it passes down is the head's finest plan.
        coarser = [found for found in above if LEVELS.index(found) < LEVELS.index(level) + self._relays(agent)]
        return (coarser or list(above))[-1], head

    def children(self, level: Level, agent: str) -> tuple[tuple[Level, str], ...]:
        """The units planned under this one: the agent's own finer unit first, then those of its reports."""
        candidates = [agent, *self._reports[agent]]
        return tuple((found, name) for name in candidates for found in self._levels[name] if self.parent(found, name) == (level, agent))

    # ------------------------------------------------------------ the rules
    def _plans(self, agent: Agent) -> bool:
        """Heads plan, officers without reports and without time for tasks plan, and the root plans even when alone."""
        return bool(self._reports[agent.id]) or agent.executes == 0 or agent.head is None

    def _executes(self, agent_id: str) -> bool:
        """Whether work comes to this agent from its head: it has time for tasks and no unit of its own."""
        agent = self._agents[agent_id]
        return agent.executes > 0 and not self._plans(agent)

    def _executing(self, agent: str) -> tuple[str, ...]:
        own = (agent,) if (agent, agent) in self.edges else ()
        return own + tuple(report for report in self._reports[agent] if self._executes(report))

    def _needs_weeks(self, agent: Agent) -> bool:
        return agent.executes > 0 or any(map(self._executes, self._reports[agent.id]))

    def _relays(self, agent_id: str) -> bool:
        """Whether a head stands between the tiers of the cadence, and so passes down what comes from above at the same level."""
        tiers = self._org.cadence
        tier = self._agents[agent_id].tier
        return bool(self._reports[agent_id]) and tier not in tiers.values() and tier < tiers[WEEK]

    def _owned(self, agent: Agent) -> tuple[Level, ...]:
        """The levels an agent owns: those of its tier; down to the week where somebody waits for tasks."""
        if not self._plans(agent):
            return ()
        cadence = self._org.cadence
        owned = {level for level in LEVELS if cadence[level] == agent.tier}
        if not owned:
            # No level is meant for this tier: a head passes on the finest from above, an officer plans its own weeks.
            owned = {[level for level in LEVELS if cadence[level] < agent.tier][-1] if self._reports[agent.id] else WEEK}
        if self._needs_weeks(agent):
            owned |= {level for level in LEVELS if cadence[level] > agent.tier} | {WEEK}
        return tuple(level for level in LEVELS if level in owned)

    def _edges(self, gone: Collection[str]) -> dict[tuple[str, str], EdgeKind]:
        edges: dict[tuple[str, str], EdgeKind] = {}
        for agent in self._agents.values():
            if agent.id in gone:
                continue
            if agent.head is not None:
                edges[agent.head, agent.id] = "tier"
            if agent.executes > 0 and self._plans(agent):
                edges[agent.id, agent.id] = "self"
        for link in self._org.cross_links:
            for unit in self.linked(link):
                for target in self._titled.get(link.target, ()):
                    if unit != target:
                        edges.setdefault((unit, target), "cross")
        return edges

    def _unit_of(self, agent: Agent) -> str:
        """Whose week an agent works in: its own, else its head's."""
        return agent.id if WEEK in self._levels[agent.id] or agent.head is None else agent.head
