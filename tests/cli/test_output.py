"""What reaches stdout and stderr, whoever reads it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from taskweave.cli import output
from taskweave.pool.pool import Pool
from taskweave.runs import RunFolder
from tests.cli.door import command, environment, refused, shell, type_in


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
@pytest.mark.parametrize("words", [["digest", "R"], ["digest", "R", "--json"], ["status", "R"], ["--help"], ["schema"], ["show", "gov"]])
def test_output_that_finds_no_room_is_one_line_and_75(finished: Path, words: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command_line = [*command(), *(str(finished) if word == "R" else word for word in words)]
        done = subprocess.run(command_line, stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False)
    assert done.returncode == 75
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("taskweave: the output cannot be written: No space left")


def test_an_endless_value_is_cut_in_a_message_and_a_path_is_not() -> None:
    endless = "x" * 5000
    for words in (
        ["run", "tiny", "--until", endless],
        ["digest", endless],
        ["run", "tiny", f"--{endless}"],
        [endless],
        ["run", endless],
    ):
        done = type_in(*words)
        assert done.exit_code == 2
        assert "xxxx" in done.stderr
        assert "…" in done.stderr
        assert len(done.stderr) < 1500
    path = "/".join(["folder"] * 20)
    assert path in refused("digest", path)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_a_terminal_that_cannot_show_a_character_ends_no_command(finished: Path, encoding: str) -> None:
    row = next(row for row in Pool.open(finished / "run.db").rows("results", subtask=None))
    for words in (
        ["resume", finished],
        ["status", finished],
        ["trace", finished, row["id"]],
        ["show", "tiny"],
        ["show", "tiny", "--resolved"],
    ):
        done = shell(*words, PYTHONIOENCODING=encoding, LANG="C", LC_ALL="C")
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        assert b"Traceback" not in done.stderr


def test_a_document_is_utf8_in_a_pipe_whatever_the_terminal_is(tmp_path: Path) -> None:
    file = tmp_path / "ö.yaml"
    file.write_text("name: Käserei Zürich\nroles: {Käser: {}}\n", encoding="utf-8")
    done = shell("show", file, "--resolved", PYTHONIOENCODING="ascii")
    assert "Käserei Zürich" in done.stdout.decode()
    said = shell("show", file, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(said.stdout.decode("ascii"))["name"] == "Käserei Zürich"


def test_a_reader_that_goes_away_is_no_trouble(finished: Path) -> None:
    with subprocess.Popen(
        [*command(), "show", "gov", "--resolved"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as one:
        assert one.stdout is not None
        assert one.stderr is not None
        one.stdout.read(10)
        one.stdout.close()
        said = one.stderr.read()
        one.wait(60)
    assert b"Traceback" not in said
    assert b"BrokenPipe" not in said


def test_a_run_whose_stderr_is_closed_still_ends_well() -> None:
    words = " ".join([*command(), "run", "tiny", "--until", "week:1", "--out", "r"])
    done = subprocess.run(["sh", "-c", f"{words} 2>&-"], capture_output=True, env=environment(), check=False)
    assert done.returncode == 0
    assert RunFolder.open("r").path.is_dir()


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_the_json_object_holds_a_number_that_is_none_as_text(capsys: pytest.CaptureFixture[str], number: float) -> None:
    output.json_only(True)
    try:
        output.answer({"closing": {"kl": number, "of": (number, 1.5)}, "path": Path("r")})
    finally:
        output.json_only(False)

    def refused(name: str) -> None:
        pytest.fail(f"{name} is no JSON")

    said = json.loads(capsys.readouterr().out, parse_constant=refused)
    assert said == {"closing": {"kl": str(number), "of": [str(number), 1.5]}, "path": "r"}


def test_what_is_printed_to_be_typed_is_quoted() -> None:
    place = "erster lauf"
    assert f"Next: taskweave run '{place}/organization.yaml'" in type_in("new", place).stdout
    assert type_in("run", "tiny", "--until", "week:1", "--out", "ein lauf").exit_code == 0
    news = "- {title: News, category: economic, description: Something., severity: low, affects: all, duration: 1 weeks}"
    Path("news.yaml").write_text(news, encoding="utf-8")
    assert "taskweave resume 'ein lauf' --until year" in refused("inject", "ein lauf", "news.yaml")
    assert "taskweave resume 'ein lauf'\n" in type_in("inject", "ein lauf", "news.yaml", "--at", "week:3").stdout
    for kind in ("pause", "continue", "stop"):
        assert "'taskweave resume 'ein lauf''" in refused(kind, "ein lauf")
    assert "taskweave resume 'ein lauf'" in refused("run", "tiny", "--out", "ein lauf")
    with RunFolder.open("ein lauf").lock():
        for kind, then in (("pause", "continue"), ("continue", "status"), ("stop", "resume")):
            assert f"taskweave {then} 'ein lauf'" in type_in(kind, "ein lauf").stdout
        assert "taskweave stop 'ein lauf'" in refused("resume", "ein lauf")


def test_runs_takes_a_folder_and_refuses_what_is_no_pattern() -> None:
    assert type_in("run", "tiny", "--until", "week:1", "--out", "runs/r").exit_code == 0
    for pattern in ("runs", "./runs/", "runs/r", "r"):
        assert [run["run"] for run in json.loads(type_in("runs", pattern, "--json").stdout)["runs"]] == ["r"]
    assert "There are no runs under ./" in type_in("runs", "./").stdout
    assert type_in("runs", "a**").exit_code in (0, 2)  # a later Python takes it for a*


def test_the_door_starts_each_command_without_json(finished: Path) -> None:
    type_in("status", finished, "--json")
    assert type_in("status", finished).stdout.strip()[0] != "{"
    assert not output.is_json_only()
