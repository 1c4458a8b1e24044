"""Which signals does a running engine take over, and how does it give them back?  Entry point: `heard_by`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))  # some platforms lack one


@contextlib.contextmanager
def heard_by(interrupted: Callable[[], None], hung_up: Callable[[], None]) -> Iterator[None]:
    """While the block runs, Ctrl-C and SIGTERM call `interrupted` and a hang-up `hung_up`, between two steps of the running loop.

    Outside the main thread signals are someone else's, and what is ignored (by nohup, or for a job in the background) stays ignored.
    """
    loop, taken = asyncio.get_running_loop(), []
    # Elsewhere loops hear no signals, and in another thread nobody does.
    if os.name == "posix" and threading.current_thread() is threading.main_thread():
        for number in SIGNALS:
            before = signal.getsignal(number)
            if before is signal.SIG_IGN:
                continue
            loop.add_signal_handler(number, hung_up if number == signal.SIGHUP else interrupted)
            taken.append((number, before))
    try:
        yield
    finally:
        for number, before in taken:
            loop.remove_signal_handler(number)
            if before is not None:
                signal.signal(number, before)
