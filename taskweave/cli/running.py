"""Commands that ask a backbone: run, resume, prompt.

Entry point: `register`.  What they do is in `taskweave.driving`; here they are parsed and what came of them is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskweave import interrupts
from taskweave.cli import output
from taskweave.cli.app import (
    AsJson,
    Assign,
    BaseUrl,
    Org,
    Prices,
    Prompts,
    Rate,
    RunName,
    Style,
    Until,
    Without,
    named_assign,
    named_style,
)
from taskweave.cli.options import (
    BudgetHours,
    BudgetTokens,
    BudgetUsd,
    Limit,
    Look,
    MaxFallback,
    Patience,
    Tag,
    Yes,
    tags,
)
from taskweave.cli.progress import Watch
from taskweave.cli.reaching import Mastodon, Smtp, named, tell
from taskweave.records import StyleName

if TYPE_CHECKING:
    from taskweave.estimating import Estimate
    from taskweave.records import Backbone
    from taskweave.runs import RunFolder
    from taskweave.simulation.year import Outcome
    from taskweave.telemetry import Telemetry


def run(
    org: Org,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="RUN",
            help="The run folder to make, e.g. --out runs/baseline. By default runs/<organization>-<seed>, numbered where it exists.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of everything that is drawn, e.g. --seed 7.")] = 1,
    until: Annotated[str, Until] = "year",
    backbone: Annotated[
        str,
        typer.Option(
            "--backbone",
            metavar="B",
            help="What answers: scripted (an offline stand-in, no model), openai:MODEL, local, local:FILE.gguf or replay:RUN, "
            "e.g. --backbone openai:gpt-4o-mini.",
        ),
    ] = "scripted",
    base_url: BaseUrl = None,
    prompts: Prompts = None,
    assign: Annotated[
        Assign,
        typer.Option("--assign", help="Who chooses the roles of subtasks: match (code, from free capacity) or model, e.g. --assign model."),
    ] = Assign.match,
    incidents: Annotated[
        list[Path] | None,
        typer.Option(
            "--incidents",
            metavar="FILE",
            help="Incidents to happen in the run, a file or library:NAME; may be given more than once, e.g. --incidents audit.yaml.",
            show_default=False,
        ),
    ] = None,
    rate: Rate = None,
    limit: Annotated[int, Limit] = 16,
    patience: Annotated[float, Patience] = 600.0,
    style: Annotated[
        Style | None,
        typer.Option(
            "--style",
            help="How steps are asked: full, or compact for weak models (small questions, one decision each). By default what suits the "
            "backbone, e.g. --style compact.",
            show_default=False,
        ),
    ] = None,
    routing: Annotated[
        Path | None,
        typer.Option(
            "--routing",
            metavar="FILE",
            help="Which backbone answers which tier, role or step, e.g. --routing cheap.yaml.",
            show_default=False,
        ),
    ] = None,
    max_fallback: MaxFallback = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    budget_hours: BudgetHours = None,
    without: Without = None,
    look: Look = True,
    prices: Prices = None,
    yes: Yes = False,
    tag: Tag = None,
    smtp: Smtp = None,
    mastodon: Mastodon = None,
    as_json: AsJson = False,
) -> None:
    """Simulate an organization into a new run folder, e.g. [bold]taskweave run company_a --until quarter[/bold]."""
    from taskweave.cli.estimating import agreement
    from taskweave.driving import Organization, begin, drive
    from taskweave.runs import Inbox, default_path

    warnings: list[str] = []
    organization = Organization.load(org, warn=warnings)
    output.warn(warnings)
    place = out if out is not None else default_path(organization.resolved.slug, seed)
    if not place.exists():  # else it is another run's, and refused
        interrupts.name(lambda: interrupts.found([str(place)]))
    inputs = [prompts] if prompts is not None else []

    def estimated(asked: Backbone, kind: StyleName | None) -> Estimate:
        from taskweave.backbones.pricing import read_prices
        from taskweave.estimating import estimate

        return estimate(
            organization,
            backbone=backbone,
            answering=asked,
            base_url=base_url,
            seed=seed,
            until=until,
            prompts=inputs,
            assign=named_assign(assign),
            incidents=incidents or [],
            rate=rate,
            style=kind,
            routing=routing,
            without=without or [],
            limit=limit,
            prices=None if prices is None else read_prices(prices),
            quarter=False,
            say=output.note,
        )

    folder, answering = begin(
        organization,
        out=place,
        backbone=backbone,
        seed=seed,
        until=until,
        base_url=base_url,
        prompts=inputs,
        assign=named_assign(assign),
        incidents=incidents or [],
        rate=rate,
        limit=limit,
        patience=patience,
        tags=tags(tag or []),
        style=named_style(style),
        routing=routing,
        max_fallback=max_fallback,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        budget_hours=budget_hours,
        without=without or [],
        look=look,
        say=output.note,
        prices=prices,
        servers=named(smtp, mastodon),
        agree=agreement(estimated, prices, yes=yes or any(one is not None for one in (budget_usd, budget_tokens, budget_hours))),
    )
    tell(folder)
    with Watch(Inbox(folder.inbox)) as watch:
        outcome = drive(folder, answering, observe=watch.see, told=told())
    conclude(folder, outcome)


def resume(
    run: RunName,
    until: Annotated[str | None, Until] = None,
    base_url: BaseUrl = None,
    limit: Annotated[int | None, Limit] = None,
    patience: Annotated[float | None, Patience] = None,
    max_fallback: MaxFallback = None,
    budget_usd: BudgetUsd = None,
    budget_tokens: BudgetTokens = None,
    budget_hours: BudgetHours = None,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run that ended early, or to a later horizon, e.g. [bold]taskweave resume company-a-1 --until year[/bold].

    It inherits all it was told before; nothing that was answered is asked again.
    """
    interrupts.name(lambda: interrupts.found([run]))
    from taskweave import driving
    from taskweave.runs import Inbox, RunFolder

    folder = RunFolder.open(run)
    tell(folder)
    with Watch(Inbox(folder.inbox)) as watch:
        folder, outcome = driving.resume(
            folder,
            until=until,
            base_url=base_url,
            limit=limit,
            patience=patience,
            max_fallback=max_fallback,
            budget_usd=budget_usd,
            budget_tokens=budget_tokens,
            budget_hours=budget_hours,
            observe=watch.see,
            prices=prices,
            told=told(),
        )
    conclude(folder, outcome)


def prompt(
    org: Org,
    step: Annotated[str, typer.Option("--step", metavar="S", help="The step whose prompt to show, e.g. --step formulate.")],
    prompts: Prompts = None,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the week that is simulated for it, e.g. --seed 7.")] = 1,
    style: Annotated[
        Style, typer.Option("--style", help="How steps are asked: full, or compact in small questions, e.g. --style compact.")
    ] = Style.full,
    as_json: AsJson = False,
) -> None:
    """Show a rendered prompt before any run, e.g. [bold]taskweave prompt company_a --step execute[/bold].

    It is the first request of that step in a scripted rehearsal of the organization's first weeks: what is shown is what is sent.
    """
    from taskweave.driving import Organization
    from taskweave.rehearsal import first_request

    shown = first_request(Organization.load(org), step, prompts=prompts, seed=seed, style="compact" if style is Style.compact else "full")
    output.answer(
        {"step": step, "site": shown.site, "messages": [{"role": m.role, "text": m.text} for m in shown.messages], "tokens": shown.tokens}
    )
    output.line(f"# {shown.site}: {shown.tokens} tokens")
    for message in shown.messages:
        output.line(f"\n--- {message.role}\n{message.text}")


def told() -> Telemetry:
    """What the environment asks to be told of a run, with warnings on stderr."""
    from taskweave.telemetry import Telemetry

    return Telemetry(warn=lambda text: output.warn([text]))


def conclude(folder: RunFolder, outcome: Outcome) -> None:
    """Say what came of a run and what to type next; ends with its exit code."""
    summary, code = concluded(folder, outcome)
    output.answer(summary)
    if code:
        raise typer.Exit(code)


def concluded(folder: RunFolder, outcome: Outcome) -> tuple[dict[str, Any], int]:
    """Say what came of a run and what to type next; what --json carries, and the exit code."""
    from taskweave.cli.closing_words import after
    from taskweave.driving import ending

    summary = after(folder, outcome)
    if (early := ending(outcome)) is None:
        return summary, 0
    output.note(f"taskweave: {stopped(folder, outcome)}")
    return summary, early.exit_code


def stopped(folder: RunFolder, outcome: Outcome) -> str:
    """Why a run ended early, and the command that resumes it."""
    from taskweave.runs.resuming import resume_command

    cause = f": {outcome.cause.rstrip('.')}" if outcome.cause else ""
    again = f", of which {outcome.executed} had been re-executed" if outcome.executed < outcome.week else ""
    command = resume_command(folder.path, outcome.bound)
    return f"{outcome.stop} after week {outcome.week}{again}{cause}. Continue with: {command}"


def register(app: typer.Typer) -> None:
    app.command()(run)
    app.command()(resume)
    app.command()(prompt)
