"""What has happened, on disk: outcomes, attempts and their ends, ticks, injections, closed weeks, stops.  All of it is append-only.

Entry points: `Journal`, the engine's one writing connection, and `JournalReader` (in `reader.py`) for everyone else.
Every commit comes before its effect leaves the process: an attempt before its request, a week before its rows in run.db.
Nothing here knows what a work does with an outcome; rows of a run that people read are the pool's.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from taskweave.engine.accounts import MAYBE_BILLED
from taskweave.engine.budget import Bound
from taskweave.engine.outcomes import Ended, Landed, Outcome
from taskweave.engine.payloads import read_payload, set_aside, shown
from taskweave.engine.promises import Ask
from taskweave.engine.reader import Injection, JournalReader
from taskweave.engine.store import ASKED, Transaction, damaged, leave_wal, legible, named, named_trouble, open_for_writing
from taskweave.errors import BadInput, DiskFull, Divergence, RunRefused
from taskweave.records import Json, Request, canonical, text_digest

__all__ = ["Injection", "Journal", "JournalReader"]

OUTCOME = "outcome"
LEAST_ROOM = 2**20  # bytes: some turns of many answers


def as_said(payload: dict[str, Json], n: int) -> int:
    """The tick that a payload names, or `n` where it names none or one that has passed."""
    return max(n, int(payload.get("tick", n)))


class Journal:
    """The writing side.  `create` makes a new journal (BadInput where there is one), otherwise an existing one is opened.

    `lost` counts the attempts of earlier sessions whose answer may have been made and is not here, `last_tick` is the latest committed
    tick (-1: none), `weeks` the number of closed weeks, `undone` whether the last `joined` was rolled back, as far as it had not been
    committed by one of the `saves` that close a week.  DiskFull, BadInput (damaged, foreign, newer) come from any method that touches the
    file.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        self._db = open_for_writing(path, create=create)
        self._texts: dict[str, int] = {}  # numbers of the texts of this session by their digests: a later one stores what it shares again
        self._accepted: list[str] = []  # keys of what was offered and is used, to be written down with the next commit
        self._outer: Transaction | None = None
        self._broken: BaseException | None = None  # what broke off the writing of rows within the outer transaction
        self.undone = False
        self.saves = 0
        with named_trouble(path):
            self.lost = self._count(
                f"SELECT count(*) FROM attempts WHERE est > 0 AND id NOT IN (SELECT attempt FROM ends WHERE how NOT IN {MAYBE_BILLED})"
            )
            self.last_tick = self._count("SELECT coalesce(max(tick), -1) FROM ticks")
            self.weeks = self._count("SELECT count(*) FROM weeks")
            self._to_repeat = self.weeks
            self._attempt = self._count("SELECT coalesce(max(id), 0) FROM attempts")
            self._earlier = self._count("SELECT EXISTS (SELECT 1 FROM outcomes)")
            self._offers = self._count("SELECT EXISTS (SELECT 1 FROM offered)")
            self._last_text = self._count("SELECT coalesce(max(id), 0) FROM texts")
            asked = self._db.execute("SELECT key FROM requests WHERE key NOT IN (SELECT key FROM outcomes)")
            self._unanswered = frozenset(key for (key,) in asked)  # written down by a session that ended before the answer
            # What is done outside takes no tokens: its attempts are those that reserve none.
            self._begun: dict[str, int] = dict(self._db.execute("SELECT key, min(id) FROM attempts WHERE est = 0 GROUP BY key"))
            self._session = self._count("SELECT coalesce(max(seq), 0) FROM sessions")

    # ---------------------------------------------------------------- asks
    def outcome(self, key: str) -> Outcome | None:
        """What an earlier session has journaled under a key, or the run that this one is a fork of.

        In one session nothing is asked twice: no site is launched twice.
        """
        row = self._found("outcomes", key) if self._earlier else None
        if row is None and self._offers and (row := self._found("offered", key)) is not None:
            self._accepted.append(key)
        if row is None:
            return None
        if not (isinstance(row[0], str) and isinstance(row[1], int) and isinstance(row[2], int)):
            raise damaged(self.path, f"outcome {key[:12]}: not a text and two numbers")
        return Outcome(*row)

    def _found(self, table: str, key: str) -> tuple[Json, ...] | None:
        try:
            row: tuple[Json, ...] | None = self._db.execute(
                f"SELECT value, prompt_tokens, completion_tokens FROM {table} WHERE key = ?", (key,)
            ).fetchone()
        except sqlite3.DatabaseError as trouble:
            raise named(self.path, trouble) from trouble
        return row

    def accept(self) -> None:
        """Write down which of the offered answers this run has used since this was last called: now it rests on them."""
        if not self._accepted:
            return
        keys = [(key,) for key in self._accepted]
        with self._transaction():
            self._db.executemany(f"INSERT INTO requests SELECT {ASKED} FROM offered WHERE key = ?", keys)
            self._db.executemany(
                "INSERT INTO outcomes(key, site, ordinal, draw, kind, value, inherited, prompt_tokens, completion_tokens, at)"
                " SELECT key, site, ordinal, draw, kind, value, 1, prompt_tokens, completion_tokens, at FROM offered WHERE key = ?",
                keys,
            )
        self._accepted = []

    def begun(self, key: str) -> int | None:
        """The attempt with which an earlier session began something outside; None where none has."""
        return self._begun.get(key)

    def begin(self, asks: Sequence[Ask]) -> range:
        """Write an attempt for each ask, and what it asks; to be called before anything is sent.  Returns the attempts' ids."""
        first = self._attempt + 1
        ids = range(first, first + len(asks))
        with self._transaction():
            added = self._write_requests(ask for ask in asks if ask.tries == 0 and ask.key not in self._unanswered)
            self._db.executemany(
                "INSERT INTO attempts(id, key, est) VALUES (?, ?, ?)",
                [(attempt, ask.key, ask.estimate) for attempt, ask in zip(ids, asks, strict=True)],
            )
        self._remember(added)
        self._attempt = ids[-1] if asks else self._attempt
        return ids

    def land(self, landed: Sequence[Landed], ended: Sequence[Ended] = ()) -> None:
        """Write outcomes, the ends of their attempts, and the ends of attempts without one, in a single transaction."""
        with self._transaction():
            added = self._write_requests(item.ask for item in landed if item.attempt is None)
            self._db.executemany(
                "INSERT INTO outcomes(key, site, ordinal, draw, kind, value, prompt_tokens, completion_tokens)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (a.key, a.site, a.ordinal, a.draw, a.kind, o.value, o.prompt_tokens, o.completion_tokens)
                    for a, o in ((item.ask, item.outcome) for item in landed)
                ],
            )
            self._db.executemany(
                "INSERT INTO ends(attempt, how, why) VALUES (?, ?, ?)",
                [(item.attempt, OUTCOME, "") for item in landed if item.attempt is not None]
                + [(item.attempt, item.how, item.why) for item in ended],
            )
        self._remember(added)

    # ---------------------------------------------------------------- ticks and injections
    def tick(self, n: int, inbox: Path, meant: Callable[[dict[str, Json], int], int] = as_said) -> list[Injection]:
        """The injections of tick `n`, by id.  A tick that has not run takes what lies in the inbox, in one commit with its number.

        `meant` says which tick a payload is for, `n` or a later one, and raises BadInput where it can be for none.  That, and what is
        not a JSON object, is set aside as NAME.rejected with the reason in NAME.why beside it, and the run goes on.
        """
        if n > self.last_tick:
            self._commit_tick(n, inbox, meant)
        with named_trouble(self.path):
            rows = self._db.execute("SELECT id, tick, payload FROM injections WHERE tick = ? ORDER BY id", (n,)).fetchall()
        with legible(self.path, f"injections of day {n}"):
            return [Injection(id=name, tick=tick, payload=json.loads(payload)) for name, tick, payload in rows]

    def schedule(self, id: str, tick: int, payload: dict[str, Json]) -> None:
        """Put an injection down for a tick that has not run; the same one twice is one."""
        if tick <= self.last_tick:
            raise RunRefused(f"{id}: tick {tick} has run already (the run is at {self.last_tick}); fork the run before it")
        with self._transaction():
            if (why := self._add_injection(id, canonical(payload), lambda: tick)) is not None:
                raise BadInput(f"{id}: {why}")

    def reject(self, id: str, tick: int, why: str) -> bool:
        """Write down, once, that an injection was taken and could not be used; returns whether that is new."""
        with self._transaction():
            done = self._db.execute(
                "INSERT INTO rejected(name, why, tick)"
                " SELECT ?1, ?2, ?3 WHERE NOT EXISTS (SELECT 1 FROM rejected WHERE name = ?1 AND tick = ?3)",
                (id, shown(why), tick),
            )
        return done.rowcount > 0

    def _commit_tick(self, n: int, inbox: Path, meant: Callable[[dict[str, Json], int], int]) -> None:
        files = sorted(f for f in inbox.glob("*.json") if not f.name.startswith(".")) if inbox.is_dir() else []
        taken: list[Path] = []
        refused: list[tuple[Path, str]] = []
        with self._transaction():
            for file in files:
                why: str | None
                try:
                    payload = read_payload(file)
                    why = self._add_injection(file.stem, canonical(payload), partial(meant, payload, n))
                except BadInput as trouble:
                    why = shown(str(trouble))
                if why is None:
                    taken.append(file)
                else:
                    refused.append((file, why))
                    name = os.fsencode(file.name).decode("utf-8", "replace")
                    self._db.execute("INSERT INTO rejected(name, why, tick) VALUES (?, ?, ?)", (name, why, n))
            self._db.execute("INSERT INTO ticks(tick) VALUES (?)", (n,))
        self.last_tick = n
        # Only now: a crash before this line leaves the files, and their names say that they were taken.
        for file in taken:
            with contextlib.suppress(OSError):
                file.unlink()
        for file, why in refused:
            set_aside(file, why)

    def _add_injection(self, id: str, payload: str, tick: Callable[[], int]) -> str | None:
        """Add it unless it is there; returns why it cannot be, where another one has its name."""
        row = self._db.execute("SELECT payload, tick FROM injections WHERE id = ?", (id,)).fetchone()
        if row is None:
            # Asked only now: a crash may have left the file of one that is there, and its time has passed.
            self._db.execute("INSERT INTO injections(id, tick, payload) VALUES (?, ?, ?)", (id, tick(), payload))
        elif row[0] != payload:
            return f"another injection named {id!r} was taken for tick {row[1]}; give this one a name of its own"
        return None

    # ---------------------------------------------------------------- weeks, sessions, stops
    def close_week(self, week: int, digest: str, facts: dict[str, Json]) -> None:
        """Write a closed week down, with all that it rests on; Divergence where the journal holds another digest for it.

        Nothing is overwritten.  It is committed when this returns, also within `joined`: what is derived from it may be written then.
        """
        with named_trouble(self.path):
            row = self._db.execute("SELECT digest FROM weeks WHERE week = ?", (week,)).fetchone()
        if row is not None:
            if row[0] != digest:
                raise diverged(self.path, f"week {week} was closed with digest {row[0][:12]} and re-executed to {digest[:12]}")
            self._to_repeat = min(self._to_repeat, self.weeks - week)
            return
        self.accept()
        with self._transaction():
            self._db.execute("INSERT INTO weeks(week, digest, facts) VALUES (?, ?, ?)", (week, digest, canonical(facts)))
        if self._outer is not None:
            self._outer.__exit__(None, None, None)
            self.saves += 1
        self.weeks += 1

    @property
    def repeating(self) -> int | None:
        """The week that is re-executed, of those that were closed before, here or in the run that this is a fork of; None after them."""
        return self.weeks - self._to_repeat + 1 if self._to_repeat else None

    def last_week(self) -> tuple[int, str | None]:
        """The last closed week and its digest; 0 and None before the first."""
        with named_trouble(self.path):
            row = self._db.execute("SELECT week, digest FROM weeks ORDER BY week DESC LIMIT 1").fetchone()
        return (0, None) if row is None else (int(row[0]), str(row[1]))

    def write_inputs(self, digests: Mapping[str, str]) -> None:
        """Write down, once, what the run works from: a digest by name."""
        with self._transaction():
            self._db.executemany("INSERT INTO inputs(name, digest) VALUES (?, ?)", digests.items())

    def begin_session(self) -> None:
        """An engine begins to drive: attempts from here on are its own.

        Raises DiskFull where there is so little room that an answer might be paid and not be kept.
        """
        with contextlib.suppress(OSError):  # a file system that cannot say has room
            if (free := shutil.disk_usage(self.path.parent).free) < LEAST_ROOM:
                raise DiskFull(f"{self.path}: {free:,} bytes are free on that disk, less than {LEAST_ROOM:,}; make room, then resume")
        with self._transaction():
            cursor = self._db.execute("INSERT INTO sessions(first_attempt) VALUES (?)", (self._attempt + 1,))
            self._session = int(cursor.lastrowid or 0)

    def write_stop(self, why: str, cause: str, bound: Bound | None = None) -> None:
        """How this session ended: "finished", or the reason, the cause in words, and the bound that was reached, if one was."""
        told = None if bound is None else canonical(asdict(bound))
        with self._transaction():
            self._db.execute(
                "INSERT INTO stops(session, why, cause, week, bound) VALUES (?, ?, ?, ?, ?)",
                (self._session, why, cause, self.weeks, told),
            )

    def close(self) -> None:
        """Leave WAL mode, so that the folder can be copied and opened read-only, and close."""
        try:
            with named_trouble(self.path):
                leave_wal(self._db)
        finally:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, trouble: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    # ---------------------------------------------------------------- inside
    @contextlib.contextmanager
    def joined(self) -> Iterator[None]:
        """One commit for all that is written in the block: what landed, and the attempts that follow from it.

        Whoever sends does so after the block.  A failure that is not the file's own leaves what was written committed.
        """
        self._outer = Transaction(self._db, self.path)
        try:
            yield
        except BaseException as trouble:
            self._end(trouble if isinstance(trouble, sqlite3.DatabaseError | DiskFull) else None)
            raise
        self._end(None)

    def _end(self, trouble: BaseException | None) -> None:
        """Commit what `joined` has begun; with a trouble of the file, or rows that were written in part, roll it back."""
        outer, self._outer = self._outer, None
        assert outer is not None
        trouble, self._broken = trouble or self._broken, None
        try:
            if self._db.in_transaction:
                outer.__exit__(type(trouble) if trouble else None, trouble, None)
        except BaseException as refused:
            trouble = refused
            raise
        finally:
            self.undone = trouble is not None
            if self.undone:
                self._forget_undone()

    def _transaction(self) -> contextlib.AbstractContextManager[None]:
        if self._outer is None:
            return Transaction(self._db, self.path)
        if not self._db.in_transaction:
            self._outer.__enter__()
        return self._part()

    @contextlib.contextmanager
    def _part(self) -> Iterator[None]:
        """Rows that belong together, within `joined`: where their writing breaks off, nothing of the block is kept."""
        try:
            with named_trouble(self.path):
                yield
        except BaseException as trouble:
            self._broken = trouble
            raise

    def _count(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def _write_requests(self, asks: Iterable[Ask]) -> dict[str, int]:
        """What was asked, texts once each.  Returns the numbers of the texts added, to be remembered when the transaction has held."""
        added: dict[str, int] = {}
        bodies: list[tuple[int, bytes]] = []

        def number_of(mark: str, text: str) -> int:
            number = self._texts.get(mark) or added.get(mark)
            if number is None:
                number = added[mark] = self._last_text + len(added) + 1
                bodies.append((number, _packed(text)))
            return number

        self._db.executemany(
            "INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [_request_row(ask, number_of) for ask in asks]
        )
        self._db.executemany("INSERT INTO texts(id, body) VALUES (?, ?)", bodies)
        return added

    def _remember(self, added: dict[str, int]) -> None:
        self._texts |= added
        self._last_text += len(added)

    def _forget_undone(self) -> None:
        """After what has been rolled back: texts that are not there will be written again."""
        self._last_text = self._count("SELECT coalesce(max(id), 0) FROM texts")
        self._texts = {mark: number for mark, number in self._texts.items() if number <= self._last_text}


def diverged(path: Path, how: str) -> Divergence:
    """What stops a run that no longer follows from its journal."""
    return Divergence(
        f"{path}: {how}: the code, an input or the journal has changed since; nothing was overwritten. "
        "Resume with what the run was made with, or start a new run"
    )


def _request_row(ask: Ask, number_of: Callable[[str, str], int]) -> tuple[str | int | None, ...]:
    place = (ask.key, ask.site, ask.ordinal, ask.draw, ask.kind)
    request = ask.request
    if request is None:
        question = number_of(text_digest(ask.question), ask.question)
        return (*place, None, None, None, None, None, None, canonical([["question", question]]))
    marks = ask.texts or request.text_digests()
    messages = canonical([[role, number_of(mark, text)] for mark, (role, text) in zip(marks, request.messages, strict=True)])
    mark = request.schema_digest()
    schema = None if mark is None else number_of(mark, request.schema_text())
    return (*place, request.prompt, request.version, request.backbone, request.seed, _sampling(request), schema, messages)


def _packed(text: str) -> bytes:
    """zlib's format, with a window that fits a prompt: setting up the default one took longer than filling it."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 12, 7)
    return packer.compress(text.encode()) + packer.flush()


def _sampling(request: Request) -> str:
    sampling: dict[str, Json] = {"max_tokens": request.sampling.max_tokens, "temperature": request.sampling.temperature}
    return canonical(sampling | {"lowered": request.lowered} if request.lowered else sampling)
