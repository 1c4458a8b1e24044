"""The command that sets runs against each other: diff.

Entry point: `register`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson


def diff(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="The base, and the runs to set against it; redrawn forks among them are controls, e.g. runs/company-a-1 runs/what-if.",
            show_default=False,
        ),
    ],
    controls: Annotated[
        list[str] | None,
        typer.Option(
            "--control",
            metavar="RUN",
            help="A run in which nothing but chance differs from A; may be given several times, e.g. --control runs/redrawn-1.",
            show_default=False,
        ),
    ] = None,
    until: Annotated[
        str,
        typer.Option("--until", metavar="HORIZON", help="Where the comparison ends: week:8, quarter:2 or a date, e.g. --until week:18."),
    ] = "year",
    everything: Annotated[bool, typer.Option("--all", help="Show every difference, e.g. taskweave diff A B --all | less.")] = False,
    as_json: AsJson = False,
) -> None:
    """What an event changed, and what chance may have, e.g. [bold]taskweave diff company-a-1 what-if --control redrawn-1[/bold]."""
    from taskweave.api import compared
    from taskweave.experiments.telling import told

    found, warnings = compared(runs[0], runs[1:], controls or (), until=until)
    output.warn(warnings)
    output.answer(found.to_dict())
    output.document(told(found, all=everything, width=output.columns()))


def register(app: typer.Typer) -> None:
    app.command()(diff)
