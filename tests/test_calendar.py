from __future__ import annotations

from collections import Counter
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweave.errors import BadInput
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import CalendarSpec

STARTS = st.dates(date(1999, 1, 1), date(2060, 12, 31))


def calendar(start: str, hours: float = 8, holidays: tuple[str, ...] = ()) -> WorkCalendar:
    return WorkCalendar(CalendarSpec(start=date.fromisoformat(start), hours=hours, holidays=tuple(map(date.fromisoformat, holidays))))


# ------------------------------------------------------------ properties of any year
@given(STARTS, st.lists(st.integers(0, 370), max_size=20))
def test_every_working_day_lies_in_exactly_one_week_and_weeks_follow_without_a_gap(start: date, off: list[int]) -> None:
    holidays = tuple(start + timedelta(days=n) for n in off)
    year = WorkCalendar(CalendarSpec(start=start, hours=8, holidays=holidays))
    thursday = start - timedelta(days=start.weekday()) + timedelta(days=3)
    first = start if thursday >= start else thursday + timedelta(days=4)
    assert year.weeks[0].opens == first
    assert year.weeks[0].monday <= first <= year.weeks[0].sunday
    start = first
    for before, after in zip(year.weeks, year.weeks[1:], strict=False):
        assert after.monday == before.sunday + timedelta(days=1)
        assert after.first_day == before.first_day + before.day_count
        assert after.index == before.index + 1 == before.number
    assert year.weeks[-1].first_day + year.weeks[-1].day_count == len(year.days)
    for index, day in enumerate(year.days):
        week = year.week_of_day(index)
        assert week.first_day <= index < week.first_day + week.day_count
        assert week.opens <= day <= week.sunday
        assert day.weekday() < 5
        assert day not in holidays
    workdays = {start + timedelta(days=n) for n in range((year.year_end - start).days + 1)}
    assert set(year.days) == {day for day in workdays if day.weekday() < 5} - set(holidays)
    assert list(year.days) == sorted(year.days)


@given(STARTS)
def test_a_year_has_12_months_of_3_to_5_weeks_in_4_quarters(start: date) -> None:
    year = WorkCalendar(CalendarSpec(start=start, hours=8))
    months = [week.month for week in year.weeks]
    assert months == sorted(months)
    assert set(months) == set(range(1, 13))
    assert set(Counter(months).values()) <= {3, 4, 5}
    assert all(week.quarter == -(-week.month // 3) for week in year.weeks)
    assert len(year.weeks) in (51, 52, 53)


@given(STARTS)
def test_two_weeks_share_a_month_where_their_thursdays_do_if_the_year_starts_with_one(start: date) -> None:
    year = WorkCalendar(CalendarSpec(start=start.replace(day=min(start.day, 7)), hours=8))
    thursdays = [(week.month, max(week.monday + timedelta(days=3), week.opens)) for week in year.weeks]
    assert len({(month, day.year, day.month) for month, day in thursdays}) == 12


@given(STARTS, st.integers(0, 600_000))
def test_a_boundary_minute_is_the_morning_of_a_day_or_the_close_of_the_one_before(start: date, minute: int) -> None:
    year = WorkCalendar(CalendarSpec(start=start, hours=7.5))
    assert year.day_minutes == 450
    minute %= 450 * len(year.days)
    assert year.moment(minute)[:10] == year.days[minute // 450].isoformat()
    boundary = minute - minute % 450
    assert year.moment(boundary).endswith("T09:00")
    if boundary:
        assert year.moment(boundary, end=True) == f"{year.days[boundary // 450 - 1]}T16:30"


# ------------------------------------------------------------ particular years
def test_the_usual_year_has_52_weeks_and_calendar_months() -> None:
    year = calendar("2026-01-05")
    assert len(year.weeks) == 52
    assert year.weeks[12].monday == date(2026, 3, 30)
    assert (year.weeks[12].month, year.weeks[12].quarter) == (4, 2), "the week of Thursday 2 April is April's"
    assert year.year_end == date(2027, 1, 3)


@pytest.mark.parametrize("start", ["2026-01-01", "2025-12-29", "2015-01-01", "2020-01-01"])
def test_a_year_may_have_53_weeks(start: str) -> None:
    year = calendar(start)
    assert len(year.weeks) == 53
    assert len(year.days) > 260


def test_a_start_in_mid_week_cuts_the_first_week() -> None:
    year = calendar("2026-03-18")
    first = year.weeks[0]
    assert (first.monday, first.opens, first.first_day, first.day_count) == (date(2026, 3, 16), date(2026, 3, 18), 0, 3)
    assert year.days[0] == date(2026, 3, 18)
    assert year.year_end >= date(2027, 3, 15)


@pytest.mark.parametrize("start", ["2026-05-01", "2026-05-02", "2026-01-31", "2026-05-03"])
def test_a_start_after_thursday_begins_with_the_next_week(start: str) -> None:
    year = calendar(start)
    assert (year.weeks[0].day_count, year.weeks[0].month, year.weeks[1].first_day) == (5, 1, 5)
    assert year.weeks[0].opens > date.fromisoformat(start)
    assert year.week_of_date(date.fromisoformat(start)) is None


@given(st.integers(30, 840))
def test_a_day_has_all_minutes_of_its_hours(minutes: int) -> None:
    assert calendar("2026-01-05", hours=minutes / 60).day_minutes == minutes
    assert calendar("2026-01-05", hours=8.2).day_minutes == 492  # 8.2 * 60 is a little less


def test_a_week_of_holidays_has_no_working_day_and_is_never_that_of_a_day() -> None:
    year = calendar("2026-01-05", holidays=("2026-01-12", "2026-01-13", "2026-01-14", "2026-01-15", "2026-01-16"))
    assert [week.day_count for week in year.weeks[:3]] == [5, 0, 5]
    assert year.weeks[1].first_day == year.weeks[2].first_day == 5
    assert year.week_of_day(5).number == 3
    assert year.day_of(date(2026, 1, 13)) == 5
    assert year.tick_of("week:2") == 5, "an incident in a week without working days is heard on the next one"


def test_minutes_become_moments_of_working_days() -> None:
    year = calendar("2026-01-05", holidays=("2026-01-06",))
    assert year.moment(0) == "2026-01-05T09:00"
    assert year.moment(480) == "2026-01-07T09:00"
    assert year.moment(480, end=True) == "2026-01-05T17:00"
    assert year.moment(495) == "2026-01-07T09:15"
    past = 480 * len(year.days)
    assert year.moment(past) == year.moment(past, end=True) == year.moment(past + 999) == f"{year.days[-1]}T17:00"


def test_a_day_index_outside_the_year_is_refused() -> None:
    year = calendar("2026-01-05")
    for index in (-1, len(year.days)):
        with pytest.raises(IndexError, match="working days 0 to 259"):
            year.week_of_day(index)


# ------------------------------------------------------------ what people write
@pytest.mark.parametrize(
    ("until", "weeks"),
    [("week:8", 8), ("week", 1), ("month", 4), ("month:3", 12), ("quarter", 12), ("quarter:2", 25), ("year", 52), (" year ", 52)]
    + [("2026-03-31", 13), ("2026-01-05", 1), ("2026-01-11", 1), ("2026-01-12", 2), ("2027-01-03", 52)],
)
def test_until_is_a_number_of_weeks(until: str, weeks: int) -> None:
    assert calendar("2026-01-05").boundary(until) == weeks


@pytest.mark.parametrize(
    ("text", "why"),
    [("week:53", "does not lie in the year 2026-01-05 to 2027-01-03 (52 weeks"), ("week:0", "does not lie"), ("quarter:5", "4 quarters")]
    + [("2026-01-04", "does not lie"), ("2027-01-04", "does not lie"), ("2026-02-30", "is not a date"), ("", "is not a point of the year")]
    + [("week:-1", "is not a point"), ("Week 8", "write 'week:8'"), ("fortnight:1", "is not a point"), ("week:²", "is not a point")],
)
def test_a_point_outside_the_year_or_no_point_at_all_is_refused_with_what_to_write(text: str, why: str) -> None:
    for question in (calendar("2026-01-05").boundary, calendar("2026-01-05").tick_of):
        with pytest.raises(BadInput) as refused:
            question(text)
        assert why in str(refused.value)
        assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    ("text", "day"), [("week:1", 0), ("week:14", 65), ("quarter:2", 60), ("month:2", 20), ("2026-01-05", 0), ("2026-01-10", 5)]
)
def test_a_tick_is_the_first_working_day_of_what_was_written(text: str, day: int) -> None:
    assert calendar("2026-01-05").tick_of(text) == day


def test_a_tick_needs_a_working_day_that_is_left() -> None:
    year = calendar("2026-01-05")
    assert year.day_of(date(2027, 1, 2)) == len(year.days)
    with pytest.raises(BadInput, match="no working day is left"):
        year.tick_of("2027-01-02")
    with pytest.raises(BadInput, match="is not a point of the year"):
        calendar("2026-01-05").tick_of("year")
