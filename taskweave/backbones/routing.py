"""Which backbone answers which question?  A file of routes by tier, role and step, and the backbone that follows them.

Entry points: `read_routes` (every problem of a file at once), `Routes.chosen`, `Routed`.  The first route that fits counts; what none
takes goes to the run's own backbone.  A run knows a backbone by its identity alone: it is part of what is asked, and a URL is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taskweave.backbones import backbone
from taskweave.backbones.members import Members
from taskweave.errors import BadInput, Problem, RoutingInvalid
from taskweave.org import form
from taskweave.org.form import Field, Kind, Reading, Where
from taskweave.org.organization import Organization, Role
from taskweave.org.yamlfile import Node, Unreadable, compose
from taskweave.records import STEPS, Backbone, Json

EXECUTED = ("execute", "merge")  # the steps of those who do the work; all others are of those who plan it


@dataclass(frozen=True, kw_only=True, slots=True)
class Route:
    """One route: what it takes (None: any), and where that goes.  `line` is that of the file."""

    line: int | None
    steps: tuple[str, ...] | None
    tiers: tuple[int, ...] | None
    roles: tuple[str, ...] | None
    spec: str
    base_url: str | None
    name: str | None

    @property
    def identity(self) -> str:
        """What the run calls its backbone: as it was written, and the route's own name for it; what kind it is stands before a colon."""
        kind, _, model = self.spec.partition(":")
        called = f"{kind}:{Path(model).name}" if kind == "local" and model else self.spec  # a name holds no path
        return called if self.name is None else f"{called}{'#' if ':' in called else ':#'}{self.name}"

    @property
    def takes_a_url(self) -> bool:
        return self.spec.partition(":")[0] == "openai"

    def url(self, base_url: str | None) -> str | None:
        """Where it is asked, given the URL that the run was told."""
        return self.base_url or (base_url if self.takes_a_url else None)

    def fits(self, step: str, tier: int, role: str) -> bool:
        return all(wanted is None or one in wanted for wanted, one in ((self.steps, step), (self.tiers, tier), (self.roles, role)))

    def __str__(self) -> str:
        """What it takes, as its file could say it."""
        named = {"step": self.steps, "tier": self.tiers, "role": self.roles}
        return ", ".join(f"{key} {' or '.join(map(str, values))}" for key, values in named.items() if values is not None) or "anything"

    def told(self) -> dict[str, Json]:
        """All of it that decides what is asked."""
        wanted = {"step": self.steps, "tier": self.tiers, "role": self.roles}
        return {key: None if value is None else list(value) for key, value in wanted.items()} | {"backbone": self.identity}


class Routes:
    """The routes of a run, in the order of their file, which is `file` in messages."""

    def __init__(self, routes: Sequence[Route], file: str = "routing") -> None:
        self.routes, self.file = tuple(routes), file
        self._chosen: dict[tuple[str, int, str], str | None] = {}

    def chosen(self, step: str, tier: int, role: str) -> str | None:
        """The identity of the backbone that answers this step for an agent of this tier and role; None: the run's own."""
        place = (step, tier, role)
        if place not in self._chosen:
            self._chosen[place] = next((route.identity for route in self.routes if route.fits(*place)), None)
        return self._chosen[place]


def idle(routes: Routes, org: Organization) -> list[str]:
    """Why some routes take nothing, whatever happens: nobody whom they name is asked what they name, or earlier ones take all of it."""
    left = {(step, role.title) for role in org.roles.values() for step in _asked(role, org)}
    said = []
    for route in routes.routes:
        fitting = {
            (step, role.title) for role in org.roles.values() for step in _asked(role, org) if route.fits(step, role.tier, role.title)
        }
        if not fitting & left:
            asked = "; ".join(f"{title} is asked {', '.join(_asked(org.roles[title], org))}" for title in route.roles or ())
            why = "earlier routes take all of it" if fitting else f"nobody is asked that{f' ({asked})' if asked else ''}"
            said.append(f"{routes.file}:{route.line}: this route ({route}) takes nothing: {why}")
        left -= fitting
    return said


def _asked(role: Role, org: Organization) -> tuple[str, ...]:
    """The steps that those of a role can be asked: heads, and officers without time for tasks, plan; who has time for tasks executes."""
    plans = role.reports_to is None or role.executes == 0 or bool(org.reports(role.title))
    return tuple(step for step in STEPS if (role.executes > 0 if step in EXECUTED else plans))


class Routed(Members):
    """The run's own backbone, and those that its routes lead to."""

    def __init__(self, own: Backbone, routes: Routes, *, spec: str | None = None, base_url: str | None = None) -> None:
        """`spec` is what the run's own backbone was called by, None for an object; `base_url` where it, and routes without one, are asked.

        Raises RoutingInvalid for a backbone that there is not, and for two of one identity: at different URLs, or from different files.
        """
        own_url = base_url if own.name.partition(":")[0] == "openai" else None
        members: dict[str, Backbone] = {own.name: own}
        places: dict[str, tuple[str, str | None]] = {own.name: (spec or own.name, own_url)}
        made: dict[tuple[str, str | None], Backbone] = {(spec or own.name, own_url): own}
        problems: list[Problem] = []
        if (spec or "").partition(":")[0] == "replay":  # what was recorded is asked of nobody anew, whoever answered it
            super().__init__(own, {route.identity: own for route in routes.routes})
            return
        for route in routes.routes:
            identity, url = route.identity, route.url(base_url)
            try:
                if (route.spec, url) not in made:
                    made[route.spec, url] = backbone(route.spec, base_url=url)
                if (before := places.get(identity)) not in (None, (route.spec, url)):
                    assert before is not None
                    other = before[0] if before[0] != route.spec else before[1] or "its own address"
                    raise BadInput(
                        f"{identity!r} is asked at {other} already, and a run tells backbones apart by their names: give this one a name "
                        "of its own, for example 'name: second'"
                    )
                members[identity], places[identity] = made[route.spec, url], (route.spec, url)
            except BadInput as trouble:
                problems.append(Problem(file=routes.file, line=route.line, what=str(trouble)))
        if problems:
            raise RoutingInvalid(problems)
        super().__init__(own, members)


def read_routes(text: str | bytes, file: str, org: Organization) -> Routes:
    """The routes of a file, for this organization.  Raises RoutingInvalid with every problem in it."""
    reading = Reading(file)
    try:
        found = _file(org).read(reading, compose(text), ())
    except Unreadable as trouble:
        raise RoutingInvalid([trouble.problem(file)]) from None
    routes = [_route(reading, number, values) for number, values in enumerate((found or {}).get("routes", ()))]
    for route in routes:
        titles = route.roles or tuple(org.roles)
        if route.tiers is not None and not any(org.roles[title].tier in route.tiers for title in titles):
            tiers = "; ".join(f"{title} is of tier {org.roles[title].tier}" for title in titles)
            reading.wrong(route.line, f"no agent is of a tier and a role that this route names: {tiers}")
    if not routes and not reading.problems:
        reading.wrong(1, "no route is named; write one, or leave --routing out")
    if reading.problems:
        raise RoutingInvalid(reading.problems)
    return Routes(routes, file)


def _route(reading: Reading, number: int, values: dict[str, Json]) -> Route:
    return Route(
        line=reading.line(("routes", str(number))),
        steps=values.get("step"),
        tiers=values.get("tier"),
        roles=values.get("role"),
        spec=values.get("backbone", ""),
        base_url=values.get("base_url"),
        name=values.get("name"),
    )


def _file(org: Organization) -> Kind:
    """What stands in such a file."""
    tiers = {str(role.tier) for role in org.roles.values()}
    step = form.listing(_one_of("step", STEPS))
    role = form.listing(_one_of("role", org.roles))
    tier = form.listing(_whole(_one_of("tier", sorted(tiers, key=int))))
    route = form.record(
        {
            "step": Field(step, "the step, or a list of steps, that it takes"),
            "tier": Field(tier, "the tier, or a list of tiers, of those who act"),
            "role": Field(role, "the title, or a list of titles, of those who act"),
            "backbone": Field(form.TEXT, "what answers, such as 'openai:gpt-4o-mini' or 'scripted'", required=True),
            "base_url": Field(form.TEXT, "where an OpenAI-compatible server listens"),
            "name": Field(form.NAME, "how this run calls the backbone, where two of one model are asked at different URLs"),
        }
    )
    return form.record({"routes": Field(form.listing(route), "the routes; the first that fits counts", required=True)})


def _one_of(what: str, names: Iterable[str]) -> Kind:
    legal = {name.casefold(): name for name in names}

    def parse(text: str) -> str:
        found = legal.get(text.casefold())
        if found is None:
            raise ValueError(f"there is no {what} {form.said(text)}{form.nearest(text, legal.values())}")
        return found

    return form.scalar(parse, {"enum": list(legal.values())}, f"the name of a {what}")


def _whole(kind: Kind) -> Kind:
    def read(reading: Reading, node: Node, path: Where) -> Json:
        found = kind.read(reading, node, path)
        return None if found is None else int(found)

    return Kind(read, {"type": "integer"})
