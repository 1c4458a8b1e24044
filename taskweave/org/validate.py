"""What in an organization file does not fit together?  Entry point: `check`, which notes every problem it finds in the `Reading`.

Each rule is a small function over the values that `form` read, so that one mistake hides no other.  A rule that needs sound reporting
lines runs only when they are.  Refuses to fill anything in.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from taskweave.org import catalogue, entity_keys, kpis, mcp_servers, recurring, structure
from taskweave.org.calendar import WorkCalendar
from taskweave.org.form import Reading, alike, nearest, said
from taskweave.org.inference import calendar_spec, usual_part
from taskweave.org.organization import ACTIVITIES, Workload, slug
from taskweave.records import LEVELS, Json

Raw = Mapping[str, Json]
MOST_TOGETHER = 5000
DESCRIBED = ("responsibilities", "skills", "activities", "artifacts", "subjects", "hours")  # what the catalogue would say of a role
WORKING_YEAR = 40  # weeks with a working day, below which something is odd


def check(raw: Raw, reading: Reading) -> None:
    """Note every problem of a file whose values were read."""
    if not raw.get("roles"):
        return  # said already, and nothing can be held against the roles
    _titles(raw, reading)
    if _reporting_lines(raw, reading):
        _tiers(raw, reading)
    _departments(raw, reading)
    _activities(raw, reading)
    _people(raw, reading)
    _goals(raw, reading)
    _links(raw, reading)
    _idle_links(raw, reading)
    _workload(raw, reading)
    _undescribed(raw, reading)
    kpis.check(raw, reading)
    entity_keys.check(raw, reading)
    _recurring(raw, reading)
    mcp_servers.check(raw, reading)
    _calendar(raw, reading)


def _known(raw: Raw, reading: Reading, title: str, path: tuple[str, ...]) -> bool:
    """Whether the file has this role; notes the nearest right title where not."""
    if title in raw["roles"]:
        return True
    reading.wrong_at(
        path, f"unknown role {said(title)} in {'.'.join(part for part in path if not part.isdigit())}{nearest(title, raw['roles'])}"
    )
    return False


# ------------------------------------------------------------ roles
def _titles(raw: Raw, reading: Reading) -> None:
    owners: dict[str, str] = {}
    for title, role in raw["roles"].items():
        base = slug(title)
        if not base:
            reading.wrong_at(("roles", title), f"the title {said(title)} needs a letter or a digit, from which its agents' ids are made")
            continue
        count = role.get("count", 1)
        for agent in (base,) if count == 1 else (f"{base}-{n}" for n in range(1, count + 1)):
            other = owners.setdefault(agent, title)
            if other != title:
                reading.wrong_at(
                    ("roles", title), f"{said(title)} and {said(other)} would both have an agent {agent!r}; rename one of them"
                )
                break
        if "like" in role and catalogue.lookup(role["like"]) is None:
            hint = nearest(role["like"], catalogue.titles())
            reading.wrong_at(("roles", title, "like"), f"the role catalogue has no {said(role['like'])}{hint}")
    together = sum(role.get("count", 1) for role in raw["roles"].values())
    if together > MOST_TOGETHER:
        reading.wrong_at(("roles",), f"the roles have {together:,} agents together; at most {MOST_TOGETHER:,} are possible")


def _reporting_lines(raw: Raw, reading: Reading) -> bool:
    """Whether the roles form one tree."""
    roles = raw["roles"]
    known = [
        _known(raw, reading, role["reports_to"], ("roles", title, "reports_to")) for title, role in roles.items() if "reports_to" in role
    ]
    # A role whose superior could not be read is no second root.
    roots = [title for title, role in roles.items() if "reports_to" not in role and ("roles", title, "reports_to") not in reading.lines]
    sound = all(known) and len(roots) == 1
    for extra in roots[1:]:
        first = f"{said(roots[0])} on line {reading.line(('roles', roots[0]))}"
        reading.wrong_at(
            ("roles", extra), f"a second root: {said(extra)} reports to nobody, nor does {first}; give one of them 'reports_to'"
        )
    if len(roots) == 1 and roles[roots[0]].get("count", 1) > 1:
        reading.wrong_at(
            ("roles", roots[0], "count"), f"the root {said(roots[0])} has count {roles[roots[0]]['count']}; it can be only one"
        )
    cycles = _cycles(roles)
    for cycle in cycles:
        reading.wrong_at(("roles", cycle[0], "reports_to"), f"a cycle in reporting lines: {' -> '.join([*cycle, cycle[0]])}")
    if not roots and not cycles and all(known):
        reading.wrong_at(("roles",), "no root: one role must report to nobody")
    if not roots and cycles:
        reading.wrong_at(("roles",), "no root: every role reports to another; leave out 'reports_to' for the role at the top")
    in_cycle = {title for cycle in cycles for title in cycle}
    for title in roles:
        line = structure.line_above(roles, title)
        if title not in in_cycle and line[-1] in in_cycle:
            met = next(role for role in line if role in in_cycle)
            reading.wrong_at(("roles", title), f"{said(title)} cannot be reached from the root: its line ends in the cycle at {said(met)}")
    return sound and not cycles


def _cycles(roles: structure.Roles) -> list[list[str]]:
    """Each circle of reporting lines once, starting at the role that the file names first."""
    found: list[list[str]] = []
    for title in roles:
        line = structure.line_above(roles, title)
        if roles[line[-1]].get("reports_to") == title and not any(title in cycle for cycle in found):
            found.append(line)
    return found


def _tiers(raw: Raw, reading: Reading) -> None:
    roles = raw["roles"]
    for number, titles in raw.get("tiers", {}).items():
        for place, title in enumerate(titles):
            path = ("tiers", number, str(place))
            if _known(raw, reading, title, path) and roles[title].get("tier", int(number)) != int(number):
                reading.wrong_at(path, f"{said(title)} stands in tier {number} here and in tier {roles[title]['tier']} on the role")
    stated = Counter(title for titles in raw.get("tiers", {}).values() for title in titles)
    twice = [title for title, times in stated.items() if times > 1]
    for title in twice:
        reading.wrong_at(("tiers",), f"{said(title)} stands in {stated[title]} tiers; it can be in one")
    tiers = structure.tiers(raw)
    if not twice and _nested(raw, reading, tiers):
        _cadence(raw, reading, max(tiers.values()))


def _nested(raw: Raw, reading: Reading, tiers: Mapping[str, int]) -> bool:
    """Whether every role is below its superior, the root in tier 1 and no tier left out."""
    before = len(reading.problems)
    for title, role in raw["roles"].items():
        above, here = role.get("reports_to"), ("roles", title, "tier")
        if above is None and tiers[title] != 1:
            reading.wrong_at(here, f"{said(title)} reports to nobody and is in tier {tiers[title]}; the root is in tier 1")
        if above is not None and tiers[title] <= tiers[above]:
            reading.wrong_at(here, f"{said(title)} is in tier {tiers[title]}, not below {said(above)} in tier {tiers[above]}; 1 is the top")
    left_out = set(range(1, max(tiers.values()))) - set(tiers.values())
    if left_out and len(reading.problems) == before:
        title = next(title for title in raw["roles"] if tiers[title] > min(left_out))
        what = f"tier {min(left_out)} has no role, tier {tiers[title]} has {said(title)}; leave no tier out"
        reading.wrong_at(("roles", title, "tier"), what)
    return len(reading.problems) == before


def _cadence(raw: Raw, reading: Reading, depth: int) -> None:
    given = raw.get("cadence", {})
    for level, tier in given.items():
        if tier > depth:
            reading.wrong_at(("cadence", level), f"unknown tier {tier} in cadence.{level}; the organization has the tiers 1 to {depth}")
    if given.get("year", 1) != 1:
        reading.wrong_at(("cadence", "year"), f"the year belongs to tier 1, the root, not to tier {given['year']}")
    levels = [level for level in LEVELS if level in given]
    for coarser, finer in zip(levels, levels[1:], strict=False):
        if given[finer] < given[coarser]:
            what = f"the {finer} (tier {given[finer]}) stands above the {coarser} (tier {given[coarser]})"
            reading.wrong_at(("cadence", finer), f"{what}; a finer level belongs to the same tier or one below")


def _departments(raw: Raw, reading: Reading) -> None:
    roles, named = raw["roles"], raw.get("departments", {})
    for name, department in named.items():
        if "head" in department:
            _known(raw, reading, department["head"], ("departments", name, "head"))
    heads = structure.heads(raw)
    for name in named:
        if name not in heads and ("departments", name, "head") not in reading.lines:
            reading.wrong_at(
                ("departments", name), f"the department {said(name)} has no head; name one under 'head', or a role that 'leads' it"
            )
    leads: dict[str, str] = {}
    for title, role in roles.items():
        if "leads" in role and heads[role["leads"]] != title:
            name = role["leads"]
            reading.wrong_at(
                ("roles", title, "leads"), f"{said(title)} leads {said(name)}, whose head is {said(heads[name])}; a department has one head"
            )
    for name, head in heads.items():
        path = ("departments", name, "head") if "head" in named.get(name, {}) else ("roles", head, "leads")
        if head in leads:
            reading.wrong_at(path, f"{said(head)} heads both {said(leads[head])} and {said(name)}; a role leads one department")
        leads[head] = name
        own = roles[head].get("department", name) if head in roles else name
        if own != name:
            reading.wrong_at(path, f"the head of {said(name)}, {said(head)}, is outside the department: its own is {said(own)}")
    for title, role in roles.items():
        if "department" in role and role["department"] not in {*heads, *named}:
            where = f"unknown department {said(role['department'])} of {said(title)}: neither 'departments' nor a role's 'leads' names it"
            reading.wrong_at(("roles", title, "department"), where + nearest(role["department"], dict.fromkeys([*named, *heads])))


def _activities(raw: Raw, reading: Reading) -> None:
    vocabulary = raw.get("activities") or ACTIVITIES
    if raw.get("activities") == ():
        reading.wrong_at(("activities",), "'activities' is empty; leave the key out for the usual vocabulary")
    for title, role in raw["roles"].items():
        for place, activity in enumerate(role.get("activities", ())):
            if activity not in vocabulary:
                what = f"unknown activity {said(activity)} of {said(title)}{nearest(activity, vocabulary)}"
                reading.wrong_at(("roles", title, "activities", str(place)), what)


def _undescribed(raw: Raw, reading: Reading) -> None:
    """Titles that nobody described: neither the role catalogue nor the file."""
    for title, role in raw["roles"].items():
        if "like" in role or catalogue.lookup(title) is not None or all(name in role for name in DESCRIBED):
            continue
        near = _alike(title)
        like = f"name a known one under 'like', such as {' or '.join(map(repr, near))}" if near else "name a known one under 'like'"
        missing = [name for name in DESCRIBED if name not in role]
        what = f"the role catalogue does not know {said(title)}; it is taken as a generic role ({like}, or describe it with"
        reading.warn_at(("roles", title), f"{what} {', '.join(missing)})")


@lru_cache(maxsize=2048)
def _alike(title: str) -> list[str]:
    """The titles of the catalogue nearest to one: a run reads its organization several times."""
    return alike(title, catalogue.titles())


# ------------------------------------------------------------ who refers to roles and goals
def _people(raw: Raw, reading: Reading) -> None:
    roles, slots = raw["roles"], Counter[str]()
    for name, person in raw.get("people", {}).items():
        title = person.get("role")
        if title is None or not _known(raw, reading, title, ("people", name, "role")):
            continue
        slots[title] += 1
        count = roles[title].get("count", 1)
        if slots[title] > count:
            what = f"{said(name)} is person {slots[title]} of {said(title)}, whose count is {count}; raise 'count' or take the person out"
            reading.wrong_at(("people", name), what)


def _goals(raw: Raw, reading: Reading) -> None:
    readings = raw.get("environment", {})
    for name, goal in raw.get("goals", {}).items():
        if "owner" in goal:
            _known(raw, reading, goal["owner"], ("goals", name, "owner"))
        if readings and "kpi" in goal and goal["kpi"] not in readings:
            what = f"the goal {said(name)} names the reading {said(goal['kpi'])}, which 'environment' does not have"
            reading.warn_at(("goals", name, "kpi"), f"{what}{nearest(goal['kpi'], readings)}")


def _workload(raw: Raw, reading: Reading) -> None:
    """Work that cannot be done: more of it than there are hours, or nobody to do it."""
    roles = raw["roles"]
    superiors = {role.get("reports_to") for role in roles.values()}
    utilisation = raw.get("workload", {}).get("utilisation", Workload().utilisation)
    for title, role in roles.items():
        asked = role.get("demand", 1.0) * utilisation
        if asked > 1 and role.get("executes", usual_part(title, superiors)) > 0:
            what = f"demand x utilisation of {said(title)} is {asked:.2f}: more work than its people have hours, so it spills every week"
            reading.warn_at(("roles", title, "demand"), what)
    if all(role.get("executes", usual_part(title, superiors)) == 0 for title, role in roles.items()):
        reading.warn_at(("roles",), "nobody has time for tasks: give a role without reports 'executes', or leave it out")


def _links(raw: Raw, reading: Reading) -> None:
    for place, (source, target) in enumerate(raw.get("cross_links", ())):
        path = ("cross_links", str(place))
        known = [_known(raw, reading, title, path) for title in dict.fromkeys((source, target))]
        if all(known) and source == target:
            reading.wrong_at(path, f"{said(source)} is linked to itself; a cross link leads to another role")


def _idle_links(raw: Raw, reading: Reading) -> None:
    roles = raw["roles"]
    superiors = {role.get("reports_to") for role in roles.values()}
    for place, (_, target) in enumerate(raw.get("cross_links", ())):
        if target in roles and roles[target].get("executes", usual_part(target, superiors)) == 0:
            what = f"the link to {said(target)} brings it no work: it has no time for tasks; give it 'executes', such as 20%"
            reading.warn_at(("cross_links", str(place)), what)


def _recurring(raw: Raw, reading: Reading) -> None:
    roles = raw["roles"]
    superiors = {role.get("reports_to") for role in roles.values()}

    def part(title: str) -> float:
        return float(roles[title].get("executes", usual_part(title, superiors)))

    recurring.check(raw, reading, part, calendar_spec(raw).hours)


def _calendar(raw: Raw, reading: Reading) -> None:
    calendar = WorkCalendar(calendar_spec(raw))
    if not calendar.days:
        reading.wrong_at(("calendar", "holidays"), "no working day is left in the year; take some 'holidays' out")
        return
    working = sum(week.day_count > 0 for week in calendar.weeks)
    if working < WORKING_YEAR:
        reading.warn_at(("calendar", "holidays"), f"only {working} of {len(calendar.weeks)} weeks have a working day")
    for name, person in raw.get("people", {}).items():
        for place, (first, last) in enumerate(person.get("away", ())):
            if last < calendar.spec.start or first > calendar.year_end:
                what = f"{said(name)} is away from {first} to {last}, outside the year {calendar.spec.start} to {calendar.year_end}"
                reading.warn_at(("people", name, "away", str(place)), what)
