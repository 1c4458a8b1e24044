"""The command that sets runs against each other: diff.

Entry point: `register`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson


class By(StrEnum):
    """By what a comparison is put together."""

    category = "category"


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
    by: Annotated[
        By | None,
        typer.Option(
            "--by",
            help="Ask of each incident what it asked for, who turned to it and whether that ended, and of each category which activities "
            "it brought, e.g. --by category.",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every difference, e.g. taskweave diff A B --all | less.")] = False,
    as_json: AsJson = False,
) -> None:
    """What an event changed, and what chance may have, e.g. [bold]taskweave diff company-a-1 what-if --control redrawn-1[/bold]."""
    from taskweave.api import compared, reacted
    from taskweave.experiments import telling_reactions
    from taskweave.experiments.telling import told

    if by is not None:
        reactions, warnings = reacted(runs[0], runs[1:], controls or (), until=until)
        output.warn(warnings)
        output.answer(reactions.to_dict())
        output.document(telling_reactions.told(reactions, all=everything, width=output.columns()))
        return
    found, warnings = compared(runs[0], runs[1:], controls or (), until=until)
    output.warn(warnings)
    output.answer(found.to_dict())
    output.document(told(found, all=everything, width=output.columns()))


def register(app: typer.Typer) -> None:
    app.command()(diff)
