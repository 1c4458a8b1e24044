"""Mail between the people of an organization and to others: RFC 5322 messages in Maildirs.  Entry points: `mail_send`, `mail_read`.

Everybody reads the own mailbox only.  What goes to addresses outside lies in `mail/outbox`; nothing is sent here.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Annotated

from pydantic import Field

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.tool import Line, Prose, tool

SCHEMA = """
CREATE TABLE mails (id TEXT PRIMARY KEY, sender TEXT, recipients TEXT, subject TEXT, sent TEXT, text TEXT, message BLOB);
CREATE TABLE mailboxes (mail TEXT, box TEXT, PRIMARY KEY (mail, box));
"""
MOST_RECIPIENTS, MOST_READ = 20, 10
OUTBOX = "outbox"
# The part of RFC 5322's addr-spec that real addresses use.
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")

Recipients = Annotated[list[Line], Field(min_length=1, max_length=MOST_RECIPIENTS)]


@tool(writes=True)
def mail_send(hand: Hand, to: Recipients, subject: Line, text: Prose) -> Json:
    """Send an e-mail to colleagues (names, roles or ids) or to addresses outside."""
    boxes: dict[str, None] = {}
    addresses: dict[str, Address] = {}
    for named in to:
        inside = next((person for person in hand.people.values() if person.email.casefold() == named.casefold()), None)
        if inside is None and "@" in named:
            if not _ADDRESS.fullmatch(named):
                raise ToolRefused(f"{named!r} is no e-mail address; write somebody@example.com")
            boxes[OUTBOX], addresses[named.casefold()] = None, Address(addr_spec=named)
        else:
            person = inside or hand.person(named)
            boxes[person.id], addresses[person.email] = None, Address(person.name, addr_spec=person.email)
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = Address(hand.me.name, addr_spec=hand.me.email)
        message["To"] = tuple(addresses.values())
        message["Subject"] = subject
        message["Date"] = datetime.fromisoformat(hand.moment).replace(tzinfo=UTC)
        message["Message-ID"] = f"<{hand.number()}@{hand.domain}>"
        message.set_content(text)
        data = message.as_bytes()
    except (ValueError, MessageError, UnicodeError) as error:
        raise ToolRefused(f"this cannot be an e-mail: {error}") from None
    number = hand.number()
    told = ", ".join(map(str, addresses.values()))
    hand.rows("INSERT INTO mails VALUES (?, ?, ?, ?, ?, ?, ?)", number, hand.me.id, told, subject, hand.moment, text, data)
    for box in boxes:
        hand.rows("INSERT INTO mailboxes VALUES (?, ?)", number, box)
    hand.touch("mail", number)
    return {"id": number, "to": list(addresses)}


@tool(personal=True)
def mail_read(hand: Hand) -> Json:
    """Read the last 10 e-mails in your own mailbox, the newest first."""
    query = "SELECT sender, subject, sent, text FROM mails JOIN mailboxes ON mail = id WHERE box = ? ORDER BY sent DESC, id LIMIT ?"
    found = hand.rows(query, hand.me.id, MOST_READ)
    return {"mails": [dict(zip(("from", "subject", "sent", "text"), row, strict=True)) for row in found]}


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The message in the Maildir of each recipient, and in the sender's folder Sent."""
    for sender, sent, data in db.execute("SELECT sender, sent, message FROM mails WHERE id = ?", (name,)):
        seconds = int(datetime.fromisoformat(sent).replace(tzinfo=UTC).timestamp())
        boxes = [box for (box,) in db.execute("SELECT box FROM mailboxes WHERE mail = ? ORDER BY box", (name,))]
        for folder in (*boxes, f"{sender}/.Sent"):
            yield f"mail/{folder}/new/{seconds}.{name}.taskweave", data
