"""The driver: works resolve from the journal or a backbone, the clock moves, and the order of answers changes nothing.

Entry point: `Engine.launch` for SimPy processes, `Engine.drive` for whoever runs them.  One coroutine does everything: it takes an
event from the clock, steps what became ready, commits what came back, sends what may be sent.  Works are stepped here and
never inside a SimPy event, so their failures, and a provider's, do not pass through SimPy.
Recovery is re-execution: what the journal holds is not asked again.  Nothing here knows what a run is about.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CoroutineType
from typing import Any

from taskweave.engine.budget import Bound, Budget
from taskweave.engine.clock import Clock
from taskweave.engine.gateway import Gateway, Pacing
from taskweave.engine.journal import Journal, diverged
from taskweave.engine.outcomes import Ended, Landed, Outcome, completed, storable
from taskweave.engine.outside import Outside
from taskweave.engine.promises import COMPLETE, Ask, Context, Due, Promise, Work, WorkFunction, keyed_random
from taskweave.engine.signals import heard_by
from taskweave.engine.stats import EngineStats, Pace, Tokens
from taskweave.engine.store import damaged
from taskweave.engine.witness import Witness
from taskweave.errors import DiskFull, Divergence, EngineFault
from taskweave.records import Backbone, Json

EVENTS_A_TURN = 128  # so many clock events, at most, between two looks at answers and signals
STEPS_A_TURN = 1000  # so many works likewise
LOOK_SECONDS = 0.05  # how often the inbox is looked at, and progress observed


class Engine:
    """One run's concurrency.

    `limit` requests are in flight at most; without any answer for `patience` seconds the run stops as "outage".  `observe` is called about
    every twentieth of a second; `interrupted` says whether a signal came before this engine heard them; `witness` is told what is asked
    now; `budget` is what it may take; with `reaches` off nothing is done outside.  Without a backbone nothing is sent: what the journal
    does not answer stays open.  After `drive`, `stop` says why it ended early (interrupted, stopped, outage, refused, budget, disk,
    divergence, unanswered, error; None: it did not), `cause` says so in words, and `bound` is the one that was reached, where one was.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        backbone: Backbone | None,
        seed: int,
        inbox: Path,
        limit: int = 16,
        patience: float = 600.0,
        observe: Callable[[EngineStats], None] | None = None,
        pacing: Pacing | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        witness: Witness | None = None,
        budget: Budget | None = None,
        reaches: bool = True,
    ) -> None:
        self.journal = journal
        self.seed = seed
        self.inbox = inbox
        self.stop: str | None = None
        self.cause = ""
        self.bound: Bound | None = None
        self._observe, self._was_interrupted, self._witness = observe, interrupted, witness
        self._held: list[tuple[Ask, Due]] = []  # what may not be sent: without a backbone, or within weeks that are closed
        self._sends, self._reaches = backbone is not None, reaches
        self._gateway = Gateway(
            journal=journal,
            backbone=backbone,
            limit=limit,
            patience=patience,
            pacing=pacing or Pacing(),
            halt=self.halt,
            stir=self._stir,
            witness=witness,
            budget=budget,
        )
        self._outside = Outside(journal=journal, halt=self.halt, stir=self._stir)
        self._sites: set[str] = set()
        self._open: dict[str, Work] = {}
        self._ready: deque[tuple[Work, Any]] = deque()
        self._looked_up: list[Landed] = []
        # What this turn has journaled, with the number of commits before it: a closed week commits in the middle of a turn.
        self._in_turn: list[tuple[int, Landed]] = []
        self._ended_in_turn: list[tuple[int, Ended]] = []
        self._awake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._began = self._elapsed = 0.0
        self._clock: Clock | None = None
        self._latencies = self._longest = 0.0
        self._trouble: BaseException | None = None
        self._asked = self._replayed = self._paid = 0
        self._used: dict[str, Tokens] = {}

    # ---------------------------------------------------------------- for SimPy processes
    def launch(
        self,
        site: str,
        work: WorkFunction,
        needs: Iterable[Promise] = (),
        *,
        due: Due = (0, 0),
        draw: int = 0,
        reads: Promise | None = None,
    ) -> Promise:
        """Promise the value of `work(context, *values of needs)`, which starts when its needs have resolved.

        `site` says where in the run this is and is used once; `due` orders requests (which seal needs it, then simulated time);
        `draw` > 0 asks again; `reads` is the closed week whose rows its look-ups may see.
        """
        if not site or "\0" in site:
            raise EngineFault(f"{site!r} is no site: it must be a path without NUL")
        if site in self._sites:
            raise EngineFault(f"the site {site!r} was launched twice; a repetition needs a number of its own (`:formulate.2`)")
        self._sites.add(site)
        promise = Promise(site)
        named = tuple(needs)
        made = Work(promise, work, named, Context(site, seed=self.seed, draw=draw, reads=reads is not None), due)
        made.path = self._clock.path if self._clock is not None else 0.0
        for need in named if reads is None else (*named, reads):
            if not need._resolved:
                made.missing += 1
                need._waiting.append(made)
            made.path = max(made.path, need._path)
        self._open[site] = made
        if not made.missing:
            self._ready.append((made, None))
        return promise

    def given(self, value: Any) -> Promise:
        """A promise that is kept already, for a need that was known from the start."""
        promise = Promise("")
        promise._value, promise._resolved, promise._passed = value, True, True
        return promise

    def random(self, purpose: str, site: str) -> random.Random:
        """The generator of one purpose at one site."""
        return keyed_random(self.seed, purpose, site)

    # ---------------------------------------------------------------- for the driver's owner
    @property
    def stats(self) -> EngineStats:
        gateway, pace = self._gateway, self.pace
        return EngineStats(
            asked=self._asked,
            replayed=self._replayed,
            paid=self._paid,
            in_flight=gateway.in_flight,
            queued=gateway.queued,
            retries=gateway.retries,
            lost=self.journal.lost + gateway.lost,
            prompt_tokens=sum(used.prompt for used in self._used.values()),
            completion_tokens=sum(used.completion for used in self._used.values()),
            used=dict(self._used),
            elapsed=pace.wall,
            latencies=pace.latencies,
            bound=pace.bound,
            outage=gateway.outage if self._loop else None,
        )

    @property
    def pace(self) -> Pace:
        """How long this engine has taken, and how long it had to."""
        wall = self._loop.time() - self._began if self._loop else self._elapsed
        return Pace(wall, self._paid, self._latencies, self._longest, self._gateway.limit)

    def halt(self, why: str, cause: str = "", bound: Bound | None = None) -> None:
        """End the run before its horizon: nothing more is sent, what is in flight is waited for and journaled.  The first reason stays."""
        if self.stop is None:
            self.stop, self.cause, self.bound = why, cause, bound
            self._gateway.close()
            self._outside.close()
        self._stir()

    def interrupt(self) -> None:
        """What Ctrl-C does, from any thread: once drains and stops, twice gives up what is in flight."""
        if self._loop is None:
            self._interrupted()
        else:
            self._loop.call_soon_threadsafe(self._interrupted)

    async def drive(self, clock: Clock) -> None:
        """Run until the clock halts or has nothing left, or until `halt`.

        Raises what a process or a work raises (Divergence among them), what a backbone raises beside Transient and Refused,
        and EngineFault when something waits that nothing will resolve.  In every case in-flight answers are journaled first.
        """
        self._loop = asyncio.get_running_loop()
        self._began, self._clock = self._loop.time(), clock
        watcher: asyncio.Task[None] | None = None
        with heard_by(self._interrupted, self._hung_up):
            try:
                self.journal.begin_session()
                self._gateway.begin()
                if self._was_interrupted():
                    self._interrupted()
                watcher = asyncio.create_task(self._watch())
                watcher.add_done_callback(self._watcher_ended)
                await self._run(clock)
            except DiskFull as full:
                self.halt("disk", str(full))
            except asyncio.CancelledError:
                self.halt("interrupted", "cancelled")
                raise
            except Divergence as trouble:
                self.halt("divergence", str(trouble))
                raise
            except BaseException as trouble:
                self.halt("error", f"{type(trouble).__name__}: {trouble}")
                raise
            finally:
                await self._wind_up(watcher)
                self._elapsed, self._loop = self.pace.wall, None
        unseen = self._trouble or self._gateway.fault or self._outside.fault
        if unseen is not None:
            raise unseen

    # ---------------------------------------------------------------- the loop
    async def _run(self, clock: Clock) -> None:
        events = 0
        while self.stop is None and not clock.over:
            if self._gateway.paused:
                self._turn()
                await self._stirred()
            elif (promise := clock.held) is not None:
                # The barrier was reached: nothing else may move until its promise is there.
                await self._until(promise)
                if self.stop is None:
                    clock.release()
            else:
                clock.step()
                for _ in range(min(len(self._ready), STEPS_A_TURN)):
                    self._step(*self._ready.popleft())
                events += 1
                if events % EVENTS_A_TURN == 0:
                    # Not at every event: what was launched meanwhile is written and sent as one batch.
                    self._turn()
                    await asyncio.sleep(0)
        # Also what no seal needs, as work that spills over the horizon: a finished run re-executes without a single request.
        await self._until(None)

    async def _until(self, promise: Promise | None) -> None:
        """Turn until the promise has resolved, or all have; EngineFault when nothing is left that could bring it about."""
        while self.stop is None:
            self._turn()
            if not self._open if promise is None else promise._resolved:
                return
            if self.stop is None and self._gateway.idle and self._outside.idle and not self._ready:
                self._stuck("the end of the run" if promise is None else repr(promise.site))
            await self._stirred()

    def _stuck(self, what: str) -> None:
        """Nothing will bring `what` about: something is not journaled and must not be asked for, or a need was never launched."""
        if not self._held:
            raise EngineFault(self._deadlock(what))
        said = f"the journal holds no answer to what is asked at {self._held[0][0].site}"
        if self._sends:
            raise diverged(self.journal.path, f"week {self.journal.repeating} is closed, and {said}")
        self.halt("unanswered", said)

    async def _stirred(self) -> None:
        if self._awake.is_set():
            await asyncio.sleep(0)  # an event that is set would be waited for without a look at signals
        else:
            await self._awake.wait()

    def _turn(self) -> None:
        """Journal what came back, step what is ready, send what may be sent: all that is written in one commit.

        Sends are tasks, which begin after this has returned; if the commit fails, they never do.
        """
        self._in_turn, self._ended_in_turn, self._gateway.departing = [], [], []
        try:
            with self.journal.joined():
                self._turned()
        except BaseException:
            if self.journal.undone:
                self._undo()
            raise

    def _undo(self) -> None:
        """The turn was rolled back: what it was to send stays here, and what came back is journaled once more, by itself."""
        gateway = self._gateway
        gateway.withdraw()
        self._outside.withdraw()
        landed = [item for saves, item in self._in_turn if saves == self.journal.saves]
        ended = [item for saves, item in self._ended_in_turn if saves == self.journal.saves]
        gateway.landed, gateway.ended = landed + gateway.landed, ended + gateway.ended
        for item in landed:
            value = json.loads(item.outcome.value)
            self._paid -= _is_paid(item)
            self._took(item, -value["latency"])
            self._count(item.ask, item.outcome, value, -1)

    def _turned(self) -> None:
        self._awake.clear()
        steps = 0
        while self.stop is None and (self._ready or self._came_back):
            self._commit()
            while self._ready and steps < STEPS_A_TURN:
                self._step(*self._ready.popleft())
                steps += 1
            if steps >= STEPS_A_TURN:
                self._stir()
                break
        self.journal.accept()
        if self._held and self._sends and not self.journal.repeating:
            for ask, due in self._held:
                self._send(ask, due)
            self._held = []
        self._gateway.pump()
        if not self._gateway.paused:
            self._outside.pump()

    def _send(self, ask: Ask, due: Due) -> None:
        if ask.perform is None:
            self._gateway.submit(ask, due)
        elif self._reaches:
            self._outside.submit(ask)
        else:
            self.halt("refused", f"{ask.site}: nothing is done outside here, and no outcome of {ask.kind!r} is at hand")

    @property
    def _came_back(self) -> bool:
        """Whether anything waits to be journaled."""
        return any((self._looked_up, self._gateway.landed, self._gateway.ended, self._outside.landed))

    def _commit(self) -> None:
        """Journal what has landed; it is committed with this turn, before anything that follows from it leaves the process."""
        gateway, outside = self._gateway, self._outside
        landed, ended = gateway.landed + outside.landed + self._looked_up, gateway.ended
        if not landed and not ended:
            return
        self.journal.land(landed, ended)
        self._in_turn += [(self.journal.saves, item) for item in landed]
        self._ended_in_turn += [(self.journal.saves, item) for item in ended]
        gateway.landed, gateway.ended, outside.landed, self._looked_up = [], [], [], []
        for item in landed:
            self._paid += _is_paid(item)
            assert item.ask.work is not None
            seen = self._seen(item.ask, item.outcome)
            self._took(item, seen[1])
            self._ready.append((item.ask.work, seen))

    def _took(self, item: Landed, seconds: float) -> None:
        """An answer was waited for so long, if it is one: look-ups are made here, and what the journal gives takes no time."""
        if item.attempt is not None and item.ask.work is not None:
            self._latencies += seconds
            item.ask.work.path += seconds
            self._longest = max(self._longest, item.ask.work.path)

    def _step(self, work: Work, value: Any) -> None:
        """Run a work up to its next ask that the journal does not answer, or to its end."""
        site = work.promise.site
        if work.coroutine is None:
            made = work.function(work.context, *[need._value for need in work.needs])
            if not isinstance(made, CoroutineType):
                raise EngineFault(f"{site!r}: a work is an async function, {work.function!r} returned {made!r}")
            work.coroutine = made
        while True:
            try:
                ask = work.coroutine.send(value)
            except StopIteration as end:
                self._resolve(work, end.value)
                if self._witness is not None:
                    self._witness.ended(site)
                return
            if type(ask) is not Ask:
                raise EngineFault(f"{site!r}: a work may await only its context, not {ask!r}")
            self._asked += 1
            outcome = self.journal.outcome(ask.key)
            if outcome is None:
                ask.work = work
                if self._witness is not None:
                    self._witness.asked(ask)
                if ask.answer is None and (not self._sends or self.journal.repeating):
                    self._held.append((ask, work.due))
                elif ask.answer is None:
                    self._send(ask, work.due)
                else:
                    found = ask.answer()
                    if self._witness is not None:
                        self._witness.looked_up(ask, found)
                    self._looked_up.append(Landed(ask, Outcome(storable({"answer": found, "latency": 0.0}))))
                return
            self._replayed += 1
            value = self._seen(ask, outcome)

    def _seen(self, ask: Ask, outcome: Outcome) -> tuple[Any, float]:
        """What a work is resumed with: always read back from the journaled form, so that a first run sees what a second will."""
        try:
            value: Json = json.loads(outcome.value)
            self._count(ask, outcome, value, 1)
            return completed(value) if ask.kind == COMPLETE else (value["answer"], value["latency"])
        except (ValueError, LookupError, TypeError, AttributeError) as trouble:
            raise damaged(self.journal.path, f"the outcome of {ask.site}: {trouble}") from trouble

    def _count(self, ask: Ask, outcome: Outcome, value: Json, sign: int) -> None:
        """Tokens by backbone; look-ups take none."""
        if ask.request is not None:
            name = ask.request.backbone
            prompt, cached, completion = self._used.get(name, Tokens())
            self._used[name] = Tokens(
                prompt + sign * outcome.prompt_tokens,
                cached + sign * (value.get("cached_tokens") or 0),
                completion + sign * outcome.completion_tokens,
            )

    def _resolve(self, work: Work, value: Any) -> None:
        promise = work.promise
        promise._value, promise._resolved, promise._path = value, True, work.path
        del self._open[promise.site]
        # A queue, not recursion: a chain of works that are all journaled must not overflow the stack.
        for waiting in promise._waiting:
            waiting.missing -= 1
            waiting.path = max(waiting.path, work.path)
            if not waiting.missing:
                self._ready.append((waiting, None))
        promise._waiting = []
        work.needs = ()

    def _deadlock(self, what: str) -> str:
        stuck = sorted(self._open)
        works = "; ".join(f"{s!r} waits for {sorted(n.site for n in self._open[s].needs if not n._resolved)}" for s in stuck[:3])
        return (
            f"deadlock: {what} is waited for, nothing is in flight, and {len(stuck)} works are open"
            f"{': ' + works if works else ''}; a need must be a promise of this engine, launched before"
        )

    # ---------------------------------------------------------------- the outside
    def _stir(self) -> None:
        self._awake.set()

    def _interrupted(self) -> None:
        if self.stop is not None:
            self._gateway.cancel()
            self._outside.cancel()
        self.halt("interrupted", "interrupted from outside")

    def _hung_up(self) -> None:
        """The terminal was closed.  Kernel and shell may both say so: the second time is no wish to hurry."""
        self.halt("interrupted", "the terminal was closed")

    async def _watch(self) -> None:
        """Control from other processes, and progress: both are wall-clock matters and touch no simulated time."""
        while True:
            for file in self._controls():
                file.unlink(missing_ok=True)
                if file.suffix == ".stop":
                    self.halt("stopped", "stopped from another process")
                else:
                    self._gateway.pause(file.suffix == ".pause")
            if self._observe is not None:
                self._observe(self.stats)
            await asyncio.sleep(LOOK_SECONDS)

    def _controls(self) -> list[Path]:
        return sorted(f for f in self.inbox.glob("*") if f.suffix in (".pause", ".continue", ".stop"))

    def _watcher_ended(self, watcher: asyncio.Task[None]) -> None:
        if not watcher.cancelled() and (trouble := watcher.exception()) is not None:
            self._trouble = trouble
            self.halt("error", f"{type(trouble).__name__}: {trouble}")

    async def _wind_up(self, watcher: asyncio.Task[None] | None) -> None:
        """Drain, journal what was paid, say how it ended."""
        self._gateway.close()
        self._outside.close()
        try:
            await self._gateway.drained()
            await self._outside.drained()
        finally:
            if watcher is not None:
                watcher.cancel()
            for work in self._open.values():
                if work.coroutine is not None:
                    work.coroutine.close()
            try:
                self._commit()
                self.journal.accept()
                self.journal.write_stop(self.stop or "finished", self.cause, self.bound)
            except DiskFull as full:
                # What could not be written stays an attempt without an end: a loss that is counted.
                self.halt("disk", str(full))
            for file in self._controls():
                file.unlink(missing_ok=True)  # meant for this engine, not for the next
            if self._observe is not None:
                self._observe(self.stats)


def _is_paid(item: Landed) -> bool:
    """Whether a backbone has answered it now."""
    return item.attempt is not None and item.ask.request is not None
