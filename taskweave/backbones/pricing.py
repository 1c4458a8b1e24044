"""What does a token cost?  Entry points: `price_of`, `bill`, `read_prices` (one's own file), `must_ask` (whether a run is paid for).

List prices stand in `pricing.yaml` beside this file, with their date; what is not in it has no price, and is never guessed.
It counts no tokens and knows no run.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from taskweave.org import form
from taskweave.org.form import Field, read_file

MILLION = 1_000_000
_FREE = ("scripted", "local", "replay")  # kinds of backbones that nobody bills
_SNAPSHOT = re.compile(r"-\d{4}-\d{2}-\d{2}$")  # a dated model is billed as the undated one, unless it has a price of its own
_NEAR = (".localhost", ".local", ".internal", ".lan")


@dataclass(frozen=True, kw_only=True, slots=True)
class Price:
    """USD per million tokens: of a prompt, of what was cached of it, of an answer.  `as_of` is the list's date, "" where it has none."""

    input: float
    cached: float
    output: float
    as_of: str = ""
    own: bool = False  # from a person's own file

    def cost(self, prompt: float, cached: float, completion: float) -> float:
        """Dollars for so many tokens; `cached` are those of the prompt that the provider had cached, at most all of them."""
        cached = min(cached, prompt)
        return ((prompt - cached) * self.input + cached * self.cached + completion * self.output) / MILLION


FREE = Price(input=0.0, cached=0.0, output=0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class PriceList:
    """Prices by model, or by a backbone's whole name, as a file gives them."""

    as_of: str = ""
    sources: tuple[str, ...] = ()
    prices: Mapping[str, Price] = field(default_factory=dict)


class Used(NamedTuple):
    """Tokens that one backbone took; `cached` are part of `prompt`."""

    backbone: str
    prompt: float
    cached: float
    completion: float


class Bill(NamedTuple):
    """Dollars: with what the provider says it had cached, and as if it had cached nothing."""

    cost: float
    uncached: float


def price_of(backbone: str, own: PriceList | None = None) -> Price | None:
    """What a backbone of this name ("openai:gpt-4o-mini") costs; `own` prices go first.  None: no price is known."""
    backbone = backbone.partition("#")[0]  # what follows is a route's own name for it
    kind, _, model = backbone.partition(":")
    names = [name for name in (backbone, model) if name]
    if own is not None and (found := _listed(names, own)) is not None:
        return found
    if kind in _FREE:
        return FREE
    return _listed(names[1:], shipped_prices()) if kind == "openai" else None


def bill(used: Iterable[Used], own: PriceList | None = None) -> Bill | None:
    """What it all costs; None where something was used of which no price is known."""
    cost = uncached = 0.0
    for one in used:
        if not (one.prompt or one.completion):
            continue
        price = price_of(one.backbone, own)
        if price is None:
            return None
        cost += price.cost(one.prompt, one.cached, one.completion)
        uncached += price.cost(one.prompt, 0, one.completion)
    return Bill(cost, uncached)


def must_ask(backbone: str, base_url: str | None, price: Price | None, *, yes: bool) -> bool:
    """Whether somebody may be billed for what this backbone answers, and has not said yes.

    `base_url` is where it listens, None for the provider itself.  What listens on this machine or in a private network bills nobody;
    elsewhere it is paid unless its price is known to be nothing.
    """
    if yes or backbone.partition(":")[0] in _FREE or (base_url is not None and is_private(base_url)):
        return False
    return price is None or max(price.input, price.cached, price.output) > 0


def is_private(url: str) -> bool:
    """Whether a URL names this machine or a private network: loopback, a private address, or a name without a public domain."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_NEAR))
    return address.is_loopback or address.is_private or address.is_link_local


# ---------------------------------------------------------------- files
_USD = form.number(least=0, most=MILLION)  # per million tokens: a dollar a token is more than anybody asks
_PRICE = form.record(
    {
        "input": Field(_USD, "USD per million prompt tokens", required=True),
        "cached": Field(_USD, "USD per million prompt tokens that were cached"),
        "output": Field(_USD, "USD per million tokens of the answers", required=True),
    }
)
_FILE = form.record(
    {
        "as_of": Field(form.DATE, "the day of the prices, such as 2026-10-14"),
        "sources": Field(form.listing(form.TEXT), "where they stand"),
        "models": Field(form.mapping_of(form.clean_name, _PRICE, "models", empty="is empty"), "prices by model", required=True),
    }
)


def read_prices(path: Path) -> PriceList:
    """A price file in the form of `pricing.yaml`.  Raises FileInvalid with the line and the reason of every problem in it."""
    values = read_file(_FILE, path)
    as_of = values["as_of"].isoformat() if "as_of" in values else ""
    return PriceList(
        as_of=as_of,
        sources=values.get("sources", ()),
        prices={
            name: Price(input=one["input"], cached=one.get("cached", one["input"]), output=one["output"], as_of=as_of, own=path != _SHIPPED)
            for name, one in values["models"].items()
        },
    )


@lru_cache(maxsize=1)
def shipped_prices() -> PriceList:
    """The list that comes with this package."""
    return read_prices(_SHIPPED)


_SHIPPED = Path(__file__).parent / "pricing.yaml"


def _listed(names: Iterable[str], prices: PriceList) -> Price | None:
    for name in names:
        for one in (name, _SNAPSHOT.sub("", name)):
            if one in prices.prices:
                return prices.prices[one]
    return None
