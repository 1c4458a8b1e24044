"""Whom does a name in an incident mean?  By id, person's name, role or department, by an activity, or by words that roles match.

Entry point: `Who`.  It refuses to know what happens to them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from taskweave.org.organization import Organization, Role
from taskweave.org.population import Agent, Population
from taskweave.simulation.matching import terms

Kind = Literal["department", "role", "agent"]  # of a name by which people are meant
KINDS: tuple[Kind, ...] = get_args(Kind)
_ONE = {"department": "a department", "role": "a role", "agent": "an agent"}


class Who:
    """Agents by the names under which a person means them: id, person's name, role or department."""

    def __init__(self, org: Organization, population: Population) -> None:
        self.org, self.population = org, population
        self._named: dict[tuple[Kind, str], list[str]] = {}
        self._spelling: dict[tuple[Kind, str], str] = {}
        for name, department in org.departments.items():
            for agent in population:
                if agent.role == department.head:
                    self._call("department", name, agent.id)
        # Who has left a role that is still there is meant by its name, too: it may be that all have.
        for agent in (*population.agents, *(agent for agent in population.former if agent.role in org.roles)):
            self._call("agent", agent.id, agent.id)
            self._call("agent", agent.persona.name, agent.id)
            self._call("role", agent.role, agent.id)
            if agent.department:
                self._call("department", agent.department, agent.id)

    def _call(self, kind: Kind, name: str, agent: str) -> None:
        key = (kind, name.casefold())
        self._spelling.setdefault(key, name)
        self._named.setdefault(key, []).append(agent)

    def named(self, name: str, *kinds: Kind) -> tuple[str, ...]:
        """The ids of those whom a name of these kinds means, of any kind where none is given; none if nobody is called so."""
        found = (self._named.get((kind, name.casefold().strip()), ()) for kind in kinds or KINDS)
        return tuple(dict.fromkeys(agent for agents in found for agent in agents))

    def nearest(self, name: str, *kinds: Kind) -> str:
        """A hint for an error: the nearest name of these kinds as it is spelled, or the kind that the very name is of."""
        other = [kind for kind in KINDS if kinds and kind not in kinds and self.named(name, kind)]
        if other:
            return f"; it is the name of {_ONE[other[0]]}"
        spelled = {key[1]: spelling for key, spelling in self._spelling.items() if key[0] in (kinds or KINDS)}
        close = difflib.get_close_matches(name.casefold(), list(spelled), n=1, cutoff=0.5)
        return f"; did you mean {spelled[close[0]]!r}?" if close else ""

    # ------------------------------------------------------------ roles
    def doing(self, activity: str) -> tuple[str, ...]:
        """The titles of the roles that have this activity, in the order of the file."""
        wanted = activity.casefold().strip()
        return tuple(role.title for role in self.org.roles.values() if wanted in (one.casefold() for one in role.activities))

    def matching(self, words: Sequence[str]) -> tuple[str, ...]:
        """The titles of the roles whose title or department has one of the words; where there is none, whose work has one."""
        wanted = set(terms(" ".join(words)))
        roles = self.org.roles.values()
        by_name = [role.title for role in roles if wanted & set(terms(f"{role.title} {role.department or ''}"))]
        return tuple(by_name or [role.title for role in roles if wanted & _work(role)])

    def fittest(self, agents: Iterable[str], text: str) -> str | None:
        """The title whose name and work share most words with the text, of those of these agents who have time for tasks; the first of
        equals in the order of the file, None where nobody of them has time.
        """
        titles = {self.population.agent(agent).role for agent in agents if self.executes(self.population.agent(agent))}
        wanted = set(terms(text))
        among = [role for role in self.org.roles.values() if role.title in titles]
        if not among:
            return None
        return max(among, key=lambda role: len(wanted & (_work(role) | set(terms(role.title))))).title

    def plans(self, agent: Agent) -> bool:
        """Whether the agent has plans of its own: it leads somebody, stands at the top, or has no time for tasks."""
        return agent.head is None or agent.executes == 0 or bool(self.org.reports(agent.role))

    def deputies(self, agent: Agent) -> tuple[str, ...]:
        """The others of its title, who can take over what it leads."""
        return tuple(other.id for other in self.population if other.role == agent.role and other.id != agent.id)

    def executes(self, agent: Agent) -> bool:
        """Whether tasks can be given to the agent."""
        return agent.executes > 0


def _work(role: Role) -> set[str]:
    """The words that say what a role does."""
    return set(terms(" ".join([*role.activities, *role.responsibilities, *role.skills, *role.artifacts, *role.subjects])))
