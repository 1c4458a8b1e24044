"""Whom and what does the organization have to do with, and what is known of each on a day?  Entry point: `Entities.sample(org, seed)`.

Each is drawn under a key of its own (seed, kind, number, attribute), so one more moves no other, and what changes in the year is known from
the beginning: a contract that is renewed, a version that comes out.  A run keeps them as JSON and resumes from that.  All addresses,
numbers and domains are reserved.  Refuses to know what work is about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import yaml

from taskweave.org.entity_keys import ATTRIBUTES, SINGULAR
from taskweave.org.organization import Organization, ascii_slug
from taskweave.records import Json

DRAWS_FOR_A_NAME = 50
YEAR = 365  # days
NAME = "name"  # what is offered of an entity besides what is known of it
_LABELS = "|".join(sorted({re.escape(label) for known in ATTRIBUTES.values() for label in known.values()}, key=len, reverse=True))
_LINE = re.compile(rf"(?P<name>.+) \((?P<kind>{'|'.join(SINGULAR.values())})\): (?P<label>{_LABELS}) (?P<text>.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """What is known of an entity as of a day.  `id` is ENTITY/KIND.N: N counts what it has been in the year."""

    id: str
    entity: str
    kind: str
    text: str

    def told(self, entity: Entity) -> str:
        """As it is put before whoever works with it."""
        return f"{entity.name} ({SINGULAR[entity.kind]}): {ATTRIBUTES[entity.kind][self.kind]} {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entity:
    """One customer, supplier, product or system; `known` has for each attribute what it is from which day on, in order of time."""

    id: str
    kind: str
    name: str
    known: Mapping[str, tuple[tuple[str, str], ...]]

    def facts_on(self, day: str) -> tuple[Fact, ...]:
        """What is known of it on a day (ISO), in the order of its attributes."""
        found = []
        for attribute, values in self.known.items():
            number = max(1, sum(since <= day for since, _ in values))
            found.append(Fact(id=f"{self.id}/{attribute}.{number}", entity=self.id, kind=attribute, text=values[number - 1][1]))
        return tuple(found)

    @property
    def named(self) -> Fact:
        """Its name, as something that a text may say."""
        return Fact(id=f"{self.id}/{NAME}.1", entity=self.id, kind=NAME, text=self.name)

    def row(self) -> dict[str, Json]:
        """As JSON; `entity_of` reads it back unchanged."""
        attributes = {name: [list(value) for value in values] for name, values in self.known.items()}
        return {"id": self.id, "kind": self.kind, "name": self.name, "attributes": attributes}


def entity_of(row: Mapping[str, Json]) -> Entity:
    """Read what `Entity.row` made."""
    if row["kind"] not in SINGULAR or not row["id"].startswith(f"{row['kind']}/"):
        raise ValueError(f"{row['id']!r} is of no kind that there is")
    known = {name: tuple((str(since), str(text)) for since, text in values) for name, values in row["attributes"].items()}
    if unknown := [name for name, values in known.items() if name not in ATTRIBUTES[row["kind"]] or not values]:
        raise ValueError(f"{row['id']!r} has no attribute {unknown[0]!r}")
    return Entity(id=row["id"], kind=row["kind"], name=str(row["name"]), known=known)


def read_told(line: str) -> tuple[str, str, str, str] | None:
    """(name, kind in the singular, label, text) of a line that `Fact.told` made; None of any other."""
    found = _LINE.fullmatch(line)
    return None if found is None else (found["name"], found["kind"], found["label"], found["text"])


class Entities:
    """All entities, by kind and number."""

    def __init__(self, entities: tuple[Entity, ...] = ()) -> None:
        self.entities = entities
        self.by_kind: dict[str, list[Entity]] = {}
        for entity in entities:
            self.by_kind.setdefault(entity.kind, []).append(entity)
        self._by_id = {entity.id: entity for entity in entities}

    @classmethod
    def sample(cls, org: Organization, seed: int) -> Entities:
        """Draw what the file only counts; the same organization and seed give the same entities."""
        return cls(tuple(entity for kind in org.entities for entity in _kind(org, kind, seed)))

    def __iter__(self) -> Iterator[Entity]:
        return iter(self.entities)

    def __len__(self) -> int:
        return len(self.entities)

    def __getitem__(self, identifier: str) -> Entity:
        return self._by_id[identifier]

    def to_json(self) -> str:
        """The entities as text, one a line; `from_json` reads it back unchanged."""
        rows = (json.dumps(entity.row(), ensure_ascii=False, sort_keys=False) for entity in self.entities)
        return "[\n" + ",\n".join(rows) + "\n]\n"

    @classmethod
    def from_json(cls, text: str) -> Entities:
        """Read what `to_json` wrote; ValueError, LookupError or TypeError for anything else."""
        return cls(tuple(entity_of(row) for row in json.loads(text)))


def drawn(org: Organization, seed: int) -> str | None:
    """What a run keeps of the entities of its organization; None where this has none."""
    return Entities.sample(org, seed).to_json() if org.entities else None


# ------------------------------------------------------------ drawing one
@cache
def banks() -> dict[str, Any]:
    """What names and attributes are made up of, and what says how well work fits a kind."""
    found: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "entities.yaml").read_text(encoding="utf-8"))
    return found


def _kind(org: Organization, kind: str, seed: int) -> Iterator[Entity]:
    spec = org.entities[kind]
    taken = {name.casefold() for name in spec.named}
    for number, name in enumerate([*spec.named, *[None] * (spec.count - len(spec.named))], 1):
        identifier = f"{kind}/{number}"
        if name is None:
            given: Mapping[str, str] = {}
            name = _unused_name(kind, Random(f"{seed}:entity:{identifier}:name"), taken, number)
            taken.add(name.casefold())
        else:
            given = spec.named[name]
        drawn = _Drawn(identifier, name, seed, org)
        known = {attribute: drawn.values(attribute, given) for attribute in ATTRIBUTES[kind]}
        yield Entity(id=identifier, kind=kind, name=name, known=known)


def _unused_name(kind: str, draw: Random, taken: set[str], number: int) -> str:
    """The first name of this entity's own stream that none of its kind before it has."""
    name = ""
    for _ in range(DRAWS_FOR_A_NAME):
        name = str(draw.choice(banks()["forms"][kind])).format(stem=draw.choice(banks()["stems"]))
        if name.casefold() not in taken:
            return name
    return f"{name} {number}"


Values = tuple[tuple[str, str], ...]


class _Drawn:
    """The attributes of one entity as they come out under its own keys."""

    def __init__(self, identifier: str, name: str, seed: int, org: Organization) -> None:
        self._id, self._name, self._seed = identifier, name, seed
        self._start = org.calendar.start
        self._domain = f"{ascii_slug(name)[:40].strip('-')}.example"
        self._home = f"{org.slug[:40].strip('-')}.example"

    def _draw(self, purpose: str) -> Random:
        return Random(f"{self._seed}:entity:{self._id}:{purpose}")

    def values(self, attribute: str, given: Mapping[str, str]) -> Values:
        """What the file gives, all year; else what is drawn."""
        if attribute in given:
            return ((self._day(0), given[attribute]),)
        if attribute == "contact_email":
            people = self.values("contact", given)
            return tuple((since, f"{ascii_slug(person).replace('-', '.')}@{self._domain}") for since, person in people)
        made: Values = getattr(self, f"_{attribute}")()
        return made

    def _day(self, days: int) -> str:
        return (self._start + timedelta(days=days)).isoformat()

    def _always(self, text: str) -> Values:
        return ((self._day(0), text),)

    def _contact(self) -> Values:
        draw, first, last = self._draw("contact"), banks()["first"], banks()["last"]
        before, after = (f"{draw.choice(first)} {draw.choice(last)}" for _ in range(2))
        leaves = draw.randint(40, 320) if draw.random() < 0.3 and after != before else None
        return self._always(before) if leaves is None else (*self._always(before), (self._day(leaves), after))

    def _phone(self) -> Values:
        draw = self._draw("phone")
        return self._always(draw.choice(banks()["phones"]).format(draw.randrange(1000)))

    def _address(self) -> Values:
        draw = self._draw("address")
        if self._id.startswith("systems/"):
            return self._always(draw.choice(banks()["networks"]).format(draw.randint(1, 254)))
        return self._always(f"{draw.randint(1, 180)} {draw.choice(banks()['streets'])}, {draw.choice(banks()['stems'])} Cross")

    def _account(self) -> Values:
        # No country is XX, and two zeros never check.
        digits = f"{self._draw('account').randrange(10**12):012}"
        return self._always(f"XX00 EXMP {digits[:4]} {digits[4:8]} {digits[8:]}")

    def _renewals(self) -> tuple[int, ...]:
        """Days from the start on which the contract ends and begins anew, this year and next."""
        first = self._draw("renewal").randint(25, 340)
        return first, first + YEAR, first + 2 * YEAR

    def _renewal_date(self) -> Values:
        days = self._renewals()
        since = (0, *(day + 1 for day in days[:1]))
        return tuple((self._day(begins), written_day(self._start + timedelta(days=day))) for begins, day in zip(since, days, strict=False))

    _contract_end = _renewal_date

    def _contract_value(self) -> Values:
        draw = self._draw("value")
        worth = 200 * round(draw.lognormvariate(4.6, 0.9) + 8)
        next_worth = max(200, 100 * round(worth * draw.uniform(0.85, 1.25) / 100))
        renewed = self._day(self._renewals()[0] + 1)
        return (*self._always(f"EUR {worth:,} a year"), (renewed, f"EUR {next_worth:,} a year"))

    def _payment_terms(self) -> Values:
        draw = self._draw("terms")
        before, after = draw.sample(banks()["terms"], 2)
        changes = draw.randint(40, 320) if draw.random() < 0.3 else None
        return self._always(before) if changes is None else (*self._always(before), (self._day(changes), after))

    def _releases(self) -> list[tuple[int, str]]:
        """(days from the start, version), the one that is out first; the last comes out when the year is over."""
        draw = self._draw("version")
        major, minor, day = draw.randint(1, 9), draw.randint(0, 9), 0
        found = [(0, f"v{major}.{minor}")]
        while day <= YEAR + 14:
            day += draw.randint(35, 110)
            major, minor = (major + 1, 0) if draw.random() < 0.15 else (major, minor + 1)
            found.append((day, f"v{major}.{minor}"))
        return found

    def _version(self) -> Values:
        return tuple((self._day(day), version) for day, version in self._releases()[:-1])

    def _release_date(self) -> Values:
        releases = self._releases()
        pairs = zip(releases, releases[1:], strict=False)
        return tuple((self._day(day), written_day(self._start + timedelta(days=coming))) for (day, _), (coming, _) in pairs)

    def _price(self) -> Values:
        draw = self._draw("price")
        price = 5 * draw.randint(2, 90) + 4
        raised = draw.randint(60, 300) if draw.random() < 0.4 else None
        before = self._always(f"EUR {price} a month")
        return before if raised is None else (*before, (self._day(raised), f"EUR {price + 5 * draw.randint(1, 8)} a month"))

    def _host(self) -> Values:
        return self._always(f"{ascii_slug(self._name)[:40].strip('-')}.{self._home}")

    def _maintenance(self) -> Values:
        draw = self._draw("maintenance")
        hour = draw.choice((5, 6, 19, 20, 21, 22))
        return self._always(f"{draw.choice(banks()['days'])} {hour:02}:00 to {hour + 1:02}:{draw.choice(('00', '30'))}")


def written_day(day: date) -> str:
    """A day as people write it, with the year: 12 August 2026."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


_MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
