"""What is written of a week, and when?  Rows are booked as the clock reaches them and written by the week's seal.

Entry points: `Ledger.book`, `Ledger.event`, `Ledger.seal`.  The seal is itself a promise: it needs every row booked since the previous
one and every searching work launched before it, so that a search sees exactly the sealed weeks.  It refuses to know what rows mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from taskweave.backbones.structured import CallRow
from taskweave.engine.engine import Engine
from taskweave.engine.journal import Journal
from taskweave.engine.promises import Context as WorkContext
from taskweave.engine.promises import Promise
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool, week_digest
from taskweave.pool.tables import Row
from taskweave.records import BY_CODE_SAID, Json
from taskweave.simulation.tally import Counts, Key, One, Tally
from taskweave.simulation.tooling import Tooling

# What happens when the minute ends: at a day's boundary these belong to the day before.
_ENDING = frozenset({"finish", "done", "close", "spilled", "blocked", "pause", "rework", "escalate", "complete", "sent"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Sealed:
    """A written week: its digest over all weeks so far, and the number of events in these."""

    week: int
    digest: str
    events: int


class Standing:
    """What the weeks written so far add up to, for whoever reads the journal only."""

    def __init__(self) -> None:
        self._answers: defaultdict[Key, Counts] = defaultdict(Counts)
        self._statuses: dict[str, str] = {}  # of composite tasks
        self._substituted: set[str] = set()  # tasks in which something was made by code

    def answered(self, ones: Iterable[One]) -> tuple[int, int]:
        """Add answers; returns how many there are by now, and the fallbacks among them."""
        for one in ones:
            self._answers[one.key].add(one.quality)
        return sum(counts.asked for counts in self._answers.values()), sum(counts.fallback for counts in self._answers.values())

    def wrote(self, rows: Iterable[Row]) -> None:
        """Add rows, a later one in the place of an earlier one."""
        for table, row in rows:
            if table == "tasks" and row["kind"] == "composite":
                self._statuses[row["id"]] = row["status"]
                self._note(row["id"], row)
            elif table in ("subtasks", "results"):
                self._note(row["task"], row)

    def _note(self, task: str, row: Mapping[str, Json]) -> None:
        if row["quality"] == "fallback":
            self._substituted.add(task)

    def facts(self) -> dict[str, Json]:
        """answers: [step, level, backbone, asked, repaired, fallback]; composite tasks planned, and those done without any fallback."""
        done = {task for task, status in self._statuses.items() if status == "done"}
        return {
            "answers": [[*key, n.asked, n.repaired, n.fallback] for key, n in sorted(self._answers.items())],
            "planned": len(self._statuses),
            "done_without_fallback": len(done - self._substituted),
        }


class Ledger:
    """Rows waiting for their week's seal, in the order in which the clock booked them."""

    def __init__(self, engine: Engine, journal: Journal, pool: Pool, calendar: WorkCalendar, tally: Tally, now: Callable[[], int]) -> None:
        self._engine, self._journal, self._pool, self._calendar, self._now = engine, journal, pool, calendar, now
        self._tally, self._standing = tally, Standing()
        self._answered: list[str] = []  # sites whose answers count for the next seal
        self._booked: list[tuple[tuple[Promise, ...], Callable[..., Iterable[Row]]]] = []
        self._searchers: list[Promise] = []
        self.sealed: Promise | None = None
        self.tooling: Tooling | None = None

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
            made = answer.quality == "fallback"
            kinds = ("fallback" if made or BY_CODE_SAID in note else "repair" for note in answer.notes)
            told = (("events", {**blank, "kind": kind, "object": note}) for kind, note in zip(kinds, answer.notes, strict=True))
            return [*call_rows(answer.calls), *told]

        self.book(make, promise)
        self._answered.append(promise.site)

    def searching(self, promise: Promise) -> None:
        """The next seal waits for this work, since it reads the weeks sealed so far."""
        self._searchers.append(promise)

    def seal(self, week: int, facts: Mapping[str, Json]) -> Promise:
        """Close week `week` (1 is the first); resolves to Sealed."""
        booked, self._booked = self._booked, []
        searchers, self._searchers = self._searchers, []
        answered, self._answered = self._answered, []
        before = self.sealed
        needs = list(dict.fromkeys([*([before] if before else []), *(need for needs, _ in booked for need in needs), *searchers]))
        position = {need: place for place, need in enumerate(needs)}
        journal, pool, tally, standing, tooling = self._journal, self._pool, self._tally, self._standing, self.tooling
        conflict, sent = self._event_row("conflict", "", "", "", "")[1], self._event_row("sent", "", "", "", "")[1]

        async def work(_: WorkContext, *values: Any) -> Sealed:
            last: Sealed | None = values[0] if before else None
            number = last.events if last else 0
            rows: list[Row] = []
            for wanted, make in booked:
                rows += make(*(values[position[need]] for need in wanted))
            if tooling is not None:
                told = tooling.land(week, rows)
                rows += [("events", {**conflict, "actor": agent, "subject": call, "object": what}) for call, agent, what in told]
                rows += [("events", {**sent, **asdict(one)}) for one in await tooling.deliver()]
            for table, row in rows:
                if table == "events":
                    number += 1
                    row["seq"] = number
            asked, fallbacks = standing.answered(tally.take(answered))
            standing.wrote(rows)
            digest = week_digest(last.digest if last else "", [row for row in rows if row[0] != "calls"])
            journal.close_week(week, digest, {**facts, **standing.facts()})
            pool.write_week(week, digest, rows)
            tally.sealed(asked, fallbacks)
            return Sealed(week=week, digest=digest, events=number)

        self.sealed = self._engine.launch(f"W{week:02}:seal", work, needs, due=(week - 1, 0))
        return self.sealed

    def _event_row(self, kind: str, actor: str, subject: str, object: str, case: str) -> Row:
        time = self._calendar.moment(self._now(), end=kind in _ENDING)
        return ("events", {"seq": 0, "time": time, "kind": kind, "actor": actor, "subject": subject, "object": object, "case": case})


def call_rows(calls: Iterable[CallRow]) -> list[Row]:
    """Rows of `calls`: the only ones that hold anything of wall-clock time."""
    return [("calls", {name: getattr(call, name) for name in CallRow.__slots__}) for call in calls]
