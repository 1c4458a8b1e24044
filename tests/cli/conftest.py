"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskweave.cli import app
from tests.cli.door import INCIDENT


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks of tiny, run once; tests only read it."""
    place = tmp_path_factory.mktemp("finished") / "tiny"
    done = CliRunner().invoke(app, ["run", "tiny", "--until", "week:3", "--out", str(place)])
    assert done.exit_code == 0, done.output
    return place


@pytest.fixture
def incident(tmp_path: Path) -> Path:
    file = tmp_path / "strike.yaml"
    file.write_text(INCIDENT, encoding="utf-8")
    return file
