"""How another process speaks to a run: a file moved into inbox/ whole.

Entry point: `Inbox.send`.  The name of an incident's file is its id for good; it is made of the title, numbered where it is taken.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from taskweave.org.organization import slug
from taskweave.records import Json

CONTROLS = ("pause", "continue", "stop")


def name_of(payload: Mapping[str, Json]) -> str:
    """What an incident's file is called before it is numbered: the slug of its title."""
    return slug(str(payload.get("title", ""))) or "incident"


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

    def forget_controls(self) -> None:
        """Drop what was asked of an engine that is gone; the one that starts was asked nothing yet."""
        for kind in CONTROLS:
            self._control(kind).unlink(missing_ok=True)
        self._paused.unlink(missing_ok=True)

    @property
    def _paused(self) -> Path:
        return self.path / ".paused"

    def _control(self, kind: str) -> Path:
        return self.path / f"asked.{kind}"

    def send(self, payload: Mapping[str, Json], *, taken: Callable[[str], bool] = lambda _: False) -> str:
        """Put an incident into the inbox and return its id.  `taken` says which ids the journal already holds."""
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
            return sorted(p.stem for p in self.path.iterdir() if p.suffix == ".json" and not p.name.startswith("."))
        return []

    def _deliver(self, name: str, data: bytes) -> None:
        beside = self.path / f".{os.getpid()}-{os.urandom(4).hex()}.part"
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(self.path / name)
