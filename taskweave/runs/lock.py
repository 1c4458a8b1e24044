"""Keeps two engines off one run, and says who holds it.

Entry points: `held`, `holder`.  An flock goes with its process however that ends; where the file system has none (some network
mounts, Windows), a file that names its holder takes its place.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from shlex import quote
from types import ModuleType

from taskweave.errors import RunRefused

fcntl: ModuleType | None  # asked for before each use
try:
    fcntl = import_module("fcntl")
except ImportError:  # Windows has no flock
    fcntl = None

LOCK = "lock"
MARK = "lock.held"  # stands for the flock where there is none
_NO_FLOCK = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL}
_BUSY = {errno.EWOULDBLOCK, errno.EACCES}
# `status` takes a shared lock for an instant; a run that starts at that instant must not be refused.
_TRIES, _PAUSE = 5, 0.05


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    """The process that holds a run."""

    pid: int
    host: str
    since: str  # ISO 8601, UTC, seconds

    @staticmethod
    def me() -> Holder:
        return Holder(pid=os.getpid(), host=socket.gethostname(), since=datetime.now(UTC).isoformat(timespec="seconds"))

    @staticmethod
    def parse(text: str) -> Holder | None:
        """The holder that a lock file names; None where it names none."""
        try:
            value = json.loads(text)
            return Holder(pid=int(value["pid"]), host=str(value["host"]), since=str(value["since"]))
        except (ValueError, KeyError, TypeError):
            return None

    def text(self) -> str:
        return json.dumps({"pid": self.pid, "host": self.host, "since": self.since}) + "\n"

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"

    def gone(self) -> bool:
        """True where it is known to have ended; of a process on another host nothing is known."""
        return self.host == socket.gethostname() and not alive(self.pid)


def alive(pid: int) -> bool:
    """Whether a process of this host has this id."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Holder]:
    """Hold the run in `folder` while the block runs.  Raises RunRefused naming the holder and what to type."""
    mine = Holder.me()
    path = folder / LOCK
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    except OSError as error:
        raise RunRefused(f"{folder}: the run cannot be locked ({error.strerror}). Copy the folder to where you may write.") from error
    try:
        if _flock(fd, exclusive=True, tries=_TRIES) is None:
            with _marked(folder, mine):
                yield mine
            return
        os.ftruncate(fd, 0)
        os.pwrite(fd, mine.text().encode(), 0)
        try:
            yield mine
        finally:
            os.ftruncate(fd, 0)
    except _Busy:
        raise _refused(folder, Holder.parse(path.read_text("utf-8", "replace"))) from None
    finally:
        os.close(fd)


def holder(folder: Path) -> Holder | None:
    """Who holds the run now; None where nobody does."""
    try:
        mark = Holder.parse((folder / MARK).read_text("utf-8", "replace"))
    except OSError:
        mark = None
    if mark is not None and not mark.gone():
        return mark
    try:
        fd = os.open(folder / LOCK, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None
    try:
        _flock(fd, exclusive=False, tries=1)
    except _Busy:
        return Holder.parse((folder / LOCK).read_text("utf-8", "replace")) or Holder(pid=0, host="an unknown host", since="an unknown time")
    finally:
        os.close(fd)
    return None


@contextlib.contextmanager
def owned(building: Path) -> Iterator[None]:
    """Mark a folder that is being built as this process's; the mark goes with the process, and with the block."""
    fd = os.open(building / LOCK, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        _flock(fd, exclusive=True, tries=1)
        yield
    finally:
        os.close(fd)


def abandoned(building: Path, *, host: str, pid: int) -> bool:
    """Whether nobody builds this folder any more.  Where there is no flock to ask, the process that its name tells decides."""
    try:
        fd = os.open(building / LOCK, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return host == socket.gethostname() and not alive(pid)
    try:
        locked = _flock(fd, exclusive=True, tries=1)
    except _Busy:
        return False
    finally:
        os.close(fd)
    return True if locked else host == socket.gethostname() and not alive(pid)


class _Busy(Exception):
    """Another process has the flock."""


def _flock(fd: int, *, exclusive: bool, tries: int) -> bool | None:
    """True with the lock taken (it goes with the fd), None where the file system has no locks.  Raises _Busy."""
    if fcntl is None:
        return None
    for attempt in range(tries):
        try:
            fcntl.flock(fd, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _NO_FLOCK:
                return None
            if error.errno not in _BUSY:
                raise
            if attempt + 1 < tries:
                time.sleep(_PAUSE)
        else:
            return True
    raise _Busy


@contextlib.contextmanager
def _marked(folder: Path, mine: Holder) -> Iterator[None]:
    path = folder / MARK
    for attempt in (1, 2):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(mine.text())
            break
        except FileExistsError:
            other = Holder.parse(path.read_text("utf-8", "replace"))
            if attempt == 2 or other is None or not other.gone():
                hint = f" If that process is gone, delete {path} and try again."
                raise _refused(folder, other, hint) from None
            path.unlink(missing_ok=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _refused(folder: Path, by: Holder | None, hint: str = "") -> RunRefused:
    who = by if by is not None else "another process"
    run = quote(str(folder))
    return RunRefused(
        f"{folder}: the run is held by {who}. See how far it is with 'taskweave status {run}', end it with 'taskweave stop {run}'.{hint}"
    )
