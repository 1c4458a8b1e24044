"""A small program of works for the engine's tests: a workshop with lines, items and hands, and nothing of organizations.

`python workshop.py FOLDER` runs or resumes it as a process of its own, to be killed, interrupted or read from outside.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import simpy

from taskweave.engine.clock import CLOSE_WEEK, OPEN_WEEK, SEAL, START, TICK, Clock
from taskweave.engine.engine import Engine
from taskweave.engine.gateway import Pacing
from taskweave.engine.journal import Journal, JournalReader
from taskweave.engine.promises import Context, Promise
from taskweave.errors import Transient
from taskweave.records import Completion, Request, Sampling, canonical

DAY, DAYS = 60, 2
QUICK = Pacing(base=0.001, longest=0.01, trip=8, cool=0.005)


def sha(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()


def question(step: str, *inputs: object) -> Request:
    return Request(
        prompt=step,
        version=1,
        inputs={},
        messages=(("system", f"You {step} in a workshop."), ("user", canonical([step, *inputs]))),
        schema={"type": "object", "title": step},
        sampling=Sampling(temperature=0.5, max_tokens=100),
        backbone="answers",
    )


@dataclass
class Answers:
    """A backbone: the answer depends on the request alone, the latency and the faults on `shuffle`."""

    latency: float = 0.0
    shuffle: int = 0
    fail: float = 0.0
    trouble: Callable[[Request], None] | None = None
    bill: Path | None = None
    name: str = "answers"
    origin: str = "scripted"
    sent: list[str] = field(default_factory=list)
    flying: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.shuffle)

    async def complete(self, request: Request) -> Completion:
        mark = sha(request.logical())
        self.sent.append(mark)
        if self.bill:
            with self.bill.open("a") as bill:
                bill.write(f"{mark}\n")
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        try:
            if self.latency:
                await asyncio.sleep(self._random.expovariate(1 / self.latency))
            if self.trouble:
                self.trouble(request)
            if self._random.random() < self.fail:
                raise Transient("429 too many requests", 0.001)
        finally:
            self.flying -= 1
        draw = random.Random(mark)
        if request.prompt == "split":
            return Completion(text=json.dumps([draw.randint(5, 50) for _ in range(draw.randint(1, 3))]))
        return Completion(text=f"{request.prompt} {draw.getrandbits(64):x}", prompt_tokens=50, completion_tokens=7)


class Workshop:
    """Every week each line plans, splits its plan into items (that number steers the clock) and two hands make them."""

    def __init__(self, engine: Engine, *, weeks: int, lines: int = 4, clock: Clock | None = None, draws: int = 0) -> None:
        self.engine, self.weeks, self.lines, self.draws = engine, weeks, lines, draws
        self.clock = clock or Clock()
        self.env = self.clock.env
        self.hands = simpy.PriorityResource(self.env, 2)
        self.events: list[tuple[int, str, str]] = []
        self.rows: list[tuple[tuple[Promise, ...], Callable[..., Any]]] = []
        self.made: dict[int, list[Promise]] = {line: [] for line in range(lines)}
        self.reviews: list[Promise] = []
        self.seals: list[Promise] = []
        self.sealed: list[str] = []
        self.week = -1
        self.env.process(self.calendar())

    def event(self, kind: str, subject: str) -> None:
        row = (int(self.env.now), kind, subject)
        self.events.append(row)
        self.rows.append(((), lambda: row))

    def launch(self, step: str, site: str, *needs: Promise, reads: Promise | None = None) -> Promise:
        async def work(ctx: Context, *values: Any) -> str:
            found = await ctx.look_up("search", site, lambda: self.sealed[-1][:6]) if reads else None
            text = (await ctx.complete(question(step, site, found, *values))).text
            assert text is not None
            if text.endswith("0"):  # as if the answer were bad: ask once more
                text = (await ctx.complete(question(step, site, "again", text))).text
            return str(text)

        return self.engine.launch(f"{site}:{step}", work, needs, due=(self.week, int(self.env.now)), reads=reads)

    def calendar(self) -> Generator[simpy.Event, Any, None]:
        day, at = 0, self.clock.at
        while True:
            week, monday = divmod(day, DAYS)
            if not monday and day:
                yield at(CLOSE_WEEK)
                self.reviews = [self.launch("review", f"W{week}@{line}", *done) for line, done in self.made.items()]
                yield at(SEAL)
                self.seal(week)
            yield at(TICK)
            if week == self.weeks:
                self.clock.halted = True
                return
            self.week = week
            for injection in self.engine.journal.tick(day, self.engine.inbox):
                self.event("injection", f"{injection.id} {canonical(injection.payload)}")
            if not monday:
                yield at(OPEN_WEEK)
                for line in range(self.lines):
                    site = f"W{week + 1}@{line}"
                    plan = self.launch("plan", site, *self.reviews[line : line + 1])
                    split = self.launch("split", site, plan)
                    self.env.process(self.line(line, site, plan, split))
            day += 1
            yield self.env.timeout(DAY)

    def line(self, line: int, site: str, plan: Promise, split: Promise) -> Generator[simpy.Event, Any, None]:
        yield self.clock.wait(split)
        self.event("open", site)
        for n, minutes in enumerate(json.loads(split.value)):
            self.env.process(self.item(line, f"{site}/t{n + 1}", plan, minutes))

    def item(self, line: int, site: str, plan: Promise, minutes: int) -> Generator[simpy.Event, Any, None]:
        with self.hands.request() as hand:
            yield hand
            yield self.clock.at(START)
            made = self.launch("make", site, plan, reads=self.seals[-1] if self.seals else None)
            self.event("start", site)
            yield self.env.timeout(minutes + self.engine.random("minutes", site).randint(0, 5))
        self.event("finish", site)
        self.made[line].append(made)
        self.rows.append(((made,), lambda text: (site, text)))

    def seal(self, week: int) -> None:
        rows, self.rows = self.rows, []
        before = self.seals[-1:]
        needs = list(dict.fromkeys([*before, *(need for group, _ in rows for need in group)]))

        async def close(ctx: Context, *values: Any) -> str:
            value_of = dict(zip(needs, values, strict=True))
            made = [row(*[value_of[need] for need in group]) for group, row in rows]
            digest = sha(*[value_of[seal] for seal in before], canonical(made))
            self.engine.journal.close_week(week, digest, {"rows": len(made)})
            self.sealed.append(digest)
            return digest

        self.clock.last = self.engine.launch(f"W{week}:seal", close, needs)
        self.seals.append(self.clock.last)


@dataclass
class Ran:
    engine: Engine
    workshop: Workshop
    digests: list[str]


async def work(
    folder: Path, answers: Any, *, weeks: int = 3, lines: int = 4, clock: Clock | None = None, limit: int = 4, **more: Any
) -> Ran:
    """Run or resume the workshop of `folder`."""
    path = folder / "journal.db"
    (folder / "inbox").mkdir(parents=True, exist_ok=True)
    with Journal(path, create=not path.exists()) as journal:
        engine = Engine(journal=journal, backbone=answers, seed=1, inbox=folder / "inbox", limit=limit, **{"pacing": QUICK} | more)
        workshop = Workshop(engine, weeks=weeks, lines=lines, clock=clock)
        await engine.drive(workshop.clock)
        return Ran(engine, workshop, workshop.sealed)


# ---------------------------------------------------------------- an engine for a few works
def engine_in(folder: Path, backbone: Any = None, **more: Any) -> Engine:
    """An engine on a new journal, for tests of a few works."""
    (folder / "inbox").mkdir(exist_ok=True)
    journal = Journal(folder / "journal.db", create=not (folder / "journal.db").exists())
    return Engine(journal=journal, backbone=backbone or Answers(), seed=1, inbox=folder / "inbox", **more)


def drive(engine: Engine, clock: Clock | None = None) -> None:
    try:
        asyncio.run(engine.drive(clock or Clock()))
    finally:
        engine.journal.close()


def asks(step: str = "make") -> Any:
    """A work of one request."""

    async def one(ctx: Context, *needs: Any) -> str:
        return (await ctx.complete(question(step, ctx.site, *needs))).text or ""

    return one


def trace_of(folder: Path) -> list[str]:
    """The digests of the weeks that a run has closed."""
    with JournalReader(folder / "journal.db") as journal:
        return [week.digest for week in journal.weeks()]


def copy_journal(source: Path, target: Path) -> sqlite3.Connection:
    """A journal's copy, open for a test that damages it."""
    target.mkdir(parents=True, exist_ok=True)
    (target / "journal.db").write_bytes((source / "journal.db").read_bytes())
    return sqlite3.connect(target / "journal.db", isolation_level=None)


def run_program(folder: Path, *options: str, **env: str) -> dict[str, Any]:
    """The workshop as a process, to its end."""
    done = subprocess.run(command(folder, *options), env=os.environ | env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def command(folder: Path, *options: str) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return [sys.executable, __file__, str(folder), *options]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weeks", type=int, default=6)
    parser.add_argument("--latency", type=float, default=0.005)
    parser.add_argument("--bill", type=Path)
    options = parser.parse_args()
    ran = asyncio.run(work(options.folder, Answers(options.latency, bill=options.bill), weeks=options.weeks))
    stats = ran.engine.stats
    print(json.dumps({"stop": ran.engine.stop, "digests": ran.digests, "paid": stats.paid, "replayed": stats.replayed, "lost": stats.lost}))


if __name__ == "__main__":
    main()
