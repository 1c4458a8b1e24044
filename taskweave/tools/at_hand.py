"""What is there for a tool to work on?  Entry point: `at_hand`: a few lines for whoever is about to choose a tool.

It reads through the listing tools that somebody has, and through no others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import zip_longest

from taskweave.records import Json
from taskweave.tools.tool import Tool
from taskweave.tools.world import Effect, World

MOST_LINES = 8  # of one kind


def _columns(table: Json) -> str:
    return ", ".join(table["columns"])


# Of each listing tool: what it is called with, by whom and at which moment, and the lines of what it says.
_LISTINGS: dict[str, tuple[Callable[[str, str], dict[str, Json]], Callable[[Json, str], list[str]]]] = {
    "sql_tables": (
        lambda actor, moment: {},
        lambda said, actor: [
            f"{'own ' if t['own'] else ''}table {t['table']}({_columns(t)}), {t['rows']} rows"
            for t in said["tables"]
            if t["rows"] or t["own"]
        ],
    ),
    "document_list": (
        lambda actor, moment: {},
        lambda said, actor: [f"document {d['name']} by {d['author']}, {d['changed']}" for d in said["documents"]],
    ),
    "mail_read": (
        lambda actor, moment: {},
        lambda said, actor: [f"mail {m['id']} from {m['from']}, {m['sent']}: {m['subject']}" for m in said["mails"]],
    ),
    "feed_read": (
        lambda actor, moment: {},
        lambda said, actor: [f"post {p['id']} by {p['author']}: {p['text'][:60]}" for p in said["posts"]],
    ),
    "chat_read": (
        lambda actor, moment: {"channel": "general"},
        lambda said, actor: [f"message {m['id']} in general by {m['author']}: {m['text'][:60]}" for m in reversed(said["messages"])],
    ),
    "calendar_read": (
        lambda actor, moment: {"person": actor, "first": moment[:10], "days": 14},
        lambda said, actor: [f"meeting {e['id']} {e['starts']}, {_organized(e, actor)}: {e['title']}" for e in said["events"]],
    ),
    "ticket_list": (
        lambda actor, moment: {"status": "any", "mine": False},
        lambda said, actor: [f"ticket {t['id']}: {t['title']} ({t['status']}, {t['assignee'] or 'nobody'})" for t in said["tickets"]],
    ),
    "figure_list": (
        lambda actor, moment: {},
        lambda said, actor: [f"figure {f['figure']} {f['value']} in week {f['week']}" for f in said["figures"]],
    ),
    "wiki_list": (
        lambda actor, moment: {},
        lambda said, actor: [f"wiki page {p['title']} by {p['author']}, revision {p['revision']}, {p['changed']}" for p in said["pages"]],
    ),
}


def _organized(event: Json, actor: str) -> str:
    return "your own" if event["organizer"] == actor else f"by {event['organizer']}, {event['answer']}"


def at_hand(world: World, tools: Collection[Tool], *, actor: str, moment: str, after: Sequence[Effect], as_of: str = "") -> list[str]:
    """Lines on tables, documents, mails, posts, messages, meetings, tickets and pages that the actor may see, each with how it is named.

    One of each kind comes first, then the second of each, and so on: whoever reads only some of them has seen something of all.
    """
    kinds: list[list[str]] = []
    for tool in tools:
        if tool.name in _LISTINGS:
            arguments, told = _LISTINGS[tool.name]
            called = world.call(tool, arguments(actor, moment), actor=actor, moment=moment, key="", after=after, as_of=as_of)
            kinds.append(told(called.said, actor)[:MOST_LINES] if called.ok else [])
    return [line for row in zip_longest(*kinds) for line in row if line is not None]
