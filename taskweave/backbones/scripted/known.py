"""What a planning text may speak of, as slots: the goals, readings, unit, incidents and carried work of a request's inputs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from taskweave.backbones.scripted import wording
from taskweave.records import Json

_LOWER = re.compile(
    r"\b(?:under|below|at most|less|no more|fewer|at most|reduc\w*|cut|lower|shorten|decreas\w*|drop|down to)\b|[<≤]", re.IGNORECASE
)
_TIME = re.compile(r"\b(?:second|minute|hour|day|week)s?\b")
_HIGHER = re.compile(r"\b(?:over|above|at least|more|rais\w*|grow\w*|increas\w*|reach|win|lift|up to|improv\w*)\b|[>≥]", re.IGNORECASE)
_IMPERATIVE = frozenset(
    wording.listed(
        """raise reduce cut keep reach grow bring launch lower increase win hold shorten improve close deliver complete publish pass open
        build double halve move get have make expand achieve maintain lift add ship release establish secure limit sign digitise process
        answer finish settle pay serve train hire earn retain strengthen restore meet drive develop ensure support clear resolve"""
    )
)


_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def spaced(name: str) -> str:
    return name.replace("_", " ").replace("-", " ")


@dataclass(frozen=True, slots=True)
class Goal:
    name: str
    text: str  # as it stands inside a sentence
    kpi: str
    by: str

    owner: str
    due: date | None
    short: str  # the name with spaces
    aim: str  # 'to raise ...' where the goal is worded as something to do, else ''
    words: str  # all that tells what it is about

    def slots(self) -> dict[str, str]:
        known = {"goal": self.short, "goal_text": self.aim or self.text, "goal_kpi": self.kpi, "by": self.by, "aim": self.aim}
        return {name: value for name, value in known.items() if value}


def goals(raw: Sequence[Mapping[str, Json]]) -> list[Goal]:
    return [goal_of(goal, goal.get("owner")) for goal in raw]


def goal_of(raw: Mapping[str, Json], owner: Json) -> Goal:
    return _goal(str(raw["name"]), str(raw.get("text") or ""), str(raw.get("kpi") or ""), str(raw.get("by")), str(owner or ""))


@lru_cache(maxsize=1024)
def _goal(name: str, text: str, kpi: str, by: str, owner: str) -> Goal:
    short, kpi, due = spaced(name), spaced(kpi), wording.parse_date(by)
    text = wording.lower_first((text or short).strip().rstrip("."))
    aim = f"to {text}" if text.split(" ", 1)[0].lower() in _IMPERATIVE else ""
    return Goal(name, text, kpi, wording.day_month(due) if due else "", owner, due, short, aim, f"{text} {kpi} {short}")


@dataclass(frozen=True, slots=True)
class Reading:
    kpi: str
    value: str
    target: str
    gap: str
    side: str  # above | below
    distance: float  # relative to the target; 0 where it is reached or unknown
    goal: str

    def slots(self) -> dict[str, str]:
        known = {"kpi": self.kpi, "value": self.value}
        if self.target:
            known |= {"target": self.target}
            if self.distance:
                known |= {"gap": self.gap, "side": self.side}
            else:
                known |= {"met": "yes"}
        return known


def readings(raw: Sequence[Mapping[str, Json]], stated: Sequence[Goal]) -> list[Reading]:
    """The readings, the one farthest from its target first."""
    by_name = {goal.name: goal for goal in stated}
    found = []
    for reading in raw:
        target, goal = reading.get("target"), by_name.get(str(reading.get("goal") or ""))
        aim = None if target is None else float(target)
        found.append(_reading(str(reading["kpi"]), float(reading["value"]), str(reading.get("unit") or ""), aim, goal))
    return sorted(found, key=lambda r: (-r.distance, r.kpi))


@lru_cache(maxsize=1024)
def _reading(kpi: str, value: float, unit: str, target: float | None, goal: Goal | None) -> Reading:
    """One reading.  Which side of the target is the good one is read from the goal's words."""
    places = max(_places(target), 1 if abs(value) < 100 else 0)
    distance, side, gap, aim = 0.0, "", "", ""
    if target is not None:
        percent = unit.startswith("%")
        aim = wording.measured(target, "%" if percent else "", _places(target))
        gap = wording.measured(abs(value - target), "points" if percent else unit if len(unit.split()) < 3 else "", places)
        gap = "1 point" if gap == "1 points" else gap
        side = "above" if value > target else "below"
        text = goal.text if goal else ""
        timed = "within" in text and bool(_TIME.search(unit))
        lower = timed or (bool(_LOWER.search(text)) and not _HIGHER.search(text))  # where the words do not say, more is better
        reached = value == target or (side == "below") == lower
        distance = 0.0 if reached else abs(value - target) / (abs(target) or 1.0)
    shown = wording.measured(value, unit.removeprefix(f"{spaced(kpi)} "), places)  # 'trials are at 383 a month'
    return Reading(spaced(kpi), shown, aim, gap, side, distance, goal.short if goal else "")


def _places(target: float | None) -> int:
    """Decimals of a target, at most two."""
    text = "" if target is None else f"{target:.2f}".rstrip("0")
    return len(text.partition(".")[2])


def reached(measured: Sequence[Reading]) -> dict[str, bool]:
    """Whether all readings of a goal have reached their targets, by the goal's short name; without a target nothing is known."""
    found: dict[str, bool] = {}
    for reading in measured:
        if reading.goal and reading.target:
            found[reading.goal] = found.get(reading.goal, True) and not reading.distance
    return found


def overdue(goal: Goal, period: str) -> bool:
    """Whether the goal's date lies before a period with dates, such as 'week 9, 2026-03-02 to 2026-03-06'."""
    start = wording.parse_date(next(iter(_DATE.findall(period)), ""))
    return bool(goal.due and start and goal.due < start)


def standing(goal: Goal, period: str, done: Mapping[str, bool]) -> dict[str, str]:
    """A goal's slots as of a period: one whose date has passed `was_due`, and is due no longer; `kept` where it is reached."""
    slots = goal.slots()
    if done.get(goal.short):
        slots["kept"] = "yes"
    if overdue(goal, period):
        slots.pop("by", None)
        if goal.short in done:
            slots |= {"was_due": goal.by, "outcome": "reached" if done[goal.short] else "not reached"}
    return slots


def unit_slots(organization: Mapping[str, Json], unit: Mapping[str, Json]) -> dict[str, str]:
    period, _, dates = str(unit["period"]).partition(",")
    team = [str(title) for title in unit.get("team") or ()]
    slots = {
        "company": str(organization["name"]),
        "level": str(unit["level"]),
        "period": period.strip(),
        "owner": str(unit["owner"]),
        "unit": str(unit.get("department") or organization["name"]),
    }
    end = _DATE.findall(dates)
    if end and (last := wording.parse_date(end[-1])):
        slots |= {"end": wording.day_month(last), "end_day": wording.weekday(last)}
    if unit.get("department"):
        slots["department"] = str(unit["department"])
    for position, title in enumerate(team[:3], 1):
        slots[f"role{position}"] = title
    if team:
        slots["team"] = wording.join(team) if len(team) <= 4 else f"{', '.join(team[:3])} and {wording.in_words(len(team) - 3)} more"
    return slots


# What somebody asks for, as a noun phrase.
_ASKED = re.compile(
    r"\b(?:(?:ask|call)(?:s|ed|ing)? for|(?:demand|want|require|expect)(?:s|ed)?) "
    r"((?:an?|the|all|every|our|full|new|written|proof|\w+s) [^.:;]+?)(?:, (?:or|and|but|as|which|because)\b|[.:;]|$)"
)


def asked_for(text: str) -> dict[str, str]:
    """`asks`: what somebody asks for according to a text, where it says so in a few words."""
    found = _ASKED.search(" ".join(text.split()))
    return {"asks": found.group(1)} if found and wording.words(found.group(1)) <= 10 else {}


def incident_slots(incident: Mapping[str, Json]) -> dict[str, str]:
    slots = {
        "incident": str(incident["title"]).strip(),
        "category": str(incident.get("category") or "internal"),
        "severity": str(incident.get("severity") or "medium"),
    }
    until = wording.parse_date(incident.get("until"))
    if until:
        slots["until"] = wording.day_month(until)
    slots |= asked_for(str(incident.get("description") or ""))
    said = [wording.clip(s, 26) for s in wording.sentences(" ".join(str(incident.get("description") or "").split())) if '"' not in s]
    if told := next((s for s in said if wording.words(s) >= 4), ""):
        slots["happened"] = told
    return slots


_META = re.compile(
    r"\b(?:reports?,? (?:came in|by|from)|have reported|has reported|this is the common result|come together here|joins|brings together)\b"
    r"|^This sums up|\bsummary before this one\b|^(?:Before that|Earlier in) "
)
_QUOTED = re.compile(r"\"([^\"]+)\"")


def quoted(text: str) -> list[str]:
    return _QUOTED.findall(text)


def kept(text: str, titles: Sequence[str], limit: int) -> list[str]:
    """Whole sentences of a text, up to `limit` words, without those that speak of an incident not among `titles`."""
    found: list[str] = []
    left = limit
    for sentence in wording.sentences(text):
        if any(quoted not in titles for quoted in _QUOTED.findall(sentence)) or sentence.startswith("Revised") or _META.search(sentence):
            continue
        left -= wording.words(sentence)
        if left < 0:
            break
        found.append(sentence if sentence.endswith((".", "!", "?")) else f"{sentence}.")
    return found


_MARKED = re.compile(r'[":|→?]|^[-\d]')  # what no sentence has that can stand inside another


def telling(text: str | None, low: int = 6, high: int = 24, names: Sequence[str] = ()) -> str:
    """One sentence of an earlier text that can be repeated inside another, without its full stop; '' where none fits.

    `names` are words that keep their capital at its beginning.
    """
    for sentence in wording.sentences(text or ""):
        body = sentence.rstrip(".")
        if low <= wording.words(body) <= high and not _MARKED.search(body) and not _META.search(body):
            return body if body.startswith(tuple(names)) else wording.lower_first(body)
    return ""


def listed(items: Json) -> list[str]:
    """The texts of a list, without the line that says how many were cut off."""
    return [str(item) for item in items or () if not str(item).startswith("…")]


@dataclass(frozen=True, slots=True, eq=False)
class Role:
    """A role as the texts use it; the same object for the same words."""

    title: str
    responsibilities: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    activities: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


_LISTS = ("responsibilities", "skills", "activities", "artifacts", "subjects")


def bare_role(title: str) -> Role:
    """A role of which nothing but the title is known."""
    return _role(title)


def role(raw: Mapping[str, Json]) -> Role:
    return _role(str(raw["role"]), *(tuple(raw.get(name) or ()) for name in _LISTS))


@lru_cache(maxsize=1024)
def _role(title: str, *lists: tuple[Json, ...]) -> Role:
    return Role(title, *(tuple(item.removesuffix(" […]") for item in listed(items)) for items in lists))
