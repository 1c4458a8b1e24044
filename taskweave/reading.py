"""What a run holds, from Python: its tables, its digest, traces, exports.

Entry points: `ReadRun`, which `api.Run` adds to what can be done with a run, and `Table`.  Refuses to print, to change a run, and to load
pandas before `df()` is called.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from taskweave.engine.reader import JournalReader
from taskweave.errors import BadInput, RunRefused
from taskweave.exports.jsonl import export
from taskweave.exports.lengths import measure, write_lengths
from taskweave.pool.pool import Pool
from taskweave.pool.tables import COLUMNS, table_named
from taskweave.pool.trace import BREADTH, DEPTH
from taskweave.report.case_trace import Recurring, look
from taskweave.report.status import status
from taskweave.runs import RunConfig, RunFolder
from taskweave.simulation.year import Outcome

if TYPE_CHECKING:
    import pandas

    from taskweave.pool.trace import Trace

_LOOKS = (0.05, 0.1, 0.2, 0.4, 0.0)  # seconds between looks at a run.db that a live run writes


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


class ReadRun:
    """One run on disk.  Tables are methods: `run.tasks()`, `run.results()`, ...; each can be iterated and has `df()`.

    `warnings` collects what was odd, but no reason not to answer.
    """

    def __init__(self, folder: RunFolder, outcome: Outcome | None = None) -> None:
        self.folder = folder
        self.outcome = outcome
        self.warnings: list[str] = []
        self._read = False  # the journal, of which every page is checked once

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

    def entities(self) -> Table:
        return self.table("entities")

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
        pool = self.pool()
        try:
            return pool.trace(id, depth=depth, breadth=breadth)
        finally:
            pool.close()

    def recurring(self, id: str) -> Recurring | None:
        """A case of recurring work with its steps, or a whole work against the file, by id or name; None where it is neither."""
        pool = self.pool()
        try:
            return look(pool, self.folder.organization(), id)
        finally:
            pool.close()

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


def _without_tables(folder: RunFolder, *, closed: bool) -> RunRefused:
    """What to say of a run without run.db, of which weeks are `closed` or none is."""
    resume = f"taskweave resume {quote(str(folder.path))}"
    if closed:
        return RunRefused(f"{folder.run_db_path}: is missing; '{resume}' rebuilds it without asking anything.")
    return RunRefused(f"{folder.path}: nothing is written yet. Let it run first: {resume}")
