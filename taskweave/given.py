"""Is what a program gave to `simulate` or `resume` of the kind that is needed?  The command line's own parser has asked before.

Entry points: `checked`, `checked_backbone`, `several`, `left_out`, `prompt_folders`, `price_file`.  Each error says what was given,
where, and what to give instead.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taskweave.errors import BadInput
from taskweave.records import MOST, StyleName, is_text
from taskweave.runs.config import PARTS, Part
from taskweave.shipped import COMPACT, prompt_files, shipped_prompts

if TYPE_CHECKING:
    from taskweave.records import Backbone

_COPIES = "'taskweave new DIR' makes a folder with copies of the shipped prompts."


def checked(**given: Any) -> None:
    """Raises BadInput for the first that cannot be used.  `_RULES` has their names."""
    for name, value in given.items():
        fits, needed = _RULES[name]
        if not fits(value):
            raise BadInput(f"{name}={value!r}: {needed}")


def checked_backbone(backbone: Any) -> None:
    """Raises BadInput for an object that cannot answer, or whose name cannot be written down."""
    if not callable(getattr(backbone, "complete", None)):
        raise BadInput(
            f"backbone={backbone!r}: name one ('scripted', 'local', 'openai:MODEL') or give an object with 'async def complete'."
        )
    name, origin = getattr(backbone, "name", None), getattr(backbone, "origin", None)
    if not (isinstance(name, str) and name.strip()):
        raise BadInput(f"backbone={backbone!r}: its 'name' is {name!r}; it must be a short text that says what answers.")
    if origin not in ("model", "scripted"):
        raise BadInput(f"backbone={backbone!r}: its 'origin' is {origin!r}; it must be 'model' or 'scripted'.")


def several(name: str, value: Any) -> list[Path]:
    """One path or some as a list of paths."""
    given = [value] if isinstance(value, str | PathLike) else list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(one, str | PathLike) for one in given):
        raise BadInput(f"{name}={value!r}: give a path, or a list of paths, for example {name}=['acme/{name}'].")
    return [Path(one) for one in given]


def left_out(value: Any) -> tuple[Part, ...]:
    """One name or some as parts of the loop, each once, in the loop's order.  Raises BadInput with the nearest name there is."""
    given = [value] if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    for name in given:
        if name not in PARTS:
            close = difflib.get_close_matches(str(name).strip().casefold().replace("-", "_"), PARTS, n=1, cutoff=0.5)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise BadInput(f"without {name!r}: the loop has no such part.{hint} What can be left out is {', '.join(PARTS)}.")
    return tuple(part for part in PARTS if part in given)


def prompt_folders(folders: Sequence[Path], style: StyleName = "full") -> list[Path]:
    """The shipped prompts of a style and the folders that lie over them; of one that has a folder `compact`, that is it for this style.

    Raises BadInput for one that is missing or holds no prompt.
    """
    laid = []
    for folder in folders:
        if not folder.is_dir():
            raise BadInput(f"{folder}: there is no such folder of prompts. {_COPIES}")
        laid.append(folder / COMPACT if style == "compact" and (folder / COMPACT).is_dir() else folder)
        if not prompt_files(laid[-1]):
            raise BadInput(f"{laid[-1]}: no prompt lies there (no *.md beside a README). {_COPIES}")
    return [shipped_prompts(style), *laid]


def named(backbone: str | Backbone) -> str:
    """As a run's config says it."""
    return backbone if isinstance(backbone, str) else backbone.name


def price_file(file: Path | None) -> bytes | None:
    """The content of a person's price file, once it is known to be one.  Raises FileInvalid with its problems."""
    if file is None:
        return None
    from taskweave.backbones.pricing import read_prices

    read_prices(file)
    return file.read_bytes()


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


def _share(value: Any) -> bool:
    return value is None or (_seconds(value) and value <= 1)


def _amount(name: str) -> Callable[[Any], bool]:
    return lambda value: value is None or (_seconds(value) and 0 < value <= MOST[name])


def _texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(one, str) and is_text(one) for pair in value.items() for one in pair)


_RULES = {
    "seed": (_whole, "a whole number is needed, for example 1."),
    "until": (lambda value: isinstance(value, str), "a text is needed: 'week:8', 'month:3', 'quarter:2', 'year' or '2026-03-31'."),
    "limit": (lambda value: _whole(value) and value >= 1, "the most calls in flight at a time, a whole number from 1 on, for example 16."),
    "patience": (
        lambda value: _seconds(value) and value <= MOST["patience"],
        f"a number of seconds up to {MOST['patience']:,.0f} is needed, for example 600.",
    ),
    "assign": (lambda value: value in ("match", "model"), "who chooses the roles of subtasks is 'match' (code) or 'model'."),
    "base_url": (lambda value: value is None or isinstance(value, str), "a text is needed, for example 'http://localhost:8000/v1'."),
    "tracer_provider": (
        lambda value: value is None or callable(getattr(value, "get_tracer", None)),
        "a tracer provider of OpenTelemetry is needed, for example 'opentelemetry.sdk.trace.TracerProvider()'.",
    ),
    "style": (lambda value: value in (None, "full", "compact"), "the style of asking is 'full' or 'compact'."),
    "max_fallback": (_share, "a share from 0 to 1 is needed, for example 0.2."),
    "budget_usd": (_amount("budget_usd"), f"a number of dollars above 0 and up to {MOST['budget_usd']:,.0f} is needed, for example 2.5."),
    "budget_tokens": (
        lambda value: value is None or (_whole(value) and 1 <= value <= MOST["budget_tokens"]),
        f"a whole number above 0 and up to {MOST['budget_tokens']:,.0f} is needed, for example 2000000.",
    ),
    "budget_hours": (
        _amount("budget_hours"),
        f"a number of hours above 0 and up to {MOST['budget_hours']:,.0f} is needed, for example 1.5.",
    ),
    "rate": (lambda value: value is None or isinstance(value, str), "a text is needed: how many in which period, for example '1/month'."),
    "tags": (_texts, "texts by texts are needed, for example {'study': 'pilot'}."),
}
