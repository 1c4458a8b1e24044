"""What does one run come to in some weeks?  Entry point: `measures`, which gives its figures by family.

Every figure carries its denominator, and is None where there is none.  Pure on rows; knows nothing of other runs.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from taskweave.experiments.rows import RunRows, Span
from taskweave.records import STEPS, Json
from taskweave.report.figures import loads

Unit = Literal["share", "tasks", "hours", "reading"]
Basis = Literal["capacity", "text"]
NO_DEPARTMENT = "(no department)"


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A number, and what it is of: a share of `of`, or so many of `of` tasks or hours; a reading is of nothing."""

    value: float | None
    of: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """Figures of one kind by name.

    `of_unit` is what a share's denominator counts.  `basis` is what they follow from in a scripted run: simulated capacity, or the choice
    of words.  `absent` is the figure of a name that is not there (None: nothing is known of it).
    """

    name: str
    title: str
    unit: Unit
    basis: Basis
    figures: Mapping[str, Figure]
    of_unit: str = ""
    absent: Figure | None = None
    units: Mapping[str, str] | None = None

    def figure(self, name: str) -> Figure:
        """The figure of that name."""
        return self.figures.get(name) or self.absent or Figure(value=None)


def measures(rows: RunRows, span: Span) -> tuple[Family, ...]:
    """All figures of a run in these weeks, as they stood when the last of them closed."""
    return (
        *_tasks(rows, span),
        _roles(rows, span),
        _load(rows, span),
        _readings(rows, span),
        _goals(rows, span),
        _completion(rows, span),
        _overdue(rows, span),
        _fallbacks(rows, span),
        _activities(rows, span),
    )


def department_of(rows: RunRows, task: Mapping[str, Json]) -> str:
    """The department of the unit that planned a task."""
    return rows.department(str(task["state"]).rpartition("@")[2]) or NO_DEPARTMENT


# ---------------------------------------------------------------- how much is planned
def _tasks(rows: RunRows, span: Span) -> tuple[Family, Family]:
    planned = list(span.planned(rows))
    count = Counter(department_of(rows, task) for task in planned)
    urgent = sum(task["priority"] == "urgent" for task in planned)
    hours: dict[str, float] = defaultdict(float)
    for task in planned:
        hours[department_of(rows, task)] += task["planned_hours"]
    return (
        _counted("tasks", "Tasks planned, by department", "tasks", {**count, "urgent, in all departments": urgent}, len(planned)),
        _counted("hours", "Hours planned, by department", "hours", hours, math.fsum(hours.values())),
    )


def _activities(rows: RunRows, span: Span) -> Family:
    planned = list(span.planned(rows))
    count = Counter(f"{department_of(rows, task)}, {task['activity']}" for task in planned)
    return _counted("activities", "Tasks planned, by department and activity", "tasks", count, len(planned), basis="text")


def _counted(name: str, title: str, unit: Unit, found: Mapping[str, float], of: float, basis: Basis = "capacity") -> Family:
    """Parts of a whole, which itself is the figure "all"; what is not there is none of it."""
    figures = {key: Figure(value=value, of=of) for key, value in sorted(found.items())}
    total = {"all": Figure(value=of)} if basis == "capacity" else {}
    return Family(name=name, title=title, unit=unit, basis=basis, figures={**total, **figures}, absent=Figure(value=0, of=of))


# ---------------------------------------------------------------- who gets it
def _roles(rows: RunRows, span: Span) -> Family:
    hours: dict[str, float] = defaultdict(float)
    for subtask in span.assigned(rows):
        hours[rows.role(subtask["assignee"])] += subtask["hours"]
    total = math.fsum(hours.values())
    figures = {role: _share(value, total) for role, value in sorted(hours.items())}
    return _shares("roles", "Role shares of assigned hours", figures, "h", absent=_share(0, total))


def _load(rows: RunRows, span: Span) -> Family:
    found = loads((row for row in rows.load if span.holds(row["week"])), {agent: row["department"] for agent, row in rows.agents.items()})
    figures = {one.department or NO_DEPARTMENT: _share(one.booked, one.available) for one in found}
    figures["all"] = _share(math.fsum(one.booked for one in found), math.fsum(one.available for one in found))
    return _shares("load", "Load, booked of available hours", figures, "h")


# ---------------------------------------------------------------- where it leads
def _readings(rows: RunRows, span: Span) -> Family:
    figures = {row["kpi"]: Figure(value=row["value"]) for row in rows.readings if row["week"] == span.last}
    units = {name: kpi.unit for name, kpi in rows.organization.environment.items()}
    title = f"Readings in week {span.last}"
    return Family(name="readings", title=title, unit="reading", basis="capacity", figures=figures, units=units)


def _goals(rows: RunRows, span: Span) -> Family:
    figures = {row["goal"]: Figure(value=row["progress"]) for row in rows.goals if row["week"] == span.last}
    return Family(name="goals", title=f"Goals, progress by week {span.last}", unit="share", basis="capacity", figures=figures)


def _completion(rows: RunRows, span: Span) -> Family:
    stake = list(span.at_stake(rows))
    done = [task for task in stake if span.done(rows, task)]
    late = [late for task in stake if (late := span.late(rows, task)) is not None]
    subtasks = list(span.assigned(rows))
    finished = sum(row["finished"] is not None and row["finished"][:10] <= span.ends for row in subtasks)
    figures = {
        "tasks done": _share(len(done), len(stake)),
        "tasks done, no fallback": _share(sum(task["id"] not in rows.substituted for task in done), len(stake)),
        "subtasks done": _share(finished, len(subtasks)),
        "dropped": _share(sum(rows.dropped.get(task["id"], "9999") <= span.ends for task in stake), len(stake)),
        "overdue, of tasks due": _share(sum(late), len(late)),
    }
    return _shares("completion", "Completion", figures, "")


def _overdue(rows: RunRows, span: Span) -> Family:
    """Planned hours of tasks that were not done when they were due, of those due in these weeks."""
    due, late = defaultdict[str, float](float), defaultdict[str, float](float)
    for task in span.at_stake(rows):
        if (overdue := span.late(rows, task)) is not None:
            for name in (department_of(rows, task), "all"):
                due[name] += task["planned_hours"]
                late[name] += task["planned_hours"] * overdue
    figures = {name: Figure(value=late[name], of=due[name]) for name in sorted(due, key=lambda name: (name != "all", name))}
    title = "Overdue hours, of those due, by department"
    return Family(name="overdue", title=title, unit="hours", basis="capacity", figures=figures, absent=Figure(value=0, of=0))


def _fallbacks(rows: RunRows, span: Span) -> Family:
    asked, made = Counter[str](), Counter[str]()
    for sign, told in ((1, rows.answers.get(span.last, ())), (-1, rows.answers.get(span.first - 1, ()))):
        for step, _, _, questions, _, fallbacks in told:
            for name in (step, "all"):
                asked[name] += sign * questions
                made[name] += sign * fallbacks
    figures = {step: _share(made[step], asked[step]) for step in _ordered(asked) if asked[step]}
    return _shares("fallbacks", "Fallback share by step", figures, "", absent=None)


def _ordered(steps: Iterable[str]) -> Sequence[str]:
    return sorted(steps, key=lambda step: (step != "all", STEPS.index(step) if step in STEPS else len(STEPS), step))


def _shares(name: str, title: str, figures: Mapping[str, Figure], of_unit: str, absent: Figure | None = None) -> Family:
    return Family(name=name, title=title, unit="share", basis="capacity", figures=figures, of_unit=of_unit, absent=absent)


def _share(part: float, of: float) -> Figure:
    return Figure(value=part / of if of else None, of=of)
