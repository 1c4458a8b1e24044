"""When things happen: a SimPy environment in which every minute runs through the same phases, and barriers for promises.

Entry point: `Clock`.  SimPy pops events by (time, priority, order of scheduling) and itself schedules with priority 0 or 1.  A phase is
a zero-delay event of a higher priority number, so it begins only when every zero-delay chain of the phases before it has run dry.
Which promise resolves when in wall-clock time is the engine's business and is not visible here.
"""

from __future__ import annotations

import simpy
from simpy.events import Event, EventPriority

from taskweave.engine.promises import Promise

# The order of a minute; what SimPy schedules itself (timeouts, requests, ends of processes) comes before all of them.
CLOSE_WEEK, CLOSE_MONTH, CLOSE_QUARTER, CLOSE_YEAR = 10, 11, 12, 13
SEAL = 19
TICK = 20
OPEN_YEAR, OPEN_QUARTER, OPEN_MONTH, OPEN_WEEK = 30, 31, 32, 33
WAIT = 40
START = 50


class _Phase(Event):
    """A zero-delay event in a later phase of this minute, born triggered as `simpy.Timeout` is."""

    def __init__(self, env: simpy.Environment, phase: int) -> None:
        super().__init__(env)
        self._ok, self._value = True, None
        env.schedule(self, EventPriority(phase), 0)


class _Environment(simpy.Environment):
    """SimPy's environment, except that a failed process raises its own exception and not a copy built from `args`."""

    def step(self) -> None:
        event = self._queue[0][3] if self._queue else None
        if event is not None:
            assert event.callbacks is not None
            event.callbacks.append(_raise_own)
        super().step()


def _raise_own(event: Event) -> None:
    """Runs after all other callbacks of an event: nobody took care of its failure."""
    if not event._ok and not event.defused:
        raise event._value


class Clock:
    """One run's simulated time.

    `env` is the SimPy environment; a process sets `halted` at the horizon and `last` to the last week's seal, which names what the
    engine waits for in the end.  The engine drives it with `step` and `release`.  `path` is the seconds of answers, one after the other,
    that it has waited for: nothing that is launched now could have begun earlier.
    """

    def __init__(self) -> None:
        self.env: simpy.Environment = _Environment(0)
        self.halted = False
        self.last: Promise | None = None
        self.path = 0.0
        self._held: tuple[Promise, Event] | None = None

    def at(self, phase: int) -> Event:
        """An event in that phase of the present minute: `yield clock.at(START)`."""
        return _Phase(self.env, phase)

    def wait(self, promise: Promise) -> Event:
        """A barrier in the WAIT phase; the waiting process goes on with the promise's value.

        It is always the same barrier and the same resumption, whether or not the answer is already there: events that depend on
        what the journal holds would give another trace.
        """
        resume = self.env.event()
        barrier = _Phase(self.env, WAIT)

        def popped(_: Event) -> None:
            self._held = (promise, resume)

        assert barrier.callbacks is not None
        barrier.callbacks.append(popped)
        return resume

    @property
    def held(self) -> Promise | None:
        """The promise whose barrier has been reached: until it is released nothing else may move."""
        return self._held[0] if self._held else None

    @property
    def over(self) -> bool:
        """Nothing is left to happen: halted, or no event is scheduled."""
        return self.halted or (self._held is None and not self.env._queue)

    def step(self) -> None:
        """One event.  A process that fails raises its own exception here."""
        self.env.step()

    def release(self) -> None:
        """Let the process behind the barrier go on; its promise must be done."""
        assert self._held is not None, "release() follows a barrier"
        promise, resume = self._held
        self._held = None
        promise._passed = True
        self.path = max(self.path, promise._path)
        resume.succeed(promise._value)
