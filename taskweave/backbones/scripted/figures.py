"""The numbers and dates of one deliverable: drawn once, so that whatever its sentences say agrees."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from random import Random

from taskweave.backbones.scripted import topics, wording
from taskweave.backbones.scripted.grammar import Draft


@lru_cache(maxsize=4096)
def share(task: str, flaw: str) -> float:
    """How many of a task's items have a flaw, of 1: all who work on the task count the same."""
    return 0.05 + 0.27 * Random(f"{task}:{flaw}").random()


def figures(
    draft: Draft,
    case: topics.Case,
    problems: Sequence[topics.Problem],
    metrics: Sequence[topics.Metric],
    today: date,
    task: str,
) -> dict[str, str]:
    """Numbers and dates that agree with each other throughout one text, and the counts with those of the task's other texts.

    Of the two problems the first is the larger by its `share`; of metrics, the first is `m` and the second `o`.
    """
    roll = draft.random.random
    n = int(case.many[0] + Random(f"{task}:{case.items}").random() * (case.many[1] - case.many[0]))
    k = max(3, round(n * share(task, problems[0].flaw)))
    k2 = min(max(2, round(n * share(task, problems[1].flaw))), k - 1)  # the smaller group: what is said of severity goes by size
    k_then, n_then = max(1, round(k * (0.2 + 0.4 * roll()))), round(n * (0.82 + 0.15 * roll()))
    k_mid = max(k_then, round(k * (0.65 + 0.2 * roll())))
    s1, s2 = (max(4, min(n // 3, 5 + int(roll() * 8))) for _ in range(2))
    f1, f2 = 2 + int(roll() * min(2, s1 - 3)), 2
    below = max(2, k // 2)
    slots = {
        "n": wording.number(n),
        "k": wording.number(k),
        "k2": wording.number(k2),
        "rest": wording.number(n - k),
        "pct": f"{round(100 * k / n)} %",
        "pct2": f"{round(100 * k2 / n)} %",
        "sample": str(max(2, min(n // 3, 5 + int(roll() * 20)))),
        "half": wording.number(k // 2),
        "below": wording.number(below),
        "gap": wording.number(k - below),
        "rest2": wording.number(n - k - k2),
        "rest2_pct": f"{100 - round(100 * k / n) - round(100 * k2 / n)} %",
        "both": wording.number(k + k2),
        "k_then": wording.number(k_then),
        "n_then": wording.number(n_then),
        "k_mid": wording.number(k_mid),
        "n_mid": wording.number((n + n_then) // 2),
        "k2_then": wording.number(max(1, round(k2 * (0.5 + 0.4 * roll())))),
        "seen": str(min(k, s1)),
        "s1": str(s1),
        "s2": str(s2),
        "f1": str(f1),
        "f2": str(f2),
        "f0": "none" if f1 == 2 else "one",
        "tried": str(s1 + s2),
        "pass": str(s1 + s2 - f1 - f2),
        "half_pct": f"{max(1, round(50 * k / n))} %",
        "one_in": wording.in_words(round(n / k)),
    }
    for name, metric in zip(("m", "o"), metrics, strict=False):
        slots |= movement(draft, metric, name)
    weeks = 2 + int(roll() * 7)
    start = due(today, -5 * weeks)
    soon, later, check = 2 + int(roll() * 4), 6 + int(roll() * 6), 13 + int(roll() * 12)
    for name, day in (
        ("since", start),
        ("today", today),
        ("mid", due(today, -5 * (weeks // 2) - 1)),
        ("day1", due(today, -2)),
        ("day2", due(today, -1)),
        ("soon", due(today, soon)),
        ("later", due(today, later)),
        ("check_day", due(today, check)),
    ):
        slots[name] = wording.day_month(day)
    slots |= {
        "since_iso": start.isoformat(),
        "soon_day": wording.weekday(due(today, soon)),
        "weeks": wording.in_words(weeks),
        "iso": today.isoformat(),
        "days": wording.in_words(3 + int(roll() * 7)),
        "step3": str(5 + int(roll() * 3)),
        "step4": str(8 + int(roll() * 3)),
        "effort": wording.in_words(2 + int(roll() * 5)),
        "month": wording.month(today),
        "ref": str(100 + int(roll() * 900)),
        "owners": wording.in_words(2 + int(roll() * 3)),
        "minutes": str(20 + 5 * int(roll() * 6)),
    }
    return slots


def due(today: date, days: int) -> date:
    """The date some working days from today, or before it: never a day on which nobody is at work anywhere."""
    day = wording.working_day(today, days)
    while (day.month, day.day) in _CLOSED:
        day = wording.working_day(day, 1 if days > 0 else -1)
    return day


_CLOSED = ((12, 24), (12, 25), (12, 26), (12, 31), (1, 1))


def movement(draft: Draft, metric: topics.Metric, name: str) -> dict[str, str]:
    """A metric now, before and as hoped for, with the verbs that fit."""
    span = metric.high - metric.low
    now = metric.low + span * (0.15 + 0.7 * draft.random.random())
    shift = max(now * (0.05 + 0.2 * draft.random.random()), 10 ** -_decimals(metric))
    better = draft.random.random() < 0.5
    rose = better == (metric.better == "higher")
    places = _decimals(metric)
    then = now - shift if rose else now + shift
    hoped = now * (0.9 - 0.1 * draft.random.random()) if metric.better == "lower" else now * (1.08 + 0.1 * draft.random.random())
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
        f"{name}_bad": "higher" if metric.better == "lower" else "lower",
        f"{name}_want": "lower" if metric.better == "lower" else "higher",
        f"{name}_push": "bring down" if metric.better == "lower" else "raise",
        ("m_improved" if better else "m_slipped") if name == "m" else "o_any": "yes",
    }


def _unit(metric: topics.Metric) -> str:
    """The unit as it is said after a figure; not where the metric's name has it already."""
    return "" if metric.unit and metric.unit in metric.name else metric.unit


_DIVISIBLE = ("seconds", "minutes", "hours", "days", "points")


def _decimals(metric: topics.Metric) -> int:
    if metric.unit.endswith("s") and metric.unit not in _DIVISIBLE:
        return 0
    if not metric.unit and metric.low >= 4:
        return 0
    return 0 if metric.high >= 40 else 1 if metric.high >= 3 else 2
