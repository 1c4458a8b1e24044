"""How do planning units open and close?  The FPDA cycle over the levels of a year (Sec. 3.2, Eq. 1-3).

Entry points: `Planning.open_level`, `Planning.close_level`, `Planning.respond`.  Planning takes no simulated time: everything here only
launches works and books rows.  It refuses to know when: `year.py` calls it in the phases of a minute.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from simpy.events import Event

from taskweave.engine.promises import Promise
from taskweave.org.calendar import Week
from taskweave.org.entities import Entity
from taskweave.pool.tables import Row
from taskweave.records import Json, Level
from taskweave.simulation import fpda
from taskweave.simulation.about import About
from taskweave.simulation.bundles import mark_of
from taskweave.simulation.capacity import Slot
from taskweave.simulation.delegated import Delegated
from taskweave.simulation.demands import Demand, Demands
from taskweave.simulation.first_state import first_state, first_words
from taskweave.simulation.fpda import Scene, plan_text, summary_text
from taskweave.simulation.free_hours import FreeHours
from taskweave.simulation.incidents import Incidents, InForce
from taskweave.simulation.open_work import OpenTask
from taskweave.simulation.recurring import Recurring
from taskweave.simulation.stage import Stage
from taskweave.simulation.tasks import Tasks
from taskweave.simulation.units import Unit, ordinal, period_path


class Planning:
    """The units of a year: one open unit a level and owner."""

    def __init__(self, stage: Stage, tasks: Tasks, incidents: Incidents, recurring: Recurring) -> None:
        self._stage, self._tasks, self._incidents, self._recurring = stage, tasks, incidents, recurring
        self.demands = Demands()
        self._free = FreeHours(stage, tasks, incidents, recurring, self.demands)
        self.open: dict[tuple[Level, str], Unit] = {}
        self._before: dict[tuple[Level, str], Unit] = {}
        self._requests: dict[tuple[Level, str], dict[str, Promise]] = {}
        self._week_bundles: dict[str, Promise] = {}
        self.delegated = Delegated(stage, tasks)
        self._about = About(stage.setting.entities, stage.setting.seed)
        self._retired: dict[str, Unit] = {}  # of periods that go on, by id
        self._root = self._open_root()

    # ------------------------------------------------------------ opening
    def _open_root(self) -> Unit:
        """S_0, without a call."""
        root = first_state(self._stage)
        self._book_root(root)
        return root

    def _book_root(self, root: Unit) -> None:
        self._stage.ledger.rows(
            ("states", self._state_row(root) | first_words(self._stage.setting.org) | {"quality": "ok", "origin": None})
        )

    def open_level(self, level: Level, week: Week, *, amended: bool = False) -> None:
        """Open the units of this level for the period that begins with `week`; heads before those below them.

        `amended`: the period has begun earlier, under another organization, and those are opened that it lacks.
        """
        delegation = self._stage.setting.delegation
        for owner in sorted(delegation.planners(level), key=lambda agent: len(delegation.ancestors(agent))):
            if not amended or not self._goes_on(level, owner, week):
                self._open_unit(level, owner, week)

    def _goes_on(self, level: Level, owner: str, week: Week) -> bool:
        """Whether the owner has a unit of the period, or had one that it takes up again; whoever leads the owner now plans above it."""
        unit = self.open.get((level, owner)) or self._retired.pop(f"{period_path(level, week)}@{owner}", None)
        if unit is None:
            return False
        self.open[unit.key], unit.told = unit, None
        above = self._stage.setting.delegation.parent(level, owner)
        parent = self.open[above] if above is not None else self._root
        if unit.parent is not parent:
            unit.parent, unit.plans = parent, {**parent.plans, level: unit.plan}
        return True

    def amend(self, week: Week, before: Week | None) -> None:
        """The organization is another one from this week on: the goals are stated anew, and units end whose owners own them no more.

        Of periods that ended before this week nothing is left to end.
        """
        self._free.amend()
        stated = first_state(self._stage)
        self._root.plan, self._root.diagnosis = stated.plan, stated.diagnosis
        self._book_root(self._root)
        delegation = self._stage.setting.delegation
        for (level, owner), unit in list(self.open.items()):
            over = before is None or ordinal(level, before) != ordinal(level, week)
            if not over:
                self.delegated.release(unit)
            if level not in delegation.levels(owner):
                del self.open[level, owner]
                if not over:
                    self._end(unit)
                    self._retired[unit.id] = unit
        for requests in self._requests.values():
            for owner in [name for name in requests if not delegation.levels(name)]:
                del requests[owner]

    def _open_unit(self, level: Level, owner: str, week: Week) -> None:
        stage, delegation = self._stage, self._stage.setting.delegation
        above = delegation.parent(level, owner)
        parent = self.open[above] if above is not None else self._root
        unit = Unit(
            id=f"{period_path(level, week)}@{owner}",
            level=level,
            period=self._period(level, week),
            owner=owner,
            parent=parent,
            plan=parent.plan,
            plans=dict(parent.plans),
            # An officer without reports plans without delegating, to itself either.
            has_children=bool(delegation.reports(owner) or delegation.executors(owner)) and bool(delegation.children(level, owner)),
        )
        if unit.key in self.open:  # what its last plan and diagnosis come from
            self._before[unit.key] = self.open[unit.key]
        self.open[unit.key] = unit
        if level == "week":
            unit.slots = self._free.planned(unit, week)
        carried = self._tasks.of(owner) if level == "week" else []
        demands = self.demands.take(owner) if level == "week" else []
        unit.silent = not (unit.has_children or unit.slots or carried or demands)
        coarsest = delegation.levels(owner)[0] == level
        if unit.silent and not coarsest:
            unit.plans[level] = unit.plan
            self._book_promised(unit, unit.plan, None)
            return
        self._formulate(unit, [task.title for task in carried])
        children = list(dict.fromkeys(child for _, child in delegation.children(level, owner)))
        if unit.has_children:
            work = fpda.partition(stage.setting, self._scene(unit), children)
            unit.bundle = stage.launch(f"{unit.id}:partition", work, {"plan": unit.plan})
            self.delegated.open(unit, children)
        if unit.slots:
            self._open_tasks(unit, [task.title for task in carried], week)
        for one in demands:
            self.take_up(unit, one)

    def take_up(self, unit: Unit, demand: Demand) -> None:
        """Open what an incident demands, in the unit's week; urgent tasks make room for themselves."""
        stage = self._stage
        if demand.urgent:
            self._tasks.supersede(unit.owner, max(0.0, demand.hours - self._free.unasked(unit.owner)))
        bundle = stage.engine.given(demand.bundle)
        for index, slot in enumerate(demand.slots):
            unit.urgent += 1
            task_id = f"{unit.id}/u{unit.urgent}"
            self._open_task(unit, task_id, bundle, index, slot, stage.week, urgent=demand.urgent, cause=demand.cause, due=demand.due)
            stage.ledger.event("workload", actor=unit.owner, subject=task_id, object=demand.cause, case=task_id)

    def retire(self, owner: str) -> None:
        """The owner has left: its units end as they stand, and what is planned under them goes on under those above."""
        for level, name in [key for key in self.open if key[1] == owner]:
            self._end(self.open.pop((level, name)))
        for requests in self._requests.values():
            requests.pop(owner, None)

    def _end(self, unit: Unit) -> None:
        self._stage.ledger.event("close", actor=unit.owner, subject=unit.id)
        if unit.bundle is not None:
            self.delegated.close(unit)

    def _formulate(self, unit: Unit, carried: Sequence[str]) -> None:
        stage, before = self._stage, self._before.get(unit.key)
        parent = unit.parent
        assert parent is not None
        work = fpda.formulate(stage.setting, self._scene(unit), carried=carried)
        site = f"{unit.id}:formulate" + (f".{unit.turn}" if unit.turn > 1 else "")
        last = (unit.plan, unit.diagnosis) if unit.turn > 1 else (before.plan, before.diagnosis) if before else (None, None)
        unit.plan = stage.launch(
            site,
            work,
            {
                "parent": parent.plan,
                "parent_diagnosis": parent.diagnosis,
                "bundle": parent.bundle,
                "last_plan": last[0],
                "last_diagnosis": last[1],
                "requests": self._requests.get(unit.key, {}),
            },
        )
        unit.plans[unit.level] = unit.plan
        self._book_promised(unit, unit.plan, None)
        stage.ledger.event("open" if unit.turn == 1 else "replan", actor=unit.owner, subject=unit.id)

    def _open_tasks(self, unit: Unit, carried: Sequence[str], week: Week) -> None:
        """Partition a week into exactly the composite tasks that capacity allows, and begin them."""
        stage = self._stage
        before = self._before.get(unit.key)
        title, ids = stage.setting.population.agent(unit.owner).role, [f"{unit.id}/t{number}" for number in range(1, len(unit.slots) + 1)]
        about = [
            self._about.choose(stage.setting.org, id, unit.owner, title, slot.roles, week.number)
            for id, slot in zip(ids, unit.slots, strict=True)
        ]
        work = fpda.partition_week(stage.setting, self._scene(unit), unit.slots, carried=carried, about=about)
        site = f"{unit.id}:partition" if unit.bundle is None else f"{unit.id}:partition_week"
        needs = {
            "plan": unit.plan,
            "bundle": unit.parent.bundle if unit.parent else None,
            "last": self._week_bundles.get(before.id) if before else None,
        }
        bundle = stage.launch(site, work, needs)
        self._week_bundles[unit.id] = bundle
        for index, (id, slot) in enumerate(zip(ids, unit.slots, strict=True)):
            self._open_task(unit, id, bundle, index, slot, week, siblings=unit.task_ids[:index], about=about[index])

    def _open_task(
        self,
        unit: Unit,
        task_id: str,
        bundle: Promise,
        index: int,
        slot: Slot,
        week: Week,
        *,
        siblings: Sequence[str] = (),
        urgent: bool = False,
        cause: str | None = None,
        due: tuple[str, int] | None = None,
        about: tuple[Entity, ...] = (),
    ) -> None:
        stage = self._stage
        last_day = week.first_day + week.day_count - 1
        week_end = (stage.setting.calendar.days[last_day].isoformat(), (last_day + 1) * stage.setting.calendar.day_minutes)
        self._tasks.open(
            task_id,
            state=unit.id,
            owner=unit.owner,
            unit=self._unit_input(unit),
            bundle=bundle,
            plan=unit.plan,
            plans=unit.plans,
            index=index,
            slot=slot,
            due=due or week_end,
            urgent=urgent,
            cause=cause,
            siblings=siblings,
            about=about,
        )
        unit.task_ids.append(task_id)

    # ------------------------------------------------------------ closing
    def close_level(self, level: Level) -> None:
        """Close the open units of this level: diagnose, align, reconcile with siblings, roll up; those deepest in ℍ first."""
        delegation = self._stage.setting.delegation
        units = [unit for unit in self.open.values() if unit.level == level]
        depths = sorted({len(delegation.ancestors(unit.owner)) for unit in units}, reverse=True)
        for depth in depths:
            self._close_round(level, [unit for unit in units if len(delegation.ancestors(unit.owner)) == depth])

    def _close_round(self, level: Level, units: Sequence[Unit]) -> None:
        stage = self._stage
        closing: list[Unit] = []
        in_force, found = dict[str, Promise](), dict[str, Promise]()  # the plan worked to, and what the period came to, by owner
        for unit in units:
            finished: list[tuple[OpenTask, Promise | None]] = []
            if level == "week":
                still_open, finished = self._tasks.close_week(unit.owner)
                self._count(unit, still_open, [task for task, _ in finished])
                shown = [*(task for task, _ in finished), *still_open]
            else:
                shown = []
            stage.ledger.event("close", actor=unit.owner, subject=unit.id)
            if unit.bundle is not None:
                self.delegated.close(unit)
            if unit.silent and not shown:
                continue
            in_force[unit.owner] = unit.plan
            found[unit.owner] = self._diagnose(unit, shown, [merged for _, merged in finished if merged is not None])
            self._align(unit, found[unit.owner])
            closing.append(unit)
        aligned = {unit.owner: unit.plan for unit in closing}
        self._reconcile(level, closing, aligned, found)
        below: dict[Unit, list[Unit]] = {}
        for unit in closing:
            if unit.parent is not None and unit.parent is not self._root:
                below.setdefault(unit.parent, []).append(unit)
        for parent, children in below.items():
            self._roll_up(parent, children, in_force, found)

    def _count(self, unit: Unit, still_open: Sequence[OpenTask], finished: Sequence[OpenTask]) -> None:
        counts = Counter({"done": 0, "spilled": 0, "blocked": 0, "dropped": 0})
        counts.update(task.status for task in [*finished, *still_open])
        unit.counts.update(counts)  # of a head that passes weeks down, those of the weeks below are there already
        above = unit.parent
        while above is not None and above is not self._root:
            above.counts.update({name: counts[name] for name in ("done", "dropped")})
            above.counts.update({name: 0 for name in ("spilled", "blocked")})
            above = above.parent

    def _diagnose(self, unit: Unit, shown: Sequence[OpenTask], results: Sequence[Promise]) -> Promise:
        """What the period came to, for the other closing steps: the diagnosis; without one what code counted, and later plans have none."""
        stage = self._stage
        counts = {name: unit.counts[name] for name in ("done", "spilled", "blocked", "dropped")}
        if unit.level != "week" or unit.has_children:
            counts |= self._open_counts(unit)
        tasks = [self._task_input(task) for task in shown]
        rolled_up = unit.diagnosis if unit.roll_ups else None
        if not stage.setting.has("diagnose"):
            unit.diagnosis = None
            return stage.launch(f"{unit.id}:count", fpda.count(stage.setting, counts=counts, tasks=tasks), {"rolled_up": rolled_up})
        children = [child for child in unit.closed.values() if child.diagnosis is not None]
        work = fpda.diagnose(stage.setting, self._scene(unit), counts=counts, tasks=tasks, children=[child.owner for child in children])
        needs: dict[str, Any] = {
            "plan": unit.plan,
            "results": list(results),
            "rolled_up": rolled_up,
            "children": [child.diagnosis for child in children],
        }
        unit.diagnosis = stage.launch(f"{unit.id}:diagnose", work, needs)
        return unit.diagnosis

    def _align(self, unit: Unit, found: Promise) -> None:
        """The plan revised by what the period came to; a revision is booked where the plan or the diagnosis is another one."""
        stage = self._stage
        if stage.setting.has("align"):
            work = fpda.align(stage.setting, self._scene(unit))
            unit.plan = stage.launch(f"{unit.id}:align", work, {"plan": unit.plan, "diagnosis": found})
        elif unit.diagnosis is None:
            return
        self._book_promised(unit, unit.plan, unit.diagnosis)

    def _open_counts(self, unit: Unit) -> dict[str, int]:
        """What stands spilled or blocked at the close of an upper unit, over all owners below it."""
        owners = {unit.owner, *self._stage.setting.delegation.descendants(unit.owner)}
        statuses = Counter(task.status for owner in sorted(owners) for task in self._tasks.of(owner))
        return {name: statuses[name] for name in ("spilled", "blocked")}

    def _task_input(self, task: OpenTask) -> Json:
        people = dict.fromkeys(subtask.agent for subtask in task.subtasks if subtask.agent)
        return {
            "title": task.title,
            "status": task.status,
            "hours": task.slot.hours,
            "author": ", ".join(self._stage.setting.name(agent) for agent in people),
        }

    def _reconcile(self, level: Level, closing: Sequence[Unit], aligned: Mapping[str, Promise], found: Mapping[str, Promise]) -> None:
        """G_align among units whose owners share a delegator; what they ask of each other is heard at the next opening."""
        stage, population = self._stage, self._stage.setting.population
        if not stage.setting.has("reconcile"):
            return
        together = {}
        under: defaultdict[str | None, list[Unit]] = defaultdict(list)
        for unit in closing:
            under[population.agent(unit.owner).head].append(unit)
        for unit in closing:
            head = population.agent(unit.owner).head
            siblings = [other for other in under[head] if other is not unit] if head is not None else []
            if siblings:
                together[unit] = siblings
            for other in siblings:
                self._requests.setdefault((level, unit.owner), {}).pop(other.owner, None)
        for unit, siblings in together.items():
            work = fpda.reconcile(stage.setting, self._scene(unit), [other.owner for other in siblings])
            reconciled = stage.launch(
                f"{unit.id}:reconcile",
                work,
                {
                    "plan": aligned[unit.owner],
                    "plans": [aligned[other.owner] for other in siblings],
                    "diagnoses": [found[other.owner] for other in siblings],
                },
            )
            unit.plan = reconciled
            self._book_promised(unit, reconciled, unit.diagnosis)
            for other in siblings:
                self._requests.setdefault((level, other.owner), {})[unit.owner] = reconciled

    def _roll_up(self, parent: Unit, children: Sequence[Unit], in_force: Mapping[str, Promise], found: Mapping[str, Promise]) -> None:
        """U_up: what the children came to, by the plans they worked to, becomes the parent's; without it only what code counts goes up."""
        stage = self._stage
        if not stage.setting.has("roll_up"):
            return
        parent.roll_ups += 1
        parent.closed.update({child.owner: child for child in children})
        work = fpda.roll_up(stage.setting, self._scene(parent), [(child.owner, child.period) for child in children])
        needs: dict[str, Any] = {
            "plan": parent.plan,
            "last": parent.diagnosis,
            "plans": [in_force[child.owner] for child in children],
            "diagnoses": [found[child.owner] for child in children],
        }
        parent.diagnosis = stage.launch(f"{parent.id}:roll_up.{parent.roll_ups}", work, needs)
        self._book_promised(parent, parent.plan, parent.diagnosis)

    # ------------------------------------------------------------ responding
    def respond(self, unit: Unit, heard: InForce) -> Generator[Event, Any, None]:
        """A grave incident in the middle of a week: plan anew at once, and add urgent tasks in the place of what can wait."""
        stage = self._stage
        unit.turn += 1
        carried = [task.title for task in self._tasks.of(unit.owner)]
        self._formulate(unit, carried)
        slots = self._free.urgent(unit, heard)
        open_tasks = [{"id": task.id, "title": task.title, "status": task.status} for task in self._tasks.of(unit.owner)]
        work = fpda.respond(stage.setting, self._scene(unit), heard.brief(), open_tasks, slots)
        answered = stage.launch(f"{unit.id}:respond.{unit.turn - 1}", work, {"plan": unit.plan}, of=lambda value: value[1])
        yield stage.clock.wait(answered)
        response, _ = answered.value
        unit.plan = stage.engine.given(response)
        unit.plans[unit.level] = unit.plan
        self._book_promised(unit, unit.plan, None)
        wanted = sum(slot.hours for slot in slots)
        self._tasks.supersede(unit.owner, max(0.0, wanted - self._free.unasked(unit.owner)))
        bundle = stage.engine.given(answered.value[1])
        for index, slot in enumerate(slots):
            unit.urgent += 1
            task_id = f"{unit.id}/u{unit.urgent}"
            self._open_task(unit, task_id, bundle, index, slot, stage.week, urgent=True, cause=heard.id)

    # ------------------------------------------------------------ rows and inputs
    def _scene(self, unit: Unit) -> Scene:
        stage = self._stage
        return Scene(
            date=stage.date(),
            unit=self._unit_input(unit),
            incidents=tuple(heard.as_input() for heard in self._incidents.in_force(unit.owner, stage.day)),
            readings=tuple(reading.as_input() for reading in (*stage.environment.readings(), *self._recurring.readings())),
        )

    def _unit_input(self, unit: Unit) -> Json:
        if unit.told is not None:
            return unit.told
        setting = self._stage.setting
        owner = setting.population.agent(unit.owner)
        below = (*setting.delegation.executors(unit.owner), *setting.delegation.reports(unit.owner))
        team = [agent for agent in below if self._stage.calendars[agent].gone is None]
        unit.told = {
            "id": unit.id,
            "level": unit.level,
            "period": unit.period,
            "owner": owner.role,
            "name": owner.persona.name,
            "department": owner.department or "",
            "team": list(dict.fromkeys(setting.population.agent(agent).role for agent in team)),
        }
        return unit.told

    def _period(self, level: Level, week: Week) -> str:
        """The period's ordinal and dates, as people write them."""
        weeks = [other for other in self._stage.setting.calendar.weeks if ordinal(level, other) == ordinal(level, week)]
        days = self._stage.setting.calendar.days[weeks[0].first_day : weeks[-1].first_day + weeks[-1].day_count]
        return f"{level} {ordinal(level, week)}, {days[0]} to {days[-1]}"

    def _book_promised(self, unit: Unit, plan: Promise, diagnosis: Promise | None) -> None:
        """A new revision of the unit's state, once its words are there."""
        row = self._state_row(unit)

        def make(*values: Any) -> list[Row]:
            found = summary_text(values[1]) if diagnosis is not None else None
            mark = mark_of(values[0]) if diagnosis is None else mark_of(values[0]).worse(mark_of(values[1]))
            return [("states", row | {"plan": plan_text(values[0]), "diagnosis": found} | mark.row())]

        self._stage.ledger.book(make, plan, *([diagnosis] if diagnosis is not None else []))

    def _state_row(self, unit: Unit) -> dict[str, Json]:
        unit.revision += 1
        return {
            "id": unit.id,
            "level": unit.level,
            "period": unit.period,
            "owner": unit.owner,
            "parent": unit.parent.id if unit.parent else None,
            "revision": unit.revision,
            "since": self._stage.moment(self._stage.now),
        }
