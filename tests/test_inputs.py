"""What a run works from is what it began with: an edited input is noticed before anything is asked."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from taskweave import driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.engine.reader import JournalReader
from taskweave.errors import Divergence
from taskweave.records import Completion, Request
from tests.simulated import simulated


class Silent(Scripted):
    """Nobody may ask it."""

    async def complete(self, request: Request) -> Completion:
        raise AssertionError(request.prompt)


def edited(file: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(run: Path) -> None:
        text = (run / file).read_text(encoding="utf-8")
        assert re.search(old, text)
        (run / file).write_text(re.sub(old, new, text, count=1), encoding="utf-8")

    return edit


def another_person(run: Path) -> None:
    people = json.loads((run / "population.json").read_text(encoding="utf-8"))
    people[1]["persona"]["years"] += 1
    (run / "population.json").write_text(json.dumps(people), encoding="utf-8")


def everything(run: Path) -> dict[str, str]:
    """The content of each file but the lock."""
    files = (file for file in sorted(run.rglob("*")) if file.is_file() and file.name != "lock")
    return {file.relative_to(run).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


CHANGES = {
    "org.yaml: roles.Joiner": edited("org.yaml", "hours: 3-5", "hours: 3-6"),
    "org.yaml: goals.orders": edited("org.yaml", "400 chairs", "500 chairs"),
    "org.yaml: workload.utilisation": edited("org.yaml", "utilisation: 0.8", "utilisation: 0.9"),
    "population.json: joiner-1": another_person,
    "prompts/merge.md": edited("prompts/merge.md", r"# Task", "# The task"),
    "config.json: seed": edited("config.json", r'"seed": 1', '"seed": 2'),
    "config.json: assign": edited("config.json", '"match"', '"model"'),
    "config.json: segments.0.draw": edited("config.json", r'"draw": 0', '"draw": 3'),
}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("ran") / "run", until="week:1")


@pytest.mark.parametrize("name", CHANGES)
def test_an_edited_input_is_named_before_anything_is_asked_or_written(tmp_path: Path, name: str) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    CHANGES[name](run.path)
    before = everything(run.path)
    with pytest.raises(Divergence, match=re.escape(f"changed since the run began: {name}. Nothing was asked")):
        Run.open(run.path).resume(until="week:2")
    with pytest.raises(Divergence, match=re.escape(name)):
        driving.drive(Run.open(run.path).folder, Silent())
    assert everything(run.path) == before


def test_a_prompt_that_was_taken_away_or_added_is_named(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    (run.path / "prompts" / "align.md").unlink()
    with pytest.raises(Divergence, match=r"began: prompts/align\.md\."):
        run.resume()


def test_many_changes_are_named_and_counted(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    for file in (run.path / "prompts").glob("*.md"):
        file.write_text(file.read_text(encoding="utf-8").replace("# ", "## ", 1) + "More.\n", encoding="utf-8")
    with pytest.raises(Divergence, match=r"prompts/align\.md, .* and 6 more\."):
        run.resume()


def test_comments_layout_shares_and_what_may_change_are_no_change(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    edited("org.yaml", "name: Workshop", "# About us\nname:   Workshop  # as ever")(run.path)
    edited("org.yaml", "hours: 3-5", "hours: 3-5, share: 0.4")(run.path)
    people = json.loads((run.path / "population.json").read_text(encoding="utf-8"))
    (run.path / "population.json").write_text(json.dumps(people, indent=3), encoding="utf-8")
    again = Run.open(run.path).resume(until="week:2", limit=3, patience=9.0)
    assert again.outcome is not None
    assert (again.outcome.stop, again.outcome.week) == (None, 2)


def test_a_journal_killed_before_its_inputs_were_written_learns_them_at_the_next_start(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    with JournalReader(run.folder.journal_path) as reader:
        written = reader.inputs()
    assert {"config.json: seed", "org.yaml: roles.Head", "population.json: head", "prompts/execute.md"} <= written.keys()
    with contextlib.closing(sqlite3.connect(run.folder.journal_path)) as db, db:
        db.execute("DELETE FROM inputs")
    with JournalReader(run.folder.journal_path) as reader:
        assert reader.inputs() == {}
    run.resume()
    with JournalReader(run.folder.journal_path) as reader:
        assert reader.inputs() == written
