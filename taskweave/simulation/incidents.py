"""What happens to the organization from outside, and who hears of it?  (TaskWeave, Sec. 4.6 and App. K.1.)

Entry points: `load_incidents` (a file, every problem at once), `read_incident` and `meant_for` (one from the inbox), `Incidents` (those
of a running year).  An incident is heard from its tick until its end by the units that it affects and their ancestors.
"""

from __future__ import annotations

import difflib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Literal, cast, get_args

from taskweave.errors import BadInput, IncidentInvalid, Problem
from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.organization import Organization
from taskweave.org.population import Population
from taskweave.org.yamlfile import Listing, Mapping, Node, Scalar, Unreadable, compose, read_limited
from taskweave.records import Json

Category = Literal["policy", "economic", "technology", "internal"]
Severity = Literal["low", "medium", "high"]
Kind = Literal["department", "role", "agent"]  # of a name by which people are meant
KINDS: tuple[Kind, ...] = get_args(Kind)
DURATION = "4 weeks"  # of an incident that names none
MOST_DIGITS = 6  # of a count
FORK = "What has happened stays; to change the past, fork the run: 'taskweave fork RUN --at week:N --incidents FILE'."
_KEYS = ("title", "category", "description", "severity", "affects", "at", "duration", "effects")
_EFFECTS = ("news", "absence")
_ABSENCE = (*KINDS, "count", "for")
_ONE = {"department": "a department", "role": "a role", "agent": "an agent"}
_SPAN = re.compile(r"(\d{1,3})\s*(day|week|month)s?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Absence:
    """Who is taken off work: `count` of the agents that `name` names, as a `kind` of name, for a span of time."""

    kind: Kind
    name: str
    count: int | None
    span: str

    def agents(self, who: Who, draw: random.Random) -> tuple[str, ...]:
        """The agents, drawn where only some of those named are away."""
        named = who.named(self.name, self.kind)
        if self.count is None or self.count >= len(named):
            return named
        drawn = set(draw.sample(named, self.count))
        return tuple(agent for agent in named if agent in drawn)


@dataclass(frozen=True, kw_only=True, slots=True)
class Incident:
    """One incident as its file says it; `affects` is None for all, `at` None for one injected into a live run."""

    title: str
    category: Category
    description: str
    severity: Severity
    affects: tuple[str, ...] | None
    at: str | None
    duration: str
    news: tuple[str, ...]
    absences: tuple[Absence, ...]
    effects: tuple[Json, ...]

    def payload(self, calendar: WorkCalendar) -> dict[str, Json]:
        """The same as it lies in the inbox and the journal; `tick` is the working day it is meant for, where it names one."""
        payload: dict[str, Json] = {
            "title": self.title,
            "category": self.category,
            "description": self.description,
            "severity": self.severity,
            "affects": "all" if self.affects is None else list(self.affects),
            "duration": self.duration,
            "effects": list(self.effects),
        }
        if self.at is not None:
            payload |= {"at": self.at, "tick": calendar.tick_of(self.at)}
        return payload

    def text(self) -> str:
        """What is heard: the description and the news."""
        return " ".join(part for part in (self.description, *self.news) if part)


class Who:
    """Agents by the names under which a person means them: id, person's name, role or department."""

    def __init__(self, org: Organization, population: Population) -> None:
        self._named: dict[tuple[Kind, str], list[str]] = {}
        self._spelling: dict[tuple[Kind, str], str] = {}
        for name, department in org.departments.items():
            for agent_id in org.agent_ids(department.head):
                self._call("department", name, agent_id)
        for agent in population.agents:
            self._call("agent", agent.id, agent.id)
            self._call("agent", agent.persona.name, agent.id)
            self._call("role", agent.role, agent.id)
            if agent.department:
                self._call("department", agent.department, agent.id)

    def _call(self, kind: Kind, name: str, agent: str) -> None:
        key = (kind, name.casefold())
        self._spelling.setdefault(key, name)
        self._named.setdefault(key, []).append(agent)

    def named(self, name: str, *kinds: Kind) -> tuple[str, ...]:
        """The ids of those whom a name of these kinds means, of any kind where none is given; none if nobody is called so."""
        found = (self._named.get((kind, name.casefold().strip()), ()) for kind in kinds or KINDS)
        return tuple(dict.fromkeys(agent for agents in found for agent in agents))

    def nearest(self, name: str, *kinds: Kind) -> str:
        """A hint for an error: the nearest name of these kinds as it is spelled, or the kind that the very name is of."""
        other = [kind for kind in KINDS if kinds and kind not in kinds and self.named(name, kind)]
        if other:
            return f"; it is the name of {_ONE[other[0]]}"
        spelled = {key[1]: spelling for key, spelling in self._spelling.items() if key[0] in (kinds or KINDS)}
        close = difflib.get_close_matches(name.casefold(), list(spelled), n=1, cutoff=0.5)
        return f"; did you mean {spelled[close[0]]!r}?" if close else ""


# ---------------------------------------------------------------- reading
def load_incidents(path: Path, org: Organization, population: Population, calendar: WorkCalendar) -> list[dict[str, Json]]:
    """The payloads of a file with one incident or a list of them.  Raises IncidentInvalid with every problem and its line."""
    reader = _Reader(str(path), Who(org, population), calendar)
    try:
        node = compose(read_limited(path))
    except Unreadable as trouble:
        raise IncidentInvalid([trouble.problem(str(path))]) from None
    nodes = node.items if isinstance(node, Listing) else (node,)
    incidents = [reader.incident(item) for item in nodes]
    if not nodes:
        reader.wrong(node, "holds no incident")
    if reader.problems:
        raise IncidentInvalid(sorted(reader.problems, key=lambda problem: problem.line or 0))
    return [incident.payload(calendar) for incident in incidents if incident is not None]


def read_incident(payload: Json, org: Organization, population: Population, calendar: WorkCalendar) -> Incident:
    """An incident as it came through the inbox.  Raises IncidentInvalid."""
    reader = _Reader("inbox", Who(org, population), calendar)
    given = {key: value for key, value in payload.items() if key != "tick"} if isinstance(payload, dict) else payload
    try:
        incident = reader.incident(_node(given))
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


def _node(value: Json) -> Node:
    """A JSON value as the nodes of a YAML text, without lines."""
    if isinstance(value, dict):
        return Mapping(0, tuple((Scalar(0, str(key)), _node(inner)) for key, inner in value.items()))
    if isinstance(value, list):
        return Listing(0, tuple(_node(inner) for inner in value))
    return Scalar(0, "" if value is None else str(value), empty=value is None)


class _Reader:
    """Reads nodes into incidents and keeps what is wrong with them."""

    def __init__(self, file: str, who: Who, calendar: WorkCalendar) -> None:
        self.file, self.who, self.calendar = file, who, calendar
        self.problems: list[Problem] = []

    def wrong(self, node: Node, what: str) -> None:
        self.problems.append(Problem(file=self.file, line=node.line or None, what=what))

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
        news, absences, effects = self.effects(fields.get("effects"))
        incident = Incident(
            title=title or "",
            category=cast(Category, self.choice(fields, "category", get_args(Category), "internal")),
            description=self.text(fields, "description") or "",
            severity=cast(Severity, self.choice(fields, "severity", get_args(Severity), "medium")),
            affects=self.affects(fields.get("affects")),
            at=at,
            duration=self.span(fields.get("duration")) or DURATION,
            news=news,
            absences=absences,
            effects=effects,
        )
        return incident if len(self.problems) == before else None

    def fields(self, node: Node, legal: Sequence[str], what: str) -> dict[str, Node] | None:
        if not isinstance(node, Mapping):
            self.wrong(node, f"{what} is a mapping with the keys {', '.join(legal)}")
            return None
        found: dict[str, Node] = {}
        for key, value in node.entries:
            if key.text in found:
                self.wrong(key, f"{key.text!r} is given twice")
            elif key.text not in legal:
                close = difflib.get_close_matches(key.text, legal, n=1, cutoff=0.5)
                hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(legal)}"
                self.wrong(key, f"{what} has no key {key.text!r}; {hint}")
            else:
                found[key.text] = value
        return found

    def text(self, fields: dict[str, Node], name: str) -> str | None:
        node = fields.get(name)
        if node is None or (isinstance(node, Scalar) and node.empty):
            return None
        if not isinstance(node, Scalar):
            self.wrong(node, f"{name} is a text")
            return None
        return " ".join(node.text.split())

    def choice(self, fields: dict[str, Node], name: str, legal: Sequence[str], default: str) -> str:
        value = self.text(fields, name)
        if value is None:
            return default
        if value.lower() in legal:
            return value.lower()
        self.wrong(fields[name], f"{name} is {value!r}; it is one of {', '.join(legal)}")
        return default

    def affects(self, node: Node | None) -> tuple[str, ...] | None:
        if node is None or (isinstance(node, Scalar) and node.text.strip().lower() in ("", "all")):
            return None
        names = node.items if isinstance(node, Listing) else (node,)
        for name in names:
            self.known(name)
        if not names:
            self.wrong(node, "affects is `all` or names of departments, roles or agents")
        return tuple(name.text.strip() for name in names if isinstance(name, Scalar))

    def known(self, node: Node, *kinds: Kind) -> str | None:
        wanted = ", ".join(kinds) or "department, role or agent"
        if not isinstance(node, Scalar):
            self.wrong(node, f"a name of a {wanted} is needed here")
            return None
        if not self.who.named(node.text, *kinds):
            self.wrong(node, f"no {wanted} is called {node.text!r}{self.who.nearest(node.text, *kinds)}")
            return None
        return node.text.strip()

    def span(self, node: Node | None) -> str | None:
        if node is None:
            return None
        if isinstance(node, Scalar) and (found := _SPAN.fullmatch(node.text.strip())) and int(found[1]) > 0:
            return " ".join(node.text.split())
        self.wrong(node, f"{getattr(node, 'text', 'this')!r} is not a span of time; write '3 days', '4 weeks' or '2 months'")
        return None

    def checked(self, node: Node, check: Callable[[], object]) -> None:
        try:
            check()
        except BadInput as trouble:
            self.wrong(node, str(trouble))

    def effects(self, node: Node | None) -> tuple[tuple[str, ...], tuple[Absence, ...], tuple[Json, ...]]:
        if node is None or (isinstance(node, Scalar) and node.empty):
            return (), (), ()
        if not isinstance(node, Listing):
            self.wrong(node, "effects is a list, each entry one of news, absence")
            return (), (), ()
        news: list[str] = []
        absences: list[Absence] = []
        effects: list[Json] = []
        for item in node.items:
            for kind, value in self.each_effect(item):
                if kind == "news" and isinstance(value, Scalar):
                    news.append(" ".join(value.text.split()))
                    effects.append({"news": news[-1]})
                elif kind == "absence" and (absence := self.absence(value)) is not None:
                    absences.append(absence[0])
                    effects.append({"absence": absence[1]})
                elif kind == "news":
                    self.wrong(value, "news is a text")
        return tuple(news), tuple(absences), tuple(effects)

    def each_effect(self, node: Node) -> Iterator[tuple[str, Node]]:
        if not isinstance(node, Mapping) or len(node.entries) != 1:
            self.wrong(node, "an effect is one key with its value, e.g. `- news: ...`")
            return
        key, value = node.entries[0]
        if key.text in _EFFECTS:
            yield key.text, value
            return
        self.wrong(key, f"an effect {key.text!r} is not acted on by this version; there are {', '.join(_EFFECTS)}")

    def absence(self, node: Node) -> tuple[Absence, Json] | None:
        before = len(self.problems)
        fields = self.fields(node, _ABSENCE, "an absence")
        if fields is None:
            return None
        named = [kind for kind in KINDS if kind in fields]
        if len(named) != 1:
            self.wrong(node, f"an absence names exactly one of {', '.join(KINDS)}")
            return None
        name = self.known(fields[named[0]], named[0])
        span = self.span(fields.get("for"))
        if span is None and "for" not in fields:
            self.wrong(node, "an absence says how long: `for: 2 weeks`")
        text, count = self.text(fields, "count"), None
        if text is not None:
            count = int(text) if text.isdecimal() and len(text) <= MOST_DIGITS and int(text) > 0 else None
            if count is None:
                self.wrong(fields["count"], f"count is {text[:40]!r}; it is a whole number above 0")
        if len(self.problems) > before or name is None or span is None:
            return None
        said: dict[str, Json] = {named[0]: name, "for": span} | ({"count": count} if count is not None else {})
        return Absence(kind=named[0], name=name, count=count, span=span), said


# ---------------------------------------------------------------- a running year
@dataclass(frozen=True, kw_only=True, slots=True)
class InForce:
    """An incident that has been heard of: from working day `tick` up to the date `until`."""

    id: str
    incident: Incident
    tick: int
    until: date
    agents: frozenset[str]

    @staticmethod
    def end_of(span: str, start: date) -> date:
        """The first date after an effect that lasts `span` from `start`."""
        return after(start, span)

    def as_input(self) -> Json:
        """As the prompts of plans show it."""
        return self.brief() | {"until": self.until.isoformat()}

    def brief(self) -> dict[str, Json]:
        """As the prompt of a response shows it."""
        incident = self.incident
        return {
            "title": incident.title,
            "category": incident.category,
            "severity": incident.severity,
            "description": incident.text(),
        }


class Incidents:
    """The incidents of a year, and who hears which."""

    def __init__(self, org: Organization, population: Population, delegation: Delegation, calendar: WorkCalendar) -> None:
        self._org, self._population, self._delegation, self._calendar = org, population, delegation, calendar
        self.who = Who(org, population)
        self._all: list[InForce] = []
        self._over: set[str] = set()

    def hear(self, id: str, payload: Json, tick: int) -> InForce:
        """Add what came with a tick.  Raises IncidentInvalid."""
        incident = read_incident(payload, self._org, self._population, self._calendar)
        if incident.affects is None:
            agents = frozenset(agent.id for agent in self._population.agents)
        else:
            agents = frozenset(agent for name in incident.affects for agent in self.who.named(name))
        until = after(self._calendar.days[tick], incident.duration)
        heard = InForce(id=id, incident=incident, tick=tick, until=until, agents=agents)
        self._all.append(heard)
        return heard

    def in_force(self, owner: str, day: int) -> tuple[InForce, ...]:
        """What the units of `owner` hear on this working day: what affects it, or anybody below it."""
        today = self._calendar.days[day]
        now = [heard for heard in self._all if heard.tick <= day and today < heard.until]
        below = {owner, *self._delegation.descendants(owner)} if now else set()
        return tuple(heard for heard in now if heard.agents & below)

    def ended(self, day: int) -> list[InForce]:
        """Those that ended since this was last asked."""
        today = self._calendar.days[day]
        over = [heard for heard in self._all if heard.until <= today and heard.id not in self._over]
        self._over.update(heard.id for heard in over)
        return over


def after(start: date, span: str) -> date:
    """The date that lies `span` ("3 days", "4 weeks", "2 months") after `start`."""
    found = _SPAN.fullmatch(span.strip())
    assert found is not None
    number, unit = int(found[1]), found[2]
    if unit == "month":
        month = start.month - 1 + number
        first = date(start.year + month // 12, month % 12 + 1, 1)
        next_first = date(first.year + first.month // 12, first.month % 12 + 1, 1)
        return first.replace(day=min(start.day, (next_first - timedelta(days=1)).day))
    return start + timedelta(days=number * (7 if unit == "week" else 1))
