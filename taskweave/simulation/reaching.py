"""How does what is meant for the outside get there?  Entry point: `Reaching.deliver`, at a week's close, of what has landed.

Each mail and each post is asked for in the name of its own call, so that another one before it moves nothing: its outcome is journaled, and
the same whenever the week is executed again.  What came of it is an event of that week: sent, refused, or unknown, and never tried again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from taskweave.engine.promises import Context
from taskweave.records import Json
from taskweave.tools.outside.leaving import Leaving, Mail, Post
from taskweave.tools.outside.mastodon import publish
from taskweave.tools.outside.servers import Servers
from taskweave.tools.outside.smtp import send

MOST_A_WEEK = 200  # to one server
MOST_SILENT = 3  # in a row: then a server is left alone for the rest of the week
SITE = ":outside"


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What came of something that was to leave: an event's kind (sent | refused | unknown), actor, subject and object."""

    kind: str
    actor: str
    subject: str
    object: str


class Reaching:
    """What a run tells its servers; `published` are the ids that posts have there, by their ids here."""

    def __init__(self, servers: Servers) -> None:
        self.servers = servers
        self._published: dict[str, str] = {}

    async def deliver(self, leaving: Iterable[Leaving]) -> list[Told]:
        """Send these, one after the other; to be awaited in a work of the engine."""
        told: list[Told] = []
        asked: Counter[str] = Counter()
        silent: Counter[str] = Counter()
        for one in leaving:
            what = one.what
            if isinstance(what, Mail) and what.kept:
                told.append(_told(one, "refused", f"the organization sends no mail to {', '.join(what.kept)}"))
            if isinstance(what, Mail) and not what.recipients:
                continue
            if (why := _left_out(asked[what.kind], silent[what.kind])) is not None:
                told.append(_told(one, "refused", why))
                continue
            asked[what.kind] += 1
            ctx = Context(one.call + SITE, seed=0, draw=0, reads=False)
            outcome = await ctx.reach(what.kind, what.question(), partial(self._perform, what))
            silent[what.kind] = silent[what.kind] + 1 if _unanswered(outcome) else 0
            if isinstance(what, Post) and "sent" in outcome:
                self._published[what.id] = outcome["sent"]["id"]
            told += _came_of(one, outcome)
        return told

    def _perform(self, what: Mail | Post, key: str) -> Json:
        if isinstance(what, Mail):
            assert self.servers.smtp is not None
            return send(what, self.servers.smtp)
        assert self.servers.mastodon is not None
        return publish(what, self.servers.mastodon, key, reply_to=self._published.get(what.in_reply_to or ""))


def _left_out(asked: int, silent: int) -> str | None:
    """Why nothing more is told to a server this week, if so."""
    if silent >= MOST_SILENT:
        return f"not tried: the server gave no answer {MOST_SILENT} times in a row this week"
    return f"not tried: at most {MOST_A_WEEK} a week leave" if asked >= MOST_A_WEEK else None


def _unanswered(outcome: Mapping[str, Json]) -> bool:
    return "unknown" in outcome or str(outcome.get("refused", "")).startswith("no connection")


def _came_of(one: Leaving, outcome: Mapping[str, Json]) -> Iterator[Told]:
    if "unknown" in outcome:
        yield _told(one, "unknown", str(outcome["unknown"]))
    elif "sent" in outcome:
        yield _told(one, "sent", "" if isinstance(one.what, Post) else ", ".join(outcome["sent"]))
        for address, why in outcome.get("refused_for", {}).items():
            yield _told(one, "refused", f"{address}: {why}")
    else:
        yield _told(one, "refused", str(outcome["refused"]))


def _told(one: Leaving, kind: str, why: str) -> Told:
    what = one.what
    called = f"mail {what.message_id}" if isinstance(what, Mail) else f"post {what.id}"
    return Told(kind=kind, actor=one.agent, subject=one.call, object=f"{called}: {why}" if why else called)
