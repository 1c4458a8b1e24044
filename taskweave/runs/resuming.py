"""Which command continues a run that ended early, and does it need to be told more than before?

Entry points: `resume_command`, `stays_stopped`, and `beyond`, which writes what they read.  Knows of an ending only its word and the
cause that was written down.
"""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

FALLBACK = "fallback"  # the word for a run that stopped because of too many fallbacks
_ALLOWED = re.compile(r"more than the (\S+) % that are allowed")
_ALLOW = re.compile(r"allow (--max-fallback \d+%)")


def beyond(what: str, fallback: int, asked: int, most: float, reasons: str) -> str:
    """Why a run stopped: so many answers of `what` were fallbacks.  What would let it go on is the next tenth above their share."""
    share = fallback / asked
    return (
        f"of {what} {fallback:,} of {asked:,} ({100 * share:.1f} %) could not be used and were made by code, more than the "
        f"{100 * most:.12g} % that are allowed; most often: {reasons}. "
        f"To let it go on, allow --max-fallback {min(10 * math.floor(10 * share + 1), 100)}%"
    )


def stays_stopped(stop: str, cause: str, most: float | None) -> bool:
    """Whether a run that ended so would only end again: no more fallbacks are allowed than were then."""
    found = _ALLOWED.search(cause) if stop == FALLBACK else None
    return found is not None and most is not None and 100 * most <= float(found[1])


def resume_command(run: Path, stop: str, cause: str) -> str:
    """What to type, given the word for why the run ended and the cause."""
    allowed = _ALLOW.findall(cause) if stop == FALLBACK else []
    return " ".join(["taskweave resume", shlex.quote(str(run)), *allowed[-1:]])
