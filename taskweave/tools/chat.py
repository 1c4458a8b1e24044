"""The company's chat: channels that everybody reads.  Entry points: `chat_post`, `chat_read`, `chat_channels`, `chat_search`.

Threads and reactions are in `chat_threads.py`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.said import said
from taskweave.tools.tool import Line, Prose, tool

SCHEMA = """
CREATE TABLE messages (id TEXT PRIMARY KEY, channel TEXT, author TEXT, at TEXT, text TEXT, thread TEXT);
CREATE TABLE reactions (message TEXT, person TEXT, reaction TEXT, at TEXT, PRIMARY KEY (message, person, reaction));
CREATE INDEX messages_of_a_channel ON messages (channel, at);
"""
MOST_READ, MOST_CHANNELS = 20, 100

Channel = Annotated[
    str,
    BeforeValidator(lambda given: given.strip().casefold() if isinstance(given, str) else given),
    StringConstraints(pattern=r"^#?[a-z0-9][a-z0-9-]{0,39}$"),
]


@tool(writes=True)
def chat_post(hand: Hand, channel: Channel, text: Prose) -> Json:
    """Post a message in a channel of the company chat, such as "general"."""
    return say(hand, channel.removeprefix("#"), text)


@tool()
def chat_read(hand: Hand, channel: Channel) -> Json:
    """Read the last 20 messages of a channel of the company chat."""
    name = channel.removeprefix("#")
    query = "SELECT id, author, at, text, thread FROM messages WHERE channel = ? ORDER BY at DESC, id LIMIT ?"
    others = [other for (other,) in hand.rows("SELECT DISTINCT channel FROM messages WHERE channel <> ? ORDER BY channel LIMIT 20", name)]
    return {"channel": name, "messages": hand.dicts(query, name, MOST_READ)[::-1], "other_channels": others}


@tool()
def chat_channels(hand: Hand) -> Json:
    """List the channels of the company chat, with their messages and the last of them."""
    query = "SELECT channel, count(*) AS messages, max(at) AS last FROM messages GROUP BY channel ORDER BY last DESC, channel LIMIT ?"
    return {"channels": hand.dicts(query, MOST_CHANNELS)}


@tool()
def chat_search(hand: Hand, text: Line) -> Json:
    """Find messages of the company chat by their words: up to 20, the newest first."""
    query = "SELECT id, channel, author, at, text FROM messages WHERE instr(lower(text), lower(?)) ORDER BY at DESC, id LIMIT ?"
    return {"messages": hand.dicts(query, text, MOST_READ)}


def say(hand: Hand, channel: str, text: str, thread: str = "") -> Json:
    """A message of who acts in a channel, below the message `thread` where there is one."""
    known = [name for (name,) in hand.rows("SELECT DISTINCT channel FROM messages ORDER BY channel")]
    if channel not in known and len(known) >= MOST_CHANNELS:
        raise ToolRefused(f"there are {MOST_CHANNELS} channels, and no more are made; chat_channels lists them")
    hand.rows("INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?)", hand.number(), channel, hand.me.name, hand.moment, text, thread)
    hand.touch("chat", channel)
    return {"id": hand.number(), "channel": channel}


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The channel as a file; answers stand below what they answer."""
    reactions = """SELECT message, group_concat(reaction || ' ' || people, ', ') FROM (
    SELECT message, reaction, count(*) AS people FROM reactions JOIN messages ON messages.id = message WHERE channel = ?
    GROUP BY message, reaction ORDER BY message, reaction) GROUP BY message"""
    reacted = dict(db.execute(reactions, (name,)).fetchall())
    query = """SELECT id, author, at, text, thread FROM messages WHERE channel = ?1
    ORDER BY coalesce((SELECT first.at FROM messages AS first WHERE first.id = messages.thread), at),
    CASE thread WHEN '' THEN id ELSE thread END, thread <> '', at, id"""
    parts = []
    for id, author, at, text, thread in db.execute(query, (name,)):
        lines = f"**{author}** {at}\n\n{said(text)}\n" + (f"\n({reacted[id]})\n" if id in reacted else "")
        parts.append("".join(f"> {line}".rstrip() + "\n" for line in lines.splitlines()) if thread else lines)
    yield f"chat/{name}.md", "\n".join(parts).encode()
