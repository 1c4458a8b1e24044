"""How does one mail reach a server?  Entry point: `send`: one connection, one message, one attempt.

Until the message's last line is sent nothing has happened, whatever goes wrong: the mail was refused.  After it, silence leaves open
whether the server has taken it: an OSError, which says so.  Credentials come from the environment and go over TLS, or to this machine.
"""

from __future__ import annotations

import contextlib
import os
import smtplib
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

from taskweave.records import Json
from taskweave.tools.outside.bounded import ALTOGETHER, SILENCE, Deadline, Measured, plain
from taskweave.tools.outside.leaving import Mail
from taskweave.tools.outside.servers import SMTP_PASSWORD, SMTP_USER, local


def send(mail: Mail, url: str, *, silence: float = SILENCE, altogether: float = ALTOGETHER) -> dict[str, Json]:
    """{"sent": addresses, "refused": why, "refused_for": {address: why}}, each where there is something to say.

    Raises OSError where nobody can know whether the server has taken it.
    """
    user, password = os.environ.get(SMTP_USER, ""), os.environ.get(SMTP_PASSWORD, "")
    server = _server(url, silence)
    with Deadline(lambda: server.sock, altogether) as deadline, contextlib.closing(server):
        try:
            with _told(server, deadline):
                _begin(server, url, user, password)
                refused = _envelope(server, mail)
        except _NotTaken as why:
            return {"refused": plain(why, password, user)}
        taken = [address for address in mail.recipients if address not in refused]
        try:
            code, said = _body(server, mail.data)
        except smtplib.SMTPException as trouble:
            late = f"the server took more than {altogether:g} s" if deadline.over else plain(trouble, password, user)
            raise OSError(f"the mail was sent, and then: {late}") from None
        except OSError as trouble:
            raise OSError(f"the mail was sent, and then: {plain(trouble, password, user)}") from None
        with contextlib.suppress(OSError, smtplib.SMTPException):
            server.putcmd("quit")  # what it says to that changes nothing
    reasons = {address: plain(why, password, user) for address, why in refused.items()}
    if code // 100 != 2:
        return {"refused": plain(f"{code} {_text(said)}", password, user)}
    return {"sent": list(taken), **({"refused_for": reasons} if reasons else {})}


class _NotTaken(Exception):
    """Nothing has happened, and why."""


class _Smtp(smtplib.SMTP):
    """The library's client, hearing no more than is bearable."""

    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = Measured(self.sock.makefile("rb"))
        return super().getreply()


class _SmtpOverTls(smtplib.SMTP_SSL):
    def getreply(self) -> tuple[int, bytes]:
        if self.file is None and self.sock is not None:
            self.file = Measured(self.sock.makefile("rb"))
        return super().getreply()


def _server(url: str, silence: float) -> smtplib.SMTP:
    """A client that has not connected yet.  It does not tell the machine's name."""
    if urlsplit(url).scheme == "smtps":
        return _SmtpOverTls(local_hostname="localhost", timeout=silence, context=ssl.create_default_context())
    return _Smtp(local_hostname="localhost", timeout=silence)


@contextlib.contextmanager
def _told(server: smtplib.SMTP, deadline: Deadline) -> Iterator[None]:
    """Whatever goes wrong here goes wrong before the mail is sent."""
    try:
        yield
    except smtplib.SMTPResponseException as answer:
        raise _NotTaken(f"{answer.smtp_code} {_text(answer.smtp_error)}") from None
    except smtplib.SMTPException as trouble:
        raise _NotTaken("the server took too long" if deadline.over else trouble) from None
    except (OSError, UnicodeError) as trouble:
        raise _NotTaken(f"no connection: {trouble}") from None


def _begin(server: smtplib.SMTP, url: str, user: str, password: str) -> None:
    """Connect, hide what is said where the server can, and log on where there is somebody to log on as."""
    parts = urlsplit(url)
    server._host = str(parts.hostname)  # type: ignore[attr-defined]  # the name that the certificate must have
    code, said = server.connect(str(parts.hostname), int(parts.port or 0))
    if code != 220:
        raise _NotTaken(f"{code} {_text(said)}")
    server.ehlo_or_helo_if_needed()
    hidden = parts.scheme == "smtps"
    # A server on this machine has no certificate for its name, and nobody is on the way to it.
    if not hidden and not local(url) and server.has_extn("starttls"):
        server.starttls(context=ssl.create_default_context())
        server.ehlo_or_helo_if_needed()
        hidden = True
    if user:
        if not hidden and not local(url):
            raise _NotTaken("the server offers no TLS, and a password is not sent without it")
        server.login(user, password)


def _envelope(server: smtplib.SMTP, mail: Mail) -> dict[str, str]:
    """Say from whom and to whom; returns the addresses that the server does not take, and why.  Raises _NotTaken where none is left."""
    _expect(server.mail(mail.sender), 250)
    refused: dict[str, str] = {}
    for address in mail.recipients:
        code, said = server.rcpt(address)
        if code == 421:
            raise _NotTaken(f"{code} {_text(said)}")
        if code not in (250, 251):
            refused[address] = f"{code} {_text(said)}"
    if len(refused) == len(mail.recipients):
        raise _NotTaken("; ".join(f"{address}: {why}" for address, why in refused.items()))
    server.putcmd("data")
    _expect(server.getreply(), 354)
    return refused


def _body(server: smtplib.SMTP, data: bytes) -> tuple[int, bytes]:
    """Send the message; returns what the server says to it."""
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").removesuffix(b"\n").split(b"\n")
    server.send(b"".join(b"." + line + b"\r\n" if line.startswith(b".") else line + b"\r\n" for line in lines) + b".\r\n")
    return server.getreply()


def _expect(answer: tuple[int, bytes], code: int) -> None:
    if answer[0] != code:
        raise _NotTaken(f"{answer[0]} {_text(answer[1])}")


def _text(said: bytes | str) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else said
