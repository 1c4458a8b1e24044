"""Who watches an engine at work: what is asked, sent, answered and looked up now, and nothing that the journal answers.

Entry point: `Witness`, which an engine may be given.  It decides nothing and is told in wall-clock order; what is done with it, and for
whom a work asks, is not the engine's business.
"""

from __future__ import annotations

from typing import Protocol

from taskweave.engine.promises import Ask
from taskweave.records import Completion, Json


class Witness(Protocol):
    """Told of one work's asks one at a time: `asked`, then what came of it, then the next; at last `ended`.

    `asked` to `landed` must not raise: they are called where an exception would be a lost answer.
    """

    def asked(self, ask: Ask) -> None:
        """A work waits for something that is not in the journal: a request is queued, or a look-up begins."""

    def sent(self, ask: Ask) -> None:
        """An attempt leaves for the backbone; again after each that failed."""

    def failed(self, ask: Ask, trouble: BaseException) -> None:
        """An attempt ended without an answer."""

    def landed(self, ask: Ask, completion: Completion, latency: float) -> None:
        """The answer is there; `latency` is that of its attempt, in seconds."""

    def looked_up(self, ask: Ask, answer: Json) -> None:
        """The look-up has found its answer."""

    def ended(self, site: str) -> None:
        """The work at this site has returned, whether or not it asked anything now."""
