"""What is there for a tool to work on?  Entry point: `at_hand`: a few lines for whoever is about to choose a tool.

It reads through the listing tools that somebody has, and through no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from taskweave.records import Json
from taskweave.tools.tool import Tool
from taskweave.tools.world import Effect, World

MOST_LINES = 8  # of one kind


def _columns(table: Json) -> str:
    return ", ".join(table["columns"])


_LISTINGS: dict[str, tuple[dict[str, Json], Callable[[Json], list[str]]]] = {
    "sql_tables": (
        {},
        lambda said: [f"table {t['table']}({_columns(t)}), {t['rows']} rows" for t in said["tables"] if t["rows"] or t["own"]],
    ),
    "document_list": ({}, lambda said: [f"document {d['name']} by {d['author']}, {d['changed']}" for d in said["documents"]]),
    "wiki_list": ({}, lambda said: [f"wiki page {p['title']} by {p['author']}, {p['changed']}" for p in said["pages"]]),
    "ticket_list": (
        {"status": "any", "mine": False},
        lambda said: [f"ticket {t['id']}: {t['title']} ({t['status']}, {t['assignee'] or 'nobody'})" for t in said["tickets"]],
    ),
    "feed_read": ({}, lambda said: [f"post {p['id']} by {p['author']}: {p['text'][:60]}" for p in said["posts"]]),
    "mail_read": ({}, lambda said: [f"mail from {m['from']}, {m['sent']}: {m['subject']}" for m in said["mails"]]),
}


def at_hand(world: World, tools: Collection[Tool], *, actor: str, moment: str, after: Sequence[Effect]) -> list[str]:
    """Lines on tables, documents, pages, tickets, posts and mails that the actor may see."""
    lines: list[str] = []
    for tool in tools:
        if tool.name in _LISTINGS:
            arguments, told = _LISTINGS[tool.name]
            called = world.call(tool, arguments, actor=actor, moment=moment, key="", after=after)
            lines += told(called.said)[:MOST_LINES] if called.ok else []
    return lines
