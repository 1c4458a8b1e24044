"""How does an organization file become an `Organization`?  Entry points: `load`, `parse`, `json_schema`.

This page is the table of the file's keys.  `form` reads them, `validate` finds what does not fit together, `inference` fills in
what was left out.  Every problem is reported at once, with its line.  Refuses to know personas and edges.
"""

from __future__ import annotations

from pathlib import Path

from taskweave.errors import OrganizationInvalid
from taskweave.org import entity_keys, form, kpis, recurring, servers
from taskweave.org.form import Field, Kind, Reading
from taskweave.org.inference import resolve
from taskweave.org.mcp_servers import SERVERS
from taskweave.org.organization import Organization
from taskweave.org.validate import check
from taskweave.org.yamlfile import Unreadable, compose, read_limited
from taskweave.records import Json

__all__ = ["FILE", "Organization", "json_schema", "load", "parse", "read"]

MOST_AGENTS = 1000  # of one role
MOST_HOURS = 14  # a day starts at nine
NO_ROLE = "names no role; one that reports to nobody is the least"


def _title(text: str) -> str:
    name = form.clean_name(text)
    if "->" in name or "→" in name:
        raise ValueError(f"the name {form.said(name)} holds an arrow, which links roles under 'cross_links'")
    if name.casefold() == "all":
        raise ValueError(f"the name {form.said(name)} is taken: an incident that affects 'all' affects everybody")
    return name


def _link(text: str) -> tuple[str, str]:
    source, arrow, target = text.replace("→", "->").partition("->")
    if not arrow or not source.strip() or not target.strip() or "->" in target:
        raise ValueError(f"{form.said(text)} is not a link such as 'Support Agent -> Backend Engineer'")
    return _title(source), _title(target)


_TITLE = form.scalar(_title, form.NAME.schema, "a role's title")
_NAMES = form.listing(form.NAME)
_TEXTS = form.listing(form.TEXT)
_TIER = form.integer(1, 20)

_CALENDAR = form.record(
    {
        "start": Field(form.DATE, "first day of the simulated year; by default the first Monday of the first year that the file names"),
        "hours": Field(form.number(least=0.5, most=MOST_HOURS), "working hours of a day, 8 by default"),
        "holidays": Field(form.listing(form.DAYS), "days without work, as dates or spans; weekends are free anyway"),
    }
)
_GOAL = form.record(
    {
        "text": Field(form.TEXT, "the goal in words", required=True),
        "kpi": Field(form.NAME, "the reading under 'environment' that shows it"),
        "target": Field(form.number(), "the value that the reading shall reach"),
        "by": Field(form.DATE, "the day by which it is due"),
        "owner": Field(_TITLE, "the role that answers for it; the top role by default"),
    },
    short="text",
)
_DEPARTMENT = form.record({"head": Field(_TITLE, "the role that leads it; or write 'leads' on the role")}, short="head", empty=True)
_ROLE = form.record(
    {
        "reports_to": Field(_TITLE, "the role above; exactly one role has none"),
        "leads": Field(form.scalar(_title, form.NAME.schema, "a department's name"), "the department that this role heads"),
        "department": Field(form.scalar(_title, form.NAME.schema, "a department's name"), "by default that of the nearest head above"),
        "tier": Field(_TIER, "1 is the top; by default one more than the role above"),
        "count": Field(form.integer(1, MOST_AGENTS), "how many agents, 1 by default"),
        "fte": Field(form.share(zero=False), "part of a full day that each works, 1.0 by default"),
        "like": Field(form.NAME, "title of the role catalogue that describes this role; its own title by default"),
        "share": Field(form.number(least=0), "reference weight of the role's work; only reports read it"),
        "hours": Field(form.HOURS, "least and most hours of a subtask"),
        "demand": Field(form.number(more_than=0, most=100), "weight of the work that arises for this role, 1.0 by default"),
        "tools": Field(_NAMES, "tools that the role uses"),
        "executes": Field(form.share(zero=True), "part of the day for own tasks; by default 100% without reports, 0% with reports"),
        "responsibilities": Field(_TEXTS, "what the role is answerable for"),
        "skills": Field(_TEXTS, "what it can do"),
        "activities": Field(_NAMES, "its activities, from the organization's vocabulary"),
        "artifacts": Field(_TEXTS, "the kinds of its deliverables"),
        "subjects": Field(_TEXTS, "what its work is about"),
    },
    short="reports_to",
    empty=True,
    meant={
        **dict.fromkeys(("duties", "tasks", "jobs", "functions"), "responsibilities"),
        **dict.fromkeys(("knowledge", "knows", "competences", "competencies", "abilities", "expertise"), "skills"),
        **dict.fromkeys(("deliverables", "outputs", "documents", "products"), "artifacts"),
        **dict.fromkeys(("manager", "managers", "boss", "bosses", "supervisors", "superiors", "heads", "parents"), "reports_to"),
        **dict.fromkeys(("topics", "themes"), "subjects"),
        **dict.fromkeys(("headcount", "headcounts", "numbers"), "count"),
    },
)
_PERSON = form.record(
    {
        "role": Field(_TITLE, "the role whose agent this is", required=True),
        "years": Field(form.integer(0, 70), "years of experience"),
        "knows": Field(_TEXTS, "subjects this person knows best"),
        "away": Field(form.listing(form.SPAN), "days off, both ends included"),
    },
    short="role",
)


def _tier_number(text: str) -> str:
    if not text.isdecimal() or not 1 <= int(text) <= 20:
        raise ValueError(f"{form.said(text)} is not a tier from 1 to 20")
    return str(int(text))


FILE: Kind = form.record(
    {
        "name": Field(form.NAME, "name of the organization; the file's name by default"),
        "domain": Field(form.TEXT, "what it does"),
        "description": Field(form.TEXT, "what everybody there knows about it"),
        "calendar": Field(_CALENDAR, "when it works"),
        "goals": Field(form.mapping_of(form.clean_name, _GOAL, "a goal"), "what is to be reached"),
        "departments": Field(form.mapping_of(_title, _DEPARTMENT, "a department"), "departments and their heads"),
        "tiers": Field(
            form.mapping_of(_tier_number, form.listing(_TITLE), "a tier"), "the roles of each tier; or write 'tier' on the role"
        ),
        "roles": Field(form.mapping_of(_title, _ROLE, "a role", empty=NO_ROLE), "who works here, by title", required=True),
        "people": Field(form.mapping_of(form.clean_name, _PERSON, "a person"), "named agents"),
        "cross_links": Field(
            form.listing(form.scalar(_link, {"type": "string", "pattern": "->|→"}, "a link")), "links 'A -> B': A's unit may assign to B"
        ),
        "cadence": Field(
            form.record({level: Field(_TIER, f"tier that owns the {level}") for level in ("year", "quarter", "month", "week")}),
            "the tier that owns each level of planning",
        ),
        "workload": Field(
            form.record(
                {
                    "utilisation": Field(form.share(zero=False), "part of the present hours that is planned, 0.85 by default"),
                    "composite_hours": Field(form.number(least=1, most=2000), "hours of a composite task, 30 by default"),
                    "variation": Field(form.number(least=0, most=2), "sigma of hours spent over planned, 0.3 by default"),
                }
            ),
            "how much work arises",
        ),
        "activities": Field(_NAMES, "the vocabulary of activities"),
        "environment": Field(form.mapping_of(form.clean_name, kpis.KPI, "a reading"), "readings that drift, and the work that moves them"),
        "tools": Field(form.SWITCH, "on: agents use the tools that their roles name; off by default"),
        "servers": Field(SERVERS, "MCP servers whose tools roles may name under 'tools', by name"),
        "work": Field(recurring.WORK, "streams and cycles of recurring work, by name"),
        "entities": Field(entity_keys.ENTITIES, "whom and what it has to do with: customers, suppliers, products, systems"),
        "mail": Field(servers.MAIL, "the mail server that what is addressed outside goes to; by default it stays here"),
        "feed": Field(servers.FEED, "the social server that posts go to; by default they stay here"),
    }
)


def load(path: Path, *, warn: list[str] | None = None, called: str | None = None, like: Organization | None = None) -> Organization:
    """Read an organization file; raises OrganizationInvalid with every problem.  What is legal and odd is appended to `warn`.

    `called` is the name where the file gives none; by default it is made of the file's.  `like` has the calendar, as far as the file is
    silent, and is given for one that amends another: by default it follows from the dates that the file names.
    """
    try:
        data = read_limited(Path(path))
    except Unreadable as why:
        raise OrganizationInvalid([why.problem(str(path))]) from None
    return parse(data, str(path), warn=warn, called=called, like=like)


def parse(
    text: str | bytes, file: str, *, warn: list[str] | None = None, called: str | None = None, like: Organization | None = None
) -> Organization:
    """Read an organization from a text; `file` is how messages name it, all else as in `load`."""
    reading, raw = read(text, file)
    if raw is not None and called is not None:
        raw.setdefault("name", called)
    if raw is not None and like is not None:
        spec = like.calendar
        told = {"start": spec.start, "hours": spec.hours, "holidays": [(day,) for day in spec.holidays]}
        raw["calendar"] = told | raw.get("calendar", {})
    if raw is not None:
        check(raw, reading)
    if warn is not None:
        warn += reading.warnings
    if raw is None or reading.problems:
        raise OrganizationInvalid(sorted(reading.problems, key=lambda problem: problem.line or 0))
    return resolve(raw, reading)


def read(text: str | bytes, file: str) -> tuple[Reading, dict[str, Json] | None]:
    """The file's values by key, before they are checked against each other."""
    reading = Reading(file)
    try:
        node = compose(text)
    except Unreadable as why:
        reading.problems.append(why.problem(file))
        return reading, None
    values: dict[str, Json] | None = FILE.read(reading, node, ())
    return reading, values


def json_schema() -> dict[str, Json]:
    """The JSON Schema of an organization file as people write it, short forms included, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A TaskWeave organization", **FILE.schema}
