"""The command about what may happen: incidents, the shipped library of them.

Entry point: `register`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson


class Category(StrEnum):
    """What kind of incident."""

    internal = "internal"
    policy = "policy"
    economic = "economic"
    technology = "technology"


class Severity(StrEnum):
    """How grave."""

    low = "low"
    medium = "medium"
    high = "high"


def incidents(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORDS", help="Words that shall stand in an incident, in any of its texts, e.g. data customer.", show_default=False
        ),
    ] = None,
    category: Annotated[
        Category | None, typer.Option("--category", help="Only those of this category, e.g. --category policy.", show_default=False)
    ] = None,
    severity: Annotated[
        Severity | None, typer.Option("--severity", help="Only those of this severity, e.g. --severity high.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the incidents that come with TaskWeave, with what they are modelled on, e.g. [bold]taskweave incidents data[/bold]."""
    from taskweave.simulation.incidents.catalogue import entries

    there = entries()
    found = [
        one
        for one in there
        if (category is None or one.category == category.value)
        and (severity is None or one.severity == severity.value)
        and all(map(one.says, words or ()))
    ]
    shown = ("name", "title", "category", "severity", "duration", "description", "effects", "basis")
    output.answer({"incidents": [{name: getattr(one, name) for name in shown} for one in found]})
    for one in found:
        output.line(f"{one.name}  ({one.category}, {one.severity}, {one.duration}; {', '.join(one.effects) or 'is heard'})")
        output.line(f"    {one.description}")
        output.line(f"    Basis: {one.basis}")
    if not found:
        output.line(f"None of the {len(there)} incidents says all of that. 'taskweave incidents' without words lists them all.")
        return
    output.line(f"{len(found)} of {len(there)}. Give one to a run with --incidents library:{found[0].name}, all of a category with")
    output.line(f"--incidents library:{found[0].category}, spread over the year with --rate 1/month.")


def register(app: typer.Typer) -> None:
    app.command()(incidents)
