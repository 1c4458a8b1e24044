"""From which week on does a fork part from its parent, and what is changed there?

Entry points: `plan`, which checks what a person gave and says what is to be made, and `make`, which makes it.  Whoever drives the runs
that come of it is not known here; a parent is never changed, and may be live.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
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
from taskweave.runs.inbox import name_of, numbered
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
    each: int | None = None,
    organization: tuple[str | bytes, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> list[Fork]:
    """What is to be made of it: one fork, or one for each of `redraws`, whose numbers (from 1 on) stand for draws of their own.

    With `each` so many incidents of each file are drawn by the run's seed, all where it has no more, and each of them makes a fork.
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
    if each is not None:
        _refuse_each(each, incidents, redraws)
    amended = amendment(parent, *organization, week, say) if organization is not None else None
    org, population = (amended.organization, amended.population) if amended is not None else _holding(parent, week)
    files = [(file, load_incidents(file, org, population, calendar)) for file in incidents]
    payloads = [payload for file, found in files for payload in _drawn(file, found, each, parent.config.seed)]
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
    if each is not None:
        names = _names(meant)
        return [
            Fork(path=_place(parent, out, week, name, one_of_many=True), change=replace(change, incidents=[one]))
            for name, one in zip(names, meant, strict=True)
        ]
    if not redraws:
        return [Fork(path=_place(parent, out, week), change=change)]
    last = max(one.draw for one in parent.config.segments)
    return [
        Fork(
            path=_place(parent, out, week, f"{number}" if out else f"redraw{number}", one_of_many=len(redraws) > 1),
            change=replace(change, draw=last + number),
        )
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


def _refuse_each(each: int, incidents: Sequence[Path], redraws: Sequence[int]) -> None:
    if each < 1:
        raise BadInput(f"--each {each}: how many incidents of each file make a fork of their own, 1 or more")
    if not incidents:
        raise BadInput("--each makes a fork for each incident, and none was given. Add --incidents library:policy, for example")
    if redraws:
        raise BadInput(
            "--each and --redraw are two things: what incidents change, and what chance does. Make the controls with a command of their own"
        )


def _drawn(file: Path, payloads: list[dict[str, Json]], each: int | None, seed: int) -> list[dict[str, Json]]:
    """`each` of a file's incidents, in its order."""
    if each is None or each >= len(payloads):
        return payloads
    places = Random(f"{seed}:each:{file}").sample(range(len(payloads)), each)
    return [payloads[place] for place in sorted(places)]


def _names(payloads: Sequence[Mapping[str, Json]]) -> list[str]:
    """A name for each: that of its title, numbered where one comes again."""
    found: list[str] = []
    for payload in payloads:
        found.append(numbered(name_of(payload), found.__contains__))
    return found


def _place(parent: RunFolder, out: Path | None, week: int, part: str | None = None, *, one_of_many: bool = False) -> Path:
    """Where a fork is made: as told, its part added where there are several, else runs/<parent>-week14, numbered where that exists."""
    if out is not None:
        path = out.with_name(f"{out.name}-{part}") if one_of_many else out
        refuse_place(path)
        return path
    name = f"{parent.name}-week{week}" + (f"-{part}" if part is not None else "")
    return RUNS / numbered(name, lambda candidate: (RUNS / candidate).exists() or (RUNS / candidate).is_symlink())
