"""Which customer, supplier, product or system is a task about, and what is told of it to whoever does the work?

Entry points: `About.choose` (a task's), `offered` (the facts that an execution is shown), `spans` (where its text says them).  All of it is
code's: keyed by kind and site, so that one more kind moves no choice in another.  It refuses to know what the work is.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random

from taskweave.cutting import fit, value_tokens
from taskweave.org.entities import Entities, Entity, Fact, banks
from taskweave.org.entity_keys import SINGULAR
from taskweave.org.organization import Organization, Role
from taskweave.pool.tables import storable
from taskweave.records import Json

FEWEST, MOST = 2, 4  # facts that an execution is offered, names apart
ROOM = 60  # tokens of an execution's prompt that they may take
PART = 0.75  # of the budget for evidence, where that is small
LEAST = 0.12  # fit below which nothing of the kind comes up
OPEN = 6  # weeks for which a matter stays open
STICKS = 9.0  # how much more likely a matter that was open last week comes up than a new one
TITLE, WORD, ACTIVITY, SERVES = 0.75, 0.12, 0.08, 1.25


class About:
    """What the tasks of each owner were about lately."""

    def __init__(self, entities: Entities, seed: int) -> None:
        self._entities, self._seed = entities, seed
        self._last: dict[tuple[str, str], int] = {}  # (owner, entity) -> the week in which it came up last

    def choose(self, org: Organization, site: str, owner: str, title: str, roles: Sequence[str], week: int) -> tuple[Entity, ...]:
        """What the task at `site` is about, at most one of a kind; nothing where none fits.

        `owner` is the agent that plans it, `title` its role, `roles` are those of its subtasks.  What came up in the owner's last weeks is
        likely to come up again; what did in this very week is not.
        """
        found = []
        for kind, those in self._entities.by_kind.items():
            likely = banks()["fit"][kind]["sure"] * fit_of(kind, org, title, roles)
            draw = Random(f"{self._seed}:about:{kind}:{site}")
            if likely < LEAST or draw.random() >= likely:
                continue
            # One number each, in their order: who comes later in the file moves none before.
            races = [draw.random() ** (1 / self._weight(owner, entity.id, place, week)) for place, entity in enumerate(those)]
            chosen = those[races.index(max(races))]
            self._last[owner, chosen.id] = week
            found.append(chosen)
        return tuple(found)

    def _weight(self, owner: str, entity: str, place: int, week: int) -> float:
        since = week - self._last.get((owner, entity), week - OPEN - 1)
        return large(place) * (0.3 if since == 0 else 1 + STICKS * max(0, OPEN + 1 - since) / OPEN)


def large(place: int) -> float:
    """The weight of one by its place among its kind: the first are the larger ones, with whom there is more to do."""
    return math.pow(place + 1, -0.4)


def fit_of(kind: str, org: Organization, title: str, roles: Sequence[str]) -> float:
    """How well work of these roles goes with a kind, 0 to 1: their mean, and more where a goal that `title` owns speaks of the kind."""
    mean = sum(role_fit(kind, org.roles[role]) for role in roles) / len(roles)
    goals = " ".join(goal.text for goal in org.goals.values() if goal.owner == title)
    return min(1.0, mean * (SERVES if count(banks()["fit"][kind]["words"], goals) else 1.0))


@lru_cache(maxsize=4096)
def role_fit(kind: str, role: Role) -> float:
    """How well the work of a role goes with a kind, 0 to 1: by its title, its duties and subjects, its activities."""
    told = banks()["fit"][kind]
    named = count(told["titles"], role.title) > 0
    words = count(told["words"], " ".join((*role.responsibilities, *role.skills, *role.subjects)))
    activities = sum(activity in told["activities"] for activity in role.activities)
    return min(1.0, TITLE * named + WORD * words + ACTIVITY * activities * bool(named or words))


def count(words: Iterable[str], text: str) -> int:
    """How many of these begin a word of the text."""
    return sum(re.search(rf"\b{re.escape(word)}", text, re.IGNORECASE) is not None for word in words)


# ---------------------------------------------------------------- what is offered
@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """The facts that an execution is offered, names included, and the lines that say so."""

    facts: tuple[Fact, ...] = ()
    lines: tuple[str, ...] = ()

    def beside(self, evidence: Sequence[str], budget: int) -> list[str]:
        """The evidence with these lines, which are not cut: the rest has what they leave of the budget."""
        if not self.lines:
            return list(evidence)
        return [*fit(list(evidence), max(1, budget - value_tokens(list(self.lines)))), *self.lines]

    @property
    def entities(self) -> tuple[str, ...]:
        """The ids of whom they are about."""
        return tuple(dict.fromkeys(fact.entity for fact in self.facts))


def offered(seed: int, result: str, entities: Iterable[Entity], day: str, budget: int) -> Offer:
    """What is told of a task's entities to whoever makes `result`, as it is on `day` (ISO), within their part of `budget` tokens."""
    those = tuple(entities)
    if not those:
        return Offer()
    draw = Random(f"{seed}:facts:{result}")
    most, room = draw.randint(FEWEST, MOST), min(ROOM, int(PART * budget))
    hands: list[list[tuple[Entity, Fact]]] = []
    for entity in those:
        facts = list(entity.facts_on(day))
        draw.shuffle(facts)
        hands.append([(entity, fact) for fact in facts])
    # One of each before a second of any.
    dealt = [hand[turn] for turn in range(max(map(len, hands))) for hand in hands if turn < len(hand)]
    facts, lines = list[Fact](), list[str]()
    for entity, fact in dealt:
        line = fact.told(entity)
        if len(facts) < most and value_tokens([*lines, line]) <= room:
            facts.append(fact)
            lines.append(line)
    told = {fact.entity for fact in facts}
    return Offer(facts=(*(entity.named for entity in those if entity.id in told), *facts), lines=tuple(lines))


def as_input(entity: Entity) -> Json:
    """What the planner of a task is shown of it."""
    return {"name": entity.name, "kind": SINGULAR[entity.kind]}


# ---------------------------------------------------------------- what is said
def spans(content: str, facts: Iterable[Fact]) -> list[Json]:
    """Rows of `facts`: where the text, as it is stored, says each first, by characters; nulls where it does not."""
    text = storable(content)
    found: list[Json] = []
    for fact in facts:
        said = pattern(fact.text).search(text)
        place: Mapping[str, Json] = {"start": None, "end": None} if said is None else {"start": said.start(), "end": said.end()}
        found.append({"id": fact.id, "entity": fact.entity, "kind": fact.kind, "text": fact.text, **place})
    return found


def pattern(text: str) -> re.Pattern[str]:
    """A text by itself: not as a part of a longer word, number, address or version."""
    before, after = r"[\w", r"\w|[.,]\d"
    if " " not in text and "." in text:  # an address or a version
        before, after = before + ".@", after + r"|[.@-]\w"
    return re.compile(f"(?<!{before}]){re.escape(text)}(?!{after})")
