"""Commands about an organization, before any run: new, validate, show, schema.

Entry point: `register`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson, Org
from taskweave.errors import BadInput, FileInvalid, IncidentInvalid, Problem

if TYPE_CHECKING:
    from taskweave.org.population import Population
    from taskweave.org.schema import Organization as Resolved
    from taskweave.runs import RunFolder


class Format(StrEnum):
    """How `show` draws an organization."""

    tree = "tree"
    mermaid = "mermaid"
    graphml = "graphml"


def new(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder to make, e.g. acme.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make a folder with a starter organization, prompts to edit and a README, e.g. [bold]taskweave new acme[/bold]."""
    from taskweave.shipped import copy_starter

    files = copy_starter(folder)
    output.answer({"folder": str(folder), "files": [str(file) for file in files]})
    output.line(f"{folder} holds a starter organization, incidents, {sum(f.suffix == '.md' for f in files) - 1} prompts and a README.")
    output.line(f"Next: taskweave run {quote(str(folder / 'organization.yaml'))} --until quarter")


def validate(
    org: Org,
    incidents: Annotated[
        list[Path] | None,
        typer.Option(
            "--incidents",
            metavar="FILE",
            help="Incidents to check against it as well; may be given more than once, e.g. --incidents audit.yaml.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an organization file; reports every problem at once, e.g. [bold]taskweave validate acme.yaml[/bold]."""
    from taskweave.driving import Organization
    from taskweave.tools.outside.servers import servers_of
    from taskweave.tools.shelf import by_role

    warnings: list[str] = []
    try:
        organization = Organization.load(org, warn=warnings).resolved
        happening = _incidents(organization, incidents or [])
    except FileInvalid as invalid:
        problems = [{"file": p.file, "line": p.line, "what": p.what} for p in invalid.problems]
        output.answer({"valid": False, "problems": problems, "warnings": warnings})
        for problem in invalid.problems:
            output.note(str(problem))
        _warn(warnings)
        raise typer.Exit(invalid.exit_code) from None
    _warn(warnings)
    by_role(organization)
    reached = servers_of(organization).told()
    agents = sum(role.count for role in organization.roles.values())
    counts = {
        "agents": agents,
        "roles": len(organization.roles),
        "tiers": max(role.tier for role in organization.roles.values()),
        "departments": len(organization.departments),
    }
    counts |= {kind: one.count for kind, one in organization.entities.items()}
    if incidents:
        counts["incidents"] = happening
    output.answer({"valid": True, "name": organization.name, **counts, "reaches": reached, "problems": [], "warnings": warnings})
    output.line(
        f"{organization.name} is valid: "
        + ", ".join(f"{number} {name.removesuffix('s') if number == 1 else name}" for name, number in counts.items())
        + "."
    )
    for what in reached:
        output.line(f"Leaves this machine: {what}.")


def _incidents(organization: Resolved, files: list[Path]) -> int:
    """How many incidents the files hold.  Raises IncidentInvalid with the problems of all of them."""
    from taskweave.org.calendar import WorkCalendar
    from taskweave.org.population import Population
    from taskweave.simulation.incidents import load_incidents

    population, calendar = Population.sample(organization, 1), WorkCalendar(organization.calendar)
    count = 0
    problems: list[Problem] = []
    for file in files:
        try:
            count += len(load_incidents(file, organization, population, calendar))
        except IncidentInvalid as invalid:
            problems += invalid.problems
    if problems:
        raise IncidentInvalid(problems)
    return count


def _warn(warnings: list[str]) -> None:
    output.warn(warnings)


def show(
    org: Org,
    resolved: Annotated[
        bool,
        typer.Option("--resolved", help="Print the full file, each value marked given or inferred, e.g. --resolved > acme-full.yaml."),
    ] = False,
    form: Annotated[
        Format, typer.Option("--format", help="How to draw who reports to whom: tree, mermaid or graphml, e.g. --format mermaid.")
    ] = Format.tree,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the people that are made up, e.g. --seed 7.")] = 1,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="WEEK", help="Of a run: the week whose organization to show, e.g. --at week:20.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show who works in an organization and who may give work to whom, e.g. [bold]taskweave show company_a[/bold].

    Of a run it shows those who work there, and which organization holds in which weeks.
    """
    from taskweave.driving import Organization
    from taskweave.org import show as drawing
    from taskweave.org.population import Population

    if (run := _run(org)) is not None:
        organization, population, held = _held(run, at)
    elif at is not None:
        raise BadInput(f"--at {at}: {org!r} is no run. Leave it out, or name a run, for example runs/company-a-1.")
    else:
        warnings: list[str] = []
        organization, held = Organization.load(org, warn=warnings).resolved, []
        _warn(warnings)
        population = Population.sample(organization, seed)
    drawn = {Format.tree: drawing.tree, Format.mermaid: drawing.mermaid, Format.graphml: drawing.graphml}
    text = (drawing.resolved if resolved else drawn[form])(organization, population)
    answer = {"name": organization.name, "format": "resolved" if resolved else form.value, "text": text}
    output.answer(answer | ({"organizations": held} if held else {}))
    for one in held if len(held) > 1 else ():
        output.note(f"weeks {one['from']}-{one['to']}: {one['file']}")
    output.document(text)


def _run(name: str) -> RunFolder | None:
    """The run of that path, or of that name under runs/ where no file and no built-in organization is called so."""
    from taskweave.runs import RunFolder
    from taskweave.runs.folder import CONFIG, RUNS
    from taskweave.shipped import built_in

    named = (RUNS / name / CONFIG).is_file() and not Path(name).exists() and name not in built_in()
    return RunFolder.open(name) if named or (Path(name) / CONFIG).is_file() else None


def _held(run: RunFolder, at: str | None) -> tuple[Resolved, Population, list[dict[str, int | str]]]:
    """The organization of a week, of the first where none is named, its people, and which holds in which weeks."""
    from taskweave.org.calendar import WorkCalendar

    tenures = run.tenures()
    calendar = WorkCalendar(tenures[0].organization.calendar)
    week = 1 if at is None else calendar.week_of_day(calendar.tick_of(at)).number
    now = next(one for one in reversed(tenures) if one.week <= week)
    ends = [*(one.week - 1 for one in tenures[1:]), len(calendar.weeks)]
    held: list[dict[str, int | str]] = [
        {"from": one.week, "to": end, "file": one.file} for one, end in zip(tenures, ends, strict=True) if end >= one.week
    ]
    return now.organization, now.population, held


def schema() -> None:
    """Print the JSON Schema of organization files, for editors, e.g. [bold]taskweave schema > organization.schema.json[/bold]."""
    import json

    from taskweave.org.schema import json_schema

    output.document(json.dumps(json_schema(), indent=2, ensure_ascii=True))


def register(app: typer.Typer) -> None:
    for command in (new, validate, show, schema):
        app.command()(command)
