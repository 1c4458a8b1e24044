"""Commands on whole runs: fork, verify.

Entry point: `register`.  What they do is in `taskweave.driving` and `taskweave.experiments`; here they are parsed and said.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskweave import interrupts
from taskweave.cli import output
from taskweave.cli.app import AsJson, BaseUrl, Prompts, RunName, Until
from taskweave.cli.estimating import ask_to_go_on, may_be_billed
from taskweave.cli.options import BudgetHours, BudgetTokens, BudgetUsd, Limit, Look, MaxFallback, Patience, Tag, Yes, tags
from taskweave.cli.progress import Watch, amount, dollars
from taskweave.cli.reaching import tell
from taskweave.cli.running import concluded, told
from taskweave.errors import Divergence

if TYPE_CHECKING:
    from taskweave.experiments.fork import Fork
    from taskweave.records import Backbone
    from taskweave.runs import RunFolder

SHOWN = 10  # differences


def fork(
    run: RunName,
    at: Annotated[
        str,
        typer.Option(
            "--at", metavar="WEEK", help="From which week on it may differ: week:14, quarter:2 or a date in that week, e.g. --at week:14."
        ),
    ],
    incidents: Annotated[
        list[Path] | None,
        typer.Option(
            "--incidents",
            metavar="FILE",
            help="Incidents to add, in that week or later; may be given more than once, e.g. --incidents audit.yaml.",
            show_default=False,
        ),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            metavar="ID",
            help="An incident of the run to leave out; may be given more than once, e.g. --drop audit.",
            show_default=False,
        ),
    ] = None,
    redraw: Annotated[
        int | None,
        typer.Option(
            "--redraw",
            metavar="N",
            min=1,
            help="Make N runs that ask everything anew from that week on: controls, which show what chance alone changes, e.g. --redraw 5.",
            show_default=False,
        ),
    ] = None,
    each: Annotated[
        int | None,
        typer.Option(
            "--each",
            metavar="N",
            min=1,
            help="Make a fork for each of N incidents of every --incidents, drawn by the seed, e.g. --incidents library:policy --each 5.",
            show_default=False,
        ),
    ] = None,
    prompts: Prompts = None,
    org: Annotated[
        str | None,
        typer.Option(
            "--org",
            metavar="ORG",
            help="The organization from that week on: who joins, leaves or changes roles, goals, links, work, e.g. --org reorganized.yaml.",
            show_default=False,
        ),
    ] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            "--backbone", metavar="B", help="What answers from that week on, e.g. --backbone openai:gpt-4o-mini.", show_default=False
        ),
    ] = None,
    base_url: BaseUrl = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="NEW",
            help="The run folder to make, numbered where there are several, e.g. --out runs/audit. By default runs/<run>-week14.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[str | None, Until] = None,
    limit: Annotated[int | None, Limit] = None,
    patience: Annotated[float | None, Patience] = None,
    max_fallback: MaxFallback = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    budget_hours: BudgetHours = None,
    look: Look = True,
    yes: Yes = False,
    tag: Tag = None,
    as_json: AsJson = False,
) -> None:
    """See what a change would have made of a run, e.g. [bold]taskweave fork company-a-1 --at week:14 --incidents audit.yaml[/bold].

    The fork is a run of its own, and runs at once.  What did not change is taken from the run, which stays as it is: only what did is paid.
    """
    from taskweave import driving
    from taskweave.runs import Inbox, RunFolder

    parent = RunFolder.open(run)

    def agree(asked: Backbone, forks: list[Fork]) -> None:
        bounded = any(one is not None for one in (budget_usd, budget_tokens, budget_hours))
        if not yes and not bounded and may_be_billed(asked, parent.prices()):
            ask_to_go_on(asked, _most(parent, forks, until))

    made = driving.fork(
        parent,
        at=at,
        out=out,
        incidents=incidents or [],
        drop=drop or [],
        redraws=range(1, redraw + 1) if redraw is not None else (),
        each=each,
        prompts=[prompts] if prompts is not None else [],
        org=org,
        backbone=backbone,
        base_url=base_url,
        look=look,
        say=output.note,
        agree=agree,
        until=until,
        limit=limit,
        patience=patience,
        max_fallback=max_fallback,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        budget_hours=budget_hours,
        tags=tags(tag) if tag else None,
    )
    summaries: list[dict[str, Any]] = []
    whole: list[Path] = []  # of which all closed weeks can be read
    code = 0
    for number, (folder, answering) in enumerate(made, 1):
        interrupts.name(partial(interrupts.found, [str(folder.path)]))
        if len(made) > 1:
            output.note(f"{folder.path} ({number} of {len(made)})")
        tell(folder)
        with Watch(Inbox(folder.inbox)) as watch:
            outcome = driving.drive(folder, answering, observe=watch.see, told=told())
        summary, code = concluded(folder, outcome)
        summaries.append(summary)
        whole += [folder.path] if outcome.executed >= max(1, outcome.week) else []
        if code:
            for other, _ in made[number:]:
                output.note(f"not begun: taskweave resume {quote(str(other.path))}")
            break
    output.answer(summaries[0] if len(made) == 1 else {"runs": summaries})
    if whole:
        output.line(f"{'compare':<10} taskweave diff {' '.join(quote(str(path)) for path in (parent.path, *whole))}")
    if code:
        raise typer.Exit(code)


def verify(run: RunName, as_json: AsJson = False) -> None:
    """Re-execute a run from its journal and compare every row, e.g. [bold]taskweave verify company-a-1[/bold].

    Nothing is asked and nothing is changed.  Exit code 5 where something differs.
    """
    from taskweave.experiments.verify import verify as verified
    from taskweave.report.wording import plural
    from taskweave.runs import RunFolder

    folder = RunFolder.open(run)
    found = verified(folder)
    shown = [one._asdict() for one in found.differences[:SHOWN]]
    output.answer({"run": str(folder.path), "ok": found.ok, **found._asdict(), "differences": shown, "differing": len(found.differences)})
    if found.ok:
        digests = "its digest equals" if found.weeks == 1 else "their digests equal"
        what = f"{found.rows:,} rows equal those of run.db" if found.rows else f"{digests} the journal's (there is no run.db)"
        output.line(f"ok: {plural(found.weeks, 'week')} {'was' if found.weeks == 1 else 'were'} re-executed; {what}")
        return
    for name in found.changed:
        output.line(f"changed since the run began: {name}")
    if found.week is not None:
        output.line(f"week {found.week} is the first that differs from what the journal holds")
    for one in found.differences[:SHOWN]:
        if one.recorded is None or one.re_executed is None:
            output.line(f"{one.table} {one.id}: only in {'what was re-executed' if one.recorded is None else 'run.db'}")
        else:
            output.line(f"{one.table} {one.id}, {one.column}: {one.recorded!r} in run.db, {one.re_executed!r} re-executed")
    if (more := len(found.differences) - SHOWN) > 0:
        output.line(f"and {more:,} rows more")
    if found.unanswered:
        output.line(found.unanswered)
    raise typer.Exit(Divergence.exit_code)


def _most(parent: RunFolder, forks: list[Fork], until: str | None) -> list[str]:
    """What forks take if all is asked anew: the parent's own use a week."""
    from taskweave.org.calendar import WorkCalendar
    from taskweave.report.status import status
    from taskweave.report.wording import plural

    now = status(parent)
    weeks = WorkCalendar(parent.organization().calendar).boundary(until or parent.config.until) - forks[0].change.week + 1
    share = weeks * len(forks) / max(1, now.week)
    cost = dollars(None if now.cost_uncached is None else now.cost_uncached * share)
    taken = f"{amount(round(now.calls * share))} calls, {amount(round(now.prompt_tokens * share))} prompt tokens, {cost}"
    runs = f"{len(forks)} forks of" if len(forks) > 1 else "a fork of"
    most = f"{runs} {parent.path}, {plural(weeks, 'week')}: at most about {taken}, by what it took a week"
    return [f"{most}; what does not change is not asked again"]


def register(app: typer.Typer) -> None:
    app.command()(fork)
    app.command()(verify)
