"""The command that serves a run to others: mcp.

Entry point: `register`.
"""

from __future__ import annotations

from typing import Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import RunName


def mcp(
    run: RunName,
    agent: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="AGENT",
            help="Serve also what this agent may read with the tools of its role, its own mailbox for instance, e.g. --as data-analyst.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Serve a run's pool and tools to an MCP client on stdin and stdout, read-only, e.g. [bold]taskweave mcp company-a-1[/bold]."""
    from taskweave.serving.stdio import refuse_missing, serve

    refuse_missing()
    from taskweave import __version__, interrupts
    from taskweave.api import Run
    from taskweave.serving.desk import Desk

    opened = Run.open(run)
    desk = Desk(opened.folder, opened.pool, agent=agent)
    output.warn(opened.warnings)
    for note in desk.notes:
        output.note(f"taskweave: {note}")
    output.note(f"taskweave: serving {opened.path} over MCP on stdin and stdout ({len(desk.tools)} tools); Ctrl-C ends it")
    interrupts.end_at_once()
    try:
        serve(desk, __version__)
    finally:
        desk.close()


def register(app: typer.Typer) -> None:
    app.command()(mcp)
