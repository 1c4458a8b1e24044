"""Rows for tests of run.db: a few values a test is about, the rest plausible."""

from __future__ import annotations

from taskweave.pool.tables import Row
from taskweave.records import Json

UNIT = "Y1/Q1/M01/W01@cto"
WELL = {"quality": "ok", "origin": "scripted"}


def agent(identifier: str, role: str, *, department: str | None = "Product", name: str | None = None, tier: int = 2) -> Row:
    row = {"id": identifier, "name": name or identifier.title(), "role": role, "tier": tier, "department": department, "persona": {}}
    return "agents", row


def state(identifier: str, parent: str | None = None, *, revision: int = 1, since: str | None = None, **more: Json) -> Row:
    period, owner = identifier.split("@")
    level = ("year", "quarter", "month", "week")[period.count("/")]
    row = {"id": identifier, "level": level, "period": period, "owner": owner, "parent": parent, "revision": revision, "since": since}
    return "states", {**row, "plan": f"plan {revision} of {identifier}", "diagnosis": None, **WELL, **more}


def task(identifier: str, *, unit: str | None = None, title: str = "A task", goals: tuple[str, ...] = (), **more: Json) -> Row:
    row = {"id": identifier, "state": unit or identifier.rsplit("/", 1)[0], "kind": "composite", "activity": "analyse", "title": title}
    rest = {
        "description": "",
        "priority": "normal",
        "goals": list(goals),
        "planned_hours": 10,
        "status": "done",
        "done_on_time": True,
        **WELL,
    }
    return "tasks", {**row, **rest, **more}


def subtask(identifier: str, *, role: str = "Backend Engineer", assignee: str = "ada", status: str = "done", **more: Json) -> Row:
    row = {"id": identifier, "task": identifier.rsplit("/", 1)[0], "goal": f"goal of {identifier}", "activity": "implement", "role": role}
    rest = {
        "assignee": assignee,
        "delegator": "cto",
        "why": "match 0.81",
        "hours": 6,
        "status": status,
        "created": "2026-01-05T09:00",
        **WELL,
    }
    return "subtasks", {**row, **rest, **more}


def result(identifier: str, *, merged: bool = False, by: str = "ada", title: str = "A result", content: str = "Text.", **more: Json) -> Row:
    row = {"id": identifier, "task": identifier if merged else identifier.rsplit("/", 1)[0], "subtask": None if merged else identifier}
    rest = {"agent": by, "artifact": "report", "title": title, "content": content, "finished": "2026-01-06T11:30", "quality": "ok"}
    return "results", {**row, **rest, "origin": "scripted", **more}


def use(result_id: str, used: str, how: str = "explicit", kind: str = "result") -> Row:
    return "uses", {"result": result_id, "used": used, "kind": kind, "how": how}


def ground(result_id: str, unit: str, *, calls: tuple[str, ...] = (), goals: tuple[str, ...] = (), **more: Json) -> Row:
    row = {"result": result_id, "state": unit, "goals": list(goals), "prompt": "execute 1 abc123", "backbone": "scripted"}
    return "provenance", {**row, "agent": "ada", "delegator": "cto", "calls": list(calls), **more}


def call(site: str, ordinal: int = 0, *, prompt: str = "execute", fallback: bool = False, **more: Json) -> Row:
    row = {"site": site, "ordinal": ordinal, "draw": 0, "prompt": prompt, "backbone": "scripted", "prompt_tokens": 900}
    return "calls", {**row, "completion_tokens": 120, "latency": 0.0, "rung": "json_schema", "fallback": fallback, **more}


def event(seq: int, kind: str, subject: str, time: str = "2026-01-06T11:30") -> Row:
    return "events", {"seq": seq, "time": time, "kind": kind, "actor": "ada", "subject": subject, "object": None, "case": None}


def load(week: int, agent_id: str, available: float, booked: float) -> Row:
    return "load", {"week": week, "agent": agent_id, "available": available, "booked": booked, "spilled": 0}
