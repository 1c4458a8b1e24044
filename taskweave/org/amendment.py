"""What does another organization change, and may it hold from some week of a run on?  Entry points: `differences`, `refused`.

A run keeps its name, its calendar and whether it has tools; who owns a level of planning changes where a period of that level begins.
Pure; refuses to know what becomes of people and work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from taskweave.org.organization import Organization
from taskweave.records import LEVELS, Json, Level

How = Literal["added", "gone", "changed"]
_NAMED = ("goals", "departments", "people", "environment", "work")  # mappings whose entries are told as wholes
_BY_PART = ("roles",)  # those whose entries are told by their parts
_PLACE = {"quarter": "a quarter", "month": "a month", "week": "a week"}


@dataclass(frozen=True, slots=True)
class Difference:
    """One key of an organization file, dotted (`roles.Joiner.count`), and what became of it."""

    key: str
    how: How

    def __str__(self) -> str:
        return f"{self.key} {self.how}"


def differences(before: Organization, after: Organization) -> list[Difference]:
    """What differs, in the order of the file's keys; nothing where only what reports read, or an order, does."""
    # Only reports read a role's `share`.
    old, new = (org.model_dump(mode="json", exclude={"given": True, "roles": {"__all__": {"share"}}}) for org in (before, after))
    return [one for key in old for one in _of(key, old[key], new[key])]


def _of(key: str, old: Json, new: Json) -> Iterator[Difference]:
    if old == new:
        return
    if key == "cross_links":
        links = [[f"{link['source']} -> {link['target']}" for link in links] for links in (old, new)]
        yield from _entries(key, dict.fromkeys(links[0]), dict.fromkeys(links[1]))
    elif key in _NAMED:
        yield from _entries(key, old, new)
    elif key in _BY_PART:
        for one in _entries(key, old, new):
            title = one.key.removeprefix(f"{key}.")
            yield from [one] if one.how != "changed" else _entries(one.key, old[title], new[title])
    elif isinstance(old, Mapping):
        yield from _entries(key, old, new)
    else:
        yield Difference(key, "changed")


def _entries(key: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield Difference(f"{key}.{name}", "gone")
        elif name not in old:
            yield Difference(f"{key}.{name}", "added")
        elif old[name] != new[name]:
            yield Difference(f"{key}.{name}", "changed")


def refused(before: Organization, after: Organization, begins: Mapping[Level, int | None], week: int) -> list[str]:
    """Why `after` cannot hold from a week on, by key, with what to do; nothing where it can.

    `begins` is the first week, from `week` on, in which a period of each level begins; None where none does.
    """
    said = []
    for key, old, new in (
        ("name", before.name, after.name),
        *((f"calendar.{name}", getattr(before.calendar, name), getattr(after.calendar, name)) for name in ("start", "hours", "holidays")),
        ("tools", before.tools, after.tools),
        ("entities", before.entities, after.entities),
        ("mail", before.mail, after.mail),
        ("feed", before.feed, after.feed),
    ):
        if old != new:
            said.append(
                f"{key}: is {_said(new)} and was {_said(old)}, which cannot change within a run. Leave {key} as it was, or begin a new run"
            )
    for name, server in after.servers.items():
        if before.servers.get(name, server) != server:
            said.append(f"servers.{name}: is given otherwise, and a run goes on with the server that it was begun with. Leave it as it was")
    for level in LEVELS:
        old_tier, new_tier = before.cadence[level], after.cadence[level]
        if old_tier == new_tier or begins[level] == week:
            continue
        inferred = "" if f"cadence.{level}" in after.given else " (as follows from the number of tiers)"
        todo = "begin a new run" if begins[level] is None else f"fork where {_PLACE[level]} begins, at week:{begins[level]}"
        said.append(
            f"cadence.{level}: is tier {new_tier}{inferred} and was {old_tier}, and the {level} of week {week} is under way. Write "
            f"'cadence: {{{level}: {old_tier}}}' to keep it, or {todo}"
        )
    return said


def _said(value: object) -> str:
    if isinstance(value, BaseModel):
        return "given otherwise"  # a URL may hold what is nobody's business
    if isinstance(value, Mapping):
        return ", ".join(value) or "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(str, value)) or "none" if isinstance(value, tuple) else repr(value) if isinstance(value, str) else str(value)
