"""Several backbones as one: each request goes to the one whose identity it carries.

Entry points: `Members`, `members_of`.  It does not know why there are several: routes, or a fork that goes on with another one.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Literal

from taskweave.errors import EngineFault, Refused
from taskweave.records import Backbone, Completion, Request


class Members:
    """A backbone that gives each request to the one whose identity it carries; `name` and `origin` are those of `own`, one of them."""

    def __init__(self, own: Backbone, members: Mapping[str, Backbone]) -> None:
        self.name = own.name
        self.origin: Literal["model", "scripted"] = own.origin
        self._members = {own.name: own, **members}

    @property
    def members(self) -> Mapping[str, Backbone]:
        """What answers, by the identity that requests carry."""
        return self._members

    @property
    def most_at_once(self) -> int | None:
        """How many requests the slowest member takes at a time; None where each takes any number."""
        return min((most for one in self._members.values() if (most := getattr(one, "most_at_once", None)) is not None), default=None)

    async def complete(self, request: Request) -> Completion:
        """What the backbone of that identity answers."""
        member = self._members.get(request.backbone)
        if member is None:
            raise EngineFault(f"a request for {request.backbone!r}, which answers nothing here; there are {', '.join(self._members)}")
        return await member.complete(request)

    async def close(self) -> None:
        """Close all that can be closed."""
        for member in {id(member): member for member in self._members.values()}.values():
            closed = getattr(member, "close", None)
            if closed is not None and inspect.isawaitable(waits := closed()):
                await waits


class Gone:
    """Stands for a backbone that can no longer be had, and says so to whoever asks it."""

    def __init__(self, name: str, origin: Literal["model", "scripted"], why: str) -> None:
        self.name, self.origin, self._why = name, origin, why

    async def complete(self, request: Request) -> Completion:
        raise Refused(self._why)


def members_of(backbone: Backbone) -> Mapping[str, Backbone]:
    """What answers, by identity: the members, or the backbone itself."""
    members: Mapping[str, Backbone] = getattr(backbone, "members", {backbone.name: backbone})
    return members
