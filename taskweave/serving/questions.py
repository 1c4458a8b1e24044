"""What may be asked of a run's pool?  Entry point: `QUESTIONS`, typed functions like the tools of an organization.

Each takes a `View` and answers with JSON, in bounded pages.  They read closed weeks only, and nothing here can write.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Annotated, Any

from pydantic import Field

from taskweave.errors import BadInput, ToolRefused
from taskweave.org.calendar import WorkCalendar
from taskweave.org.form import nearest
from taskweave.org.organization import Organization
from taskweave.pool.pool import Pool
from taskweave.pool.search import Query
from taskweave.pool.trace import resolve
from taskweave.records import Json
from taskweave.report.trace import as_json
from taskweave.serving.pages import MOST_BYTES, MOST_ROWS, cut, fenced, page
from taskweave.tools.tool import Line, MaybeLine, Tool

MOST_CONTENT = 8_000  # characters of a deliverable in one answer
MOST_FOUND = 100  # results that one search ranks
EXCERPT = 300

First = Annotated[int, Field(ge=0, description="index of the first row; a page's `next` goes on")]
Most = Annotated[int, Field(ge=1, le=MOST_ROWS, description="the most rows of the page")]
AWeek = Annotated[int | None, Field(ge=1, le=60, description="number of a week in the run's year")]


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a question sees: the pool as it stands now, and the organization as it was when the run began."""

    run: str
    pool: Pool
    org: Organization
    calendar: WorkCalendar


class Question(Tool):
    """A tool that reads the pool; arguments with a default may be left out."""

    @cached_property
    def schema(self) -> dict[str, Json]:
        told = self.arguments.model_json_schema()
        told.pop("title", None)
        for one in told.get("properties", {}).values():
            one.pop("title", None)
        return {"type": "object", "properties": {}, **told, "additionalProperties": False}


def _about(view: View) -> Json:
    """What this run is: the organization, its goals, how many weeks are closed, and how much there is to read."""
    pool, org = view.pool, view.org
    weeks = pool.weeks()
    last = view.calendar.weeks[max(weeks) - 1] if weeks else None
    origins = Counter(row["origin"] for row in pool.rows("results"))
    tables = ("agents", "states", "tasks", "subtasks", "results", "incidents", "tool_calls")
    return {
        "run": view.run,
        "organization": org.name,
        "domain": org.domain,
        "description": cut(org.description),
        "departments": {name: department.head for name, department in org.departments.items()},
        "goals": {name: goal.text for name, goal in org.goals.items()},
        "weeks_closed": max(weeks, default=0),
        "from": view.calendar.spec.start.isoformat(),
        "until": last.sunday.isoformat() if last else None,
        "rows": {table: sum(1 for _ in pool.rows(table)) for table in tables},
        # What a run without a model wrote is no finding about any model.
        "scripted_stand_in": bool(origins["scripted"]),
    }


def _search(
    view: View,
    text: MaybeLine = "",
    role: MaybeLine = "",
    department: MaybeLine = "",
    kind: MaybeLine = "",
    goal: MaybeLine = "",
    since_week: AWeek = None,
    until_week: AWeek = None,
    first: First = 0,
    most: Most = 10,
) -> Json:
    """Search the finished deliverables of composite tasks by their words, best first; without a text the latest come first.

    `role`, `department`, `kind` (of the deliverable) and `goal` narrow it.  Read one whole with run_result.
    """
    role = _known("role", role, view.org.roles)
    department = _known("department", department, view.org.departments)
    goal = _known("goal", goal, view.org.goals)
    agents = {row["id"]: row for row in view.pool.rows("agents")}
    if text:
        query = Query(text, role or None, department or None, kind or None, goal or None, since_week, until_week)
        ids = view.pool.search(query, MOST_FOUND)
    else:
        ids = [
            row["id"]
            for row in sorted(_merged(view), key=lambda row: (row["finished"], row["id"]), reverse=True)
            if _fits(view, row, agents, role=role, department=department, kind=kind, goal=goal, since=since_week, until=until_week)
        ]
    found = [row for id in ids if (row := view.pool.one("results", id)) is not None]
    return page([_result_line(row, agents) for row in found], first, most)


def _result(view: View, id: Line, from_character: Annotated[int, Field(ge=0)] = 0) -> Json:
    """One result with its content, who made it, from what, and for which plan and goals; `id` may be the end of an id.

    A long content comes in parts: `next_character` goes on.
    """
    row = view.pool.one("results", _resolved(view, id, "result"))
    assert row is not None
    content = row.pop("content")
    until = from_character + MOST_CONTENT
    agents = {one["id"]: one for one in view.pool.rows("agents")}
    provenance = view.pool.one("provenance", row["id"]) or {}
    calls = list(view.pool.rows("tool_calls", result=row["id"]))
    return {
        **row,
        "author": _person(agents, row["agent"]),
        "delegator": _person(agents, provenance.get("delegator")),
        "content": content[from_character:until],
        "next_character": until if until < len(content) else None,
        "provenance": cut(provenance),
        "rests_on": page([{k: use[k] for k in ("used", "kind", "how")} for use in view.pool.rows("uses", result=row["id"])], 0, MOST_ROWS),
        "tool_calls": [
            cut({"id": one["id"], "tool": one["tool"], "arguments": one["arguments"], "outcome": one["outcome"]}) for one in calls
        ],
    }


def _trace(view: View, id: Line, depth: Annotated[int, Field(ge=0, le=6)] = 2, breadth: Annotated[int, Field(ge=1, le=20)] = 6) -> Json:
    """What a result, task, subtask, plan or incident rests on, and what rests on it; `id` may be the end of an id.

    `depth` links far, `breadth` of a kind each; what is hidden is counted, and less is shown where all would be too much.
    """
    while True:
        try:
            told = as_json(view.pool.trace(id, depth=depth, breadth=breadth))
        except BadInput as unknown:
            raise ToolRefused(str(unknown)) from None
        told = {"depth": depth, "breadth": breadth, **{name: part for name, part in cut(told, EXCERPT).items() if part not in (None, [])}}
        if len(fenced(told).encode()) <= MOST_BYTES or (depth <= 1 and breadth == 1):
            return json.loads(json.dumps(told))
        depth, breadth = (depth - 1, breadth) if depth > 1 else (depth, breadth // 2)


def _tasks(
    view: View,
    unit: MaybeLine = "",
    week: AWeek = None,
    owner: MaybeLine = "",
    status: MaybeLine = "",
    goal: MaybeLine = "",
    first: First = 0,
    most: Most = 20,
) -> Json:
    """The tasks of a planning unit (its id or the end of it), or of a week, of an owner, of a status, that serve a goal."""
    states = {row["id"]: row for row in view.pool.rows("states")}
    wanted = {_resolved(view, unit, "state")} if unit else set(states)
    if week is not None:
        wanted = {id for id in wanted if _week_of(id) == week}
    if owner:
        owner = _agent(view, owner)
        wanted = {id for id in wanted if id in states and states[id]["owner"] == owner}
    goal = _known("goal", goal, view.org.goals)
    rows = [
        row
        for row in view.pool.rows("tasks")
        if row["state"] in wanted and (not status or row["status"] == status.casefold()) and (not goal or goal in row["goals"])
    ]
    return page(rows, first, most)


def _task(view: View, id: Line) -> Json:
    """One task with its subtasks - who does what, why them, in how many hours - and the results it has; `id` may be the end of an id."""
    found = _resolved(view, id, "task", "result", "subtask")
    part = view.pool.one("results", found) or view.pool.one("subtasks", found)
    row = view.pool.one("tasks", part["task"] if part else found)
    if row is None:
        raise ToolRefused(f"{found!r} belongs to recurring work, which has cases and no tasks: read it with run_result or run_trace")
    agents = {one["id"]: one for one in view.pool.rows("agents")}
    results = list(view.pool.rows("results", task=row["id"]))
    return {
        **cut(row),
        "subtasks": page(list(view.pool.rows("subtasks", task=row["id"])), 0, MOST_ROWS),
        "results": page([_result_line(one, agents) for one in results], 0, MOST_ROWS),
    }


def _units(
    view: View,
    level: Annotated[str, Field(pattern="^(|year|quarter|month|week)$")] = "",
    owner: MaybeLine = "",
    week: AWeek = None,
    first: First = 0,
    most: Most = 20,
) -> Json:
    """Planning units (a period and its owner) by level, owner or week, each with the beginning of its latest plan."""
    owner = _agent(view, owner) if owner else ""
    latest: dict[str, Mapping[str, Json]] = {row["id"]: row for row in view.pool.rows("states")}  # of revisions the last
    rows = [
        {**row, "plan": cut(row["plan"], EXCERPT), "diagnosis": cut(row["diagnosis"], EXCERPT)}
        for row in latest.values()
        if (not level or row["level"] == level) and (not owner or row["owner"] == owner) and (week is None or _week_of(row["id"]) == week)
    ]
    return page(rows, first, most)


def _unit(view: View, id: Line) -> Json:
    """One planning unit: its plan, its diagnosis, how these were revised, the unit above, those below and its tasks by status."""
    found = _resolved(view, id, "state")
    revisions = list(view.pool.rows("states", id=found))
    last = revisions[-1]
    return {
        **cut(last, MOST_CONTENT // 2),
        "earlier_revisions": page([{k: one[k] for k in ("revision", "since", "plan", "diagnosis")} for one in revisions[:-1]], 0, 10),
        "below": sorted({row["id"] for row in view.pool.rows("states", parent=found)})[:MOST_ROWS],
        "tasks": dict(sorted(Counter(row["status"] for row in view.pool.rows("tasks", state=found)).items())),
    }


def _readings(
    view: View, kpi: MaybeLine = "", since_week: AWeek = None, until_week: AWeek = None, first: First = 0, most: Most = 50
) -> Json:
    """The key figures of the environment, week by week."""
    kpi = _known("key figure", kpi, view.org.environment)
    rows = [row for row in view.pool.rows("readings") if (not kpi or row["kpi"] == kpi) and _within(row["week"], since_week, until_week)]
    units = {name: figure.unit for name, figure in view.org.environment.items()}
    return {"units": units, **page(rows, first, most)}


def _goals(view: View, goal: MaybeLine = "", first: First = 0, most: Most = 50) -> Json:
    """The organization's goals - text, key figure, target, due date, owner - and their progress week by week, the latest first."""
    goal = _known("goal", goal, view.org.goals)
    named = {name: one.model_dump(mode="json") for name, one in view.org.goals.items() if not goal or name == goal}
    rows = sorted((row for row in view.pool.rows("goals") if row["goal"] in named), key=lambda row: (-row["week"], row["goal"]))
    return {"goals": cut(named), **page(rows, first, most)}


def _incidents(view: View, category: MaybeLine = "", severity: MaybeLine = "", first: First = 0, most: Most = 20) -> Json:
    """What happened to the organization from outside or within: incidents, whom they affect, from when to when, and their effects."""
    rows = [
        row
        for row in view.pool.rows("incidents")
        if (not category or row["category"] == category.casefold()) and (not severity or row["severity"] == severity.casefold())
    ]
    return page(rows, first, most)


def _agents(view: View, role: MaybeLine = "", department: MaybeLine = "", first: First = 0, most: Most = 20) -> Json:
    """Who works here: name, role, tier, department and persona."""
    role, department = _known("role", role, view.org.roles), _known("department", department, view.org.departments)
    rows = [
        row for row in view.pool.rows("agents") if (not role or row["role"] == role) and (not department or row["department"] == department)
    ]
    return page(rows, first, most)


# ---------------------------------------------------------------- inside
def _question(name: str, function: Callable[..., Json]) -> Question:
    return Question(name=name, function=function, writes=False)


_ALL: dict[str, Callable[..., Json]] = {
    "run_about": _about,
    "run_search": _search,
    "run_result": _result,
    "run_trace": _trace,
    "run_tasks": _tasks,
    "run_task": _task,
    "run_units": _units,
    "run_unit": _unit,
    "run_readings": _readings,
    "run_goals": _goals,
    "run_incidents": _incidents,
    "run_agents": _agents,
}
QUESTIONS: dict[str, Question] = {name: _question(name, function) for name, function in _ALL.items()}


def _known(what: str, given: str, names: Iterable[str]) -> str:
    """The name as the organization writes it, "" for none; raises ToolRefused with the nearest."""
    listed = list(names)
    found = next((name for name in listed if name.casefold() == given.casefold()), None)
    if given and found is None:
        raise ToolRefused(f"there is no {what} {given!r}{nearest(given, listed)}")
    return found or ""


def _agent(view: View, given: str) -> str:
    """The id of an agent, by id or name."""
    agents = {row["id"]: row["name"] for row in view.pool.rows("agents")}
    called: dict[str, str] = {**{name.casefold(): id for id, name in agents.items()}, **{id: id for id in agents}}
    if given.casefold() not in called:
        raise ToolRefused(f"nobody here is called {given!r}{nearest(given, agents)}")
    return called[given.casefold()]


def _resolved(view: View, text: str, *kinds: str) -> str:
    try:
        found, kind = resolve(view.pool, text)
    except BadInput as unknown:
        raise ToolRefused(str(unknown)) from None
    if kind not in kinds:
        raise ToolRefused(f"{found!r} is a {kind}, and a {kinds[0]} is asked for; run_trace takes any id")
    return found


def _merged(view: View) -> list[dict[str, Any]]:
    return list(view.pool.rows("results", subtask=None))


def _fits(
    view: View,
    row: Mapping[str, Json],
    agents: Mapping[str, Mapping[str, Json]],
    *,
    role: str,
    department: str,
    kind: str,
    goal: str,
    since: int | None,
    until: int | None,
) -> bool:
    """Whether a result is among those that a search with these filters looks at."""
    who = agents.get(row["agent"], {})
    if (role and who.get("role") != role) or (department and who.get("department") != department):
        return False
    if kind and row["artifact"].casefold() != kind.casefold():
        return False
    if goal and goal not in ((view.pool.one("tasks", row["task"]) or {}).get("goals") or ()):
        return False
    return _within(finished_week(view.calendar, row["finished"]), since, until)


def finished_week(calendar: WorkCalendar, moment: str) -> int:
    """The number of the week in which a simulated moment lies; the last one for what lies beyond the year."""
    week = calendar.week_of_date(date.fromisoformat(moment[:10]))
    return week.number if week is not None else calendar.weeks[-1].number


def _within(week: int, since: int | None, until: int | None) -> bool:
    return (since is None or week >= since) and (until is None or week <= until)


def _week_of(state: str) -> int | None:
    found = re.search(r"/W([0-9]+)@", state)
    return int(found[1]) if found else None


def _result_line(row: Mapping[str, Json], agents: Mapping[str, Mapping[str, Json]]) -> dict[str, Json]:
    names = ("id", "title", "artifact", "task", "finished", "quality", "origin")
    return {**{name: row[name] for name in names}, "author": _person(agents, row["agent"]), "excerpt": cut(row["content"], EXCERPT)}


def _person(agents: Mapping[str, Mapping[str, Json]], id: str | None) -> Json:
    if id is None:
        return None
    return {"id": id, **{name: agents[id][name] for name in ("name", "role")}} if id in agents else {"id": id}
