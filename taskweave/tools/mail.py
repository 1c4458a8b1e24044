"""Mail between the people of an organization and to others: RFC 5322 messages in Maildirs.  Entry points: `mail_send`, `mail_read`, `post`.

Everybody reads the own mailbox only.  What goes to addresses outside lies in `mail/outbox`; nothing is sent here.  Answers are in
`mail_threads.py`, folders and marks in `mailboxes.py`.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
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
CREATE TABLE mails (
    id TEXT PRIMARY KEY, sender TEXT, recipients TEXT, subject TEXT, sent TEXT, text TEXT, message BLOB, in_reply_to TEXT, thread TEXT
);
CREATE TABLE mailboxes (mail TEXT, box TEXT, folder TEXT, seen INTEGER, flagged INTEGER, PRIMARY KEY (mail, box));
CREATE INDEX mails_of_a_thread ON mails (thread);
CREATE INDEX mails_in_a_box ON mailboxes (box, folder);
"""
MOST_RECIPIENTS, MOST_READ, MOST_REFERENCES = 20, 10, 20
OUTBOX, INBOX, SENT = "outbox", "Inbox", "Sent"
# The part of RFC 5322's addr-spec that real addresses use.
_ADDRESS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
_FLAG_MARK = ":" if sys.platform != "win32" else "!"  # a colon is no part of a name there (Python's mailbox says the same)

Recipients = Annotated[list[Line], Field(min_length=1, max_length=MOST_RECIPIENTS)]


@tool(writes=True)
def mail_send(hand: Hand, to: Recipients, subject: Line, text: Prose) -> Json:
    """Send an e-mail to colleagues (names, roles or ids) or to addresses outside."""
    return post(hand, to, subject, text)


@tool(personal=True)
def mail_read(hand: Hand) -> Json:
    """Read the last 10 e-mails in your own mailbox, the newest first."""
    query = """SELECT id, sender AS "from", subject, sent, text, NOT seen AS new FROM mails JOIN mailboxes ON mail = id
    WHERE box = ? AND folder = ? ORDER BY sent DESC, id LIMIT ?"""
    found = hand.dicts(query, hand.me.id, INBOX, MOST_READ)
    return {"mails": [{**mail, "new": bool(mail["new"])} for mail in found]}


def post(hand: Hand, to: Sequence[str], subject: str, text: str, in_reply_to: str = "") -> Json:
    """Send a message of who acts, as an answer to the mail `in_reply_to` where there is one; raises ToolRefused."""
    boxes: dict[str, None] = {}
    addresses: dict[str, Address] = {}
    for named in to:
        box, address = _recipient(hand, named)
        boxes[box], addresses[address.addr_spec.casefold()] = None, address
    number = hand.number()
    earlier = _thread_above(hand, in_reply_to)
    message = EmailMessage(policy=SMTP)
    try:
        message["From"] = Address(hand.me.name, addr_spec=hand.me.email)
        message["To"] = tuple(addresses.values())
        message["Subject"] = subject
        message["Date"] = datetime.fromisoformat(hand.moment).replace(tzinfo=UTC)
        message["Message-ID"] = message_id(number, hand.domain)
        if earlier:
            message["In-Reply-To"] = message_id(in_reply_to, hand.domain)
            message["References"] = " ".join(message_id(one, hand.domain) for one in earlier)
        message.set_content(text)
        data = message.as_bytes()
        if str(message["Subject"]) != subject:  # a word encoded as in RFC 2047 may hold anything, a line's end too
            raise ValueError(f"its subject {subject!r} would be read as another one; write it in plain words")
    except (ValueError, MessageError, UnicodeError) as error:
        raise ToolRefused(f"this cannot be an e-mail: {error}") from None
    told = ", ".join(map(str, addresses.values()))
    thread = earlier[0] if earlier else number
    hand.rows(
        "INSERT INTO mails VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        *(number, hand.me.id, told, subject, hand.moment, text, data, in_reply_to, thread),
    )
    for box in boxes:
        hand.rows("INSERT INTO mailboxes VALUES (?, ?, ?, 0, 0)", number, box, INBOX)
    hand.touch("mail", number)
    return {"id": number, "to": list(addresses)}


def message_id(number: str, domain: str) -> str:
    """The Message-ID of a mail."""
    return f"<{number}@{domain}>"


def _recipient(hand: Hand, named: str) -> tuple[str, Address]:
    """The box and the address of who is meant: a colleague's, or the outbox and an address elsewhere."""
    inside = next((person for person in hand.people.values() if person.email.casefold() == named.casefold()), None)
    if inside is None and "@" in named:
        if not _ADDRESS.fullmatch(named):
            raise ToolRefused(f"{named!r} is no e-mail address; write somebody@example.com")
        if named.casefold().endswith(f"@{hand.domain.casefold()}"):
            raise ToolRefused(f"nobody here has the address {named!r}, or nobody has it any more; name a colleague")
        return OUTBOX, Address(addr_spec=named)
    person = inside or hand.person(named)
    return person.id, Address(person.name, addr_spec=person.email)


def _thread_above(hand: Hand, mail: str) -> list[str]:
    """The mails from the thread's first to this one: at most MOST_REFERENCES, of which the first is always there (RFC 5322, 3.6.4)."""
    chain: list[str] = []
    while mail:
        chain.append(mail)
        ((mail,),) = hand.rows("SELECT in_reply_to FROM mails WHERE id = ?", mail)
    chain.reverse()
    return chain if len(chain) <= MOST_REFERENCES else [chain[0], *chain[1 - MOST_REFERENCES :]]


def render(db: sqlite3.Connection, name: str) -> Iterator[tuple[str, bytes]]:
    """The message in the Maildir of each recipient, in the folder it lies in there, and in the sender's folder Sent (Maildir++)."""
    for sender, sent, data in db.execute("SELECT sender, sent, message FROM mails WHERE id = ?", (name,)):
        seconds = int(datetime.fromisoformat(sent).replace(tzinfo=UTC).timestamp())
        file = f"{seconds}.{name}.taskweave"
        query = "SELECT box, folder, seen, flagged FROM mailboxes WHERE mail = ? ORDER BY box"
        for box, folder, seen, flagged in db.execute(query, (name,)):
            place = f"mail/{box}" if folder == INBOX else f"mail/{box}/.{folder}"
            marks = f"{'F' * flagged}{'S' * seen}"
            yield f"{place}/cur/{file}{_FLAG_MARK}2,{marks}" if marks else f"{place}/new/{file}", data
        yield f"mail/{sender}/.{SENT}/new/{file}", data
