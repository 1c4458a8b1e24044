"""`--without PART` as it is typed, and where it is shown."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.cli.door import refused, shell, start, type_in, wait_for


def test_what_a_run_leaves_out_is_shown_wherever_the_run_is_and_inherited_by_resume() -> None:
    words = ["--until", "week:1", "--out", "runs/r", "--without", "retrieval", "--without", "align"]
    said = json.loads(type_in("run", "tiny", *words, "--json").stdout)
    assert said["status"]["without"] == said["closing"]["without"] == ["align", "retrieval"]
    type_in("run", "tiny", "--until", "week:1", "--out", "runs/whole")
    done = type_in("resume", "r", "--until", "week:2")
    assert done.exit_code == 0
    assert "Tiny, 2 weeks\nwithout align, retrieval\n" in done.stdout
    assert ["without", "align,", "retrieval"] in [line.split() for line in type_in("status", "r").stdout.splitlines()]
    assert [line for line in type_in("runs").stdout.splitlines() if "without" in line] == ["r: without align, retrieval"]
    listed = {one["run"]: one["without"] for one in json.loads(type_in("runs", "--json").stdout)["runs"]}
    assert listed == {"r": ["align", "retrieval"], "whole": []}
    assert not [line for line in type_in("status", "whole").stdout.splitlines() if line.startswith("without")]


@pytest.mark.parametrize("command", ["run", "estimate"])
@pytest.mark.parametrize(("typed", "nearest"), [("diagnos", "diagnose"), ("roll-up", "roll_up"), ("Retrieve", "retrieval")])
def test_a_part_that_there_is_not_is_refused_with_the_nearest(command: str, typed: str, nearest: str) -> None:
    said = refused(command, "tiny", "--until", "week:1", "--without", "align", "--without", typed)
    assert f"without {typed!r}: the loop has no such part. Did you mean {nearest!r}? What can be left out is diagnose, align," in said
    assert not list(Path().iterdir())


def test_an_estimate_says_what_it_leaves_out() -> None:
    found = json.loads(type_in("estimate", "tiny", "--until", "week:1", "--without", "diagnose", "--json").stdout)
    assert found["without"] == ["diagnose"]
    assert "diagnose" not in {row["name"] for row in found["spans"][0]["steps"]}
    assert "style full, without diagnose" in " ".join(
        type_in("estimate", "tiny", "--until", "week:1", "--without", "diagnose").stdout.split()
    )


def test_the_question_before_a_paid_run_is_about_the_run_without_the_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    words = ["run", "tiny", "--until", "week:1", "--backbone", "openai:gpt-4o-mini"]
    without = [word for part in ("diagnose", "align", "reconcile", "roll_up") for word in ("--without", part)]
    calls = [int(refused(*words, *more).split(": about ")[1].split(" calls")[0]) for more in ([], without)]
    assert calls[1] < calls[0]


@pytest.mark.fire
def test_killed_and_resumed_a_run_without_parts_ends_with_the_undisturbed_digest() -> None:
    words = ["company_a", "--until", "week:6", "--without", "diagnose", "--without", "retrieval"]
    assert shell("run", *words, "--out", "undisturbed").returncode == 0
    process = start("run", *words, "--out", "killed")
    wait_for(Path("killed"), 150)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert json.loads(type_in("status", "killed", "--json").stdout)["state"] == "killed"
    assert shell("resume", "killed").returncode == 0
    assert type_in("digest", "killed").stdout == type_in("digest", "undisturbed").stdout


def test_a_fork_and_a_verification_leave_out_what_the_run_does() -> None:
    type_in("run", "tiny", "--until", "week:3", "--out", "r", "--without", "align", "--without", "roll_up")
    assert type_in("fork", "r", "--at", "week:2", "--out", "same").exit_code == 0
    assert json.loads(type_in("status", "same", "--json").stdout)["without"] == ["align", "roll_up"]
    assert type_in("digest", "same").stdout == type_in("digest", "r").stdout
    assert type_in("verify", "r").exit_code == 0
