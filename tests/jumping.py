"""An event loop in which waiting takes no time: `jumped(coroutine)` runs it, and seconds pass where nothing else is left to do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class JumpingLoop(asyncio.SelectorEventLoop):
    """Its time is that of the next timer as soon as nothing is ready, so that what sleeps a second has slept one exactly."""

    def __init__(self) -> None:
        super().__init__()
        self._jumped = 0.0

    def time(self) -> float:
        return self._jumped

    def _run_once(self) -> None:
        inner: Any = self
        if not inner._ready:
            self._jumped = max(self._jumped, min((timer.when() for timer in inner._scheduled if not timer.cancelled()), default=0.0))
        super()._run_once()  # type: ignore[misc]


def jumped(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What the coroutine returns."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(coroutine)
