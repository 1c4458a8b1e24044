"""What does an organization file leave to be filled in?  Entry point: `resolve`, for values that `validate` found sound.

Roles come from the catalogue, tiers and departments from the reporting lines, the calendar from the dates that the file names.  Which
values were given is kept, so that `show --resolved` can say so.  Refuses to draw numbers: personas belong to `population`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date, timedelta

from taskweave.org import catalogue, entity_keys, kpis, recurring, structure
from taskweave.org.form import Reading
from taskweave.org.organization import (
    ACTIVITIES,
    CalendarSpec,
    CrossLink,
    Department,
    FeedServer,
    Goal,
    MailServer,
    McpServer,
    Organization,
    Person,
    Role,
    Workload,
    slug,
)
from taskweave.records import Json

Raw = Mapping[str, Json]
DEFAULT_YEAR = 2026
DEFAULT_HOURS = 8.0


def resolve(raw: Raw, reading: Reading) -> Organization:
    """The organization with everything that the file left out; `reading` takes the warnings."""
    roles = _roles(raw)
    root = next(role.title for role in roles.values() if role.reports_to is None)
    name = raw.get("name") or _name_from(reading.file)
    domain = raw.get("domain", "general business")
    departments = {name: Department(head=head) for name, head in structure.heads(raw).items()}
    return Organization(
        name=name,
        domain=domain,
        description=raw.get("description") or _description(name, domain, roles, list(departments)),
        calendar=calendar_spec(raw),
        goals={name: Goal(**{"owner": root, **goal}) for name, goal in raw.get("goals", {}).items()},
        departments=departments,
        roles=roles,
        people={name: Person(**person) for name, person in raw.get("people", {}).items()},
        cross_links=tuple(CrossLink(source=source, target=target) for source, target in dict.fromkeys(raw.get("cross_links", ()))),
        cadence=structure.cadence(raw.get("cadence", {}), max(role.tier for role in roles.values())),
        workload=Workload(**raw.get("workload", {})),
        activities=tuple(dict.fromkeys(raw.get("activities", ACTIVITIES))),
        environment={name: kpis.resolve(kpi, raw) for name, kpi in raw.get("environment", {}).items()},
        tools=raw.get("tools", False),
        servers={name: McpServer(**one) for name, one in raw.get("servers", {}).items()},
        work={name: recurring.resolve(one) for name, one in raw.get("work", {}).items()},
        entities={kind: entity_keys.resolve(one) for kind, one in raw.get("entities", {}).items()},
        mail=MailServer(**raw["mail"]) if raw.get("mail") else None,
        feed=FeedServer(**raw["feed"]) if raw.get("feed") else None,
        given=_given(raw, reading),
    )


def calendar_spec(raw: Raw) -> CalendarSpec:
    """The calendar as given; a year that nobody named starts on the first Monday of the first year in which the file has a date."""
    given = raw.get("calendar", {})
    start = given.get("start") or _first_monday(min((day.year for day in _dates(raw)), default=DEFAULT_YEAR))
    holidays = {day for days in given.get("holidays", ()) for day in days}
    return CalendarSpec(start=start, hours=given.get("hours", DEFAULT_HOURS), holidays=tuple(sorted(holidays)))


def _dates(raw: Raw) -> list[date]:
    goals = [goal["by"] for goal in raw.get("goals", {}).values() if "by" in goal]
    away = [first for person in raw.get("people", {}).values() for first, _ in person.get("away", ())]
    return goals + away + [days[0] for days in raw.get("calendar", {}).get("holidays", ())]


def _first_monday(year: int) -> date:
    new_year = date(year, 1, 1)
    return new_year + timedelta(days=-new_year.weekday() % 7)


def _name_from(file: str) -> str:
    stem = file.replace("\\", "/").rsplit("/", 1)[-1].rsplit(".", 1)[0]
    return " ".join(slug(stem).split("-")).title() or "Organization"


def _description(name: str, domain: str, roles: Mapping[str, Role], departments: list[str]) -> str:
    agents = sum(role.count for role in roles.values())
    tiers = max(role.tier for role in roles.values())
    parts = f" The departments are {', '.join(departments)}." if departments else ""
    return f"{name} works in this field: {domain}. It has {agents} people in {tiers} tier{'s' if tiers > 1 else ''}.{parts}"


# ------------------------------------------------------------ roles
def _roles(raw: Raw) -> dict[str, Role]:
    tiers, departments = structure.tiers(raw), structure.departments(raw)
    leads = {head: name for name, head in structure.heads(raw).items()}
    superiors = {role.get("reports_to") for role in raw["roles"].values()}
    vocabulary = raw.get("activities", ACTIVITIES)
    found: dict[str, Role] = {}
    for title, given in raw["roles"].items():
        entry = catalogue.lookup(given.get("like", title))
        described = (entry or catalogue.generic(title)).model_dump(exclude={"title"})
        # An own vocabulary may lack all that the catalogue says of a role: then the role may do anything that is in it.
        described["activities"] = tuple(name for name in described["activities"] if name in vocabulary) or vocabulary
        values = {
            "reports_to": None,
            "count": 1,
            "fte": 1.0,
            "share": None,
            "demand": 1.0,
            "executes": usual_part(title, superiors),
            **described,
            **given,
            "title": title,
            "like": entry.title if entry else None,
            "leads": leads.get(title),
            "department": departments[title],
            "tier": tiers[title],
        }
        found[title] = Role(**values)
    return found


def usual_part(title: str, superiors: Collection[str | None]) -> float:
    """The part of the day for own tasks where the file names none: those whom somebody reports to plan, the others execute."""
    return 0.0 if title in superiors else 1.0


def _given(raw: Raw, reading: Reading) -> frozenset[str]:
    """The paths that the file wrote; a tier that stands under `tiers` counts as given on its role."""
    stated = {f"roles.{title}.tier" for title in structure.given_tiers(raw)}
    return frozenset(".".join(path) for path in reading.lines) | stated
