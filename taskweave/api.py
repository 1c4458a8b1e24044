"""TaskWeave from Python: load an organization, simulate it, go on with its run, compare it with others.

Entry points: `Organization`, `simulate`, `Run`, `runs`, `diff`.  What a run holds is read in `reading.py`.  Refuses to print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from taskweave import driving
from taskweave.driving import Organization
from taskweave.experiments.comparison import Diff
from taskweave.experiments.diff import compare
from taskweave.experiments.reactions import Reactions, reactions
from taskweave.experiments.rows import RunRows, read
from taskweave.experiments.telling import ReadableDiff, readable
from taskweave.experiments.verify import Verified, verify
from taskweave.given import checked, several
from taskweave.reading import ReadRun, Table
from taskweave.records import StyleName
from taskweave.report.status import Status, status, survey
from taskweave.runs import RunFolder, list_runs
from taskweave.simulation.year import Progress
from taskweave.telemetry import Telemetry, Tracers

if TYPE_CHECKING:
    from taskweave.records import Backbone

__all__ = ["Organization", "Run", "Table", "diff", "runs", "simulate"]


class Run(ReadRun):
    """One run on disk, and what can be done with it.  Tables are methods: `run.tasks()`, `run.results()`, ...; each has `df()`."""

    @classmethod
    def open(cls, run: str | Path) -> Run:
        """The run with this path, or with this name under runs/."""
        return cls(RunFolder.open(run))

    def status(self) -> Status:
        """How far it is and what it took, from its journal; also while it runs in another process."""
        return status(self.folder, deep="computed")

    def resume(
        self,
        *,
        backbone: Backbone | None = None,
        until: str | None = None,
        base_url: str | None = None,
        limit: int | None = None,
        patience: float | None = None,
        max_fallback: float | None = None,
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
        budget_hours: float | None = None,
        prices: str | Path | None = None,
        observe: Callable[[Progress], None] | None = None,
        tracer_provider: Tracers | None = None,
    ) -> Run:
        """Continue it to its horizon, or to a later one.  Nothing that was answered is asked again.

        A run that was begun with a backbone object goes on with one of the same name: `backbone`.  `prices` is a file of your own prices,
        by which the cost is reckoned from now on; budgets, and what they count, are those of the whole run; `tracer_provider` as in
        `simulate`.
        """
        checked(tracer_provider=tracer_provider)
        changes: dict[str, Any] = {
            "until": until,
            "base_url": base_url,
            "limit": limit,
            "patience": patience,
            "max_fallback": max_fallback,
            "budget_usd": budget_usd,
            "budget_tokens": budget_tokens,
            "budget_hours": budget_hours,
            "prices": Path(prices) if prices is not None else None,
        }
        warnings: list[str] = []
        told = Telemetry(tracer_provider=tracer_provider, warn=warnings.append)
        run = Run(*driving.resume(self.folder, backbone=backbone, observe=observe, told=told, **changes))
        run.warnings += warnings
        return run

    def inject(self, incidents: str | Path, *, at: str | None = None) -> list[str]:
        """Put the incidents of a file into the run, live or before it is resumed; returns their ids.

        `warnings` says where the file holds what is odd but legal.
        """
        return driving.inject(self.folder, Path(incidents), at=at, warn=self.warnings)

    def fork(
        self,
        *,
        at: str,
        out: str | Path | None = None,
        incidents: str | Path | Sequence[str | Path] = (),
        drop: Sequence[str] = (),
        redraw: int | None = None,
        prompts: str | Path | Sequence[str | Path] = (),
        org: Organization | str | Path | None = None,
        backbone: str | Backbone | None = None,
        base_url: str | None = None,
        until: str | None = None,
        limit: int | None = None,
        patience: float | None = None,
        max_fallback: float | None = None,
        budget_usd: float | None = None,
        budget_tokens: int | None = None,
        budget_hours: float | None = None,
        tags: Mapping[str, str] | None = None,
        look: bool = True,
        observe: Callable[[Progress], None] | None = None,
    ) -> Run:
        """What this run would have been with something changed from week `at` (week:14) on: a run of its own, simulated at once.

        `incidents` are added and those of the ids `drop` left out; `prompts` lie over the run's; the organization is `org`, and `backbone`
        answers, from that week on.
        `redraw`, 1 or more, asks everything anew, under other draws for each number: controls, beside which the effect of a change can be
        seen.  What did not change is taken from this run, which may be live and is never changed.  Other arguments as in `simulate`, this
        run's where None.
        """
        ((folder, answering),) = driving.fork(
            self.folder,
            at=at,
            out=Path(out) if out is not None else None,
            incidents=several("incidents", incidents),
            drop=drop,
            redraws=() if redraw is None else (redraw,),
            prompts=several("prompts", prompts),
            org=org,
            backbone=backbone,
            base_url=base_url,
            look=look,
            until=until,
            limit=limit,
            patience=patience,
            max_fallback=max_fallback,
            budget_usd=budget_usd,
            budget_tokens=budget_tokens,
            budget_hours=budget_hours,
            tags=tags,
        )
        return Run(folder, driving.drive(folder, answering, observe=observe))

    def verify(self) -> Verified:
        """Re-execute it from a copy of its journal and compare all rows: `ok`, or what differs.  Nothing is asked or changed."""
        return verify(self.folder)


def simulate(
    org: Organization | str | Path,
    *,
    out: str | Path | None = None,
    backbone: str | Backbone = "scripted",
    seed: int = 1,
    until: str = "year",
    base_url: str | None = None,
    prompts: str | Path | Sequence[str | Path] = (),
    assign: Literal["match", "model"] = "match",
    incidents: str | Path | Sequence[str | Path] = (),
    rate: str | None = None,
    limit: int = 16,
    patience: float = 600.0,
    tags: Mapping[str, str] | None = None,
    style: StyleName | None = None,
    routing: str | Path | None = None,
    max_fallback: float | None = None,
    budget_usd: float | None = None,
    budget_tokens: int | None = None,
    budget_hours: float | None = None,
    without: str | Sequence[str] = (),
    look: bool = True,
    prices: str | Path | None = None,
    servers: Mapping[str, str] | None = None,
    observe: Callable[[Progress], None] | None = None,
    tracer_provider: Tracers | None = None,
) -> Run:
    """Simulate an organization and return its run; `run.outcome` says whether and why it ended early.

    `until` is week:8, quarter, quarter:2, month:3, year or a date.  `incidents` are files, or `library:NAME` of the shipped ones; `rate`
    ("1/month") draws so many of those without a time in each period.  `style` is how steps are asked (None: chosen by what is known of the
    backbone), `max_fallback` the share of answers that may be made by code instead before the run stops, `budget_usd`, `budget_tokens` and
    `budget_hours` what it may take at the most over all its sessions, `without` names parts of the loop to leave out (diagnose, align,
    reconcile, roll_up, retrieval), `look=False` asks nothing of an endpoint beforehand, `prices` is a file of your own prices,
    `servers` names those that mail ("smtp") and posts ("mastodon") leave for, `tracer_provider` is OpenTelemetry's, which gets the run's
    spans and is left as it is (None: one where OTEL_* variables ask for it).  Works inside a running event loop; what an interrupt ends can
    be resumed.  Raises BadInput for what cannot be used, before anything is written.
    """
    checked(tracer_provider=tracer_provider)
    loaded = org if isinstance(org, Organization) else Organization.load(org)
    folder, answering = driving.begin(
        loaded,
        out=Path(out) if out is not None else None,
        backbone=backbone,
        seed=seed,
        until=until,
        base_url=base_url,
        prompts=several("prompts", prompts),
        assign=assign,
        incidents=several("incidents", incidents),
        rate=rate,
        limit=limit,
        patience=patience,
        tags={} if tags is None else tags,
        style=style,
        routing=Path(routing) if routing is not None else None,
        max_fallback=max_fallback,
        budget_usd=budget_usd,
        budget_tokens=budget_tokens,
        budget_hours=budget_hours,
        without=without,
        look=look,
        prices=Path(prices) if prices is not None else None,
        servers=servers or {},
    )
    warnings: list[str] = []
    told = Telemetry(tracer_provider=tracer_provider, warn=warnings.append)
    run = Run(folder, driving.drive(folder, answering, observe=observe, told=told))
    run.warnings += warnings
    return run


def runs(pattern: str | Path = "runs/*") -> Table:
    """One row a run that the pattern matches: where it is and how far."""
    return Table("runs", survey(list_runs(str(pattern))), Status.__slots__)


def diff(
    a: Run | str | Path,
    b: Run | str | Path,
    *others: Run | str | Path,
    controls: Sequence[Run | str | Path] = (),
    until: str = "year",
) -> ReadableDiff:
    """What differs between the base `a` and the runs `b` and `others`, from the first week on in which they part, up to `until`.

    Redrawn forks among them, and `controls`, are runs in which nothing but chance differs: each difference is set against their spread.
    Where all are redrawn, the first of them is set against the others.
    `str()` of the answer is for people, `to_dict()` for programs.  Raises BadInput for what cannot be compared.
    """
    return readable(compared(a, (b, *others), controls, until=until)[0])


def compared(
    base: Run | str | Path, others: Sequence[Run | str | Path], controls: Sequence[Run | str | Path] = (), *, until: str = "year"
) -> tuple[Diff, list[str]]:
    """As `diff`, with what was odd in reading the runs."""
    rows, warnings = _sorted(base, others, controls)
    return compare(*rows, until=until), warnings


def reacted(
    base: Run | str | Path, others: Sequence[Run | str | Path], controls: Sequence[Run | str | Path] = (), *, until: str = "year"
) -> tuple[Reactions, list[str]]:
    """What each incident that one of `others` has beyond `base` asked for, and what came of it; else as `compared`."""
    rows, warnings = _sorted(base, others, controls)
    return reactions(*rows, until=until), warnings


def _sorted(
    base: Run | str | Path, others: Sequence[Run | str | Path], controls: Sequence[Run | str | Path]
) -> tuple[tuple[RunRows, list[RunRows], list[RunRows]], list[str]]:
    """The base, the runs to set against it and the controls, redrawn forks among the others too; with what was odd in reading them."""
    first, given, named = ([one if isinstance(one, Run) else Run.open(one) for one in several] for several in ([base], others, controls))
    redrawn = [run for run in given if run.config.parent is not None and run.config.parent.is_control]
    if redrawn and len(redrawn) == len(given):
        redrawn = redrawn[1:]  # what chance makes of a redrawn run, against the others
    rest = [run for run in given if run not in redrawn]
    rows = (_rows(first[0]), [_rows(run) for run in rest], [_rows(run) for run in (*redrawn, *named)])
    return rows, [warning for run in (*first, *given, *named) for warning in run.warnings]


def _rows(run: Run) -> RunRows:
    pool = run.pool()
    try:
        return read(run.folder, pool)
    finally:
        pool.close()
