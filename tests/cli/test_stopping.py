"""Runs that end early: stopped, interrupted, killed, out of reach; and how `resume` goes on."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskweave import interrupts
from taskweave.engine.reader import JournalReader
from taskweave.runs import RunFolder
from tests.cli.door import command, environment, hears, model_run, parameters, refused, start, type_in, wait_for
from tests.loopback import Loopback


@pytest.mark.parametrize("word", ["--budget-hours", "--budget-usd", "--patience", "--budget-tokens"])
def test_a_setting_beyond_all_sense_is_refused_with_the_bound(word: str) -> None:
    said = refused("run", "tiny", "--until", "week:1", "--out", "r", word, "1" + "0" * 308)
    assert "1,000,000" in said
    assert not Path("r").exists()


def test_a_run_goes_on_to_a_later_horizon_and_refuses_an_earlier_one() -> None:
    assert type_in("run", "tiny", "--until", "week:1", "--out", "part").exit_code == 0
    assert type_in("resume", "part", "--until", "week:3").exit_code == 0
    assert type_in("run", "tiny", "--until", "week:3", "--out", "whole").exit_code == 0
    assert type_in("digest", "part").stdout == type_in("digest", "whole").stdout
    assert "week:2" in refused("resume", "part", "--until", "week:2")
    assert RunFolder.open("part").config.until == "week:3"


def test_resume_accepts_what_changes_no_request_only() -> None:
    flags = {flag for name, parameter in parameters() if name == "resume" for flag in parameter.opts}
    budgets = {"--budget-usd", "--budget-tokens", "--budget-hours"}
    assert flags == {"run", "--until", "--base-url", "--limit", "--patience", "--max-fallback", *budgets, "--prices", "--json"}


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


@pytest.mark.parametrize("error", ["RuntimeError('__set_name__')", "ImportError('half of a module')", "SystemError('in a callback')"])
def test_an_interrupt_that_comes_out_of_a_command_as_another_error_names_its_run(finished: Path, error: str) -> None:
    shutil.copytree(finished, "r")
    code = (
        "import contextlib, os, signal, sys\nimport taskweave.driving\nfrom taskweave.__main__ import main\n"
        "def resume(folder, **_):\n    with contextlib.suppress(KeyboardInterrupt):\n        os.kill(os.getpid(), signal.SIGINT)\n"
        f"    raise {error}\ntaskweave.driving.resume = resume\nsys.argv = ['taskweave', 'resume', 'r', '--until', 'year']\nmain()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), check=False)
    assert (done.returncode, done.stderr) == (130, b"taskweave: interrupted. Continue with: taskweave resume r\n")


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
