"""Commands that read what a run holds: trace, call, digest, export.

Entry point: `register`.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson, RunName


class Format(StrEnum):
    """What a run can be exported as."""

    jsonl = "jsonl"
    lengths = "lengths"


def trace(
    run: RunName,
    id: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A result, task, subtask, plan or incident, by its id or the end of it, e.g. Y1/Q1/M01/W02@technology-manager/t1; "
            "or a case of recurring work, or all of one, e.g. work/tickets/W14/7 or work/tickets.",
            show_default=False,
        ),
    ],
    depth: Annotated[int, typer.Option("--depth", min=0, help="How many links to follow from it, e.g. --depth 4.")] = 2,
    breadth: Annotated[
        int, typer.Option("--breadth", min=1, help="The most links of a kind that are shown of each thing met, e.g. --breadth 50.")
    ] = 6,
    as_json: AsJson = False,
) -> None:
    """What a result rests on, and what rests on it, e.g. [bold]taskweave trace company-a-1 W02@technology-manager/t1/s1[/bold]."""
    from taskweave.api import Run
    from taskweave.report import case_trace
    from taskweave.report.departures import departures, told
    from taskweave.report.trace import as_json as values
    from taskweave.report.trace import render

    opened = Run.open(run)
    if (recurring := opened.recurring(id)) is not None:
        output.warn(opened.warnings)
        output.answer(case_trace.as_json(recurring))
        output.show(case_trace.render(recurring))
        return
    found = opened.trace(id, depth=depth, breadth=breadth)
    with closing(opened.pool()) as pool:
        left = [one for one in departures(pool.rows("events")) if one.cause == found.id] if found.incident else []
    output.warn(opened.warnings)
    output.answer(values(found) | ({"departures": [asdict(one) for one in left]} if found.incident else {}))
    output.show(render(found))
    for one in left:
        output.line(told(one))
        for fate in one.open:
            became = f"{fate.kind} to {fate.to or 'nobody yet'} as {fate.successor}" if fate.kind == "handed over" else fate.kind
            output.line(f"  {fate.subtask}: {became}")


def call(
    run: RunName,
    site: Annotated[
        str,
        typer.Argument(
            metavar="SITE",
            help="Where the call was made; `trace` and the export name it, e.g. Y1/Q1/M01/W02@technology-manager:formulate.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """What was asked at a site and what was answered, e.g. [bold]taskweave call company-a-1 Y1@chief-executive-officer:formulate[/bold]."""
    from taskweave.report.calls import as_json as values
    from taskweave.report.calls import calls_at, render
    from taskweave.runs import RunFolder

    found = calls_at(RunFolder.open(run), site)
    output.answer(values(found))
    output.show(render(found))


def digest(run: RunName, as_json: AsJson = False) -> None:
    """The sha256 that equal runs share, e.g. [bold]taskweave digest company-a-1[/bold]."""
    from taskweave.api import Run

    opened = Run.open(run)
    found = opened.fingerprint()
    output.warn(opened.warnings)
    output.answer({"run": str(opened.path), **found._asdict()})
    output.line(found.digest)


def export(
    run: RunName,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="The folder to write into (lengths: the file), e.g. --out data.", show_default=False),
    ],
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            help="What to write: jsonl (one file a table) or lengths (one file, for estimates), e.g. --format jsonl.",
        ),
    ] = Format.jsonl,
    as_json: AsJson = False,
) -> None:
    """Write a run's tables as files, e.g. [bold]taskweave export company-a-1 --format jsonl --out data[/bold]."""
    from taskweave.api import Run

    opened = Run.open(run)
    files = opened.export(out, form.value)
    output.warn(opened.warnings)
    output.answer({"run": str(opened.path), "files": [str(file) for file in files], "warnings": opened.warnings})
    output.line(str(files[0]) if form is Format.lengths else f"{len(files)} files in {out}, for example {files[0]}")


def register(app: typer.Typer) -> None:
    for command in (trace, call, digest, export):
        app.command()(command)
