"""The command line: what one types, what comes out where, and with which exit code."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from taskweave import interrupts
from taskweave.api import Run
from taskweave.cli import app, output
from taskweave.cli.progress import Pace, amount, describe, duration
from taskweave.engine.reader import JournalReader
from taskweave.errors import EngineFault
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool
from taskweave.runs import Inbox, RunFolder
from taskweave.shipped import built_in
from taskweave.simulation.year import Progress
from tests.loopback import Loopback

ROOT = Path(__file__).resolve().parent.parent
INCIDENT = "title: Strike\ncategory: internal\ndescription: Nobody works overtime.\nseverity: high\naffects: all\nduration: 2 weeks\n"
HEX = "0123456789abcdef"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
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


def type_in(*words: str | Path) -> Any:
    """What the command line of this process answers."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def refused(*words: str | Path) -> str:
    done = type_in(*words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    return " ".join(str(done.stderr).split())


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def shell(*words: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    """What a process of its own answers."""
    return subprocess.run([*command(), *map(str, words)], capture_output=True, env=environment(**more), timeout=120, check=False)


def command() -> list[str]:
    return [sys.executable, "-m", "taskweave"]


# ---------------------------------------------------------------- help
def parameters() -> Iterator[tuple[str, Any]]:
    for name, one in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for parameter in one.params:
            yield name, parameter


def test_every_option_of_every_command_is_documented_with_an_example() -> None:
    undocumented = [
        f"{name} {parameter.name}"
        for name, parameter in parameters()
        if "e.g. " not in (getattr(parameter, "help", None) or "") and parameter.name != "help"
    ]
    assert undocumented == []


def test_every_command_is_documented_with_an_example_and_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, one in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"taskweave {name}" in (one.help or ""), name
        assert f"taskweave {name}" in readme, f"README.md does not show 'taskweave {name}'"


def test_flags_of_later_work_are_not_offered() -> None:
    offered = {flag for _, parameter in parameters() for flag in parameter.opts}
    later = {"--without", "--budget-usd", "--budget-tokens", "--budget-hours", "--max-fallback", "--style", "--routing", "--rate", "--yes"}
    assert offered & later == set()
    assert type_in("run", "tiny", "--rate", "1/month").exit_code == 2


def test_help_of_every_command_can_be_shown_on_a_narrow_terminal_without_colour() -> None:
    for name in ["", *{name for name, _ in parameters()}]:
        done = shell(*filter(None, [name]), "--help", PYTHONIOENCODING="ascii", COLUMNS="40")
        assert done.returncode == 0, done.stderr
        assert b"Usage" in done.stdout


# ---------------------------------------------------------------- run
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


def test_an_organization_with_problems_is_refused_with_all_of_them(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: A\nroles:\n  Boss: {}\n  Clerk: {reports_to: Bos, cuont: 2}\n", encoding="utf-8")
    for words in (["validate", file], ["run", file]):
        said = refused(*words)
        assert "bad.yaml:4" in said
        assert "'Boss'" in said or "Boss" in said
        assert "count" in said
    assert not Path("runs").exists()


def test_validate_shows_warnings_beside_errors_and_counts_like_a_person(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("roles: {Wizard: {}}\n", encoding="utf-8")
    assert type_in("validate", file).stdout == "Odd is valid: 1 agent, 1 role, 1 tier, 0 departments.\n"
    file.write_text("roles: {Wizard: {cuont: 1}}\n", encoding="utf-8")
    said = refused("validate", file)
    assert "did you mean 'count'?" in said
    assert "warning:" in said
    assert "does not know 'Wizard'" in said
    assert json.loads(type_in("validate", file, "--json").stdout)["warnings"]


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


# ---------------------------------------------------------------- stop and resume
def test_a_run_goes_on_to_a_later_horizon_and_refuses_an_earlier_one() -> None:
    assert type_in("run", "tiny", "--until", "week:1", "--out", "part").exit_code == 0
    assert type_in("resume", "part", "--until", "week:3").exit_code == 0
    assert type_in("run", "tiny", "--until", "week:3", "--out", "whole").exit_code == 0
    assert type_in("digest", "part").stdout == type_in("digest", "whole").stdout
    assert "week:2" in refused("resume", "part", "--until", "week:2")
    assert RunFolder.open("part").config.until == "week:3"


def test_resume_accepts_what_changes_no_request_only() -> None:
    flags = {flag for name, parameter in parameters() if name == "resume" for flag in parameter.opts}
    assert flags == {"run", "--until", "--base-url", "--limit", "--patience", "--json"}


def start(*words: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command(), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(OPENAI_API_KEY="k")
    )


def wait_for(run: Path, calls: int) -> None:
    """Until the live run has so many answers."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (run / "journal.db").exists():
            with JournalReader(run / "journal.db") as journal:
                if journal.counts().outcomes.get("complete", 0) >= calls:
                    return
        time.sleep(0.05)
    raise AssertionError("the run did not come so far")


def model_run(url: str, out: str, until: str = "week:8") -> list[str]:
    return ["run", "tiny", "--until", until, "--out", out, "--backbone", "openai:any", "--base-url", url, "--limit", "2"]


def test_a_live_run_is_watched_paused_continued_injected_and_stopped_from_another_process(incident: Path) -> None:
    with Loopback(latency=0.05) as server:
        live = start(*model_run(server.url, "r"))
        try:
            wait_for(Path("r"), 4)
            status = json.loads(type_in("status", "r", "--json").stdout)
            assert status["state"] == "running"
            assert str(live.pid) in status["holder"]
            assert f"process {live.pid}" in refused("resume", "r")
            assert type_in("pause", "r").exit_code == 0
            time.sleep(0.6)
            stands = len(server.requests)
            time.sleep(0.6)
            assert len(server.requests) == stands
            assert json.loads(type_in("status", "r", "--json").stdout)["state"] == "paused"
            assert "strike" in type_in("inject", "r", incident).stdout
            assert type_in("continue", "r").exit_code == 0
            wait_for(Path("r"), stands + 2)
            assert type_in("stop", "r").exit_code == 0
            _, stderr = live.communicate(timeout=60)
        finally:
            live.kill()
        assert live.returncode == 130
        assert b"taskweave resume r" in stderr
        with JournalReader(Path("r/journal.db")) as journal:
            assert journal.counts().open == 0
        said = refused("pause", "r")
        assert "taskweave resume r" in said
        assert RunFolder.open("r").holder() is None


def test_ctrl_c_ends_with_130_and_names_resume() -> None:
    with Loopback(latency=0.05) as server:
        live = start(*model_run(server.url, "r"))
        try:
            wait_for(Path("r"), 3)
            live.send_signal(signal.SIGINT)
            stdout, stderr = live.communicate(timeout=60)
        finally:
            live.kill()
    assert live.returncode == 130
    assert b"taskweave resume r" in stderr
    assert b"Traceback" not in stderr


def hears(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has a handler for SIGTERM by now."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux which signals are heard")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.0, 0.1, 0.25, 0.45])
@pytest.mark.parametrize("times", [1, 2])
def test_a_signal_before_the_engine_runs_ends_with_130_and_names_the_run(finished: Path, number: int, after: float, times: int) -> None:
    shutil.copytree(finished, "r")
    resume = subprocess.Popen(
        [*command(), "resume", "r", "--until", "year"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    )
    while not hears(resume):
        time.sleep(0.002)
    time.sleep(after)
    for _ in range(times):
        resume.send_signal(number)
        time.sleep(0.002)
    _, said = resume.communicate(timeout=60)
    assert resume.returncode == 130
    assert b"ontinue with: taskweave resume r" in said
    assert b"Traceback" not in said


@pytest.mark.parametrize("error", ["RuntimeError('__set_name__')", "SystemError('in a callback')"])
def test_an_interrupt_that_comes_out_as_another_error_is_an_interrupt(error: str) -> None:
    code = (
        "import contextlib, os, signal, sys\nimport taskweave.cli\nfrom taskweave.__main__ import main\n"
        "def door():\n    with contextlib.suppress(KeyboardInterrupt):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        f"    raise {error}\ntaskweave.cli.main = door\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (130, b"taskweave: interrupted\n")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # the folder one stands in
@given(st.text(max_size=6))
def test_an_interrupt_quotes_a_folder_as_a_shell_wants_it(path: str) -> None:
    assert interrupts._quoted(path) == shlex.quote(path)


def test_an_interrupt_without_a_run_says_so() -> None:
    assert interrupts.message() == "interrupted"
    Path("runs/my run").mkdir(parents=True)
    assert interrupts.found(["my run"]) is None
    Path("runs/my run/config.json").touch()
    assert interrupts.found(["--until", "my run"]) == "runs/my run"
    interrupts.name(lambda: interrupts.found(["my run"]))
    assert interrupts.message() == "interrupted. Continue with: taskweave resume 'runs/my run'"
    interrupts.name(None)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to write to")
@pytest.mark.parametrize("words", [["digest", "R"], ["digest", "R", "--json"], ["status", "R"], ["--help"], ["schema"], ["show", "gov"]])
def test_output_that_finds_no_room_is_one_line_and_75(finished: Path, words: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command_line = [*command(), *(str(finished) if word == "R" else word for word in words)]
        done = subprocess.run(command_line, stdout=full, stderr=subprocess.PIPE, env=environment(), timeout=60, check=False)
    assert done.returncode == 75
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("taskweave: the output cannot be written: No space left")


def test_an_export_over_that_of_another_run_says_so(finished: Path) -> None:
    assert type_in("export", finished, "--out", "data").stderr == ""
    assert type_in("export", finished, "--out", "data").stderr == ""
    assert type_in("run", "tiny", "--until", "week:1", "--seed", "2", "--out", "other").exit_code == 0
    assert "data: held an export of another organization or seed; it was replaced" in type_in("export", "other", "--out", "data").stderr
    assert type_in("run", "tiny", "--until", "week:1", "--out", "short").exit_code == 0
    assert "of another organization or seed" in type_in("export", "short", "--out", "data").stderr
    assert "of another run, or of this one at another time" in type_in("export", finished, "--out", "data").stderr


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


def test_a_wrong_key_ends_with_75_and_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "wrong")
    with Loopback(faults=["key"] * 100) as server:
        done = type_in(*model_run(server.url, "r", "week:1"))
        assert done.exit_code == 75
        assert "API key" in done.stderr
        assert "taskweave resume r" in done.stderr
        assert json.loads(type_in("status", "r", "--json").stdout)["cause"]
        assert "wrong" not in Path("r/config.json").read_text(encoding="utf-8")
        server.faults.clear()
        assert type_in("resume", "r").exit_code == 0


def hand_drop(run: str, **files: Any) -> None:
    for name, payload in files.items():
        Path(run, "inbox", f"{name}.json").write_text(json.dumps(payload), encoding="utf-8")


def test_what_is_dropped_into_the_inbox_by_hand_happens_when_it_says(finished: Path) -> None:
    shutil.copytree(finished, "r")
    calendar = WorkCalendar(RunFolder.open("r").organization().calendar)
    hand_drop("r", now={"title": "Now"}, later={"title": "Later", "at": "week:5"}, raced={"title": "Raced", "tick": 3})
    assert type_in("resume", "r", "--until", "week:5").exit_code == 0
    happened = {row["id"]: row["tick"] for row in Run.open("r").incidents()}
    assert happened == {"now": calendar.tick_of("week:4"), "raced": calendar.tick_of("week:4"), "later": calendar.tick_of("week:5")}
    assert not list(Path("r/inbox").glob("*.why"))


def test_what_is_dropped_into_the_inbox_by_hand_for_no_day_of_the_year_to_come_is_set_aside(finished: Path) -> None:
    shutil.copytree(finished, "r")
    calendar = WorkCalendar(RunFolder.open("r").organization().calendar)
    beyond = {"title": "Beyond", "tick": 99999}
    hand_drop("r", past={"title": "Past", "at": "week:2"}, day={"title": "Day", "at": "2026-01-06"}, beyond=beyond)
    hand_drop("r", edge={"title": "Edge", "tick": len(calendar.days)}, never={"title": "Never", "at": "week:60"})
    assert type_in("resume", "r", "--until", "week:4").exit_code == 0
    said = {file.stem: file.read_text(encoding="utf-8") for file in Path("r/inbox").glob("*.why")}
    assert sorted(said) == ["beyond", "day", "edge", "never", "past"]
    for name in ("past", "day"):
        assert "which is past: the run stands at 2026-01-26. What has happened stays; to change the past, fork the run" in said[name]
    for name in ("beyond", "edge"):
        assert f"lies beyond the year, whose last working day is {len(calendar.days) - 1}" in said[name]
    assert "'week:60' does not lie in the year" in said["never"]
    assert len(json.loads(type_in("status", "r", "--json").stdout)["rejected"]) == 5
    assert not list(Run.open("r").incidents())


def test_an_incident_that_the_simulation_rejects_stands_in_the_status_as_rejected_with_the_reason(finished: Path, incident: Path) -> None:
    shutil.copytree(finished, "r")
    hand_drop("r", wrong={"title": "Wrong", "affects": ["Backend Enginer"]}, right={"title": "Right"})
    assert type_in("resume", "r", "--until", "week:4").exit_code == 0
    why = "wrong: no department, role or agent is called 'Backend Enginer'; did you mean 'Backend Engineer'?"
    now = json.loads(type_in("status", "r", "--json").stdout)
    assert (now["injections"], now["rejected"]) == (["right"], [why])
    table = type_in("status", "r").stdout
    assert "rejected " in table
    assert [row["subject"] for row in Run.open("r").events() if row["kind"] == "reject"] == ["wrong"]
    # Re-executed it is rejected once more, and said once; its name stays taken.
    assert type_in("resume", "r", "--until", "week:5").exit_code == 0
    assert json.loads(type_in("status", "r", "--json").stdout)["rejected"] == [why]
    incident.write_text("{title: Wrong, at: week:7}", encoding="utf-8")
    assert json.loads(type_in("inject", "r", incident, "--json").stdout)["injected"] == ["wrong-2"]


def test_a_run_is_not_begun_in_the_folder_of_another(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "lies within the run" in refused("run", "tiny", "--out", finished / "prompts" / "more")
    monkeypatch.chdir(finished)
    assert "lies within the run" in refused("run", "tiny")
    assert not list(finished.rglob("runs"))


def test_a_killed_run_says_so_loses_what_was_in_flight_and_resumes_to_the_same_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Loopback(latency=0.05) as server:
        live = start(*model_run(server.url, "r", "week:3"))
        try:
            wait_for(Path("r"), 6)
        finally:
            live.kill()
            live.communicate()
        now = json.loads(type_in("status", "r", "--json").stdout)
        assert (now["state"], now["holder"], now["next"]) == ("killed", None, "taskweave resume r")
        assert 0 < now["lost"] <= 2
        server.latency = 0.0
        said = type_in("resume", "r", "--limit", "8")
        assert said.exit_code == 0, said.stderr
        assert json.loads(type_in("status", "r", "--json").stdout)["state"] == "finished"
        answered = now["calls"]
        with JournalReader(Path("r/journal.db")) as journal:
            counts = journal.counts()
        # Each call was sent once, and once more only where the kill lost it.
        assert len(server.requests) <= counts.outcomes["complete"] + now["lost"]
        assert counts.outcomes["complete"] > answered
        assert type_in(*model_run(server.url, "whole", "week:3")).exit_code == 0
    assert type_in("digest", "r").stdout == type_in("digest", "whole").stdout


def test_a_week_that_comes_out_differently_ends_with_5_and_overwrites_nothing() -> None:
    assert type_in("run", "tiny", "--until", "week:2", "--out", "r").exit_code == 0
    with contextlib.closing(sqlite3.connect("r/journal.db")) as journal, journal:
        journal.execute("UPDATE weeks SET digest = 'other' WHERE week = 1")
    done = type_in("resume", "r")
    assert done.exit_code == 5
    assert "week 1" in done.stderr
    with JournalReader(Path("r/journal.db")) as reader:
        assert reader.weeks()[0].digest == "other"


def test_a_run_that_cannot_be_read_does_not_hide_the_others() -> None:
    for name in "ab":
        assert type_in("run", "tiny", "--until", "week:1", "--out", f"runs/{name}").exit_code == 0
    Path("runs/a/config.json").write_text("{}", encoding="utf-8")
    done = type_in("runs")
    assert done.exit_code == 0
    assert "unreadable" in done.stdout
    assert "finished" in done.stdout
    assert "runs/a/config.json" in done.stderr
    assert [row["state"] for row in json.loads(type_in("runs", "--json").stdout)["runs"]] == ["unreadable", "finished"]


# ---------------------------------------------------------------- incidents
def test_an_incident_is_refused_where_it_cannot_happen_naming_fork(finished: Path, incident: Path) -> None:
    assert "fork" in refused("inject", finished, incident)
    assert "fork" in refused("inject", finished, incident, "--at", "week:2")
    incident.write_text(INCIDENT.replace("affects: all", "affects: [Nobody]"), encoding="utf-8")
    assert "strike.yaml:5" in refused("inject", finished, incident, "--at", "week:5")
    assert list(RunFolder.open(finished).inbox.glob("*.json")) == []


def test_an_incident_may_wait_for_a_continuation(incident: Path) -> None:
    assert type_in("run", "tiny", "--until", "week:1", "--out", "r").exit_code == 0
    assert "taskweave resume r" in type_in("inject", "r", incident, "--at", "week:2").stdout
    assert type_in("resume", "r", "--until", "week:3").exit_code == 0
    assert [row["id"] for row in Pool.open(Path("r/run.db")).rows("incidents")] == ["strike"]
    assert "strike" in type_in("status", "r").stdout


def test_a_second_incident_of_a_title_is_taken_and_noticed(incident: Path) -> None:
    incident.write_text(INCIDENT + "at: week:2\n", encoding="utf-8")
    assert type_in("run", "tiny", "--until", "week:1", "--out", "r", "--incidents", incident).exit_code == 0
    other = Path("other.yaml")
    other.write_text(INCIDENT.replace("Strike", "Strike 2") + "at: week:2\n", encoding="utf-8")
    assert type_in("inject", "r", other).stderr == ""
    again = type_in("inject", "r", incident)
    assert again.exit_code == 0
    assert "a second incident of that title" in again.stderr
    assert "'Strike'" in again.stderr
    assert len(json.loads(type_in("inject", "r", incident, "--json").stdout)["warnings"]) == 1


def test_incidents_given_to_run_happen_at_their_time(incident: Path) -> None:
    incident.write_text(INCIDENT + "at: week:2\n", encoding="utf-8")
    assert type_in("run", "tiny", "--until", "week:2", "--out", "r", "--incidents", incident).exit_code == 0
    (row,) = Pool.open(Path("r/run.db")).rows("incidents")
    calendar = WorkCalendar(RunFolder.open("r").organization().calendar)
    assert (row["id"], row["tick"]) == ("strike", calendar.tick_of("week:2"))


# ---------------------------------------------------------------- reading
def test_call_shows_what_was_asked_and_answered(finished: Path) -> None:
    said = type_in("call", finished, JournalReader(finished / "journal.db").sites()[0]).stdout
    for part in ("--- system", "--- user", "--- answer", "--- parsed", "attempt", "max_tokens", "seed"):
        assert part in said
    assert "nearest" in refused("call", finished, "Y1@nobody:formulate")


def test_trace_takes_the_end_of_an_id_and_names_the_nearest_of_an_unknown_one(finished: Path) -> None:
    row = next(row for row in Pool.open(finished / "run.db").rows("results", subtask=None))
    assert row["title"] in type_in("trace", finished, row["id"]).stdout
    assert refused("trace", finished, row["id"] + "x")


def test_trace_is_short_unless_more_is_asked_for_and_says_what_it_cut(finished: Path) -> None:
    plan = next(row["id"] for row in Pool.open(finished / "run.db").rows("states", level="year"))
    short, narrow, deep = (
        type_in("trace", finished, plan, *words).stdout for words in ([], ["--breadth", "1"], ["--depth", "9", "--breadth", "99"])
    )
    assert len(narrow.splitlines()) < len(short.splitlines()) < len(deep.splitlines())
    assert "links are not shown: --depth" in short
    assert "not shown" not in deep
    assert type_in("trace", finished, plan, "--depth", "-1").exit_code == 2


def test_export_writes_one_file_a_table(finished: Path) -> None:
    done = type_in("export", finished, "--format", "jsonl", "--out", "data")
    assert done.exit_code == 0
    rows = [json.loads(line) for line in Path("data/agents.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 4


def test_what_is_read_of_a_run_that_is_not_finished_says_how_far_it_reaches(finished: Path) -> None:
    for words in (["digest", finished], ["export", finished, "--out", "whole"]):
        assert type_in(*words).stderr == ""
    whole = json.loads(type_in("digest", finished, "--json").stdout)
    assert (whole["week"], whole["weeks"], whole["finished"]) == (3, 3, True)

    shutil.copytree(finished, "r")
    RunFolder.open("r").with_config(until="week:5")
    for words in (["digest", "r"], ["export", "r", "--out", "part"]):
        assert "warning: r: the run is not finished (stopped): this is of weeks 1-3 of 5." in type_in(*words).stderr
    part = json.loads(type_in("digest", "r", "--json").stdout)
    assert (part["week"], part["weeks"], part["finished"]) == (3, 5, False)
    assert part["digest"] == whole["digest"] == type_in("digest", "r").stdout.strip()


def test_a_digest_is_given_also_where_the_horizon_cannot_be_told(finished: Path) -> None:
    shutil.copytree(finished, "r")
    Path("r/org.yaml").write_text("name: [", encoding="utf-8")
    done = type_in("digest", "r")
    assert done.stdout == type_in("digest", finished).stdout
    assert "whether the run has reached its horizon is not known: r/org.yaml:2:" in done.stderr


def test_what_reads_a_run_refuses_a_run_db_that_is_not_rebuilt_yet() -> None:
    assert type_in("run", "tiny", "--until", "week:2", "--out", "r").exit_code == 0
    with contextlib.closing(sqlite3.connect("r/run.db")) as db, db:
        db.execute("DELETE FROM weeks WHERE week = 2")
    for words in (["digest", "r"], ["export", "r", "--out", "data"], ["trace", "r", "t1"]):
        assert "holds weeks 1-1 of the 2 that are closed" in refused(*words)
    assert type_in("resume", "r").exit_code == 0
    assert type_in("digest", "r").exit_code == 0


def test_a_run_copied_without_its_journal_is_read_with_a_warning(finished: Path) -> None:
    shutil.copytree(finished, "copy")
    Path("copy/journal.db").unlink()
    whole = type_in("digest", finished).stdout
    merged = Run.open(finished).results()[0]["id"]
    for words in (["digest", "copy"], ["export", "copy", "--out", "data"], ["trace", "copy", merged]):
        done = type_in(*words)
        assert done.exit_code == 0
        assert "copy/journal.db: is not there" in done.stderr
    assert type_in("digest", "copy").stdout == whole
    assert json.loads(type_in("digest", "copy", "--json").stdout)["digest"] == whole.strip()
    assert "journal.db: there is no journal here" in refused("resume", "copy")


@pytest.mark.parametrize("content", [b"", b"nothing of a database" * 1000])
def test_what_reads_a_run_names_a_journal_that_cannot_be_read(finished: Path, content: bytes) -> None:
    shutil.copytree(finished, "copy")
    Path("copy/journal.db").write_bytes(content)
    for words in (["digest", "copy"], ["export", "copy", "--out", "data"], ["trace", "copy", "t1"], ["status", "copy"]):
        assert "copy/journal.db: this is not a TaskWeave journal" in refused(*words)
    assert not Path("data").exists()


def test_a_prompt_is_shown_as_it_is_sent(finished: Path) -> None:
    shown = json.loads(type_in("prompt", "tiny", "--step", "execute", "--json").stdout)
    sent = JournalReader(finished / "journal.db").calls(shown["site"])
    assert [(m["role"], m["text"]) for m in shown["messages"]] == list(sent[0].messages)
    Path("mine").mkdir()
    text = (ROOT / "prompts" / "execute.md").read_text(encoding="utf-8").rstrip() + "\nWrite like a poet.\n"
    Path("mine/execute.md").write_text(text, encoding="utf-8")
    assert "Write like a poet." in type_in("prompt", "tiny", "--step", "execute", "--prompts", "mine").stdout


@pytest.mark.parametrize("step", [path.stem for path in sorted((ROOT / "prompts").glob("*.md")) if path.stem.lower() != "readme"])
def test_every_step_of_company_a_has_a_prompt_to_show(step: str) -> None:
    assert "--- user" in type_in("prompt", "company_a", "--step", step).stdout


# ---------------------------------------------------------------- organizations
def test_new_makes_a_folder_that_runs() -> None:
    assert type_in("new", "acme corp").exit_code == 0
    assert type_in("validate", "acme corp/organization.yaml").stderr == ""
    words = ["--until", "week:1", "--prompts", "acme corp/prompts", "--incidents", "acme corp/incidents.yaml", "--out", "erster lauf ü"]
    assert type_in("run", "acme corp/organization.yaml", *words).exit_code == 0
    assert "not empty" in refused("new", "acme corp") or "lies there already" in refused("new", "acme corp")


def test_the_starter_speaks_of_every_prompt() -> None:
    readme = (ROOT / "orgs" / "starter" / "README.md").read_text(encoding="utf-8")
    assert [p.name for p in (ROOT / "prompts").glob("*.md") if p.stem.lower() != "readme" and f"`{p.name}`" not in readme] == []


@pytest.mark.parametrize("name", list(built_in()))
def test_every_built_in_organization_is_valid_and_can_be_shown(name: str) -> None:
    assert type_in("validate", name).stderr == ""
    for words in (["--format", "tree"], ["--format", "mermaid"], ["--format", "graphml"], ["--resolved"]):
        assert type_in("show", name, *words).exit_code == 0


def test_the_schema_is_one() -> None:
    assert json.loads(type_in("schema").stdout)["properties"]["roles"]


# ---------------------------------------------------------------- streams
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
    for pattern in ("runs", "./runs/", "runs/r"):
        assert [run["run"] for run in json.loads(type_in("runs", pattern, "--json").stdout)["runs"]] == ["r"]
    assert "There are no runs under ./" in type_in("runs", "./").stdout
    assert type_in("runs", "a**").exit_code in (0, 2)  # a later Python takes it for a*


# ---------------------------------------------------------------- progress
def progress(**more: Any) -> Progress:
    given: dict[str, Any] = {
        "date": "2026-03-02", "week": 9, "weeks": 52, "done": 41, "spilled": 2, "blocked": 1, "in_flight": 16, "calls": 812,
        "replayed": 0, "prompt_tokens": 1_200_000, "completion_tokens": 34_000, "cost": 1.5, "elapsed": 3.0,
    }  # fmt: skip
    return Progress(**(given | more))


def test_progress_says_date_tasks_calls_tokens_cost_and_time_left() -> None:
    said = describe(progress(), 75.0)
    for part in ("2026-03-02", "week 9/52", "41 tasks done", "812 calls", "16 in flight", "1.2M tokens", "$1.50", "1 min 15 s left"):
        assert part in said
    assert "from the journal" not in said
    assert "99 answers from the journal, 812 calls made now" in describe(progress(replayed=99), None)
    said.encode("ascii")
    still = describe(progress(), 75.0, paused=True)
    assert still.endswith("  paused")
    assert "left" not in still


def test_the_line_of_a_paused_run_says_so_until_it_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    from taskweave.cli import progress as module

    monkeypatch.setitem(module.EVERY, "plain", 0.0)
    place = tmp_path / "inbox"
    place.mkdir()
    inbox = Inbox(place)
    with module.Watch(inbox) as watch:
        for kind in ("pause", "continue"):
            inbox.control(kind)
            watch.see(progress())
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("paused")
    assert second.endswith("left")


def test_numbers_are_said_as_a_person_says_them() -> None:
    assert [amount(n) for n in (0, 999, 9_999, 12_345, 1_234_567)] == ["0", "999", "9,999", "12.3k", "1.2M"]
    assert [duration(s) for s in (None, 3.2, 75, 7260)] == ["-", "3 s", "1 min 15 s", "2 h 01 min"]


def test_time_left_follows_the_pace_of_the_last_half_minute() -> None:
    pace = Pace()
    assert pace.left(0.0, 0, 52) is None
    assert pace.left(1.0, 10, 52) == pytest.approx(4.2)
    for second in range(2, 60):
        left = pace.left(float(second), 10 + second / 10, 52)
    assert left == pytest.approx((52 - 15.9) * 10, rel=0.01)


def test_a_run_that_takes_long_says_how_far_it_is_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    from taskweave.cli import progress as module

    monkeypatch.setitem(module.EVERY, "plain", 0.0)
    done = type_in("run", "tiny", "--until", "week:2", "--out", "r")
    assert "week 2/2" in done.stderr
    assert "in flight" not in done.stdout


def test_a_terminal_gets_a_live_line() -> None:
    import pty

    primary, secondary = pty.openpty()
    try:
        live = subprocess.Popen(
            [*command(), "run", "tiny", "--until", "week:4", "--out", "r"],
            stdout=subprocess.PIPE,
            stderr=secondary,
            env=environment(TERM="xterm"),
        )
        os.close(secondary)
        seen = b""
        while True:
            try:
                data = os.read(primary, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        live.communicate(timeout=60)
    finally:
        os.close(primary)
    assert live.returncode == 0
    assert b"week" in seen
    assert b"\x1b[" in seen


def test_the_door_starts_each_command_without_json(finished: Path) -> None:
    type_in("status", finished, "--json")
    assert type_in("status", finished).stdout.strip()[0] != "{"
    assert not output.is_json_only()
