"""What the offline texts count: how many things there are and how many of them have a flaw, at a place and in a period.

All texts of an organization read the same world, so that two that speak of the same things in the same weeks agree without having seen
one another, and a later one can say what has changed.  A period is four weeks; figures hold for all of it.
Knows nothing of roles, tasks or requests.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache
from hashlib import blake2b

from taskweave.backbones.scripted import fields

_DAYS = 28


@lru_cache(maxsize=16384)
def chance(*keys: object) -> float:
    """A number from 0 up to 1 that belongs to the keys: the same for the same ones, in every process."""
    text = ":".join(map(str, keys)).encode()
    return int.from_bytes(blake2b(text, digest_size=6).digest(), "big") / 2**48


def period(day: date) -> int:
    return day.toordinal() // _DAYS


def begin(number: int) -> date:
    return date.fromordinal(number * _DAYS)


@lru_cache(maxsize=4096)
def total(place: str, case: fields.Case, when: int) -> int:
    """How many items of a case there are at a place in a period."""
    few, most = case.many
    usual = few + (most - few) * chance(place, case.items)
    return max(12, few, round(usual * (0.92 + 0.16 * chance(place, case.items, when))))


@lru_cache(maxsize=16384)
def share(place: str, flaw: str, when: int) -> float:
    """How many items of a place have a flaw in a period, of 1."""
    return (0.08 + 0.16 * chance(place, flaw)) * (0.65 + 0.7 * chance(place, flaw, when))


def value(place: str, metric: fields.Metric, when: int) -> float:
    """What a metric reads at a place in a period."""
    usual = 0.2 + 0.6 * chance(place, metric.name)
    at = usual + 0.3 * (chance(place, metric.name, when) - 0.5)
    return metric.low + (metric.high - metric.low) * min(max(at, 0.03), 0.97)
