"""What follows from reporting lines?  Entry points: `tiers`, `heads`, `departments`, `default_cadence`.

Pure rules over the values that a file gave.  They hold for a sound tree of roles (`validate` finds the unsound ones) and refuse to
know lines, messages and the role catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping

from taskweave.records import LEVELS, Json, Level

Roles = Mapping[str, Mapping[str, Json]]


def line_above(roles: Roles, title: str) -> list[str]:
    """The role and those above it, the nearest first, as far as the file names them; a cycle ends at its first repetition."""
    line = [title]
    while True:
        above: str | None = roles[line[-1]].get("reports_to")
        if above is None or above not in roles or above in line:
            return line
        line.append(above)


def given_tiers(raw: Mapping[str, Json]) -> dict[str, int]:
    """The tiers that the file states, under `tiers` or on the role."""
    stated = {title: int(tier) for tier, titles in raw.get("tiers", {}).items() for title in titles}
    return stated | {title: role["tier"] for title, role in raw["roles"].items() if "tier" in role}


def tiers(raw: Mapping[str, Json]) -> dict[str, int]:
    """Each role's tier: as stated, else one more than that of the role above; the root has 1."""
    roles: Roles = raw["roles"]
    found = given_tiers(raw)
    for title in roles:
        for role in reversed(line_above(roles, title)):
            above = roles[role].get("reports_to")
            found.setdefault(role, found[above] + 1 if above in found else 1)
    return {title: found[title] for title in roles}


def default_cadence(depth: int) -> dict[Level, int]:
    """Which tier owns each level where the file does not say: the last tier executes, the others share the levels."""
    plans = {1: (1, 1, 1, 1), 2: (1, 1, 1, 1), 3: (1, 1, 2, 2), 4: (1, 2, 3, 3)}
    return dict(zip(LEVELS, plans.get(depth, (1, 2, 3, 4)), strict=True))


def cadence(given: Mapping[str, int], depth: int) -> dict[Level, int]:
    """The tier of each level: as given, else the default, moved as little as keeps finer levels from standing above coarser ones."""
    found: dict[Level, int] = {}
    for place, level in enumerate(LEVELS):
        least = max(found.values(), default=1)
        most = min([given[finer] for finer in LEVELS[place:] if finer in given], default=depth)
        found[level] = given.get(level, max(least, min(default_cadence(depth)[level], most)))
    return found


def heads(raw: Mapping[str, Json]) -> dict[str, str]:
    """The head of each department: as named under `departments`, else who leads it, else the one member whose superior is outside."""
    roles: Roles = raw["roles"]
    found = {name: department["head"] for name, department in raw.get("departments", {}).items() if "head" in department}
    for title, role in roles.items():
        if "leads" in role:
            found.setdefault(role["leads"], title)
    for name in raw.get("departments", {}):
        members = [title for title, role in roles.items() if role.get("department") == name]
        tops = [title for title in members if roles[title].get("reports_to") not in members]
        if name not in found and len(tops) == 1:
            found[name] = tops[0]
    order = [*raw.get("departments", {}), *found]
    return {name: found[name] for name in dict.fromkeys(order) if name in found}


def departments(raw: Mapping[str, Json]) -> dict[str, str | None]:
    """Each role's department: its own, else that of the nearest role, itself or above, that states or leads one."""
    roles: Roles = raw["roles"]
    leads = {head: name for name, head in heads(raw).items()}
    return {
        title: next((name for role in line_above(roles, title) if (name := roles[role].get("department") or leads.get(role))), None)
        for title in roles
    }
