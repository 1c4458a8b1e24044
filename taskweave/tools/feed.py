"""The organization's public feed, in the shapes of Mastodon's API.

Entry points: `feed_post`, `feed_read`, `feed_reply`, `feed_edit`, `status`.  It is local: nothing is sent here.  Who
boosts, follows and finds is in `feed_social.py`.
"""

from __future__ import annotations

import html
import json
import re
import sqlite3
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, MaybeLine, _prose, tool

SCHEMA = """
CREATE TABLE posts (id TEXT PRIMARY KEY, at TEXT, author TEXT, name TEXT, domain TEXT, text TEXT, in_reply_to TEXT, edited TEXT);
CREATE TABLE post_marks (post TEXT, kind TEXT, person TEXT, at TEXT, PRIMARY KEY (post, kind, person));
CREATE TABLE follows (person TEXT, followed TEXT, at TEXT, PRIMARY KEY (person, followed));
CREATE INDEX posts_that_answer ON posts (in_reply_to);
"""
MOST_READ, MOST_TAGS = 20, 20
BOOST, FAVOURITE = "boost", "favourite"
_COUNTED = "(SELECT count(*) FROM post_marks WHERE post = posts.id AND kind = '{}')"
COLUMNS = f"""id, at, author, name, domain, text, in_reply_to, edited,
    (SELECT count(*) FROM posts AS p WHERE p.in_reply_to = posts.id) AS replies,
    {_COUNTED.format(BOOST)} AS boosts, {_COUNTED.format(FAVOURITE)} AS favourites"""

Post = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500), AfterValidator(_prose)]


@tool(writes=True)
def feed_post(hand: Hand, text: Post, in_reply_to: MaybeLine) -> Json:
    """Post publicly on the organization's social feed, at most 500 characters; `in_reply_to` is a post's id, or ""."""
    if in_reply_to and not hand.rows("SELECT 1 FROM posts WHERE id = ?", in_reply_to):
        raise ToolRefused(f'there is no post {in_reply_to!r} to reply to; feed_read gives ids, and "" replies to none')
    number = str(int(hand.number(), 16))
    reply = in_reply_to or None
    hand.rows(
        "INSERT INTO posts VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", number, hand.moment, hand.me.id, hand.me.name, hand.domain, text, reply
    )
    for touched in (number, reply):
        if touched:
            hand.touch("feed", touched)
    return {"id": number, "created_at": at(hand.moment)}


@tool(writes=True)
def feed_reply(hand: Hand, id: Line, text: Post) -> Json:
    """Answer a post on the feed, naming who wrote it."""
    author = post_of(hand, id)["author"]
    return {**feed_post.function(hand, text if f"@{author}" in text else f"@{author} {text}"[:500], id), "in_reply_to_id": id}


@tool(writes=True)
def feed_edit(hand: Hand, id: Line, text: Post) -> Json:
    """Change the text of a post of your own; that it was edited is shown."""
    post = post_of(hand, id)
    if post["author"] != hand.me.id:
        raise ToolRefused(f"the post {id!r} is {post['name']}'s; one edits one's own posts only")
    hand.rows("UPDATE posts SET text = ?, edited = ? WHERE id = ?", text, hand.moment, id)
    hand.touch("feed", id)
    return {"id": id, "edited_at": at(hand.moment)}


@tool()
def feed_read(hand: Hand) -> Json:
    """Read the last 20 posts of the organization's social feed."""
    found = hand.dicts(f"SELECT {COLUMNS} FROM posts ORDER BY at DESC, id LIMIT ?", MOST_READ)
    return {
        "posts": [{"id": p["id"], "at": p["at"], "author": p["name"], "text": p["text"], "in_reply_to": p["in_reply_to"]} for p in found]
    }


def post_of(hand: Hand, id: str) -> dict[str, Json]:
    """A post; raises ToolRefused for none."""
    found = hand.dicts(f"SELECT {COLUMNS} FROM posts WHERE id = ?", id)
    if not found:
        raise ToolRefused(f"there is no post {id!r}; feed_read gives their ids")
    return found[0]


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The post as a Status."""
    found = db.execute(f"SELECT {COLUMNS} FROM posts WHERE id = ?", (name,))
    columns = [column[0] for column in found.description]
    for row in found.fetchall():
        told = status(dict(zip(columns, row, strict=True)))
        yield f"feed/{name}.json", (json.dumps(told, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()


def status(post: dict[str, Json]) -> dict[str, Json]:
    """A post as Mastodon's API shows it (entity Status); `post` has the COLUMNS."""
    home = f"https://{post['domain']}"
    url = f"{home}/@{post['author']}"
    body = "</p><p>".join(html.escape(part, quote=False).replace("\n", "<br />") for part in post["text"].split("\n\n"))
    named = dict.fromkeys(name.lower() for name in re.findall(r"(?<!\w)@([a-z0-9][a-z0-9-]*)", post["text"]))
    tags = dict.fromkeys(tag.lower() for tag in re.findall(r"(?<!\w)#(\w*[^\W\d]\w*)", post["text"]))
    return {
        "id": post["id"],
        "created_at": at(post["at"]),
        "edited_at": at(post["edited"]) if post["edited"] else None,
        "in_reply_to_id": post["in_reply_to"],
        "visibility": "public",
        "sensitive": False,
        "spoiler_text": "",
        "language": None,
        "uri": f"{url}/{post['id']}",
        "url": f"{url}/{post['id']}",
        "content": f"<p>{body}</p>",
        "account": account(post["author"], post["name"], post["domain"]),
        "replies_count": post["replies"],
        "reblogs_count": post["boosts"],
        "favourites_count": post["favourites"],
        "media_attachments": [],
        "mentions": [{"id": name, "username": name, "acct": name, "url": f"{home}/@{name}"} for name in list(named)[:MOST_TAGS]],
        "tags": [{"name": tag, "url": f"{home}/tags/{tag}"} for tag in list(tags)[:MOST_TAGS]],
        "emojis": [],
        "reblog": None,
    }


def account(id: str, name: str, domain: str) -> dict[str, Json]:
    """Somebody as Mastodon's API shows an Account."""
    return {"id": id, "username": id, "acct": id, "display_name": name, "url": f"https://{domain}/@{id}"}


def at(moment: str) -> str:
    """A moment as Mastodon's API writes it."""
    return moment.replace(" ", "T") + ":00.000Z"
