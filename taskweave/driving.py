"""From what a person gave to a run that runs: begin, resume, drive, inject.

Entry points: those four, for the command line and for Python alike.  Everything is checked before anything is written.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

from taskweave import interrupts, telemetry
from taskweave.answering import answering_of, asked_in, backbone_for, lasting, make_ready, replays, routes_in
from taskweave.backbones.members import members_of
from taskweave.engine.budget import Budget
from taskweave.engine.journal import Journal
from taskweave.engine.reader import JournalReader
from taskweave.engine.witness import Witness
from taskweave.errors import BackboneOut, BadInput, BudgetReached, DiskFull, Divergence, Interrupted, RunRefused, Stopped, TooManyFallbacks
from taskweave.experiments.fork import Fork, make, plan
from taskweave.given import checked, left_out, prompt_folders
from taskweave.org.calendar import WorkCalendar
from taskweave.org.entities import drawn
from taskweave.org.population import Population
from taskweave.org.schema import load, parse
from taskweave.prompts import PromptBook
from taskweave.records import StyleName
from taskweave.report.status import status
from taskweave.runs import Inbox, Injection, RunConfig, RunFolder, Segment, default_path
from taskweave.runs.budgets import BUDGETS, budget_of, costs, prices_in, refuse_unpriced, taken
from taskweave.runs.folder import refuse_place
from taskweave.runs.forking import Answering
from taskweave.runs.inbox import name_of
from taskweave.runs.inputs import changed, write_down
from taskweave.runs.resuming import cause_now, stays_stopped
from taskweave.shipped import find_organization
from taskweave.simulation.incidents import FORK, load_incidents, too_late
from taskweave.simulation.incidents.rate import given
from taskweave.simulation.year import Outcome, Progress
from taskweave.simulation.year import simulate as year
from taskweave.telemetry import Telemetry
from taskweave.tools.outside.servers import refuse_unready, servers_of
from taskweave.tools.shelf import by_role

if TYPE_CHECKING:
    from taskweave.org.schema import Organization as Resolved
    from taskweave.records import Backbone, Json
    from taskweave.telemetry.spans import Facts

ENDINGS: Mapping[str, type[Stopped]] = {
    "interrupted": Interrupted,
    "stopped": Interrupted,
    "budget": BudgetReached,
    "fallback": TooManyFallbacks,
    "outage": BackboneOut,
    "refused": BackboneOut,
    "disk": BackboneOut,
}
ROUTING = "routing.yaml"  # within the run folder
NAMED = 6  # so many changed inputs are named in full


class Organization:
    """An organization and the file it came from.  Attributes (`name`, `roles`, `goals`, ...) are those of the resolved one."""

    def __init__(self, text: str | bytes, file: str = "organization") -> None:
        """From a file's content; raises OrganizationInvalid with every problem in it."""
        self.text = text
        self.resolved: Resolved = parse(text, file)

    @classmethod
    def load(cls, path: str | Path, *, warn: list[str] | None = None) -> Organization:
        """From a file, or by the name of a built-in one.  `warn` collects what is odd but legal.

        Raises OrganizationInvalid with every problem in it.
        """
        file = find_organization(path)
        loaded = cls.__new__(cls)
        loaded.resolved = load(file, warn=warn)
        loaded.text = file.read_bytes()
        return loaded

    def __getattr__(self, name: str) -> Any:
        if name in ("resolved", "text"):  # not set yet, while it is being unpickled
            raise AttributeError(name)
        return getattr(self.resolved, name)

    def __repr__(self) -> str:
        return f"Organization({self.resolved.name!r}, {len(self.resolved.roles)} roles)"


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
) -> tuple[RunFolder, Backbone]:
    """Check everything that was given, then make the run's folder.

    `prices` is a person's own price file; `agree` is called with what will answer, and in which style, when all is known to be usable
    and nothing is written, and may raise.
    `without` names parts of the paper's loop that the run leaves out (`runs.config.PARTS`).
    `rate` ("1/month") draws over the year from incidents that name no time; `servers` ("smtp", "mastodon") are reached, or "off".
    `extra` are incidents that come from no file; `style` None is chosen by what is known of the backbone; `look` asks an endpoint of
    which nothing is known whether it can do what the run needs, and `say` hears of both, a line each.
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
    parts, resolved = left_out(without), org.resolved
    by_role(resolved)  # names every tool that is none
    refuse_unready(servers_of(resolved, **servers))
    calendar = WorkCalendar(resolved.calendar)
    calendar.boundary(until)
    routing_text, routes = routes_in(routing, resolved, say)
    answering = backbone_for(backbone, base_url, routes)
    population = Population.sample(resolved, seed)
    payloads = given(incidents, resolved, population, calendar, rate=rate, seed=seed)
    place = out if out is not None else default_path(resolved.slug, seed)
    refuse_place(place)  # before anything is paid
    own_prices, listed = _price_file(prices), prices_in(prices)
    refuse_unpriced(budget_usd, _named(backbone), members_of(answering), listed)
    if agree is not None and not replays(backbone):
        agree(answering, style)
    make_ready(answering)
    budget = Budget(usd=budget_usd, tokens=budget_tokens, cost=costs(_named(backbone), listed))
    chosen, before = asked_in(style, backbone, answering, base_url, prompts, look=look, say=say, budget=budget)
    laid = prompt_folders(prompts, chosen)
    PromptBook.load(*laid).try_out(laid[0])
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
    )
    return folder, answering


def resume(
    folder: RunFolder,
    *,
    backbone: Backbone | None = None,
    until: str | None = None,
    base_url: str | None = None,
    limit: int | None = None,
    patience: float | None = None,
    max_fallback: float | None = None,
    budget_usd: float | None = None,
    budget_tokens: int | None = None,
    budget_hours: float | None = None,
    prices: Path | None = None,
    observe: Callable[[Progress], None] | None = None,
    told: Telemetry | None = None,
) -> tuple[RunFolder, Outcome]:
    """Continue a run; what is None stays as the run was told before.

    `backbone` is for a run that was begun with an object of one's own: one of the same name.  Raises RunRefused for another, or for none.
    `told` has what is done told as spans, where the environment or a tracer provider asks for that.
    """
    given = {"until": until, "base_url": base_url, "limit": limit, "patience": patience, "max_fallback": max_fallback}
    given |= {"budget_usd": budget_usd, "budget_tokens": budget_tokens, "budget_hours": budget_hours}
    changes = {key: value for key, value in given.items() if value is not None}
    checked(**changes)
    if until is not None:
        _not_behind(folder, until)
    answering = answering_of(folder, backbone, base_url)
    own_prices = _price_file(prices)
    usd = budget_usd if budget_usd is not None else folder.config.budget_usd
    refuse_unpriced(usd, folder.config.backbone, members_of(answering), prices_in(prices, folder.prices()))
    with folder.lock():
        Inbox(folder.inbox).begin()
        _refuse_changed(folder)
        _refuse_exchanged(folder, answering)
        refuse_unready(servers_of(folder.organization(), **folder.config.servers))
        folder = folder.with_config(**changes)
        if own_prices is not None:
            folder.keep_prices(own_prices)
        # By other prices it may have spent less.
        cheaper = own_prices is not None and folder.config.budget_usd is not None
        if (still := _still_stopped(folder)) is not None and not cheaper:
            return folder, still
        return folder, _within(folder, answering, observe, told)


def drive(
    folder: RunFolder, backbone: Backbone, *, observe: Callable[[Progress], None] | None = None, told: Telemetry | None = None
) -> Outcome:
    """Run a folder to its horizon while holding it; `told` as in `resume`."""
    with folder.lock():
        Inbox(folder.inbox).begin()
        _refuse_changed(folder)
        return _within(folder, backbone, observe, told)


def fork(
    parent: RunFolder,
    *,
    at: str,
    out: Path | None = None,
    incidents: Sequence[Path] = (),
    drop: Sequence[str] = (),
    redraws: Sequence[int] = (),
    prompts: Sequence[Path] = (),
    backbone: str | Backbone | None = None,
    base_url: str | None = None,
    look: bool = True,
    say: Callable[[str], None] = lambda _: None,
    agree: Callable[[Backbone, list[Fork]], None] | None = None,
    **told: Any,
) -> list[tuple[RunFolder, Backbone]]:
    """Make forks of a run, to be driven: one, or one for each of `redraws`.  Everything is checked before anything is written.

    `backbone` answers from the fork's week on, the parent's where None; `look`, `say` and `agree` as in `begin`; `told` are settings that
    change no request (until, limit, patience, max_fallback, budgets, tags), the parent's where None.
    """
    checked(**{name: value for name, value in told.items() if value is not None})
    laid = prompt_folders(prompts, parent.config.style)[1:] if prompts else []
    if laid:
        PromptBook.load(parent.path / parent.config.segments[-1].prompts, *laid).try_out(prompt_folders((), parent.config.style)[0])
    answering, before, own = None, None, backbone if backbone is not None and not isinstance(backbone, str) else None
    if backbone is None:
        asked = answering_of(parent, None, base_url)
    else:
        asked = backbone_for(backbone, base_url, parent.routes())
        make_ready(asked)
        spec = lasting(backbone) if isinstance(backbone, str) else asked.name
        answering = Answering(
            identity=asked.name, origin=asked.origin, spec=spec, base_url=base_url, given="object" if own is not None else "name"
        )
    forks = plan(
        parent, at=at, out=out, incidents=incidents, drop=drop, redraws=redraws, prompts=laid, answering=answering, until=told.get("until")
    )
    allowed = {name: told[name] if told.get(name) is not None else getattr(parent.config, name) for name in BUDGETS}
    given = parent.config.backbone if backbone is None else _named(backbone)
    refuse_unpriced(allowed["budget_usd"], given, members_of(asked), parent.prices())
    if agree is not None:
        agree(asked, forks)
    if backbone is not None:
        budget = Budget(usd=allowed["budget_usd"], tokens=allowed["budget_tokens"], cost=costs(given, parent.prices()))
        _, before = asked_in(parent.config.style, backbone, asked, base_url, prompts, look=look, say=say, budget=budget)
    elif base_url is not None:
        told["base_url"] = base_url
    folders = [make(parent, one, before=before, **told) for one in forks]
    return [(folder, answering_of(folder, own, None)) for folder in folders]


def inject(folder: RunFolder, file: Path, *, at: str | None = None, warn: list[str] | None = None) -> list[str]:
    """Put the incidents of a file into a run, live or before it is resumed; returns their ids.

    `at` (week:14, quarter:2 or a date) counts for those that name no time of their own; `warn` collects what is odd but legal.
    Raises IncidentInvalid for the file, RunRefused for a run that is over and for a time that has passed.
    """
    org = folder.organization()
    calendar = WorkCalendar(org.calendar)
    payloads = load_incidents(file, org, folder.population(), calendar)
    now = status(folder)
    if now.week >= len(calendar.weeks):
        raise RunRefused(f"{folder.path}: the run is finished, its year is over. {FORK}")
    if at is not None:
        payloads = [payload if payload.get("tick") is not None else {**payload, "tick": calendar.tick_of(at)} for payload in payloads]
    for payload in payloads:
        tick = payload.get("tick")
        if tick is None and now.finished:
            raise RunRefused(
                f"{folder.path}: the run is finished, it has reached its horizon {folder.config.until}. {FORK} To let an incident happen "
                f"in a continuation, say when with --at week:{now.week + 1} or later, "
                f"then 'taskweave resume {quote(str(folder.path))} --until year'."
            )
        if tick is not None and tick <= now.tick:
            raise RunRefused(too_late(payload, tick, calendar, folder.path, now.date))
    with JournalReader(folder.journal_path) as journal:
        known = [one.id for one in journal.injections()]
    ids = [folder.send(payload, known=known) for payload in payloads]
    if warn is not None:
        named = [(payload["title"], id_) for payload, id_ in zip(payloads, ids, strict=True) if id_ != name_of(payload)]
        warn += [f"{id_}: a second incident of that title; the run had been given {title!r} before" for title, id_ in named]
    return ids


def ending(outcome: Outcome) -> type[Stopped] | None:
    """The exception class that says why a run ended before its horizon; None where it reached it."""
    return ENDINGS.get(outcome.stop, Stopped) if outcome.stop is not None else None


def _refuse_changed(folder: RunFolder) -> None:
    """Divergence where an input was edited since the run began: before anything is asked, written or rebuilt."""
    if names := changed(folder):
        said = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        raise Divergence(
            f"{folder.path}: changed since the run began: {said}. Nothing was asked and nothing overwritten. "
            "Put back what the run was made with, or start a new run with what it is now"
        )
    write_down(folder)


def _refuse_exchanged(folder: RunFolder, backbone: Backbone) -> None:
    """Divergence where another model than the one that answered so far stands under its name; only one in a file can tell."""
    members = members_of(backbone)
    for name, one in members.items():
        fingerprint = getattr(one, "fingerprint", None)
        if not callable(fingerprint):
            continue
        with JournalReader(folder.journal_path) as journal:
            before = journal.fingerprint(name)
        if before is not None and (now := fingerprint()) != before:
            raise Divergence(
                f"{folder.path}: {name} is another model than the one that answered so far (sha256 {now}..., it was {before}...). "
                "Nothing was asked. Put back the file that the run was begun with, or start a new run"
            )


def _within(folder: RunFolder, backbone: Backbone, observe: Callable[[Progress], None] | None, told: Telemetry | None) -> Outcome:
    """The simulation itself, on a loop of its own: in a thread where this one has a running loop (a notebook)."""
    inbox = Inbox(folder.inbox)
    until = WorkCalendar(folder.organization().calendar).boundary(folder.config.until)
    budget = budget_of(folder)

    async def driven(witness: Witness | None) -> Outcome:
        try:
            return await year(
                folder,
                backbone,
                until_week=until,
                limit=min(folder.config.limit, getattr(backbone, "most_at_once", None) or folder.config.limit),
                patience=folder.config.patience,
                observe=observe,
                interrupted=interrupts.heard,
                witness=witness,
                budget=budget,
            )
        except DiskFull as full:
            return _without_room(folder, full)
        finally:
            # Its connections belong to this loop, which ends here.
            if (close := getattr(backbone, "close", None)) is not None:
                await close()

    with telemetry.session(told, lambda: _facts(folder, backbone)) as spans:

        def work() -> Outcome:
            return asyncio.run(driven(spans))

        outcome = _in_thread(work, stop=lambda: inbox.control("stop")) if _in_a_loop() else work()
        if spans is not None:
            spans.reached(outcome.week, outcome.stop)
    return outcome


def _facts(folder: RunFolder, backbone: Backbone) -> Facts:
    """What is told of a session before it begins."""
    from taskweave.telemetry.attributes import server_of
    from taskweave.telemetry.spans import Facts

    config = folder.config
    members = members_of(backbone)
    servers = {identity: server_of(getattr(member, "base_url", None)) for identity, member in members.items()}
    return Facts(
        run=folder.path.name,
        organization=config.organization,
        seed=config.seed,
        until=config.until,
        backbone=backbone.name,
        roles={agent.id: agent.role for agent in folder.population().agents},
        called={identity: member.name for identity, member in members.items()},
        servers={identity: server for identity, server in servers.items() if server is not None},
    )


def _still_stopped(folder: RunFolder) -> Outcome | None:
    """The ending that a run would have again at once, of answers that it had: then nothing is asked before more is allowed."""
    with JournalReader(folder.journal_path) as reader:
        stops, weeks = reader.stops(), reader.weeks()
        last = stops[-1] if stops and stops[-1].current else None
        if last is None or not stays_stopped(last.bound, folder.config):
            return None
        cause = cause_now(last.cause, last.bound, folder.config, taken(folder.config, folder.prices(), reader))
    digest = weeks[-1].digest if weeks else None
    return Outcome(stop=last.why, cause=cause, week=len(weeks), digest=digest, executed=len(weeks), bound=last.bound)


def _without_room(folder: RunFolder, full: DiskFull) -> Outcome:
    """The disk was full where no engine could say so, before it began or after it had ended: said here, where there is room for that."""
    with contextlib.suppress(DiskFull), Journal(folder.journal_path, create=False) as journal:
        journal.begin_session()
        journal.write_stop("disk", str(full))
    with JournalReader(folder.journal_path) as reader:
        weeks = reader.weeks()
    return Outcome(stop="disk", cause=str(full), week=len(weeks), digest=weeks[-1].digest if weeks else None, executed=0)


def _named(backbone: str | Backbone) -> str:
    """As a run's config says it."""
    return backbone if isinstance(backbone, str) else backbone.name


def _price_file(file: Path | None) -> bytes | None:
    """The content of a person's price file, once it is known to be one.  Raises FileInvalid with its problems."""
    if file is None:
        return None
    from taskweave.backbones.pricing import read_prices

    read_prices(file)
    return file.read_bytes()


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _in_thread(work: Callable[[], Outcome], stop: Callable[[], None]) -> Outcome:
    """Run `work` in a thread and wait.  An interrupt asks it to stop, and waits until what is in flight is journaled."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="taskweave") as threads:
        running = threads.submit(work)
        while True:
            try:
                return running.result()
            except KeyboardInterrupt:
                stop()


def _not_behind(folder: RunFolder, until: str) -> None:
    week = WorkCalendar(folder.organization().calendar).boundary(until)
    reached = status(folder).week
    if week < reached:
        raise BadInput(f"--until {until}: that is week {week}, and {folder.path} has closed week {reached}. Name a later horizon, or none.")
