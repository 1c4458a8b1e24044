"""A small world of two people for tests of tools: `a_world`, `call`, `done`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from taskweave.records import Json
from taskweave.tools.hand import Person
from taskweave.tools.shelf import TOOLS, world_of
from taskweave.tools.world import Called, Effect, World

INES = Person(id="backend-engineer", name="Ines Roux", role="Backend Engineer", department="Technology", email="ines.roux@acme.example")
BO = Person(id="hr", name="Bo Lindqvist", role="HR", department="Strategy", email="bo.lindqvist@acme.example")
MOMENT = "2026-02-03 09:30"
_KEYS = itertools.count(1)


def a_world(folder: Path | None = None) -> World:
    return world_of([INES, BO], domain="acme.example", folder=folder)


def call(
    world: World, name: str, /, *, actor: str = INES.id, after: Sequence[Effect] = (), key: str = "", at: str = MOMENT, **given: Json
) -> Called:
    return world.call(TOOLS[name], given, actor=actor, moment=at, key=key or f"k{next(_KEYS):05}", after=after)


def effect_of(called: Called) -> Effect:
    assert called.ok, called.said
    assert called.effect is not None
    return called.effect


def done(world: World, name: str, /, *, actor: str = INES.id, key: str = "", at: str = MOMENT, week: int = 1, **given: Json) -> Json:
    """Call a tool and land its effect at once."""
    called = call(world, name, actor=actor, key=key, at=at, **given)
    (landing,) = world.land(week, [effect_of(called)])
    assert landing.landed, landing.conflicts
    return called.said
