"""From a folder to a run that runs: drive, resume.  What a person gave is checked before anything is asked or written.

Entry points: those two, for the command line and for Python alike; beside them what makes folders (`begin`, `fork`) and `inject`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from taskweave import interrupts, telemetry
from taskweave.answering import answering_of
from taskweave.backbones.members import members_of
from taskweave.beginning import begin
from taskweave.branching import fork
from taskweave.engine.journal import Journal
from taskweave.engine.reader import JournalReader
from taskweave.engine.witness import Witness
from taskweave.errors import (
    BackboneOut,
    BadInput,
    BudgetReached,
    DiskFull,
    Divergence,
    Interrupted,
    Stopped,
    TooManyFallbacks,
)
from taskweave.given import checked, price_file
from taskweave.injecting import inject
from taskweave.loading import Organization
from taskweave.org.calendar import WorkCalendar
from taskweave.report.status import status
from taskweave.runs import Inbox, RunFolder
from taskweave.runs.budgets import budget_of, prices_in, refuse_unpriced, taken
from taskweave.runs.inputs import changed, write_down
from taskweave.runs.resuming import cause_now, stays_stopped
from taskweave.simulation.year import Outcome, Progress
from taskweave.simulation.year import simulate as year
from taskweave.telemetry import Telemetry
from taskweave.tools.mcp_servers import refuse_unset
from taskweave.tools.outside.servers import refuse_unready, servers_of

if TYPE_CHECKING:
    from taskweave.records import Backbone
    from taskweave.telemetry.spans import Facts

__all__ = ["Organization", "begin", "drive", "ending", "fork", "inject", "resume"]

ENDINGS: Mapping[str, type[Stopped]] = {
    "interrupted": Interrupted,
    "stopped": Interrupted,
    "budget": BudgetReached,
    "fallback": TooManyFallbacks,
    "outage": BackboneOut,
    "refused": BackboneOut,
    "disk": BackboneOut,
}
NAMED = 6  # so many changed inputs are named in full


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
    _refuse_unset(folder, until)
    answering = answering_of(folder, backbone, base_url)
    own_prices = price_file(prices)
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
        roles={agent.id: agent.role for tenure in folder.tenures() for agent in tenure.population.agents},
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


def _refuse_unset(folder: RunFolder, until: str | None) -> None:
    """BadInput where weeks are to come in which a server may be called that lacks a variable of its environment."""
    org = folder.organization()
    if folder.mcp_servers() and status(folder).week < WorkCalendar(org.calendar).boundary(until or folder.config.until):
        refuse_unset(org)
