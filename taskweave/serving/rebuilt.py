"""The world that an organization's tools act on, made again from a run's tables.  Entry point: `RebuiltWorld`.

What is in run.db decides it: the files under artifacts/ are neither read nor written.  It grows with the weeks of a live run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from taskweave.errors import ToolRefused
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.pool import Pool
from taskweave.pool.tables import Row
from taskweave.records import Json
from taskweave.runs.folder import Tenure
from taskweave.serving.questions import finished_week
from taskweave.tools.hand import Person
from taskweave.tools.landing import land, people_of
from taskweave.tools.shelf import world_of
from taskweave.tools.tool import Tool
from taskweave.tools.world import World

# Whoever looks without being one of the organization; no agent's id begins with a hyphen.
OBSERVER = Person(id="-observer", name="Observer", role="", department="", email="")
EVENING = "18:00"


class RebuiltWorld:
    """The world of a run as of the last closed week that was asked for."""

    def __init__(self, tenures: Sequence[Tenure], calendar: WorkCalendar) -> None:
        self._people, self._calendar = people_of(tenures[0].population), calendar
        self._coming = {one.week: people_of(one.population) for one in tenures[1:]}
        self._world: World | None = None
        self._landed: dict[int, str] = {}  # week -> digest

    def close(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None

    def knows(self, person: str) -> bool:
        """Whether the tools know somebody: those who were hired later they do not."""
        return any(one.id == person for people in (self._people, *self._coming.values()) for one in people)

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
            domain = self._people[0].email.partition("@")[2]
            self._world, self._landed = world_of(self._people, domain=domain, folder=None), {}
            self._world.admit(OBSERVER)
        missing = sorted(weeks.keys() - self._landed.keys())
        if missing:
            rows = self._by_week(pool)
            for week in missing:
                land(self._world, week, rows[week])
                self._world.meet(self._coming.get(week + 1, ()))
                self._landed[week] = weeks[week]
        return self._world

    def database(self, pool: Pool) -> bytes:
        """The world's database as a file, to be compared with what the run left."""
        return self._as_of(pool).database()

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
