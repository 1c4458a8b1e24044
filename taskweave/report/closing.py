"""How did the run go?  Entry points: `closing` (the figures) and `render` (tables that a manager reads in 80 columns).

The figures come from run.db, the organization and its population; the formulas are in `figures` and `evaluation.text`.
Writes nothing and refuses to know how the run was made.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from taskweave.evaluation.text import Built, Share, distinct_titles, naming_sources
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Agent, Population
from taskweave.org.recurring import expected_hours
from taskweave.pool.pool import Pool
from taskweave.records import STEPS, Json
from taskweave.report.figures import (
    Answers,
    Completion,
    DepartmentLoad,
    Hub,
    KlPair,
    Quarter,
    RoleShare,
    StepCalls,
    answers,
    completion,
    divergence,
    hubs,
    loads,
    role_shares,
    step_calls,
    task_edges,
)
from taskweave.report.recurring import Cases, case_logs, cases
from taskweave.report.trace import STAND_IN
from taskweave.report.wording import DASH, percent
from taskweave.runs.folder import Tenure


class Closing(NamedTuple):
    """A run in figures.

    `origins` and `qualities` count results, `steps` and `backbones` calls, `answers` structured questions by step and level;
    `to_demand_as_named` and `to_reference_as_named` leave out subtasks whose role code chose.  `linked` are merged results after week 1
    that use a result of another task, `naming` those of them whose text names one by title or author; `titles` of merged results by id.
    `without` are the parts of the loop that the run leaves out; `cases` are those of recurring work.
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
    to_demand_as_named: KlPair
    to_reference_as_named: KlPair
    steps: tuple[StepCalls, ...]
    backbones: tuple[StepCalls, ...]
    answers: tuple[Answers, ...]
    answers_by_backbone: tuple[Answers, ...]
    tasks: Completion
    subtasks: Completion
    most_used: tuple[Hub, ...]
    most_using: tuple[Hub, ...]
    titles: dict[str, str]
    distinct: Share
    linked: Share
    naming: Share
    without: tuple[str, ...] = ()
    cases: tuple[Cases, ...] = ()

    @property
    def stand_in(self) -> bool:
        """Whether any text is the scripted stand-in's."""
        return self.origins.get("scripted", 0) > 0


def closing(
    pool: Pool,
    org: Organization,
    population: Population,
    told: Sequence[Sequence[Json]] = (),
    without: Sequence[str] = (),
    later: Sequence[Tenure] = (),
) -> Closing:
    """The figures of a run, finished or not, up to the last week written; `told` are the answers as that week's facts count them.

    `later` are the organizations that held after the first, and their people.
    """
    with pool.snapshot():
        return _Reading(pool, org, population, later).closing(told)._replace(without=tuple(without))


class _Reading:
    """The rows that several figures share, read once."""

    def __init__(self, pool: Pool, org: Organization, population: Population, later: Sequence[Tenure]) -> None:
        self.pool, self.org, self.population, self.later = pool, org, population, later
        self.calendar = WorkCalendar(org.calendar)
        self.agents = {row["id"]: row for row in pool.rows("agents")}
        self.tasks = [row for row in pool.rows("tasks") if row["kind"] == "composite"]
        self.subtasks = list(pool.rows("subtasks"))
        self.results = list(pool.rows("results"))
        self.merged = {row["id"]: row for row in self.results if row["subtask"] is None}
        self.weeks = max(pool.weeks(), default=0)
        self.sundays = [week.sunday.isoformat() for week in self.calendar.weeks]

    def closing(self, told: Sequence[Sequence[Json]]) -> Closing:
        done = [row for row in self.subtasks if row["status"] == "done"]
        executed = Counter(self._role(row["assignee"]) for row in done)
        as_named = Counter(self._role(row["assignee"]) for row in done if _named(row))
        demand = self._demanded()
        reference = {
            title: role.share for org in (*(one.organization for one in self.later), self.org) for title, role in org.roles.items()
        }
        edges = task_edges(self.pool.rows("uses"), {row["id"]: row["task"] for row in self.results}, self.merged)
        calls = list(self.pool.rows("calls"))
        used, using = hubs(edges)
        linked, naming = self._links(edges)
        return Closing(
            organization=self.org.name,
            weeks=self.weeks,
            origins=dict(sorted(Counter(row["origin"] for row in self.results).items())),
            qualities=dict(sorted(Counter(row["quality"] for row in self.results).items())),
            quarters=tuple(self._quarters()),
            loads=tuple(loads(self.pool.rows("load"), {agent: row["department"] for agent, row in self.agents.items()})),
            roles=tuple(role_shares(executed, demand, reference, dict.fromkeys([*self.org.roles, *reference, *sorted(executed)]))),
            to_demand=divergence(executed, demand | dict.fromkeys(executed.keys() - demand.keys(), 0.0)),
            to_reference=divergence(executed, reference),
            to_demand_as_named=divergence(as_named, demand | dict.fromkeys(as_named.keys() - demand.keys(), 0.0)),
            to_reference_as_named=divergence(as_named, reference),
            steps=tuple(step_calls(calls)),
            backbones=tuple(step_calls(calls, by="backbone")),
            answers=tuple(answers(told, by=("step", "level"))),
            answers_by_backbone=tuple(answers(told, by=("backbone",))),
            tasks=self._tasks_completed(),
            subtasks=self._subtasks_completed(),
            most_used=tuple(used),
            most_using=tuple(using),
            titles={row["id"]: row["title"] for row in self.merged.values()},
            distinct=distinct_titles([row["title"] for row in self.tasks], [*(row["name"] for row in self.agents.values()), self.org.name]),
            linked=linked,
            naming=naming,
            cases=self._cases(),
        )

    def _demanded(self) -> dict[str, float]:
        """What each organization asked of its roles in the weeks in which it held."""
        ends = [*(one.week - 1 for one in self.later), self.weeks]
        found = Counter(demanded(self.org, self.population, self.calendar, min(ends[0], self.weeks)))
        for one, end in zip(self.later, ends[1:], strict=True):
            if (until := min(end, self.weeks)) >= one.week:
                found.update(demanded(one.organization, one.population, self.calendar, until, since=one.week))
        return dict(found)

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
        fallbacks = {row["task"] for row in (*self.subtasks, *self.results) if row["quality"] == "fallback"}
        fallbacks |= {row["id"] for row in self.tasks if row["quality"] == "fallback"}
        done = {row["id"] for row in self.tasks if row["status"] == "done"}
        return completion({row["id"] for row in self.tasks}, done, fallbacks)

    def _subtasks_completed(self) -> Completion:
        # A dropped subtask was superseded or handed over: its work goes on under another id.
        planned = {row["id"]: row["status"] for row in self.subtasks if row["status"] != "dropped"}
        fallbacks = {row["id"] for row in (*self.subtasks, *self.results) if row["quality"] == "fallback"}
        return completion(planned, {name for name, status in planned.items() if status == "done"}, fallbacks)

    def _cases(self) -> tuple[Cases, ...]:
        return cases(case_logs(self.pool.rows("events"), self.calendar)) if any(self.pool.rows("events", kind="arrive")) else ()

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


def _named(subtask: Mapping[str, Json]) -> bool:
    """Whether its role is the one that a backbone named: not filled by code, nor routed from a name that there is not."""
    named = subtask["proposed"] or ""
    return bool(subtask["quality"] != "fallback" and named.casefold().strip() == subtask["role"].casefold())


def _quarter_of_id(task: str) -> int:
    """Y1/Q2/M05/W19@owner/t3 -> 2"""
    part = task.split("@", 1)[0].split("/")
    return int(part[1][1:]) if len(part) > 1 else 0


def demanded(org: Organization, population: Population, calendar: WorkCalendar, weeks: int, *, since: int = 1) -> dict[str, float]:
    """Subtasks that the workload asks of each executing role from week `since`, the first, up to week `weeks`.

    (present hours x utilisation x demand - hours of recurring work) / middle hours; an agent is present on working days on which it is not
    away, with its fte and its share for executing.  Absences that incidents bring are no part of it: it is what the file implies.
    """
    subtasks: dict[str, float] = defaultdict(float)
    for agent in population.agents:
        role = org.roles[agent.role]
        hours = (
            (present_days(agent, calendar, weeks) - present_days(agent, calendar, since - 1))
            * org.calendar.hours
            * agent.fte
            * agent.executes
        )
        if hours:
            subtasks[role.title] += hours * org.workload.utilisation * role.demand / role.middle_hours
    for week in calendar.weeks[since - 1 : weeks]:
        for title, hours in expected_hours(org, calendar, week).items():
            subtasks[title] -= hours / org.roles[title].middle_hours
    for title in subtasks:
        subtasks[title] = max(0.0, subtasks[title])
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
        *_case_table(figures),
        _role_table(figures),
        *_divergences(figures),
    ]
    parts += [
        _step_table(figures),
        *_backbone_table(figures),
        _answer_table(figures),
        _completion(figures),
        _hub_table("Most built on", "used by", figures.most_used, figures),
    ]
    parts += [_hub_table("Built on most", "uses", figures.most_using, figures), _texts(figures)]
    return Group(*parts)


def _heading(figures: Closing) -> Text:
    heading = Text.assemble((figures.organization, "bold"), f", {figures.weeks} week{'s' if figures.weeks != 1 else ''}")
    if figures.without:
        heading.append(f"\nwithout {', '.join(figures.without)}", "yellow")
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


def _case_table(figures: Closing) -> list[RenderableType]:
    rows = [(c.name, f"{c.arrived:,}", f"{c.completed:,}", f"{c.open:,}", _hours(c.waited), _hours(c.worked)) for c in figures.cases]
    says = "waited, worked: working hours of a completed case on average; open: when the last week closed"
    table = _table("", "work", ("arrived", "completed", "open", "waited", "worked"), rows)
    return [_under("Recurring work", says, table)] if rows else []


def _hours(value: float | None) -> str:
    return DASH if value is None else f"{value:,.1f}"


def _role_table(figures: Closing) -> Table:
    rows = [(r.role, f"{r.executed:,}", percent(r.share, 1), percent(r.demand, 1), percent(r.reference, 1)) for r in figures.roles]
    return _table("\nExecuted subtasks by role", "role", ("subtasks", "share", "by demand", "reference"), rows)


def _divergences(figures: Closing) -> list[Text]:
    pairs = (
        ("demand", figures.to_demand, figures.to_demand_as_named, "no work was asked for yet"),
        ("reference", figures.to_reference, figures.to_reference_as_named, "no reference shares are given"),
    )
    return [Text(_divergence(*pair), "dim") for pair in pairs]


def _divergence(name: str, pair: KlPair, as_named: KlPair, none: str) -> str:
    if pair.uniform is None:
        return f"KL to {name}: {none}"
    without = f"; {_nats(as_named.executed)} without roles that code chose" if as_named.executed != pair.executed else ""
    return f"KL to {name}: {_nats(pair.executed)} nats (uniform shares would have {_nats(pair.uniform)}){without}"


def _step_table(figures: Closing) -> Table:
    return _table("\nCalls by step", "step", ("calls", "prompt tokens", "completion"), map(_calls, figures.steps))


def _calls(used: StepCalls) -> tuple[str, ...]:
    return used.name, f"{used.calls:,}", f"{used.prompt_tokens:,}", f"{used.completion_tokens:,}"


def _backbone_table(figures: Closing) -> list[Table]:
    """What each backbone took, where there is more than one."""
    if len(figures.backbones) < 2:
        return []
    shares = {one.backbone: one.fallback_share for one in figures.answers_by_backbone}
    rows = [(*_calls(used), percent(shares.get(used.name), 1)) for used in figures.backbones]
    return [_table("\nBy backbone", "backbone", ("calls", "prompt tokens", "completion", "fallback"), rows)]


def _answer_table(figures: Closing) -> RenderableType:
    """By step and level: a share of all would hide a step that fails at one level only.  A dash where nothing was asked."""
    rows = []
    for step in dict.fromkeys([*STEPS, *(one.step for one in figures.answers)]):
        found = [one for one in figures.answers if one.step == step] or [Answers(step, "any level", "", 0, 0, 0)]
        rows += [(f"{one.step}, {one.level}", f"{one.asked:,}", *_answer_shares(one)) for one in found]
    for total in answers(figures.answers, by=()):
        rows.append(("all", f"{total.asked:,}", *_answer_shares(total)))
    says = "repaired: code had to mend the answer, or it was asked for again; fallback: code had to make it, or a part of it"
    return _under("Answers by step and level", says, _table("", "step and level", ("asked", "at once", "repaired", "fallback"), rows))


def _answer_shares(one: Answers) -> tuple[str, ...]:
    return tuple(percent(count / one.asked if one.asked else None, 1) for count in (one.at_once, one.repaired, one.fallback))


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
