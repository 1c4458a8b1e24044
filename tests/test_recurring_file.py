"""Recurring work in the organization file: how it is read, what is refused with which line, how much work it is, and how it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from taskweave.errors import OrganizationInvalid
from taskweave.org import show
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.org.recurring import case_hours, cases_a_week, expected_hours, openings
from taskweave.org.schema import json_schema, parse

DESK = """
name: Desk
calendar: {start: 2026-01-05, hours: 8, holidays: [2026-01-06, 2026-02-02/2026-02-06]}
roles:
  Head: {leads: Desk}
  Agent: {reports_to: Head, count: 2, like: Technical Support Engineer}
  Engineer: {reports_to: Head, like: Backend Engineer}
work:
"""
TICKETS = "  tickets: {kind: stream, role: Agent, arrivals: 18/week, hours: 0.5-2, steps: [receive, answer, close]%s}\n"
RELEASES = "  releases: {kind: cycle, every: 2 weeks, owner: Engineer, hours: 6-10, steps: [plan, build, test, publish]%s}\n"
ESCALATE = ", escalate: {share: 15%, to: Engineer, step: analyse}"
REWORK = ", rework: {share: 0.2, from: test, to: build}"


def desk(*work: str) -> Organization:
    return parse(DESK + "".join(work), "desk.yaml")


def problems(*work: str) -> str:
    with pytest.raises(OrganizationInvalid) as refused:
        desk(*work)
    return str(refused.value)


def warnings(*work: str) -> str:
    found: list[str] = []
    parse(DESK + "".join(work), "desk.yaml", warn=found)
    return "\n".join(found)


def test_what_is_left_out_of_a_stream_and_a_cycle_is_filled_in() -> None:
    work = desk(TICKETS % ESCALATE, RELEASES % REWORK).work
    tickets, releases = work["tickets"], work["releases"]
    assert (tickets.role, tickets.arrivals, list(tickets.steps)) == ("Agent", 18, ["receive", "answer", "close"])
    assert set(tickets.steps.values()) == {(0.5, 2.0)}
    assert tickets.escalate is not None
    assert (tickets.escalate.share, tickets.escalate.after, tickets.escalate.hours) == (0.15, "receive", (0.5, 2.0))
    assert (releases.role, releases.every, releases.at) == ("Engineer", "2 weeks", "start")
    assert releases.rework is not None
    assert (releases.rework.source, releases.rework.target) == ("test", "build")


def test_a_step_may_have_hours_of_its_own_and_a_rate_may_be_a_day_s() -> None:
    line = "  tickets: {kind: stream, role: Agent, arrivals: 3/day, hours: 0.5-2, steps: {receive: 0.25, answer: , close: 0.25-0.5}}\n"
    tickets = desk(line).work["tickets"]
    assert tickets.steps == {"receive": (0.25, 0.25), "answer": (0.5, 2.0), "close": (0.25, 0.5)}
    assert tickets.arrivals == 15


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (TICKETS.replace("stream", "steam") % "", r"desk.yaml:9: work.tickets.kind: unknown word 'steam'; did you mean 'stream'?"),
        (TICKETS.replace("arrivals: 18/week, ", "") % "", "desk.yaml:9: work.tickets needs the key 'arrivals', since it is a stream"),
        (TICKETS % ", every: month", "work.tickets: 'every' is of a cycle, and this is a stream; a stream has 'role', 'arrivals'"),
        (TICKETS.replace("Agent", "Agnt") % "", "desk.yaml:9: unknown role 'Agnt' in work.tickets.role; did you mean 'Agent'?"),
        (TICKETS.replace("Agent", "Head") % "", "'Head' has no time for the steps of work.tickets; give the role 'executes'"),
        (TICKETS.replace("18/week", "18/minute") % "", "'18/minute' is not a number of arrivals such as '18/week' or '3/day'"),
        (TICKETS.replace("18/week", "0") % "", "'0' must be more than 0"),
        (TICKETS.replace("answer", "receive") % "", "the step 'receive' is written twice in work.tickets.steps"),
        (TICKETS.replace("[receive, answer, close]", "[]") % "", "work.tickets has no steps; name one at least"),
        (TICKETS.replace("0.5-2", "2-0.5") % "", "'2-0.5' is reversed; write '0.5-2'"),
        (TICKETS % ESCALATE.replace("analyse", "analyze"), "unknown step 'analyze' in work.tickets.escalate.step; did you mean 'analyse'?"),
        (TICKETS % ESCALATE.replace("Engineer", "Agent"), "work.tickets is escalated to 'Agent', who does it anyway; name another role"),
        (TICKETS % ESCALATE.replace("}", ", after: clsoe}"), "unknown step 'clsoe' in work.tickets.escalate.after; did you mean 'close'?"),
        (TICKETS % ESCALATE.replace("15%", "115%"), "'115%' must be at least 0% and at most 100%"),
        (RELEASES % REWORK.replace("0.2", "95%"), "work.releases.rework.share is 95%; it can be at most 90%"),
        (RELEASES % REWORK.replace("from: test", "from: tset"), "unknown step 'tset' in work.releases.rework.from; did you mean 'test'?"),
        (RELEASES % ", rework: {share: 0.2, from: build, to: test}", "the step 'test' comes after 'build'; rework goes back"),
        (RELEASES.replace("2 weeks", "2 moons") % "", "'2 moons' is not a period such as 'week', '2 weeks', 'month' or 'quarter'"),
        (RELEASES.replace("owner", "role") % "", "work.releases needs the key 'owner', since it is a cycle"),
        (TICKETS % "" + TICKETS.replace("tickets", "Tickets!") % "", "'Tickets!' and 'tickets' would both have the cases 'work/tickets'"),
        (TICKETS.replace("tickets", "'?'") % "", "the name '?' needs a letter or a digit"),
        (TICKETS % ", shift: night", "unknown key 'shift' in work.tickets"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_line_and_the_nearest_right_word(work: str, said: str) -> None:
    assert said in problems(work)


def test_all_problems_of_recurring_work_are_reported_at_once() -> None:
    text = problems(TICKETS.replace("Agent", "Agnt") % "", RELEASES % REWORK.replace("from: test", "from: tset"))
    assert "desk.yaml:9: " in text
    assert "desk.yaml:10: " in text


def test_a_step_that_nearly_is_one_of_the_vocabulary_is_pointed_out() -> None:
    assert "the step 'publish'" not in warnings(RELEASES % "")
    assert "the step 'implment' of work.releases is not in 'activities'; did you mean 'implement'?" in warnings(
        RELEASES.replace("build", "implment") % ""
    )


def test_more_recurring_work_than_a_role_has_hours_for_is_pointed_out() -> None:
    assert "recurring work asks 112.5 hours a week of 'Agent', which has 80.0" in warnings(TICKETS.replace("18", "30") % "")
    assert "recurring work" not in warnings(TICKETS % ESCALATE, RELEASES % REWORK)


def test_the_hours_of_a_case_are_those_of_its_steps_with_what_is_done_again_and_by_others() -> None:
    work = desk(TICKETS % ESCALATE, RELEASES % REWORK).work
    assert case_hours(work["tickets"]) == pytest.approx({"Agent": 3 * 1.25, "Engineer": 0.15 * 1.25})
    assert case_hours(work["tickets"], 1) == pytest.approx({"Agent": 2 * 1.25}), "it was decided after the first step"
    assert case_hours(work["releases"]) == pytest.approx({"Engineer": 4 * 8 + 0.25 * 16}), "0.2 / (1 - 0.2) rounds more of build and test"
    assert case_hours(work["releases"], 3) == pytest.approx({"Engineer": 8})
    assert (cases_a_week(work["tickets"]), cases_a_week(work["releases"])) == (18, 0.5)


def test_a_week_with_a_holiday_brings_fewer_cases_and_one_without_work_none() -> None:
    org = desk(TICKETS % "")
    calendar = WorkCalendar(org.calendar)
    first, second, empty = calendar.weeks[0], calendar.weeks[1], calendar.weeks[4]
    assert expected_hours(org, calendar, first) == pytest.approx({"Agent": 18 * 4 / 5 * 3.75})
    assert expected_hours(org, calendar, second) == pytest.approx({"Agent": 18 * 3.75})
    assert empty.day_count == 0
    assert expected_hours(org, calendar, empty) == {"Agent": 0}


@pytest.mark.parametrize(
    ("every", "first"),
    [
        ("2 weeks", [1, 3, 6, 7]),  # week 5 has no working day: the case of weeks 5 and 6 begins in week 6
        ("2 weeks, at: end", [2, 4, 6, 8]),
        ("month", [1, 6, 9, 13]),  # months of Thursdays: February is weeks 5 to 8
        ("month, at: end", [4, 8, 12, 17]),
        ("quarter", [1, 13, 26, 39]),
        ("3 months, at: end", [12, 25, 38, 52]),
    ],
)
def test_a_cycle_begins_in_the_first_or_last_week_of_its_period_that_has_a_working_day(every: str, first: list[int]) -> None:
    org = desk(RELEASES.replace("2 weeks", every) % "")
    calendar = WorkCalendar(org.calendar)
    found = sorted(calendar.weeks[index].number for index in openings(org.work["releases"], calendar))
    assert found[:4] == first


def test_the_resolved_file_reads_back_to_the_same_work() -> None:
    line = "  'month''s end': {kind: cycle, every: month, at: end, owner: Engineer, hours: 2.75, steps: {close: , report: 0.25-1.5}}\n"
    org = desk(TICKETS % ESCALATE, RELEASES % REWORK, line)
    written = show.resolved(org, Population.sample(org, 1))
    again = parse(written, "again.yaml")
    assert again.work == org.work
    assert "    arrivals: 18/week  # given" in written
    assert "      after: receive  # inferred" in written


def test_the_schema_for_editors_knows_recurring_work() -> None:
    work = json_schema()["properties"]["work"]["additionalProperties"]
    assert work["properties"]["kind"]["enum"] == ["stream", "cycle"]
    assert set(work["required"]) == {"kind", "hours", "steps"}


def test_the_shipped_startup_has_a_stream_and_a_cycle_that_its_people_can_bear() -> None:
    found: list[str] = []
    text = (Path(__file__).parent.parent / "orgs" / "startup.yaml").read_text(encoding="utf-8")
    org = parse(text, "startup.yaml", warn=found)
    assert sorted(work.kind for work in org.work.values()) == ["cycle", "stream"]
    assert not [line for line in found if "recurring" in line]
