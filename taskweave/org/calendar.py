"""Which minutes, days, weeks, months and quarters has the organization's year?  Entry point: `WorkCalendar(spec)`.

Weeks are ISO weeks, the first cut at `start`; one whose Thursday has passed by then is left out.  Months are calendar months where
the year starts in the first week of one, else months counted from the start; a week belongs to the month of its Thursday.  Simulated
time is integer working minutes: minute m lies in working day m // day_minutes.  Refuses to know what anybody does in them.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property

from taskweave.errors import BadInput
from taskweave.org.organization import CalendarSpec

DAY_START = time(9, 0)
MONTHS = 12
WEEK = timedelta(days=7)


@dataclass(frozen=True, kw_only=True, slots=True)
class Week:
    """An ISO week of the run's year; `month` and `quarter` are ordinals from 1.

    `opens` is its first date: the Monday, or the start of the calendar in the first week.  Its working days are
    `days[first_day : first_day + day_count]`; a week of holidays has none.
    """

    index: int
    monday: date
    sunday: date
    opens: date
    month: int
    quarter: int
    first_day: int
    day_count: int

    @property
    def number(self) -> int:
        """The ordinal that stands in ids."""
        return self.index + 1


class WorkCalendar:
    """The working days and weeks of one year from `spec.start`."""

    def __init__(self, spec: CalendarSpec) -> None:
        self.spec = spec
        self.day_minutes = round(spec.hours * 60)
        self._anchor = _anchor(spec.start)
        days: list[date] = []
        weeks: list[Week] = []
        holidays = frozenset(spec.holidays)
        monday = spec.start - timedelta(days=spec.start.weekday())
        if monday + timedelta(days=3) < spec.start:  # its Thursday does not lie in the year
            monday += WEEK
        while (month := self._month(monday)) <= MONTHS:
            opens = max(monday, spec.start)
            dates = [monday + timedelta(days=n) for n in range(5)]
            working = [day for day in dates if day >= opens and day not in holidays]
            weeks.append(
                Week(
                    index=len(weeks),
                    monday=monday,
                    sunday=monday + timedelta(days=6),
                    opens=opens,
                    month=month,
                    quarter=(month + 2) // 3,
                    first_day=len(days),
                    day_count=len(working),
                )
            )
            days += working
            monday += WEEK
        self.days: tuple[date, ...] = tuple(days)
        self.weeks: tuple[Week, ...] = tuple(weeks)

    def _month(self, monday: date) -> int:
        """The ordinal of the month of a week's Thursday, or of `start` where the cut first week has lost its Thursday."""
        day = max(monday + timedelta(days=3), self.spec.start)
        months = (day.year - self._anchor.year) * 12 + day.month - self._anchor.month
        return months + (day >= _months_after(self._anchor, months))

    @property
    def year_end(self) -> date:
        """The last date of the last week."""
        return self.weeks[-1].sunday

    @cached_property
    def _week_ends(self) -> list[int]:
        return [week.first_day + week.day_count for week in self.weeks]

    # ------------------------------------------------------------ days and minutes
    def week_of_day(self, day: int) -> Week:
        """The week in which the working day of this index lies."""
        if not 0 <= day < len(self.days):
            raise IndexError(f"the year has the working days 0 to {len(self.days) - 1}, not {day!r}")
        return self.weeks[bisect_left(self._week_ends, day + 1)]

    def week_of_date(self, day: date) -> Week | None:
        """The week in which a date lies; None outside the year."""
        index = (day - self.weeks[0].monday).days // 7
        return self.weeks[index] if day >= self.weeks[0].opens and index < len(self.weeks) else None

    def day_of(self, day: date) -> int:
        """The index of the first working day on or after a date; len(days) if there is none."""
        return bisect_left(self.days, day)

    def moment(self, minute: int, *, end: bool = False) -> str:
        """A minute as simulated ISO time; `end` shows a boundary minute as the close of the day before it.

        The last day stands for what lies beyond.
        """
        day, rest = divmod(minute, self.day_minutes)
        if (end and rest == 0 and day > 0) or day >= len(self.days):
            day, rest = min(day, len(self.days)) - 1, self.day_minutes
        moment = datetime.combine(self.days[day], DAY_START) + timedelta(minutes=rest)
        return moment.isoformat(timespec="minutes")

    # ------------------------------------------------------------ what people write
    def boundary(self, until: str) -> int:
        """How many weeks lie before `week:8`, `month:3`, `quarter`, `quarter:2` or `year` ends; a date is rounded up to its week's end."""
        if until.strip() == "year":
            return len(self.weeks)
        found = self._weeks_of(until)
        if not found:
            raise BadInput(f"{until!r} does not lie in the year {self._reach()}")
        return found[-1].number

    def tick_of(self, text: str) -> int:
        """The index of the first working day of `week:14`, `month:3`, `quarter:2`, or on or after a date."""
        found = self._weeks_of(text)
        if not found:
            raise BadInput(f"{text!r} does not lie in the year {self._reach()}")
        day = self.day_of(date.fromisoformat(text.strip())) if text.strip()[:1].isdigit() else found[0].first_day
        if day >= len(self.days):
            raise BadInput(f"{text!r}: no working day is left in the year {self._reach()}")
        return day

    def _weeks_of(self, text: str) -> tuple[Week, ...]:
        """The weeks of a period that somebody wrote; empty where the year has none."""
        text = text.strip()
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            try:
                week = self.week_of_date(date.fromisoformat(text))
            except ValueError as impossible:
                raise BadInput(f"{text!r} is not a date: {impossible}") from None
            return (week,) if week else ()
        period = re.fullmatch(r"(week|month|quarter)(?::([0-9]{1,3}))?", text)
        if period is None:
            raise BadInput(f"{text!r} is not a point of the year; write 'week:8', 'month:3', 'quarter:2' or a date like '2026-03-31'")
        level, number = period[1], int(period[2] or 1)
        ordinals = {"week": lambda w: w.number, "month": lambda w: w.month, "quarter": lambda w: w.quarter}
        return tuple(week for week in self.weeks if ordinals[level](week) == number)

    def _reach(self) -> str:
        last = self.weeks[-1]
        return f"{self.spec.start} to {last.sunday} ({last.number} weeks, {last.month} months, {last.quarter} quarters)"


def _anchor(start: date) -> date:
    """Where month 1 begins.

    A year that starts in the first week of a calendar month has calendar months; from the middle of one it would have
    thirteen, the outer two cut, so there the months are counted from the day itself.
    """
    first = max(start, start - timedelta(days=start.weekday()) + timedelta(days=3))
    return first.replace(day=1) if start.day <= 7 or first.day <= 7 else first


def _months_after(anchor: date, months: int) -> date:
    year, month = divmod(anchor.year * 12 + anchor.month - 1 + months, 12)
    return date(year, month + 1, min(anchor.day, monthrange(year, month + 1)[1]))
