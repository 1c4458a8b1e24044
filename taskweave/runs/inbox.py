"""How another process speaks to a run: a file moved into inbox/ whole.

Entry point: `Inbox.send`.  The name of an incident's file is its id for good; it is made of the title, numbered where it is taken.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from taskweave.errors import RunRefused
from taskweave.org.organization import slug
from taskweave.records import Json

CONTROLS = ("pause", "continue", "stop")


def name_of(payload: Mapping[str, Json]) -> str:
    """What an incident's file is called before it is numbered: the slug of its title."""
    return slug(str(payload.get("title", ""))) or "incident"


def shown(name: str) -> str:
    """A file's name as text: what is not UTF-8 in it becomes U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


def numbered(name: str, taken: Callable[[str], bool]) -> str:
    """`name`, or the first of name-2, name-3, ... that is not taken."""
    number, candidate = 1, name
    while taken(candidate):
        number += 1
        candidate = f"{name}-{number}"
    return candidate


class Inbox:
    """The inbox/ of one run folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def control(self, kind: str) -> None:
        """Ask the engine to pause, to continue or to stop: an empty file that ends in what is asked.  The engine takes it away."""
        if kind not in CONTROLS:
            raise ValueError(f"no control is called {kind!r}; there are {CONTROLS}")
        with self._written():
            self._ask(kind)

    def _ask(self, kind: str) -> None:
        for other in {"pause": ("continue",), "continue": ("pause",), "stop": ()}[kind]:
            self._control(other).unlink(missing_ok=True)
        self._deliver(self._control(kind).name, b"")
        if kind == "pause":
            self._paused.touch()
        elif kind == "continue":
            self._paused.unlink(missing_ok=True)

    def paused(self) -> bool:
        """Whether the last that was asked of a live engine is to stand still."""
        return self._paused.exists()

    def begin(self) -> None:
        """Make it where it is missing, and drop what was asked of an engine that is gone: the one that starts was asked nothing yet.

        For whoever has just taken the run's lock: what is asked from now on is meant for it.  Raises RunRefused where it cannot be written.
        """
        with self._written():
            for kind in CONTROLS:
                self._control(kind).unlink(missing_ok=True)
            self._paused.unlink(missing_ok=True)
            if not os.access(self.path, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    @property
    def _paused(self) -> Path:
        return self.path / ".paused"

    def _control(self, kind: str) -> Path:
        return self.path / f"asked.{kind}"

    def send(self, payload: Mapping[str, Json], *, taken: Callable[[str], bool] = lambda _: False) -> str:
        """Put an incident into the inbox and return its id.  `taken` says which ids the journal already holds."""
        with self._written():
            name = numbered(name_of(payload), lambda candidate: taken(candidate) or not self.claim(candidate))
            self._deliver(f"{name}.json", (json.dumps(payload, ensure_ascii=False, sort_keys=True) + "\n").encode())
        return name

    def claim(self, name: str) -> bool:
        """Take an id for good.  The engine empties the inbox as it goes, so what lies in it cannot say which ids were used."""
        claims = self.path / ".ids"
        claims.mkdir(exist_ok=True)
        if (self.path / f"{name}.json").exists():
            return False
        try:
            os.close(os.open(claims / name, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except FileExistsError:
            return False
        return True

    def waiting(self) -> list[str]:
        """Ids of what lies there and was not yet taken by a tick."""
        with contextlib.suppress(FileNotFoundError):
            return sorted(shown(p.stem) for p in self.path.iterdir() if p.suffix == ".json" and not p.name.startswith("."))
        return []

    @contextlib.contextmanager
    def _written(self) -> Iterator[None]:
        """Around whatever is written there.  A full disk stays what it is: that is not the folder's fault."""
        try:
            self.path.mkdir(exist_ok=True)
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise RunRefused(
                f"{self.path}: nothing can be put into it ({error.strerror}), so the run can neither be driven nor spoken to. "
                "Make it a folder that you may write into, or copy the run to where it is one."
            ) from error

    def _deliver(self, name: str, data: bytes) -> None:
        beside = self.path / f".{os.getpid()}-{os.urandom(4).hex()}.part"
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path / name)
