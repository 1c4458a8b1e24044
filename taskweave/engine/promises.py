"""What a piece of work is to the engine: a site, an async function, the promise of its value, and the context it may await.

Entry point: `Promise` for whoever launches, `Context` for whoever writes a work.  A work is stepped by the engine, not by asyncio:
it yields an `Ask` and is resumed with what the journal holds for it.  Nothing here knows about clocks, files or providers.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, replace
from typing import Any

from taskweave.errors import EngineFault
from taskweave.records import Completion, Json, Request, canonical

Due = tuple[int, int]
WorkFunction = Callable[..., Awaitable[Any]]

COMPLETE = "complete"
OUTSIDE = "outside:"  # before the kind of what is done outside


class Promise:
    """A value that will be there once its work has run.

    Control flow may read `value` only after `yield clock.wait(promise)`; a work gets it as an argument by naming the promise
    among its needs.  `done` is for reporting: a branch on it would give another trace on a partly filled journal.
    """

    __slots__ = ("_passed", "_path", "_resolved", "_value", "_waiting", "site")

    def __init__(self, site: str) -> None:
        self.site = site
        self._resolved = False
        self._passed = False
        self._path = 0.0  # seconds of answers, one after the other, without which it could not be there
        self._value: Any = None
        self._waiting: list[Work] = []

    @property
    def done(self) -> bool:
        """Whether the work has returned."""
        return self._resolved

    @property
    def value(self) -> Any:
        """What the work returned; EngineFault before a barrier for it was passed."""
        if not self._passed:
            raise EngineFault(
                f"the value of {self.site!r} was read before its barrier: `yield clock.wait(promise)` first, "
                "or name the promise among the needs of a work"
            )
        return self._value

    def __repr__(self) -> str:
        return f"Promise({self.site!r}, {'done' if self._resolved else 'open'})"


@dataclass(slots=True, eq=False)
class Work:
    """One launched function.  `missing` counts the needs that have not resolved; the coroutine is made when it first runs.

    `path` is the seconds of answers that came before it, one after the other, and of its own.
    """

    promise: Promise
    function: WorkFunction
    needs: tuple[Promise, ...]
    context: Context
    due: Due
    missing: int = 0
    coroutine: Coroutine[Ask, Any, Any] | None = None
    path: float = 0.0


@dataclass(slots=True, eq=False)
class Ask:
    """What a work waits for: an answer to a request, a look-up that `answer` makes here, or something outside that `perform` does.

    Awaiting it yields it to the engine.
    """

    key: str
    site: str
    ordinal: int
    draw: int
    kind: str
    request: Request | None = None
    texts: tuple[str, ...] = ()  # digests of the request's texts
    question: str = ""
    answer: Callable[[], Json] | None = None
    perform: Callable[[str], Json] | None = None
    work: Work | None = None
    estimate: int = 0
    tries: int = 0
    order: int = 0

    def __await__(self) -> Generator[Ask, Any, Any]:
        return (yield self)


class Context:
    """All that a work may await, one thing at a time.

    `ordinal` and `latency` (seconds) belong to the completion or look-up that returned last; a table of calls is built from them.
    `actor` names on whose behalf the work asks, for whoever watches.
    """

    __slots__ = ("_reads", "_request_seed", "_seed", "actor", "draw", "latency", "ordinal", "site")

    def __init__(self, site: str, *, seed: int, draw: int, reads: bool) -> None:
        self.site = site
        self.draw = draw
        self.ordinal = 0
        self.latency = 0.0
        self.actor = ""
        self._seed = seed
        self._reads = reads
        self._request_seed: int | None = None

    def random(self, purpose: str) -> random.Random:
        """A generator of this site's own: one more work elsewhere moves none of its draws."""
        return keyed_random(self._seed, purpose, self.site)

    async def complete(self, request: Request) -> Completion:
        """The backbone's answer, from the journal where it is there.  The request's seed is set here, from run seed, site and draw."""
        if self._request_seed is None:
            self._request_seed = request_seed(self._seed, self.site, self.draw)
        seeded = replace(request, seed=self._request_seed)
        texts = seeded.text_digests()
        ask = self._ask(COMPLETE, seeded.logical(texts))
        ask.request, ask.texts = seeded, texts
        completion, self.latency = await ask
        answer: Completion = completion
        return answer

    async def look_up(self, kind: str, question: Json, answer: Callable[[], Json]) -> Json:
        """What `answer()` returns, journaled under `kind` ("search", a tool's name): asked once, repeated on every re-execution.

        The work must have been launched with `reads=` the seal of the last closed week, so that it cannot see later rows.
        """
        if not self._reads:
            raise EngineFault(f"{self.site!r} looks something up ({kind!r}) but was launched without `reads=` a closed week")
        if kind == COMPLETE:
            raise EngineFault(f"{self.site!r}: the kind {COMPLETE!r} belongs to completions; give the look-up another")
        asked = canonical(question)
        ask = self._ask(kind, asked)
        ask.question, ask.answer = asked, answer
        found, self.latency = await ask
        return found

    async def reach(self, kind: str, question: Json, perform: Callable[[str], Json]) -> Json:
        """What `perform(key)` returns, done outside at most once ever and journaled: `key` is the same whenever it is asked here again.

        `perform` runs in a thread.  `{"unknown": why}` where nobody can know whether it happened: the process ended before it was told,
        or `perform` raised an OSError (TimeoutError is one), which it does for nothing that is certain.
        """
        asked = canonical(question)
        ask = self._ask(OUTSIDE + kind, asked)
        ask.question, ask.perform = asked, perform
        found, self.latency = await ask
        return found

    def _ask(self, kind: str, logical: str) -> Ask:
        self.ordinal += 1
        return Ask(outcome_key(self.site, self.ordinal, self.draw, kind, logical), self.site, self.ordinal, self.draw, kind)


def outcome_key(site: str, ordinal: int, draw: int, kind: str, logical: str) -> str:
    """The journal's key: an outcome is found again exactly where the same thing is asked at the same place."""
    return hashlib.sha256(f"{site}\0{ordinal}\0{draw}\0{kind}\0{logical}".encode()).hexdigest()


def request_seed(seed: int, site: str, draw: int) -> int:
    """The 32-bit seed that a request carries to its backbone."""
    return int(hashlib.sha256(f"{seed}\0{site}\0{draw}".encode()).hexdigest()[:8], 16)


def keyed_random(seed: int, purpose: str, site: str) -> random.Random:
    """The generator of one purpose at one site of one run."""
    return random.Random(f"{seed}:{purpose}:{site}")
