"""How does something happen outside, at most once?  A message to a server, a call of somebody else's tool: it may leave traces there.

Entry point: `Outside`, which the engine pumps.  An attempt is journaled before anything is done; where the process ended between that and
the outcome, nobody knows whether it happened, and that is its outcome: it is never done again.  What is done, and where, is not known here.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from taskweave.engine.budget import Halt
from taskweave.engine.journal import Journal
from taskweave.engine.outcomes import Landed, Outcome, storable
from taskweave.engine.promises import Ask
from taskweave.records import Json

MOST_AT_ONCE = 4
UNKNOWN = "unknown"
ENDED_BEFORE = "the process ended before it was known whether this had happened"


def unknown(why: str) -> Json:
    """The outcome of what may or may not have happened."""
    return {UNKNOWN: why}


class Outside:
    """Performs what was submitted, a few at a time, each in a thread.

    What comes back collects in `landed`, to be journaled by the engine; `fault` is an exception that says neither that
    something is out of reach nor that it took too long: a bug.  `halt(why, cause)` is called for it, `stir()` whenever there is news.
    """

    def __init__(self, *, journal: Journal, halt: Halt, stir: Callable[[], None]) -> None:
        self.landed: list[Landed] = []
        self.fault: BaseException | None = None
        self._journal, self._halt, self._stir = journal, halt, stir
        self._waiting: deque[Ask] = deque()
        self._departing: list[asyncio.Task[tuple[Json, float]]] = []
        self._flying: dict[asyncio.Task[tuple[Json, float]], Ask] = {}
        self._closed = False
        # Not the loop's own threads, for which its end waits: one that hangs must not keep a second Ctrl-C from ending the process.
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="outside")

    @property
    def idle(self) -> bool:
        return not (self._waiting or self._flying or self.landed)

    @property
    def in_flight(self) -> int:
        return len(self._flying)

    def submit(self, ask: Ask) -> None:
        """Queue what is to be done; what an earlier session began and did not end has its outcome at once."""
        begun = self._journal.begun(ask.key)
        if begun is None:
            self._waiting.append(ask)
        else:
            self._land(ask, begun, unknown(ENDED_BEFORE), 0.0)

    def pump(self) -> None:
        """Begin what may begin; the attempts are committed, all in one transaction, before the first is performed."""
        room = MOST_AT_ONCE - len(self._flying)
        self._departing = []
        if self._closed or room <= 0 or not self._waiting:
            return
        batch = [self._waiting.popleft() for _ in range(min(room, len(self._waiting)))]
        loop = asyncio.get_running_loop()
        for ask, attempt in zip(batch, self._journal.begin(batch), strict=True):
            ask.tries += 1
            task = loop.create_task(self._perform(ask))
            self._flying[task] = ask
            self._departing.append(task)
            task.add_done_callback(partial(self._came_back, ask, attempt))

    def close(self) -> None:
        """Begin nothing more; what has begun may still come back."""
        self._closed = True
        self._waiting.clear()

    def cancel(self) -> None:
        """Wait no longer for what has begun: its attempts stay without an end."""
        self._closed = True
        for task in self._flying:
            task.cancel()

    def withdraw(self) -> None:
        """Take back what has not begun: its attempts were not committed."""
        self._closed = True
        for task in self._departing:
            self._flying.pop(task)
            task.cancel()
        self._departing = []

    async def drained(self) -> None:
        """Wait until nothing is under way."""
        while self._flying:
            await asyncio.wait(set(self._flying))
            await asyncio.sleep(0)  # let the callbacks of what is done run
        self._threads.shutdown(wait=False)

    # ---------------------------------------------------------------- inside
    async def _perform(self, ask: Ask) -> tuple[Json, float]:
        loop = asyncio.get_running_loop()
        assert ask.perform is not None
        began = loop.time()
        try:
            answer = await loop.run_in_executor(self._threads, ask.perform, ask.key)
        except OSError as late:  # TimeoutError is one
            answer = unknown(str(late) or type(late).__name__)
        return answer, loop.time() - began

    def _came_back(self, ask: Ask, attempt: int, task: asyncio.Task[tuple[Json, float]]) -> None:
        if self._flying.pop(task, None) is None:
            return  # withdrawn
        self._stir()
        if task.cancelled():
            return
        trouble = task.exception()
        if trouble is None:
            self._land(ask, attempt, *task.result())
            return
        said = f"{type(trouble).__name__}: {trouble}"
        self._land(ask, attempt, unknown(said), 0.0)
        self.fault = self.fault or trouble
        self._halt("error", said)

    def _land(self, ask: Ask, attempt: int, answer: Json, seconds: float) -> None:
        self.landed.append(Landed(ask, Outcome(storable({"answer": answer, "latency": round(seconds, 4)})), attempt))
