"""What became of a case of recurring work, and does its work go as the file says?  Entry points: `look`, `as_json`, `render`.

A case is named by its id (work/tickets/W14/7), by a step's or by the end of it; a work by its name.  Knows nothing of results and plans.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from taskweave.errors import BadInput
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization, slug
from taskweave.pool.pool import Pool
from taskweave.records import Json
from taskweave.report.intervals import Interval
from taskweave.report.recurring import ROOT, CaseLog, StepLog, case_logs
from taskweave.report.streams import Check, Stream, Wait, streams
from taskweave.report.wording import DASH, percent, plural

NEAREST = 5  # ids that a message names
_VARIANTS = 8  # orders of activities that are shown


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseTrace:
    """One case.

    `before` is how many open cases of its work were older when it arrived; `alike` completed cases, of `of`, have its variant.
    """

    case: CaseLog
    role: str
    escalated_to: str | None
    before: int
    alike: int
    of: int
    people: Mapping[str, str]
    calendar: WorkCalendar

    def at(self, minute: int | None, *, end: bool = False) -> str:
        """A working minute as simulated time; an end at the close of a day is of that day."""
        return DASH if minute is None else self.calendar.moment(minute, end=end).replace("T", " ")


Recurring = CaseTrace | Stream


def look(pool: Pool, org: Organization, text: str) -> Recurring | None:
    """The case, or the work, that is meant; None where it is neither.  Raises BadInput for a case that there is not, with the nearest."""
    works = {slug(name): name for name in org.work}
    bare = text.removeprefix(ROOT)
    work, _, rest = bare.partition("/")
    meant = text if text in org.work else works.get(work)
    if meant is None:
        return None
    with pool.snapshot():
        events, agents, load = (list(pool.rows(name)) for name in ("events", "agents", "load"))
        closed = max(pool.weeks(), default=0)
    if text in org.work or not rest:
        return next(stream for stream in streams(org, events, agents, load, closed) if stream.name == meant)
    logs = {log.id: log for log in case_logs(events, WorkCalendar(org.calendar))}
    name = ROOT + "/".join(bare.split("/")[:3])
    if name not in logs:
        mine = [one for one in logs if one.startswith(f"{ROOT}{work}/")]
        near = [one for one in mine if one.startswith(name.rpartition("/")[0] + "/")] or mine
        more = f"Cases there: {', '.join(near[:NEAREST])}" if near else "None has arrived yet"
        raise BadInput(f"There is no case {text!r} in the weeks that are closed. {more}")
    return _case(logs[name], list(logs.values()), org, agents)


def _case(case: CaseLog, logs: Sequence[CaseLog], org: Organization, agents: Sequence[Mapping[str, Json]]) -> CaseTrace:
    work = org.work[case.name]
    older = logs[: next(place for place, log in enumerate(logs) if log is case)]
    done = [log for log in logs if log.name == case.name and log.completed is not None]
    return CaseTrace(
        case=case,
        role=work.role,
        escalated_to=work.escalate.to if case.escalated and work.escalate else None,
        before=sum(log.name == case.name and (log.ended is None or log.ended > case.arrived) for log in older),
        alike=sum(log.variant == case.variant for log in done),
        of=len(done),
        people={row["id"]: row["name"] if row["role"] == work.role else f"{row['name']} ({row['role']})" for row in agents},
        calendar=WorkCalendar(org.calendar),
    )


def as_json(found: Recurring) -> dict[str, Json]:
    """All of it as JSON values; minutes are working minutes since the year began."""
    if isinstance(found, Stream):
        checks: list[Json] = [asdict(one) | {"agrees": one.agrees} for one in found.checks]
        return {"traced": "work", **asdict(found), "checks": checks}
    case = found.case
    values: dict[str, Any] = asdict(case)
    values["steps"] = [asdict(step) for step in case.steps.values()]
    times = {"arrived": found.at(case.arrived), "completed": None if case.completed is None else found.at(case.completed, end=True)}
    told = {"role": found.role, "escalated_to": found.escalated_to, "before": found.before, "alike": found.alike, "of": found.of}
    return {"traced": "case", **values, "times": times, "worked": case.worked, "waited": case.waited, "variant": list(case.variant), **told}


def render(found: Recurring) -> RenderableType:
    """It as a person reads it."""
    return _render_stream(found) if isinstance(found, Stream) else _render_case(found)


# ---------------------------------------------------------------- one case
def _render_case(found: CaseTrace) -> RenderableType:
    case = found.case
    end = f"completed {found.at(case.completed, end=True)}" if case.completed is not None else "open when the last week closed"
    if case.abandoned is not None:
        end = f"abandoned {found.at(case.abandoned)}: the organization has no such work, or nobody for it, any more"
    alike = f" ({found.alike:,} of {found.of:,} completed cases)" if case.completed is not None else ""
    back = f"{case.reworked} times" if case.reworked > 1 else "once"
    number = found.before
    older = f"{plural(number, 'older case')} of {case.name} {'was' if number == 1 else 'were'} open"
    lines = [
        ("arrived", f"{found.at(case.arrived)}, for {found.role}, when {older}"),
        ("ended", end),
        ("hours", _hours_of(case)),
        ("escalated", f"to {found.escalated_to}" if found.escalated_to else "no"),
        ("rework", f"sent back {back}" if case.reworked else "none"),
        ("variant", " > ".join(case.variant) + alike),
    ]
    table = _table("step", "who", "queued", "begun", "ended", "waited h", "worked h")
    for step in case.steps.values():
        who = " > ".join(found.people.get(agent, agent) for agent in dict.fromkeys(step.agents)) or DASH
        marks = [*(["asked for help"] if step.aside else []), *(["sent back"] if step.sent_back else [])]
        marks += [f"stopped {step.stops}×"] if step.stops else []
        name = f"{step.id.rpartition('/')[2]} {step.activity}" + (f" ({', '.join(marks)})" if marks else "")
        moments = (found.at(step.queued), found.at(step.started), found.at(step.finished, end=True))
        table.add_row(name, who, *moments, _step_waited(step), f"{step.worked / 60:.2f}")
    heading = Text.assemble((f"A case of {case.name}", "bold"), "  ", (case.id, "dim"))
    return Group(heading, *(Text.assemble((f"  {name:<9} ", "dim"), value) for name, value in lines), Padding(table, (1, 0, 0, 2)))


def _hours_of(case: CaseLog) -> str:
    begun = f", {(case.begun - case.arrived) / 60:.2f} until it was begun" if case.begun is not None else ""
    if case.completed is None or case.waited is None:
        return f"{case.worked / 60:.2f} worked so far{begun}"
    return f"{(case.completed - case.arrived) / 60:.2f}: {case.worked / 60:.2f} worked, {case.waited / 60:.2f} waiting{begun}"


def _step_waited(step: StepLog) -> str:
    return DASH if step.finished is None else f"{step.waited / 60:.2f}"


# ---------------------------------------------------------------- a work
def _render_stream(found: Stream) -> RenderableType:
    still_open = found.arrived - found.completed - found.abandoned
    gone = f"{found.abandoned:,} abandoned, " if found.abandoned else ""
    came = f"{found.arrived:,} cases arrived, {found.completed:,} completed, {gone}{still_open:,} open"
    parts: list[RenderableType] = [
        Text.assemble((f"Recurring work {found.name}", "bold"), f"  {found.kind}, {found.role}; {came}"),
        Text("Against the file: the figures with their 95 % intervals; about one in twenty lies outside by chance", "dim"),
        Padding(_checks(found.checks), (0, 0, 1, 2)),
        Text("Working hours that cases waited: mean with its 95 % interval over weeks, half of them up to, nine in ten up to, most", "dim"),
        Padding(_waits(found.waits), (0, 0, 1, 2)),
        Text(f"First come, first served: an older case was passed over by {found.overtaken:,} of {found.started:,} steps that were begun"),
        Text(f"Variants, of {found.completed:,} completed cases"),
        *(Text(f"  {number:>6,}  {' > '.join(variant)}") for variant, number in found.variants[:_VARIANTS]),
    ]
    if (more := len(found.variants) - _VARIANTS) > 0:
        parts.append(Text(f"  and {plural(more, 'variant')} more", "dim"))
    parts += [Text(f"\nBy week; offered: working hours of {found.role}, waited: on average until the first step", "dim"), _weeks(found)]
    return Group(*parts)


def _checks(checks: Sequence[Check]) -> Table:
    table = _table("", "n", "found", "95 %", "the file", "")
    for one in checks:
        said = {None: DASH, True: "agrees", False: "does not agree"}[one.agrees]
        said += f"; {one.beyond:,} beyond its bounds" if one.beyond else ""
        values = (_value(one.found, one.unit), _interval(one.interval, one.unit), _value(one.said, one.unit))
        table.add_row(one.what, f"{one.number:,}", *values, said)
    return table


def _waits(waits: Sequence[Wait]) -> Table:
    table = _table("", "cases", "mean", "95 %", "half", "nine in ten", "most")
    for one in waits:
        rest = (_value(value, "h") for value in (one.median, one.ninth, one.most))
        table.add_row(one.what, f"{one.number:,}", _value(one.mean, "h"), _interval(one.interval, "h"), *rest)
    return table


def _weeks(found: Stream) -> RenderableType:
    table = _table("week", "arrived", "completed", "open", "most open", "waited h", "offered h")
    for one in found.weeks:
        counts = (f"{number:,}" for number in (one.arrived, one.completed, one.open, one.most_open))
        table.add_row(f"{one.week}", *counts, DASH if one.waited is None else f"{one.waited:.1f}", f"{one.offered:,.0f}")
    return Padding(table, (0, 0, 0, 2))


def _table(first: str, *columns: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column(first)
    for name in columns:
        table.add_column(name, justify="left" if name in ("", "who", "queued", "begun", "ended") else "right")
    return table


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return DASH
    return percent(value, 1) if unit == "%" else f"{value:.2f} h" if unit == "h" else f"{value:,.2f}"


def _interval(interval: Interval | None, unit: str) -> str:
    return DASH if interval is None else f"{_value(interval.low, unit)} to {_value(interval.high, unit)}"
