"""How long may a prompt be, so that the model still sees its beginning?  Entry point: `reach`, from what came of some code words.

Pure: a code word stood at the very front of each prompt, and the end asked for it.  A word that is repeated was seen.  One that is not
may have been cut off, or overlooked by a weak model: the tokens that the server says it has read, and the other words, tell which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

_FEW = 0.6  # of the tokens sent, by the rule bytes / 4: less is not a matter of how one counts
_FEWER = 0.85  # of what longer prompts showed to be this server's way to count
_ENOUGH = 500  # tokens from which on a chat template's own do not matter


@dataclass(frozen=True, kw_only=True, slots=True)
class Canary:
    """One prompt: its tokens by the rule bytes / 4, whether the word at its front was repeated, the prompt tokens that the server
    reported (None: it reports none), and whether it was refused as too long.
    """

    sent: int
    repeated: bool = False
    read: int | None = None
    over: bool = False


class Reach(NamedTuple):
    """As in `Probed`: the longest prompt that was seen whole, the shortest that was not, and whether that one was cut without a word."""

    context: int | None
    limit: int | None
    cut: bool | None


def reach(canaries: Sequence[Canary]) -> Reach:
    """What the code words tell; all None where they tell nothing (no word was repeated and no tokens were reported)."""
    context = max((one.sent for one in canaries if whole(one, canaries)), default=None)
    failed = [one for one in canaries if one.sent > (context or 0) and not whole(one, canaries) and _tells(one, canaries)]
    if not failed:
        return Reach(context, None, None)
    first = min(failed, key=lambda one: one.sent)
    cut = False if first.over else True if first.read is None or _cut(first, canaries) or _stuck(first, canaries) else None
    return Reach(context, first.sent, cut)


def whole(one: Canary, canaries: Sequence[Canary]) -> bool:
    """Whether a prompt was seen whole: its word was repeated, or the model repeats none and all of it was read."""
    if one.repeated or one.over:
        return one.repeated
    return one.read is not None and not _able(canaries) and not _cut(one, canaries)


def _tells(one: Canary, canaries: Sequence[Canary]) -> bool:
    return one.over or one.read is not None or _able(canaries)


def _stuck(one: Canary, canaries: Sequence[Canary]) -> bool:
    """Whether the server read no more of a longer prompt: all that it ever reads."""
    return any(other.sent > one.sent and other.read is not None and one.read is not None and other.read <= one.read for other in canaries)


def _able(canaries: Sequence[Canary]) -> bool:
    """Whether the model can repeat a word at all."""
    return any(one.repeated for one in canaries)


def _cut(one: Canary, canaries: Sequence[Canary]) -> bool:
    """Whether the server says that it read far less than it was sent."""
    if one.read is None:
        return False
    counts = max((other.read / other.sent for other in canaries if other.read is not None and other.sent >= _ENOUGH), default=0.0)
    return one.read < one.sent * max(_FEW, _FEWER * counts)
