"""How does a file get below a folder, and nowhere else?

Entry points: `file_name` (of what a model calls it), `write_below`, `remove_below`.

Refuses to follow a link, and to know what is in the file.
"""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath

from taskweave.errors import BadInput, ToolRefused

MOST_NAME = 80
_NAME = re.compile(r"[\w][\w .,()&+-]*")
# What some file systems take for a device, whatever its ending.
_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}


def file_name(given: str, ending: str) -> str:
    """The name as a file's, with the ending: raises ToolRefused for a path, and for what a file system might take for anything else."""
    name = given.strip()
    name = name[: -len(ending)] if name.casefold().endswith(ending) else name
    if "/" in name or "\\" in name or ".." in name:
        raise ToolRefused(f"{given!r} is a path; give a plain name such as 'pricing review'")
    if not _NAME.fullmatch(name) or name.endswith((".", " ")) or name.split(".")[0].casefold() in _DEVICES:
        raise ToolRefused(f"{given!r} cannot be a file's name; use letters, digits, spaces and hyphens")
    if len(name.encode()) > MOST_NAME:
        raise ToolRefused(f"the name is too long: {MOST_NAME} bytes are taken")
    return name + ending


def write_below(folder: Path, path: str, data: bytes) -> None:
    """Put the bytes at a relative path below the folder, whole or not at all; a file that holds them already is left alone.

    Raises BadInput where the path, or something somebody has put there, would lead out of the folder or is in the way.
    """
    target = _place(folder, path, make=True)
    assert target is not None
    if target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data:
        return
    if target.is_dir():
        raise BadInput(f"{target}: is a folder, where a file belongs. Move it away, and resume the run")
    beside = target.parent / f".{target.name}.new"
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(beside, target)


def remove_below(folder: Path, path: str) -> None:
    """Remove the file at a relative path below the folder, where there is one.  Raises BadInput as `write_below` does."""
    target = _place(folder, path, make=False)
    if target is not None and target.is_file():
        target.unlink()


def _place(folder: Path, path: str, *, make: bool) -> Path | None:
    """Where the path leads, which is below the folder and through no link; None where a folder on the way is missing and none is made."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(part in ("..", ".", "") or "\\" in part or "\0" in part for part in parts):
        raise BadInput(f"{path!r} does not lead to a file below {folder}")
    place = folder
    for part in ("", *parts[:-1]):
        place = place / part if part else place
        _check_link(place)
        if place.exists() and not place.is_dir():
            raise BadInput(f"{place}: is no folder, where one belongs. Move it away, and resume the run")
        if not make and not place.exists():
            return None
        place.mkdir(exist_ok=True)
    _check_link(place / parts[-1])
    return place / parts[-1]


def _check_link(place: Path) -> None:
    if place.is_symlink():
        raise BadInput(f"{place}: is a link; nothing is written through links. Remove it, and resume the run")
