"""Which command continues a run that ended early, and does it need to be told more than before?

Entry points: `resume_command`, `stays_stopped`.  They go by the bound that was reached, never by the words that say so.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from taskweave.engine.budget import Bound

if TYPE_CHECKING:
    from taskweave.runs.config import RunConfig

_SHARES = ("max_fallback",)  # settings that are said in per cent


def stays_stopped(bound: Bound | None, config: RunConfig) -> bool:
    """Whether a run that ended at this bound would only end again: no more is allowed than was then."""
    if bound is None:
        return False
    allowed = getattr(config, bound.option, None)
    return allowed is not None and allowed <= bound.allowed


def resume_command(run: Path, bound: Bound | None) -> str:
    """What to type, with what would be enough where a bound was reached."""
    return " ".join(["taskweave resume", shlex.quote(str(run)), *([] if bound is None else [enough(bound)])])


def enough(bound: Bound) -> str:
    """The option that lets a run go on."""
    value = f"{100 * bound.enough:.12g}%" if bound.option in _SHARES else f"{bound.enough:.12g}"
    return f"--{bound.option.replace('_', '-')} {value}"
