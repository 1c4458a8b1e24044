"""How requests reach a backbone: in which order, how many at once, how often again, and when to give up.

Entry point: `Gateway`, which the engine pumps.  One heap ordered by due time, a limit, backoff with full jitter that honours
Retry-After without holding a slot, a breaker, patience, and a budget.  It knows wall-clock time and no simulated time; what an answer
means, and who waits for it, is not its business.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from taskweave.engine.budget import REACHED, Budget, Halt, reserve
from taskweave.engine.journal import Journal
from taskweave.engine.outcomes import Ended, Landed, journaled
from taskweave.engine.promises import Ask, Due
from taskweave.engine.witness import Witness
from taskweave.errors import BadInput, EngineFault, Refused, Transient
from taskweave.records import Backbone, Completion

MOST_DOUBLINGS = 60  # of the pause before a retry; beyond that it is at its longest, and no float holds 2 ** 1024
LEAST_WAIT = 5.0  # seconds that an answer may take, however short the patience


@dataclass(frozen=True, kw_only=True, slots=True)
class Pacing:
    """Seconds and counts of the waiting: a retry sleeps up to `base * 2 ** tries`, at most `longest`, beyond what Retry-After asks;
    after `trip` failures in a row the breaker opens for `cool` (doubled each time, at most `longest`), then lets one probe through.
    """

    base: float = 0.5
    longest: float = 30.0
    trip: int = 8
    cool: float = 1.0


class Outage(NamedTuple):
    """Attempts fail and nothing is answered: for so many seconds by now, with the last trouble in the provider's words, and the seconds
    of patience that are left.
    """

    seconds: float
    trouble: str
    left: float


class Breaker:
    """Keeps a provider in trouble from being hammered: after some failures in a row nothing is sent, then a single probe."""

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self.close()

    def close(self) -> None:
        """An answer came: all is well."""
        self._failures = 0
        self._cool = self._pacing.cool
        self._open_until: float | None = None
        self._probe: Ask | None = None

    def wait(self, now: float) -> float | None:
        """Seconds until the next request may go, 0 for now, None while a probe is out."""
        if self._open_until is None:
            return 0.0
        if self._probe is not None:
            return None
        return max(0.0, self._open_until - now)

    def sent(self, ask: Ask) -> None:
        if self._open_until is not None:
            self._probe = ask

    def failed(self, ask: Ask, now: float, retry_after: float) -> None:
        self._failures += 1
        probing = ask is self._probe
        if probing or (self._open_until is None and self._failures >= self._pacing.trip):
            self._open_until = now + max(self._cool, retry_after)
            self._cool = min(self._cool * 2, self._pacing.longest)
        if probing:
            self._probe = None


class Gateway:
    """Sends what was submitted, as far as limit, breaker and pause allow.

    What comes back collects in `landed` and `ended`, to be journaled by the engine; `departing` is sent once the engine's turn
    is committed; `fault` is an exception of the backbone that is neither Transient nor Refused, a bug; `lost` counts attempts whose answer
    may have been made and was not seen.  `halt(why, cause)` is called for outage, refused, fault and a budget that is spent, `stir()`
    whenever there is something new.
    """

    def __init__(
        self,
        *,
        journal: Journal,
        backbone: Backbone | None,
        limit: int,
        patience: float,
        pacing: Pacing,
        halt: Halt,
        stir: Callable[[], None],
        witness: Witness | None = None,
        budget: Budget | None = None,
    ) -> None:
        if limit < 1:
            raise BadInput(f"the limit is {limit}; at least 1 request must be allowed at a time")
        if patience < 0:
            raise BadInput(f"the patience is {patience} s; it must be 0 or more")
        self.limit = limit
        self.landed: list[Landed] = []
        self.ended: list[Ended] = []
        self.departing: list[asyncio.Task[tuple[Completion, float]]] = []
        self.fault: BaseException | None = None
        self.paused = False
        self.retries = 0
        self.lost = 0
        self._journal, self._backbone = journal, backbone
        self._patience, self._pacing = patience, pacing
        self._halt, self._stir, self._witness = halt, stir, witness
        self._budget = budget or Budget()
        self._heap: list[tuple[Due, int, Ask]] = []
        self._order = 0
        self._flying: dict[asyncio.Task[tuple[Completion, float]], Ask] = {}
        self._sleeping: set[asyncio.TimerHandle] = set()
        self._breaker = Breaker(pacing)
        self._breaker_timer: asyncio.TimerHandle | None = None
        self._down_since: float | None = None
        self._unanswered_since: float | None = None
        self._patience_timer: asyncio.TimerHandle | None = None
        self._last_trouble = ""
        self._over_timer: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    @property
    def queued(self) -> int:
        """Asks that wait for a slot, or for their next try."""
        return len(self._heap) + len(self._sleeping)

    @property
    def idle(self) -> bool:
        return not (self._flying or self._heap or self._sleeping or self.landed or self.ended)

    @property
    def outage(self) -> Outage | None:
        """What goes wrong now; None after an answer, and while nothing has failed."""
        if self._down_since is None or self._unanswered_since is None:
            return None
        now = asyncio.get_running_loop().time()
        return Outage(now - self._unanswered_since, self._last_trouble, max(0.0, self._down_since + self._patience - now))

    def begin(self) -> None:
        """The engine begins to drive, and the time that it is allowed to run."""
        loop = asyncio.get_running_loop()
        if (over := self._budget.begin(loop.time())) is not None:
            self._over_timer = loop.call_at(over, self._time_over)

    def submit(self, ask: Ask, due: Due) -> None:
        """Queue an ask; the lower `due` goes first, then the earlier."""
        if not ask.order:
            self._order += 1
            ask.order = self._order
            assert ask.request is not None, "only requests are sent; look-ups are answered here"
            ask.estimate = reserve(ask.request)
        heapq.heappush(self._heap, (due, ask.order, ask))

    def pump(self) -> None:
        """Send what may be sent; the attempts are committed, all in one transaction, before the first request leaves."""
        if self._closed or self.paused or not self._heap:
            return
        loop = asyncio.get_running_loop()
        batch: list[Ask] = []
        while self._heap and len(self._flying) + len(batch) < self.limit:
            wait = self._breaker.wait(loop.time())
            if wait != 0:
                if wait is not None and self._breaker_timer is None:
                    self._breaker_timer = loop.call_later(wait, self._breaker_cooled)
                break
            ask = self._heap[0][2]
            if (short := self._budget.short(ask, loop.time())) is not None:
                # What is in flight holds the most that it can take, and mostly takes less.
                if not self._flying and not batch:
                    self._halt(REACHED, *short)
                break
            heapq.heappop(self._heap)
            self._budget.hold(ask)
            self._breaker.sent(ask)
            batch.append(ask)
        if not batch:
            return
        if self._unanswered_since is None:
            self._unanswered_since = loop.time()
        for ask, attempt in zip(batch, self._journal.begin(batch), strict=True):
            ask.tries += 1
            task = loop.create_task(self._send(ask))
            self._flying[task] = ask
            self.departing.append(task)
            task.add_done_callback(partial(self._came_back, ask, attempt))

    def pause(self, paused: bool) -> None:
        """Send nothing until further notice, or go on.  A pause is no outage: patience begins anew."""
        self.paused = paused
        self._answered()
        self._stir()

    def close(self) -> None:
        """Send nothing more: what sleeps or queues is dropped, what is in flight may still come back."""
        self._closed = True
        for timer in (*self._sleeping, self._breaker_timer, self._patience_timer):
            if timer is not None:
                timer.cancel()
        self._sleeping.clear()
        self._heap.clear()

    def cancel(self) -> None:
        """Give up what is in flight.  It may have been billed: its attempts stay without an end."""
        self._closed = True
        for task in self._flying:
            task.cancel()

    def withdraw(self) -> None:
        """Take back what is `departing`, before it has left: its attempts were not committed.  Nothing more is sent."""
        self._closed = True
        for task in self.departing:
            self._budget.release(self._flying.pop(task))
            task.cancel()
        self.departing = []

    async def drained(self) -> None:
        """Wait until nothing is in flight; a cancellation of this wait cancels what is."""
        try:
            while self._flying:
                await asyncio.wait(set(self._flying))
                await asyncio.sleep(0)  # let the callbacks of what is done run
        except asyncio.CancelledError:
            self.cancel()
            await asyncio.gather(*self._flying, return_exceptions=True)
            await asyncio.sleep(0)
            raise
        finally:
            if self._over_timer is not None:
                self._over_timer.cancel()

    # ---------------------------------------------------------------- inside
    async def _send(self, ask: Ask) -> tuple[Completion, float]:
        assert ask.request is not None
        clock = asyncio.get_running_loop().time
        began = clock()
        if self._witness is not None:
            self._witness.sent(ask)
        # One that never comes back would never fail, so nothing would ever run out of patience.
        limit = max(self._patience, LEAST_WAIT)
        try:
            async with asyncio.timeout(limit):
                assert self._backbone is not None, "without a backbone nothing is submitted"
                completion = await self._backbone.complete(ask.request)
        except TimeoutError as late:
            raise Transient(f"no answer within {limit:g} s", billed=True) from late
        return completion, clock() - began

    def _came_back(self, ask: Ask, attempt: int, task: asyncio.Task[tuple[Completion, float]]) -> None:
        if self._flying.pop(task, None) is None:
            return  # withdrawn
        self._stir()
        if task.cancelled():
            if self._closed:
                self._lost(ask)
            else:
                self._failed_badly(ask, attempt, EngineFault(f"{ask.site!r}: the backbone cancelled its own request"))
            return
        trouble = task.exception()
        if trouble is not None and self._witness is not None:
            self._witness.failed(ask, trouble)
        match trouble:
            case None:
                completion, latency = task.result()
                if not isinstance(completion, Completion):
                    self._failed_badly(ask, attempt, EngineFault(f"{ask.site!r}: the backbone returned {completion!r}, not a Completion"))
                    return
                if self._witness is not None:
                    self._witness.landed(ask, completion, latency)
                self._recovered()
                assert ask.request is not None, "look-ups are not sent"
                outcome = journaled(ask.request, completion, latency)
                self._budget.landed(ask, outcome.prompt_tokens, outcome.completion_tokens, latency)
                self.landed.append(Landed(ask, outcome, attempt))
            case Transient():
                self._failed(ask, attempt, trouble)
            case Refused():
                self._budget.release(ask)
                self.ended.append(Ended(attempt, "refused", str(trouble)))
                self._halt("refused", str(trouble))
            case _:
                self._failed_badly(ask, attempt, trouble)

    def _answered(self) -> None:
        self._down_since = None
        self._unanswered_since = asyncio.get_running_loop().time() if self._flying else None
        if self._patience_timer is not None:
            self._patience_timer.cancel()
            self._patience_timer = None

    def _recovered(self) -> None:
        self._answered()
        self._breaker.close()
        if self._breaker_timer is not None:
            self._breaker_timer.cancel()
            self._breaker_timer = None

    def _failed(self, ask: Ask, attempt: int, trouble: Transient) -> None:
        if trouble.billed:
            self._lost(ask)
        else:
            self._budget.release(ask)
        self.ended.append(Ended(attempt, "unknown" if trouble.billed else "retry", str(trouble)))
        self._last_trouble = str(trouble)
        if self._closed:
            return
        loop = asyncio.get_running_loop()
        self._breaker.failed(ask, loop.time(), trouble.retry_after)
        if self._down_since is None and not self.paused:
            self._down_since = loop.time()
            self._patience_timer = loop.call_later(self._patience, self._patience_over)
        if self._down_since is not None and loop.time() - self._down_since >= self._patience:
            self._out()
            return
        self.retries += 1
        # Full jitter, beyond what the provider asked for: callers that failed together must not come back together.
        pause = trouble.retry_after + random.random() * min(self._pacing.base * 2 ** min(ask.tries, MOST_DOUBLINGS), self._pacing.longest)
        self._sleep(ask, pause)

    def _sleep(self, ask: Ask, pause: float) -> None:
        def again() -> None:
            self._sleeping.discard(timer)
            assert ask.work is not None
            self.submit(ask, ask.work.due)
            self._stir()

        timer = asyncio.get_running_loop().call_later(pause, again)
        self._sleeping.add(timer)

    def _patience_over(self) -> None:
        if not self._flying:  # else: it may be slow rather than out; its end decides
            self._out()

    def _out(self) -> None:
        assert self._unanswered_since is not None, "patience runs out over what was sent"
        waited = asyncio.get_running_loop().time() - self._unanswered_since
        self._halt("outage", f"no answer for {waited:.1f} s; last: {self._last_trouble}")

    def _breaker_cooled(self) -> None:
        self._breaker_timer = None
        self._stir()

    def _time_over(self) -> None:
        """Nothing is sent any more, and what is in flight is given up.  Its attempts stay without an end."""
        short = self._budget.over(asyncio.get_running_loop().time(), len(self._flying))
        self._halt(REACHED, *short)
        self.cancel()

    def _lost(self, ask: Ask) -> None:
        self.lost += 1
        self._budget.lost(ask)

    def _failed_badly(self, ask: Ask, attempt: int, trouble: BaseException) -> None:
        self._lost(ask)
        self.ended.append(Ended(attempt, "fault", f"{type(trouble).__name__}: {trouble}"))
        self.fault = self.fault or trouble
        self._halt("error", f"{type(trouble).__name__}: {trouble}")
