"""The README as a reader uses it: its files, and its commands in one folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\S+)(?: (\S+))?\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def lay_out(folder: Path) -> Path:
    """Write the README's files into an empty folder."""
    for _, name, text in BLOCKS:
        if name:
            (folder / name).write_text(text, encoding="utf-8")
    return folder


def run(words: list[str], place: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, timeout=250, check=False)
