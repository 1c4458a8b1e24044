"""What did each incident ask for, who turned to it, and did that end?  Entry point: `reactions` (TaskWeave, Sec. 4.6, Figure 5).

Runs with an incident are set against a base without it, in the weeks before it, while it is in force and after; units that hear of it
apart from those that do not.  Activities are put together by the incidents' categories.  What redrawn controls do in the same weeks and
units is what chance makes of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any, Literal

from taskweave.errors import BadInput
from taskweave.evaluation.keywords import Phrases, phrases
from taskweave.experiments.comparison import Difference, LeftOut
from taskweave.experiments.diff import left_out, parted, refuse
from taskweave.experiments.measures import Figure
from taskweave.experiments.rows import Fields, RunRows, Span
from taskweave.experiments.spread import LEAST, judge
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.plans import concerns, names_below
from taskweave.report.asking import asked

Group = Literal["affected", "others"]
When = Literal["before", "while", "after"]
GROUPS: tuple[Group, ...] = ("affected", "others")
WHENS: tuple[When, ...] = ("before", "while", "after")
CATEGORIES = ("policy", "economic", "technology", "internal")
ENOUGH_WORDS = 2  # of an incident, in a text that speaks of it
SPEAKING, GIVEN, PLANNED = "plans that speak of it", "hours of tasks for it", "hours planned"


@dataclass(frozen=True, kw_only=True, slots=True)
class Measure:
    """One figure of the units of a group in some weeks, in the base and in the run with the incident."""

    what: str
    group: Group
    when: When
    difference: Difference


@dataclass(frozen=True, kw_only=True, slots=True)
class Reaction:
    """One incident of one run: what it asks for, its first and last week in force, who hears of it, and what came of it.

    `last` is None where it is in force beyond the weeks that are compared.  `owners` are those of the units in each group.
    """

    id: str
    run: str
    title: str
    category: str
    severity: str
    asks: tuple[str, ...]
    first: int
    last: int | None
    compared: int
    owners: Mapping[str, tuple[str, ...]]
    controls: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    measures: tuple[Measure, ...]

    def found(self, what: str, group: Group, when: When) -> Difference | None:
        """One of its figures; None where there are no such units or weeks."""
        return next((one.difference for one in self.measures if (one.what, one.group, one.when) == (what, group, when)), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """Shares of activities among the tasks planned by a group's units while incidents of a category were in force, all put together."""

    category: str
    incidents: int
    group: Group
    activities: tuple[Difference, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reactions:
    """All incidents of the compared runs.  `scripted`: no text is a model's; `shared`: some runs have several incidents at once."""

    base: str
    path: str
    organization: str
    seed: int
    scripted: bool
    shared: bool
    reactions: tuple[Reaction, ...]
    shifts: tuple[Shift, ...]

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Event:
    """An incident with all that is needed to measure it."""

    row: Fields
    run: RunRows
    controls: Sequence[RunRows]
    out: tuple[LeftOut, ...]
    words: Phrases
    spans: Mapping[When, Span]
    owners: Mapping[Group, frozenset[str]]
    last: int | None
    compared: int


def reactions(base: RunRows, others: Sequence[RunRows], controls: Sequence[RunRows] = (), *, until: str = "year") -> Reactions:
    """Measure each incident that one of `others` has and `base` does not, up to the week that `until` lies in.

    Raises BadInput where runs cannot be compared, or none of them has an incident of its own.
    """
    refuse(base, others, controls)
    calendar = WorkCalendar(base.organization.calendar)
    most = calendar.boundary(until)
    known = frozenset[str]().union(*(phrases(text) for text in _texts(base)))
    found = [event for run in others for event in _events(base, run, controls, calendar, most, known)]
    events = sorted(found, key=lambda event: CATEGORIES.index(event.row["category"]))
    if not events:
        raise BadInput(
            f"{base.path}: none of the runs that it is compared with has an incident that it has not. Make some: "
            f"taskweave fork {base.path} --at week:5 --incidents library:policy --each 5"
        )
    counts = Counter(event.run.name for event in events)
    return Reactions(
        base=base.name,
        path=str(base.path),
        organization=base.config.organization,
        seed=base.config.seed,
        scripted=base.scripted and all(run.scripted for run in others),
        shared=max(counts.values()) > 1,
        reactions=tuple(_reaction(base, event) for event in events),
        shifts=tuple(_shifts(base, events)),
    )


# ---------------------------------------------------------------- the incidents
def _events(
    base: RunRows, run: RunRows, controls: Sequence[RunRows], calendar: WorkCalendar, most: int, known: Phrases
) -> Iterator[_Event]:
    """Those of a run; `known` are the phrases of the base."""
    compared, week = min(base.last, run.last, most), parted(base, run)
    fresh = [row for id_, row in run.incidents.items() if id_ not in base.incidents and row["since"]]
    out = tuple(left_out(base, week, compared, controls))
    fit = [control for control in controls if str(control.path) not in {one.run for one in out}]
    for row in fresh:
        first, last = _weeks(row, calendar)
        if first <= compared:
            spans = _spans(calendar, first, last, compared)
            told = ". ".join([row["title"], row["description"], *_titles(row["effects"])])
            yield _Event(
                row=row,
                run=run,
                controls=fit,
                out=out,
                words=phrases(told) - known,
                spans=spans,
                owners=_groups(run, row),
                last=last if last <= compared else None,
                compared=compared,
            )


def _weeks(row: Fields, calendar: WorkCalendar) -> tuple[int, int]:
    """The weeks in which an incident is heard for the first and the last time."""
    span = Span(calendar, 1, 1)
    ends = date.fromisoformat(row["until"]) - timedelta(days=1)
    return span.week_of(row["since"]), span.week_of(ends.isoformat())


def _spans(calendar: WorkCalendar, first: int, last: int, compared: int) -> dict[When, Span]:
    bounds: dict[When, tuple[int, int]] = {
        "before": (1, first - 1), "while": (first, min(last, compared)), "after": (last + 1, compared)
    }  # fmt: skip
    return {when: Span(calendar, *ends) for when, ends in bounds.items() if ends[0] <= ends[1]}


def _titles(effects: Iterable[Mapping[str, Any]]) -> list[str]:
    """What an incident says beside its description."""
    found = [value["title"] for effect in effects for kind, value in effect.items() if kind == "workload"]
    return found + [value for effect in effects for kind, value in effect.items() if kind == "news"]


def _texts(rows: RunRows) -> Iterator[str]:
    """All that is planned, in words."""
    yield from (state["plan"] for state in rows.states if state["origin"] is not None)
    yield from (f"{task['title']}. {task['description']}" for task in rows.tasks)


def _groups(run: RunRows, row: Fields) -> dict[Group, frozenset[str]]:
    """Owners of weekly plans: those who hear of the incident, and the others."""
    names = names_below(run.agents.values(), run.edges)
    owners = {state["owner"] for state in run.states if state["level"] == "week" and state["origin"] is not None}
    affected = frozenset(owner for owner in owners if concerns(row, names, owner))
    return {"affected": affected, "others": frozenset(owners) - affected}


# ---------------------------------------------------------------- one incident
def _reaction(base: RunRows, event: _Event) -> Reaction:
    row = event.row
    runs = [base, event.run, *event.controls]
    found = [
        Measure(what=what, group=group, when=when, difference=_difference(what, [measure(run, event, group, span) for run in runs]))
        for what, measure in ((SPEAKING, _speaking), (GIVEN, _given), (PLANNED, _planned))
        for group in GROUPS
        if event.owners[group]
        for when, span in event.spans.items()
    ]
    return Reaction(
        id=row["id"],
        run=event.run.name,
        title=row["title"],
        category=row["category"],
        severity=row["severity"],
        asks=asked(row["effects"]),
        first=event.spans["while"].first,
        last=event.last,
        compared=event.compared,
        owners={group: tuple(sorted(owners)) for group, owners in event.owners.items()},
        controls=tuple(control.name for control in event.controls),
        left_out=event.out,
        measures=tuple(found),
    )


def _speaking(run: RunRows, event: _Event, group: Group, span: Span) -> Figure:
    """The share of the group's weekly units whose plans speak of the incident."""
    units = [
        text
        for (level, owner), texts in span.plans(run).items()
        if level == "week" and owner in event.owners[group]
        for text in texts.values()
    ]
    hits = sum(_says(text, event) for text in units)
    return Figure(value=hits / len(units) if units else None, of=len(units))


def _given(run: RunRows, event: _Event, group: Group, span: Span) -> Figure:
    """The share of the planned hours in tasks that the incident brought, or whose words speak of it."""
    tasks = list(_tasks(run, event.owners[group], span))
    total = sum(task["planned_hours"] for task in tasks)
    mine = [task for task in tasks if _is_for(run, event, task)]
    return Figure(value=sum(task["planned_hours"] for task in mine) / total if total else None, of=total)


def _is_for(run: RunRows, event: _Event, task: Fields) -> bool:
    if run is event.run and run.caused.get(task["id"]) == event.row["id"]:
        return True
    return _says(f"{task['title']}. {task['description']}", event)


def _says(text: str, event: _Event) -> bool:
    """Whether a text names an incident by its title, or has words of it that the base has not: two, or several in a row.

    One alone (`costs`, `visitors`) says nothing: another task may have it by chance.
    """
    if str(event.row["title"]).casefold() in text.casefold():
        return True
    shared = _phrases(text) & event.words
    return len(shared) >= ENOUGH_WORDS or any(" " in phrase for phrase in shared)


def _planned(run: RunRows, event: _Event, group: Group, span: Span) -> Figure:
    return Figure(value=sum((task["planned_hours"] for task in _tasks(run, event.owners[group], span)), 0.0))


def _tasks(run: RunRows, owners: frozenset[str], span: Span) -> Iterator[Fields]:
    return (task for task in span.planned(run) if task["state"].rpartition("@")[2] in owners)


@lru_cache(maxsize=100_000)
def _phrases(text: str) -> Phrases:
    """The same plans and titles are asked about for each incident."""
    return phrases(text)


def _difference(name: str, figures: Sequence[Figure]) -> Difference:
    """The first figure is the base's, the second the compared run's, the others are those of controls."""
    base, other, *controls = figures
    known = None if base.value is None or other.value is None else (base.value, other.value)
    redrawn = [one.value for one in controls if one.value is not None]
    return Difference(
        name=name,
        unit="",
        base=base,
        other=other,
        difference=known[1] - known[0] if known else None,
        judged=judge(*known, redrawn) if known and len(redrawn) >= LEAST else None,
    )


# ---------------------------------------------------------------- by category
def _shifts(base: RunRows, events: Sequence[_Event]) -> Iterator[Shift]:
    for category in dict.fromkeys(event.row["category"] for event in events):
        mine = [event for event in events if event.row["category"] == category]
        # Only controls that say something of each of them: all have the same weeks and units then.
        common = [control for control in mine[0].controls if all(control in event.controls for event in mine)]
        for group in GROUPS:
            counts = [
                _activities((run or event.run, event.owners[group], event.spans["while"]) for event in mine)
                for run in (base, None, *common)
            ]
            if counts[0] and counts[1]:
                names = sorted({name for count in counts for name in count})
                found = [_difference(name, [_share(count, name) for count in counts]) for name in names]
                ordered = tuple(sorted(found, key=lambda one: -abs(one.difference or 0)))
                yield Shift(category=category, incidents=len(mine), group=group, activities=ordered)


def _activities(windows: Iterable[tuple[RunRows, frozenset[str], Span]]) -> Counter[str]:
    return Counter(task["activity"] for run, owners, span in windows for task in _tasks(run, owners, span))


def _share(count: Counter[str], name: str) -> Figure:
    total = count.total()
    return Figure(value=count[name] / total if total else None, of=total)
