"""`taskweave estimate`, costs as they are shown, and the question before a run that is paid for."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.door import command, environment, refused, type_in
from tests.loopback import Loopback

PAID = ["run", "tiny", "--until", "week:1", "--out", "r", "--backbone", "openai:gpt-4o-mini"]


def test_an_estimate_is_shown_by_step_level_and_role_with_what_it_rests_on() -> None:
    done = type_in("estimate", "tiny", "--until", "week:2")
    assert done.exit_code == 0
    for said in (
        "week:2",
        "formulate",
        "execution",
        "total",
        "bytes / 4",
        "list prices of",
        "no model was asked",
        "taskweave probe",
        "an estimate",
    ):
        assert said in " ".join(done.stdout.split()), said
    assert "rehearsing 2 weeks of Tiny" in done.stderr
    assert not list(Path().iterdir()), "nothing is left behind"


def test_the_json_of_an_estimate_holds_all_of_it() -> None:
    found = json.loads(type_in("estimate", "tiny", "--until", "week:1", "--backbone", "openai:any", "--json").stdout)
    (span,) = found["spans"]
    assert span["total"]["prompt"] == sum(row["prompt"] for row in span["levels"])
    assert (set(found["prices"].values()), span["total"]["cost"], span["hours"]) == ({None}, None, None)


def test_an_unknown_model_says_that_no_price_is_known_and_how_to_give_one() -> None:
    assert (
        "no price known of openai:any; give one with --prices FILE"
        in type_in("estimate", "tiny", "--until", "week:1", "--backbone", "openai:any").stdout
    )
    Path("mine.yaml").write_text("models: {any: {input: 1, output: 2}}", encoding="utf-8")
    done = type_in("estimate", "tiny", "--until", "week:1", "--backbone", "openai:any", "--prices", "mine.yaml")
    assert "your own prices without a date" in done.stdout
    assert "$" in done.stdout


def test_lengths_are_written_from_a_run_and_read_for_an_estimate(finished: Path) -> None:
    done = type_in("export", finished, "--format", "lengths", "--out", "lengths.yaml")
    assert done.exit_code == 0
    assert 'measured_on: "scripted, Tiny, seed 1, 3 weeks' in Path("lengths.yaml").read_text(encoding="utf-8")
    by_file, by_run = (
        type_in("estimate", "tiny", "--until", "week:2", "--lengths", given, "--json").stdout for given in ("lengths.yaml", finished)
    )
    file, run = (json.loads(text)["spans"][0]["total"] for text in (by_file, by_run))
    assert file["prompt"] == pytest.approx(run["prompt"], rel=0.01), "a file has its numbers rounded"
    assert type_in("export", finished, "--format", "lengths", "--out", "lengths.yaml").exit_code == 0, "an older one is replaced"


def test_lengths_are_not_written_over_anything_else(finished: Path) -> None:
    Path("mine.txt").write_text("my own", encoding="utf-8")
    assert "is left alone" in refused("export", finished, "--format", "lengths", "--out", "mine.txt")
    assert "is a folder" in refused("export", finished, "--format", "lengths", "--out", ".")
    assert Path("mine.txt").read_text(encoding="utf-8") == "my own"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--lengths", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["--prices", "nowhere.yaml"], "nowhere.yaml: there is no such file"),
        (["--backbone", "gpt"], "unknown backbone 'gpt'"),
        (["--until", "fortnight"], "week:8"),
    ],
)
def test_what_an_estimate_cannot_use_is_named(words: list[str], said: str) -> None:
    assert said in refused("estimate", "tiny", *words)


# ---------------------------------------------------------------- the question
def test_a_paid_run_is_not_begun_where_nobody_can_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    said = refused(*PAID)
    for part in ("Tiny with openai:gpt-4o-mini, 1 week: about", "completion tokens", "$", "Add --yes", "nothing was written"):
        assert part in said
    assert not list(Path().iterdir())


def test_a_run_on_an_unknown_model_says_tokens_and_that_no_price_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    said = refused(*PAID[:-1], "openai:unheard-of")
    assert "no price known of openai:unheard-of; give one with --prices FILE" in said
    assert "prompt and" in said


def test_what_cannot_be_used_is_said_before_anything_is_rehearsed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "OPENAI_API_KEY" in refused(*PAID)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    Path("r").mkdir()
    said = refused(*PAID)
    assert "Choose another --out" in said
    assert "rehearsing" not in said


def test_a_server_on_this_machine_is_asked_without_a_question_and_yes_answers_it() -> None:
    with Loopback() as server:
        for words in ([], ["--yes"]):
            done = type_in(*PAID[:4], *PAID[6:], "--base-url", server.url, *words)
            assert done.exit_code == 0
            assert "go on?" not in done.stderr


def answered(text: str) -> tuple[int, str]:
    """The exit code and what a person sees who runs it on a terminal and answers so."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([*command(), *PAID], stdin=theirs, stdout=theirs, stderr=theirs, env=environment(OPENAI_API_KEY="k"))
    os.close(theirs)
    seen = b""
    try:
        while b"go on? [y/N]" not in seen and (part := os.read(ours, 4096)):
            seen += part
        os.write(ours, text.encode())
        while part := os.read(ours, 4096):
            seen += part
    except OSError:  # the other side has ended
        pass
    finally:
        os.close(ours)
    return process.wait(60), " ".join(seen.decode().split())


def test_a_person_who_says_no_has_paid_nothing() -> None:
    code, seen = answered("\n")
    assert code == 130
    assert "not begun; nothing was written" in seen
    assert not list(Path().iterdir())


def test_a_replay_is_billed_to_nobody() -> None:
    with Loopback() as server:
        type_in("run", "tiny", "--until", "week:1", "--out", "r", "--backbone", "openai:any", "--base-url", server.url, "--no-look")
    done = type_in("run", "tiny", "--until", "week:1", "--out", "again", "--backbone", "replay:r")
    assert done.exit_code == 0
    assert "billed" not in done.output


# ---------------------------------------------------------------- costs
def test_what_a_run_cost_stands_in_its_closing_words_its_status_and_the_list_of_runs() -> None:
    with Loopback() as server:
        paid = ("--until", "week:1", "--out", "runs/r", "--backbone", "openai:gpt-4o-mini", "--base-url", server.url)
        done = type_in("run", "company_a", *paid)
        type_in("run", "tiny", "--until", "week:1", "--out", "runs/u", "--backbone", "openai:any", "--base-url", server.url)
    cost = json.loads(type_in("status", "r", "--json").stdout)["cost"]
    for shown in (done.stdout, type_in("status", "r").stdout, type_in("runs").stdout):
        assert f"${cost:.4f}" in shown
    assert "without the provider's cache" in type_in("status", "r").stdout
    assert "no price known" in type_in("status", "u").stdout
    assert "no price" in type_in("runs").stdout
    Path("mine.yaml").write_text("models: {any: {input: 1000, output: 1000}}", encoding="utf-8")
    assert type_in("resume", "u", "--prices", "mine.yaml").exit_code == 0
    assert json.loads(type_in("status", "u", "--json").stdout)["cost"] > 1


def test_the_probe_that_is_named_asks_where_the_run_would() -> None:
    words = ["estimate", "tiny", "--until", "week:1", "--backbone", "openai:llama3.2"]
    done = type_in(*words, "--base-url", "http://127.0.0.1:9/v1")
    assert "'taskweave probe --backbone openai:llama3.2 --base-url http://127.0.0.1:9/v1' finds out" in " ".join(done.stdout.split())
    assert "'taskweave probe --backbone openai:llama3.2' finds out" in " ".join(type_in(*words).stdout.split())


def test_with_routing_an_estimate_leaves_the_rest_to_what_a_run_leaves_it_to() -> None:
    Path("routing.yaml").write_text("routes: [{step: merge, backbone: 'openai:gpt-4o'}]", encoding="utf-8")
    done = type_in("estimate", "tiny", "--until", "week:1", "--routing", "routing.yaml")
    said = " ".join(done.stdout.split())
    assert done.exit_code == 0, done.output
    assert "what no route takes goes to scripted (--backbone), as in a run" in said
    assert "gpt-4o-mini" not in said
    assert "not known: of openai:gpt-4o" in said
    assert "no model is asked" in " ".join(type_in("estimate", "tiny", "--until", "week:1", "--backbone", "scripted").stdout.split())
