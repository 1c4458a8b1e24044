"""Somebody's own mailbox: found in, marked, put into folders.

Entry points: `mail_search`, `mail_mark`, `mail_move`, `mail_folder`, `mail_sent`.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import StringConstraints

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.mail import INBOX, SENT
from taskweave.tools.tool import Line, tool

MOST_LISTED, MOST_FOLDERS = 20, 20
_COLUMNS = 'id, sender AS "from", subject, sent, folder, seen, flagged'

Folder = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9 _-]{0,29}$")]


@tool(personal=True)
def mail_search(hand: Hand, text: Line) -> Json:
    """Find e-mails that you sent or received by their words.

    Up to 20 come back, the newest first.
    """
    query = """SELECT id, sender AS "from", recipients AS "to", subject, sent FROM mails
    WHERE (sender = ? OR EXISTS (SELECT 1 FROM mailboxes WHERE mail = mails.id AND box = ?))
    AND instr(lower(subject || char(10) || text || char(10) || recipients), lower(?)) ORDER BY sent DESC, id LIMIT ?"""
    return {"mails": hand.dicts(query, hand.me.id, hand.me.id, text, MOST_LISTED)}


@tool(personal=True)
def mail_sent(hand: Hand) -> Json:
    """List the last 20 e-mails that you sent."""
    query = 'SELECT id, recipients AS "to", subject, sent FROM mails WHERE sender = ? ORDER BY sent DESC, id LIMIT ?'
    return {"mails": hand.dicts(query, hand.me.id, MOST_LISTED)}


@tool(personal=True)
def mail_folder(hand: Hand, folder: Folder) -> Json:
    """List the last 20 e-mails in a folder of your mailbox, such as "Inbox", and its folders."""
    query = f"""SELECT {_COLUMNS} FROM mails JOIN mailboxes ON mail = id
    WHERE box = ? AND folder = ? COLLATE NOCASE ORDER BY sent DESC, id LIMIT ?"""
    counts = hand.dicts("SELECT folder, count(*) AS mails FROM mailboxes WHERE box = ? GROUP BY folder ORDER BY folder", hand.me.id)
    return {"mails": hand.dicts(query, hand.me.id, folder, MOST_LISTED), "folders": counts}


@tool(writes=True)
def mail_mark(hand: Hand, id: Line, mark: Literal["read", "unread", "flagged", "not flagged"]) -> Json:
    """Mark an e-mail in your mailbox as read or unread, or flag it."""
    _check_mine(hand, id)
    column = "flagged" if "flagged" in mark else "seen"
    value = int(mark in ("read", "flagged"))
    hand.rows(f"UPDATE mailboxes SET {column} = ? WHERE mail = ? AND box = ?", value, id, hand.me.id)
    hand.touch("mail", id)
    return {"id": id, "mark": mark}


@tool(writes=True)
def mail_move(hand: Hand, id: Line, folder: Folder) -> Json:
    """Put an e-mail of your mailbox into a folder.

    It is made if there is none; "Inbox" is the first.
    """
    _check_mine(hand, id)
    names = {
        name.casefold(): name for (name,) in hand.rows("SELECT DISTINCT folder FROM mailboxes WHERE box = ? ORDER BY folder", hand.me.id)
    }
    names |= {INBOX.casefold(): INBOX}
    to = names.get(folder.casefold(), folder)
    if to.casefold() == SENT.casefold():
        raise ToolRefused(f"{SENT} holds what you sent; give another folder")
    if to not in names.values() and len(names) >= MOST_FOLDERS:
        raise ToolRefused(f"your mailbox has {MOST_FOLDERS} folders: {', '.join(names.values())}. Take one of them")
    hand.rows("UPDATE mailboxes SET folder = ? WHERE mail = ? AND box = ?", to, id, hand.me.id)
    hand.touch("mail", id)
    return {"id": id, "folder": to}


def _check_mine(hand: Hand, id: str) -> None:
    if not hand.rows("SELECT 1 FROM mailboxes WHERE mail = ? AND box = ?", id, hand.me.id):
        raise ToolRefused(f"your mailbox has no e-mail {id!r}; mail_read gives the ids of those it has")
