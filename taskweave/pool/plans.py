"""Which plans and incidents stood behind work that was handed out at some moment?  Entry points: `chain`, `heard`.

Asks the pool for rows; knows nothing of walks and results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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


def heard(pool: Rows, ids: Collection[str], plans: Sequence[Plan], moment: str | None) -> list[Fields]:
    """Incidents that these ids recorded as used, and those in force at the moment for the owner of any of the plans, by id.

    An incident is in force from the event that says it was heard until its last day, for the agents it names (by id, name, role or
    department) and for all above them.
    """
    recorded = {row["used"] for identifier in ids for row in pool.rows("uses", result=identifier, kind="incident")}
    heard_at = {row["subject"]: row["time"] for row in pool.rows("events", kind="incident")}
    names: dict[str, set[str]] = {}
    found = []
    for row in pool.rows("incidents"):
        since, until = heard_at.get(row["id"]), row["until"] or ""
        if row["id"] in recorded:
            found.append(row)
        elif since and moment and since <= moment and moment[:10] <= until:
            names = names or _names_below(pool)
            if row["affects"] == "all" or any(names.get(plan.owner, set()) & set(row["affects"]) for plan in plans):
                found.append(row)
    return found


def _names_below(pool: Rows) -> dict[str, set[str]]:
    """What an incident may call each agent or anybody who reports to it, directly or not."""
    names = {row["id"]: {row["id"], row["name"], row["role"], row["department"]} for row in pool.rows("agents")}
    head = {row["target"]: row["source"] for row in pool.rows("edges", kind="tier")}
    below = {agent: set(own) for agent, own in names.items()}
    for agent, own in names.items():
        above, seen = head.get(agent), {agent}
        while above is not None and above not in seen:
            seen.add(above)
            below.setdefault(above, set()).update(own)
            above = head.get(above)
    return below
