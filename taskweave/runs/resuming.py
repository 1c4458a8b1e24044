"""Which command continues a run that ended early?  Entry points: `resume_command`, and `to_allow`, which writes what it reads.

Knows of an ending only the words in which it was written down.
"""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path

_ALLOW = re.compile(r"--max-fallback \d+%")


def to_allow(share: float) -> str:
    """What lets a run go on in which this share of the answers was made by code: the next tenth, in words."""
    return f"To let it go on, allow --max-fallback {min(10 * math.floor(10 * share + 1), 100)}%"


def resume_command(run: Path, stop: str | None, cause: str) -> str:
    """What to type, given why the run ended and the cause in words."""
    allowed = _ALLOW.findall(cause) if stop == "fallback" else []
    return " ".join(["taskweave resume", shlex.quote(str(run)), *allowed[-1:]])
