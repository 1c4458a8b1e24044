"""What work comes again and again?  The file's `work`: streams such as tickets, cycles such as releases and the month's end.

Entry points: `WORK` (how it is read), `check`, `resolve`, `written` (as it stands in a file), `case_hours`, `expected_hours`, `openings`.
Pure rules over what the file says: refuses to draw a number and to know what is going on.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence

from taskweave.org import form
from taskweave.org.calendar import Week, WorkCalendar
from taskweave.org.form import Field, Kind, Reading, Where, nearest, said
from taskweave.org.organization import ACTIVITIES, Escalation, Organization, RecurringWork, Rework, slug
from taskweave.org.yamlfile import Mapping as MappingNode
from taskweave.org.yamlfile import Node, Scalar
from taskweave.records import Json

Raw = Mapping[str, Json]
WORKING_DAYS = 5  # of a week without holidays: what a rate a week refers to
MOST_REWORK = 0.9  # of a step's ends: a case goes round ten times on average
NEAR = 0.8  # how alike a step's name must be to one of the vocabulary to be taken for a slip
ONLY = {"stream": ("role", "arrivals"), "cycle": ("owner", "every", "at")}
NEEDED = {"stream": ("role", "arrivals"), "cycle": ("owner", "every")}


# ------------------------------------------------------------ how it is read
def _one_of(*words: str) -> Kind:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"unknown word {said(text)}{nearest(text, words)}")
        return text

    return form.scalar(parse, {"enum": list(words)}, " or ".join(map(repr, words)))


def _arrivals(text: str) -> float:
    found = re.fullmatch(rf"({form.NUMBER})(?: */ *(day|week))?", text)
    if not found:
        raise ValueError(f"{said(text)} is not a number of arrivals such as '18/week' or '3/day'")
    rate = float(found[1]) * (WORKING_DAYS if found[2] == "day" else 1)
    if not 0 < rate <= 5000:
        raise ValueError(f"{said(text)} must be more than 0 and at most 5,000 a week")
    return rate


def _every(text: str) -> str:
    found = re.fullmatch(r"(?:([0-9]{1,2}) +)?(week|month|quarter)s?", text)
    if not found or not 1 <= int(found[1] or 1) <= 52:
        raise ValueError(f"{said(text)} is not a period such as 'week', '2 weeks', 'month' or 'quarter'")
    count = int(found[1] or 1)
    return f"{count} {found[2]}s" if count > 1 else found[2]


_ARRIVALS = form.scalar(_arrivals, {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}]}, "a rate such as '18/week'")
_EVERY = form.scalar(_every, {"type": "string"}, "a period such as '2 weeks'")


def _read_steps(reading: Reading, node: Node, path: Where) -> Json:
    """Names of steps, or a mapping from them to hours of their own: a mapping to hours, or to None where there are none."""
    if isinstance(node, MappingNode):
        found: Json = _STEP_HOURS.read(reading, node, path)
        return found
    names: Sequence[str] = _STEP_NAMES.read(reading, node, path) or ()
    for name in [name for name, times in Counter(names).items() if times > 1]:
        reading.wrong_at(path, f"the step {said(name)} is written twice in {'.'.join(path)}; name each step once")
    return dict.fromkeys(names)


def _own_hours(reading: Reading, node: Node, path: Where) -> Json:
    return None if isinstance(node, Scalar) and node.empty else form.HOURS.read(reading, node, path)


_STEP_NAMES = form.listing(form.NAME)
_STEP_HOURS = form.mapping_of(form.clean_name, Kind(_own_hours, {"anyOf": [dict(form.HOURS.schema), {"type": "null"}]}), "a step")
_STEPS = Kind(_read_steps, {"anyOf": [dict(_STEP_NAMES.schema), dict(_STEP_HOURS.schema)]})
_ESCALATE = form.record(
    {
        "share": Field(form.share(zero=True), "part of the cases that another role is asked about", required=True),
        "to": Field(form.NAME, "the role that is asked", required=True),
        "step": Field(form.NAME, "what it does: one of 'activities', or of the steps", required=True),
        "after": Field(form.NAME, "the step after which it is asked; the first by default"),
        "hours": Field(form.HOURS, "least and most hours of that step; those of the work by default"),
    }
)
_REWORK = form.record(
    {
        "share": Field(form.share(zero=True), "chance of going back, each time the step 'from' ends; at most 90%", required=True),
        "from": Field(form.NAME, "the step that may find something wrong", required=True),
        "to": Field(form.NAME, "the step that is done again, with all between", required=True),
    }
)
WORK = form.mapping_of(
    form.clean_name,
    form.record(
        {
            "kind": Field(_one_of("stream", "cycle"), "stream: cases arrive by chance; cycle: they begin by the calendar", required=True),
            "role": Field(form.NAME, "of a stream: the role that does its steps"),
            "arrivals": Field(_ARRIVALS, "of a stream: cases on average, '18/week' or '3/day', of working time"),
            "owner": Field(form.NAME, "of a cycle: the role that does its steps"),
            "every": Field(_EVERY, "of a cycle: 'week', '2 weeks', 'month', 'quarter'"),
            "at": Field(
                _one_of("start", "end"), "of a cycle: whether it begins in the first week of its period, the default, or in the last"
            ),
            "hours": Field(form.HOURS, "least and most hours of each step", required=True),
            "steps": Field(_STEPS, "the activities of a case, in order; or a mapping to hours of their own", required=True),
            "escalate": Field(_ESCALATE, "part of the cases, about which another role is asked"),
            "rework": Field(_REWORK, "part of the cases, in which steps are done again"),
        }
    ),
    "a recurring work",
)


# ------------------------------------------------------------ what does not fit together
def check(raw: Raw, reading: Reading, part: Callable[[str], float], hours: float) -> None:
    """Note every problem of `work`.  `part` is the part of the day that a role has for tasks, `hours` those of a day."""
    ids: dict[str, str] = {}
    for name, one in raw.get("work", {}).items():
        if not slug(name):
            reading.wrong_at(("work", name), f"the name {said(name)} needs a letter or a digit, from which its cases' ids are made")
        elif (other := ids.setdefault(slug(name), name)) != name:
            reading.wrong_at(("work", name), f"{said(name)} and {said(other)} would both have the cases 'work/{slug(name)}'; rename one")
        _check_kind(name, one, reading)
        for place, key in ((("role",), "role"), (("owner",), "owner"), (("escalate", "to"), "to")):
            title = one.get("escalate", {}).get(key) if key == "to" else one.get(key)
            if title is not None:
                _check_role(raw, reading, title, ("work", name, *place), part)
        _check_steps(raw, reading, name, one)
    if not reading.problems:
        _check_load(raw, reading, part, hours)


def _check_load(raw: Raw, reading: Reading, part: Callable[[str], float], hours: float) -> None:
    """Roles that are asked for more hours than they have."""
    asked: defaultdict[str, float] = defaultdict(float)
    for one in raw.get("work", {}).values():
        work = resolve(one)
        for title, value in case_hours(work).items():
            asked[title] += value * cases_a_week(work)
    for title, weekly in asked.items():
        role = raw["roles"][title]
        there = role.get("count", 1) * role.get("fte", 1.0) * part(title) * hours * WORKING_DAYS
        if weekly > there:
            what = f"recurring work asks {weekly:.1f} hours a week of {said(title)}, which has {there:.1f}: what waits grows without end"
            reading.warn_at(("work",), what)


def _check_kind(name: str, one: Raw, reading: Reading) -> None:
    kind = one.get("kind")
    if kind is None:
        return  # said already
    for other, keys in ONLY.items():
        for key in keys:
            if other != kind and key in one:
                there = ", ".join(map(repr, ONLY[kind]))
                reading.wrong_at(("work", name, key), f"work.{name}: {key!r} is of a {other}, and this is a {kind}; a {kind} has {there}")
    for key in NEEDED[kind]:
        if ("work", name, key) not in reading.lines:
            reading.wrong_at(("work", name), f"work.{name} needs the key {key!r}, since it is a {kind}")


def _check_role(raw: Raw, reading: Reading, title: str, path: Where, part: Callable[[str], float]) -> None:
    if title not in raw["roles"]:
        reading.wrong_at(path, f"unknown role {said(title)} in {'.'.join(path)}{nearest(title, raw['roles'])}")
    elif part(title) == 0:
        reading.wrong_at(path, f"{said(title)} has no time for the steps of {'.'.join(path[:2])}; give the role 'executes', such as 20%")


def _check_steps(raw: Raw, reading: Reading, name: str, one: Raw) -> None:
    """The activities of its cases are those that the file says, and no others."""
    here: Where = ("work", name)
    steps, vocabulary = list(one.get("steps", ())), raw.get("activities") or ACTIVITIES
    if "steps" in one and not steps:
        reading.wrong_at((*here, "steps"), f"work.{name} has no steps; name one at least")
        return
    for step in steps:
        near = difflib.get_close_matches(step, vocabulary, 1, NEAR)
        if step not in vocabulary and near:
            reading.warn_at((*here, "steps"), f"the step {said(step)} of work.{name} is not in 'activities'; did you mean {near[0]!r}?")

    def known(key: str, part: str, names: Sequence[str]) -> bool:
        step = one[key].get(part)
        if step is None or step in names or not steps:
            return step in steps
        reading.wrong_at((*here, key, part), f"unknown step {said(step)} in work.{name}.{key}.{part}{nearest(step, names)}")
        return False

    if "escalate" in one:
        known("escalate", "step", [*steps, *(activity for activity in vocabulary if activity not in steps)])
        known("escalate", "after", steps)
        to = one["escalate"].get("to")
        if to is not None and to == one.get("role", one.get("owner")):
            reading.wrong_at((*here, "escalate", "to"), f"work.{name} is escalated to {said(to)}, who does it anyway; name another role")
    if "rework" in one:
        sound = [known("rework", part, steps) for part in ("from", "to")]
        rework = one["rework"]
        if all(sound) and steps.index(rework["to"]) > steps.index(rework["from"]):
            what = f"the step {said(rework['to'])} comes after {said(rework['from'])}; rework goes back to an earlier step, or the same"
            reading.wrong_at((*here, "rework", "to"), what)
        if rework.get("share", 0) > MOST_REWORK:
            reading.wrong_at(
                (*here, "rework", "share"), f"work.{name}.rework.share is {rework['share']:.0%}; it can be at most {MOST_REWORK:.0%}"
            )


# ------------------------------------------------------------ as values, and as written
def resolve(one: Raw) -> RecurringWork:
    """The work with what the file left out, for values that `check` found sound."""
    steps = {step: hours or one["hours"] for step, hours in one["steps"].items()}
    escalate, rework = one.get("escalate"), one.get("rework")
    first = next(iter(steps))
    return RecurringWork(
        kind=one["kind"],
        role=one["role"] if one["kind"] == "stream" else one["owner"],
        arrivals=one.get("arrivals"),
        every=one.get("every"),
        at=one.get("at", "start") if one["kind"] == "cycle" else None,
        hours=one["hours"],
        steps=steps,
        escalate=Escalation(**{"after": first, "hours": one["hours"], **escalate}) if escalate else None,
        rework=Rework(share=rework["share"], source=rework["from"], target=rework["to"]) if rework else None,
    )


def written(work: RecurringWork) -> dict[str, Json]:
    """The values under the keys of the file, each as it is written there."""
    values = work.model_dump()
    values["role" if work.kind == "stream" else "owner"] = values.pop("role")
    values["arrivals"] = None if work.arrivals is None else f"{_plain(work.arrivals)}/week"
    values["steps"] = {step: _plain(low) if low == high else f"{_plain(low)}-{_plain(high)}" for step, (low, high) in work.steps.items()}
    if work.rework is not None:
        values["rework"] = {"share": work.rework.share, "from": work.rework.source, "to": work.rework.target}
    order = ("kind", "role", "owner", "arrivals", "every", "at", "hours", "steps", "escalate", "rework")
    return {key: values[key] for key in order if key in values}


def _plain(value: float) -> str:
    return repr(value).removesuffix(".0")


# ------------------------------------------------------------ how much it is
def middle(hours: tuple[float, float]) -> float:
    """What a step takes on average: its hours are drawn evenly between the least and the most."""
    return (hours[0] + hours[1]) / 2


def case_hours(work: RecurringWork, place: int = 0, *, asks: bool = True) -> dict[str, float]:
    """Hours that a case takes of each role on average from its step number `place` on; `asks`: whether it may yet be escalated."""
    names, hours = list(work.steps), [middle(span) for span in work.steps.values()]
    total = sum(hours[place:])
    if work.rework is not None and names.index(work.rework.source) >= place:
        again = work.rework.share / (1 - work.rework.share)
        total += again * sum(hours[names.index(work.rework.target) : names.index(work.rework.source) + 1])
    found = {work.role: total}
    if asks and work.escalate is not None and names.index(work.escalate.after) >= place:
        found[work.escalate.to] = work.escalate.share * middle(work.escalate.hours)
    return found


def cases_a_week(work: RecurringWork) -> float:
    """Cases that begin in a week without holidays, on average."""
    if work.arrivals is not None:
        return work.arrivals
    count, unit = _period(work)
    return 1 / (count * {"week": 1, "month": 52 / 12, "quarter": 13}[unit])


def cases_in(work: RecurringWork, calendar: WorkCalendar, week: Week) -> float:
    """Cases that are to begin in this week: of a stream on average, as many as its working days bring."""
    if work.arrivals is not None:
        return work.arrivals * week.day_count / WORKING_DAYS
    return float(week.index in openings(work, calendar))


def expected_hours(org: Organization, calendar: WorkCalendar, week: Week) -> dict[str, float]:
    """Hours by role that the cases take which are to begin in this week."""
    found: defaultdict[str, float] = defaultdict(float)
    for work in org.work.values():
        cases = cases_in(work, calendar, week)
        for role, hours in case_hours(work).items():
            found[role] += cases * hours
    return found


def openings(work: RecurringWork, calendar: WorkCalendar) -> frozenset[int]:
    """The weeks (by index) in which a case of a cycle begins: in each period the first with a working day, or the last."""
    count, unit = _period(work)
    found: dict[int, int] = {}
    for week in calendar.weeks:
        if week.day_count:
            period = (({"week": week.number, "month": week.month, "quarter": week.quarter}[unit]) - 1) // count
            if work.at == "end" or period not in found:
                found[period] = week.index
    return frozenset(found.values())


def _period(work: RecurringWork) -> tuple[int, str]:
    """How many of which periods lie between a cycle's cases: (2, week)."""
    assert work.every is not None
    count, _, unit = work.every.rpartition(" ")
    return int(count or 1), unit.removesuffix("s")
