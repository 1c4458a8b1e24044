"""What does a result rest on, and what rests on it?  Entry point: `trace` (through `Pool.trace`), which answers with a `Trace`.

Walks results, tasks, plans and incidents both ways, each id once, to a bounded depth and breadth; what was cut is counted,
never silently left out.  Knows nothing of how a trace is shown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from taskweave.errors import BadInput
from taskweave.pool.plans import Fields, Plan, Rows, chain, heard, hearers, planned

DEPTH, BREADTH = 4, 12
NEAREST = 5  # ids that a message names


@dataclass(frozen=True, kw_only=True, slots=True)
class Link:
    """One step of a walk: what was met, how it is connected, and what follows from there.

    `kind` is result, subtask, task, state, incident, tool or environment.  `repeated`: its own links stand elsewhere in this walk.
    `hidden`: how many links of its own are not shown because of the bounds.
    """

    id: str
    kind: str
    how: str
    title: str
    by: str = ""
    when: str = ""
    quality: str = ""
    links: tuple[Link, ...] = ()
    repeated: bool = False
    hidden: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """Everything that explains one id.  `kind` is result, subtask, task, state, incident or entity; `entities` are what its task is about.

    `upward` is what it rests on, `downward` what rests on it; `plans` go from its own unit up to the root; `diagnosed` are the plans whose
    diagnosis rested on it; the `hidden_...` count direct links that were cut.
    """

    id: str
    kind: str
    result: Fields | None = None
    subtask: Fields | None = None
    task: Fields | None = None
    state: Fields | None = None
    incident: Fields | None = None
    entity: Fields | None = None
    entities: tuple[Fields, ...] = ()
    agent: Fields | None = None
    delegator: Fields | None = None
    prompt: str | None = None
    backbone: str | None = None
    goals: tuple[str, ...] = ()
    plans: tuple[Plan, ...] = ()
    incidents: tuple[Fields, ...] = ()
    calls: tuple[Fields, ...] = ()
    tool_calls: tuple[Fields, ...] = ()
    upward: tuple[Link, ...] = ()
    downward: tuple[Link, ...] = ()
    hidden_upward: int = 0
    hidden_downward: int = 0
    diagnosed: tuple[Plan, ...] = ()


_KINDS = {"results": "result", "subtasks": "subtask", "tasks": "task", "states": "state", "incidents": "incident", "entities": "entity"}


def resolve(pool: Rows, text: str) -> tuple[str, str]:
    """(id, kind) of a full id, or of an unambiguous end of one that begins after a `/` or `@`.

    Raises BadInput with the ids it could mean, or with the nearest.  A merged result has its task's id: the result is meant.
    """
    known: dict[str, str] = {}
    for table, kind in _KINDS.items():
        for identifier in pool.ids(table):
            known.setdefault(identifier, kind)
    if text in known:
        return text, known[text]
    ends = sorted(i for i in known if text and i.endswith(text) and i[-len(text) - 1] in "/@")
    if len(ends) == 1:
        return ends[0], known[ends[0]]
    if ends:
        more = f" and {len(ends) - NEAREST} more" if len(ends) > NEAREST else ""
        raise BadInput(f"{text!r} is the end of {len(ends)} ids: {', '.join(ends[:NEAREST])}{more}. Give more of it.")
    near = sorted(known, key=lambda i: (-_alike(i, text), i))[:NEAREST]
    raise BadInput(f"Nothing here has the id {text!r}. " + (f"Nearest: {', '.join(near)}" if near else "No week has been written yet."))


def _alike(a: str, b: str) -> int:
    """Bytes shared at both ends: a slip in the middle of a path leaves its ends."""
    return len(os.path.commonprefix([a, b])) + len(os.path.commonprefix([a[::-1], b[::-1]]))


def trace(pool: Rows, text: str, *, depth: int = DEPTH, breadth: int = BREADTH) -> Trace:
    """What an id rests on, and what rests on it.

    `text`: an id of a result, task, subtask, state or incident, or an unambiguous end of one.  Walks go `depth` links deep and show at
    most `breadth` links of a kind each.  Raises BadInput for an id that is not there.
    """
    identifier, kind = resolve(pool, text)
    result, subtask = pool.one("results", identifier), pool.one("subtasks", identifier)
    task = pool.one("tasks", _task_of(identifier, result, subtask))
    own_state = pool.one("states", identifier)
    ground = pool.one("provenance", identifier) or {}
    moment = _moment(pool, subtask, task, own_state)
    state = ground.get("state") or (task["state"] if task else identifier if own_state else None)
    plans = tuple(chain(pool, state, moment))
    walk = _Walk(pool, depth, breadth)
    upward, hidden_upward = walk.links(identifier, _upward)
    below = {"incident": _after, "entity": _about}.get(kind)
    downward, hidden_downward = walk.links(identifier, below(pool, identifier) if below else _downward)
    owner = (result or {}).get("agent") or (subtask or {}).get("assignee") or (own_state or {}).get("owner")
    delegator = ground.get("delegator") or (subtask or {}).get("delegator")
    return Trace(
        id=identifier,
        kind=kind,
        result=result,
        subtask=subtask,
        task=task,
        state=own_state,
        incident=pool.one("incidents", identifier),
        entity=pool.one("entities", identifier),
        entities=tuple(filter(None, (pool.one("entities", one) for one in (task or {}).get("entities") or ()))),
        agent=pool.one("agents", owner) if owner else None,
        delegator=pool.one("agents", delegator) if delegator else None,
        prompt=ground.get("prompt"),
        backbone=ground.get("backbone"),
        goals=tuple(ground.get("goals") or (task or {}).get("goals") or ()),
        plans=plans,
        incidents=tuple(heard(pool, _ids(identifier, task, plans), plans, moment, identifier if own_state else None)),
        calls=tuple(_calls(pool, ground.get("calls") or ())),
        tool_calls=tuple(pool.rows("tool_calls", result=identifier)),
        upward=upward,
        downward=downward,
        hidden_upward=hidden_upward,
        hidden_downward=hidden_downward,
        diagnosed=tuple(_diagnosed(pool, identifier, task if result else None)),
    )


# ---------------------------------------------------------------- what stands behind it
def _task_of(identifier: str, result: Fields | None, subtask: Fields | None) -> str:
    return str(result["task"] if result else subtask["task"] if subtask else identifier)


def _ids(identifier: str, task: Fields | None, plans: Iterable[Plan]) -> list[str]:
    return [identifier, *([task["id"]] if task else []), *(plan.id for plan in plans)]


def _moment(pool: Rows, subtask: Fields | None, task: Fields | None, state: Fields | None) -> str | None:
    """When the work was handed out: the plans in force then are the ones it followed."""
    if subtask:
        return str(subtask["created"])
    if task:
        return min((str(row["created"]) for row in pool.rows("subtasks", task=task["id"])), default=None)
    return state["since"] if state else None


def _calls(pool: Rows, sites: Iterable[str]) -> Iterator[Fields]:
    """The completions at these sites; a site may carry its ordinal, `site#1`."""
    for text in dict.fromkeys(sites):
        site, _, ordinal = text.partition("#")
        yield from pool.rows("calls", site=site, **({"ordinal": int(ordinal)} if ordinal.isdigit() else {}))


def _diagnosed(pool: Rows, identifier: str, task: Fields | None) -> Iterator[Plan]:
    """The states whose diagnosis rested on it: those that recorded its use, and the unit that its task was planned by."""
    units = {row["result"] for row in pool.rows("uses", used=identifier)} | ({task["state"]} if task else set())
    for unit in sorted(units):
        revisions = list(pool.rows("states", id=unit))
        said = [row for row in revisions if row["diagnosis"]]
        if said:
            yield planned(said[-1], len(revisions))


# ---------------------------------------------------------------- walking
class _Step(NamedTuple):
    """What is met next: its id and kind, how it is connected, and since when where the connection has a moment of its own."""

    id: str
    kind: str
    how: str
    when: str = ""


_Steps = Callable[[Rows, str], list[_Step]]


class _Walk:
    """A depth-first walk from one id; every id is opened once."""

    def __init__(self, pool: Rows, depth: int, breadth: int) -> None:
        self.pool, self.depth, self.breadth = pool, depth, breadth

    def links(self, start: str, steps: _Steps) -> tuple[tuple[Link, ...], int]:
        """(the links from `start`, how many direct ones were cut)."""
        return self._open(start, steps, self.depth, {start})

    def _open(self, identifier: str, steps: _Steps, depth: int, seen: set[str]) -> tuple[tuple[Link, ...], int]:
        found = steps(self.pool, identifier)
        if depth == 0:
            return (), len(found)
        shown = [step for kind in dict.fromkeys(step.kind for step in found) for step in self._first(found, kind)]
        new = {step.id for step in shown} - seen
        seen |= new  # a sibling is shown beside, not below
        links = []
        for used, kind, how, when in shown:
            below: tuple[Link, ...] = ()
            hidden, repeated = 0, used not in new
            if not repeated:
                new.discard(used)
                below, hidden = self._open(used, steps, depth - 1, seen)
            described = _described(self.pool, used, kind) | ({"when": when} if when else {})
            links.append(Link(id=used, kind=kind, how=how, links=below, hidden=hidden, repeated=repeated, **described))
        return tuple(links), len(found) - len(shown)

    def _first(self, found: list[_Step], kind: str) -> list[_Step]:
        return [step for step in found if step.kind == kind][: self.breadth]


def _upward(pool: Rows, identifier: str) -> list[_Step]:
    """What it was made from: recorded uses, the partials of a task, and for a state what its diagnosis saw."""
    steps = [_Step(row["used"], row["kind"], row["how"]) for row in pool.rows("uses", result=identifier)]
    have = {step.id for step in steps} | {identifier}
    for row in pool.rows("subtasks", task=identifier):
        if row["id"] not in have:
            done = pool.one("results", row["id"]) is not None
            steps.append(_Step(row["id"], "result" if done else "subtask", "partial" if done else row["status"]))
    if any(row["diagnosis"] for row in pool.rows("states", id=identifier)):
        steps += [_Step(row["id"], "task", "diagnosed") for row in pool.rows("tasks", state=identifier) if row["id"] not in have]
        if any(True for _ in pool.rows("calls", site=f"{identifier}:roll_up.1")):  # a run may leave that out
            steps += [_Step(child, "state", "rolled up") for child in _children(pool, identifier) if child not in have]
    return steps


def _downward(pool: Rows, identifier: str) -> list[_Step]:
    """What was made from it: results and states that used it, and for a state the work it planned and the units below."""
    steps = _users(pool, identifier)
    steps += [_Step(row["id"], "task", "planned") for row in pool.rows("tasks", state=identifier)]
    return steps + [_Step(child, "state", "planned") for child in _children(pool, identifier)]


def _users(pool: Rows, identifier: str) -> list[_Step]:
    used = pool.rows("uses", used=identifier)
    return [_Step(row["result"], "state" if pool.one("states", row["result"]) else "result", row["how"]) for row in used]


def _after(pool: Rows, incident: str) -> _Steps:
    """What rests on an incident: the states that heard it with what they planned from then on, and what was made because of it."""
    heard_at = hearers(pool, incident)

    def steps(pool: Rows, identifier: str) -> list[_Step]:
        if identifier == incident:
            used = _users(pool, incident)
            have = {step.id for step in used}
            return [*(_Step(state, "state", "heard", when) for state, when in heard_at.items() if state not in have), *used]
        if identifier not in heard_at:
            return _downward(pool, identifier)
        # Units below that heard it stand beside; what was planned before it does not rest on it.
        tasks = pool.rows("tasks", state=identifier)
        return [_Step(row["id"], "task", "planned") for row in tasks if _planned_at(pool, row) >= heard_at[identifier]]

    return steps


def _about(pool: Rows, entity: str) -> _Steps:
    """What there is of an entity: the tasks that are about it, and what was made of these."""
    tasks = [_Step(row["id"], "task", "is about it") for row in pool.rows("tasks", kind="composite") if entity in (row["entities"] or ())]

    def steps(pool: Rows, identifier: str) -> list[_Step]:
        return tasks if identifier == entity else _downward(pool, identifier)

    return steps


def _planned_at(pool: Rows, task: Fields) -> str:
    """When a task was handed out; an objective is planned where its unit opens."""
    opened = min((str(row["since"] or "") for row in pool.rows("states", id=task["state"])), default="")
    return _moment(pool, None, task, None) or opened


def _children(pool: Rows, state: str) -> list[str]:
    return list(dict.fromkeys(row["id"] for row in pool.rows("states", parent=state)))


def _described(pool: Rows, identifier: str, kind: str) -> dict[str, str]:
    table = {"result": "results", "subtask": "subtasks", "task": "tasks", "state": "states", "incident": "incidents"}.get(kind)
    row = pool.one(table, identifier) if table else None
    if row is None:
        return {"title": identifier if table else ""}
    if kind == "result":
        author = pool.one("agents", row["agent"])
        by = f"{author['name']}, {author['role']}" if author else row["agent"]
        return {"title": row["title"], "by": by, "when": row["finished"], "quality": row["quality"]}
    if kind == "subtask":
        return {"title": row["goal"], "by": row["assignee"] or "", "when": row["finished"] or ""}
    if kind == "state":
        return {"title": row["period"], "by": row["owner"]}
    return {"title": row["title"]}
