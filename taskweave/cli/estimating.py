"""`taskweave estimate`, and the question that a run on a paid backbone asks before anything is sent.

Entry points: `register`, `agreement`.  What is counted is in `taskweave.estimating`; here it is shown.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson, Assign, BaseUrl, Org, Prices, Prompts, Rate, Style, Without, named_assign, named_style
from taskweave.cli.progress import amount, dollars, duration
from taskweave.errors import BadInput, Interrupted
from taskweave.records import StyleName

if TYPE_CHECKING:
    from taskweave.backbones.pricing import PriceList
    from taskweave.estimating import Estimate, Row, Span
    from taskweave.records import Backbone

MODEL = "openai:gpt-4o-mini"  # what is estimated where nothing is named: the stand-in costs nothing
_TITLES = (("steps", "step"), ("levels", "level"), ("roles", "role"), ("backbones", "backbone"))


def estimate(
    org: Org,
    backbone: Annotated[
        str | None,
        typer.Option(
            "--backbone",
            metavar="B",
            help=f"What would answer; nothing is asked of it, e.g. --backbone local. By default {MODEL}; with --routing scripted, as run.",
            show_default=False,
        ),
    ] = None,
    base_url: BaseUrl = None,
    until: Annotated[
        str,
        typer.Option("--until", metavar="HORIZON", help="Where the run would end, as for run, e.g. --until quarter:2."),
    ] = "year",
    seed: Annotated[int, typer.Option("--seed", help="The seed that the run would have, e.g. --seed 7.")] = 1,
    prompts: Prompts = None,
    assign: Annotated[Assign, typer.Option("--assign", help="Who would choose the roles of subtasks, e.g. --assign model.")] = Assign.match,
    incidents: Annotated[
        list[Path] | None,
        typer.Option("--incidents", metavar="FILE", help="Incidents that would happen, e.g. --incidents audit.yaml.", show_default=False),
    ] = None,
    rate: Rate = None,
    style: Annotated[
        Style | None, typer.Option("--style", help="How steps would be asked, e.g. --style compact.", show_default=False)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many calls would be in flight, e.g. --limit 4.")] = 16,
    lengths: Annotated[
        str | None,
        typer.Option(
            "--lengths",
            metavar="FILE",
            help="Measured lengths of answers: a file of them, or a run to measure, e.g. --lengths runs/pilot.",
            show_default=False,
        ),
    ] = None,
    routing: Annotated[
        Path | None,
        typer.Option(
            "--routing", metavar="FILE", help="Which backbone would answer what, e.g. --routing routing.yaml.", show_default=False
        ),
    ] = None,
    without: Without = None,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """What a run would take in tokens, cost and hours, without asking a model, e.g. [bold]taskweave estimate company_a[/bold].

    The organization is rehearsed with the scripted stand-in and the run's own prompts; the answers are made as long as measured ones.
    """
    from taskweave.backbones.pricing import read_prices
    from taskweave.driving import Organization
    from taskweave.estimating import estimate as count
    from taskweave.estimating import lengths_from

    found = count(
        Organization.load(org),
        backbone=backbone or (MODEL if routing is None else "scripted"),
        base_url=base_url,
        seed=seed,
        until=until,
        prompts=[prompts] if prompts is not None else [],
        assign=named_assign(assign),
        incidents=incidents or [],
        rate=rate,
        style=named_style(style),
        routing=routing,
        without=without or [],
        limit=limit,
        lengths=None if lengths is None else lengths_from(lengths),
        prices=None if prices is None else read_prices(prices),
        say=output.note,
    )
    output.answer(as_values(found))
    for span in found.spans:
        output.show(_table(span))
    for name, text in remarks(found):
        output.line(f"{name:<8} {text}")


def agreement(
    count: Callable[[Backbone, StyleName | None], Estimate], price_file: Path | None, *, yes: bool
) -> Callable[[Backbone, StyleName | None], None]:
    """What a run calls before it begins: nothing for a backbone that nobody bills, else the estimate and the question.  `yes` is the answer
    beforehand, as a budget is.

    Raises BadInput where nobody can be asked, Interrupted where the answer is no.
    """

    def agree(backbone: Backbone, style: StyleName | None) -> None:
        from taskweave.backbones.pricing import read_prices

        if not yes and may_be_billed(backbone, None if price_file is None else read_prices(price_file)):
            ask_to_go_on(backbone, summary(count(backbone, style)))

    return agree


def may_be_billed(backbone: Backbone, prices: PriceList | None) -> bool:
    """Whether somebody may be billed for what it, or one of its members, answers; `prices` are a person's own."""
    from taskweave.backbones.members import members_of
    from taskweave.backbones.pricing import must_ask, price_of

    members = members_of(backbone)
    return any(must_ask(name, getattr(one, "base_url", None), price_of(name, prices), yes=False) for name, one in members.items())


def ask_to_go_on(backbone: Backbone, figures: list[str]) -> None:
    """Show what it will take and ask.  Raises BadInput where nobody can be asked, Interrupted where the answer is no."""
    for text in figures:
        output.note(text)
    if not _on_a_terminal():
        raise BadInput(
            f"{backbone.name} may be billed, and nobody can be asked here. Add --yes to go on, or bound it, for example with "
            "--budget-usd 5; nothing was written."
        )
    sys.stderr.write("go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Interrupted("not begun; nothing was written and no model was asked")


def _on_a_terminal() -> bool:
    """Whether somebody sees a question and can answer it."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def summary(found: Estimate) -> list[str]:
    """The estimate of a run's horizon in a few lines."""
    from taskweave.report.wording import plural

    span = found.spans[-1]
    cost = "no price known" if span.total.cost is None else f"about {dollars(span.total.cost)}"
    calls, prompt, completion = (amount(number) for number in span.total[1:4])
    taken = f"about {calls} calls, {prompt} prompt and {completion} completion tokens, {cost}"
    return [
        f"{found.organization} with {found.backbone}, {plural(span.weeks, 'week')}: {taken} (an estimate)",
        *(f"{name}: {text}" for name, text in remarks(found) if name in ("price", "lengths", "hours")),
    ]


def remarks(found: Estimate) -> list[tuple[str, str]]:
    """What the figures rest on, and what they leave out."""
    lengths = found.lengths
    out = f", without {', '.join(found.without)}" if found.without else ""
    lines = [
        (
            "method",
            f"tokens are UTF-8 bytes / 4 of the prompts that a scripted rehearsal sends (seed {found.seed}, style {found.style}{out}), x "
            f"{lengths.prompt_factor:.3g} for the provider's, and the answers' measured lengths",
        ),
        ("lengths", f"of {lengths.as_of}, measured on {lengths.measured_on}"),
    ]
    if found.unmeasured:
        lines.append(("", f"nothing measured of {', '.join(found.unmeasured)}: the shipped length is taken, else the stand-in's own"))
    for name, price in found.prices.items():
        of_whom = f"{name}: " if len(found.prices) > 1 else ""
        if price is None:
            lines.append(("price", f"no price known of {name}; give one with --prices FILE"))
        elif max(price.input, price.output) > 0:
            of = f"of {price.as_of}" if price.as_of else "without a date"
            whose = "your own" if price.own else "list"
            per = f"USD per million tokens: {price.input:g} prompt, {price.output:g} completion; nothing cached"
            lines.append(("price", f"{of_whom}{whose} prices {of}, {per}"))
    if any(span.backbones for span in found.spans):
        lines.append(("routes", f"what no route takes goes to {found.backbone} (--backbone), as in a run"))
    if found.speed is not None:
        said = f"{found.speed.rate:,.0f} completion tokens a second with {found.speed.in_flight} in flight, as probed"
        hours = ", ".join(f"{span.until}: {duration(span.hours * 3600)}" for span in found.spans if span.hours is not None)
        lines.append(("hours", f"{hours} at least ({said}; what waits for another answer is not in it)"))
    else:
        lines.append(("hours", _unknown_hours(found)))
    lines.append(("", "an estimate: a model plans otherwise than the stand-in, and so is asked for more or less"))
    return lines


def _unknown_hours(found: Estimate) -> str:
    """Why no hours are known, and what finds them out."""
    models = [name for name in found.prices if name.partition(":")[0] in ("openai", "local")]
    if found.backbone in models:
        where = "" if found.base_url is None else f" --base-url {quote(found.base_url)}"
        return f"not known: 'taskweave probe --backbone {quote(found.backbone)}{where}' finds out how fast it answers"
    return f"not known: of {', '.join(models)}" if models else "none to speak of: no model is asked"


def as_values(found: Estimate) -> dict[str, Any]:
    """All of it, as JSON values."""
    from dataclasses import asdict

    return {
        **found._asdict(),
        "estimate": True,
        "lengths": asdict(found.lengths),
        "prices": {name: None if price is None else asdict(price) for name, price in found.prices.items()},
        "speed": None if found.speed is None else found.speed._asdict(),
        "spans": [
            {
                **span._asdict(),
                **{name: [row._asdict() for row in getattr(span, name)] for name, _ in _TITLES},
                "total": span.total._asdict(),
            }
            for span in found.spans
        ],
    }


def _table(span: Span) -> Any:
    from rich.table import Table
    from rich.text import Text

    title = Text(f"\n{span.until}: {span.weeks} week{'s' if span.weeks != 1 else ''}", "bold")
    table = Table(title=title, title_justify="left", title_style="", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("by", overflow="fold")
    for name in ("calls", "prompt tokens", "completion", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, heading in _TITLES:
        if getattr(span, name):
            table.add_row(Text(heading, "dim"))
        for row in getattr(span, name):
            table.add_row(*_cells(row))
    table.add_row(*(Text(cell, "bold") for cell in _cells(span.total)))
    return table


def _cells(row: Row) -> tuple[str, str, str, str, str]:
    return (f"  {row.name}", f"{row.calls:,.0f}", f"{row.prompt:,.0f}", f"{row.completion:,.0f}", dollars(row.cost))


def register(app: typer.Typer) -> None:
    app.command()(estimate)
