"""A second process that writes scripted answers, so that a long run keeps two processor cores busy instead of one.

Entry point: `Beside`.  The answer to a request is the same wherever it is written; where no process can be had, or it ends, requests are
answered here.  `python -m taskweave.backbones.scripted.beside` is that process: it answers what it reads until its input ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import signal
import struct
import sys
from pathlib import Path
from typing import BinaryIO

from taskweave.errors import BadInput
from taskweave.records import Request

AFTER = 60  # so many answers make a run long enough for the other process's start to pay
WAIT = 5.0  # seconds that an answer may take there: it takes about a thousandth
MOST = 1_000_000  # bytes of an answer
READY = b"taskweave\n"  # what the other process says first
_HEAD = struct.Struct("<II")  # bytes that follow, number of the request


class Beside:
    """The other process, as one run sees it: `answer` gives a request's answer, or None where it is to be written here."""

    def __init__(self) -> None:
        self._asked = 0
        self._running: asyncio.Task[None] | None = None
        self._asking: asyncio.StreamWriter | None = None  # there while the other process answers
        self._waiting: dict[int, asyncio.Future[str | None]] = {}

    async def answer(self, request: Request) -> str | None:
        """The answer's JSON text from the other process; None while there is none, and for a request that it cannot answer."""
        self._asked += 1
        if self._asked == AFTER and os.name == "posix" and _cores() > 1:
            self._running = asyncio.create_task(self._run())
        loop = asyncio.get_running_loop()
        if self._asking is None or self._running is None or self._running.get_loop() is not loop:
            return None
        number = self._asked
        body = pickle.dumps((request.prompt, dict(request.inputs), request.seed), pickle.HIGHEST_PROTOCOL)
        answered: asyncio.Future[str | None] = loop.create_future()
        self._waiting[number] = answered
        patience = loop.call_later(WAIT, self._give_up)
        self._asking.write(_HEAD.pack(len(body), number) + body)
        try:
            return await answered
        finally:
            patience.cancel()
            self._waiting.pop(number, None)

    async def close(self) -> None:
        """End the other process.  What it still owes is answered here; the next run begins anew."""
        running, self._running, self._asked = self._running, None, 0
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    def _give_up(self) -> None:
        """It hangs, or was stopped by somebody: it is ended and done without."""
        if self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        """Start the other process, read what it answers once it is ready, and see it to its end."""
        place = str(Path(__file__).parents[3])  # this very package, wherever it was found
        paths = os.pathsep.join([place, *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-P", "-m", __name__, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": paths},
            )  # fmt: skip
        except OSError:  # the system allows no more processes
            return
        assert process.stdin is not None
        assert process.stdout is not None
        ended = False
        try:
            if await process.stdout.readexactly(len(READY)) == READY:
                self._asking = process.stdin
                await self._read(process.stdout)
        except (asyncio.IncompleteReadError, OSError):
            ended = True
        finally:
            self._asking = None
            for answered in self._waiting.values():
                if not answered.done():
                    answered.set_result(None)
            if not ended:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await process.wait()

    async def _read(self, answers: asyncio.StreamReader) -> None:
        """Hand out what comes back, until it ends or makes no sense."""
        while True:
            size, number = _HEAD.unpack(await answers.readexactly(_HEAD.size))
            if size > MOST:
                return
            text = (await answers.readexactly(size)).decode()
            answered = self._waiting.get(number)
            if answered is not None and not answered.done():
                answered.set_result(text or None)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def serve(asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer what is asked until there is no more; what cannot be answered gets an empty text."""
    from taskweave.backbones.scripted import Scripted
    from taskweave.backbones.scripted.grammar import load

    scripted = Scripted()
    load()
    answers.write(READY)
    answers.flush()
    while len(head := asked.read(_HEAD.size)) == _HEAD.size:
        size, number = _HEAD.unpack(head)
        try:
            text = scripted.text(*pickle.loads(asked.read(size))).encode()
        except BadInput:  # whoever asked answers it itself, and says what is wrong; a bug ends this process, and shows there
            text = b""
        answers.write(_HEAD.pack(len(text), number) + text)
        answers.flush()


if __name__ == "__main__":
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, signal.SIG_IGN)  # the run decides when it ends: its input ends with it
    with os.fdopen(os.dup(1), "wb") as output:
        os.dup2(2, 1)  # what anything prints is no answer
        serve(sys.stdin.buffer, output)
