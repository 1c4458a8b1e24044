"""Commands that read what a run holds: trace, call, digest, export, prompt."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from taskweave.api import Run
from taskweave.engine.reader import JournalReader
from taskweave.pool.pool import Pool
from taskweave.runs import RunFolder
from tests.cli.door import ROOT, garble, refused, type_in


def test_an_export_over_that_of_another_run_says_so(finished: Path) -> None:
    assert type_in("export", finished, "--out", "data").stderr == ""
    assert type_in("export", finished, "--out", "data").stderr == ""
    assert type_in("run", "tiny", "--until", "week:1", "--seed", "2", "--out", "other").exit_code == 0
    assert "data: held an export of another organization or seed; it was replaced" in type_in("export", "other", "--out", "data").stderr
    assert type_in("run", "tiny", "--until", "week:1", "--out", "short").exit_code == 0
    assert "of another organization or seed" in type_in("export", "short", "--out", "data").stderr
    assert "of another run, or of this one at another time" in type_in("export", finished, "--out", "data").stderr


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


def test_a_run_db_that_was_deleted_is_missing_and_a_resume_rebuilds_it_without_asking(finished: Path) -> None:
    shutil.copytree(finished, "r")
    Path("r/run.db").unlink()
    for words in (["digest", "r"], ["export", "r", "--out", "data"], ["trace", "r", "t1"], ["diff", finished, "r"]):
        assert "r/run.db: is missing; 'taskweave resume r' rebuilds it without asking anything" in refused(*words)
    assert not Path("data").exists()
    assert type_in("resume", "r").exit_code == 0
    assert type_in("digest", "r").stdout == type_in("digest", finished).stdout


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
    for words in (["resume"], ["verify"], ["status"], ["call", "Y1"], ["fork", "--at", "week:2"]):
        said = refused(words[0], "copy", *words[1:])
        assert said.startswith("taskweave: copy/journal.db: there is no journal here. Put it back from a copy")


@pytest.mark.parametrize("content", [b"", b"nothing of a database" * 1000])
def test_what_reads_a_run_names_a_journal_that_cannot_be_read(finished: Path, content: bytes) -> None:
    shutil.copytree(finished, "copy")
    Path("copy/journal.db").write_bytes(content)
    for words in (["digest", "copy"], ["export", "copy", "--out", "data"], ["trace", "copy", "t1"], ["status", "copy"]):
        assert "copy/journal.db: this is not a TaskWeave journal" in refused(*words)
    assert not Path("data").exists()


def test_what_reads_a_run_names_a_journal_that_is_damaged_in_the_middle(finished: Path) -> None:
    shutil.copytree(finished, "copy")
    merged = Run.open(finished).results()[0]["id"]
    site = JournalReader(finished / "journal.db").sites()[0]
    commands = [["digest", "copy"], ["export", "copy", "--out", "data"], ["trace", "copy", merged], ["call", "copy", site]]
    commands += [["diff", finished, "copy"], ["resume", "copy"]]
    garble(Path("copy/journal.db"))
    for words in commands:
        said = refused(*words)
        assert said.startswith("taskweave: copy/journal.db: the journal is damaged")
        assert "restore it from a copy" in said
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
    text = (ROOT / "orgs" / "company_a.yaml").read_text(encoding="utf-8")
    Path("with_tools.yaml").write_text(f"{text}\ntools: on\n", encoding="utf-8")
    assert "--- user" in type_in("prompt", "with_tools.yaml", "--step", step).stdout
    if step == "execute_tool":
        assert "does not take this step" in refused("prompt", "company_a", "--step", step)


def test_a_trace_tells_a_case_of_recurring_work_or_all_of_one_against_the_file() -> None:
    assert type_in("run", "startup", "--until", "week:3", "--out", "startup").exit_code == 0
    assert "First come, first served" in type_in("trace", "startup", "tickets").stdout
    shown = type_in("trace", "startup", "work/tickets/W02/1").stdout
    assert "A case of tickets" in shown
    assert "worked" in shown
    assert json.loads(type_in("trace", "startup", "work/releases/W01/1", "--json").stdout)["role"] == "Mobile Engineer"
    assert "There is no case 'tickets/W02/999' in the weeks that are closed. Cases there: work/tickets/W02/1" in refused(
        "trace", "startup", "tickets/W02/999"
    )


def test_a_trace_of_an_incident_says_what_it_asks_for_and_where_the_work_of_who_left_went() -> None:
    effects = "[{departure: {role: Backend Engineer, count: 1}}, {capacity: {factor: 0.9}}]"
    Path("gone.yaml").write_text(f"{{title: One goes, at: 2026-01-08, severity: low, effects: {effects}}}", encoding="utf-8")
    assert type_in("run", "tiny", "--until", "week:2", "--incidents", "gone.yaml", "--out", "gone").exit_code == 0
    shown = " ".join(type_in("trace", "gone", "one-goes").stdout.split())
    assert "asks for 1 of Backend Engineer leave; 10 % fewer hours to plan with for whom it affects" in shown
    assert "nothing was assigned to it afterwards" in shown
    (left,) = json.loads(type_in("trace", "gone", "one-goes", "--json").stdout)["departures"]
    assert left["open"]
    for fate in left["open"]:
        assert f"{fate['subtask']}: {fate['kind']}" in shown
    (event,) = (event for event in Run.open("gone").events() if event["kind"] == "departure")
    assert left["agent"] == event["actor"]
