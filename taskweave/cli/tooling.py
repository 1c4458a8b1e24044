"""The command about what agents may use: tools.

Entry point: `register`.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from taskweave.cli import output
from taskweave.cli.app import AsJson
from taskweave.errors import BadInput

if TYPE_CHECKING:
    from taskweave.org.organization import Organization as Resolved
    from taskweave.tools.tool import Tool


def tools(
    org: Annotated[
        str | None, typer.Argument(metavar="[ORG]", help="An organization file or a built-in one, e.g. company_a.", show_default=False)
    ] = None,
    role: Annotated[
        str | None, typer.Option("--role", help='Only the tools of this role of the organization, e.g. --role "Data Analyst".')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tools that agents may use, or which role of an organization has which, e.g. [bold]taskweave tools company_a[/bold]."""
    from taskweave.tools.shelf import KITS, TOOLS, granted, kits_of, own_names

    if org is None:
        if role is not None:
            raise BadInput('--role needs an organization: taskweave tools company_a --role "Data Analyst"')
        _list(TOOLS.values(), {tool.name: kits_of(tool) for tool in TOOLS.values()})
        output.line(f"A role's `tools:` may name them, or a kit: {', '.join(KITS)}.")
        return
    from taskweave.driving import Organization

    organization = Organization.load(org).resolved
    if role is not None:
        title = next((title for title in organization.roles if title.casefold() == role.strip().casefold()), None)
        if title is None:
            near = difflib.get_close_matches(role, organization.roles, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; its roles: {', '.join(organization.roles)}"
            raise BadInput(f"{organization.name} has no role {role!r}{hint}")
        own = own_names(organization, organization.roles[title].tools)
        outside = [name for name in organization.roles[title].tools if name not in own]
        found = _granted(title, own)
        _list(found, {tool.name: tuple(kit for kit in own if tool in granted([kit])) for tool in found}, outside)
        if not found and not outside:
            output.line(f"The {title} has no tools.")
        return
    held = {title: _held(organization, title) for title in organization.roles}
    output.answer({"organization": organization.name, "roles": held})
    for title, called in held.items():
        output.line(f"{title}: {', '.join(called) or '-'}")


def _held(organization: Resolved, title: str) -> list[str]:
    """The names of a role's tools; those of servers as the file names them, since nothing is started here."""
    from taskweave.tools.shelf import own_names

    names = organization.roles[title].tools
    own = own_names(organization, names)
    return [*(tool.name for tool in _granted(title, own)), *(name for name in names if name not in own)]


def _granted(title: str, names: Sequence[str]) -> tuple[Tool, ...]:
    from taskweave.tools.shelf import granted

    try:
        return granted(names)
    except KeyError as unknown:
        raise BadInput(f"the role {title!r}: {unknown.args[0]}") from None


def _list(listed: Collection[Tool], kits: Mapping[str, tuple[str, ...]], outside: Sequence[str] = ()) -> None:
    told = [{**tool.for_mcp(), "kits": list(kits[tool.name]), "needs": tool.needs or None} for tool in listed]
    output.answer({"tools": told, **({"of_servers": list(outside)} if outside else {})})
    for tool in listed:
        arguments = ", ".join(tool.schema["properties"])
        output.line(f"{tool.name}({arguments}){'' if not tool.writes else ' *'}  {tool.summary}  [{', '.join(kits[tool.name])}]")
    if any(tool.writes for tool in listed):
        output.line("* changes something")
    for name in outside:
        output.line(f"{name}  of an MCP server, which is asked for its tools when a run begins")


def register(app: typer.Typer) -> None:
    app.command()(tools)
