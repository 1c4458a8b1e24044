"""How did the run go?  Entry points: `closing` (the figures) and `render` (tables that a manager reads in 80 columns).

The figures come from run.db, the organization and its population; the formulas are in `figures` and `evaluation.text`.
Writes nothing and refuses to know how the run was made.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taskweave.evaluation.text import Built, Share, distinct_titles, naming_sources
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Agent, Population
from taskweave.pool.pool import Pool
from taskweave.report.figures import (
    Completion,
    DepartmentLoad,
    Hub,
    KlPair,
    Quarter,
    RoleShare,
    StepCalls,
    completion,
    divergence,
    hubs,
    loads,
    role_shares,
    step_calls,
    task_edges,
)
from taskweave.report.trace import STAND_IN
from taskweave.report.wording import DASH, percent


class Closing(NamedTuple):
    """A run in figures.

    `origins` and `qualities` count results; `linked` are merged results after week 1 that use a result of another task, `naming` those
    of them whose text names one by title or author; `titles` of merged results by id.
    """

    organization: str
    weeks: int
    origins: dict[str, int]
    qualities: dict[str, int]
    quarters: tuple[Quarter, ...]
    loads: tuple[DepartmentLoad, ...]
    roles: tuple[RoleShare, ...]
    to_demand: KlPair
    to_reference: KlPair
    steps: tuple[StepCalls, ...]
    tasks: Completion
    subtasks: Completion
    most_used: tuple[Hub, ...]
    most_using: tuple[Hub, ...]
    titles: dict[str, str]
    distinct: Share
    linked: Share
    naming: Share

    @property
    def stand_in(self) -> bool:
        """Whether any text is the scripted stand-in's."""
        return self.origins.get("scripted", 0) > 0


def closing(pool: Pool, org: Organization, population: Population) -> Closing:
    """The figures of a run, finished or not, up to the last week written."""
    with pool.snapshot():
        return _Reading(pool, org, population).closing()


class _Reading:
    """The rows that several figures share, read once."""

    def __init__(self, pool: Pool, org: Organization, population: Population) -> None:
        self.pool, self.org, self.population = pool, org, population
        self.calendar = WorkCalendar(org.calendar)
        self.agents = {row["id"]: row for row in pool.rows("agents")}
        self.tasks = [row for row in pool.rows("tasks") if row["kind"] == "composite"]
        self.subtasks = list(pool.rows("subtasks"))
        self.results = list(pool.rows("results"))
        self.merged = {row["id"]: row for row in self.results if row["subtask"] is None}
        self.weeks = max(pool.weeks(), default=0)
        self.sundays = [week.sunday.isoformat() for week in self.calendar.weeks]

    def closing(self) -> Closing:
        executed = Counter(self._role(row["assignee"]) for row in self.subtasks if row["status"] == "done")
        demand = demanded(self.org, self.population, self.calendar, self.weeks)
        reference = {title: role.share for title, role in self.org.roles.items()}
        edges = task_edges(self.pool.rows("uses"), {row["id"]: row["task"] for row in self.results}, self.merged)
        used, using = hubs(edges)
        linked, naming = self._links(edges)
        return Closing(
            organization=self.org.name,
            weeks=self.weeks,
            origins=dict(sorted(Counter(row["origin"] for row in self.results).items())),
            qualities=dict(sorted(Counter(row["quality"] for row in self.results).items())),
            quarters=tuple(self._quarters()),
            loads=tuple(loads(self.pool.rows("load"), {agent: row["department"] for agent, row in self.agents.items()})),
            roles=tuple(role_shares(executed, demand, reference, dict.fromkeys([*self.org.roles, *sorted(executed)]))),
            to_demand=divergence(executed, demand | dict.fromkeys(executed.keys() - demand.keys(), 0.0)),
            to_reference=divergence(executed, reference),
            steps=tuple(step_calls(self.pool.rows("calls"))),
            tasks=self._tasks_completed(),
            subtasks=self._subtasks_completed(),
            most_used=tuple(used),
            most_using=tuple(using),
            titles={row["id"]: row["title"] for row in self.merged.values()},
            distinct=distinct_titles([row["title"] for row in self.tasks], [*(row["name"] for row in self.agents.values()), self.org.name]),
            linked=linked,
            naming=naming,
        )

    def _role(self, agent: str | None) -> str:
        return str(self.agents[agent]["role"]) if agent in self.agents else str(agent)

    # ------------------------------------------------------------ by quarter
    def _quarters(self) -> Iterator[Quarter]:
        done_on_time = {row["id"]: row["done_on_time"] for row in self.tasks if row["status"] == "done"}
        planned = Counter(_quarter_of_id(row["id"]) for row in self.tasks)
        dropped = Counter(_quarter_of_id(row["id"]) for row in self.tasks if row["status"] == "dropped")
        done = Counter(self._quarter(row["finished"]) for row in self.merged.values())
        on_time = Counter(self._quarter(row["finished"]) for row in self.merged.values() if done_on_time.get(row["id"]))
        ids = {row["id"] for row in self.tasks}
        closes: dict[str, Counter[int]] = {"spilled": Counter(), "blocked": Counter()}
        for kind, counts in closes.items():
            counts.update(self._quarter(row["time"]) for row in self.pool.rows("events", kind=kind) if row["subject"] in ids)
        last = max([*planned, *done, *(quarter for counts in closes.values() for quarter in counts)], default=0)
        for number in range(1, last + 1):
            late = closes["spilled"][number], closes["blocked"][number]
            yield Quarter(number, planned[number], done[number], Share(on_time[number], done[number]), *late, dropped[number])

    def _quarter(self, moment: str) -> int:
        """The quarter of the week that a moment lies in; what lies beyond the year counts to its last."""
        return self.calendar.weeks[min(bisect_left(self.sundays, moment[:10]), len(self.sundays) - 1)].quarter

    # ------------------------------------------------------------ completion
    def _tasks_completed(self) -> Completion:
        fallbacks = {row["task"] for row in self.results if row["quality"] == "fallback"}
        done = {row["id"] for row in self.tasks if row["status"] == "done"}
        return completion({row["id"] for row in self.tasks}, done, fallbacks)

    def _subtasks_completed(self) -> Completion:
        # A dropped subtask was superseded or handed over: its work goes on under another id.
        planned = {row["id"]: row["status"] for row in self.subtasks if row["status"] != "dropped"}
        fallbacks = {row["id"] for row in self.results if row["quality"] == "fallback"}
        return completion(planned, {name for name, status in planned.items() if status == "done"}, fallbacks)

    # ------------------------------------------------------------ what builds on what
    def _links(self, edges: set[tuple[str, str]]) -> tuple[Share, Share]:
        """(merged results after week 1 that use another task's, those of them that name one in their text)."""
        first = self.calendar.weeks[0].sunday.isoformat()
        later = {name for name, row in self.merged.items() if row["finished"][:10] > first}
        uses: dict[str, list[str]] = defaultdict(list)
        for user, used in sorted(edges):
            if user in later:
                uses[user].append(used)
        own: dict[str, set[str]] = defaultdict(set)
        for row in self.results:
            own[row["task"]].add(self._name(row["agent"]))
        texts = [
            Built(merged["content"], tuple(self._signed(used) for used in uses[user]), frozenset(own[merged["task"]]))
            for user, merged in self.merged.items()
            if user in uses
        ]
        return Share(len(uses), len(later)), naming_sources(texts)

    def _signed(self, result: str) -> tuple[str, str]:
        row = self.merged[result]
        return row["title"], self._name(row["agent"])

    def _name(self, agent: str) -> str:
        return str(self.agents[agent]["name"]) if agent in self.agents else ""


def _quarter_of_id(task: str) -> int:
    """Y1/Q2/M05/W19@owner/t3 -> 2"""
    part = task.split("@", 1)[0].split("/")
    return int(part[1][1:]) if len(part) > 1 else 0


def demanded(org: Organization, population: Population, calendar: WorkCalendar, weeks: int) -> dict[str, float]:
    """Subtasks that the workload asks of each executing role in the first `weeks` weeks.

    present hours x utilisation x demand / middle hours; an agent is present on working days on which it is not away, with its fte and
    its share for executing.  Absences that incidents bring are no part of it: it is what the organization file implies.
    """
    subtasks: dict[str, float] = defaultdict(float)
    for agent in population.agents:
        role = org.roles[agent.role]
        hours = present_days(agent, calendar, weeks) * org.calendar.hours * agent.fte * agent.executes
        if hours:
            subtasks[role.title] += hours * org.workload.utilisation * role.demand / role.middle_hours
    return dict(subtasks)


def present_days(agent: Agent, calendar: WorkCalendar, weeks: int) -> int:
    """Working days of the first `weeks` weeks on which the agent is not away."""
    until = sum(week.day_count for week in calendar.weeks[:weeks])
    return sum(not any(first <= day <= last for first, last in agent.away) for day in calendar.days[:until])


# ---------------------------------------------------------------- shown
def render(figures: Closing) -> RenderableType:
    """The figures as tables; a dash where there is no denominator."""
    parts: list[RenderableType] = [
        _heading(figures),
        _quarter_table(figures),
        _load_table(figures),
        _role_table(figures),
        *_divergences(figures),
    ]
    parts += [_step_table(figures), _completion(figures), _hub_table("Most built on", "used by", figures.most_used, figures)]
    parts += [_hub_table("Built on most", "uses", figures.most_using, figures), _texts(figures)]
    return Group(*parts)


def _heading(figures: Closing) -> Text:
    heading = Text.assemble((figures.organization, "bold"), f", {figures.weeks} week{'s' if figures.weeks != 1 else ''}")
    if figures.stand_in:
        count, of = figures.origins["scripted"], sum(figures.origins.values())
        heading.append(f"\n{STAND_IN}: no model wrote {count:,} of {of:,} results", "yellow")
    return heading


def _table(title: str, first: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(
        title=Text(title, "bold") if title else None, title_justify="left", box=None, pad_edge=False, padding=(0, 2, 0, 0), title_style=""
    )
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _under(title: str, says: str, table: Table) -> RenderableType:
    """A table under its title and a line that says what it counts."""
    return Group(Text(f"\n{title}", "bold"), Text(says, "dim"), table)


def _nats(value: float | None) -> str:
    return DASH if value is None else "∞" if math.isinf(value) else f"{value:.4f}"


def _of(share: Share) -> str:
    return f"{percent(share.value)} ({share.hits:,} of {share.of:,})"


def _quarter_table(figures: Closing) -> RenderableType:
    rows = [
        (f"Q{q.number}", f"{q.planned:,}", f"{q.done:,}", percent(q.on_time.value), f"{q.spilled:,}", f"{q.blocked:,}", f"{q.dropped:,}")
        for q in figures.quarters
    ]
    table = _table("", "quarter", ("planned", "done", "on time", "spilled", "blocked", "dropped"), rows)
    says = "done: by the quarter of finishing; planned, dropped: by that of planning; spilled, blocked: times at a close"
    return _under("Tasks by quarter", says, table)


def _load_table(figures: Closing) -> Table:
    rows = [(d.department or "(no department)", f"{d.available:,.0f}", f"{d.booked:,.0f}", percent(d.share)) for d in figures.loads]
    return _table("\nLoad by department", "department", ("hours available", "booked", "share"), rows)


def _role_table(figures: Closing) -> Table:
    rows = [(r.role, f"{r.executed:,}", percent(r.share, 1), percent(r.demand, 1), percent(r.reference, 1)) for r in figures.roles]
    return _table("\nExecuted subtasks by role", "role", ("subtasks", "share", "by demand", "reference"), rows)


def _divergences(figures: Closing) -> list[Text]:
    return [
        Text(_divergence("demand", figures.to_demand, "no work was asked for yet"), "dim"),
        Text(_divergence("reference", figures.to_reference, "no reference shares are given"), "dim"),
    ]


def _divergence(name: str, pair: KlPair, none: str) -> str:
    if pair.uniform is None:
        return f"KL to {name}: {none}"
    return f"KL to {name}: {_nats(pair.executed)} nats (uniform shares would have {_nats(pair.uniform)})"


def _step_table(figures: Closing) -> Table:
    rows = [
        (s.step, f"{s.calls:,}", percent(s.fallback.value, 1), f"{s.prompt_tokens:,}", f"{s.completion_tokens:,}") for s in figures.steps
    ]
    return _table("\nCalls by step", "step", ("calls", "fallback", "prompt tokens", "completion"), rows)


def _completion(figures: Closing) -> Text:
    lines = [
        f"\n{name} done: {_of(c.done)}" + (f"; without fallbacks {_of(c.without_fallback)}" if c.without_fallback != c.done else "")
        for name, c in (("Tasks", figures.tasks), ("Subtasks", figures.subtasks))
    ]
    total = sum(figures.qualities.values())
    quality = ", ".join(f"{name} {percent(count / total, 1)}" for name, count in figures.qualities.items()) or DASH
    return Text("".join(lines) + f"\nQuality of results: {quality}")


def _hub_table(title: str, degree: str, found: Sequence[Hub], figures: Closing) -> RenderableType:
    rows = [(f"{figures.titles[hub.id]} ({hub.id})", f"{hub.degree:,}") for hub in found]
    return _under(title, f"{degree}: so many merged results of other tasks", _table("", "merged result", (degree,), rows))


def _texts(figures: Closing) -> Text:
    return Text(
        f"\nTask titles distinct without digits, dates and names: {_of(figures.distinct)}"
        f"\nResults after week 1 that use another task's: {_of(figures.linked)}"
        f"\n  of these, naming it by title or author: {_of(figures.naming)}"
    )
