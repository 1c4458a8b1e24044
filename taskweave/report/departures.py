"""Who left, and what became of the work that they had?  Entry points: `departures`, `told`.

Read from the event log alone: each subtask that somebody had on leaving is followed to its record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from taskweave.records import Json
from taskweave.report.wording import plural

Event = Mapping[str, Json]
_TAKEN = ("finish", "handover", "abandon")  # after which whoever had a subtask has it no more


@dataclass(frozen=True, kw_only=True, slots=True)
class Fate:
    """What became of a subtask: under which id it went on, and with whom, None while nobody had it.  "unrecorded" must not happen."""

    subtask: str
    kind: Literal["handed over", "dropped", "unrecorded"]
    successor: str | None = None
    to: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Departure:
    """Who left when, because of which incident; `open` is what he or she had, `afterwards` what was assigned to them all the same."""

    agent: str
    time: str
    cause: str
    open: tuple[Fate, ...]
    afterwards: tuple[str, ...]


def departures(events: Iterable[Event]) -> tuple[Departure, ...]:
    """All who left, in their order; `events` are rows of the event log in order."""
    log = list(events)
    has: dict[str, tuple[str, str]] = {}  # subtask, whoever has it -> (agent, id)
    found = []
    for place, event in enumerate(log):
        kind, subject = event["kind"], event["subject"]
        if kind == "assign":
            has[_same(subject)] = (event["object"], subject)
        elif kind in _TAKEN:
            has.pop(_same(subject), None)
        elif kind == "supersede":
            has = {key: one for key, one in has.items() if not key.startswith(f"{subject}/")}
        elif kind == "departure":
            agent, later = event["actor"], log[place + 1 :]
            mine = [name for holder, name in has.values() if holder == agent]
            after = tuple(one["subject"] for one in later if one["kind"] == "assign" and one["object"] == agent)
            fates = tuple(_fate(name, later) for name in mine)
            found.append(Departure(agent=agent, time=event["time"], cause=event["object"], open=fates, afterwards=after))
    return tuple(found)


def told(left: Departure) -> str:
    """A line about it."""
    counts = {kind: sum(fate.kind == kind for fate in left.open) for kind in ("handed over", "dropped", "unrecorded")}
    lost = f", {counts['unrecorded']} have no record" if counts["unrecorded"] else ""
    after = (
        f"{plural(len(left.afterwards), 'subtask')} assigned to it afterwards"
        if left.afterwards
        else "nothing was assigned to it afterwards"
    )
    return (
        f"{left.agent} left on {left.time[:10]} ({left.cause}): of {plural(len(left.open), 'open subtask')} {counts['handed over']} handed "
        f"over, {counts['dropped']} dropped{lost}; {after}"
    )


def _fate(name: str, later: Sequence[Event]) -> Fate:
    key, task = _same(name), name.rpartition("/")[0]
    for place, event in enumerate(later):
        kind, subject = event["kind"], event["subject"]
        if kind == "supersede" and subject == task:
            return Fate(subtask=name, kind="dropped")
        if _same(subject) != key:
            continue
        if kind == "abandon":
            return Fate(subtask=name, kind="dropped")
        if kind == "handover":
            to = next((one["object"] for one in later[place:] if one["kind"] == "assign" and _same(one["subject"]) == key), None)
            return Fate(subtask=name, kind="handed over", successor=subject, to=to)
    return Fate(subtask=name, kind="unrecorded")


def _same(subtask: str) -> str:
    """What a subtask and its successors have in common: .../t3/s2 of .../t3/s2.2."""
    task, _, place = subtask.rpartition("/")
    return f"{task}/{place.partition('.')[0]}"
