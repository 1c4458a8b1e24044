"""The README's Python runs, as often as one likes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.readme import BLOCKS, lay_out, run


def test_its_python_runs(tmp_path: Path) -> None:
    place = lay_out(tmp_path)
    code = [text for kind, _, text in BLOCKS if kind == "python"]
    assert len(code) == 1
    for _ in range(2):  # as often as one likes
        done = run([sys.executable, "-c", code[0]], place)
        assert done.returncode == 0, done.stderr
        assert "tasks done" in done.stdout
        assert "things it rests on" in done.stdout
        assert not re.search(r"^open\b", done.stdout, re.MULTILINE)  # composite tasks are settled when their week has closed
