"""How far is an engine, how long did it take, and how long did it have to?  Entry points: `EngineStats`, `Pace`.

A work cannot end before its needs, nor before what the clock had waited for when it was launched, and then its own answers come one after
the other: the longest such chain is the critical path.  Only answers that were waited for now count; what the journal gave took no time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from taskweave.engine.gateway import Outage


class Tokens(NamedTuple):
    """Those of prompts, those of them that the provider said it had cached, and those of answers."""

    prompt: int = 0
    cached: int = 0
    completion: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineStats:
    """How far an engine is.  Tokens are of all answers that this run rests on so far, replayed ones included.

    `asked` = `replayed` + `paid` + look-ups made now + what is still open; `lost` counts attempts whose answer may have been made and was
    not seen, `elapsed` seconds since this engine began to drive, which could not have been less than `bound`; `used` are the tokens by
    backbone.  `latencies` are the seconds of all answers that were waited for now; `outage` is what goes wrong now.
    """

    asked: int = 0
    replayed: int = 0
    paid: int = 0
    in_flight: int = 0
    queued: int = 0
    retries: int = 0
    lost: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    used: Mapping[str, Tokens] = field(default_factory=dict)
    elapsed: float = 0.0
    latencies: float = 0.0
    bound: float = 0.0
    outage: Outage | None = None


class Pace(NamedTuple):
    """Seconds of wall clock since an engine began to drive; its answers, their latencies added up, and those along the critical path.

    A latency is that of the attempt that was answered: what failed before it, and the pause after, are in the wall clock alone.
    """

    wall: float = 0.0
    answers: int = 0
    latencies: float = 0.0
    critical_path: float = 0.0
    limit: int = 1

    @property
    def bound(self) -> float:
        """No order of these answers, so many at a time, could have taken less."""
        return max(self.critical_path, self.latencies / self.limit)
