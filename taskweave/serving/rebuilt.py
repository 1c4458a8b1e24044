"""The world that an organization's tools act on, made again from a run's tables.  Entry point: `RebuiltWorld`.

What is in run.db decides it: the files under artifacts/ are neither read nor written.  It grows with the weeks of a live run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import date

from taskweave.errors import ToolRefused
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool
from taskweave.pool.tables import Row
from taskweave.records import Json
from taskweave.runs.folder import Tenure
from taskweave.serving.questions import finished_week
from taskweave.tools.hand import Person
from taskweave.tools.landing import land, person_in, person_of
from taskweave.tools.shelf import world_of
from taskweave.tools.tool import Tool
from taskweave.tools.world import World

# Whoever looks without being one of the organization; no agent's id begins with a hyphen.
OBSERVER = Person(id="-observer", name="Observer", role="", department="", email="")
EVENING = "18:00"


class RebuiltWorld:
    """The world of a run as of the last closed week that was asked for."""

    def __init__(self, tenures: Sequence[Tenure], calendar: WorkCalendar) -> None:
        self._tenures, self._calendar = tenures, calendar
        self._world: World | None = None
        self._landed: dict[int, str] = {}  # week -> digest

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None

    def ask(self, pool: Pool, tool: Tool, arguments: dict[str, Json], *, actor: str | None) -> Json:
        """What a reading tool finds, for an agent or for nobody in particular.  Raises ToolRefused."""
        world = self._as_of(pool)
        weeks = pool.weeks()
        day = self._calendar.weeks[max(weeks) - 1].sunday if weeks else self._calendar.spec.start
        called = world.call(tool, arguments, actor=actor or OBSERVER.id, moment=f"{day.isoformat()} {EVENING}", key="")
        if not called.ok:
            raise ToolRefused(str(called.said))
        return called.said

    def _as_of(self, pool: Pool) -> World:
        weeks = pool.weeks()
        if self._world is not None and any(weeks.get(week) != digest for week, digest in self._landed.items()):
            self.close()  # another run.db stands in the old one's place
        if self._world is None:
            people = [person_of(agent) for agent in self._tenures[0].population.agents]
            self._world, self._landed = world_of(people, domain=people[0].email.partition("@")[2], folder=None), {}
            self._world.admit(OBSERVER)
        missing = sorted(weeks.keys() - self._landed.keys())
        if missing:
            rows, moves = self._by_week(pool), self._moves(pool)
            for week in missing:
                for day, id, person in moves[week]:
                    if person is None:
                        self._world.leave(id, week, day)
                    else:
                        self._world.join(person, week, day)
                land(self._world, week, rows[week])
                self._landed[week] = weeks[week]
        return self._world

    def database(self, pool: Pool) -> bytes:
        """The world's database as a file, to be compared with what the run left."""
        return self._as_of(pool).database()

    def _moves(self, pool: Pool) -> defaultdict[int, list[tuple[date, str, Person | None]]]:
        """By week who came, or is another from a day on, and who went (None), in the order in which it happened."""
        moves: defaultdict[int, list[tuple[date, str, Person | None]]] = defaultdict(list)
        amended: set[int] = set()
        for event in pool.rows("events"):
            kind, day = event["kind"], date.fromisoformat(event["time"][:10])
            if kind not in ("hire", "join", "departure", "leave", "amend"):
                continue
            week = finished_week(self._calendar, event["time"])
            if kind == "amend" and week not in amended:
                amended.add(week)
                moves[week] += [(day, one.id, one) for one in self._others(week)]
            elif kind in ("departure", "leave"):
                moves[week].append((day, event["subject"], None))
            elif kind != "amend":
                named = next((one for one in self._of(week) if one.id == event["subject"]), None)
                found = named or person_in(next(pool.rows("agents", id=event["subject"])))
                moves[week].append((day, found.id, found))
        return moves

    def _of(self, week: int) -> list[Person]:
        """The people of the organization that holds in a week."""
        tenure = next(one for one in reversed(self._tenures) if one.week <= week)
        return [person_of(agent) for agent in tenure.population.agents]

    def _others(self, week: int) -> list[Person]:
        """Those who were there in the week before, and are others in this one."""
        before = {one.id: one for one in self._of(week - 1)}
        return [one for one in self._of(week) if one.id in before and before[one.id] != one]

    def _by_week(self, pool: Pool) -> defaultdict[int, list[Row]]:
        """The rows that the world is made of, by the week in which they were written."""
        rows: defaultdict[int, list[Row]] = defaultdict(list)
        weeks: dict[str, int] = {}
        for row in pool.written("results"):
            weeks[row["id"]] = finished_week(self._calendar, row["finished"])
            rows[weeks[row["id"]]].append(("results", row))
        for call in pool.rows("tool_calls"):
            if call["result"] in weeks:
                rows[weeks[call["result"]]].append(("tool_calls", call))
        for reading in pool.written("readings"):
            rows[reading["week"]].append(("readings", reading))
        return rows
