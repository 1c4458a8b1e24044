"""The company's chat: channels that everybody reads.  Entry points: `chat_post`, `chat_read`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, StringConstraints

from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Prose, tool

SCHEMA = "CREATE TABLE messages (id TEXT PRIMARY KEY, channel TEXT, author TEXT, at TEXT, text TEXT);"
MOST_READ = 20

Channel = Annotated[
    str,
    BeforeValidator(lambda given: given.strip().casefold() if isinstance(given, str) else given),
    StringConstraints(pattern=r"^#?[a-z0-9][a-z0-9-]{0,39}$"),
]


@tool(writes=True)
def chat_post(hand: Hand, channel: Channel, text: Prose) -> Json:
    """Post a message in a channel of the company chat, such as "general"."""
    name = channel.removeprefix("#")
    hand.rows("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", hand.number(), name, hand.me.name, hand.moment, text)
    hand.touch("chat", name)
    return {"id": hand.number(), "channel": name}


@tool()
def chat_read(hand: Hand, channel: Channel) -> Json:
    """Read the last 20 messages of a channel of the company chat."""
    name = channel.removeprefix("#")
    query = "SELECT author, at, text FROM messages WHERE channel = ? ORDER BY at DESC, id LIMIT ?"
    found = hand.rows(query, name, MOST_READ)[::-1]
    others = [other for (other,) in hand.rows("SELECT DISTINCT channel FROM messages WHERE channel <> ? ORDER BY channel LIMIT 20", name)]
    return {"channel": name, "messages": [dict(zip(("author", "at", "text"), row, strict=True)) for row in found], "other_channels": others}


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The channel as a file."""
    found = db.execute("SELECT author, at, text FROM messages WHERE channel = ? ORDER BY at, id", (name,))
    yield f"chat/{name}.md", "\n".join(f"**{author}** {at}\n\n{text}\n" for author, at, text in found).encode()
