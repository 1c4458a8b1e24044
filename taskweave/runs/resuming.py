"""Which command continues a run that ended early, and does it need to be told more than before?

Entry points: `resume_command`, `stays_stopped`, `cause_now`.  They go by the bound that was reached, never by the words that say so.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
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


def cause_now(cause: str, bound: Bound | None, config: RunConfig, taken: Mapping[str, tuple[float, float]]) -> str:
    """Why a run that ended at this bound, with this `cause`, stays stopped: where less is allowed by now, in what is allowed now.

    `taken` is what budgets have taken and what is allowed, by setting.
    """
    if bound is None or not stays_stopped(bound, config) or (allowed := getattr(config, bound.option)) == bound.allowed:
        return cause
    spent = taken[bound.option][0] if bound.option in taken else 0.0
    said = {
        "budget_usd": f"${spent:.4g} of the ${allowed:g} that are allowed now are spent",
        "budget_tokens": f"{spent:,.0f} of the {allowed:,.0f} tokens that are allowed now are spent",
        "budget_hours": f"{spent:.3g} of the {allowed:g} hours that are allowed now are over",
        "max_fallback": f"{bound.counted:,} of {bound.asked:,} answers were made by code, and {100 * allowed:.12g} % are allowed now",
    }[bound.option]
    return f"{said}. To let it go on, allow {enough(bound)}"


def resume_command(run: Path, bound: Bound | None) -> str:
    """What to type, with what would be enough where a bound was reached."""
    return " ".join(["taskweave resume", shlex.quote(str(run)), *([] if bound is None else [enough(bound)])])


def enough(bound: Bound) -> str:
    """The option that lets a run go on."""
    value = f"{100 * bound.enough:.12g}%" if bound.option in _SHARES else f"{bound.enough:.12g}"
    return f"--{bound.option.replace('_', '-')} {value}"
