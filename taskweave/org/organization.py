"""What is an organization, once everything its file left out has been filled in?  Entry point: `Organization` (𝔹, Sec. 3.1).

These are values only: `schema` makes them from a file, `population` and `delegation` compile them.  Nothing here
reads a file, knows the role catalogue or draws a number.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from taskweave.records import Level

SLUG_LENGTH = 60
LATIN = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "þ": "th", "ı": "i"})  # without a decomposition
ACTIVITIES: tuple[str, ...] = (
    *("analyse", "design", "implement", "test", "review", "deploy", "support", "research"),
    *("write", "plan", "train", "recruit", "negotiate", "audit", "report"),
)


def slug(title: str) -> str:
    """A title as an id: small letters and digits joined by '-'; accents go, other scripts stay; '' where it has neither."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", title.casefold()) if not unicodedata.combining(c))
    words = re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", plain))
    return "-".join(words)[:SLUG_LENGTH].strip("-")


def ascii_slug(title: str) -> str:
    """A slug that may stand in a host name or a mailbox: what has no ASCII form is replaced by a short digest."""
    letters = slug(title).translate(LATIN).encode("ascii", "ignore").decode()
    found = "-".join(part for part in letters.split("-") if part)
    return found or "x" + hashlib.sha256(title.encode()).hexdigest()[:8]


class Value(BaseModel):
    """Frozen; an unknown field is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class CalendarSpec(Value):
    """When the organization works: `hours` a day from `start`, Monday to Friday, not on `holidays`."""

    start: date
    hours: float
    holidays: tuple[date, ...] = ()


class Goal(Value):
    """What is to be reached; `owner` is a role title."""

    text: str
    kpi: str | None = None
    target: float | None = None
    by: date | None = None
    owner: str

    def due_on(self, by: date) -> Goal:
        """The same, due on this day."""
        return Goal(**{**dict(self), "by": by})


class Department(Value):
    """`head` is a role title."""

    head: str


class Role(Value):
    """What an agent of this title is for.

    `fte` shortens each day; `executes` is the share of the day for own tasks; `hours` the least and most a subtask takes;
    `demand` and `share` are weights, and only reports read `share`.
    """

    title: str
    reports_to: str | None
    leads: str | None
    department: str | None
    tier: int
    count: int
    fte: float
    like: str | None
    share: float | None
    hours: tuple[float, float]
    demand: float
    tools: tuple[str, ...]
    executes: float
    responsibilities: tuple[str, ...]
    skills: tuple[str, ...]
    activities: tuple[str, ...]
    artifacts: tuple[str, ...]
    subjects: tuple[str, ...]

    @property
    def middle_hours(self) -> float:
        """The middle of `hours`: what a subtask of this role takes when nothing else is known."""
        return (self.hours[0] + self.hours[1]) / 2


class Person(Value):
    """A named agent of `role`; `away` are spans with both ends included."""

    role: str
    years: int | None = None
    knows: tuple[str, ...] = ()
    away: tuple[tuple[date, date], ...] = ()


class CrossLink(Value):
    """The unit that `source` owns, or works in, may assign to `target`."""

    source: str
    target: str


class Workload(Value):
    """What work arises: the share of present hours, the hours of a composite task, the sigma of hours spent."""

    utilisation: float = 0.85
    composite_hours: float = 30.0
    variation: float = 0.3


class Kpi(Value):
    """A reading of the environment: `drift` is a week; finished work moves it by `lowered_by`, `raised_by`.

    These name what is finished: a goal (each planned hour of its tasks), `role:TITLE` (each planned hour of its subtasks) or `work:NAME`
    (each case).  `season` is by how much each month, January first, lies above the level that all else moves.  It stays between `least`
    and `most`, where it has such.
    """

    start: float
    unit: str = ""
    drift: float = 0.0
    noise: float = 0.0
    least: float | None = None
    most: float | None = None
    lowered_by: dict[str, float] = Field(default_factory=dict)
    raised_by: dict[str, float] = Field(default_factory=dict)
    season: tuple[float, ...] | None = None


class Escalation(Value):
    """After the step `after` a `share` of the cases goes to the role `to` for one step more, `step`, of so many hours; then it goes on."""

    share: float
    to: str
    step: str
    after: str
    hours: tuple[float, float]


class Rework(Value):
    """Each time the step `source` is finished, the case goes back to the step `target` with this chance."""

    share: float
    source: str
    target: str


class RecurringWork(Value):
    """Work that comes again and again, in cases that run through `steps` (activity -> least and most hours).

    A stream's cases arrive by chance, `arrivals` a week on average; a cycle's begin at the `start` or `end` of `every` so many
    weeks, months or quarters.  `role` does the steps: the stream's role, or the cycle's owner.
    """

    kind: Literal["stream", "cycle"]
    role: str
    arrivals: float | None
    every: str | None
    at: Literal["start", "end"] | None
    hours: tuple[float, float]
    steps: dict[str, tuple[float, float]]
    escalate: Escalation | None
    rework: Rework | None


class EntityKind(Value):
    """What the organization has to do with, of one kind: `count` of them, of which the first are `named`, with what is given of each."""

    count: int
    named: dict[str, dict[str, str]] = Field(default_factory=dict)


class MailServer(Value):
    """Where mail to addresses outside goes: `smtp` is a URL, `from_domain` that of senders there.

    `to` are the domains that it may go to, none for all.
    """

    smtp: str
    from_domain: str | None = None
    to: tuple[str, ...] = ()


class FeedServer(Value):
    """Where posts go: the URL of a server with Mastodon's API."""

    mastodon: str


class McpServer(Value):
    """An MCP server: the `command` that starts it, names of the environment variables it is given, and which of its tools may be used.

    No `tools`: all of them.  A call takes at most `seconds`.
    """

    command: tuple[str, ...]
    env: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    seconds: float = 30.0


class Organization(Value):
    """𝔹: roles, reporting lines, goals and environment, resolved.

    `cadence` names the tier that owns each level; `tools`: agents use those of their role.  `given` are the dotted paths
    ("roles.CTO.tier") that the file gave; all else was inferred.  Two organizations are equal when all but `given` is.
    """

    name: str
    domain: str
    description: str
    calendar: CalendarSpec
    goals: dict[str, Goal]
    departments: dict[str, Department]
    roles: dict[str, Role]
    people: dict[str, Person]
    cross_links: tuple[CrossLink, ...]
    cadence: dict[Level, int]
    workload: Workload
    activities: tuple[str, ...]
    environment: dict[str, Kpi]
    tools: bool = False
    servers: dict[str, McpServer] = Field(default_factory=dict)
    work: dict[str, RecurringWork] = Field(default_factory=dict)
    entities: dict[str, EntityKind] = Field(default_factory=dict)
    mail: MailServer | None = None
    feed: FeedServer | None = None
    given: frozenset[str] = frozenset()

    @property
    def slug(self) -> str:
        """The name as it stands in folder names and e-mail addresses."""
        return ascii_slug(self.name)

    @property
    def root(self) -> Role:
        """The role that reports to nobody."""
        return next(role for role in self.roles.values() if role.reports_to is None)

    @property
    def tiers(self) -> int:
        """The number of tiers; 1 is the top."""
        return max(role.tier for role in self.roles.values())

    def with_goals(self, goals: Mapping[str, Goal]) -> Organization:
        """The same with these in the place of the goals of their names."""
        return Organization(**{**dict(self), "goals": {**self.goals, **goals}})

    def agent_ids(self, title: str) -> tuple[str, ...]:
        """The ids of the agents of a role: its slug, numbered from 1 where there are several."""
        count, base = self.roles[title].count, slug(title)
        return (base,) if count == 1 else tuple(f"{base}-{n}" for n in range(1, count + 1))

    def reports(self, title: str) -> tuple[str, ...]:
        """The roles that report to this one, in file order."""
        return tuple(role.title for role in self.roles.values() if role.reports_to == title)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Organization):
            return NotImplemented
        return self.model_dump(exclude={"given"}) == other.model_dump(exclude={"given"})

    def __hash__(self) -> int:
        raise TypeError("an organization has no hash: it holds dicts")  # pydantic would make one of all fields
