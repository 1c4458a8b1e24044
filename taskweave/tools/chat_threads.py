"""Answers and reactions to single messages of the company chat.  Entry points: `chat_reply`, `chat_thread`, `chat_react`."""

from __future__ import annotations

from typing import Literal

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.chat import say
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, Prose, tool

MOST_READ = 50


@tool(writes=True)
def chat_reply(hand: Hand, id: Line, text: Prose) -> Json:
    """Answer a message of the company chat in its thread."""
    message = _message(hand, id)
    return say(hand, message["channel"], text, thread=message["thread"] or id)


@tool()
def chat_thread(hand: Hand, id: Line) -> Json:
    """Read a message of the company chat with all answers and reactions to it."""
    message = _message(hand, id)
    first = message["thread"] or id
    query = "SELECT id, author, at, text FROM messages WHERE id = ?1 OR thread = ?1 ORDER BY thread, at, id LIMIT ?2"
    reacted = """SELECT message, reaction, count(*) AS people FROM reactions
    WHERE message IN (SELECT id FROM messages WHERE id = ?1 OR thread = ?1) GROUP BY message, reaction ORDER BY 1, 2 LIMIT ?2"""
    return {
        "channel": message["channel"],
        "messages": hand.dicts(query, first, MOST_READ),
        "reactions": hand.dicts(reacted, first, MOST_READ),
    }


@tool(writes=True)
def chat_react(hand: Hand, id: Line, reaction: Literal["thumbs up", "thumbs down", "thanks", "seen", "done", "question"]) -> Json:
    """React to a message of the company chat."""
    message = _message(hand, id)
    hand.rows("INSERT OR IGNORE INTO reactions VALUES (?, ?, ?, ?)", id, hand.me.id, reaction, hand.moment)
    hand.touch("chat", message["channel"])
    counts = hand.rows("SELECT reaction, count(*) FROM reactions WHERE message = ? GROUP BY reaction ORDER BY reaction", id)
    return {"id": id, "reactions": dict(counts)}


def _message(hand: Hand, id: str) -> dict[str, Json]:
    found = hand.dicts("SELECT id, channel, thread FROM messages WHERE id = ?", id)
    if not found:
        raise ToolRefused(f"there is no message {id!r}; chat_read gives the ids of a channel's messages")
    return found[0]
