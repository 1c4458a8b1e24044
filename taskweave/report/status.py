"""How far is a run, and what did it take?  Entry point: `status`, which answers with a `Status`.

Reads journal.db, the lock and the config only, so it can be asked at any moment, from any process.  Refuses to read run.db.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from taskweave.backbones.pricing import Bill, Used, bill
from taskweave.backbones.structured import origin_of
from taskweave.engine.budget import Bound
from taskweave.engine.reader import ClosedWeek, Counts, JournalReader, PromptUse, Silence, Stop
from taskweave.errors import BadInput
from taskweave.org.calendar import WorkCalendar
from taskweave.report.economy import Economy, economy
from taskweave.report.figures import answers
from taskweave.runs import RunConfig, RunFolder
from taskweave.runs.budgets import taken
from taskweave.runs.inbox import Inbox
from taskweave.runs.resuming import cause_now, resume_command

FINISHED = "finished"
_NOTICED = 2.0  # seconds without an answer
_TOTALS = ("calls", "prompt_tokens", "completion_tokens", "asked", "repaired", "fallback")


class Trouble(NamedTuple):
    """Of a run whose attempts fail: seconds without an answer, the provider's last words, the seconds of patience that are left."""

    seconds: float
    said: str
    left: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Status:
    """One run in numbers.

    `state` is new, running, paused, finished, killed, or the word for why it stopped.  `week` of `weeks` are closed, `date` is the
    simulated day it stands at, `tick` the last working day that has begun (-1: none).  `left` is in seconds, None where nothing is known.
    `calls` were answered: `inherited` of them were taken from `parent`, the run that this is a fork of from `parent_week` on with what
    `parent_changed` says, and `paid` are its own; of `lost` ones an answer may have been made, and billed, that is not here.
    `cost` (dollars, with what the provider said
    it had cached) and `cost_uncached` (as if it had cached nothing) are None where no price is known; what was inherited cost nothing
    here, and `lost_tokens`, the most that the lost calls can have taken, is not in it.  `week_digest` is that of the last
    closed week; the digest of all tables is asked of run.db.  Of closed weeks, `planned` and `done_without_fallback` count composite
    tasks, and `answers` structured questions by step and level: asked, repaired, fallback; `asked` counts them and `fallback_share`
    is that of all of them, None before there is any: before a week is closed both are of what had been answered when a share of fallbacks
    stopped the run.  `backbones` has calls, tokens and such questions by name, `rungs` calls by the
    form in which a model was asked (tools, json_schema, json_object, plain).  `injections` are the incidents that were taken,
    `to_come` is how many are known for later, `rejected` what could not be used, with the reason.  `budgets` are, by setting, what the run
    has taken and what is allowed, lost calls counted at the most; `trouble` is what goes wrong now.  `without` are the parts of the loop
    that it leaves out.  `economy` is there where it was asked for: it reads all that was sent.  `cases` are those of recurring work,
    by name, up to the last closed week: arrived, completed, and abandoned where any are.
    """

    run: str
    path: str
    organization: str
    seed: int
    backbone: str
    origin: str
    until: str
    state: str
    cause: str
    holder: str | None
    finished: bool
    week: int
    weeks: int
    tick: int
    date: str
    done: int
    spilled: int
    blocked: int
    calls: int
    inherited: int
    paid: int
    lost: int
    lost_tokens: int
    in_flight: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    cost: float | None
    planned: int
    done_without_fallback: int
    cost_uncached: float | None
    asked: int
    fallback_share: float | None
    answers: Mapping[str, Mapping[str, tuple[int, int, int]]]
    backbones: Mapping[str, Mapping[str, int]]
    max_fallback: float | None
    budgets: Mapping[str, tuple[float, float]]
    trouble: Trouble | None
    without: tuple[str, ...]
    left: float | None
    injections: tuple[str, ...]
    to_come: int
    waiting: tuple[str, ...]
    rejected: tuple[str, ...]
    week_digest: str | None
    tags: Mapping[str, str]
    parent: str | None
    parent_week: int | None
    parent_changed: tuple[str, ...]
    next: str
    economy: Economy | None = None
    cases: Mapping[str, Sequence[int]] = field(default_factory=dict)
    rungs: Mapping[str, int] = field(default_factory=dict)

    def row(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def status(folder: RunFolder, *, deep: Literal["reported", "computed"] | None = None) -> Status:
    """Look at a run from outside, `deep` with its economy: as far as it was reported, or computed from all prompts.

    Raises BadInput for a journal that cannot be read.
    """
    config, calendar, holder = folder.config, WorkCalendar(folder.organization().calendar), folder.holder()
    with JournalReader(folder.journal_path) as journal:
        counts, uses, closed = journal.counts(), journal.prompts(), journal.weeks()
        stops, tick, began = journal.stops(), journal.last_tick(), journal.session_began()
        injections, rejected = journal.injections(), journal.rejected()
        usable = [one for one in injections if one.id not in {other.name for other in rejected}]
        budgets, silence = taken(config, folder.prices(), journal), journal.silence()
        rungs = journal.rungs()
        # The weeks of a fork that has not begun are closed, and nothing is done in them yet.
        facts: Mapping[str, Any] = closed[-1].facts if closed and counts.sessions else {}
        until = closed[-1].at if closed else None
        spent = economy(journal, len(closed), facts, until, compute=deep == "computed") if deep else None
    weeks = calendar.boundary(config.until)
    stop = next((s for s in reversed(stops) if s.current), None)
    finished = len(closed) >= weeks and (stop is None or stop.why == FINISHED)
    state = _state(folder, counts, stop, running=holder is not None, finished=finished)
    told, origin = facts.get("answers", []), _origin(config, uses)
    asked, fallbacks = sum(one[3] for one in told), sum(one[5] for one in told)
    if not closed and stop is not None and stop.bound is not None:
        asked, fallbacks = stop.bound.asked, stop.bound.counted  # no week tells of them
    cost = _bill(folder, uses)
    date = calendar.days[tick] if tick is not None and tick < len(calendar.days) else calendar.days[0]
    return Status(
        run=folder.name,
        path=str(folder.path),
        organization=config.organization,
        seed=config.seed,
        backbone=config.segments[-1].backbone,
        origin=origin,
        until=config.until,
        state=state,
        cause=cause_now(stop.cause, stop.bound, config, budgets) if stop is not None and holder is None else "",
        holder=None if holder is None else str(holder),
        finished=finished,
        week=len(closed),
        weeks=weeks,
        tick=-1 if tick is None else tick,
        date=date.isoformat(),
        done=int(facts.get("done", 0)),
        spilled=int(facts.get("spilled", 0)),
        blocked=int(facts.get("blocked", 0)),
        calls=counts.outcomes.get("complete", 0),
        inherited=counts.inherited,
        paid=counts.outcomes.get("complete", 0) - counts.inherited,
        lost=counts.lost + (0 if holder is not None else counts.open),
        lost_tokens=counts.lost_tokens + (0 if holder is not None else counts.open_tokens),
        in_flight=counts.open if holder is not None else 0,
        prompt_tokens=sum(use.prompt_tokens for use in uses),
        cached_tokens=sum(use.cached_tokens for use in uses),
        completion_tokens=sum(use.completion_tokens for use in uses),
        planned=int(facts.get("planned", 0)),
        done_without_fallback=int(facts.get("done_without_fallback", 0)),
        asked=asked,
        fallback_share=fallbacks / asked if asked else None,
        answers=_by_step(told),
        backbones=_by_backbone(told, uses),
        rungs=rungs,
        max_fallback=config.max_fallback,
        budgets=budgets,
        trouble=_trouble(silence, config.patience) if state == "running" else None,
        without=config.without,
        cost=None if cost is None else cost.cost,
        cost_uncached=None if cost is None else cost.uncached,
        left=_left(closed, weeks, began) if state == "running" else None,
        injections=tuple(one.id for one in usable if tick is not None and one.tick <= tick),
        to_come=sum(tick is None or one.tick > tick for one in usable),
        waiting=tuple(Inbox(folder.inbox).waiting()),
        rejected=tuple(f"{one.name}: {one.why}" for one in rejected),
        week_digest=closed[-1].digest if closed else None,
        tags=config.tags,
        parent=None if config.parent is None else config.parent.run,
        parent_week=None if config.parent is None else config.parent.week,
        parent_changed=() if config.parent is None else config.parent.changed,
        next=_next(folder, state, stop.bound if stop is not None else None),
        economy=spent,
        cases=dict(facts.get("cases", {})),
    )


def answers_told(folder: RunFolder) -> list[Sequence[Any]]:
    """The structured questions up to the last closed week: [step, level, backbone, asked, repaired, fallback]."""
    with JournalReader(folder.journal_path) as journal:
        closed = journal.weeks()
    return list(closed[-1].facts.get("answers", ())) if closed else []


def survey(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """A row a run; of one that cannot be read, where it lies and why."""
    rows: list[dict[str, Any]] = []
    for path in paths:
        try:
            rows.append(status(RunFolder.open(path)).row())
        except BadInput as trouble:
            rows.append({"run": path.name, "path": str(path), "state": "unreadable", "cause": str(trouble)})
    return rows


def _state(folder: RunFolder, counts: Counts, stop: Stop | None, *, running: bool, finished: bool) -> str:
    if running:
        return "paused" if Inbox(folder.inbox).paused() else "running"
    if finished:
        return FINISHED
    if counts.sessions == 0:
        return "new"
    return stop.why if stop is not None and stop.why != FINISHED else ("killed" if stop is None else "stopped")


def _origin(config: RunConfig, uses: Iterable[PromptUse]) -> str:
    """scripted, model, or mixed where routes lead to both."""
    names = {config.segments[-1].backbone} if config.routing is None else {use.backbone for use in uses} or {config.segments[-1].backbone}
    origins = {origin_of(name) for name in names}
    return "mixed" if len(origins) > 1 else origins.pop()


def _by_step(told: Iterable[Sequence[Any]]) -> dict[str, dict[str, tuple[int, int, int]]]:
    found: dict[str, dict[str, tuple[int, int, int]]] = {}
    for one in answers(told, by=("step", "level")):
        found.setdefault(one.step, {})[one.level] = (one.asked, one.repaired, one.fallback)
    return found


def _by_backbone(told: Iterable[Sequence[Any]], uses: Iterable[PromptUse]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for use in uses:
        total = found.setdefault(use.backbone, dict.fromkeys(_TOTALS, 0))
        for name in _TOTALS[:3]:
            total[name] += getattr(use, name)
    for one in answers(told, by=("backbone",)):
        total = found.setdefault(one.backbone, dict.fromkeys(_TOTALS, 0))
        total |= {"asked": one.asked, "repaired": one.repaired, "fallback": one.fallback}
    return dict(sorted(found.items()))


def _bill(folder: RunFolder, uses: Iterable[PromptUse]) -> Bill | None:
    """What the run itself paid for; None where no price is known."""
    if folder.config.backbone.partition(":")[0] == "replay":  # the answers of another run, under the name of what gave them
        return Bill(0.0, 0.0)
    used = (
        Used(
            use.backbone,
            use.prompt_tokens - use.inherited_prompt_tokens,
            use.cached_tokens - use.inherited_cached_tokens,
            use.completion_tokens - use.inherited_completion_tokens,
        )
        for use in uses
    )
    return bill(used, folder.prices())


def _next(folder: RunFolder, state: str, bound: Bound | None) -> str:
    run = shlex.quote(str(folder.path))
    if state == "paused":
        return f"taskweave continue {run}"
    if state == "running":
        return f"taskweave pause {run}"
    return f"taskweave export {run} --format jsonl --out data" if state == FINISHED else resume_command(folder.path, bound)


def _left(closed: list[ClosedWeek], weeks: int, began: str | None) -> float | None:
    """Seconds until the horizon, at the pace of the last weeks closed since the session began: before that nobody may have driven it."""
    recent = [_moment(week.at) for week in closed[-5:] if began is not None and week.at >= began]
    if len(recent) < 2:
        return None
    pace = (recent[-1] - recent[0]).total_seconds() / (len(recent) - 1)
    return max(0.0, pace * (weeks - len(closed)) - _since(recent[-1]))


def _trouble(silence: Silence | None, patience: float) -> Trouble | None:
    """What goes wrong now; an attempt that failed among others that are answered is none."""
    if silence is None or (seconds := _since(_moment(silence.since))) < _NOTICED:
        return None
    return Trouble(seconds, silence.said, max(0.0, patience - _since(_moment(silence.first))))


def _since(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at.replace("Z", "+00:00"))
