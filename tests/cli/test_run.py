"""`taskweave run`: what one types, what comes out where, and with which exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from taskweave.engine.reader import JournalReader
from taskweave.errors import EngineFault
from taskweave.pool.pool import Pool
from taskweave.runs import RunFolder
from tests.cli.door import HEX, ROOT, environment, refused, type_in


def test_a_run_ends_with_its_table_its_files_and_what_to_type_next(finished: Path) -> None:
    done = type_in("resume", finished)
    assert done.exit_code == 0
    assert "Traceback" not in done.stderr
    for said in (f"taskweave export {finished}", "taskweave trace", "run.db"):
        assert said in done.stdout
    assert "scripted" in done.stdout


def test_what_a_run_says_to_type_next_can_be_typed(finished: Path) -> None:
    lines = [line.split("taskweave ", 1)[1] for line in type_in("resume", finished).stdout.splitlines() if "taskweave " in line]
    assert len(lines) >= 2
    for line in lines:
        assert type_in(*line.split()).exit_code == 0, line


def test_json_is_one_object_on_stdout_and_nothing_else(finished: Path) -> None:
    result = next(row["id"] for row in Pool.open(finished / "run.db").rows("results"))
    site = JournalReader(finished / "journal.db").sites()[0]
    typed: list[Sequence[str]] = [
        ("resume", str(finished)),
        ("status", str(finished)),
        ("runs", str(finished)),
        ("digest", str(finished)),
        ("trace", str(finished), result),
        ("call", str(finished), site),
        ("export", str(finished), "--out", "data"),
        ("validate", "tiny"),
        ("show", "tiny"),
        ("show", "tiny", "--resolved"),
        ("prompt", "tiny", "--step", "formulate"),
        ("new", "acme"),
        ("run", "tiny", "--until", "week:1"),
    ]
    for words in typed:
        done = type_in(*words, "--json")
        assert done.exit_code == 0, (words, done.output)
        assert isinstance(json.loads(done.stdout), dict), words
    refusal = type_in("status", "nowhere", "--json")
    assert refusal.exit_code == 2
    assert json.loads(refusal.stdout)["exit"] == 2


def test_the_json_of_a_run_holds_its_digest_and_the_closing_table(finished: Path) -> None:
    said = json.loads(type_in("resume", finished, "--json").stdout)
    assert (said["run"], said["stop"], said["week"]) == (str(finished), None, 3)
    assert said["digest"] == type_in("digest", finished).stdout.strip()
    assert said["closing"]
    assert said["status"]["done"] > 0


def test_equal_runs_have_equal_digests_and_another_seed_another() -> None:
    for name, words in {"a": [], "b": ["--limit", "1"], "c": ["--seed", "2"]}.items():
        assert type_in("run", "tiny", "--until", "week:2", "--out", name, *words).exit_code == 0
    a, b, c = (type_in("digest", name).stdout.strip() for name in "abc")
    assert len(a) == 64
    assert set(a) <= set(HEX)
    assert a == b
    assert a != c


def test_the_default_folder_is_named_after_the_organization_and_the_seed() -> None:
    for _ in range(2):
        assert type_in("run", "tiny", "--until", "week:1", "--seed", "3").exit_code == 0
    names = [path.name for path in sorted(Path("runs").iterdir())]
    assert names == ["tiny-3", "tiny-3-2"]


def test_what_run_is_told_is_kept() -> None:
    Path("mine").mkdir()
    text = (ROOT / "prompts" / "merge.md").read_text(encoding="utf-8").rstrip() + "\nBe brief.\n"
    Path("mine/merge.md").write_text(text, encoding="utf-8")
    words = ["--seed", "5", "--assign", "model", "--limit", "2", "--patience", "9", "--tag", "study=pilot", "--tag", "who=me=you"]
    assert type_in("run", "tiny", "--until", "week:1", "--out", "r", "--prompts", "mine", *words).exit_code == 0
    config = RunFolder.open("r").config
    assert (config.seed, config.assign, config.limit, config.patience) == (5, "model", 2, 9.0)
    assert config.tags == {"study": "pilot", "who": "me=you"}
    assert Path("r/prompts/merge.md").read_text(encoding="utf-8") == text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "tinny"], "nearest: tiny"),
        (["run", "tiny", "--until", "fortnight"], "week:8"),
        (["run", "tiny", "--until", "2031-01-01"], "does not lie in the year"),
        (["run", "tiny", "--backbone", "gpt"], "scripted"),
        (["run", "tiny", "--prompts", "nowhere"], "taskweave new"),
        (["run", "tiny", "--tag", "pilot"], "K=V"),
        (["run", "tiny", "--incidents", "nowhere.yaml"], "nowhere.yaml"),
        (["run", "tiny", "--out", "."], "--out"),
        (["resume", "nowhere"], "taskweave run"),
        (["status", "nowhere"], "taskweave run"),
        (["prompt", "tiny", "--step", "exekute"], "'execute'"),
        (["validate", "nowhere.yaml"], "Built in are company_a"),
    ],
)
def test_bad_input_ends_with_2_says_what_to_do_and_writes_nothing(words: list[str], said: str) -> None:
    before = sorted(Path().rglob("*"))
    assert said in refused(*words)
    assert sorted(Path().rglob("*")) == before


@pytest.mark.parametrize(
    "words",
    [
        *(["run"], ["nonsense"], ["run", "tiny", "--nonsense"], ["run", "tiny", "--limit", "0"], ["run", "tiny", "--limit", "x"]),
        *(["run", "tiny", "--patience", seconds] for seconds in ("inf", "nan", "-1")),
        *(["resume", "r", "--patience", seconds] for seconds in ("inf", "nan", "-inf")),
    ],
)
def test_bad_usage_ends_with_2(words: list[str]) -> None:
    done = type_in(*words)
    assert done.exit_code == 2
    assert "Usage:" in done.stderr
    assert not list(Path().iterdir())


def test_a_choice_that_is_not_there_is_answered_with_those_that_are() -> None:
    said = " ".join(type_in("show", "tiny", "--format", "x").stderr.split())
    assert "'tree'" in said
    assert "Value error" not in said


def test_out_that_exists_is_refused_naming_resume(finished: Path) -> None:
    assert f"taskweave resume {finished}" in refused("run", "tiny", "--out", finished)


def test_a_bug_shows_its_traceback_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    from taskweave import driving

    def fault(*_: object, **__: object) -> None:
        raise EngineFault("a site was used twice")

    monkeypatch.setattr(driving, "drive", fault)
    with pytest.raises(EngineFault):
        type_in("run", "tiny")
    code = (
        "from taskweave import driving\nfrom taskweave.cli import main\n"
        "def bug(*_, **__): raise ZeroDivisionError('bug')\ndriving.drive = bug\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code, "run", "tiny"], capture_output=True, env=environment(), check=False)
    assert done.returncode == 1
    assert b"Traceback" in done.stderr
    assert b"ZeroDivisionError: bug" in done.stderr


def test_a_run_is_not_begun_in_the_folder_of_another(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lies within the run" in refused("run", "tiny", "--out", finished / "prompts" / "more")
    monkeypatch.chdir(finished)
    assert "lies within the run" in refused("run", "tiny")
    assert not list(finished.rglob("runs"))
