"""Incidents that are given to a run, before it or while it goes on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from taskweave.api import Run
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool
from taskweave.runs import RunFolder
from tests.cli.door import INCIDENT, refused, type_in


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


def test_the_library_is_listed_filtered_and_given_to_a_run_at_a_rate(tmp_path: Path) -> None:
    listed = type_in("incidents", "patch", "--category", "technology", "--severity", "high")
    assert "zero-day-cascade  (technology, high, 3 weeks; workload, capacity)" in listed.stdout
    assert "Basis: The hole in Log4j" in listed.stdout
    found = json.loads(type_in("incidents", "--json").stdout)["incidents"]
    assert len(found) > 90
    assert {"name", "title", "category", "severity", "description", "basis", "effects"} <= found[0].keys()
    assert "None of the" in type_in("incidents", "nothing of the kind").stdout
    told = ("--incidents", "library:policy", "--incidents", "library:internal", "--rate", "1/week", "--until", "week:3")
    assert type_in("run", "tiny", "--out", "r", *told).exit_code == 0
    titles = {one["title"] for one in found if one["category"] in ("policy", "internal")}
    happened = [row["title"] for row in Run.open("r").incidents()]
    assert len(set(happened)) == 3
    assert set(happened) <= titles


def test_validate_checks_incidents_against_the_organization_and_tells_all_problems(tmp_path: Path) -> None:
    Path("a.yaml").write_text("title: A\naffects: [Nobody]\neffects:\n  - hire: {role: Backend Engineer}\n")
    Path("b.yaml").write_text("title: B\neffects:\n  - departure: {role: Product Manager}\n  - deadline: {goal: any, earlier: soon}\n")
    result = type_in("validate", "tiny", "--incidents", "a.yaml", "--incidents", "b.yaml")
    assert result.exit_code == 2
    for told in (
        "a.yaml:2: no department, role or agent is called 'Nobody'",
        "a.yaml:4: a hire says when",
        "b.yaml:3: Product Manager cannot",
    ):
        assert told in result.stderr
    assert "b.yaml:4: 'soon' is not a span" in result.stderr
    fine = type_in("validate", "tiny", "--incidents", "library:all")
    assert "93 incidents" in fine.stdout


def test_an_unknown_incident_or_rate_is_refused_before_anything_is_written() -> None:
    assert "nearest: zero-day-cascade" in refused("run", "tiny", "--out", "r", "--incidents", "library:zero-day")
    assert "1/month" in refused("run", "tiny", "--out", "r", "--incidents", "library:all", "--rate", "now and then")
    assert "no trigger" in refused("run", "tiny", "--out", "r", "--rate", "1/month")
    assert not Path("r").exists()
