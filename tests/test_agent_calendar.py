"""An agent's working time."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import simpy
from hypothesis import given
from hypothesis import strategies as st

from taskweave.org.calendar import WorkCalendar
from taskweave.org.population import Population
from taskweave.org.schema import parse
from taskweave.simulation.agent_calendar import AgentCalendar

ORGANIZATION = parse(
    "name: Firm\ndomain: Consulting\ncalendar: {start: 2026-01-05, hours: 8, holidays: [2026-01-08]}\nroles:\n  Head: {}\n  Clerk: Head\n",
    "firm.yaml",
)
CALENDAR = WorkCalendar(ORGANIZATION.calendar)


def clerk(**changes: Any) -> AgentCalendar:
    return AgentCalendar(replace(Population.sample(ORGANIZATION, 1).agent("clerk"), **changes), simpy.Environment(), CALENDAR)


def test_a_part_time_agent_works_the_first_part_of_each_day() -> None:
    half = clerk(fte=0.5)
    assert half.finish(0, 240) == 240
    assert half.finish(0, 241) == 481
    assert half.next_minute(300) == 480
    assert half.minutes(0, 4) == 4 * 240


def test_days_away_offer_nothing_and_move_the_finish() -> None:
    away = clerk(away=((date(2026, 1, 6), date(2026, 1, 6)),))
    assert not away.present(1)
    assert away.finish(0, 481) == 2 * 480 + 1
    assert away.minutes(0, 4) == 3 * 480


def test_a_head_without_time_of_its_own_offers_nothing() -> None:
    assert clerk(executes=0.0).minutes(0, 4) == 0


def test_work_is_counted_in_the_week_in_which_it_was_done() -> None:
    worker = clerk()
    worker.begin("chairs", 3 * 480)  # the first week has four working days: Thursday is a holiday
    assert worker.spent(0, 0, 4 * 480) == 480
    assert worker.stop(5 * 480) == 960
    assert dict(worker.worked) == {0: 480, 1: 480}
    assert worker.stop(6 * 480) == 0


@given(st.integers(0, 4000), st.integers(1, 3000), st.sampled_from([0.2, 0.5, 0.8, 1.0]), st.sets(st.integers(0, 8), max_size=4))
def test_what_is_worked_until_the_finish_is_what_was_to_be_done(start: int, minutes: int, fte: float, away: set[int]) -> None:
    worker = clerk(fte=fte)
    worker.be_away(away)
    end = worker.finish(start, minutes)
    assert worker.work(start, end) == minutes
    assert worker.work(start, end - 1) == minutes - 1
