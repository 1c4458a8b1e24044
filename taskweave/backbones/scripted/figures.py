"""The numbers and dates of one deliverable: taken from the world once, so that whatever its sentences say agrees."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from taskweave.backbones.scripted import fields, wording, world
from taskweave.backbones.scripted.findings import Finding

_CLOSED = ((12, 24), (12, 25), (12, 26), (12, 31), (1, 1))  # days on which nobody is at work anywhere


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and when a text is written: the place in the world that it speaks of, the task it belongs to, and its day."""

    place: str
    task: str
    today: date
    period: int
    decided: date  # by when the head decides

    @classmethod
    def of(cls, place: str, task: str, today: date, background: str = "") -> Setting:
        return cls(place, task, today, world.period(today), decision_day(today, background))


def count(setting: Setting, case: fields.Case, flaw: str, before: int = 0) -> int:
    """How many items of a case have a flaw, in the text's period or one `before` it."""
    when = setting.period - before
    whole = world.total(setting.place, case, when)
    return max(2, round(whole * world.share(setting.place, flaw, when)))


def figures(
    setting: Setting,
    case: fields.Case,
    problems: Sequence[fields.Problem | None],
    metrics: Sequence[fields.Metric] = (),
    found: Sequence[Finding | None] = (None, None),
    whole: int = 0,
) -> dict[str, str]:
    """Numbers and dates that agree with each other throughout one text, and with those of all texts on the same things.

    Of the two problems the first is the larger; where there is no second one, nothing is said of it.  `found` is what earlier texts of
    the task have counted of them, out of the `whole`: that holds.  Of metrics, the first is `m` and the second `o`.
    """
    problem, other = problems
    assert problem is not None
    first, second = found
    counted = whole or (first and first.total) or (second and second.total)
    n = counted or world.total(setting.place, case, setting.period)
    k = first.count if first else min(max(3, count(setting, case, problem.flaw)), n - 2)
    k2 = 0
    if other is not None:  # the smaller group: what is said of severity goes by size
        k2 = min(second.count if second else count(setting, case, other.flaw), max(1, k - 1), n - k)
    n_then = world.total(setting.place, case, setting.period - 1)
    k_then, k2_then = (min(count(setting, case, known.flaw, before=1), n_then - 2) if known else 0 for known in (problem, other))
    slots = _counts(n, k, k2, target(k, problem.flaw)) | _history(n, k, n_then, k_then)
    slots.update(_samples(setting.task, n, k))
    if k2:
        slots |= _second(n, k, k2, k2_then)
    for name, metric in zip(("m", "o"), metrics, strict=False):
        slots |= movement(setting, metric, name)
    slots.update(dates(setting.task, setting.today, setting.decided))
    slots.update(_odds(setting.task))
    return slots


def target(k: int, flaw: str) -> int:
    """How many of `k` may be left: between a quarter and two thirds, a round number where there are many."""
    aim = k * (0.25 + 0.4 * world.chance(flaw, k, "target"))
    step = 1 if k < 25 else 5 if k < 150 else 10
    return max(1, min(k - 1, step * round(aim / step)))


def _counts(n: int, k: int, k2: int, below: int) -> dict[str, str]:
    """The whole, the first group, what is neither in it nor in a second one, and the target."""
    return {
        "n": wording.number(n),
        "k": wording.number(k),
        "rest": wording.number(n - k - k2),
        "pct": percent(k, n),
        "below": wording.number(below),
        "below_pct": percent(below, n),
        "gap": wording.number(k - below),
        "one_in": wording.in_words(round(n / k)),
        "customers": wording.number(max(1, round(0.7 * k))),
    }


def _second(n: int, k: int, k2: int, k2_then: int) -> dict[str, str]:
    """What is said of a second group."""
    return {
        "k2": wording.number(k2),
        "pct2": percent(k2, n),
        "rest_pct": f"{100 - round(100 * k / n) - round(100 * k2 / n)} %",
        "both": wording.number(k + k2),
        "k2_then": wording.number(k2_then),
        "customers2": wording.number(max(1, round(0.6 * k2))),
    }


OF_SECOND = ("k2", "pct2", "rest_pct", "both", "k2_then", "customers2", "flaw2", "why2", "do2")


def forget_second(slots: dict[str, str]) -> None:
    """Leave the second group out of a text: all that is not in the first is the rest."""
    for name in OF_SECOND:
        slots.pop(name, None)
    n, k = (int(slots[name].replace(",", "")) for name in ("n", "k"))
    slots["rest"] = wording.number(n - k)


def percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)} %" if whole else "0 %"


def _history(n: int, k: int, n_then: int, k_then: int) -> dict[str, str]:
    """The period before, and by the shares, not the counts, whether it got better."""
    now, then = round(100 * k / n), round(100 * k_then / n_then)
    way = "grew" if now > then else "shrank" if now < then else "steady"
    return {
        "n_then": wording.number(n_then),
        "k_then": wording.number(k_then),
        "pct_then": f"{then} %",
        "n_mid": wording.number((n + n_then) // 2),
        "k_mid": wording.number((k + k_then) // 2),
        way: "yes",
        "trend": {"grew": "a larger share than then", "shrank": "a smaller share than then", "steady": "the same share as then"}[way],
    }


@lru_cache(maxsize=2048)
def _samples(task: str, n: int, k: int) -> Mapping[str, str]:
    """What was tried out on a few items: by two people (`s1`, `s2`), and after a change (`sa`), which helped four times out of five.

    All texts of a task speak of the same trial.
    """

    def roll(of: str) -> float:
        return world.chance(task, n, k, of)

    s1, s2 = (max(4, min(n // 3, 5 + int(roll(of) * 8))) for of in ("s1", "s2"))
    f1, f2 = 2 + int(roll("f1") * min(2, s1 - 3)), 2
    sa = max(4, min(n // 3, 11 + int(roll("sa") * 14)))
    helped = roll("helped") < 0.8
    fa = int(0.5 * sa * k / n) if helped else min(sa, -int(-1.1 * sa * k / n) + 1)
    sample = max(2, min(n // 3, 5 + int(roll("sample") * 20)))
    return {
        "sample": str(sample),
        "few_of_k": str(max(1, min(sample, k // 3))),
        "seen": str(min(k, s1)),
        "s1": str(s1),
        "s2": str(s2),
        "f1": str(f1),
        "f2": str(f2),
        "tried": str(s1 + s2),
        "pass": str(s1 + s2 - f1 - f2),
        "sa": str(sa),
        "fa": "none" if not fa else str(fa),
        "fa_pct": percent(fa, sa),
        "helped" if helped else "no_help": "yes",
    }


@lru_cache(maxsize=1024)
def _odds(task: str) -> Mapping[str, str]:
    """Hours, days and numbers that a task's texts agree on."""

    def roll(of: str) -> float:
        return world.chance(task, of)

    effort = 2 + int(roll("effort") * 5)
    return {
        "days": wording.in_words(3 + int(roll("days") * 7)),
        "step3": str(5 + int(roll("step3") * 3)),
        "step4": str(8 + int(roll("step4") * 3)),
        "effort": wording.in_words(effort),
        "effort_more": wording.in_words(effort + 2 + int(roll("more") * 4)),
        "ref": str(100 + int(roll("ref") * 900)),
        "minutes": str(20 + 5 * int(roll("minutes") * 6)),
    }


_NAMED_DAY = re.compile(r"\b(?:by|until|on|due) (?:the )?(\d{4}-\d\d-\d\d|\d{1,2} [A-Z][a-z]+)")


@lru_cache(maxsize=4096)
def decision_day(today: date, background: str) -> date:
    """By when a task's decision is asked for: on the day that its background names, else by the end of the week in which it is written.

    No task is due later than that.
    """
    for text in _NAMED_DAY.findall(background):
        day = wording.parse_date(text) or wording.parse_day_month(text, today)
        if day and 0 <= (day - today).days < 60:
            return day
    friday = today + timedelta(days=4 - today.weekday())
    while friday > today and (friday.month, friday.day) in _CLOSED:
        friday -= timedelta(days=1)
    return max(friday, today)


@lru_cache(maxsize=4096)
def dates(task: str, today: date, decided: date) -> Mapping[str, str]:
    """The days that a task's texts speak of, the same for all that are written in one week, and in this order:

    counted from, told or tried, today, decided, carried out, counted again.
    """
    monday = today - timedelta(days=today.weekday())
    after = max(monday, decided - timedelta(days=4))
    since = due(world.begin(world.period(today)), -10 - int(8 * world.chance(task, "since")))
    later = due(after, 6 + int(4 * world.chance(task, "later")))
    slots = {
        name: wording.day_month(day)
        for name, day in (
            ("since", since),
            ("today", today),
            ("counted", due(monday, -1)),
            ("mid", due(since, 1 + int(0.35 * (today - since).days))),
            ("day1", due(today, -2)),
            ("day2", due(today, -1)),
            ("soon", decided),
            ("later", later),
            ("check_day", due(later, 6 + int(9 * world.chance(task, "check")))),
            ("six_weeks", due(after, 30)),
        )
    }
    return slots | {
        "since_iso": since.isoformat(),
        "iso": today.isoformat(),
        "soon_iso": decided.isoformat(),
        "soon_day": f"{wording.weekday(decided)} {wording.day_month(decided)}",
        "weekday": wording.weekday(later),
        "weeks": wording.in_words(max(2, (today - since).days // 7)),
        "month": wording.month(today),
    }


@lru_cache(maxsize=4096)
def due(today: date, days: int) -> date:
    """The date some working days from today, or before it: never a day on which nobody is at work anywhere."""
    day = wording.working_day(today, days)
    while (day.month, day.day) in _CLOSED:
        day = wording.working_day(day, 1 if days > 0 else -1)
    return day


def movement(setting: Setting, metric: fields.Metric, name: str) -> dict[str, str]:
    """A metric now, before and as hoped for, with the verbs that fit."""
    places = _decimals(metric)
    now, then = (world.value(setting.place, metric, setting.period - before) for before in (0, 1))
    if round(now, places) == round(then, places):
        then = now + 2 * 10**-places
    rose = now > then
    better = rose == (metric.better == "higher")
    step = 0.08 + 0.1 * world.chance(setting.place, metric.name, "aim")
    hoped = now * (1 - step if metric.better == "lower" else 1 + step)
    if metric.unit == "%":
        then, hoped = (min(max(value, 0.1), 99.5) for value in (then, hoped))
    short = _unit(metric).partition("of ")[0].strip()  # what the figure now has already said: '29 % of firms', '5.1 of 7', '68 a month'
    short = "" if short.startswith(("a ", "per ")) else short
    return {
        name: metric.name,
        f"{name}_now": wording.measured(now, _unit(metric), places),
        f"{name}_then": wording.measured(then, short, places),
        f"{name}_aim": wording.measured(hoped, short, places),
        f"{name}_d1": wording.measured(then + 0.6 * (now - then), _unit(metric), places),
        f"{name}_d2": wording.measured(now, _unit(metric), places),
        f"{name}_moved": "rose" if rose else "fell",
        f"{name}_good": "better" if better else "worse",
        f"{name}_want": "lower" if metric.better == "lower" else "higher",
        f"{name}_push": "bring down" if metric.better == "lower" else "raise",
        ("m_improved" if better else "m_slipped") if name == "m" else "o_any": "yes",
    }


def _unit(metric: fields.Metric) -> str:
    """The unit as it is said after a figure; not where the metric's name has it already."""
    return "" if metric.unit and metric.unit in metric.name else metric.unit


_DIVISIBLE = ("seconds", "minutes", "hours", "days", "points")


def _decimals(metric: fields.Metric) -> int:
    if metric.unit.endswith("s") and metric.unit not in _DIVISIBLE:
        return 0
    if not metric.unit and metric.low >= 4:
        return 0
    return 0 if metric.high >= 40 else 1 if metric.high >= 3 else 2
