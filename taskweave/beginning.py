"""From what a person gave to the folder of a new run.  Entry point: `begin`: everything is checked before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from taskweave.answering import asked_in, backbone_for, lasting, make_ready, replays, routes_in
from taskweave.backbones.members import members_of
from taskweave.engine.budget import Budget
from taskweave.given import checked, left_out, named, price_file, prompt_folders
from taskweave.loading import Organization
from taskweave.org.calendar import WorkCalendar
from taskweave.org.entities import drawn
from taskweave.org.population import Population
from taskweave.prompts import PromptBook
from taskweave.records import StyleName
from taskweave.runs import Injection, RunConfig, RunFolder, Segment, default_path
from taskweave.runs.budgets import costs, prices_in, refuse_unpriced
from taskweave.runs.folder import refuse_place
from taskweave.simulation.incidents.rate import given
from taskweave.tools.mcp_servers import fetched, refuse_unset
from taskweave.tools.outside.servers import refuse_unready, servers_of
from taskweave.tools.shelf import by_role

if TYPE_CHECKING:
    from taskweave.records import Backbone, Json

ROUTING = "routing.yaml"  # within the run folder


def begin(
    org: Organization,
    *,
    out: Path | None,
    backbone: str | Backbone,
    seed: int,
    until: str,
    base_url: str | None,
    prompts: Sequence[Path],
    assign: Literal["match", "model"],
    incidents: Sequence[Path],
    limit: int,
    patience: float,
    tags: Mapping[str, str],
    extra: Sequence[Mapping[str, Json]] = (),
    style: StyleName | None = None,
    routing: Path | None = None,
    max_fallback: float | None = None,
    budget_usd: float | None = None,
    budget_tokens: int | None = None,
    budget_hours: float | None = None,
    without: str | Sequence[str] = (),
    look: bool = True,
    say: Callable[[str], None] = lambda _: None,
    prices: Path | None = None,
    agree: Callable[[Backbone, StyleName | None], None] | None = None,
    rate: str | None = None,
    servers: Mapping[str, str] = {},
    reach: bool = True,
) -> tuple[RunFolder, Backbone]:
    """Check everything that was given, then make the run's folder.

    `prices` is a person's own price file; `agree` is called with what will answer, and in which style, when all is known to be usable
    and nothing is written, and may raise.
    `without` names parts of the paper's loop that the run leaves out (`runs.config.PARTS`).
    `rate` ("1/month") draws over the year from incidents that name no time; `servers` ("smtp", "mastodon") are reached, or "off".
    `extra` are incidents that come from no file; `style` None is chosen by what is known of the backbone; `look` asks an endpoint of
    which nothing is known whether it can do what the run needs; `reach` asks the organization's MCP servers for their tools, which are
    left out otherwise.  `say` hears of all three, a line each.
    """
    checked(
        seed=seed,
        until=until,
        limit=limit,
        patience=patience,
        assign=assign,
        base_url=base_url,
        tags=tags,
        style=style,
        max_fallback=max_fallback,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        budget_hours=budget_hours,
        rate=rate,
    )
    parts = left_out(without)
    resolved = org.resolved
    by_role(resolved)  # names every tool that is none
    refuse_unready(servers_of(resolved, **servers))
    if reach and not replays(backbone):
        refuse_unset(resolved)
    calendar = WorkCalendar(resolved.calendar)
    calendar.boundary(until)
    routing_text, routes = routes_in(routing, resolved, say)
    answering = backbone_for(backbone, base_url, routes)
    population = Population.sample(resolved, seed)
    payloads = given(incidents, resolved, population, calendar, rate=rate, seed=seed)
    place = out if out is not None else default_path(resolved.slug, seed)
    refuse_place(place)  # before anything is paid
    own_prices = price_file(prices)
    listed = prices_in(prices)
    refuse_unpriced(budget_usd, named(backbone), members_of(answering), listed)
    if agree is not None and not replays(backbone):
        agree(answering, style)
    make_ready(answering)
    budget = Budget(usd=budget_usd, tokens=budget_tokens, cost=costs(named(backbone), listed))
    chosen, before = asked_in(style, backbone, answering, base_url, prompts, look=look, say=say, budget=budget)
    laid = prompt_folders(prompts, chosen)
    PromptBook.load(*laid).try_out(laid[0])
    mcp = _mcp_servers(org, backbone, say) if reach else {}
    by_role(resolved, mcp)
    config = RunConfig(
        organization=resolved.name,
        seed=seed,
        until=until,
        backbone=lasting(backbone) if isinstance(backbone, str) else answering.name,
        backbone_given="name" if isinstance(backbone, str) else "object",
        base_url=base_url,
        limit=limit,
        assign=assign,
        patience=patience,
        tags=dict(tags),
        routing=None if routes is None else ROUTING,
        style=chosen,
        max_fallback=max_fallback,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        budget_hours=budget_hours,
        without=parts,
        servers=dict(servers),
        segments=(Segment(backbone=answering.name, origin=answering.origin),),
    )
    folder = RunFolder.create(
        place,
        config=config,
        organization_text=org.text,
        prompts_dirs=laid,
        population_json=population.to_json(),
        entities_json=drawn(resolved, seed),
        injections=Injection.name([*payloads, *extra]),
        routing_text=routing_text,
        before=before,
        prices=own_prices,
        mcp=mcp,
    )
    return folder, answering


def _mcp_servers(org: Organization, backbone: str | Backbone, say: Callable[[str], None]) -> dict[str, Json]:
    """What the organization's servers say of their tools; of a run that is replayed, what they said then."""
    if isinstance(backbone, str) and replays(backbone):
        return RunFolder.open(backbone.partition(":")[2].strip()).mcp_servers()
    return fetched(org.resolved, org.folder, say)
