"""Which plans and incidents stood behind work that was handed out at some moment, and which plans heard an incident?

Entry points: `chain`, `heard`, `hearers`, `concerns`, `names_below`.

Asks the pool for rows; knows nothing of walks and results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from taskweave.records import Json

Fields = dict[str, Json]  # one row, by column


class Rows(Protocol):
    """What a trace asks of the pool."""

    def rows(self, table: str, **where: Json) -> Iterator[Fields]: ...
    def one(self, table: str, key: Json) -> Fields | None: ...
    def ids(self, table: str) -> list[str]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A planning state in the revision that was in force, of `revisions`."""

    id: str
    level: str
    period: str
    owner: str
    revision: int
    revisions: int
    plan: str
    diagnosis: str | None


def chain(pool: Rows, state: str | None, moment: str | None) -> Iterator[Plan]:
    """The unit's plan, its parent's, ... up to the root."""
    seen: set[str] = set()
    while state and state not in seen:
        seen.add(state)
        revisions = list(pool.rows("states", id=state))
        if not revisions:
            return
        row = _in_force(revisions, moment)
        yield planned(row, len(revisions))
        state = row["parent"]


def _in_force(revisions: Sequence[Fields], moment: str | None) -> Fields:
    """The last revision made by then; the first where the moment or its making is not known."""
    if moment is None:
        return revisions[0]
    made = [row for row in revisions if row["since"] is not None and row["since"] <= moment]
    return made[-1] if made else revisions[0]


def planned(row: Fields, revisions: int) -> Plan:
    """One revision of a state, of so many."""
    names = ("id", "level", "period", "owner", "revision", "plan", "diagnosis")
    return Plan(**{name: row[name] for name in names}, revisions=revisions)


def heard(pool: Rows, ids: Collection[str], plans: Sequence[Plan], moment: str | None, state: str | None = None) -> list[Fields]:
    """Incidents that these ids recorded as used, that were in force at the moment for the owner of any of the plans, or that `state` heard.

    An incident is in force from the day on which it was heard of up to, but not on, the date `until`: for the agents it names (by id,
    name, role or department) and for all above them.
    """
    recorded = {row["used"] for identifier in ids for row in pool.rows("uses", result=identifier, kind="incident")}
    names: dict[str, set[str]] = {}
    found = []
    for row in pool.rows("incidents"):
        since = _since(pool, row)
        if row["id"] in recorded or (state and state in hearers(pool, row["id"])):
            found.append(row)
        elif since and moment and since <= moment[:10] < (row["until"] or ""):
            names = names or _called(pool)
            if any(concerns(row, names, plan.owner) for plan in plans):
                found.append(row)
    return found


def hearers(pool: Rows, incident: str) -> dict[str, str]:
    """The states that heard an incident, with the moment of the first revision that did, in the order of these moments.

    A revision hears what is in force on the day on which it is made; a closing's is dated from the next morning, and made the day before.
    """
    row = pool.one("incidents", incident)
    since = _since(pool, row) if row else None
    if row is None or since is None:
        return {}
    names = _called(pool)
    closed = sorted({event["time"][:10] for event in pool.rows("events", kind="close")})
    again = {(event["subject"], event["time"]) for event in pool.rows("events", kind="replan")}
    found: dict[str, str] = {}
    for state in pool.rows("states"):
        moment = state["since"]
        if moment is None or state["id"] in found or not concerns(row, names, state["owner"]):
            continue
        opening = state["revision"] == 1 or (state["id"], moment) in again
        day = moment[:10] if opening else max((day for day in closed if day < moment[:10]), default=moment[:10])
        if since <= day < (row["until"] or ""):
            found[state["id"]] = moment
    return dict(sorted(found.items(), key=lambda one: (one[1], one[0])))


def _since(pool: Rows, incident: Fields) -> str | None:
    """The day from which on an incident was heard."""
    times = (row["time"] for row in pool.rows("events", kind="incident", subject=incident["id"]))
    moment = incident["since"] or min(times, default=None)
    return moment[:10] if moment else None


def concerns(incident: Mapping[str, Json], names: Mapping[str, set[str]], owner: str) -> bool:
    """Whether the units of `owner` hear of an incident: it affects the owner, or somebody below; `names` as of `names_below`."""
    affects = incident["affects"]
    return affects == "all" or bool(names.get(owner, set()) & {name.casefold().strip() for name in affects})


def names_below(agents: Iterable[Mapping[str, Json]], edges: Iterable[Mapping[str, Json]]) -> dict[str, set[str]]:
    """What an incident may call each agent or anybody who reports to it, directly or not; in any case."""
    called = {row["id"]: (row["id"], row["name"], row["role"], row["department"]) for row in agents}
    own = {agent: {name.casefold() for name in names if name} for agent, names in called.items()}
    head = {row["target"]: row["source"] for row in edges if row["kind"] == "tier"}
    below = {agent: set(names) for agent, names in own.items()}
    for agent, names in own.items():
        above, seen = head.get(agent), {agent}
        while above is not None and above not in seen:
            seen.add(above)
            below.setdefault(above, set()).update(names)
            above = head.get(above)
    return below


def _called(pool: Rows) -> dict[str, set[str]]:
    return names_below(pool.rows("agents"), pool.rows("edges", kind="tier"))
