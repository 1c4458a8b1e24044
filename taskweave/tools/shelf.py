"""Which tools are there, and which does a role have?  Entry points: `TOOLS`, `granted`, `world_of`.

A role's `tools:` names kits (`sql`, `word`, `email`), as organizations speak of them; a kit is a few tools.  A tool's own name will do too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path

from taskweave.errors import BadInput
from taskweave.org.mcp_servers import server_of
from taskweave.org.organization import Organization
from taskweave.records import Json
from taskweave.tools import agenda, analysis, chat, documents, feed, mail, sql, tickets, wiki
from taskweave.tools.hand import Person
from taskweave.tools.mcp_servers import ServerTool, kept, of_role
from taskweave.tools.tool import Tool
from taskweave.tools.world import World

_ALL: tuple[Tool, ...] = (
    *(sql.sql_query, sql.sql_tables, sql.sql_write, analysis.duckdb_query),
    *(documents.document_write, documents.sheet_write, documents.document_read, documents.document_list),
    *(mail.mail_send, mail.mail_read, feed.feed_post, feed.feed_read, chat.chat_post, chat.chat_read),
    *(agenda.calendar_add, agenda.calendar_read, tickets.ticket_open, tickets.ticket_update, tickets.ticket_list),
    *(wiki.wiki_write, wiki.wiki_read, wiki.wiki_list),
)
TOOLS: dict[str, Tool] = {tool.name: tool for tool in _ALL}
_READ_ONLY, _SQL = ("sql_query", "sql_tables"), ("sql_query", "sql_tables", "sql_write")
KITS: dict[str, tuple[str, ...]] = {
    "sql": _READ_ONLY,
    **dict.fromkeys(("motherduck", "duckdb"), ("duckdb_query", "sql_tables")),
    **dict.fromkeys(("sqlite", "database"), _SQL),
    "word": ("document_write", "document_read", "document_list"),
    "excel": ("sheet_write", "document_read", "document_list"),
    **dict.fromkeys(("email", "mail"), ("mail_send", "mail_read")),
    **dict.fromkeys(("twitter", "mastodon", "feed"), ("feed_post", "feed_read")),
    "chat": ("chat_post", "chat_read"),
    "calendar": ("calendar_add", "calendar_read"),
    "tickets": ("ticket_open", "ticket_update", "ticket_list"),
    "wiki": ("wiki_write", "wiki_read", "wiki_list"),
}
PACKAGES: dict[str, tuple[str, ...]] = {documents.EXTRA: ("docx", "openpyxl", "duckdb")}
_MODULES = {"wiki": wiki, "ticket": tickets, "chat": chat, "calendar": agenda, "feed": feed, "mail": mail, "document": documents}


def granted(names: Iterable[str]) -> tuple[Tool, ...]:
    """The tools that a role with these `tools:` has, in the order of TOOLS; raises KeyError, with the nearest, for an unknown name."""
    wanted: set[str] = set()
    for name in names:
        called = name.strip().casefold()
        if called in KITS:
            wanted.update(KITS[called])
        elif called in TOOLS:
            wanted.add(called)
        else:
            near = difflib.get_close_matches(called, [*KITS, *TOOLS], 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(KITS)}."
            raise KeyError(f"there is no tool {name!r}; {hint}")
    return tuple(tool for tool in TOOLS.values() if tool.name in wanted)


def by_role(org: Organization, mcp: Mapping[str, Json] | None = None) -> dict[str, tuple[Tool, ...]]:
    """The tools of each role of an organization, none where its tools are off.

    `mcp` is what was fetched of the MCP servers that it names; without it roles have none of their tools.
    Raises BadInput for a name that is no tool, and where packages are missing that a tool needs.
    """
    if taken := [name for name in org.servers if name in KITS or name in TOOLS]:
        raise BadInput(f"the server {taken[0]!r} has the name of tools that are there anyway; call it otherwise")
    outside = kept(org, mcp or {}, TOOLS)
    found: dict[str, tuple[Tool, ...]] = {}
    for title, role in org.roles.items():
        try:
            own = granted(own_names(org, role.tools)) if org.tools else ()
            found[title] = (*own, *(of_role(org, role.tools, outside) if org.tools else ()))
        except KeyError as unknown:
            raise BadInput(f"the role {title!r}: {unknown.args[0]} Or leave out `tools: on`") from None
        for tool in found[title]:
            if tool.needs and not all(map(find_spec, PACKAGES[tool.needs])):
                raise BadInput(f'the role {title!r} has {tool.name}, which needs packages: pip install "taskweave[{tool.needs}]"')
    return found


def own_names(org: Organization, names: Iterable[str]) -> list[str]:
    """Those of a role's `tools:` that name no server."""
    return [name for name in names if server_of(name, org.servers) is None]


def kits_of(tool: Tool) -> tuple[str, ...]:
    """The kits that a tool is in, or the server that it is of."""
    if isinstance(tool, ServerTool):
        return (tool.server,)
    return tuple(kit for kit, names in KITS.items() if tool.name in names)


def world_of(people: Iterable[Person], *, domain: str, folder: Path | None) -> World:
    """A new world with all tools for these people; `domain` stands in addresses, files go below `folder`."""
    schemas = [module.SCHEMA for module in _MODULES.values()]
    renders = {kind: module.render for kind, module in _MODULES.items()}
    return World(tools=TOOLS, schemas=schemas, renders=renders, people=people, domain=domain, folder=folder)
