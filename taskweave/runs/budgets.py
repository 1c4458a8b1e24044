"""What a run may take, from what its config allows, its prices and what its journal says it has taken.

Entry points: `budget_of`, for the engine; `refuse_unpriced`, before anything is written; `taken`, for whoever looks at a run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from taskweave.backbones.members import Gone
from taskweave.backbones.pricing import FREE, Price, PriceList, price_of
from taskweave.engine.budget import Budget, Cost
from taskweave.engine.reader import JournalReader
from taskweave.errors import BadInput
from taskweave.records import Backbone

if TYPE_CHECKING:
    from taskweave.runs.config import RunConfig
    from taskweave.runs.folder import RunFolder

BUDGETS = ("budget_usd", "budget_tokens", "budget_hours")  # settings of a run


def budget_of(folder: RunFolder) -> Budget | None:
    """The run's budget, less what its earlier sessions took; None where it has none.  To be asked for while nobody drives the run."""
    config = folder.config
    if all(getattr(config, name) is None for name in BUDGETS):
        return None
    with JournalReader(folder.journal_path) as journal:
        used, (driven, slowest) = journal.usage(), journal.driven()
    return Budget(
        usd=config.budget_usd,
        tokens=config.budget_tokens,
        hours=config.budget_hours,
        cost=costs(config.backbone, folder.prices()),
        used=used,
        driven=driven,
        slowest=slowest,
    )


def costs(given: str, own: PriceList | None) -> Cost:
    """What calls cost, by `own` prices first; a run that was `given` another one to replay is billed for nothing."""
    known: dict[str, Price] = {}

    def cost(backbone: str, prompt: float, completion: float) -> float:
        if backbone not in known:
            price = FREE if _replays(given) else price_of(backbone, own)
            if price is None:
                raise unpriced([backbone])
            known[backbone] = price
        return known[backbone].cost(prompt, 0, completion)

    return cost


def refuse_unpriced(usd: float | None, given: str, members: Mapping[str, Backbone], own: PriceList | None) -> None:
    """BadInput where dollars are bounded, and one of the backbones, by their identities, has no known price."""
    if usd is None or _replays(given):
        return
    missing = [name for name, one in members.items() if price_of(name, own) is None and not isinstance(one, Gone)]
    if missing:
        raise unpriced(missing)


def unpriced(names: Iterable[str]) -> BadInput:
    return BadInput(
        f"--budget-usd: no price is known of {', '.join(names)}, so dollars cannot be counted. Give prices with --prices FILE, "
        "or bound the run with --budget-tokens or --budget-hours"
    )


def taken(config: RunConfig, own: PriceList | None, journal: JournalReader) -> dict[str, tuple[float, float]]:
    """What the run has taken and what is allowed, by the budgets that it has; a lost call, or one in flight, counts at the most."""
    if all(getattr(config, name) is None for name in BUDGETS):
        return {}
    spent = Budget(usd=config.budget_usd, cost=costs(config.backbone, own), used=journal.usage()).spent
    amounts = (spent.usd, spent.tokens, journal.driven()[0] / 3600 if config.budget_hours is not None else 0.0)
    allowed = {name: getattr(config, name) for name in BUDGETS}
    return {name: (amount, allowed[name]) for name, amount in zip(BUDGETS, amounts, strict=True) if allowed[name] is not None}


def prices_in(file: Path | None, kept: PriceList | None = None) -> PriceList | None:
    """The prices of a person's file, else those that are `kept`.  Raises FileInvalid."""
    from taskweave.backbones.pricing import read_prices

    return kept if file is None else read_prices(file)


def _replays(given: str) -> bool:
    return given.partition(":")[0] == "replay"
