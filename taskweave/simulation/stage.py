"""What the processes of a running year share: the clock, the engine, the ledger, and the week that the tick has set.

Entry point: `Stage`.  It refuses to decide anything.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

from taskweave.engine.clock import Clock
from taskweave.engine.engine import Engine
from taskweave.engine.promises import Context as WorkContext
from taskweave.engine.promises import Promise
from taskweave.org.calendar import Week
from taskweave.pool.pool import Pool
from taskweave.records import Json
from taskweave.simulation.agent_calendar import AgentCalendar
from taskweave.simulation.environment import Environment
from taskweave.simulation.execution import Documents
from taskweave.simulation.fpda import Needs, Work
from taskweave.simulation.incidents import Incidents
from taskweave.simulation.ledger import Ledger
from taskweave.simulation.setting import Setting

Named = Mapping[str, "Promise | Sequence[Promise] | Mapping[str, Promise] | None"]


@dataclass(kw_only=True, slots=True)
class Stage:
    """`setting` is what is launched now sees: that of the `segment`, with what incidents have changed.

    `week` is the current week and `day` the index of the current working day: both are set by the tick, never computed from time.
    """

    engine: Engine
    clock: Clock
    ledger: Ledger
    pool: Pool
    setting: Setting
    segment: Setting
    incidents: Incidents
    environment: Environment
    documents: Documents
    calendars: dict[str, AgentCalendar]
    week: Week
    day: int = 0

    @property
    def env(self) -> simpy.Environment:
        return self.clock.env

    @property
    def now(self) -> int:
        return int(self.env.now)

    def random(self, purpose: str, site: str) -> random.Random:
        """The draw of one purpose at one site: no draw moves another."""
        return random.Random(f"{self.setting.seed}:{purpose}:{site}")

    def date(self) -> str:
        """The simulated date."""
        return self.setting.calendar.days[min(self.day, len(self.setting.calendar.days) - 1)].isoformat()

    def moment(self, minute: int, *, end: bool = False) -> str:
        return self.setting.calendar.moment(minute, end=end)

    def launch(
        self,
        site: str,
        work: Work,
        needs: Named,
        *,
        due: tuple[int, int] | None = None,
        reads: bool = False,
        case: str = "",
        of: Callable[[Any], Any] = lambda value: value,
    ) -> Promise:
        """Launch `work`, which gets the values of `needs` under the same names; a need may also be None, a list or a mapping of promises.

        `reads`: it may search the weeks sealed so far.  How its value came about is written at the next seal, for the task `case`;
        `of` takes what says so (something with `calls`, `quality` and `notes`) from the value.
        """
        flat: list[Promise] = []
        plan: dict[str, Any] = {}
        for name, need in needs.items():
            if need is None:
                plan[name] = None
            elif isinstance(need, Promise):
                plan[name] = len(flat)
                flat.append(need)
            elif isinstance(need, Mapping):
                plan[name] = {key: len(flat) + place for place, key in enumerate(need)}
                flat += need.values()
            else:
                plan[name] = range(len(flat), len(flat) + len(need))
                flat += need

        async def run(ctx: WorkContext, *values: Any) -> Any:
            value = await work(ctx, gather(plan, values))
            self.setting.tally.settle(site, of(value).quality)
            return value

        sealed = self.ledger.sealed or self.engine.given(None) if reads else None  # before the first seal: nothing is there to be read
        promise = self.engine.launch(site, run, flat, due=due or (self.week.index, -1000), draw=self.setting.draw, reads=sealed)
        if sealed is not None:
            self.ledger.searching(promise)
        self.ledger.answer(promise, subject=site.rpartition(":")[0], case=case, of=of)
        return promise


def gather(plan: Mapping[str, Any], values: Sequence[Any]) -> Needs:
    """The promised values in the shape in which they were named."""
    named: dict[str, Json] = {}
    for name, places in plan.items():
        if places is None:
            named[name] = None
        elif isinstance(places, int):
            named[name] = values[places]
        elif isinstance(places, Mapping):
            named[name] = {key: values[place] for key, place in places.items()}
        else:
            named[name] = [values[place] for place in places]
    return named
