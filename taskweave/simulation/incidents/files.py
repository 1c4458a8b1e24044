"""What does an incident file say?  (TaskWeave, Sec. 4.6 and App. K.1.)

Entry points: `load_incidents` (a file, or incidents of the shipped library; every problem at once), `read_incident` and `meant_for` (one
from the inbox or the journal).  It refuses to know the running year.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast, get_args

from taskweave.errors import BadInput, IncidentInvalid, Problem
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.org.yamlfile import Listing, Mapping, Node, Scalar, Unreadable, compose, read_limited
from taskweave.records import Json
from taskweave.simulation.incidents.catalogue import chosen, is_library
from taskweave.simulation.incidents.effect_files import SELECTORS, read_effect, read_target
from taskweave.simulation.incidents.effects import DURATION, Category, Effect, Incident, Severity, Trigger
from taskweave.simulation.incidents.names import Who
from taskweave.simulation.incidents.reading import Fields, Reader, nodes_of

FORK = "What has happened stays; to change the past, fork the run: 'taskweave fork RUN --at week:N --incidents FILE'."
_KEYS = (
    "title", "category", "description", "severity", "affects", "at", "chance", "when", "repeats", "duration", "effects", "basis"
)  # fmt: skip


def load_incidents(path: Path, org: Organization, population: Population, calendar: WorkCalendar) -> list[dict[str, Json]]:
    """The payloads of a file with one incident or a list of them, or of `library:CATEGORY` or `library:NAME`.

    Raises IncidentInvalid with every problem and its line, BadInput for what the library does not hold.
    """
    who = Who(org, population)
    found: list[Incident | None] = []
    problems: list[Problem] = []
    for file, nodes in _sources(path):
        reader = IncidentReader(str(file), who, calendar)
        found += [reader.incident(item) for item in nodes]
        problems += sorted(reader.problems, key=lambda problem: problem.line or 0)
    if problems:
        raise IncidentInvalid(problems)
    return [incident.payload(calendar) for incident in found if incident is not None]


def _sources(path: Path) -> Iterator[tuple[Path, tuple[Node, ...]]]:
    """Files with those of their incidents that are meant."""
    if is_library(path):
        yield from chosen(str(path))
        return
    try:
        node = compose(read_limited(path))
    except Unreadable as trouble:
        raise IncidentInvalid([trouble.problem(str(path))]) from None
    if isinstance(node, Listing) and not node.items:
        raise IncidentInvalid([Problem(file=str(path), line=node.line, what="holds no incident")])
    yield path, node.items if isinstance(node, Listing) else (node,)


def read_incident(payload: Json, org: Organization, population: Population, calendar: WorkCalendar) -> Incident:
    """An incident as it came through the inbox.  Raises IncidentInvalid."""
    reader = IncidentReader("inbox", Who(org, population), calendar)
    given = {key: value for key, value in payload.items() if key != "tick"} if isinstance(payload, dict) else payload
    try:
        incident = reader.incident(nodes_of(given))
    except RecursionError:
        raise IncidentInvalid([Problem(file="inbox", line=None, what="is nested too deep")]) from None
    if reader.problems or incident is None:
        raise IncidentInvalid(reader.problems)
    return incident


def meant_for(payload: dict[str, Json], today: int, calendar: WorkCalendar) -> int:
    """The working day on which a payload from the inbox happens: what its `tick` or its `at` says, else `today`.

    A `tick` that has passed is one that `inject` gave while the run went on, and counts as today.  Raises BadInput for an `at` that is
    past, and for what lies beyond the year.
    """
    tick, at = payload.get("tick"), payload.get("at")
    if tick is None and isinstance(at, str) and at.strip():
        tick = calendar.tick_of(" ".join(at.split()))
        if tick < today:
            raise BadInput(too_late(payload, tick, calendar, "the run", calendar.days[today]))
    if tick is None:
        return today
    last = len(calendar.days) - 1
    if tick > last:
        raise BadInput(f"'tick' {tick} lies beyond the year, whose last working day is {last} ({calendar.days[last]}); name an earlier one")
    return max(today, int(tick))


def too_late(payload: dict[str, Json], tick: int, calendar: WorkCalendar, run: object, now: object) -> str:
    """What is said of an incident that was to happen on a day that is over."""
    return f"{payload.get('title')!r} is meant for {calendar.days[tick]}, which is past: {run} stands at {now}. {FORK}"


class IncidentReader(Reader):
    """Reads whole incidents."""

    def incident(self, node: Node) -> Incident | None:
        fields = self.fields(node, _KEYS, "an incident")
        if fields is None:
            return None
        before = len(self.problems)
        title = self.text(fields, "title")
        if not title:
            self.wrong(node, "an incident needs a title")
        at = self.text(fields, "at")
        if at:
            self.checked(fields["at"], lambda: self.calendar.tick_of(at))
        affects = self.affects(fields.get("affects"))
        incident = Incident(
            title=title or "",
            category=cast(Category, self.choice(fields, "category", get_args(Category), "internal")),
            description=self.text(fields, "description") or "",
            severity=cast(Severity, self.choice(fields, "severity", get_args(Severity), "medium")),
            affects=affects,
            at=at,
            duration=self.span(fields.get("duration")) or DURATION,
            effects=self.effects(fields.get("effects"), affects),
            trigger=self.trigger(node, fields),
            basis=self.text(fields, "basis") or "",
        )
        return incident if len(self.problems) == before else None

    def affects(self, node: Node | None) -> tuple[str, ...] | None:
        """Names of those who are affected; None for all."""
        if node is None or (isinstance(node, Scalar) and node.text.strip().lower() in ("", "all")):
            return None
        if isinstance(node, Mapping):
            fields = self.fields(node, SELECTORS, "affects")
            if fields is None:
                return None
            if not any(name in fields for name in SELECTORS[:-1]):
                self.wrong(node, f"affects is `all`, names, or a mapping with one of {', '.join(SELECTORS[:-1])}")
                return None
            target = read_target(self, node, fields, "affects")
            if target is None or set(target.names) == set(self.who.org.roles):
                return None
            return target.names
        names = node.items if isinstance(node, Listing) else (node,)
        for name in names:
            self.known(name)
        if not names:
            self.wrong(node, "affects is `all` or names of departments, roles or agents")
        return tuple(name.text.strip() for name in names if isinstance(name, Scalar))

    def effects(self, node: Node | None, affects: tuple[str, ...] | None) -> tuple[Effect, ...]:
        if node is None or (isinstance(node, Scalar) and node.empty):
            return ()
        if not isinstance(node, Listing):
            self.wrong(node, "effects is a list, each entry one effect, e.g. `- news: ...`")
            return ()
        known = affects if affects is None or all(self.who.named(name) for name in affects) else None
        read = [read_effect(self, item, known) for item in node.items]
        return tuple(effect for effect in read if effect is not None)

    def trigger(self, node: Node, fields: Fields) -> Trigger | None:
        """What makes it happen, where it is neither a time nor somebody who puts it in."""
        repeats = self.truth(fields, "repeats")
        if "chance" not in fields and "when" not in fields:
            if repeats:
                self.wrong(fields["repeats"], "`repeats` goes with `chance` or `when`: what has a time happens once")
            return None
        chance = self.weekly(fields, "chance", 0.0, 1.0)
        kpi, above, below = self.when(fields["when"]) if "when" in fields else (None, None, None)
        return Trigger(chance=chance, kpi=kpi, above=above, below=below, repeats=repeats)

    def when(self, node: Node) -> tuple[str | None, float | None, float | None]:
        fields = self.fields(node, ("kpi", "above", "below"), "when")
        if fields is None:
            return None, None, None
        kpi = self.one_of(node, fields, "kpi", tuple(self.who.org.environment), "key figure")
        if "above" not in fields and "below" not in fields:
            self.wrong(node, "when says beyond which value: `above: 4.0` or `below: 4.0`")
        return kpi, self.number(fields, "above"), self.number(fields, "below")
