"""The numbers and dates of one deliverable: taken from the world once, so that whatever its sentences say agrees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from taskweave.backbones.scripted import fields, wording, world
from taskweave.backbones.scripted.findings import Finding
from taskweave.backbones.scripted.grammar import Draft


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and when a text is written: the place in the world that it speaks of, the task it belongs to, and its day."""

    place: str
    task: str
    today: date
    period: int

    @classmethod
    def of(cls, place: str, task: str, today: date) -> Setting:
        return cls(place, task, today, world.period(today))


def count(setting: Setting, case: fields.Case, flaw: str, before: int = 0) -> int:
    """How many items of a case have a flaw, in the text's period or one `before` it."""
    when = setting.period - before
    whole = world.total(setting.place, case, when)
    return max(2, round(whole * world.share(setting.place, flaw, when)))


def figures(
    draft: Draft,
    setting: Setting,
    case: fields.Case,
    problems: Sequence[fields.Problem],
    metrics: Sequence[fields.Metric] = (),
    found: Sequence[Finding | None] = (None, None),
    whole: int = 0,
) -> dict[str, str]:
    """Numbers and dates that agree with each other throughout one text, and with those of all texts on the same things.

    Of the two problems the first is the larger.  `found` is what earlier texts of the task have counted of them, out of the `whole`:
    that holds.  Of metrics, the first is `m` and the second `o`.
    """
    first, second = found
    counted = whole or (first and first.total) or (second and second.total)
    n = counted or world.total(setting.place, case, setting.period)
    k = first.count if first else min(max(3, count(setting, case, problems[0].flaw)), n - 2)
    k2 = second.count if second else count(setting, case, problems[1].flaw)
    k2 = min(k2, max(1, k - 1), n - k)  # the smaller group: what is said of severity goes by size
    n_then = world.total(setting.place, case, setting.period - 1)
    k_then, k2_then = (min(count(setting, case, problem.flaw, before=1), n_then - 2) for problem in problems[:2])
    slots = _counts(n, k, k2) | _history(n, k, k2, n_then, k_then, k2_then) | _samples(draft, n, k)
    for name, metric in zip(("m", "o"), metrics, strict=False):
        slots |= movement(setting, metric, name)
    slots.update(dates(setting.task, setting.today))
    slots.update(_odds(draft))
    return slots


def _counts(n: int, k: int, k2: int) -> dict[str, str]:
    below = max(2, k // 2) if k > 2 else 1
    return {
        "n": wording.number(n),
        "k": wording.number(k),
        "k2": wording.number(k2),
        "rest": wording.number(n - k),
        "pct": percent(k, n),
        "pct2": percent(k2, n),
        "half": wording.number(k // 2),
        "half_pct": percent(below, n),
        "below": wording.number(below),
        "gap": wording.number(k - below),
        "rest2": wording.number(n - k - k2),
        "rest2_pct": f"{100 - round(100 * k / n) - round(100 * k2 / n)} %",
        "both": wording.number(k + k2),
        "one_in": wording.in_words(round(n / k)),
        "customers": wording.number(max(1, round(0.7 * k))),
        "customers2": wording.number(max(1, round(0.6 * k2))),
    }


def percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)} %" if whole else "0 %"


def _history(n: int, k: int, k2: int, n_then: int, k_then: int, k2_then: int) -> dict[str, str]:
    """The period before, and by the shares, not the counts, whether it got better."""
    now, then = round(100 * k / n), round(100 * k_then / n_then)
    way = "grew" if now > then else "shrank" if now < then else "steady"
    return {
        "n_then": wording.number(n_then),
        "k_then": wording.number(k_then),
        "k2_then": wording.number(k2_then),
        "pct_then": f"{then} %",
        "n_mid": wording.number((n + n_then) // 2),
        "k_mid": wording.number((k + k_then) // 2),
        way: "yes",
        "trend": {"grew": "a larger share than then", "shrank": "a smaller share than then", "steady": "the same share as then"}[way],
    }


def _samples(draft: Draft, n: int, k: int) -> dict[str, str]:
    """What was tried out on a few items: by two people (`s1`, `s2`), and after a change (`sa`), which helped four times out of five."""
    roll = draft.random.random
    s1, s2 = (max(4, min(n // 3, 5 + int(roll() * 8))) for _ in range(2))
    f1, f2 = 2 + int(roll() * min(2, s1 - 3)), 2
    sa = max(4, min(n // 3, 11 + int(roll() * 14)))
    helped = roll() < 0.8
    fa = int(0.5 * sa * k / n) if helped else min(sa, -int(-1.1 * sa * k / n) + 1)
    return {
        "sample": str(max(2, min(n // 3, 5 + int(roll() * 20)))),
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


def _odds(draft: Draft) -> dict[str, str]:
    roll = draft.random.random
    return {
        "days": wording.in_words(3 + int(roll() * 7)),
        "step3": str(5 + int(roll() * 3)),
        "step4": str(8 + int(roll() * 3)),
        "effort": wording.in_words(2 + int(roll() * 5)),
        "ref": str(100 + int(roll() * 900)),
        "minutes": str(20 + 5 * int(roll() * 6)),
    }


@lru_cache(maxsize=4096)
def dates(task: str, today: date) -> Mapping[str, str]:
    """The days that a task's texts speak of: the same for all that are written in one week, and ahead of each where they should be."""
    monday = today - timedelta(days=today.weekday())
    since = due(world.begin(world.period(today)), -10 - int(8 * world.chance(task, "since")))
    soon = due(monday, 6 + int(4 * world.chance(task, "soon")))
    slots = {
        name: wording.day_month(day)
        for name, day in (
            ("since", since),
            ("today", today),
            ("mid", due(since, 1 + int(0.35 * (today - since).days))),
            ("day1", due(today, -2)),
            ("day2", due(today, -1)),
            ("soon", soon),
            ("later", due(monday, 11 + int(4 * world.chance(task, "later")))),
            ("check_day", due(monday, 17 + int(9 * world.chance(task, "check")))),
            ("six_weeks", due(monday, 30)),
        )
    }
    return slots | {
        "since_iso": since.isoformat(),
        "iso": today.isoformat(),
        "soon_day": f"{wording.weekday(soon)} {wording.day_month(soon)}",
        "weekday": wording.weekday(soon),
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


_CLOSED = ((12, 24), (12, 25), (12, 26), (12, 31), (1, 1))


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
