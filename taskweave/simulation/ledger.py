"""What is written of a week, and when?  Rows are booked as the clock reaches them and written by the week's seal.

Entry points: `Ledger.book`, `Ledger.event`, `Ledger.seal`.  The seal is itself a promise: it needs every row booked since the previous
one and every searching work launched before it, so that a search sees exactly the sealed weeks.  It refuses to know what rows mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from taskweave.backbones.structured import CallRow
from taskweave.engine.engine import Engine
from taskweave.engine.journal import Journal
from taskweave.engine.promises import Context as WorkContext
from taskweave.engine.promises import Promise
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool, week_digest
from taskweave.pool.tables import Row
from taskweave.records import Json

# What happens when the minute ends: at a day's boundary these belong to the day before.
_ENDING = frozenset({"finish", "done", "close", "spilled", "blocked"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A written week: its digest over all weeks so far, and of all weeks the events, the results and the fallbacks among these."""

    week: int
    digest: str
    events: int
    results: int
    fallbacks: int


class Ledger:
    """Rows waiting for their week's seal, in the order in which the clock booked them."""

    def __init__(self, engine: Engine, journal: Journal, pool: Pool, calendar: WorkCalendar, now: Callable[[], int]) -> None:
        self._engine, self._journal, self._pool, self._calendar, self._now = engine, journal, pool, calendar, now
        self._booked: list[tuple[tuple[Promise, ...], Callable[..., Iterable[Row]]]] = []
        self._searchers: list[Promise] = []
        self.sealed: Promise | None = None

    def book(self, make: Callable[..., Iterable[Row]], *needs: Promise) -> None:
        """Write the rows that `make` gives for the values of `needs`, at the next seal."""
        self._booked.append((needs, make))

    def rows(self, *rows: Row) -> None:
        """Write rows that are known already."""
        self._booked.append(((), lambda: rows))

    def event(self, kind: str, *, actor: str = "", subject: str = "", object: str = "", case: str = "") -> None:
        """Something that happened in this minute."""
        self.rows(self._event_row(kind, actor, subject, object, case))

    def answer(self, promise: Promise, *, subject: str, case: str = "", of: Callable[[Any], Any] = lambda value: value) -> None:
        """Write how an answer came about: its completions, and as events what code had to add or change in it.

        `of` takes the answer (something with `calls`, `quality` and `notes`) from the promised value.
        """
        blank = self._event_row("repair", "", subject, "", case)[1]

        def make(value: Any) -> list[Row]:
            answer = of(value)
            kind = "fallback" if answer.quality == "fallback" else "repair"
            return [*call_rows(answer.calls), *(("events", {**blank, "kind": kind, "object": note}) for note in answer.notes)]

        self.book(make, promise)

    def searching(self, promise: Promise) -> None:
        """The next seal waits for this work, since it reads the weeks sealed so far."""
        self._searchers.append(promise)

    def seal(self, week: int, facts: Mapping[str, Json]) -> Promise:
        """Close week `week` (1 is the first); resolves to Sealed."""
        booked, self._booked = self._booked, []
        searchers, self._searchers = self._searchers, []
        before = self.sealed
        needs = list(dict.fromkeys([*([before] if before else []), *(need for needs, _ in booked for need in needs), *searchers]))
        position = {need: place for place, need in enumerate(needs)}
        journal, pool = self._journal, self._pool

        async def work(_: WorkContext, *values: Any) -> Sealed:
            last: Sealed | None = values[0] if before else None
            number = last.events if last else 0
            rows: list[Row] = []
            for wanted, make in booked:
                for table, row in make(*(values[position[need]] for need in wanted)):
                    if table == "events":
                        number += 1
                        row["seq"] = number
                    rows.append((table, row))
            made = [row["quality"] for table, row in rows if table == "results"]
            results = (last.results if last else 0) + len(made)
            fallbacks = (last.fallbacks if last else 0) + made.count("fallback")
            digest = week_digest(last.digest if last else "", [row for row in rows if row[0] != "calls"])
            journal.close_week(week, digest, {**facts, "results": results, "fallbacks": fallbacks})
            pool.write_week(week, digest, rows)
            return Sealed(week=week, digest=digest, events=number, results=results, fallbacks=fallbacks)

        self.sealed = self._engine.launch(f"W{week:02}:seal", work, needs, due=(week - 1, 0))
        return self.sealed

    def _event_row(self, kind: str, actor: str, subject: str, object: str, case: str) -> Row:
        time = self._calendar.moment(self._now(), end=kind in _ENDING)
        return ("events", {"seq": 0, "time": time, "kind": kind, "actor": actor, "subject": subject, "object": object, "case": case})


def call_rows(calls: Iterable[CallRow]) -> list[Row]:
    """Rows of `calls`: the only ones that hold anything of wall-clock time."""
    return [("calls", {name: getattr(call, name) for name in CallRow.__slots__}) for call in calls]
