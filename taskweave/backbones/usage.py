"""Which token counts of a provider are believed?  Entry point: `usage_of`, whose rule is all there is here.

A count that cannot be is treated as one that was not reported: the tokens are then counted by the rule of the house.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from taskweave.records import Json

TEMPLATE = 1_024  # tokens that a chat template, and a provider's own words before the first message, may add
SLACK = 2  # some servers end late, or let a model think beyond what its answer may have
UNBOUNDED = 1_000_000  # tokens of an answer to which no bound was sent


class Usage(NamedTuple):
    """Tokens of a prompt, of its answer, and of the prompt what was cached; None for what was not reported, or cannot be."""

    prompt: int | None
    completion: int | None
    cached: int | None


def usage_of(reported: Json, *, sent: int, limit: int | None, answered: int) -> Usage:
    """What a chat completion's `usage` says, as far as it can be:

    - a count is a whole number: no `true`, no text, no fraction, nothing negative;
    - a prompt has at least 1 token, and no more than the request has bytes (schema included) and `TEMPLATE` beside them;
    - an answer has at least 1 where there is any text, and no more than `SLACK` times those that it was allowed, or than it has bytes where
      that is more.  More than can be read is no fault: a model may think unseen;
    - of a prompt no more can have been cached than it has tokens.

    `sent` and `answered` are bytes of the request and of what can be read of the answer; `limit` is the tokens that the answer was told
    to have at most, None where the endpoint takes no such bound.
    """
    told = reported if isinstance(reported, Mapping) else {}
    details = told.get("prompt_tokens_details")
    most = UNBOUNDED if limit is None else max(SLACK * limit, answered)
    prompt = _count(told.get("prompt_tokens"), 1, sent + TEMPLATE)
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return Usage(
        prompt=prompt,
        completion=_count(told.get("completion_tokens"), min(answered, 1), most),
        cached=None if prompt is None else _count(cached, 0, prompt),
    )


def _count(number: Json, least: int, most: int) -> int | None:
    """A number of tokens within bounds, None for what is none."""
    return number if isinstance(number, int) and not isinstance(number, bool) and least <= number <= most else None
