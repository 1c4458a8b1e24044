"""Does a run follow from its journal?  All of it is re-executed elsewhere, and the rows compared.

Entry point: `verify`.  Nothing is asked of a backbone, and the run is only read.  Why rows differ is not known here: the code, an input,
the journal or run.db may have changed since.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from taskweave.engine.forking import copy_journal
from taskweave.engine.reader import JournalReader
from taskweave.errors import BackboneOut, BadInput, DiskFull, RunRefused
from taskweave.pool.pool import Pool
from taskweave.pool.tables import PRIMARY_KEY, TABLES
from taskweave.records import Json
from taskweave.runs import RunFolder
from taskweave.runs.forking import copy_inputs
from taskweave.runs.inputs import changed
from taskweave.simulation.year import simulate

MOST_SHOWN = 120  # characters of a value that differs
# Later weeks change none of their rows.
WRITTEN_ONCE = ("agents", "edges", "results", "uses", "provenance", "tool_calls", "load", "readings", "goals", "calls")
_WEEK = re.compile(r"/W(\d+)@")
_PERIOD = re.compile(r"Y1(?:/Q(\d+))?(?:/M(\d+))?")


class Difference(NamedTuple):
    """A row that differs: its table and id, the first column that does, and its values (None: the row is not there)."""

    table: str
    id: str
    column: str
    recorded: str | None
    re_executed: str | None


class Verified(NamedTuple):
    """What came of it.

    `weeks` were closed, `rows` compared; `week` is the first whose digest differs (None: none), `differences` are in the order of the
    year; `changed` names inputs that were edited since, `unanswered` says where something else is asked than was.
    """

    weeks: int
    rows: int
    week: int | None
    differences: tuple[Difference, ...]
    changed: tuple[str, ...]
    unanswered: str

    @property
    def ok(self) -> bool:
        return self.week is None and not self.differences and not self.changed


def verify(run: RunFolder) -> Verified:
    """Re-execute the closed weeks of a run from a copy of its journal, and compare digests and rows.

    Raises RunRefused for one that a process holds or that has closed no week, BadInput for a damaged file, BackboneOut (75) where the
    disk on which it is re-executed is full.
    """
    if (holder := run.holder()) is not None:
        raise RunRefused(f"{run.path}: it is being driven by {holder}. Verify it when that is done")
    with JournalReader(run.journal_path) as journal:
        recorded = {week.week: week.digest for week in journal.weeks()}
    if not recorded:
        raise RunRefused(f"{run.path}: no week is closed yet, so there is nothing to verify")
    edited = tuple(changed(run))
    with _elsewhere(run.path) as place:
        copy = copy_inputs(run, place / "run", until=f"week:{max(recorded)}")
        copy_journal(run.journal_path, copy.journal_path)
        try:
            outcome = asyncio.run(simulate(copy, None, until_week=max(recorded), limit=1, patience=0.0))
        except BadInput as trouble:  # of a row that was copied: the file that a person has is the run's
            raise BadInput(str(trouble).replace(str(copy.path), str(run.path))) from trouble
        if outcome.stop == "disk":
            raise DiskFull(outcome.cause)
        with JournalReader(copy.journal_path) as journal:
            now = {week.week: week.digest for week in journal.weeks()}
        week = next((number for number, digest in sorted(recorded.items()) if now.get(number) != digest), None)
        rows, differences = 0, list[Difference]()
        if run.run_db_path.exists():
            with Pool.open(run.run_db_path) as before, Pool.open(copy.run_db_path) as after:
                rows, differences = _compare(before, after, set(recorded), set(now))
    return Verified(
        weeks=len(recorded),
        rows=rows,
        week=week,
        differences=tuple(sorted(differences, key=lambda one: (_place(one), TABLES.index(one.table), one.id))),
        changed=edited,
        unanswered=outcome.cause if outcome.stop == "unanswered" and outcome.executed < max(recorded) else "",
    )


@contextlib.contextmanager
def _elsewhere(run: Path) -> Iterator[Path]:
    """A folder that is gone when the block ends; a full disk within the block is its disk."""
    try:
        made = tempfile.TemporaryDirectory(prefix="taskweave-verify-", ignore_cleanup_errors=True)
    except OSError as trouble:
        raise BadInput(f"{run}: there is nowhere to re-execute it ({trouble}). Set TMPDIR to a folder that can be written") from trouble
    with made as place:
        try:
            yield Path(place)
        except (DiskFull, OSError) as trouble:
            if isinstance(trouble, OSError) and trouble.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise BackboneOut(
                f"{run}: cannot be verified, the disk of {Path(place).parent} is full. Make room there, or set TMPDIR to a folder on "
                "another disk, and verify it again. The run is as it was"
            ) from trouble


def _compare(before: Pool, after: Pool, recorded: set[int], now: set[int]) -> tuple[int, list[Difference]]:
    """How many rows were compared, and those that differ."""
    rows, differences = 0, list[Difference]()
    if missing := sorted(recorded - set(before.weeks())):
        raise RunRefused(
            f"{before.path}: holds {len(recorded) - len(missing)} of the {len(recorded)} weeks that are closed. "
            "'taskweave resume' completes it without asking anything; then verify"
        )
    whole = recorded <= now
    for table in TABLES if whole else WRITTEN_ONCE:
        old, new = dict(_keyed(before, table)), dict(_keyed(after, table))
        rows += len(old)
        # Where something else is asked than was, re-execution ends there, and what came later is not known.
        for key in sorted(old.keys() | new.keys() if whole else old.keys() & new.keys()):
            if old.get(key) != new.get(key):
                differences.append(_difference(table, key, old.get(key), new.get(key)))
    return rows, differences


def _keyed(pool: Pool, table: str) -> Iterator[tuple[str, dict[str, Json]]]:
    for row in pool.rows(table):
        yield " ".join(str(row[column]) for column in PRIMARY_KEY[table]), row


def _difference(table: str, key: str, old: dict[str, Json] | None, new: dict[str, Json] | None) -> Difference:
    if old is None or new is None:
        return Difference(table, key, "", None if old is None else "there", None if new is None else "there")
    column = next(name for name in old if old[name] != new[name])
    return Difference(table, key, column, *_shown(old[column], new[column]))


def _shown(old: Json, new: Json) -> tuple[str, str]:
    """Two values from shortly before where they part."""
    texts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (old, new)]
    at = next((place for place, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, at - MOST_SHOWN // 3)
    first, second = (("…" if start else "") + text[start : start + MOST_SHOWN] for text in texts)
    return first, second


def _place(one: Difference) -> tuple[int, int, int]:
    """Where in the year a row lies: quarter, month, week.  A plan that was revised, and what names no period, comes last."""
    period, week = _PERIOD.search(one.id), _WEEK.search(one.id)
    quarter, month = period.groups() if period is not None else (None, None)
    missing = 0 if period is not None and not (one.table == "states" and not one.id.endswith(" 1")) else 99
    first, second, third = (int(number) if number else missing for number in (quarter, month, week[1] if week else None))
    return first, second, third
