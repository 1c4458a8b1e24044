"""Ctrl-C, SIGTERM and a hang-up while no engine drains: the process ends with 130 and says which run can be resumed.

Entry point: `listen`, before anything heavy is loaded; `name` says which run the message is to name.  A running engine takes the
signals over and gives them back.  Loads nothing of TaskWeave.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NoReturn

EXIT = 130
ENDING = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))  # some platforms lack one
_signals = 0
_run: Callable[[], str | None] | None = None


def listen() -> None:
    """From now on the first signal ends what is done as an interrupt does, and a second one ends the process at once."""
    for number in ENDING:
        # Whoever started us and has it ignored (a job in the background, nohup) means that.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _heard)


def end_at_once() -> None:
    """From now on the first signal ends the process: nothing is written that could be left half done."""
    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: end())


def heard() -> bool:
    """Whether a signal has come.  What it raised may be lost on its way: a destructor swallows it, an import makes another error of it."""
    return _signals > 0


def close_ears() -> None:
    """The exit code stands: nothing is to disturb the end of the process."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def name(run: Callable[[], str | None] | None) -> None:
    """The run folder that an interrupt names is what `run` answers then; None where there is none."""
    global _run
    _run = run


def found(words: Sequence[str]) -> str | None:
    """The run folder that one of the words names, by path or under runs/."""
    places = (place for word in words for place in (word, os.path.join("runs", word)))
    return next((place for place in places if os.path.isfile(os.path.join(place, "config.json"))), None)


def message() -> str:
    """What is said of an interrupt."""
    folder = _run() if _run is not None else None
    if folder is None:
        return "interrupted"
    return f"interrupted. Continue with: taskweave resume {_quoted(folder)}"


def _quoted(path: str) -> str:
    """As shlex.quote: a second signal would find that module half imported."""
    if path and path.isascii() and all(char.isalnum() or char in "@%+=:,./_-" for char in path):
        return path
    return "'" + path.replace("'", "'\"'\"'") + "'"


def end() -> NoReturn:
    """Say it, and end at once.  What is journaled is safe."""
    with contextlib.suppress(OSError):
        os.write(2, f"taskweave: {message()}\n".encode(errors="replace"))
    leave()


def leave() -> NoReturn:
    """End with 130, said already.

    Not by Python's own end: where an interrupt has passed through an exec(), as dataclasses use it, that kills its own process instead.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError, RuntimeError):
            stream.flush()
    os._exit(EXIT)


def _heard(number: int, frame: FrameType | None) -> None:
    global _signals
    _signals += 1
    if _signals > 1:
        end()
    raise KeyboardInterrupt
