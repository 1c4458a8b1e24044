"""What every work of a segment sees: the organization, its people, the prompts and the backbone's identity.

Entry point: `Setting`.  It turns them into the inputs of prompts and asks.  It refuses to know about time and promises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeVar

from taskweave.backbones.routing import Routes
from taskweave.backbones.structured import Answered, ask
from taskweave.cutting import Kept, fair_share, value_tokens
from taskweave.engine.promises import Context as WorkContext
from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.entities import Entities
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.prompts import PromptBook
from taskweave.records import DependencyQuery, Json, Origin, Priority, Request, step_of
from taskweave.runs.config import Part
from taskweave.simulation.tally import Tally
from taskweave.simulation.tooling import Tooling
from taskweave.tools.tool import Tool

T = TypeVar("T")
GENEROUS = 2_000  # tokens of an input for which a prompt names no budget
NO_ENTITIES = Entities()
MOST_KINDS = 40  # of deliverables in a schema: beyond, their names take more than a shared beginning saves


class Style(Protocol):
    """How a step is put to a backbone otherwise than as one question.  The answer has the same shape in every style."""

    async def ask(
        self,
        setting: Setting,
        ctx: WorkContext,
        step: str,
        inputs: Mapping[str, Json],
        schema: Mapping[str, Json],
        parse: Callable[[Json], T],
        fallback: Callable[[], T],
        agent: str,
    ) -> Answered[T]: ...


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One segment of a run, as works see it."""

    org: Organization
    population: Population
    delegation: Delegation
    calendar: WorkCalendar
    prompts: PromptBook
    backbone: str
    origin: Origin
    assign: Literal["match", "model"]
    seed: int
    draw: int
    file: str = "org.yaml"  # of the organization, in the run's folder
    style: Style | None = None  # None: each step is one question, with its own prompt
    routes: Routes | None = None
    without: frozenset[Part] = frozenset()
    tooling: Tooling | None = None  # None: agents use no tools
    entities: Entities = NO_ENTITIES
    failing: frozenset[str] = frozenset()  # tools that do not work now
    priorities: Mapping[str, Priority] = field(default_factory=dict)  # of goals, as incidents have changed them
    tally: Tally = field(default_factory=Tally, repr=False)
    _cache: dict[str, Json] = field(default_factory=dict, repr=False)

    def has(self, part: Part) -> bool:
        """Whether this part of the loop is taken; each is asked for in the one place that leaves it out."""
        return part not in self.without

    def uses_tools(self, agent: str, need: DependencyQuery) -> bool:
        """Whether a tool is to be looked for by this agent, who has some that work."""
        return "tools" in need.sources and bool(self.tools_of(agent))

    def tools_of(self, agent: str) -> tuple[Tool, ...]:
        """The tools of the agent's role that work now; none for one who was hired since, whom no tool knows."""
        if self.tooling is None or not self.tooling.world.knows(agent):
            return ()
        return self.tooling.of(self.population.agent(agent).role, self.failing)

    def organization(self) -> Json:
        """The `organization` input of prompts."""
        if "organization" not in self._cache:
            org = self.org
            self._cache["organization"] = Kept(
                {
                    "name": org.name,
                    "domain": org.domain,
                    "description": org.description,
                    "goals": [
                        {
                            "name": name,
                            "text": self._goal_text(name),
                            "kpi": goal.kpi,
                            "target": goal.target,
                            "by": goal.by.isoformat() if goal.by else None,
                            "owner": goal.owner,
                        }
                        for name, goal in org.goals.items()
                    ],
                    "departments": [
                        {"name": name, "head": department.head, "roles": [r.title for r in org.roles.values() if r.department == name]}
                        for name, department in org.departments.items()
                    ],
                }
            )
        return self._cache["organization"]

    def goals(self) -> Json:
        """Names and texts of the goals, as offered for choice."""
        return [{"name": name, "text": self._goal_text(name)} for name in self.org.goals]

    def _goal_text(self, name: str) -> str:
        """The goal's text, with the priority that an incident gave it."""
        text, priority = self.org.goals[name].text, self.priorities.get(name)
        return text if priority is None else f"{text} [priority: {priority}]"

    def roles(self, prompt: str, titles: Sequence[str]) -> Json:
        """The `roles` input of a prompt, within its budget: what each title is responsible for and produces.

        Where that is too much however it is cut, the last are told by their titles alone: all of them may be named in the answer.
        """
        budget = self.budget(prompt, "roles")
        roles = [self.role(title) for title in titles]
        bare: list[Json] = [{name: [] if name != "role" else value for name, value in role.items()} for role in roles]
        for told in range(len(roles), 0, -1):
            share = fair_share(map(value_tokens, roles[:told]), budget - value_tokens(bare[told:]))
            shown = [*(role.fit(share) for role in roles[:told]), *bare[told:]]
            if value_tokens(shown) <= budget:
                return shown
        return bare

    def shown_role(self, prompt: str, title: str, about: str) -> Json:
        """The `role` input of a prompt, within its budget; subjects that the text `about` names come first, so that cutting spares them."""
        role, wanted = self.role(title), about.casefold()
        cut = role.fit(self.budget(prompt, "role"))
        named = [subject for subject in role["subjects"] if subject.casefold() in wanted]
        if len(role["subjects"]) == len(cut["subjects"]) or not named:
            return cut
        *shown, more = cut["subjects"]
        subjects = list(dict.fromkeys([*named, *shown]))[: max(1, len(shown))]
        return {**cut, "subjects": [*subjects, more]}

    def role(self, title: str) -> Kept:
        """The ROLE input of one title."""
        key = f"role:{title}"
        if key not in self._cache:
            role = self.org.roles[title]
            self._cache[key] = Kept(
                {
                    "role": title,
                    "responsibilities": list(role.responsibilities),
                    "skills": list(role.skills),
                    "activities": list(role.activities),
                    "artifacts": list(role.artifacts),
                    "subjects": list(role.subjects),
                    **({"tools": [tool.name for tool in self.tooling.of(title)]} if self.tooling is not None else {}),
                }
            )
        kept: Kept = self._cache[key]
        return kept

    def kinds(self, title: str) -> tuple[str, ...]:
        """The kinds of deliverable that an execute's schema offers: those of all roles, of which the prompt names the role's own.

        A schema is the beginning of what a provider caches; with one of its own each role would share no beginning with the others.
        Only the role's where there are more than MOST_KINDS.
        """
        if "kinds" not in self._cache:
            self._cache["kinds"] = tuple(sorted({kind for role in self.org.roles.values() for kind in role.artifacts}))
        own, kinds = self.org.roles[title].artifacts, tuple[str, ...](self._cache["kinds"])
        return own if not own or len(kinds) > MOST_KINDS else kinds

    def author(self, agent: str) -> Json:
        """The `author` input: who executes."""
        key = f"author:{agent}"
        if key not in self._cache:
            person = self.population.agent(agent)
            persona = person.persona
            self._cache[key] = Kept(
                {
                    "name": persona.name,
                    "title": person.role,
                    "years": persona.years,
                    "background": persona.background,
                    "style": persona.style,
                    "knows": list(persona.knows),
                }
            )
        return self._cache[key]

    def name(self, agent: str) -> str:
        """The person's name."""
        return self.population.agent(agent).persona.name

    def budget(self, prompt: str, variable: str) -> int:
        """The tokens that a prompt's head grants an input."""
        return self.prompts[prompt].budget.get(variable, GENEROUS)

    async def ask(
        self,
        ctx: WorkContext,
        step: str,
        inputs: Mapping[str, Json],
        schema: Mapping[str, Json],
        parse: Callable[[Json], T],
        fallback: Callable[[], T],
        *,
        agent: str,
    ) -> Answered[T]:
        """A step's answer in the run's style; `agent` is who acts, by which requests are routed."""
        ctx.actor = agent
        if self.style is None:
            return await self.one(ctx, step, inputs, schema, parse, fallback, agent)
        return await self.style.ask(self, ctx, step, inputs, schema, parse, fallback, agent)

    async def one(
        self,
        ctx: WorkContext,
        prompt: str,
        inputs: Mapping[str, Json],
        schema: Mapping[str, Json],
        parse: Callable[[Json], T],
        fallback: Callable[[], T],
        agent: str,
    ) -> Answered[T]:
        """One structured question: rendered, asked, parsed, or answered by `fallback` with the reason recorded."""
        backbone = self.answering(prompt, agent)

        def request(halvings: int = 0) -> Request:
            return self.prompts.request(prompt, inputs, schema=schema, backbone=backbone, halvings=halvings)

        answered = await ask(ctx, request(), parse, fallback, shrink=request)
        if backbone == self.backbone and answered.origin not in (self.origin, "fallback"):
            answered = replace(answered, origin=self.origin)  # an object of one's own says itself what it is
        self.tally.asked(ctx.site, prompt, backbone, answered.quality, answered.reason)
        return answered

    def answering(self, prompt: str, agent: str) -> str:
        """The identity of the backbone to which a question of this agent goes."""
        if self.routes is None:
            return self.backbone
        person = self.population.agent(agent)
        return self.routes.chosen(step_of(prompt), person.tier, person.role) or self.backbone
