"""`verify` re-executes a run elsewhere and says whether what is in run.db follows from the journal, and if not, where it first does not."""

from __future__ import annotations

import errno
import json
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

import taskweave as tw
from taskweave.api import Run
from taskweave.errors import BadInput, DiskFull, RunRefused
from taskweave.experiments import verify as verifying
from taskweave.pool.tables import TABLES
from taskweave.simulation.year import Outcome
from tests.cli.door import type_in
from tests.simulated import WORKSHOP, rows, simulated
from tests.test_fork import Failing


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("made") / "run", until="week:4").path


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Run:
    shutil.copytree(made, tmp_path / "run")
    return Run.open(tmp_path / "run")


def edit(path: Path, statement: str, *values: object) -> None:
    db = sqlite3.connect(path)
    db.execute(statement, values)
    db.commit()
    db.close()


def test_a_run_that_follows_from_its_journal_is_ok_and_stays_as_it_is(run: Run) -> None:
    before = {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file() and file.name != "lock"}
    found = run.verify()
    assert (found.ok, found.weeks, found.week, found.differences) == (True, 4, None, ())
    assert found.rows == sum(len(run.table(name)) for name in TABLES)
    assert before == {file: file.read_bytes() for file in run.path.rglob("*") if file.is_file() and file.name != "lock"}


@pytest.mark.parametrize("how", ["raised", "ended", "inputs"])
def test_where_the_disk_that_it_is_re_executed_on_is_full_another_one_is_asked_for(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def full(*_: object, **__: object) -> Outcome:
        if how == "raised":
            raise DiskFull("/x/journal.db: database or disk is full; make room on that disk, then resume")
        return Outcome(stop="disk", cause="no room, then resume", week=1, digest=None, executed=1)

    def unwritten(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    if how == "inputs":
        monkeypatch.setattr(verifying, "copy_inputs", unwritten)
    else:
        monkeypatch.setattr(verifying, "simulate", full)
    done = type_in("verify", run.path)
    said = " ".join(done.stderr.split())
    assert done.exit_code == 75
    assert f"the disk of {elsewhere} is full. Make room there, or set TMPDIR" in said
    assert "resume" not in said
    assert not list(elsewhere.iterdir())


def test_where_nothing_can_be_written_for_a_while_a_folder_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(**_: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "TemporaryDirectory", nowhere)
    with pytest.raises(BadInput, match="Set TMPDIR to a folder that can be written"):
        run.verify()


def test_a_row_that_was_edited_is_named_with_both_values(run: Run) -> None:
    result = rows(run, "results")[3]["id"]
    edit(run.folder.run_db_path, "UPDATE results SET title = 'Never written' WHERE id = ?", result)
    found = run.verify()
    (one,) = found.differences
    assert not found.ok
    assert (found.week, one.table, one.id, one.column, one.recorded) == (None, "results", result, "title", "Never written")


def test_of_several_differences_the_earliest_in_the_year_comes_first(run: Run) -> None:
    ids = [row["id"] for row in rows(run, "subtasks")]
    early, late = (next(id for id in ids if week in id) for week in ("/W01@", "/W03@"))
    for id in (late, early):
        edit(run.folder.run_db_path, "UPDATE subtasks SET goal = 'Other' WHERE id = ?", id)
    edit(run.folder.run_db_path, "DELETE FROM results WHERE id = ?", late)
    assert [(one.table, one.id) for one in run.verify().differences] == [("subtasks", early), ("subtasks", late), ("results", late)]


def changed_answer(run: Run, sites: str) -> str:
    """Change what was answered at the last site of that form, and return the site."""
    db = sqlite3.connect(run.folder.journal_path)
    asked = "SELECT key, site, value FROM outcomes WHERE kind = 'complete' AND site LIKE ? ORDER BY site DESC"
    key, site, value = db.execute(asked, (sites,)).fetchone()
    db.close()
    answer = json.loads(json.loads(value)["text"])
    answer["content"] += " And more."
    changed = json.dumps(json.loads(value) | {"text": json.dumps(answer)})
    edit(run.folder.journal_path, "UPDATE outcomes SET value = ? WHERE key = ?", changed, key)
    return str(site)


def test_an_answer_that_was_changed_in_the_journal_shows_in_its_week_and_at_the_site_that_asks_with_it(run: Run) -> None:
    task = changed_answer(run, "%/W03@%/s1:execute").partition("/s1:")[0]
    found = run.verify()
    assert (found.ok, found.week) == (False, 3)
    assert found.unanswered.startswith(f"the journal holds no answer to what is asked at {task}")
    done = type_in("verify", run.path)
    assert done.exit_code == 5
    assert "week 3 is the first that differs" in done.stdout
    assert task in done.stdout


def test_an_answer_that_nothing_rests_on_shows_in_its_own_row(run: Run) -> None:
    task = changed_answer(run, "%/W04@%:merge").partition(":merge")[0]
    found = run.verify()
    assert (found.week, found.unanswered) == (4, "")
    one = found.differences[0]
    assert (one.table, one.id, one.column) == ("results", task, "content")
    assert one.re_executed is not None
    assert one.re_executed.endswith(" And more.")


def test_an_input_that_was_edited_is_named(run: Run) -> None:
    org = run.path / "org.yaml"
    org.write_text(org.read_text(encoding="utf-8").replace("Repair 400 chairs", "Repair 500 chairs"), encoding="utf-8")
    found = run.verify()
    assert not found.ok
    assert found.changed == ("org.yaml: goals.orders",)
    assert found.unanswered.startswith("the journal holds no answer to what is asked at ")


def test_without_run_db_the_digests_are_compared(run: Run) -> None:
    run.folder.run_db_path.unlink()
    found = run.verify()
    assert (found.ok, found.rows) == (True, 0)
    assert "there is no run.db" in type_in("verify", run.path).stdout


def test_a_run_db_that_lacks_weeks_and_a_run_that_is_held_or_new_are_refused(run: Run, tmp_path: Path) -> None:
    with run.folder.lock(), pytest.raises(RunRefused, match="it is being driven by"):
        run.verify()
    edit(run.folder.run_db_path, "DELETE FROM weeks WHERE week = 4")
    with pytest.raises(RunRefused, match="holds 3 of the 4 weeks that are closed"):
        run.verify()
    assert type_in("verify", run.path).exit_code == 2
    assert type_in("verify", tmp_path / "nowhere").exit_code == 2


def test_a_run_that_was_stopped_in_a_week_is_verified_up_to_the_last_closed_one(tmp_path: Path) -> None:

    with pytest.raises(KeyboardInterrupt):
        tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "run", until="week:6", backbone=Failing(60))
    run = Run.open(tmp_path / "run")
    assert 0 < run.status().week < 6
    found = run.verify()
    assert (found.ok, found.weeks) == (True, run.status().week)


def test_json_says_what_the_text_says(run: Run) -> None:
    told = json.loads(type_in("verify", run.path, "--json").stdout)
    assert (told["ok"], told["weeks"], told["differences"]) == (True, 4, [])


def test_one_week_is_said_as_one(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    assert type_in("verify", run.path).stdout.startswith("ok: 1 week was re-executed; ")
    run.folder.run_db_path.unlink()
    assert type_in("verify", run.path).stdout.startswith("ok: 1 week was re-executed; its digest equals the journal's")


def test_a_row_that_cannot_be_read_is_named_in_the_runs_own_file(run: Run) -> None:
    edit(run.folder.journal_path, "UPDATE outcomes SET value = 'no JSON' WHERE rowid = (SELECT max(rowid) FROM outcomes)")
    with pytest.raises(BadInput, match=rf"{run.folder.journal_path}: the journal is damaged"):
        run.verify()
