"""How does a file get below a folder, and nowhere else?  Entry points: `file_name` (of what a model calls it), `write_below`.

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

    Raises BadInput where the path, or a link somebody has put there, would lead out of the folder.
    """
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or any(part in ("..", ".", "") or "\\" in part or "\0" in part for part in parts):
        raise BadInput(f"{path!r} does not lead to a file below {folder}")
    place = folder
    for part in ("", *parts[:-1]):
        place = place / part if part else place
        if place.is_symlink():
            raise BadInput(f"{place}: is a link; nothing is written through links. Remove it, and resume the run")
        place.mkdir(exist_ok=True)
    target = place / parts[-1]
    if target.is_symlink():
        raise BadInput(f"{target}: is a link; nothing is written through links. Remove it, and resume the run")
    if target.is_file() and target.stat().st_size == len(data) and target.read_bytes() == data:
        return
    beside = place / f".{parts[-1]}.new"
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    os.replace(beside, target)
