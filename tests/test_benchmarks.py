"""What is measured can be asked for by one command."""

from __future__ import annotations

from pathlib import Path

import pytest

import taskweave as tw
from benchmarks import __main__ as benchmarks


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engine's measurements take minutes: here it is only told that they were asked for."""
    asked: list[str] = []
    monkeypatch.setattr(benchmarks.engine, "main", lambda: asked.append("engine"))
    return asked


def test_without_a_run_the_engine_is_measured(measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmarks.main([]) == 0
    assert measured == ["engine"]
    assert capsys.readouterr().out == ""


def test_with_a_run_its_texts_are_too(tmp_path: Path, measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tw.simulate("tiny", until="week:1", out=tmp_path / "r")
    assert benchmarks.main([str(tmp_path / "r"), "--pairs", "10", "--seed", "7"]) == 0
    assert measured == ["engine"]
    assert "4-grams shared by two deliverables of different tasks (seed 7)" in capsys.readouterr().out


def test_what_is_wrong_with_the_words_is_said_before_anything_is_measured(tmp_path: Path, measured: list[str]) -> None:
    assert benchmarks.main([str(tmp_path / "nowhere")]) == 2
    with pytest.raises(SystemExit):
        benchmarks.main(["--pairs", "10"])
    assert measured == []
