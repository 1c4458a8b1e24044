"""Where the data files that come with the package lie: built-in organizations, roles and prompts.

In an installed package they are under `taskweave/data/`; in a checkout they are the folders beside it.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped(name: str) -> Path:
    """The folder of the shipped files called `name` ("orgs" or "prompts")."""
    installed = _PACKAGE / "data" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
