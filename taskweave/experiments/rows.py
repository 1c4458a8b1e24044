"""What does a comparison read of one run?  Entry points: `read` (a run's rows) and `Span` (the weeks that are compared).

Rows are read once and cut to weeks here; nothing is added up.  Knows nothing of other runs.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from taskweave.engine.reader import JournalReader
from taskweave.errors import RunRefused
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.pool.pool import Pool
from taskweave.records import Json
from taskweave.report.departures import Departure, departures
from taskweave.runs import RunConfig, RunFolder

Fields = Mapping[str, Json]


@dataclass(frozen=True, kw_only=True)
class RunRows:
    """One run up to its last closed week.

    `digests` and `answers` are by week: the week's digest, and the structured questions up to its end ([step, level, backbone, asked,
    repaired, fallback]; no weeks where the journal is missing).  `tasks` are composite ones; `finished` is the simulated day on which a
    task's merged result was there, `dropped` that on which it was put aside; `substituted` has tasks in which something
    is a fallback, `caused` says of tasks which incident brought them, `left` is who left.
    """

    name: str
    path: Path
    config: RunConfig
    organization: Organization
    inputs: Mapping[str, str]
    digests: Mapping[int, str]
    answers: Mapping[int, Sequence[Sequence[Json]]]
    agents: Mapping[str, Fields]
    tasks: Sequence[Fields]
    subtasks: Sequence[Fields]
    finished: Mapping[str, str]
    dropped: Mapping[str, str]
    substituted: frozenset[str]
    states: Sequence[Fields]
    load: Sequence[Fields]
    readings: Sequence[Fields]
    goals: Sequence[Fields]
    incidents: Mapping[str, Fields]
    left: Sequence[Departure]
    edges: Sequence[Fields]
    caused: Mapping[str, str]

    @property
    def last(self) -> int:
        """The last week that is closed."""
        return max(self.digests)

    @cached_property
    def scripted(self) -> bool:
        """Whether no text in it is a model's."""
        return not any(row["origin"] == "model" for rows in (self.tasks, self.subtasks, self.states) for row in rows)

    def department(self, agent: str | None) -> str:
        """The department of an agent or of a unit's owner; "" where there is none."""
        return str(self.agents[agent]["department"] or "") if agent is not None and agent in self.agents else ""

    def role(self, agent: str | None) -> str:
        """The role of an agent; an unknown one stands for itself."""
        return str(self.agents[agent]["role"]) if agent is not None and agent in self.agents else str(agent)


def read(folder: RunFolder, pool: Pool) -> RunRows:
    """The rows of a run, all from one moment.  Raises RunRefused where no week is closed yet."""
    with pool.snapshot():
        digests = pool.weeks()
        if not digests:
            raise RunRefused(f"{folder.path}: no week is closed yet, so there is nothing to compare. Let it run first.")
        tasks = list(pool.rows("tasks", kind="composite"))
        subtasks = list(pool.rows("subtasks"))
        finished: dict[str, str] = {}
        substituted = {row["id"] for row in tasks if row["quality"] == "fallback"}
        substituted |= {row["task"] for row in subtasks if row["quality"] == "fallback"}
        for row in pool.rows("results"):
            if row["subtask"] is None:
                finished[row["task"]] = row["finished"][:10]
            if row["quality"] == "fallback":
                substituted.add(row["task"])
        inputs, answers = _journaled(folder, max(digests))
        return RunRows(
            name=folder.name,
            path=folder.path,
            config=folder.config,
            organization=folder.organization(),
            inputs=inputs,
            digests=digests,
            answers=answers,
            agents={row["id"]: row for row in pool.rows("agents")},
            tasks=tasks,
            subtasks=subtasks,
            finished=finished,
            dropped={row["subject"]: row["time"][:10] for row in pool.rows("events", kind="supersede")},
            substituted=frozenset(substituted),
            states=list(pool.rows("states")),
            load=list(pool.rows("load")),
            readings=list(pool.rows("readings")),
            goals=list(pool.rows("goals")),
            incidents={row["id"]: row for row in pool.rows("incidents")},
            left=departures(pool.rows("events")) if any(pool.rows("events", kind="departure")) else (),
            edges=list(pool.rows("edges")),
            caused=_caused(pool),
        )


def _caused(pool: Pool) -> Mapping[str, str]:
    """Tasks that an incident brought, as far as that is recorded: those it lays on somebody, and urgent ones with a result."""
    found = {row["result"]: row["used"] for row in pool.rows("uses", kind="incident")}
    tasks = {row["id"]: row["task"] for row in pool.rows("results") if row["id"] in found} if found else {}
    return {tasks[result]: incident for result, incident in found.items() if result in tasks} | {
        row["subject"]: row["object"] for row in pool.rows("events", kind="workload")
    }


def _journaled(folder: RunFolder, last: int) -> tuple[Mapping[str, str], Mapping[int, Sequence[Sequence[Json]]]]:
    """What the journal has of a run: its inputs' digests and its answers by week.  Nothing where it is missing."""
    if not folder.journal_path.exists():
        return {}, {}
    with JournalReader(folder.journal_path) as journal:
        return journal.inputs(), {week.week: week.facts.get("answers", ()) for week in journal.weeks() if week.week <= last}


class Span:
    """The weeks `first` to `last` of a calendar, and which rows lie in them."""

    def __init__(self, calendar: WorkCalendar, first: int, last: int) -> None:
        self.first, self.last = first, last
        self._weeks = calendar.weeks
        self._sundays = [week.sunday.isoformat() for week in calendar.weeks]
        opening = {calendar.moment(week.first_day * calendar.day_minutes): week.number for week in reversed(calendar.weeks)}
        self._opening = opening  # the first minute of each week that has one

    @property
    def ends(self) -> str:
        """The last date, as ISO text."""
        return self._sundays[self.last - 1]

    def week_of(self, moment: str) -> int:
        """The week in which a date or moment lies; what lies beyond the year counts to its last."""
        return min(bisect_left(self._sundays, moment[:10]), len(self._sundays) - 1) + 1

    def holds(self, week: int) -> bool:
        """Whether a week is one of these."""
        return self.first <= week <= self.last

    def planned(self, rows: RunRows) -> Iterator[Fields]:
        """The composite tasks that were planned in these weeks."""
        return (task for task in rows.tasks if self.holds(_planned_week(task)))

    def at_stake(self, rows: RunRows) -> Iterator[Fields]:
        """The composite tasks planned in these weeks, and those of earlier ones that were neither done nor dropped by then."""
        for task in rows.tasks:
            ended = rows.finished.get(task["id"]) or rows.dropped.get(task["id"])
            if self.holds(week := _planned_week(task)) or (week < self.first and (ended is None or self.week_of(ended) >= self.first)):
                yield task

    def done(self, rows: RunRows, task: Fields) -> bool:
        """Whether a task was done when these weeks ended."""
        return rows.finished.get(task["id"], "9999") <= self.ends

    def late(self, rows: RunRows, task: Fields) -> bool | None:
        """Whether a task was not done when it was due; None where it is not due in these weeks, or was dropped."""
        due = task["due"]
        if not due or due[:10] > self.ends or task["id"] in rows.dropped:
            return None
        return bool(rows.finished.get(task["id"], "9999") > due[:10])

    def assigned(self, rows: RunRows) -> Iterator[Fields]:
        """The subtasks that were given to somebody in these weeks; one that was handed over counts where it went."""
        for row in rows.subtasks:
            if row["assignee"] is not None and row["status"] != "dropped" and self.holds(self.week_of(row["created"])):
                yield row

    def plans(self, rows: RunRows) -> dict[tuple[str, str], dict[str, str]]:
        """(level, owner) -> unit -> all that its revisions of these weeks plan, each text once."""
        found: dict[tuple[str, str], dict[str, list[str]]] = {}
        for row in rows.states:
            if row["since"] is not None and row["origin"] is not None and self.holds(self._written(row)):
                texts = found.setdefault((row["level"], row["owner"]), {}).setdefault(row["id"], [])
                if row["plan"] not in texts:
                    texts.append(row["plan"])
        return {group: {unit: "\n".join(texts) for unit, texts in units.items()} for group, units in found.items()}

    def _written(self, state: Fields) -> int:
        """The week to which a revision belongs: a closing's is dated from the next week's first minute, in which no plan is made anew."""
        opened = self._opening.get(state["since"])
        return opened - 1 if opened is not None and state["revision"] > 1 else self.week_of(state["since"])


def _planned_week(task: Fields) -> int:
    """Y1/Q1/M01/W02@owner/t1 -> 2."""
    return int(str(task["id"]).partition("@")[0].rpartition("/W")[2])
