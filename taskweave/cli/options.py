"""The options that bound how a run is driven, which run, resume and fork share; each is defined here once.

Entry points: the options, and `tags`, which reads what `--tag` was given.  Knows no command.
"""

from __future__ import annotations

import math
from typing import Annotated

import typer

from taskweave.errors import BadInput
from taskweave.records import MOST


def share(text: str) -> float:
    """ "20%" or "0.2" -> 0.2."""
    number = text.strip().removesuffix("%").strip()
    try:
        found = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise typer.BadParameter(f"{text!r} is no share; write for example 20% or 0.2.")
    return found


MaxFallback = Annotated[
    float | None,
    typer.Option(
        "--max-fallback",
        metavar="SHARE",
        parser=share,
        help="Stop, resumable, once more than this share of the answers had to be made by code, e.g. --max-fallback 20%.",
        show_default=False,
    ),
]


def finite(seconds: float | None) -> float | None:
    """A number of seconds that a clock can reach."""
    if seconds is not None and not seconds <= MOST["patience"]:
        raise typer.BadParameter(
            f"{seconds} is not a number of seconds up to {MOST['patience']:,.0f}; name one, for example 86400 for a day."
        )
    return seconds


Limit = typer.Option("--limit", min=1, help="The most calls in flight at a time, e.g. --limit 4.")
Patience = typer.Option(
    "--patience",
    callback=finite,
    min=0,
    help="Seconds to wait out an outage before the run stops, and that one call may take (at least 5), e.g. --patience 60.",
)
Look = Annotated[
    bool,
    typer.Option(
        "--look/--no-look",
        help="Whether an endpoint that was never probed is asked first whether it can do what is needed, e.g. --no-look.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes", help="Begin without the question that a backbone which is paid for calls for, where no budget bounds it, e.g. --yes."
    ),
]
Tag = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="K=V",
        help="A note kept with the run; may be given more than once, e.g. --tag study=pilot.",
        show_default=False,
    ),
]


def tags(given: list[str]) -> dict[str, str]:
    """["study=pilot"] -> {"study": "pilot"}."""
    pairs = [tag.partition("=") for tag in given]
    for key, equals, _ in pairs:
        if not equals or not key:
            raise BadInput(f"--tag {key!r}: a tag is written K=V, for example --tag study=pilot.")
    return {key: value for key, _, value in pairs}


def positive(param: typer.CallbackParam, number: float | None) -> float | None:
    """A number above 0 that can be reached."""
    if number is None:
        return None
    most = MOST[str(param.name)]
    if not number > 0:
        raise typer.BadParameter(f"{number} is not above 0; name how much is allowed, for example 2.5.")
    if number > most:
        raise typer.BadParameter(f"{number} is more than can be allowed, which is {most:,.0f}; name less, or leave it out.")
    return number


BudgetUsd = Annotated[
    float | None,
    typer.Option(
        "--budget-usd",
        metavar="X",
        callback=positive,
        help="The most dollars that the run may spend, over all its sessions; it stops before that, resumable, e.g. --budget-usd 5.",
        show_default=False,
    ),
]
BudgetTokens = Annotated[
    int | None,
    typer.Option(
        "--budget-tokens",
        metavar="N",
        min=1,
        callback=positive,
        help="The most tokens, of prompts and answers, that it may take likewise, e.g. --budget-tokens 2000000.",
        show_default=False,
    ),
]
BudgetHours = Annotated[
    float | None,
    typer.Option(
        "--budget-hours",
        metavar="H",
        callback=positive,
        help="The most hours that it may run likewise; what is in flight then is given up, e.g. --budget-hours 8.",
        show_default=False,
    ),
]
