"""The organization's public feed, in the shapes of Mastodon's API.  Entry points: `feed_post`, `feed_read`.

It is local: nothing is sent here.
"""

from __future__ import annotations

import html
import json
import sqlite3
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import MaybeLine, _prose, tool

SCHEMA = """
CREATE TABLE posts (id TEXT PRIMARY KEY, at TEXT, author TEXT, name TEXT, domain TEXT, text TEXT, in_reply_to TEXT);
"""
MOST_READ = 20
_COLUMNS = "id, at, author, name, domain, text, in_reply_to, (SELECT count(*) FROM posts AS p WHERE p.in_reply_to = posts.id)"

Post = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_prose)]


@tool(writes=True)
def feed_post(hand: Hand, text: Post, in_reply_to: MaybeLine) -> Json:
    """Post publicly on the organization's social feed, at most 500 characters; `in_reply_to` is a post's id, or ""."""
    if in_reply_to and not hand.rows("SELECT 1 FROM posts WHERE id = ?", in_reply_to):
        raise ToolRefused(f'there is no post {in_reply_to!r} to reply to; feed_read gives ids, and "" replies to none')
    number = str(int(hand.number(), 16))
    reply = in_reply_to or None
    hand.rows("INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?, ?)", number, hand.moment, hand.me.id, hand.me.name, hand.domain, text, reply)
    hand.touch("feed", number)
    return {"id": number, "created_at": _at(hand.moment)}


@tool()
def feed_read(hand: Hand) -> Json:
    """Read the last 20 posts of the organization's social feed."""
    found = hand.rows(f"SELECT {_COLUMNS} FROM posts ORDER BY at DESC, id LIMIT ?", MOST_READ)
    return {"posts": [{"id": row[0], "at": row[1], "author": row[3], "text": row[5], "in_reply_to": row[6]} for row in found]}


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The post as a Status."""
    for row in db.execute(f"SELECT {_COLUMNS} FROM posts WHERE id = ?", (name,)):
        yield f"feed/{name}.json", (json.dumps(_status(row), ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def _status(row: tuple[Json, ...]) -> Json:
    id, at, author, name, domain, text, in_reply_to, replies = row
    url = f"https://{domain}/@{author}"
    body = "</p><p>".join(html.escape(part, quote=False).replace("\n", "<br />") for part in text.split("\n\n"))
    return {
        "id": id,
        "created_at": _at(at),
        "in_reply_to_id": in_reply_to,
        "visibility": "public",
        "sensitive": False,
        "spoiler_text": "",
        "language": None,
        "uri": f"{url}/{id}",
        "url": f"{url}/{id}",
        "content": f"<p>{body}</p>",
        "account": {"id": author, "username": author, "acct": author, "display_name": name, "url": url},
        "replies_count": replies,
        "reblogs_count": 0,
        "favourites_count": 0,
        "media_attachments": [],
        "mentions": [],
        "tags": [],
        "emojis": [],
        "reblog": None,
    }


def _at(moment: str) -> str:
    return moment.replace(" ", "T") + ":00.000Z"
