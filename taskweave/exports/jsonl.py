"""A run as JSON Lines: one file a table, one line a row, keys sorted, UTF-8, LF.  Entry point: `export`.

Equal runs give byte-identical files, except calls.jsonl, the only table with wall-clock time.  Knows nothing of other formats.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from taskweave.errors import BackboneOut, BadInput
from taskweave.pool.pool import Pool
from taskweave.pool.tables import TABLES

FILES = tuple(f"{table}.jsonl" for table in TABLES)


def export(pool: Pool, out: Path, warn: list[str] | None = None) -> list[Path]:
    """Write every table into the folder `out` (made where it is missing) and return the files, in the order of the tables.

    All files come from one moment of a run that still goes on, and each appears whole.  An earlier export is replaced, which `warn` is
    told where it said something else; a folder that holds anything else is refused with BadInput, untouched.  BackboneOut (75) on a full
    disk.
    """
    _refuse_foreign(out)
    made = [folder for folder in (out, *out.absolute().parents) if not folder.exists()]
    try:
        out.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=".building-", dir=out))
    except OSError as error:
        _take_away(made)
        raise BadInput(f"{out}: cannot be written ({error.strerror}); name another folder") from error
    try:
        with pool.snapshot():
            for table, name in zip(TABLES, FILES, strict=True):
                with (building / name).open("w", encoding="utf-8", newline="\n") as file:
                    file.writelines(f"{line}\n" for line in pool.lines(table))
        if warn is not None and (said := _replaced(building, out)) is not None:
            warn.append(said)
        for name in FILES:
            os.replace(building / name, out / name)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise BackboneOut(f"{out}: the disk is full; nothing was exported. Free some space and type the command again.") from error
        raise BadInput(f"{out}: cannot be written ({error.strerror}); name another folder") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
        _take_away(made)
    return [out / name for name in FILES]


def _take_away(folders: Iterable[Path]) -> None:
    """Remove folders as far as they are empty, the innermost first."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()


def _replaced(new: Path, old: Path) -> str | None:
    """What to say of an export that lies there and is not this one; its agents, who are the same all through a run, tell whose it is."""
    there = [name for name in FILES if (old / name).is_file()]
    if all(filecmp.cmp(new / name, old / name, shallow=False) for name in there):
        return None
    people = "agents.jsonl"
    another = people in there and not filecmp.cmp(new / people, old / people, shallow=False)
    whose = "another organization or seed" if another else "another run, or of this one at another time"
    return f"{old}: held an export of {whose}; it was replaced"


def _refuse_foreign(out: Path) -> None:
    if not out.exists():
        return
    if not out.is_dir():
        raise BadInput(f"{out} is a file; name a folder to export into")
    others = sorted(entry.name for entry in out.iterdir() if entry.name not in FILES and not entry.name.startswith(".building-"))
    if others:
        raise BadInput(f"{out} holds {others[0]!r}, which is no part of an export; name a new or empty folder")
