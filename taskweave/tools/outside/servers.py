"""Which servers does a run reach, and may it?  Entry points: `servers_of`, `Servers`, `refuse_unready`.

The command line goes before the organization file; `OFF` there keeps everything here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from taskweave.errors import BadInput
from taskweave.org.organization import Organization
from taskweave.org.servers import is_loopback, mastodon_url, smtp_url

OFF = "off"
SMTP_USER, SMTP_PASSWORD, MASTODON_TOKEN = "SMTP_USER", "SMTP_PASSWORD", "MASTODON_TOKEN"


@dataclass(frozen=True, kw_only=True, slots=True)
class Servers:
    """URLs, None where nothing goes there.

    `from_domain` stands for the organization's own; mail goes to addresses in the domains `to` only, where there are such.
    """

    smtp: str | None = None
    mastodon: str | None = None
    from_domain: str | None = None
    to: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.smtp or self.mastodon)

    def told(self) -> list[str]:
        """What leaves the machine and where it goes, a line each."""
        lines = []
        if self.smtp is not None:
            whom = f"addresses at {', '.join(self.to)}" if self.to else "addresses outside"
            lines.append(f"mail to {whom} is sent through {self.smtp}")
        if self.mastodon is not None:
            lines.append(f"posts on the feed are published at {self.mastodon}")
        return lines


def servers_of(org: Organization, *, smtp: str | None = None, mastodon: str | None = None) -> Servers:
    """The servers of an organization, with those that the command line named; none where its tools are off.

    Raises BadInput for what is no server's address, and for a server that the organization's tools, which are off, would never reach.
    """
    named = {"--smtp": _named("--smtp", smtp, smtp_url), "--mastodon": _named("--mastodon", mastodon, mastodon_url)}
    if not org.tools:
        if given := [option for option, url in named.items() if url not in (None, OFF)]:
            raise BadInput(f"{given[0]}: {org.name} sends nothing, its tools are off. Write `tools: on` into its file, or leave this out")
        return Servers()
    return Servers(
        smtp=_chosen(named["--smtp"], org.mail.smtp if org.mail else None),
        mastodon=_chosen(named["--mastodon"], org.feed.mastodon if org.feed else None),
        from_domain=org.mail.from_domain if org.mail else None,
        to=org.mail.to if org.mail else (),
    )


def refuse_unready(servers: Servers) -> None:
    """Raises BadInput where something is missing in the environment without which a server can be told nothing."""
    if servers.mastodon is not None and not os.environ.get(MASTODON_TOKEN):
        raise BadInput(
            f"{servers.mastodon} takes posts only with a token, and {MASTODON_TOKEN} is not set. "
            "Set it in the environment, or keep posts here with --mastodon off"
        )
    if bool(os.environ.get(SMTP_USER)) != bool(os.environ.get(SMTP_PASSWORD)) and servers.smtp is not None:
        raise BadInput(f"{SMTP_USER} and {SMTP_PASSWORD} belong together, and one of them is not set in the environment")


def local(url: str) -> bool:
    """Whether a server is on this machine."""
    return is_loopback(str(urlsplit(url).hostname))


def _named(option: str, url: str | None, read: Callable[[str], str]) -> str | None:
    if url is None or url.strip().casefold() == OFF:
        return None if url is None else OFF
    try:
        return read(url)
    except ValueError as wrong:
        raise BadInput(f"{option}: {wrong}") from None


def _chosen(named: str | None, own: str | None) -> str | None:
    return own if named is None else None if named == OFF else named
