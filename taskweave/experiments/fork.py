"""From which week on does a fork part from its parent, and what is changed there?

Entry points: `plan`, which checks what a person gave and says what is to be made, and `make`, which makes it.  Whoever drives the runs
that come of it is not known here; a parent is never changed, and may be live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from taskweave.engine.journal import Journal
from taskweave.errors import BadInput, Divergence, RunRefused
from taskweave.experiments.amending import amendment
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.records import Json
from taskweave.runs import RunFolder
from taskweave.runs.folder import RUNS, refuse_place
from taskweave.runs.forking import Answering, Change, fork_folder
from taskweave.runs.inbox import numbered
from taskweave.runs.inputs import changed
from taskweave.simulation.incidents import load_incidents

MOST_REDRAWS = 99


@dataclass(frozen=True, kw_only=True, slots=True)
class Fork:
    """One run to be made: where, and what is changed in it."""

    path: Path
    change: Change


def plan(
    parent: RunFolder,
    *,
    at: str,
    out: Path | None = None,
    incidents: Sequence[Path] = (),
    drop: Sequence[str] = (),
    redraws: Sequence[int] = (),
    prompts: Sequence[Path] = (),
    answering: Answering | None = None,
    until: str | None = None,
    organization: tuple[str | bytes, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Fork]:
    """What is to be made of it: one fork, or one for each of `redraws`, whose numbers (from 1 on) stand for draws of their own.

    `organization` is a file's content and how messages name it; `say` hears what it changes.
    `at` is week:14, quarter:2 or a date, which means the week that holds it; incidents without a time of their own happen on that week's
    first working day.  Raises BadInput for what cannot be used, IncidentInvalid for a file, RunRefused for a place that is taken,
    Divergence where the parent's inputs were edited since it was made.
    """
    if wrong := [number for number in redraws if not 1 <= number <= MOST_REDRAWS]:
        raise BadInput(f"--redraw {wrong[-1]}: draws are numbered from 1 to {MOST_REDRAWS}; name a number of these")
    if names := changed(parent):
        raise Divergence(
            f"{parent.path}: changed since the run was made: {', '.join(names[:6])}. A fork would not begin as its parent did. "
            "Put back what it was made with"
        )
    calendar = WorkCalendar(parent.organization().calendar)
    week = calendar.week_of_day(calendar.tick_of(at)).number
    tick = calendar.weeks[week - 1].first_day
    horizon = until or parent.config.until
    if calendar.boundary(horizon) < week:
        raise BadInput(
            f"--at {at}: that is week {week}, and the horizon of {parent.path} is {horizon} (week {calendar.boundary(horizon)}). "
            "Name a later one with --until, for example --until year"
        )
    amended = amendment(parent, *organization, week, say) if organization is not None else None
    org, population = (amended.organization, amended.population) if amended is not None else _holding(parent, week)
    payloads = [payload for file in incidents for payload in load_incidents(file, org, population, calendar)]
    meant = [_meant(payload, week=week, tick=tick, calendar=calendar) for payload in payloads]
    change = Change(
        week=week,
        tick=tick,
        incidents=meant,
        drop=tuple(dict.fromkeys(drop)),
        prompts=prompts,
        answering=answering,
        organization=None if amended is None else amended.kept,
    )
    if not redraws:
        return [Fork(path=_place(parent, out, week), change=change)]
    last = max(one.draw for one in parent.config.segments)
    return [
        Fork(path=_place(parent, out, week, number, one_of_many=len(redraws) > 1), change=replace(change, draw=last + number))
        for number in redraws
    ]


def _holding(parent: RunFolder, week: int) -> tuple[Organization, Population]:
    """The organization of a week, and its people."""
    tenure = next(one for one in reversed(parent.tenures()) if one.week <= week)
    return tenure.organization, tenure.population


def make(parent: RunFolder, fork: Fork, *, before: Callable[[Journal], None] | None = None, **told: Any) -> RunFolder:
    """Make a fork's folder; `told` and errors as those of `fork_folder`."""
    return fork_folder(parent, fork.path, fork.change, before=before, **told)


def _meant(payload: Mapping[str, Json], *, week: int, tick: int, calendar: WorkCalendar) -> Mapping[str, Json]:
    named = payload.get("tick")
    if named is None:
        return {**payload, "tick": tick}
    if named < tick:
        raise RunRefused(
            f"{payload.get('title')!r} is meant for {calendar.days[named]}, and the fork parts from its parent in week {week}, which "
            f"begins on {calendar.days[tick]}. Fork at the week of the incident, or give the incident a later time"
        )
    return payload


def _place(parent: RunFolder, out: Path | None, week: int, redraw: int | None = None, *, one_of_many: bool = False) -> Path:
    """Where a fork is made: as told, numbered where there are several, else runs/<parent>-week14, with a number where that exists."""
    if out is not None:
        path = out.with_name(f"{out.name}-{redraw}") if one_of_many else out
        refuse_place(path)
        return path
    name = f"{parent.name}-week{week}" + (f"-redraw{redraw}" if redraw is not None else "")
    return RUNS / numbered(name, lambda candidate: (RUNS / candidate).exists() or (RUNS / candidate).is_symlink())
