"""TaskWeave from Python: load an organization, simulate it, read what happened.

Entry points: `Organization`, `simulate`, `Run`, `runs`, `diff`.  Refuses to print, and to load pandas before `df()` is called.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from taskweave import driving
from taskweave.driving import Organization
from taskweave.engine.reader import JournalReader
from taskweave.errors import BadInput, RunRefused
from taskweave.experiments.comparison import Diff
from taskweave.experiments.diff import compare
from taskweave.experiments.rows import RunRows, read
from taskweave.experiments.telling import ReadableDiff, readable
from taskweave.experiments.verify import Verified, verify
from taskweave.exports.jsonl import export
from taskweave.exports.lengths import measure, write_lengths
from taskweave.given import checked, several
from taskweave.pool.pool import Pool
from taskweave.pool.tables import COLUMNS, table_named
from taskweave.pool.trace import BREADTH, DEPTH
from taskweave.records import StyleName
from taskweave.report.case_trace import Recurring, look
from taskweave.report.status import Status, status, survey
from taskweave.runs import RunConfig, RunFolder, list_runs
from taskweave.simulation.year import Outcome, Progress
from taskweave.telemetry import Telemetry, Tracers

if TYPE_CHECKING:
    import pandas

    from taskweave.pool.trace import Trace
    from taskweave.records import Backbone

_LOOKS = (0.05, 0.1, 0.2, 0.4, 0.0)  # seconds between looks at a run.db that a live run writes

__all__ = ["Organization", "Run", "Table", "diff", "runs", "simulate"]


class Fingerprint(NamedTuple):
    """A run's digest, and of how much: up to `week` of `weeks`; `finished` is whether that is its horizon.  None is not known."""

    digest: str
    week: int
    weeks: int | None
    finished: bool | None


class Table(Sequence[dict[str, Any]]):
    """The rows of one table, as mappings; `df()` makes a pandas DataFrame of them.  `columns` are there also where no row is."""

    def __init__(self, name: str, rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> None:
        self.name = name
        self.columns = tuple(columns)
        self._rows = list(rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        return self._rows[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self)} rows)"

    def df(self) -> pandas.DataFrame:
        """The rows as a DataFrame.  Raises BadInput where pandas is not installed."""
        try:
            import pandas as pd
        except ImportError as error:
            raise BadInput("df() needs pandas: pip install pandas, or TaskWeave with its extra, pip install '.[pandas]'.") from error
        return pd.DataFrame(self._rows, columns=list(self.columns))


class Run:
    """One run on disk.  Tables are methods: `run.tasks()`, `run.results()`, ...; each can be iterated and has `df()`.

    `warnings` collects what was odd, but no reason not to answer.
    """

    def __init__(self, folder: RunFolder, outcome: Outcome | None = None) -> None:
        self.folder = folder
        self.outcome = outcome
        self.warnings: list[str] = []
        self._read = False  # the journal, of which every page is checked once

    @classmethod
    def open(cls, run: str | Path) -> Run:
        """The run with this path, or with this name under runs/."""
        return cls(RunFolder.open(run))

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def config(self) -> RunConfig:
        return self.folder.config

    @property
    def finished(self) -> bool:
        """Whether it has reached its horizon."""
        return status(self.folder).finished

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

        `incidents` are added and those of the ids `drop` left out; `prompts` lie over the run's; `backbone` answers from that week on.
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

    # ------------------------------------------------------------ what happened
    def pool(self) -> Pool:
        """run.db, open for reading.  Raises RunRefused before there is one, and where it holds less than the weeks that are closed."""
        closed = self._closed()
        if not self.folder.run_db_path.exists():
            raise _without_tables(self.folder, closed=bool(closed))
        for pause in _LOOKS:
            pool = Pool.open(self.folder.run_db_path)  # anew each time: another file may have taken its place
            try:
                written = set(pool.weeks())
            except BaseException:
                pool.close()
                raise
            if closed <= written:
                return pool
            pool.close()
            if (holder := self.folder.holder()) is None:
                break
            time.sleep(pause)  # a week is closed in the journal a moment before its rows are there
        # Rebuilding makes another file, which takes the place of one that has as many weeks; this one has fewer.
        holds = f"holds weeks {min(written)}-{max(written)} of the {len(closed)} that are closed" if written else "holds no week yet"
        if holder is not None:
            raise RunRefused(f"{pool.path}: {holds}: it is being rebuilt by {holder}. Ask again when that is done.")
        raise RunRefused(
            f"{pool.path}: {holds}: its rebuilding was interrupted; 'taskweave resume {quote(str(self.path))}' completes it, without "
            "asking again what was answered."
        )

    def _closed(self) -> set[int]:
        """The weeks that the journal has closed.  Without a journal nothing is known of them: the tables stand for themselves then."""
        if not self.folder.journal_path.exists():
            self.warnings.append(
                f"{self.folder.journal_path}: is not there, so whether run.db holds all that happened cannot be checked. "
                "Put it back to have that checked, and to resume."
            )
            return set()
        with JournalReader(self.folder.journal_path, whole=not self._read) as journal:
            self._read = True
            return {week.week for week in journal.weeks()}

    def _refuse_nothing(self, pool: Pool) -> None:
        if not pool.weeks():
            raise RunRefused(f"{self.path}: no week is sealed yet. Let it run first: taskweave resume {quote(str(self.path))}")

    def _reach(self, pool: Pool) -> tuple[int, int | None, bool | None]:
        """How far the tables reach, with a warning where that is not the run's horizon: what is read is a part, tomorrow another one."""
        week = max(pool.weeks())
        if not self.folder.journal_path.exists():
            return week, None, None  # which is said already
        try:
            now = status(self.folder)
        except BadInput as trouble:
            self.warnings.append(f"whether the run has reached its horizon is not known: {trouble}")
            return week, None, None
        if finished := now.finished and week >= now.weeks:
            return week, now.weeks, finished
        self.warnings.append(
            f"{self.path}: the run is not finished ({now.state}): this is of weeks 1-{week} of {now.weeks}. "
            "It equals that of another run only where that one has come as far."
        )
        return week, now.weeks, finished

    def table(self, name: str) -> Table:
        """One table by its name."""
        pool = self.pool()
        try:
            with pool.snapshot():
                return Table(name, pool.rows(name), COLUMNS[table_named(name).name])
        finally:
            pool.close()

    def agents(self) -> Table:
        return self.table("agents")

    def edges(self) -> Table:
        return self.table("edges")

    def states(self) -> Table:
        return self.table("states")

    def tasks(self) -> Table:
        return self.table("tasks")

    def subtasks(self) -> Table:
        return self.table("subtasks")

    def results(self) -> Table:
        return self.table("results")

    def uses(self) -> Table:
        return self.table("uses")

    def provenance(self) -> Table:
        return self.table("provenance")

    def tool_calls(self) -> Table:
        return self.table("tool_calls")

    def incidents(self) -> Table:
        return self.table("incidents")

    def events(self) -> Table:
        return self.table("events")

    def load(self) -> Table:
        return self.table("load")

    def readings(self) -> Table:
        return self.table("readings")

    def goals(self) -> Table:
        return self.table("goals")

    def calls(self) -> Table:
        return self.table("calls")

    def trace(self, id: str, *, depth: int = DEPTH, breadth: int = BREADTH) -> Trace:
        """What a result, task, plan or incident rests on, and what rests on it: `depth` links far, at most `breadth` of a kind each."""
        with closing(self.pool()) as pool:
            return pool.trace(id, depth=depth, breadth=breadth)

    def recurring(self, id: str) -> Recurring | None:
        """A case of recurring work with its steps, or a whole work against the file, by id or name; None where it is neither."""
        with closing(self.pool()) as pool:
            return look(pool, self.folder.organization(), id)

    def digest(self) -> str:
        """The sha256 that equal runs share.  Raises RunRefused before the first week is sealed."""
        return self.fingerprint().digest

    def fingerprint(self) -> Fingerprint:
        """The digest, and how far the run had come; `warnings` says so where it is not finished."""
        pool = self.pool()
        try:
            with pool.snapshot():
                self._refuse_nothing(pool)
                return Fingerprint(pool.digest(), *self._reach(pool))
        finally:
            pool.close()

    def export(self, out: str | Path, format: Literal["jsonl", "lengths"] = "jsonl") -> list[Path]:
        """Write what happened and return the paths: the tables, one file each, or `lengths`, one file `out` of how long answers were."""
        if format == "lengths":
            return [write_lengths(measure(self.folder), Path(out))]
        if format != "jsonl":
            raise BadInput(f"{format!r}: there is no such export format; there are 'jsonl' and 'lengths'.")
        pool = self.pool()
        try:
            with pool.snapshot():
                self._refuse_nothing(pool)
                self._reach(pool)
                return export(pool, Path(out), self.warnings)
        finally:
            pool.close()


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
    observe: Callable[[Progress], None] | None = None,
    tracer_provider: Tracers | None = None,
) -> Run:
    """Simulate an organization and return its run; `run.outcome` says whether and why it ended early.

    `until` is week:8, quarter, quarter:2, month:3, year or a date.  `incidents` are files, or `library:NAME` of the shipped ones; `rate`
    ("1/month") draws so many of those without a time in each period.  `style` is how steps are asked (None: chosen by what is known of the
    backbone), `max_fallback` the share of answers that may be made by code instead before the run stops, `budget_usd`, `budget_tokens` and
    `budget_hours` what it may take at the most over all its sessions, `without` names parts of the loop to leave out (diagnose, align,
    reconcile, roll_up, retrieval), `look=False` asks nothing of an endpoint beforehand, `prices` is a file of your own prices.
    `tracer_provider` is OpenTelemetry's, which gets the run's spans and is left as it is (None: one is made where OTEL_* variables ask for
    it).  Works inside a running event loop.  After an interrupt the run that is returned can be resumed.
    Raises BadInput for what cannot be used, before anything is written.
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
    first, given, named = ([one if isinstance(one, Run) else Run.open(one) for one in several] for several in ([base], others, controls))
    redrawn = [run for run in given if run.config.parent is not None and run.config.parent.is_control]
    if redrawn and len(redrawn) == len(given):
        redrawn = redrawn[1:]  # what chance makes of a redrawn run, against the others
    rest = [run for run in given if run not in redrawn]
    found = compare(_rows(first[0]), [_rows(run) for run in rest], [_rows(run) for run in (*redrawn, *named)], until=until)
    return found, [warning for run in (*first, *given, *named) for warning in run.warnings]


def _without_tables(folder: RunFolder, *, closed: bool) -> RunRefused:
    """What to say of a run without run.db, of which weeks are `closed` or none is."""
    resume = f"taskweave resume {quote(str(folder.path))}"
    if closed:
        return RunRefused(f"{folder.run_db_path}: is missing; '{resume}' rebuilds it without asking anything.")
    return RunRefused(f"{folder.path}: nothing is written yet. Let it run first: {resume}")


def _rows(run: Run) -> RunRows:
    pool = run.pool()
    try:
        return read(run.folder, pool)
    finally:
        pool.close()
