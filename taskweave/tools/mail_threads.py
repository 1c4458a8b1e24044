"""Answers to mail: they name what they answer, so that a thread holds together in every mail program.

Entry points: `mail_reply`, `mail_reply_all`, `mail_forward`, `mail_thread`, `mail_open`, `mail_announce`.
"""

from __future__ import annotations

from email.utils import getaddresses

from taskweave.errors import ToolRefused
from taskweave.records import Json
from taskweave.tools.hand import Hand
from taskweave.tools.mail import MOST_RECIPIENTS, Recipients, _recipient, post
from taskweave.tools.tool import MOST_LINE, MOST_PROSE, Line, MaybeLine, Prose, tool

MOST_SHOWN = 20
_MINE = "(sender = ? OR EXISTS (SELECT 1 FROM mailboxes WHERE mail = mails.id AND box = ?))"


@tool(personal=True)
def mail_open(hand: Hand, id: Line) -> Json:
    """Open an e-mail that you sent or received, with all its recipients."""
    return _mail(hand, id)


@tool(personal=True)
def mail_thread(hand: Hand, id: Line) -> Json:
    """Read the exchange that an e-mail is part of.

    The oldest comes first, as far as you sent or received it.
    """
    _mail(hand, id)
    query = f"""SELECT id, sender AS "from", recipients AS "to", subject, sent, text, in_reply_to FROM mails
    WHERE thread = (SELECT thread FROM mails WHERE id = ?) AND {_MINE} ORDER BY sent, id LIMIT ?"""
    return {"mails": hand.dicts(query, id, hand.me.id, hand.me.id, MOST_SHOWN)}


@tool(writes=True)
def mail_reply(hand: Hand, id: Line, text: Prose) -> Json:
    """Answer an e-mail to who sent it."""
    mail = _mail(hand, id)
    to = [mail["from"]] if mail["from"] != hand.me.id else _others(mail)
    return post(hand, to[:MOST_RECIPIENTS], _subject("Re:", mail["subject"]), text, in_reply_to=id)


@tool(writes=True)
def mail_reply_all(hand: Hand, id: Line, text: Prose) -> Json:
    """Answer an e-mail to who sent it and to all who received it.

    Who has left since is left out.
    """
    mail = _mail(hand, id)
    to: list[str] = []
    for named in (mail["from"], *_others(mail)):
        if named in (hand.me.id, hand.me.email):
            continue
        try:
            _recipient(hand, named)
        except ToolRefused:
            continue
        to.append(named)
    if not to:
        raise ToolRefused(f"nobody else has the e-mail {id!r}, or nobody is here any more")
    return post(hand, to[:MOST_RECIPIENTS], _subject("Re:", mail["subject"]), text, in_reply_to=id)


@tool(writes=True)
def mail_forward(hand: Hand, id: Line, to: Recipients, text: Prose) -> Json:
    """Send an e-mail on to others, with words of your own above it."""
    mail = _mail(hand, id)
    sender = hand.name_of(mail["from"])
    head = f"---------- Forwarded message ----------\nFrom: {sender}\nDate: {mail['sent']}\nSubject: {mail['subject']}\nTo: {mail['to']}"
    body = f"{text}\n\n{head}\n\n{mail['text']}"
    if len(body) > 2 * MOST_PROSE:
        raise ToolRefused(f"the e-mail {id!r} is too long to be sent on with these words; send a summary")
    return post(hand, to, _subject("Fwd:", mail["subject"]), body, in_reply_to=id)


@tool(writes=True)
def mail_announce(hand: Hand, department: MaybeLine, subject: Line, text: Prose) -> Json:
    """Send an e-mail to all of a department, or of the company with ""."""
    departments = {person.department.casefold(): person.department for person in hand.people.values() if person.department}
    if department and department.casefold() not in departments:
        raise ToolRefused(f"there is no department {department!r}; there are {', '.join(sorted(departments.values()))}")
    to = [
        p.email for p in hand.people.values() if p.id != hand.me.id and (not department or p.department.casefold() == department.casefold())
    ]
    if not to:
        raise ToolRefused("nobody else is there to be told")
    return {**post(hand, to, subject, text), "told": len(to)}


def _mail(hand: Hand, id: str) -> dict[str, Json]:
    """A mail that who acts has sent or received; raises ToolRefused, alike for others' mail and for none."""
    query = f'SELECT id, sender AS "from", recipients AS "to", subject, sent, text, in_reply_to FROM mails WHERE id = ? AND {_MINE}'
    found = hand.dicts(query, id, hand.me.id, hand.me.id)
    if not found:
        raise ToolRefused(f"you have no e-mail {id!r}; mail_read gives the ids of those you have")
    return found[0]


def _others(mail: dict[str, Json]) -> list[str]:
    return [address for _, address in getaddresses([mail["to"]])]


def _subject(mark: str, subject: str) -> str:
    return subject if subject.casefold().startswith(mark.casefold()) else f"{mark} {subject}"[:MOST_LINE].strip()
