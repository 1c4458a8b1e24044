"""What of an organization leaves the machine, as the command line names it and says it.

Entry points: the options `Smtp` and `Mastodon`, `named`, `tell`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from taskweave.cli import output

if TYPE_CHECKING:
    from taskweave.runs import RunFolder

Smtp = Annotated[
    str | None,
    typer.Option(
        "--smtp",
        metavar="URL",
        help='Send what agents mail to addresses outside through this server, or "off"; user and password come from SMTP_USER and '
        "SMTP_PASSWORD, e.g. --smtp smtp://127.0.0.1:2525.",
        show_default=False,
    ),
]
Mastodon = Annotated[
    str | None,
    typer.Option(
        "--mastodon",
        metavar="URL",
        help='Publish what agents post on this server with Mastodon\'s API, or "off"; the token comes from MASTODON_TOKEN, '
        "e.g. --mastodon https://social.example.com.",
        show_default=False,
    ),
]


def named(smtp: str | None, mastodon: str | None) -> dict[str, str]:
    """The servers that were named."""
    return {name: url for name, url in (("smtp", smtp), ("mastodon", mastodon)) if url is not None}


def tell(folder: RunFolder) -> None:
    """Say what leaves the machine, before anything does; nothing where nothing leaves."""
    from taskweave.tools.outside.servers import servers_of

    org = folder.organization()
    if lines := servers_of(org, **folder.config.servers).told():
        output.note(f"Leaves this machine: {'; '.join(lines)}.")
    for name in folder.mcp_servers():
        output.note(f"Agents may call the MCP server {name}: {' '.join(org.servers[name].command)}")
