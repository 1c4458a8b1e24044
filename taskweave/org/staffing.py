"""Who works here once an organization is amended?  Entry point: `staffed`.

Whoever stays keeps id and persona.  A person whom `people` names has the role that stands there; one whom it names no more has left.
A role whose count changes has that many people from then on, and those of the highest ids leave; of any other role everybody stays,
those who were hired as well.  Who joins gets an id that nobody has had.  Pure; refuses to know weeks and work.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from taskweave.org.organization import Organization, Role, slug
from taskweave.org.population import Agent, Population


def staffed(population: Population, before: Organization, after: Organization, seed: int, taken: Collection[str] = ()) -> Population:
    """`population`, who work here under `before`, as those who do under `after`: in their order, then those who join, role by role.

    `taken` are ids that others have had.  The same two organizations give the same population.
    """
    filled = [_filled(population, before, after, role) for role in after.roles.values()]
    roles = {agent: after.roles[seats.title] for seats in filled for agent in seats.staying}
    staying = [_told(agent, after) for agent in population.agents if agent.id in roles]
    gone = tuple(agent for agent in population.agents if agent.id not in roles)
    # First who keeps a head keeps it, then the others are dealt: else who is asked first would decide.
    titles = {agent.id: roles[agent.id].title for agent in staying}
    kept = [agent.head if titles.get(agent.head or "") == roles[agent.id].reports_to else None for agent in staying]
    now = Population(tuple(agent.placed(roles[agent.id], head) for agent, head in zip(staying, kept, strict=True)), gone)
    for agent in now.agents:
        if agent.head is None and (role := roles[agent.id]).reports_to is not None:
            now = _with(now, agent.placed(role, now.head_for(role)))
    had = {*taken, *(agent.id for agent in population.agents), *(agent.id for agent in population.former)}
    for seats in filled:
        for name in seats.joining:
            role = after.roles[seats.title]
            there = sum(agent.role == role.title for agent in now.agents)
            id = _free_id(role, there, had)
            had.add(id)
            now = now.joined_by([now.newcomer(after, role.title, seed, id=id, name=name)])
    return Population(_headed(now, after), population.former + gone)


@dataclass(frozen=True, slots=True)
class _Seats:
    """Of one role: the ids of those who have it from now on, and the names of those who join (None: one who is made up)."""

    title: str
    staying: Sequence[str]
    joining: Sequence[str | None]


def _filled(population: Population, before: Organization, after: Organization, role: Role) -> _Seats:
    by_name = {agent.persona.name: agent.id for agent in population.agents}
    named = {by_name[name]: person.role for name, person in after.people.items() if name in by_name}
    let_go = {by_name[name] for name in before.people if name not in after.people and name in by_name}
    incumbents = [agent.id for agent in population.agents if agent.role == role.title]
    here = [agent.id for agent in population.agents if named.get(agent.id) == role.title]
    new = [name for name, person in after.people.items() if person.role == role.title and name not in by_name]
    others = [agent for agent in incumbents if agent not in named and agent not in let_go]
    places = role.count
    if role.title in before.roles and before.roles[role.title].count == role.count:
        places = max(len(incumbents), min(role.count, len(incumbents) + len(new)))
    if not places and after.reports(role.title):
        places = role.count  # whoever leads somebody has to be there
    room = max(0, places - len(here) - len(new))
    return _Seats(role.title, [*here, *others[:room]], [*new, *[None] * (room - len(others[:room]))])


def _told(agent: Agent, after: Organization) -> Agent:
    """The agent with what the file says of the person."""
    person = after.people.get(agent.persona.name)
    if person is None:
        return agent
    persona = replace(
        agent.persona, years=agent.persona.years if person.years is None else person.years, knows=person.knows or agent.persona.knows
    )
    return replace(agent, persona=persona, away=person.away)


def _headed(population: Population, org: Organization) -> tuple[Agent, ...]:
    """Those whose title above was empty when they were placed, under who has joined it since."""
    now = population
    for agent in population.agents:
        if agent.head is None and (role := org.roles[agent.role]).reports_to is not None:
            now = _with(now, agent.placed(role, now.head_for(role)))
    return now.agents


def _with(population: Population, agent: Agent) -> Population:
    return Population(tuple(agent if one.id == agent.id else one for one in population.agents), population.former)


def _free_id(role: Role, there: int, had: Collection[str]) -> str:
    """The slug of the title, numbered where there are several or somebody else has it."""
    base, number = slug(role.title), there + 1
    if not there and role.count == 1 and base not in had:
        return base
    while f"{base}-{number}" in had:
        number += 1
    return f"{base}-{number}"
