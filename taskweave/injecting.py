"""Incidents for a run that is under way, or waits to be resumed.  Entry point: `inject`."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from taskweave.engine.reader import JournalReader
from taskweave.errors import RunRefused
from taskweave.org.calendar import WorkCalendar
from taskweave.report.status import status
from taskweave.runs import RunFolder
from taskweave.runs.inbox import name_of
from taskweave.simulation.incidents import FORK, load_incidents, too_late


def inject(folder: RunFolder, file: Path, *, at: str | None = None, warn: list[str] | None = None) -> list[str]:
    """Put the incidents of a file into a run, live or before it is resumed; returns their ids.

    `at` (week:14, quarter:2 or a date) counts for those that name no time of their own; `warn` collects what is odd but legal.
    Raises IncidentInvalid for the file, RunRefused for a run that is over and for a time that has passed.
    """
    calendar, now = WorkCalendar(folder.organization().calendar), status(folder)
    meant = now.tick + 1 if at is None else calendar.tick_of(at)
    week = calendar.week_of_day(min(meant, len(calendar.days) - 1)).number
    tenure = next(one for one in reversed(folder.tenures()) if one.week <= week)
    payloads = load_incidents(file, tenure.organization, tenure.population, calendar)
    if now.week >= len(calendar.weeks):
        raise RunRefused(f"{folder.path}: the run is finished, its year is over. {FORK}")
    if at is not None:
        payloads = [payload if payload.get("tick") is not None else {**payload, "tick": calendar.tick_of(at)} for payload in payloads]
    for payload in payloads:
        tick = payload.get("tick")
        if tick is None and now.finished:
            raise RunRefused(
                f"{folder.path}: the run is finished, it has reached its horizon {folder.config.until}. {FORK} To let an incident happen "
                f"in a continuation, say when with --at week:{now.week + 1} or later, "
                f"then 'taskweave resume {quote(str(folder.path))} --until year'."
            )
        if tick is not None and tick <= now.tick:
            raise RunRefused(too_late(payload, tick, calendar, folder.path, now.date))
    with JournalReader(folder.journal_path) as journal:
        known = [one.id for one in journal.injections()]
    ids = [folder.send(payload, known=known) for payload in payloads]
    if warn is not None:
        named = [(payload["title"], id_) for payload, id_ in zip(payloads, ids, strict=True) if id_ != name_of(payload)]
        warn += [f"{id_}: a second incident of that title; the run had been given {title!r} before" for title, id_ in named]
    return ids
