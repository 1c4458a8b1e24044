"""What the engine itself costs: a request's CPU with a backbone that answers at once, and the speed of re-execution.

`python -m benchmarks.engine` prints one line a measurement; nothing here decides anything.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from taskweave.engine.clock import Clock
from taskweave.engine.engine import Engine
from taskweave.engine.journal import Journal
from taskweave.engine.promises import Context, Promise
from taskweave.records import Completion, Request, Sampling

STABLE = "You work for a small firm that sells invoicing. " * 60
SHORT = 100
SAMPLING = Sampling(temperature=0.7, max_tokens=400)
ANSWER = Completion(text="A paragraph of a deliverable that names what it builds on. " * 10, prompt_tokens=900, completion_tokens=150)


class Instant:
    """Answers at once, always the same."""

    name = "instant"
    origin = "scripted"

    async def complete(self, request: Request) -> Completion:
        return ANSWER


def request(text: str, stable: str) -> Request:
    messages = (("system", stable), ("user", text))
    return Request(prompt="execute", version=1, inputs={}, messages=messages, schema=None, sampling=SAMPLING, backbone="instant")


async def works(folder: Path, count: int, *, chained: bool, size: int, limit: int = 16) -> tuple[float, float, int]:
    """Run `count` works with one request each; returns wall seconds, CPU seconds, and how many requests were paid."""
    path = folder / "journal.db"

    text, stable = "builds on what was there. " * (size // 26), STABLE if size > SHORT else STABLE[:SHORT]

    async def work(ctx: Context, *needs: str) -> str:
        return (await ctx.complete(request(f"{ctx.site} {text}", stable))).text or ""

    with Journal(path, create=not path.exists()) as journal:
        wall, cpu = time.perf_counter(), time.process_time()
        engine = Engine(journal=journal, backbone=Instant(), seed=1, inbox=folder / "inbox", limit=limit)
        before: list[Promise] = []
        for n in range(count):
            promise = engine.launch(f"W/{n}", work, before)
            before = [promise] if chained else []
        await engine.drive(Clock())
        return time.perf_counter() - wall, time.process_time() - cpu, engine.stats.paid


def main() -> None:
    cases: list[tuple[str, int, dict[str, Any]]] = [
        ("16 at a time, prompts of 2,000 bytes beside a stable 2,900", 5_000, {"chained": False, "size": 2000}),
        ("16 at a time, short prompts", 5_000, {"chained": False, "size": SHORT}),
        ("one chain, prompts of 2,000 bytes (two commits a request)", 2_000, {"chained": True, "size": 2000}),
        ("one chain of 50,000, short prompts", 50_000, {"chained": True, "size": SHORT}),
    ]
    for name, count, case in cases:
        with tempfile.TemporaryDirectory() as place:
            for again in (False, True):
                wall, cpu, paid = asyncio.run(works(Path(place), count, **case))
                what = "re-executed" if again else "asked"
                print(f"{name}: {count} {what} in {wall:.2f} s, {1000 * cpu / count:.3f} ms CPU each ({paid} paid)")
            size = (Path(place) / "journal.db").stat().st_size
            print(f"    journal.db {size / 1e6:.1f} MB, {size / count:.0f} bytes a request")


if __name__ == "__main__":
    main()
