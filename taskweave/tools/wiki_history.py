"""What a wiki page was, what is said about it, and what leads to it.

Entry points: `wiki_history`, `wiki_revision`, `wiki_revert`, `wiki_append`, `wiki_replace`, `wiki_search`, `wiki_links`, `wiki_comment`.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, MaybeLine, Prose, tool
from taskweave.tools.wiki import page_of, revise

MOST_LISTED, MOST_FOUND, MOST_PAGE, MOST_COMMENTS = 50, 20, 40_000, 100
_LINK = re.compile(r"\[\[([^\[\]\n]{1,200})\]\]")

Number = Annotated[int, Field(ge=1, le=100_000)]


@tool()
def wiki_history(hand: Hand, title: Line) -> Json:
    """List the revisions of a wiki page, the last first, with who made them."""
    page = page_of(hand, title)
    query = (
        "SELECT revision, author, changed, length(text) AS characters FROM page_revisions WHERE title = ? ORDER BY revision DESC LIMIT ?"
    )
    return {"title": page["title"], "revisions": hand.dicts(query, title, MOST_LISTED)}


@tool()
def wiki_revision(hand: Hand, title: Line, revision: Number) -> Json:
    """Read a wiki page as it was at one of its revisions."""
    return _revision(hand, title, revision)


@tool(writes=True)
def wiki_revert(hand: Hand, title: Line, revision: Number) -> Json:
    """Bring a wiki page back to one of its revisions.

    What came after stays in its history.
    """
    page, old = page_of(hand, title), _revision(hand, title, revision)
    if old["revision"] == page["revision"]:
        raise ToolRefused(f"the page {page['title']!r} is at revision {revision} already")
    return {**revise(hand, title, old["text"]), "reverted_to": revision}


@tool(writes=True)
def wiki_append(hand: Hand, title: Line, text: Prose) -> Json:
    """Add text to the end of a wiki page; [[Title]] is a link to another page."""
    return _grown(hand, title, f"{page_of(hand, title)['text']}\n\n{text}")


@tool(writes=True)
def wiki_replace(hand: Hand, title: Line, old: Line, new: MaybeLine) -> Json:
    """Replace some words of a wiki page by others, wherever they stand."""
    page = page_of(hand, title)
    if old not in page["text"]:
        raise ToolRefused(f"the page {page['title']!r} does not say {old!r}; wiki_read shows what it says")
    return {**_grown(hand, title, page["text"].replace(old, new)), "replaced": page["text"].count(old)}


@tool()
def wiki_search(hand: Hand, text: Line) -> Json:
    """Find wiki pages by words of their title or text: up to 20, the last changed first."""
    query = """SELECT title, author, changed, substr(text, max(1, instr(lower(text), lower(?1)) - 60), 160) AS around FROM pages
    WHERE instr(lower(title || char(10) || text), lower(?1)) ORDER BY changed DESC, title LIMIT ?2"""
    return {"pages": hand.dicts(query, text, MOST_FOUND)}


@tool()
def wiki_links(hand: Hand, title: Line) -> Json:
    """List the pages to which a wiki page links, and those that link to it.

    Of the former it says which are missing.
    """
    page = page_of(hand, title)
    there = {name.casefold() for (name,) in hand.rows("SELECT title FROM pages")}
    links = list(dict.fromkeys(_LINK.findall(page["text"])))[:MOST_LISTED]
    query = "SELECT title FROM pages WHERE instr(lower(text), lower(?)) ORDER BY title LIMIT ?"
    linked = [name for (name,) in hand.rows(query, f"[[{page['title']}]]", MOST_LISTED)]
    return {"title": page["title"], "links": links, "missing": [one for one in links if one.casefold() not in there], "linked_from": linked}


@tool(writes=True)
def wiki_comment(hand: Hand, title: Line, text: Prose) -> Json:
    """Comment on a wiki page; its text stays as it is."""
    page = page_of(hand, title)
    ((count,),) = hand.rows("SELECT count(*) FROM page_comments WHERE title = ?", title)
    if count >= MOST_COMMENTS:
        raise ToolRefused(f"the page {page['title']!r} has {MOST_COMMENTS} comments, and takes no more")
    hand.rows("INSERT INTO page_comments VALUES (?, ?, ?, ?, ?)", hand.number(), page["title"], hand.me.name, hand.moment, text)
    hand.touch("wiki", page["title"])
    return {"title": page["title"], "comments": count + 1}


def _grown(hand: Hand, title: str, text: str) -> Json:
    if len(text) > MOST_PAGE:
        raise ToolRefused(
            f"the page {title!r} would hold {len(text):,} characters; a page holds {MOST_PAGE:,} at the most. Begin another one"
        )
    return revise(hand, title, text)


def _revision(hand: Hand, title: str, revision: int) -> dict[str, Json]:
    page = page_of(hand, title)
    found = hand.dicts(
        "SELECT title, revision, text, author, changed FROM page_revisions WHERE title = ? AND revision = ?", title, revision
    )
    if not found:
        raise ToolRefused(f"the page {page['title']!r} has no revision {revision}; it has 1 to {page['revision']}")
    return found[0]
