"""Which tools are there, and which does a role have?  Entry points: `TOOLS`, `granted`, `world_of`.

A role's `tools:` names kits (`sql`, `word`, `email`), as organizations speak of them; a kit is a few tools.  A tool's own name will do too.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from taskweave.errors import BadInput
from taskweave.org.mcp_servers import server_of
from taskweave.org.organization import Organization
from taskweave.records import Json
from taskweave.tools import (
    agenda,
    analysis,
    chat,
    chat_threads,
    colleagues,
    deliverables,
    documents,
    excel,
    excel_edit,
    excel_figures,
    feed,
    feed_social,
    figures,
    invitations,
    mail,
    mail_threads,
    mailboxes,
    sql,
    sql_tables,
    tickets,
    triage,
    wiki,
    wiki_history,
    word,
    word_edit,
)
from taskweave.tools.hand import Person
from taskweave.tools.mcp_servers import ServerTool, kept, of_role
from taskweave.tools.tool import Tool
from taskweave.tools.world import World

# In this order they are listed and offered.
_MODULES: tuple[ModuleType, ...] = (
    *(
        sql,
        sql_tables,
        analysis,
        word,
        word_edit,
        excel,
        excel_edit,
        excel_figures,
        documents,
        mail,
        mail_threads,
        mailboxes,
        feed,
        feed_social,
    ),
    *(chat, chat_threads, agenda, invitations, tickets, triage, wiki, wiki_history, colleagues, figures, deliverables),
)
TOOLS: dict[str, Tool] = {made.name: made for module in _MODULES for made in vars(module).values() if isinstance(made, Tool)}
_ASK = "sql_query sql_tables sql_describe sql_profile"
_PAGES, _BOOKS = "document_read document_list", "document_read document_list sheet_names sheet_read"
_KITS = {
    "sql": _ASK,
    "duckdb": "duckdb_query sql_tables",
    "sqlite": f"{_ASK} sql_write sql_create sql_insert",
    "word": f"document_write {_PAGES} document_append document_replace_section document_replace_text document_comment",
    "word_more": f"""{_PAGES} document_info document_search document_copy document_section document_add_section document_delete_section
        document_add_table document_table document_comments""",
    "excel": f"sheet_write {_BOOKS} sheet_append sheet_total sheet_chart",
    "excel_more": """sheet_names sheet_read sheet_add sheet_set sheet_find sheet_sort sheet_delete_rows sheet_rename sheet_remove
        sheet_format sheet_formula sheet_group""",
    "email": "mail_send mail_read mail_reply mail_forward mail_search",
    "mail_more": "mail_read mail_open mail_thread mail_reply_all mail_announce mail_sent mail_folder mail_mark mail_move",
    "twitter": "feed_post feed_read feed_reply feed_boost feed_favourite feed_notifications",
    "feed_more": "feed_read feed_edit feed_follow feed_unfollow feed_timeline feed_thread feed_account feed_search",
    "chat": "chat_post chat_read chat_reply chat_react",
    "chat_more": "chat_read chat_channels chat_search chat_thread",
    "calendar": "calendar_add calendar_read calendar_answer calendar_free",
    "calendar_more": "calendar_read calendar_meeting calendar_invite calendar_move calendar_cancel",
    "tickets": "ticket_open ticket_update ticket_list ticket_assign ticket_comment",
    "tickets_more": "ticket_list ticket_read ticket_priority ticket_label ticket_link ticket_search",
    "wiki": "wiki_write wiki_read wiki_list wiki_append wiki_search",
    "wiki_more": "wiki_list wiki_read wiki_replace wiki_comment wiki_links wiki_history wiki_revision wiki_revert",
    "people": "people_search people_read people_department",
    "figures": "figure_list figure_series",
    "deliverables": "deliverable_recent deliverable_search",
}
MOST_IN_A_KIT = 12
# Other names by which organizations speak of them.
_SAME = {"motherduck": "duckdb", "database": "sqlite", "mail": "email", "mastodon": "twitter", "feed": "twitter"}
KITS: dict[str, tuple[str, ...]] = {name: tuple(tools.split()) for name, tools in _KITS.items()}
KITS |= {name: KITS[kit] for name, kit in _SAME.items()}
# What fails with a kit, besides itself: a kit and its further one act on the same thing.
_FURTHER = {f"{kit.removesuffix('_more')}_more": kit for kit in ("word", "excel", "chat", "calendar", "tickets", "wiki")}
_FURTHER |= {"mail_more": "email", "feed_more": "twitter"}
PACKAGES: dict[str, tuple[str, ...]] = {documents.EXTRA: ("docx", "openpyxl", "duckdb")}
_THINGS = {"wiki": wiki, "ticket": tickets, "chat": chat, "calendar": agenda, "feed": feed, "mail": mail, "document": documents}


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


def fails_with(tool: Tool) -> frozenset[str]:
    """The names of kits and tools whose outage stops this tool: its own, its kits', and those of which a kit is the further part."""
    kits = kits_of(tool)
    basic = {_FURTHER[kit] for kit in kits if kit in _FURTHER}
    return frozenset({tool.name, *kits, *basic, *(name for name, kit in _SAME.items() if kit in basic)})


def world_of(people: Iterable[Person], *, domain: str, folder: Path | None) -> World:
    """A new world with all tools for these people; `domain` stands in addresses, files go below `folder`."""
    people = tuple(people)
    if any(person.id == mail.OUTBOX for person in people):
        raise BadInput(f"nobody whose id is {mail.OUTBOX!r} can use tools: mail to others lies there. Give the role another title")
    schemas = [module.SCHEMA for module in _THINGS.values()]
    renders = {kind: module.render for kind, module in _THINGS.items()}
    return World(tools=TOOLS, schemas=schemas, renders=renders, people=people, domain=domain, folder=folder)
