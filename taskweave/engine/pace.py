"""How long did an engine take, and how long did it have to?  Entry point: `Pace`.

A work cannot end before its needs, nor before what the clock had waited for when it was launched, and then its own answers come one after
the other: the longest such chain is the critical path.  Only answers that were waited for now count; what the journal gave took no time.
"""

from __future__ import annotations

from typing import NamedTuple


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
