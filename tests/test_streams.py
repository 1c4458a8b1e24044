"""Whether recurring work goes as the file says, told from the exported tables alone; and one case, told with its steps."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from taskweave.api import Run
from taskweave.errors import BadInput
from taskweave.org.schema import Organization, load, parse
from taskweave.report.case_trace import CaseTrace, as_json, render
from taskweave.report.streams import Check, Stream, streams
from tests.simulated import simulated

DESK = """
name: Desk
calendar: {start: 2026-01-05, hours: 8, holidays: [2026-05-01, 2026-12-24/2026-12-31]}
goals: {calm: {text: Nobody waits for a day, owner: Head}}
roles:
  Head: {leads: Desk}
  Agent: {reports_to: Head, count: 2, hours: 6-10, demand: 0.3, like: Technical Support Engineer}
  Engineer: {reports_to: Head, hours: 6-10, demand: 0.3, like: Backend Engineer}
workload: {composite_hours: 40}
work:
  tickets: {kind: stream, role: Agent, arrivals: 18/week, hours: 0.5-1, steps: [receive, answer, close],
    escalate: {share: 15%, to: Engineer, step: analyse, hours: 0.5-2}}
  releases: {kind: cycle, every: 2 weeks, owner: Engineer, hours: 2-4, steps: [plan, build, test, publish],
    rework: {share: 40%, from: test, to: build}}
"""
ILL = {"title": "All are ill", "at": "week:10", "severity": "low", "effects": [{"absence": {"role": "Agent", "for": "1 week"}}]}


@pytest.fixture(scope="module")
def year(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("desk") / "run", DESK, until="year", incidents=[ILL])


@pytest.fixture(scope="module")
def exported(year: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """The exported files of it, and nothing else."""
    place = tmp_path_factory.mktemp("exported")
    year.export(place)
    names = ("events", "agents", "load")
    return {name: [json.loads(line) for line in (place / f"{name}.jsonl").read_text("utf-8").splitlines()] for name in names}


def read(tables: dict[str, list[dict[str, Any]]], org: Organization | None = None) -> dict[str, Stream]:
    found = streams(org or parse(DESK, "desk.yaml"), tables["events"], tables["agents"], tables["load"], 52)
    return {stream.name: stream for stream in found}


def checks(stream: Stream) -> dict[str, Check]:
    return {check.what: check for check in stream.checks}


# ------------------------------------------------------------ a work against the file
def test_arrivals_steps_and_shares_of_a_year_agree_with_the_file_within_sampling_error(exported: dict[str, Any]) -> None:
    found = read(exported)
    tickets, releases = checks(found["tickets"]), checks(found["releases"])
    assert list(tickets) == [
        "arrivals in five working days", "dispersion of weekly arrivals", "hours of receive", "hours of answer", "hours of close",
        "hours of analyse (Engineer)", "escalated to Engineer",
    ]  # fmt: skip
    assert list(releases) == [
        "cases begun",
        *(f"hours of {step}" for step in ("plan", "build", "test", "publish")),
        "test goes back to build",
    ]
    everything = [*tickets.values(), *releases.values()]
    assert sum(check.agrees is False for check in everything) <= 1  # one in twenty may lie outside by chance
    assert not any(check.beyond for check in everything)
    assert tickets["arrivals in five working days"].number == found["tickets"].arrived > 800
    assert releases["cases begun"].found == releases["cases begun"].said == 26


@pytest.mark.parametrize(
    ("said", "other", "work", "what"),
    [
        ("18/week", "21/week", "tickets", "arrivals in five working days"),
        ("hours: 0.5-1,", "hours: 0.5-1.2,", "tickets", "hours of answer"),
        ("hours: 0.5-1,", "hours: 0.6-0.9,", "tickets", "hours of close"),
        ("share: 15%", "share: 25%", "tickets", "escalated to Engineer"),
        ("share: 40%", "share: 80%", "releases", "test goes back to build"),
        ("every: 2 weeks", "every: month", "releases", "cases begun"),
    ],
)
def test_what_does_not_go_as_a_file_says_is_found_out(exported: dict[str, Any], said: str, other: str, work: str, what: str) -> None:
    assert said in DESK
    assert checks(read(exported, parse(DESK.replace(said, other), "desk.yaml"))[work])[what].agrees is False
    assert checks(read(exported)[work])[what].agrees is True


def test_arrivals_that_come_one_by_one_are_not_by_chance(exported: dict[str, Any]) -> None:
    stamps = [event for event in exported["events"] if event["kind"] == "arrive" and event["object"] == "tickets"]
    for number, stamp in enumerate(stamps):
        week, place = divmod(number, 18)
        stamp = {**stamp, "time": f"2026-{1 + week // 4:02}-{5 + 7 * (week % 4):02}T{9 + place % 8:02}:00"}
        stamps[number] = stamp
    even = [stamp for stamp in stamps if stamp["time"] < "2026-12"]
    check = checks(read({**exported, "events": even})["tickets"])["dispersion of weekly arrivals"]
    assert check.found is not None
    assert check.agrees is False


def test_the_oldest_case_comes_first_and_who_is_passed_over_is_counted(exported: dict[str, Any]) -> None:
    found = read(exported)
    assert all(stream.overtaken == 0 and stream.started > 100 for stream in found.values())
    starts = [place for place, event in enumerate(exported["events"]) if event["kind"] == "start" and "/tickets/W11/" in event["subject"]]
    events = list(exported["events"])
    late = next(place for place in starts if events[place]["subject"].endswith("/s1"))
    events.append(events.pop(late))  # that case waits to the end of the year, and all younger ones are begun before it
    assert read({**exported, "events": events})["tickets"].overtaken > 100


def test_a_queue_builds_while_all_are_away_and_drains_after(exported: dict[str, Any]) -> None:
    weeks = {week.week: week for week in read(exported)["tickets"].weeks}
    assert (weeks[9].offered, weeks[10].offered, weeks[11].offered) == (80, 0, 80)
    assert weeks[10].completed == 0
    assert weeks[10].open == weeks[9].open + weeks[10].arrived >= 10
    assert weeks[11].completed > weeks[11].arrived
    assert weeks[12].open <= 8
    assert (weeks[10].waited or 0) > 5 * (weeks[8].waited or 0)
    assert weeks[52].open == sum(week.arrived - week.completed for week in weeks.values())


def test_waiting_is_from_the_arrival_to_the_start_and_its_interval_that_of_weeks(exported: dict[str, Any]) -> None:
    first, inside, through = read(exported)["tickets"].waits
    assert first.number >= through.number == inside.number
    assert first.interval is not None
    assert first.mean is not None
    assert first.interval.low < first.mean < first.interval.high
    assert first.median is not None
    assert first.ninth is not None
    assert first.most is not None
    assert first.median < first.ninth < first.most
    assert inside.mean is not None
    assert through.mean is not None
    worked = sum(checks(read(exported)["tickets"])[f"hours of {step}"].found or 0 for step in ("receive", "answer", "close"))
    assert through.mean == pytest.approx(inside.mean + worked + 0.15 * 1.25, abs=0.1)


def test_the_shipped_start_up_goes_as_its_file_says(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "startup", until="quarter")
    found = streams(load(run.path / "org.yaml"), list(run.events()), list(run.agents()), list(run.load()), 12)
    assert [stream.name for stream in found] == ["tickets", "releases"]
    assert sum(check.agrees is False for stream in found for check in stream.checks) <= 1


# ------------------------------------------------------------ one case
def case_of(run: Run, wanted: Any) -> CaseTrace:
    for event in run.events():
        if event["kind"] == wanted:
            found = run.recurring(event["case"])
            assert isinstance(found, CaseTrace)
            return found
    raise AssertionError(wanted)


def test_a_case_tells_its_steps_who_did_them_and_waiting_apart_from_working(year: Run) -> None:
    found = case_of(year, "escalate")
    case = found.case
    assert found.escalated_to == "Engineer"
    assert case.variant == ("receive", "analyse", "answer", "close")
    assert [step.aside for step in case.steps.values()] == [False, True, False, False]
    assert case.completed is not None
    assert case.waited is not None
    assert case.completed - case.arrived == case.worked + case.waited
    assert 0 < found.alike < found.of
    back = case_of(year, "rework")
    assert back.case.reworked == sum(step.sent_back for step in back.case.steps.values()) >= 1


def test_a_case_and_a_work_are_shown_and_are_json(year: Run) -> None:
    for name, says in (("work/tickets/W14/3", "A case of tickets"), ("tickets", "Recurring work tickets"), ("work/releases", "First come")):
        found = year.recurring(name)
        assert found is not None
        console = Console(width=100, record=True, file=StringIO())
        console.print(render(found))
        assert says in console.export_text()
        assert json.loads(json.dumps(as_json(found)))["traced"] == ("case" if "W14" in name else "work")
    found = year.recurring("tickets/W14/3/s2")
    assert isinstance(found, CaseTrace)
    assert found.case.id == "work/tickets/W14/3"
    assert as_json(found)["times"]["arrived"].startswith("2026-04-0")


def test_an_open_case_says_that_it_is_open(year: Run) -> None:
    found = year.recurring("work/tickets/W14/3")
    assert isinstance(found, CaseTrace)
    first = next(iter(found.case.steps.values()))
    found = replace(
        found, case=replace(found.case, completed=None, steps={first.id: replace(first, started=None, finished=None, worked=0)})
    )
    console = Console(width=100, record=True, file=StringIO())
    console.print(render(found))
    assert "open when the last week closed" in console.export_text()


def test_what_is_no_case_is_left_to_others_and_a_case_that_is_not_there_is_refused(year: Run) -> None:
    assert year.recurring("W02@head/t1") is None
    assert year.recurring("work/nothing") is None
    with pytest.raises(BadInput, match=r"There is no case 'work/tickets/W14/999'.*work/tickets/W14/1"):
        year.recurring("work/tickets/W14/999")
