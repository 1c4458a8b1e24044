"""Which servers may an organization reach?  Entry points: `smtp_url`, `mastodon_url`, `host_name` (they refuse with a ValueError), `SMTP`.

A server's address holds no secret: who logs on, and with what, is read from the environment where it is needed.  Refuses to connect.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from urllib.parse import SplitResult, urlsplit

from taskweave.org import form
from taskweave.org.form import Field, Kind

PORTS: Mapping[str, int] = {"smtp": 25, "smtps": 465, "http": 80, "https": 443}
_LABEL = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_PLAIN = re.compile(r"[!-~]{1,300}")


def smtp_url(text: str) -> str:
    """A mail server's address in its one form, "smtp://HOST:PORT" or "smtps://HOST:PORT" (TLS from the beginning)."""
    return _address(text, ("smtp", "smtps"), "smtp://mail.example.com:587", "SMTP_USER and SMTP_PASSWORD")


def mastodon_url(text: str) -> str:
    """A social server's address in its one form, "https://HOST:PORT"; "http" on this machine only, since a token goes with it."""
    found = _address(text, ("https", "http"), "https://social.example.com", "MASTODON_TOKEN")
    if found.startswith("http:") and not is_loopback(str(urlsplit(found).hostname)):
        raise ValueError(f"{form.said(text)} would send a token that everybody on the way can read; write https://")
    return found


def host_name(text: str) -> str:
    """A domain's name in small letters."""
    name = text.strip().casefold()
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise ValueError(f"{form.said(text)} is no domain such as 'example.com'")
    return name


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.casefold() == "localhost"


def _address(text: str, schemes: tuple[str, ...], example: str, secrets: str) -> str:
    # A text that may hold a password is not repeated.
    if "@" in text:
        raise ValueError(f"a server's address names no user and no password: they are read from {secrets} in the environment")
    wrong = f"{form.said(text)} is no server's address such as {example!r}"
    try:
        parts = urlsplit(text.strip() if _PLAIN.fullmatch(text.strip()) else "")
        port = parts.port
    except ValueError:
        raise ValueError(wrong) from None
    if parts.scheme not in schemes or not parts.hostname or port == 0:
        raise ValueError(wrong)
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(f"{form.said(text)} goes on after the host; write it as {example!r}")
    return f"{parts.scheme}://{_host(parts, wrong)}:{port or PORTS[parts.scheme]}"


def _host(parts: SplitResult, wrong: str) -> str:
    host = str(parts.hostname)
    try:
        return f"[{ipaddress.IPv6Address(host)}]" if ":" in host else host_name(host)
    except ValueError:
        raise ValueError(wrong) from None


_DOMAIN = form.scalar(host_name, {"type": "string", "format": "hostname"}, "a domain such as 'example.com'")
_URL = {"type": "string", "format": "uri"}
MAIL: Kind = form.record(
    {
        "smtp": Field(form.scalar(smtp_url, _URL, "a server's address"), "the server for mail to addresses outside", required=True),
        "from_domain": Field(_DOMAIN, "the domain of senders as the server sees them; by default the organization's reserved one"),
        "to": Field(form.listing(_DOMAIN), "the domains that mail may go to; by default all"),
    },
    short="smtp",
)
FEED: Kind = form.record(
    {
        "mastodon": Field(
            form.scalar(mastodon_url, _URL, "a server's address"), "the server with Mastodon's API that posts go to", required=True
        )
    },
    short="mastodon",
)
