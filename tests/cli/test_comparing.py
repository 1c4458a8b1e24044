"""The command that sets runs against each other: diff."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import taskweave as tw
from taskweave.engine.reader import JournalReader
from tests.cli.door import INCIDENT, refused, type_in


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks of tiny in a folder: base, and forks of it in week 2: event (a strike), again (as base), chance-1 and chance-2."""
    place = tmp_path_factory.mktemp("runs")
    file = place / "strike.yaml"
    file.write_text(INCIDENT, encoding="utf-8")
    base = tw.simulate("tiny", until="week:3", out=place / "base")
    base.fork(at="week:2", out=place / "event", incidents=file)
    base.fork(at="week:2", out=place / "again")
    for draw in (1, 2):
        base.fork(at="week:2", redraw=draw, out=place / f"chance-{draw}")
    return place


def test_diff_says_in_which_week_runs_part_and_what_differs(runs: Path) -> None:
    done = type_in("diff", runs / "base", runs / "event")
    assert done.exit_code == 0
    assert done.stderr == ""
    for part in ("They part in week 2", "incident only in event: Strike", "No controls", "Only text", "Keywords that come and go"):
        assert part in done.stdout
    assert done.stdout.strip() == str(tw.diff(runs / "base", runs / "event"))
    weeks = [JournalReader(runs / name / "journal.db").weeks() for name in ("base", "event")]
    assert [a.digest == b.digest for a, b in zip(*weeks, strict=True)] == [True, False, False]


@pytest.mark.parametrize("flag", [(), ("--control",)])
def test_redrawn_forks_are_controls_named_by_hand_or_not(runs: Path, flag: tuple[str, ...]) -> None:
    words = ("diff", runs / "base", runs / "event", *flag, runs / "chance-1", *flag, runs / "chance-2")
    done = type_in(*words)
    assert done.exit_code == 0
    assert "2 controls: one further redrawn run would lie within the interval shown" in done.stdout
    assert "not distinguishable" in done.stdout
    told = json.loads(type_in(*words, "--json").stdout)
    assert told["comparisons"][0]["controls"] == ["chance-1", "chance-2"]


def test_equal_runs_are_identical(runs: Path) -> None:
    done = type_in("diff", runs / "base", runs / "again")
    assert done.exit_code == 0
    assert "identical: the same digest up to week 3" in done.stdout
    assert json.loads(type_in("diff", runs / "base", runs / "again", "--json").stdout)["comparisons"][0]["week"] is None
    assert "says nothing of chance" in refused("diff", runs / "base", runs / "event", "--control", runs / "again")


def test_all_shows_what_is_left_out_otherwise_and_until_ends_it_earlier(runs: Path) -> None:
    short, long = (type_in("diff", runs / "base", runs / "event", *more).stdout for more in ([], ["--all"]))
    assert "--all shows the rest" in short
    assert "--all" not in long
    assert len(long) > len(short)
    assert "week 2 is compared" in type_in("diff", runs / "base", runs / "event", "--until", "week:2").stdout


def test_what_cannot_be_compared_is_refused(runs: Path) -> None:
    assert "no run to compare it with" in refused("diff", runs / "base")
    assert "there is no such run" in refused("diff", runs / "base", "nothing")
    assert "is given twice" in refused("diff", runs / "base", runs / "base")
    assert "week:99" in refused("diff", runs / "base", runs / "event", "--until", "week:99")
    for name, more in (("seed", ["--seed", "2"]), ("other", [])):
        assert type_in("run", "startup" if name == "other" else "tiny", "--until", "week:1", "--out", name, *more).exit_code == 0
    assert "its seed is 2 and not 1" in refused("diff", runs / "base", "seed")
    assert "it is of another organization" in refused("diff", runs / "base", "other")
    assert type_in("diff").exit_code == 2


def test_runs_that_cannot_be_read_are_refused_and_one_without_a_journal_is_warned_of(runs: Path) -> None:
    shutil.copytree(runs / "event", "copy")
    Path("copy/journal.db").unlink()
    done = type_in("diff", runs / "base", "copy")
    assert done.exit_code == 0
    assert "copy/journal.db: is not there" in done.stderr
    assert "They part in week 2" in done.stdout
    Path("copy/run.db").write_bytes(b"no database" * 1000)
    assert "copy/run.db" in refused("diff", runs / "base", "copy")
    Path("copy/run.db").unlink()
    assert "nothing is written yet" in refused("diff", runs / "base", "copy")
    shutil.copy(runs / "event" / "journal.db", "copy")
    assert "copy/run.db: is missing; 'taskweave resume copy' rebuilds it" in refused("diff", runs / "base", "copy")
