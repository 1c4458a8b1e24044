"""What of a week's effects is meant for the outside?  Entry point: `leaving`: the mails and posts that have landed and are to be sent.

It reads the world and changes nothing.  A mail is sent as it lies in the outbox, with the addresses of its own people rewritten where the
server knows them under another domain.  To its Message-ID, which says which call made it, a digest is added: the same message has the same
id whenever it is sent, and another one, as that call makes in a fork, has another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from email import message_from_bytes
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Literal

from taskweave.records import Json
from taskweave.tools.mail import OUTBOX
from taskweave.tools.outside.servers import Servers
from taskweave.tools.world import Landing, World

ADDRESSED = ("To", "Cc")
_OWN = ("From", "Sender", "Reply-To", *ADDRESSED)
_IDS = ("Message-ID", "In-Reply-To", "References")
_ID = re.compile(r"<([0-9a-f]+)@([^<>@\s]+)>")
_WIRE = SMTP.clone(cte_type="7bit")  # which every server takes


@dataclass(frozen=True, kw_only=True, slots=True)
class Mail:
    """A message as it is sent, in seven bits; `sender` and `recipients` are the envelope's, `kept` are addresses it may not go to."""

    message_id: str
    sender: str
    recipients: tuple[str, ...]
    kept: tuple[str, ...]
    data: bytes

    kind: Literal["smtp"] = "smtp"

    @property
    def called(self) -> str:
        return f"mail to {', '.join(self.recipients or self.kept)}"

    def question(self) -> Json:
        """What is journaled of it: enough to know it again."""
        return {"message_id": self.message_id, "to": list(self.recipients), "sha256": hashlib.sha256(self.data).hexdigest()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Post:
    """A post; `in_reply_to` is the local id of another one."""

    id: str
    text: str
    in_reply_to: str | None

    kind: Literal["mastodon"] = "mastodon"

    @property
    def called(self) -> str:
        return f"post {self.id}"

    def question(self) -> Json:
        """What is journaled of it."""
        return {"post": self.id, "text": self.text, "in_reply_to": self.in_reply_to}


@dataclass(frozen=True, kw_only=True, slots=True)
class Leaving:
    """Something that is to leave: what, and which call (its key) of whom made it."""

    call: str
    agent: str
    what: Mail | Post


def leaving(world: World, landings: Iterable[Landing], servers: Servers) -> list[Leaving]:
    """What of the landings goes outside, in their order."""
    found: list[Leaving] = []
    for landing in landings if servers else ():
        effect = landing.effect
        if not landing.landed:
            continue
        made: list[Mail | Post] = []
        if servers.smtp is not None and effect.tool.startswith("mail_"):
            made += _mails(world, effect.key, servers)
        elif servers.mastodon is not None and effect.tool == "feed_post":
            made += [Post(id=id, text=text, in_reply_to=to) for id, text, to in world.rows(_POST, str(int(_number(effect.key), 16)))]
        found += [Leaving(call=effect.key, agent=effect.actor, what=what) for what in made]
    return found


_POST = "SELECT id, text, in_reply_to FROM posts WHERE id = ?"
_MAIL = "SELECT message FROM mails JOIN mailboxes ON mail = id WHERE id = ? AND box = ?"


def _number(key: str) -> str:
    """As `Hand.number` names what a call makes."""
    return hashlib.sha256(key.encode()).hexdigest()[:8]


def _mails(world: World, key: str, servers: Servers) -> Iterable[Mail]:
    inside = {str(email).casefold() for (email,) in world.rows("SELECT email FROM people")}
    for (data,) in world.rows(_MAIL, _number(key), OUTBOX):
        message = message_from_bytes(data, policy=SMTP)
        addressed = [address for name in ADDRESSED for address in _addresses(message, name)]
        outside = list(dict.fromkeys(address for address in addressed if address.casefold() not in inside))
        kept = tuple(one for one in outside if servers.to and one.rpartition("@")[2].casefold() not in servers.to)
        _identify(world, message, servers.from_domain)
        if servers.from_domain is not None:
            _move(message, inside, servers.from_domain)
        yield Mail(
            message_id=str(message["Message-ID"]),
            sender=next(iter(_addresses(message, "From"))),
            recipients=tuple(one for one in outside if one not in kept),
            kept=kept,
            data=message.as_bytes(policy=_WIRE),
        )


def _addresses(message: EmailMessage, name: str) -> list[str]:
    return [address.addr_spec for header in message.get_all(name, ()) for address in header.addresses]


def _identify(world: World, message: EmailMessage, domain: str | None) -> None:
    """Write the ids of the organization's own messages as they are outside: each with the digest of its message, at `domain`."""

    def outside(found: re.Match[str]) -> str:
        for (data,) in world.rows("SELECT message FROM mails WHERE id = ?", found[1]):
            return f"<{found[1]}.{hashlib.sha256(data).hexdigest()[:16]}@{domain or found[2]}>"
        return found[0]

    for name in _IDS:
        if message[name] is not None:
            message.replace_header(name, _ID.sub(outside, str(message[name])))


def _move(message: EmailMessage, inside: set[str], to: str) -> None:
    """Write the addresses of the organization's own people with the domain `to`."""
    for name in _OWN:
        for header in message.get_all(name, ()):
            moved = [Address(one.display_name, one.username, to) if one.addr_spec.casefold() in inside else one for one in header.addresses]
            message.replace_header(name, moved)
