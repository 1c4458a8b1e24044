"""The company's wiki: pages with all their revisions, each a Markdown file.  Entry points: `wiki_write`, `wiki_read`, `wiki_list`.

What was there before, and how pages belong together, is in `wiki_history.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.files import file_name
from taskweave.tools.hand import Hand
from taskweave.tools.said import page, said
from taskweave.tools.tool import Line, Prose, tool

SCHEMA = """
CREATE TABLE pages (title TEXT PRIMARY KEY COLLATE NOCASE, revision INTEGER, text TEXT, author TEXT, changed TEXT);
CREATE TABLE page_revisions (
    title TEXT COLLATE NOCASE, revision INTEGER, text TEXT, author TEXT, changed TEXT, PRIMARY KEY (title, revision)
);
CREATE TABLE page_comments (id TEXT PRIMARY KEY, title TEXT COLLATE NOCASE, author TEXT, at TEXT, text TEXT);
"""
MOST_LISTED = 100


@tool(writes=True)
def wiki_write(hand: Hand, title: Line, text: Prose) -> Json:
    """Write a page of the company wiki, in Markdown; a page of that title gets a new revision."""
    return revise(hand, title, text)


@tool()
def wiki_read(hand: Hand, title: Line) -> Json:
    """Read a page of the company wiki."""
    return page_of(hand, title)


@tool()
def wiki_list(hand: Hand) -> Json:
    """List the pages of the company wiki, the last changed first."""
    return {"pages": hand.dicts("SELECT title, revision, author, changed FROM pages ORDER BY changed DESC, title LIMIT ?", MOST_LISTED)}


def revise(hand: Hand, title: str, text: str) -> Json:
    """The next revision of a page, or the first."""
    file_name(title, ".md")
    found = hand.rows("SELECT title, revision FROM pages WHERE title = ?", title)
    name, before = found[0] if found else (title, 0)
    hand.based_on("wiki page", name, before)
    for table in ("pages", "page_revisions"):
        hand.rows(f"INSERT OR REPLACE INTO {table} VALUES (?, ?, ?, ?, ?)", name, before + 1, text, hand.me.name, hand.moment)
    hand.touch("wiki", name)
    return {"title": name, "revision": before + 1}


def page_of(hand: Hand, title: str) -> dict[str, Json]:
    """A page as it stands; raises ToolRefused with some that there are."""
    found = hand.dicts("SELECT title, revision, text, author, changed FROM pages WHERE title = ?", title)
    if not found:
        known = [name for (name,) in hand.rows("SELECT title FROM pages ORDER BY changed DESC, title LIMIT 8")]
        raise ToolRefused(
            f"the wiki has no page {title!r}; " + (f"among its pages: {', '.join(known)}" if known else "it has no pages yet")
        )
    return found[0]


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The page as a file."""
    for title, revision, text, author, changed in db.execute("SELECT * FROM pages WHERE title = ?", (name,)):
        file = f"# {title}\n\n{page(text)}\n\n---\nRevision {revision}, {author}, {changed}\n"
        comments = db.execute("SELECT author, at, text FROM page_comments WHERE title = ? ORDER BY at, id", (name,))
        file += "".join(f"\n**{by}** {at}\n\n{said(text)}\n" for by, at, text in comments)
        yield f"wiki/{file_name(title, '.md')}", file.encode()
