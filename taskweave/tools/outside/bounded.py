"""How long, and how much, may a server on the other side take?  Entry points: `Deadline`, `Measured`, `plain`.

A server that hangs is left after `SILENCE` seconds, one that drips after `ALTOGETHER`, and one that talks after `MOST_HEARD` bytes.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO, Self

from taskweave.backbones.masking import Mask

SILENCE, ALTOGETHER = 20.0, 60.0  # seconds
MOST_HEARD = 65_536  # bytes of all that a server says
MOST_SAID = 200  # characters of its reason


class Deadline:
    """Closes a connection once it has taken too long, whatever the other side does: what waits for it then ends with an OSError."""

    def __init__(self, connection: Callable[[], socket.socket | None], seconds: float) -> None:
        self._connection, self.over = connection, False
        self._timer = threading.Timer(seconds, self._end)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._timer.cancel()

    def _end(self) -> None:
        self.over = True
        if (open_one := self._connection()) is not None:
            with contextlib.suppress(OSError):
                # Not TLS's own, which takes the connection apart while another thread reads it.
                socket.socket.shutdown(open_one, socket.SHUT_RDWR)


class Measured:
    """A connection's incoming side that gives whole lines, and at most so many bytes; else reading it raises OSError."""

    def __init__(self, file: BinaryIO, most: int = MOST_HEARD) -> None:
        self._file, self._left = file, most

    def readline(self, most: int = -1) -> bytes:
        """A line, or so many bytes of it."""
        line = self._file.readline(most)
        self._left -= len(line)
        if self._left < 0:
            raise OSError(f"the server says more than {MOST_HEARD:,} bytes")
        if line and len(line) != most and not line.endswith(b"\n"):
            raise OSError("the server broke off")  # half an answer may begin like a good one
        return line

    def close(self) -> None:
        self._file.close()


def plain(said: object, *secrets: str) -> str:
    """What a server or an exception says in one short line, without the secrets."""
    text = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    for secret in secrets:
        text = Mask(secret).masked(text)
    return Mask("").line(text, MOST_SAID)
