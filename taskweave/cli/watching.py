"""Commands that speak to a run while another process drives it: status, runs, inject, pause, continue, stop.

Entry point: `register`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson, RunName
from taskweave.cli.progress import amount, dollars, duration, priced, silent
from taskweave.errors import RunRefused

if TYPE_CHECKING:
    from taskweave.report.status import Status


_ORIGINS = {"scripted": " (a scripted stand-in, no model)", "mixed": " (a scripted stand-in and models, by routes)"}


def status(run: RunName, as_json: AsJson = False) -> None:
    """How far a run is and what it took, also while it runs, e.g. [bold]taskweave status company-a-1[/bold]."""
    from taskweave.report.status import status as look
    from taskweave.runs import RunFolder

    now = look(RunFolder.open(run), deep="computed")
    output.answer(now.row())
    output.show(_table(now))


def runs(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="[PATTERN]", help="Run folders, or a run's name, e.g. 'runs/company*'. By default all under runs/.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the runs and how far they are, e.g. [bold]taskweave runs[/bold]."""
    from rich.table import Table

    from taskweave.report.status import survey
    from taskweave.report.wording import percent
    from taskweave.runs import list_runs

    found = survey(list_runs(pattern))
    output.answer({"runs": found})
    if not found:
        output.line(f"There are no runs under {pattern or 'runs/'}. Start one with: taskweave run company_a")
        return
    table = Table()
    table.add_column("run", no_wrap=True, min_width=max(len(one["run"]) for one in found))  # what is typed next
    for name in ("organization", "backbone", "state", "week", "date", "done", "fallback", "calls", "cost"):
        table.add_column(name)
    for one in found:
        if one["state"] == "unreadable":
            table.add_row(one["run"], "-", "-", one["state"], *["-"] * 6)
            output.note(f"warning: {one['cause']}")
            continue
        week, cost, share = f"{one['week']}/{one['weeks']}", priced(one["cost"]), percent(one["fallback_share"], 1)
        named = (one[name] for name in ("run", "organization", "backbone", "state"))
        table.add_row(*named, week, one["date"], str(one["done"]), share, amount(one["calls"]), cost)
    output.show(table)
    for one in found:
        notes = (
            [f"a fork of {one['parent']} from week {one['parent_week']} on{_changed(one['parent_changed'])}"] if one.get("parent") else []
        )
        notes += [f"without {', '.join(one['without'])}"] if one.get("without") else []
        notes += [f"{key}={value}" for key, value in one.get("tags", {}).items()]
        if notes:
            output.line(f"{one['run']}: {', '.join(notes)}")


def inject(
    run: RunName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="An incident file, e.g. audit.yaml.", show_default=False)],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="WHEN",
            help="When it happens, where the file does not say: week:14, quarter:2 or a date, e.g. --at week:14. "
            "By default at the next working day.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let something happen in a run, live or before it is resumed, e.g. [bold]taskweave inject company-a-1 audit.yaml[/bold]."""
    from taskweave import driving
    from taskweave.runs import RunFolder

    folder = RunFolder.open(run)
    warnings: list[str] = []
    ids = driving.inject(folder, file, at=at, warn=warnings)
    output.answer({"run": str(folder.path), "injected": ids, "warnings": warnings})
    output.warn(warnings)
    for id_ in ids:
        output.line(f"{id_}: in the inbox of {folder.path}")
    if folder.holder() is None:
        output.line(f"Nobody drives the run now; it is heard when it goes on: taskweave resume {quote(str(folder.path))}")


def pause(run: RunName, as_json: AsJson = False) -> None:
    """Let a live run stand still; calls in flight are finished, e.g. [bold]taskweave pause company-a-1[/bold]."""
    _control(run, "pause", "It stands still after the calls in flight. Go on with: taskweave continue {run}")


def continue_(run: RunName, as_json: AsJson = False) -> None:
    """Let a paused run go on, e.g. [bold]taskweave continue company-a-1[/bold]."""
    _control(run, "continue", "It goes on. See how far it is with: taskweave status {run}")


def stop(run: RunName, as_json: AsJson = False) -> None:
    """End a live run; calls in flight are finished and kept, e.g. [bold]taskweave stop company-a-1[/bold]."""
    _control(run, "stop", "It ends after the calls in flight. Continue it later with: taskweave resume {run}")


def _control(run: str, kind: str, then: str) -> None:
    from taskweave.runs import Inbox, RunFolder

    folder = RunFolder.open(run)
    if (holder := folder.holder()) is None:
        resume = f"Continue it with 'taskweave resume {quote(str(folder.path))}'."
        raise RunRefused(f"{folder.path}: nobody drives the run, so there is nothing to {kind}. {resume}")
    Inbox(folder.inbox).control(kind)
    output.answer({"run": str(folder.path), "asked": kind, "holder": str(holder)})
    output.line(f"Asked {holder} to {kind}. " + then.format(run=quote(str(folder.path))))


def _cases(came: int, completed: int, abandoned: int = 0) -> str:
    gone = f"{abandoned:,} abandoned, " if abandoned else ""
    return f"{came:,} cases arrived, {completed:,} completed, {gone}{came - completed - abandoned:,} open"


def _changed(words: Sequence[str]) -> str:
    """What a fork changed, in brackets."""
    return f" ({', '.join(words)})" if words else ""


def _table(now: Status) -> object:
    from rich.table import Table

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, value in _lines(now):
        table.add_row(name, value)
    return table


def _lines(now: Status) -> list[tuple[str, str]]:
    from taskweave.report import economy

    done = f"{now.done} done" + (f" ({now.done_without_fallback} without fallbacks)" if now.done_without_fallback < now.done else "")
    cached = f" ({amount(now.cached_tokens)} cached)" if now.cached_tokens else ""
    tokens = f"{amount(now.prompt_tokens)} prompt{cached}, {amount(now.completion_tokens)} completion"
    lost = f"{amount(now.lost)} lost" + (f" (at most {amount(now.lost_tokens)} tokens)" if now.lost else "")
    lines = [
        ("run", now.run),
        ("organization", f"{now.organization}, seed {now.seed}"),
        ("backbone", now.backbone + _ORIGINS.get(now.origin, "")),
        *([("fork of", f"{now.parent}, from week {now.parent_week} on{_changed(now.parent_changed)}")] if now.parent is not None else ()),
        *([("tags", ", ".join(f"{key}={value}" for key, value in now.tags.items()))] if now.tags else ()),
        *([("without", ", ".join(now.without))] if now.without else []),
        ("state", now.state + (f": {now.cause}" if now.cause else "")),
        ("held by", now.holder or "nobody"),
        ("simulated time", f"{now.date}; {now.week} of {now.weeks} weeks closed"),
        ("time left", duration(now.left)),
        *([] if now.trouble is None else [("trouble", silent(*now.trouble))]),
        ("tasks", f"{done}, {now.spilled} spilled, {now.blocked} blocked"),
        *((name, _cases(*counts)) for name, counts in now.cases.items()),
        ("calls", f"{_calls(now)}, {lost}"),
        *([("asked as", ", ".join(f"{name} {n:,}" for name, n in now.rungs.items()))] if now.rungs else ()),
        ("tokens", tokens),
        *(economy.lines(now.economy) if now.economy is not None else ()),
        ("cost", priced(now.cost, now.cost_uncached)),
        *_budgets(now),
        *_fallbacks(now),
        *_by_backbone(now),
        ("incidents", (", ".join(now.injections) or "none") + (f"; {now.to_come} to come" if now.to_come else "")),
    ]
    if now.waiting:
        lines.append(("in the inbox", ", ".join(now.waiting)))
    if now.rejected:
        lines.append(("rejected", "; ".join(now.rejected)))
    return [*lines, ("next", now.next)]


def _budgets(now: Status) -> list[tuple[str, str]]:
    parts = []
    for name, (spent, allowed) in now.budgets.items():
        if name == "budget_usd":
            parts.append(f"{dollars(spent)} of {dollars(allowed)}")
        elif name == "budget_hours":
            parts.append(f"{duration(3600 * spent)} of {duration(3600 * allowed)}")
        else:
            parts.append(f"{spent:,.0f} of {allowed:,.0f} tokens")
    lost = ", what is lost or in flight counted at the most" if now.lost or now.in_flight else ""
    return [("budget", f"{'; '.join(parts)} taken{lost}")] if parts else []


def _calls(now: Status) -> str:
    if now.parent is None:
        return f"{amount(now.calls)} made"
    return f"{amount(now.calls)} answered: {amount(now.inherited)} taken from {now.parent}, {amount(now.paid)} its own"


def _fallbacks(now: Status) -> list[tuple[str, str]]:
    """The share of answers that code had to make, and where they are: a share of all would hide a step that always fails."""
    from taskweave.report.wording import percent

    said = f"{percent(now.fallback_share, 1)} of {now.asked:,} answers" if now.asked else "-"
    said += " until the stop" if now.asked and not now.answers else ""
    if now.max_fallback is not None:
        said += f" (stops beyond {100 * now.max_fallback:g} %)"
    lines = [("fallback share", said)]
    for step, levels in now.answers.items():
        found = [f"{level} {percent(made / of, 1)} ({made:,} of {of:,})" for level, (of, _, made) in levels.items() if made]
        lines += [(f"  {step}", ", ".join(found))] if found else []
    return lines


def _by_backbone(now: Status) -> list[tuple[str, str]]:
    """What each backbone took, where there is more than one."""
    from taskweave.report.wording import percent

    lines = []
    for name, used in now.backbones.items() if len(now.backbones) > 1 else ():
        share = percent(used["fallback"] / used["asked"], 1) if used["asked"] else "-"
        tokens = f"{amount(used['prompt_tokens'])} prompt, {amount(used['completion_tokens'])} completion tokens"
        lines.append((f"  {name}", f"{amount(used['calls'])} calls, {tokens}, fallbacks {share}"))
    return [("by backbone", ""), *lines] if lines else []


def register(app: typer.Typer) -> None:
    app.command()(status)
    app.command()(runs)
    app.command()(inject)
    app.command()(pause)
    app.command(name="continue")(continue_)
    app.command()(stop)
