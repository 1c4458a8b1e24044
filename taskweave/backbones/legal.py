"""Which legal name did a backbone mean?  Entry point: `nearest`.  What was changed is said, so that it can be recorded."""

from __future__ import annotations

import difflib
from collections.abc import Sequence


def nearest(name: str, legal: Sequence[str]) -> tuple[str, str | None]:
    """`name` if it is legal, else the nearest legal one by its letters and a note; `name` itself where there is none to choose from."""
    if not legal or name in legal:
        return name, None
    folded = {other.casefold().strip(): other for other in reversed(legal)}
    wanted = name.casefold().strip()
    if wanted in folded:
        return folded[wanted], None
    close = difflib.get_close_matches(wanted, list(folded), n=1, cutoff=0.0)
    # Where nothing is near, the first stands in: a run must repeat.
    chosen = folded[close[0]] if close else legal[0]
    return chosen, f"{name!r} is not a legal name here; {chosen!r} was taken"
