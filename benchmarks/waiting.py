"""How near does a run come to what its answers allow?  `python -m benchmarks.waiting ORGANIZATION UNTIL SECONDS LIMIT` prints it as JSON.

The scripted backbone answers after a latency of its own for each request: lognormal, of that mean, drawn from the request's seed.  What an
engine measures is more where it is busy and wakes up late, and would make the bound look near: here it is told what was drawn.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple
from unittest.mock import patch

import taskweave as tw
from benchmarks.process import fresh
from taskweave.backbones.scripted import Scripted
from taskweave.engine.gateway import Gateway
from taskweave.engine.promises import Ask
from taskweave.engine.stats import Pace
from taskweave.records import Completion, Request

SIGMA = 0.5  # of the logarithm: the slowest of a hundred takes three times the mean


class Latent:
    """The scripted backbone with a latency."""

    name = "latent"
    origin: Literal["model", "scripted"] = "scripted"

    def __init__(self, mean: float) -> None:
        self._inner, self._mean = Scripted(), mean

    def latency(self, request: Request) -> float:
        """The seconds that this request takes."""
        draw = Random(f"latency:{request.seed}:{request.prompt}:{len(request.messages[-1][1])}")
        return self._mean * math.exp(draw.gauss(-SIGMA * SIGMA / 2, SIGMA))

    async def complete(self, request: Request) -> Completion:
        clock = asyncio.get_running_loop().time
        until = clock() + self.latency(request)
        completion = await self._inner.complete(request)
        await asyncio.sleep(max(0.0, until - clock()))
        return completion

    async def close(self) -> None:
        await self._inner.close()


class Waited(NamedTuple):
    """A run's pace by the latencies that were drawn, in seconds; `measured` is the sum of those that its engine saw."""

    pace: Pace
    measured: float

    @property
    def over_bound(self) -> float:
        return self.pace.wall / self.pace.bound

    @property
    def speedup(self) -> float:
        """How many times faster than one answer after the other."""
        return self.pace.latencies / self.pace.wall


def waited(organization: str, until: str, mean: float, limit: int) -> Waited:
    """Run an organization with answers that take `mean` seconds, at most `limit` at a time, in a process of its own."""
    pace, measured = json.loads(fresh("benchmarks.waiting", organization, until, str(mean), str(limit)).said)
    return Waited(Pace(*pace), measured)


def main(words: list[str]) -> None:
    organization, until, mean, limit = words
    backbone, measured, send = Latent(float(mean)), 0.0, Gateway._send

    async def meant(gateway: Gateway, ask: Ask) -> tuple[Completion, float]:
        nonlocal measured
        completion, latency = await send(gateway, ask)
        measured += latency
        assert ask.request is not None
        return completion, backbone.latency(ask.request)

    with tempfile.TemporaryDirectory() as place, patch.object(Gateway, "_send", meant):
        run = tw.simulate(organization, out=Path(place) / "run", backbone=backbone, until=until, limit=int(limit))
    assert run.outcome is not None
    assert run.outcome.pace is not None
    print(json.dumps([run.outcome.pace, measured]))


if __name__ == "__main__":
    main(sys.argv[1:])
