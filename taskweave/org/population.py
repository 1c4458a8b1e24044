"""Who works here?  Entry point: `Population.sample(org, seed)`, 𝒜 of Sec. 3.1.

Each agent's persona is drawn under a key of its own (seed and agent id), so one agent more changes no other's.  A run keeps its
population as JSON and resumes from that, so another version of faker changes no run.  Refuses to know who may assign to whom.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import yaml

from taskweave.org.organization import Organization, Person, Role, ascii_slug, slug
from taskweave.records import Json

if TYPE_CHECKING:
    from faker import Faker

DRAWS_FOR_A_NAME = 50
YEARS_BY_DEPTH = ((15, 30), (8, 22), (1, 16))  # root, heads, others
SUBJECTS_KNOWN = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Persona:
    """φ: who an agent is; `knows` are the subjects it knows best."""

    name: str
    email: str
    education: str
    years: int
    background: str
    style: str
    knows: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Agent:
    """a = (φ, ρ).  `role` is a title, `head` an agent id, `away` spans with both ends included."""

    id: str
    role: str
    tier: int
    department: str | None
    head: str | None
    fte: float
    executes: float
    away: tuple[tuple[date, date], ...]
    persona: Persona

    def placed(self, role: Role, head: str | None) -> Agent:
        """The same person in a role as it is now, under this head."""
        return replace(
            self,
            role=role.title,
            tier=role.tier,
            department=role.department,
            head=head,
            fte=role.fte,
            executes=role.executes,
        )


class Population:
    """𝒜: the agents in a fixed order: that of the roles in the file, then by number; who joined later comes last.

    `former` are those who worked here before the organization was amended: `agent` knows them, nothing else does.
    """

    def __init__(self, agents: tuple[Agent, ...], former: tuple[Agent, ...] = ()) -> None:
        self.agents, self.former = agents, former
        self._by_id = {agent.id: agent for agent in (*former, *agents)}

    @classmethod
    def sample(cls, org: Organization, seed: int) -> Population:
        """Draw every agent's persona; the same organization and seed give the same population."""
        boxes = {_mailbox(name) for name in org.people}
        drawn: list[Agent] = []
        for role in org.roles.values():
            named = [(name, person) for name, person in org.people.items() if person.role == role.title]
            heads = org.agent_ids(role.reports_to) if role.reports_to else ()
            for number, agent_id in enumerate(org.agent_ids(role.title)):
                name, person = named[number] if number < len(named) else (None, None)
                persona = _persona(org, role, agent_id, seed, name, person, boxes)
                boxes.add(_mailbox(persona.name))
                drawn.append(
                    Agent(
                        id=agent_id,
                        role=role.title,
                        tier=role.tier,
                        department=role.department,
                        # Dealt round-robin, so that the reports of several heads of one role are as even as can be.
                        head=heads[number % len(heads)] if heads else None,
                        fte=role.fte,
                        executes=role.executes,
                        away=person.away if person else (),
                        persona=persona,
                    )
                )
        return cls(tuple(drawn))

    def joined_by(self, agents: Sequence[Agent]) -> Population:
        """The same and these, who come last."""
        return Population((*self.agents, *agents), self.former)

    def following(self, earlier: Population) -> Population:
        """The same after another one: whoever of that works here no more is a former agent, too."""
        known = {agent.id for agent in (*self.agents, *self.former)}
        gone = [agent for agent in (*earlier.former, *earlier.agents) if agent.id not in known]
        return Population(self.agents, (*gone, *self.former))

    def led_by(self, successors: Mapping[str, str]) -> Population:
        """The same, where whoever reported to one of these reports to its successor."""
        return Population(tuple(replace(one, head=successors.get(one.head or "", one.head)) for one in self.agents), self.former)

    def hired(self, org: Organization, title: str, seed: int) -> Agent:
        """A new agent of the role, under the first number that nobody has, with a persona drawn as all others' are."""
        number = sum(agent.role == title for agent in self.agents) + 1
        while f"{slug(title)}-{number}" in self._by_id:
            number += 1
        return self.newcomer(org, title, seed, id=f"{slug(title)}-{number}")

    def newcomer(self, org: Organization, title: str, seed: int, *, id: str, name: str | None = None) -> Agent:
        """A new agent of the role under this id; who is `name`d is the person of that name in the file."""
        role = org.roles[title]
        named = None if name is None else org.people[name]
        boxes = {_mailbox(agent.persona.name) for agent in (*self.former, *self.agents)} | {_mailbox(name) for name in org.people}
        return Agent(
            id=id,
            role=title,
            tier=role.tier,
            department=role.department,
            head=self.head_for(role),
            fte=role.fte,
            executes=role.executes,
            away=named.away if named else (),
            persona=_persona(org, role, id, seed, name, named, boxes),
        )

    def head_for(self, role: Role) -> str | None:
        """Who leads one more agent of the role: of those of the title above it the one with fewest reports."""
        heads = [agent.id for agent in self.agents if agent.role == role.reports_to]
        reports = Counter(agent.head for agent in self.agents)
        return min(heads, key=reports.__getitem__) if heads else None

    def __iter__(self) -> Iterator[Agent]:
        return iter(self.agents)

    def __len__(self) -> int:
        return len(self.agents)

    def agent(self, agent_id: str) -> Agent:
        """The agent with this id; KeyError where there is none."""
        return self._by_id[agent_id]

    def tier(self, number: int) -> tuple[Agent, ...]:
        """𝒜^[t]: the agents of a tier; 1 is the top."""
        return tuple(agent for agent in self.agents if agent.tier == number)

    def to_json(self) -> str:
        """The population as text, one agent a line, former ones with a mark; `from_json` reads it back unchanged."""
        everybody = [*(asdict(agent) for agent in self.agents), *(asdict(agent) | {"former": True} for agent in self.former)]
        rows = (json.dumps(row, ensure_ascii=False, sort_keys=True, default=date.isoformat) for row in everybody)
        return "[\n" + ",\n".join(rows) + "\n]\n"

    @classmethod
    def from_json(cls, text: str) -> Population:
        """Read what `to_json` wrote."""
        rows = [(row.pop("former", False), row) for row in json.loads(text)]
        agents, former = (tuple(agent_of(row) for gone, row in rows if gone is wanted) for wanted in (False, True))
        return cls(agents, former)


def agent_row(agent: Agent) -> dict[str, Json]:
    """An agent as JSON; `agent_of` reads it back unchanged."""
    row: dict[str, Json] = json.loads(json.dumps(asdict(agent), default=date.isoformat))
    return row


def agent_of(row: dict[str, Json]) -> Agent:
    """Read what `agent_row` made."""
    persona = Persona(**{**row["persona"], "knows": tuple(row["persona"]["knows"])})
    away = tuple((date.fromisoformat(first), date.fromisoformat(last)) for first, last in row["away"])
    return Agent(**{**row, "persona": persona, "away": away})


# ------------------------------------------------------------ drawing one persona
@cache
def _banks() -> dict[str, Any]:
    banks: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "personas.yaml").read_text(encoding="utf-8"))
    return banks


@cache
def _faker() -> Faker:
    from faker import Faker

    # Names of people and firms are all that is drawn; the other providers of six locales cost a tenth of a second.
    return Faker(_banks()["locales"], providers=["faker.providers.company", "faker.providers.person"])


def _persona(org: Organization, role: Role, agent_id: str, seed: int, name: str | None, person: Person | None, boxes: set[str]) -> Persona:
    banks, key = _banks(), f"{seed}:persona:{agent_id}"
    draw = Random(key)
    # The proxy's own choice of a locale would share one generator among agents: the locale is drawn here.
    source = _faker()[draw.choice(banks["locales"])]
    source.seed_instance(key)
    company = source.company()
    education = f"{draw.choice(banks['degrees'])} in {draw.choice(_studies(role.title))}"
    years = draw.randint(*YEARS_BY_DEPTH[0 if role.reports_to is None else 1 if org.reports(role.title) else 2])
    background = draw.choice(banks["backgrounds"]).format(company=company, years=draw.randint(2, 9))
    style = draw.choice(banks["styles"])
    knows = tuple(sorted(draw.sample(role.subjects, min(SUBJECTS_KNOWN, len(role.subjects)))))
    if name is None:
        name = _unused_name(source, boxes, agent_id)
    return Persona(
        name=name,
        email=f"{_mailbox(name)}@{org.slug}.example",
        education=education,
        years=years if person is None or person.years is None else person.years,
        background=background,
        style=style,
        knows=person.knows if person and person.knows else knows,
    )


def _unused_name(source: Faker, boxes: set[str], agent_id: str) -> str:
    """The first name of this agent's own stream whose mailbox nobody before it has."""
    for _ in range(DRAWS_FOR_A_NAME):
        name = f"{source.first_name()} {source.last_name()}"
        if _mailbox(name) not in boxes:
            return name
    return f"{source.first_name()} {source.last_name()} {agent_id}"


def _mailbox(name: str) -> str:
    return ascii_slug(name).replace("-", ".")


def _studies(title: str) -> list[str]:
    words = set(slug(title).split("-"))
    found: list[str] = next(entry["studies"] for entry in _banks()["fields"] if not entry["words"] or words & set(entry["words"]))
    return found
