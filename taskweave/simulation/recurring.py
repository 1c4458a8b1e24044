"""Which cases of recurring work are there, and what does each do next?  Tickets that arrive by chance, releases by the calendar.

Entry points: `Recurring.open_week`, `Recurring.load`.  All of it is arithmetic and draws, nothing is asked of a backbone.  Every draw is
keyed by its case or step, so that one more stream moves nothing in another.  It refuses to know who works on a step: `lines` does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simpy.events import Event

from taskweave.org.calendar import Week
from taskweave.org.kpis import WORK
from taskweave.org.organization import RecurringWork, slug
from taskweave.org.recurring import WORKING_DAYS, case_hours, expected_hours, middle, openings
from taskweave.simulation.about import large, role_fit
from taskweave.simulation.environment import Reading
from taskweave.simulation.fpda import PRIORITY_RANK
from taskweave.simulation.lines import CaseStep, Line, Place
from taskweave.simulation.open_work import URGENT
from taskweave.simulation.stage import Stage

# A support desk answers before it goes on with a project: somebody waits at the other end.  It finishes what it has in hand, though.
STREAM_RANK = (URGENT + min(PRIORITY_RANK.values())) / 2
# A release or a month's end has its day, and nobody waits for each of its steps: it stands among planned work of high priority.
CYCLE_RANK = float(PRIORITY_RANK["high"])
MEETS = 0.5  # how well a role's work goes with customers where its cases come from one


@dataclass(slots=True, eq=False)
class Case:
    """A case on its way: `at` is the number of the regular step that it is at, or was before it was escalated."""

    id: str
    name: str
    work: RecurringWork
    place: Place
    at: int = 0
    taken: int = 0  # steps so far, those that were done again included
    asked: bool = False  # whether it has been decided if it is escalated
    aside: bool = False  # another role has it
    step: CaseStep | None = None


class Recurring:
    """All open cases, and the lines in which their steps wait."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._lines: dict[tuple[str, float], Line] = {}
        self._cases: dict[str, Case] = {}
        self._load: Mapping[str, float] = {}
        self._number = 0
        self._counts: dict[str, list[int]] = {}
        self._completed: Counter[str] = Counter()
        self._abandoned: Counter[str] = Counter()

    # ------------------------------------------------------------ a week
    def open_week(self, week: Week) -> None:
        """Draw what arrives in this week, begin the cycles that are due, and reckon how much work that is."""
        setting = self._stage.setting
        expected = expected_hours(setting.org, setting.calendar, week)
        still_open = self._hours_open()
        self._load = {role: expected.get(role, 0.0) + still_open[role] for role in dict.fromkeys([*expected, *still_open])}
        self._call_agents()
        for name, work in setting.org.work.items():
            self._counts.setdefault(name, [0, 0])
            if work.arrivals is not None:
                self._stage.env.process(self._arrive(name, work, week))
            elif week.index in openings(work, setting.calendar):
                self._begin(name, work, week, 1)

    def amend(self) -> None:
        """The organization is another one: its roles' agents serve the lines, and cases for which it has no work or no role are abandoned.

        A case that goes on does so by the steps with which it began.
        """
        stage = self._stage
        here = {agent.id: agent.role for agent in stage.setting.population.agents if stage.calendars[agent.id].quota}
        for (role, _), line in self._lines.items():
            line.keep([agent for agent, title in here.items() if title == role and stage.calendars[agent].gone is None])
        for case in list(self._cases.values()):
            work = case.work
            roles = {work.role, *([work.escalate.to] if work.escalate else [])}
            if case.name in stage.setting.org.work and roles <= set(stage.setting.org.roles):  # where all have left, it waits
                continue
            assert case.step is not None
            self._line(work.escalate.to if case.aside and work.escalate else work.role, work).drop(case.step)
            del self._cases[case.id]
            self._abandoned[case.name] += 1
            stage.ledger.event("abandon", subject=case.id, object=case.name, case=case.id)
        self._call_agents()

    def _arrive(self, name: str, work: RecurringWork, week: Week) -> Generator[Event, Any, None]:
        """Poisson in working time: the gaps are exponential, so that every week may begin anew."""
        stage = self._stage
        day = stage.setting.calendar.day_minutes
        assert work.arrivals is not None
        first, end = week.first_day * day, (week.first_day + week.day_count) * day
        number, minute = 1, float(first)
        while True:
            gap = stage.random("arrival", case_id(name, week, number)).expovariate(work.arrivals / (WORKING_DAYS * day))
            minute += gap
            if minute >= end:
                return
            if int(minute) > stage.now:
                yield stage.env.timeout(int(minute) - stage.now)
            self._begin(name, work, week, number)
            number += 1

    def _begin(self, name: str, work: RecurringWork, week: Week, number: int) -> None:
        self._number += 1
        case = Case(id=case_id(name, week, number), name=name, work=work, place=(self._stage.now, self._number))
        self._cases[case.id] = case
        self._counts[name][0] += 1
        self._stage.ledger.event("arrive", subject=case.id, object=name, case=case.id)
        self._say_about(case)
        self._queue(case)

    def _say_about(self, case: Case) -> None:
        """Which customer a case of a stream comes from, where there are any and its role has to do with them."""
        stage, customers = self._stage, self._stage.setting.entities.by_kind.get("customers", ())
        if customers and case.work.kind == "stream" and role_fit("customers", stage.setting.org.roles[case.work.role]) > MEETS:
            customer = stage.random("about", case.id).choices(customers, [large(place) for place in range(len(customers))])[0]
            stage.ledger.event("about", subject=case.id, object=customer.id, case=case.id)

    # ------------------------------------------------------------ a case
    def _queue(self, case: Case) -> None:
        """The case waits for the step that it is at."""
        work, escalate = case.work, case.work.escalate
        case.taken += 1
        if case.aside:
            assert escalate is not None
            role, activity, hours = escalate.to, escalate.step, escalate.hours
        else:
            role, (activity, hours) = work.role, list(work.steps.items())[case.at]
        site = f"{case.id}/s{case.taken}"
        minutes = max(1, round(self._stage.random("hours", site).uniform(*hours) * 60))
        case.step = CaseStep(id=site, case=case.id, place=case.place, activity=activity, minutes=minutes, left=minutes)
        self._line(role, work).put(case.step)

    def _finished(self, step: CaseStep) -> None:
        """What follows a step: back to an earlier one, aside to another role, on to the next, or the end."""
        case, ledger = self._cases[step.case], self._stage.ledger
        work, names = case.work, list(case.work.steps)
        rework, escalate = work.rework, work.escalate
        if case.aside:
            case.aside, case.at = False, case.at + 1
        elif rework and step.activity == rework.source and self._drawn("rework", step.id, rework.share):
            case.at = names.index(rework.target)
            ledger.event("rework", subject=step.id, object=rework.target, case=case.id)
        elif escalate and step.activity == escalate.after and not case.asked:
            case.asked = True
            case.aside = self._drawn("escalate", case.id, escalate.share)
            if case.aside:
                ledger.event("escalate", subject=step.id, object=escalate.step, case=case.id)
            else:
                case.at += 1
        else:
            case.at += 1
        if case.at < len(names):
            self._queue(case)
        else:
            del self._cases[case.id]
            self._counts[case.name][1] += 1
            self._completed[WORK + case.name] += 1
            ledger.event("complete", subject=case.id, object=case.name, case=case.id)

    def _drawn(self, purpose: str, site: str, share: float) -> bool:
        return self._stage.random(purpose, site).random() < share

    def _line(self, role: str, work: RecurringWork) -> Line:
        key = (role, STREAM_RANK if work.kind == "stream" else CYCLE_RANK)
        if key not in self._lines:
            self._lines[key] = Line(self._stage, key[1], self._finished)
            self._call_agents()
        return self._lines[key]

    def _call_agents(self) -> None:
        """Everybody of a role serves its lines, those hired since as well."""
        for (role, _), line in self._lines.items():
            for agent in self._stage.setting.population.agents:
                if agent.role == role and self._stage.calendars[agent.id].quota:
                    line.serve(agent.id)

    # ------------------------------------------------------------ what planners and readers ask for
    def beside(self, carried: Mapping[str, float], present: Mapping[str, float], week: Week) -> dict[str, float]:
        """Hours by role that are taken already: carried work, and the recurring work of those who have these hours `present`."""
        recurring = self.load(present, week)
        return {role: carried.get(role, 0.0) + recurring.get(role, 0.0) for role in {**carried, **recurring}}

    def load(self, present: Mapping[str, float], week: Week) -> dict[str, float]:
        """Hours by role that recurring work takes this week from whom has these hours `present`: what is open, and what is expected.

        Of a role whose agents work for several units each bears a part as large as its part of their hours.
        """
        found: dict[str, float] = {}
        for role, hours in present.items():
            if self._load.get(role) and hours:
                agents = [agent.id for agent in self._stage.setting.population.agents if agent.role == role]
                whole = sum(self._stage.calendars[agent].minutes(week.first_day, week.day_count) for agent in agents) / 60
                found[role] = self._load[role] * hours / whole
        return found

    def _hours_open(self) -> dict[str, float]:
        """Hours by role that open cases will still take on average."""
        found: defaultdict[str, float] = defaultdict(float)
        for case in self._cases.values():
            step, work = case.step, case.work
            assert step is not None
            hours = work.escalate.hours if case.aside and work.escalate else list(work.steps.values())[case.at]
            role = work.escalate.to if case.aside and work.escalate else work.role
            found[role] += middle(hours) * step.left / step.minutes
            for title, more in case_hours(work, case.at + 1, asks=not case.asked).items():
                found[title] += more
        return found

    def hours_in_hand(self) -> dict[str, float]:
        """Hours of steps that agents have begun and not finished."""
        found: dict[str, float] = {}
        for line in self._lines.values():
            for agent, step in line.in_hand.items():
                worked = self._stage.calendars[agent].in_hand(step.id, self._stage.now)
                found[agent] = found.get(agent, 0.0) + (step.left - worked) / 60
        return found

    def take_completed(self) -> Mapping[str, float]:
        """How many cases were completed since this was last asked, by work:NAME."""
        completed, self._completed = self._completed, Counter()
        return completed

    def readings(self) -> tuple[Reading, ...]:
        """How many cases of each kind are open, as planners read it."""
        found = Counter(case.name for case in self._cases.values())
        works = [name for name in self._counts if name in self._stage.setting.org.work]
        return tuple(Reading(kpi=f"{name} open", value=found[name], unit="cases", target=None, goal=None) for name in works)

    def facts(self) -> dict[str, Mapping[str, Sequence[int]]]:
        """cases: of each work how many have arrived and are completed, and abandoned, if any.  Nothing where there is no such work."""
        counts = {name: (*two, gone) if (gone := self._abandoned[name]) else tuple(two) for name, two in self._counts.items()}
        return {"cases": counts} if counts else {}


def case_id(name: str, week: Week, number: int) -> str:
    """work/tickets/W14/7: the seventh case of the week."""
    return f"work/{slug(name)}/W{week.number:02}/{number}"
