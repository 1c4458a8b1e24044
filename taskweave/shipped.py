"""Where the data files that come with the package lie: built-in organizations, roles and prompts.

In an installed package they are under `taskweave/data/`; in a checkout they are the folders beside it.
"""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

from taskweave.errors import BadInput
from taskweave.records import StyleName

COMPACT = "compact"  # of a folder of prompts, the folder with those of that style
_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """The folder of the shipped files called `name` ("orgs" or "prompts")."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name


def shipped_prompts(style: StyleName) -> Path:
    """The folder of the shipped prompts of a style."""
    return shipped("prompts") / COMPACT if style == "compact" else shipped("prompts")


def built_in() -> dict[str, Path]:
    """The built-in organizations: name -> file."""
    return {file.stem: file for file in sorted(shipped("orgs").glob("*.yaml"))}


def find_organization(name: str | Path) -> Path:
    """The file of an organization: a path, or the name of a built-in one.  Raises BadInput with the nearest names."""
    path = Path(name)
    if path.is_file():
        return path
    known = built_in()
    if str(name) in known:
        return known[str(name)]
    if path.is_dir():
        inside = sorted(str(p) for p in path.glob("*.yaml"))
        hint = f" Did you mean {' or '.join(inside[:3])}?" if inside else ""
        raise BadInput(f"{path}: this is a folder; an organization file is needed.{hint}")
    near = difflib.get_close_matches(path.name, [*known, *(p.name for p in sorted(Path().glob("*.y*ml")))], n=3, cutoff=0.6)
    hint = f" The nearest: {', '.join(near)}." if near else ""
    raise BadInput(f"{str(name)!r}: neither a file nor a built-in organization.{hint} Built in are {', '.join(known)}.")


def prompt_files(folder: Path) -> list[Path]:
    """The prompts in a folder, in order of their names; a README there is none."""
    return [file for file in sorted(folder.glob("*.md")) if file.stem.lower() != "readme"]


def copy_starter(folder: Path) -> list[Path]:
    """Make `folder` with a starter organization, the shipped prompts and a README; returns the files.

    Raises BadInput where something lies there already.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"{folder}: something lies there already. Name a new folder, or an empty one.")
    starter = shipped("orgs") / "starter"
    files = [(file, folder / file.name) for file in sorted(starter.iterdir()) if file.is_file()]
    files += [(file, folder / "prompts" / file.name) for file in prompt_files(shipped_prompts("full"))]
    files += [(file, folder / "prompts" / COMPACT / file.name) for file in prompt_files(shipped_prompts("compact"))]
    there = folder.exists()
    try:
        (folder / "prompts" / COMPACT).mkdir(parents=True, exist_ok=True)
        for source, target in files:
            shutil.copyfile(source, target)
    except OSError as error:
        # Nothing is left half written: it would stand in the way of a second attempt.
        for place in list(folder.iterdir()) if there and folder.is_dir() else [folder]:
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            else:
                place.unlink(missing_ok=True)
        raise BadInput(f"{folder}: cannot be written ({error.strerror}). Name another folder.") from error
    return [target for _, target in files]
