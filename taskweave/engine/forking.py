"""How a journal becomes that of a fork: what was closed before the fork's week stays, what was answered is offered, the rest is gone.

Entry points: `fork_journal`; `copy_journal` for a re-execution elsewhere, `offer_outside` for a repetition as a run of its own.  The
source is only read, also while an engine writes it.
What a fork changes, and why, is not known here.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from taskweave.engine.outcomes import storable
from taskweave.engine.outside import ENDED_BEFORE, unknown
from taskweave.engine.promises import COMPLETE, OUTSIDE
from taskweave.engine.store import ASKED, Transaction, check_pages, leave_wal, legible, named_trouble, open_for_reading, open_for_writing
from taskweave.errors import RunRefused
from taskweave.records import canonical

_SELECT = f"SELECT r.{ASKED.replace(', ', ', r.')}"
_OUTCOMES = f"{_SELECT}, o.value, o.prompt_tokens, o.completion_tokens, o.at FROM outcomes o JOIN requests r USING (key)"
# Look-ups are made again: what they find depends on what else has happened, which their question does not say.
_ANSWERED = f"{_OUTCOMES} WHERE o.kind = '{COMPLETE}' GROUP BY r.key"
# What has happened outside, or was begun there and may have happened, is never done again.
_HAPPENED = f"{_OUTCOMES} WHERE o.kind GLOB '{OUTSIDE}*' GROUP BY r.key"
_BEGAN = f"{_SELECT}, ?, 0, 0, a.at FROM attempts a JOIN requests r USING (key) WHERE r.kind GLOB '{OUTSIDE}*' GROUP BY r.key"
_OFFER = "INSERT OR IGNORE INTO offered"
_BEGUN = storable({"answer": unknown(ENDED_BEFORE), "latency": 0.0})
_KEY, _MESSAGES = 0, ASKED.split(", ").index("messages")
_OF_ITS_OWN = ("outcomes", "requests", "attempts", "ends", "sessions", "stops", "inputs")


def fork_journal(parent: Path, path: Path, *, week: int, tick: int, drop: Collection[str] = ()) -> None:
    """Make the journal of a fork at `path`: it may differ from week `week` on, whose first working day is `tick`.

    Kept are the digests of the weeks and the ticks before, and all injections but those to `drop`, by id.  Every completion that the parent
    was answered, or was itself offered, is offered; none counts as the fork's own before it is used.  Attempts are not copied.
    Raises RunRefused where the parent has not closed all weeks before, or holds no such injection; BadInput for a damaged journal.
    """
    with _copied(parent, path) as copy:
        _check(copy, parent, week=week, tick=tick, drop=drop)
        with Transaction(copy, path):
            for query, values in ((_ANSWERED, ()), (_HAPPENED, ()), (_BEGAN, (_BEGUN,))):
                copy.execute(f"{_OFFER} {query}", values)
            for table in _OF_ITS_OWN:
                copy.execute(f"DELETE FROM {table}")
            copy.execute("DELETE FROM weeks WHERE week >= ?", (week,))
            for table in ("ticks", "rejected"):
                copy.execute(f"DELETE FROM {table} WHERE tick >= ?", (tick,))
            copy.executemany("DELETE FROM injections WHERE id = ?", [(id,) for id in drop])


def offer_outside(run: Path, path: Path) -> None:
    """Offer to the journal at `path` what happened outside in the run's: it repeats that run, and must not do it again.

    The same again changes nothing.  Raises BadInput for a damaged journal.
    """
    with contextlib.closing(open_for_reading(run)) as db, named_trouble(run), legible(run, "what happened outside"):
        rows = [*db.execute(_HAPPENED), *db.execute(_BEGAN, (_BEGUN,))]
        asked = {row[_KEY]: [(role, _body(db, number)) for role, number in json.loads(row[_MESSAGES])] for row in rows}
    with contextlib.closing(open_for_writing(path, create=False)) as other:
        with Transaction(other, path):
            there = {key for (key,) in other.execute("SELECT key FROM offered UNION SELECT key FROM outcomes")}
            for row in rows:
                if row[_KEY] in there:
                    continue
                there.add(row[_KEY])
                added = [(role, other.execute("INSERT INTO texts(body) VALUES (?)", (body,)).lastrowid) for role, body in asked[row[_KEY]]]
                values = [*row[:_MESSAGES], canonical(added), *row[_MESSAGES + 1 :]]
                other.execute(f"{_OFFER} VALUES ({', '.join('?' * len(values))})", values)
        leave_wal(other)


def _body(db: sqlite3.Connection, number: int) -> bytes:
    (body,) = db.execute("SELECT body FROM texts WHERE id = ?", (number,)).fetchone()
    return bytes(body)


def copy_journal(run: Path, path: Path) -> None:
    """A journal with all that the run's holds but the digests of its weeks: what is re-executed on it is compared, and not refused."""
    with _copied(run, path) as copy:
        copy.execute("DELETE FROM weeks")


@contextlib.contextmanager
def _copied(source: Path, path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a journal as it was at one moment, out of WAL mode when the block ends."""
    with contextlib.ExitStack() as closing:
        closing.enter_context(named_trouble(path))
        db = closing.enter_context(contextlib.closing(open_for_reading(source)))
        with named_trouble(source):
            check_pages(db, source)  # what is damaged here would be found in the copy, and called by a name that nobody knows
        copy = closing.enter_context(contextlib.closing(sqlite3.connect(path, isolation_level=None)))
        db.backup(copy)
        yield copy
        leave_wal(copy)


def _check(copy: sqlite3.Connection, parent: Path, *, week: int, tick: int, drop: Collection[str]) -> None:
    (closed,) = copy.execute("SELECT count(*) FROM weeks").fetchone()
    if week > closed + 1:
        raise RunRefused(
            f"{parent.parent}: the run has closed {closed} week{'' if closed == 1 else 's'}, so a fork may differ from week {closed + 1} "
            f"on at the latest, not from week {week}. Fork it at week:{closed + 1} or earlier, or let it run further first"
        )
    held = dict(copy.execute("SELECT id, tick FROM injections"))
    for id in drop:
        if id not in held:
            known = ", ".join(sorted(held)) or "none"
            raise RunRefused(f"{parent.parent}: there is no incident {id!r} to drop; the run holds: {known}")
        if held[id] < tick:
            raise RunRefused(
                f"{parent.parent}: the incident {id!r} happened before week {week}, so dropping it would change earlier weeks. "
                "Fork at the week in which it happened"
            )
