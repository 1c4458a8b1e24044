"""One golden run, compared whole."""

from __future__ import annotations

from pathlib import Path

from tests.golden import FILE, golden


def test_a_quarter_of_tiny_is_the_golden_run(tmp_path: Path) -> None:
    before = FILE.read_text(encoding="utf-8").splitlines()
    now = golden(tmp_path)
    changed = [(number, a, b) for number, (a, b) in enumerate(zip(before, now, strict=False), 1) if a != b]
    assert not changed, f"line {changed[0][0]} differs; if that is meant: python -m tests.golden\n- {changed[0][1]}\n+ {changed[0][2]}"
    assert len(before) == len(now)
