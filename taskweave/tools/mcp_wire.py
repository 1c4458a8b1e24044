"""How is one MCP server started and asked over its stdin and stdout, whatever it does?  Entry point: `Wire`.

One question at a time, by whoever holds it.  What a server prints is bounded before it is kept: a line, a stray line, a wait.  Refuses to
know which tools there are, and what an answer means.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from taskweave.records import Json

PROTOCOL = "2025-06-18"  # servers answer with one that they know
START_SECONDS = 30.0
MOST_LINE = 4 * 2**20  # bytes of one message
MOST_STRAY = 1_000  # lines that are no answer, while one is waited for
MOST_WAITING = 256  # lines read ahead
MOST_ID = 100  # characters of the id of what a server asks
LOOK_SECONDS = 0.05
END_SECONDS = 2.0
# All that a server sees of this process's environment besides the variables that its organization names for it.
INHERITED = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL"),
    *("TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "PATHEXT", "APPDATA", "USERPROFILE"),
)
_POSIX = os.name == "posix"


class CannotStart(Exception):
    """The server does not run: nothing was asked of it."""


class SaidNo(Exception):
    """The server answered with an error."""


class Wire:
    """One running server.  `seconds` bound each question but the first, which is its start."""

    def __init__(self, command: Sequence[str], *, folder: Path, env: Mapping[str, str], seconds: float) -> None:
        """Start it in `folder` and greet it.  Raises CannotStart with what it said last."""
        given = {name: os.environ[name] for name in INHERITED if name in os.environ} | dict(env)
        self._seconds, self._number = seconds, 0
        self._lines: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING)
        self._errors: deque[str] = deque(maxlen=5)
        self._ended = threading.Event()
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                list(command), cwd=folder, env=given, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=_POSIX
            )
        except (OSError, ValueError) as error:
            raise CannotStart(str(error)) from None
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._listen, self._overhear)]
        for reader in self._readers:
            reader.start()
        try:
            told = self.ask("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": _US}, START_SECONDS)
            if not isinstance(told.get("protocolVersion"), str):
                raise SaidNo("its greeting names no protocol")
            self.tell("notifications/initialized")
        except (OSError, SaidNo) as error:
            self.close()
            raise CannotStart(f"{error}{self.last_words}") from None

    @property
    def alive(self) -> bool:
        return not self._ended.is_set() and self._process.poll() is None

    @property
    def last_words(self) -> str:
        """What it wrote to its stderr last, as the end of a message."""
        said = " / ".join(line for line in self._errors if line)
        return f"; it said: {said}" if said else ""

    def tell(self, method: str) -> None:
        """Send a notification.  Raises OSError."""
        self._send({"jsonrpc": "2.0", "method": method})

    def ask(self, method: str, params: Mapping[str, Json], seconds: float | None = None) -> dict[str, Json]:
        """The result of one request.

        Raises SaidNo for an error that it answers, TimeoutError and other OSErrors where no answer came that can be used; then the server
        is ended, so that no later question meets a late answer.
        """
        self._number += 1
        try:
            self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": dict(params)})
            answer = self._answer(self._number, self._seconds if seconds is None else seconds)
        except OSError:
            self.close()
            raise
        if "error" in answer:
            error = answer["error"]
            raise SaidNo(str(error.get("message") if isinstance(error, dict) else error))
        if not isinstance(answer.get("result"), dict):
            self.close()
            raise OSError("it answered with no result")
        return dict(answer["result"])

    def close(self) -> None:
        """End it: politely where it listens, at once where it does not."""
        self._ended.set()
        with contextlib.suppress(OSError, ValueError):
            self._pipe(self._process.stdin).close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._kill()
            self._process.wait()
        for reader in self._readers:
            reader.join(END_SECONDS)
        for pipe, reader in zip((self._process.stdout, self._process.stderr), self._readers, strict=True):
            if not reader.is_alive():  # else somebody else holds the other end: closing would wait for them
                self._pipe(pipe).close()

    # ------------------------------------------------------------ inside
    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if _POSIX:
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()

    @staticmethod
    def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
        assert pipe is not None
        return pipe

    def _send(self, message: Json) -> None:
        stdin = self._pipe(self._process.stdin)
        deaf = threading.Timer(self._seconds, self._kill)  # a pipe that nobody empties takes no more, and waits for ever
        deaf.daemon = True
        deaf.start()
        try:
            stdin.write(json.dumps(message, ensure_ascii=True).encode() + b"\n")
            stdin.flush()
        except ValueError:
            raise OSError("it has ended") from None
        except BrokenPipeError:
            raise OSError("it has ended, or hears no more") from None
        finally:
            deaf.cancel()

    def _answer(self, number: int, seconds: float) -> dict[str, Json]:
        late = threading.Event()
        timer = threading.Timer(seconds, late.set)
        timer.daemon = True
        timer.start()
        try:
            stray = 0
            while not late.is_set():
                try:
                    line = self._lines.get(timeout=LOOK_SECONDS)
                except queue.Empty:
                    continue
                if line is None:
                    raise OSError("it ended without an answer")
                if len(line) > MOST_LINE:
                    raise OSError(f"it answered with more than {MOST_LINE // 2**20} MiB")
                message = _message(line)
                if message.get("id") == number and ("result" in message or "error" in message):
                    return message
                if "method" in message and len(str(message.get("id", ""))) in range(1, MOST_ID):
                    self._send(_reply(message))
                stray += 1
                if stray > MOST_STRAY:
                    raise OSError(f"it printed more than {MOST_STRAY:,} lines that are no answer")
            raise TimeoutError(f"it did not answer within {seconds:g} s")
        finally:
            timer.cancel()

    def _listen(self) -> None:
        """Read stdout into lines; one that is too long is handed on cut, as the last."""
        out, buffer, looked = self._pipe(self._process.stdout).fileno(), bytearray(), 0
        with contextlib.suppress(OSError):
            while chunk := os.read(out, 65_536):
                buffer += chunk
                while (end := buffer.find(b"\n", looked)) >= 0:
                    self._hand_on(bytes(buffer[:end]))
                    del buffer[: end + 1]
                    looked = 0
                looked = len(buffer)
                if looked > MOST_LINE or self._ended.is_set():
                    break
        if buffer:
            self._hand_on(bytes(buffer[: MOST_LINE + 1]))
        self._hand_on(None)

    def _hand_on(self, line: bytes | None) -> None:
        while not self._ended.is_set():
            with contextlib.suppress(queue.Full):
                self._lines.put(line, timeout=LOOK_SECONDS)
                return

    def _overhear(self) -> None:
        """Keep the last lines of stderr, so that a server that cannot begin says why; and so that no full pipe stops it."""
        errors = self._pipe(self._process.stderr).fileno()
        rest = b""
        with contextlib.suppress(OSError):
            while chunk := os.read(errors, 4_096):
                *whole, rest = (rest + chunk)[-8_192:].split(b"\n")
                self._errors.extend(line.decode(errors="replace").strip()[:300] for line in whole)


_US: dict[str, Json] = {"name": "taskweave", "version": "1"}


def _message(line: bytes) -> dict[str, Json]:
    """A line as a message; an empty one for what is none, since some servers print more than the protocol."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _reply(message: Mapping[str, Json]) -> Json:
    """What is answered to a server's own request: it is alive here, and can do nothing else."""
    if message["method"] == "ping":
        return {"jsonrpc": "2.0", "id": message["id"], "result": {}}
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "this client has no such method"}}
