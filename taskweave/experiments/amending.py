"""May another organization hold from a week of a run on, and who works there then?  Entry point: `amendment`.

Whoever has left or was hired until then is known from run.db.  Refuses to know what is forked beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote

from taskweave.errors import BadInput, RunRefused
from taskweave.org.amendment import differences, refused
from taskweave.org.calendar import WorkCalendar
from taskweave.org.organization import Organization
from taskweave.org.population import Agent, Persona, Population
from taskweave.org.schema import parse
from taskweave.org.staffing import staffed
from taskweave.pool.pool import Pool
from taskweave.records import LEVELS, Level
from taskweave.runs import RunFolder
from taskweave.runs.forking import Amended
from taskweave.tools.mcp_servers import refuse_unkept
from taskweave.tools.shelf import by_role

SHOWN = 8  # names of those who come or go


@dataclass(frozen=True, kw_only=True, slots=True)
class Amendment:
    """The organization of the weeks from a fork on, who works there then, and what a run keeps of it (None: it is as it was)."""

    organization: Organization
    population: Population
    kept: Amended | None


def amendment(parent: RunFolder, text: str | bytes, file: str, week: int, say: Callable[[str], None] = lambda _: None) -> Amendment:
    """What the organization in `text` makes of a run from `week` on; `say` hears what is odd in the file, and who comes and goes.

    Raises OrganizationInvalid for the file, BadInput for what cannot change in that week, RunRefused where run.db does not reach it.
    """
    tenures = parent.tenures()
    now = next(one for one in reversed(tenures) if one.week <= week)
    warnings: list[str] = []
    after = parse(text, file, warn=warnings, called=parent.config.organization, like=tenures[0].organization)
    for warning in warnings:
        say(warning)
    refuse_unkept(after, parent.mcp_servers())
    by_role(after, parent.mcp_servers())  # names every tool that is none
    calendar = WorkCalendar(after.calendar)
    if said := refused(now.organization, after, _begins(calendar, week), week):
        raise BadInput("\n".join(f"{file}: {what}." for what in said))
    if not differences(now.organization, after):
        say(f"{file}: is the organization of week {week}; nothing is amended")
        return Amendment(organization=now.organization, population=now.population, kept=None)
    before = next((one for one in reversed(tenures) if one.week < week), tenures[0])
    people = _people(parent, before.organization, before.population, week, calendar)
    taken = [agent.id for one in tenures if one.week < week for agent in one.population.agents]
    population = staffed(people, before.organization, after, parent.config.seed, taken)
    for line in _told(people, population, week):
        say(line)
    return Amendment(organization=after, population=population, kept=Amended(text=text, population_json=population.to_json()))


def _begins(calendar: WorkCalendar, week: int) -> Mapping[Level, int | None]:
    """The first week from `week` on in which a period of each level begins."""

    def place(level: Level, number: int) -> int:
        one = calendar.weeks[number - 1]
        return {"year": 1, "quarter": one.quarter, "month": one.month, "week": one.number}[level]

    def begins(level: Level, number: int) -> bool:
        return number == 1 or place(level, number) != place(level, number - 1)

    return {level: next((n for n in range(week, len(calendar.weeks) + 1) if begins(level, n)), None) for level in LEVELS}


def _people(parent: RunFolder, org: Organization, population: Population, week: int, calendar: WorkCalendar) -> Population:
    """Those of the population who are there when the week begins, and those who were hired until then."""
    if week == 1:
        return population
    day = calendar.days[calendar.weeks[week - 1].first_day].isoformat()
    again = f"Let 'taskweave resume {quote(str(parent.path))}' write it first; nothing is asked again"
    if not parent.run_db_path.exists():
        raise RunRefused(f"{parent.run_db_path}: is missing, and who works there in week {week} is known from it. {again}")
    with Pool.open(parent.run_db_path) as pool:
        if missing := set(range(1, week)) - set(pool.weeks()):
            raise RunRefused(
                f"{pool.path}: does not hold week {min(missing)}, and who works there in week {week} is known from it. {again}"
            )
        log = {kind: list(pool.rows("events", kind=kind)) for kind in ("departure", "hire", "succession", "role")}
        rows = {row["id"]: row for row in pool.rows("agents")}
    told = {kind: [event for event in found if event["time"] < day] for kind, found in log.items()}
    # The table has each as the run ended; until the next change of roles it was what this was a change from.
    then = {event["subject"]: event["actor"] for event in reversed(log["role"]) if event["time"] >= day}
    gone = {event["subject"] for event in told["departure"]}
    known = {agent.id for agent in (*population.agents, *population.former)}
    hired = []
    for event in told["hire"]:
        row = rows[event["subject"]]
        role = then.get(row["id"], row["role"])
        if row["id"] not in known and role in org.roles:
            persona = Persona(name=row["name"], **{**row["persona"], "knows": tuple(row["persona"]["knows"])})
            blank = Agent(id=row["id"], role=role, tier=0, department=None, head=None, fte=0.0, executes=0.0, away=(), persona=persona)
            hired.append(blank.placed(org.roles[role], event["actor"] or None))
    everybody = population.joined_by(hired)
    for event in told["succession"]:
        if event["subject"] in gone:
            everybody = everybody.led_by({event["subject"]: event["actor"]})
    here = Population(tuple(agent for agent in everybody.agents if agent.id not in gone))
    return here.following(everybody)


def _told(before: Population, after: Population, week: int) -> list[str]:
    """Who joins, leaves and changes roles, in words."""
    ids = {agent.id for agent in before.agents}
    now = {agent.id for agent in after.agents}
    lines = []
    for word, people in (
        ("join", [agent for agent in after.agents if agent.id not in ids]),
        ("leave", [agent for agent in before.agents if agent.id not in now]),
        ("change roles", [agent for agent in after.agents if agent.id in ids and before.agent(agent.id).role != agent.role]),
    ):
        if people:
            names = ", ".join(f"{agent.persona.name} ({agent.role})" for agent in people[:SHOWN])
            more = f" and {len(people) - SHOWN} more" if len(people) > SHOWN else ""
            lines.append(f"in week {week} {word}: {names}{more}")
    return lines
