"""Which tasks came and went between two runs, and which words of their plans?  Entry points: `task_changes`, `keyword_changes`.

Tasks are matched by id and title; keywords are those of `evaluation.keywords`, by the plans' level and owner.  Pure on rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskweave.evaluation.keywords import Keyword, Phrases, Usage, changed, phrases, reach, shares, weights
from taskweave.experiments.measures import department_of
from taskweave.experiments.rows import RunRows, Span
from taskweave.experiments.spread import LEAST, Verdict, same
from taskweave.records import LEVELS

MOST = 12  # keywords that come, and that go, of one level and owner

Group = tuple[str, str]  # level and owner of plans
Documents = Mapping[Group, Sequence[Phrases]]  # the phrases of each unit's plans


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A composite task that only one of two runs has, or has under this title; `retitled` is whether the other has its id."""

    id: str
    title: str
    department: str
    activity: str
    priority: str
    retitled: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class TaskChange:
    """Tasks added, of so many of the compared run, and dropped, of so many of the base."""

    added: tuple[Task, ...]
    added_of: int
    dropped: tuple[Task, ...]
    dropped_of: int

    def by_activity(self) -> list[tuple[str, int, int]]:
        """(department and activity, added, dropped), those that change most first."""
        counts = [Counter(f"{task.department}, {task.activity}" for task in tasks) for tasks in (self.added, self.dropped)]
        rows = [(name, counts[0][name], counts[1][name]) for name in sorted(counts[0].keys() | counts[1].keys())]
        return sorted(rows, key=lambda row: (-abs(row[1] - row[2]), -row[1] - row[2], row[0]))


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A keyword that comes or goes, in `before` and `hits` units' plans; `verdict` is None where there are too few controls."""

    term: str
    before: int
    hits: int
    weight: float
    verdict: Verdict | None


@dataclass(frozen=True, kw_only=True, slots=True)
class KeywordChange:
    """What comes and goes in the plans of one level and owner, `before` so many units of the base and `after` of the compared run."""

    level: str
    owner: str
    before: int
    after: int
    comes: tuple[Change, ...]
    goes: tuple[Change, ...]

    @property
    def outstanding(self) -> int:
        """How many of them stand out."""
        return sum(one.verdict == "stands out" for one in (*self.comes, *self.goes))

    @property
    def weight(self) -> float:
        """How telling the most telling of them is: the more the more units there are."""
        return max(abs(one.weight) for one in (*self.comes, *self.goes)) * math.sqrt(max(self.before, self.after))


# ---------------------------------------------------------------- tasks
def task_changes(base: RunRows, other: RunRows, span: Span) -> TaskChange:
    """The tasks planned in these weeks that only one of the two has; one with another title counts as dropped and added."""
    before, after = ({task["id"]: task for task in span.planned(rows)} for rows in (base, other))

    def only(rows: RunRows, mine: Mapping[str, Mapping[str, str]], theirs: Mapping[str, Mapping[str, str]]) -> tuple[Task, ...]:
        found = [
            Task(
                id=name,
                title=task["title"],
                department=department_of(rows, task),
                activity=task["activity"],
                priority=task["priority"],
                retitled=name in theirs,
            )
            for name, task in mine.items()
            if name not in theirs or theirs[name]["title"] != task["title"]
        ]
        return tuple(sorted(found, key=lambda task: (task.retitled, task.priority != "urgent", task.id)))

    return TaskChange(added=only(other, after, before), added_of=len(after), dropped=only(base, before, after), dropped_of=len(before))


# ---------------------------------------------------------------- keywords
def documents(rows: RunRows, span: Span) -> Documents:
    """The phrases of all plans of these weeks, a unit a document, by level and owner; names of people are left out."""
    names = frozenset(word for agent in rows.agents.values() for word in str(agent["name"]).casefold().split())
    return {group: [phrases(text, names) for text in units.values()] for group, units in span.plans(rows).items()}


def keyword_changes(base: Documents, other: Documents, controls: Sequence[Documents]) -> tuple[KeywordChange, ...]:
    """What comes and goes in `other`, by level and owner: the most telling first.

    With controls, a keyword's weight is how far it is from the mean of base and controls.  Some word is always new, so it stands out
    only where it weighs more than any by which the base or a control differs from the others, in plans of that level.
    """
    alike = [base, *(controls if len(controls) >= LEAST else ())]
    usages = [Usage.of(document for group in run.values() for document in group) for run in alike]
    usage = Usage.of_all(usages)
    by_chance: dict[str, tuple[float, float]] = {}
    for level, owner in base if len(alike) > 1 else ():
        told = by_chance.get(level, (0.0, 0.0))
        by_chance[level] = _most(told, [run.get((level, owner), ()) for run in alike], usage, usages)
    found = []
    for group in base.keys() | other.keys():
        mine, theirs, runs = base.get(group, ()), other.get(group, ()), [run.get(group, ()) for run in alike]
        words = changed(mine, theirs, weights(mine, theirs, _usual(runs), usage), MOST)
        comes, goes = (
            tuple(_judged(one, most) for one in some) for some, most in zip(words, by_chance.get(group[0], (None, None)), strict=True)
        )
        if comes or goes:
            level, owner = group
            found.append(KeywordChange(level=level, owner=owner, before=len(mine), after=len(theirs), comes=comes, goes=goes))
    place: dict[str, int] = {level: number for number, level in enumerate(LEVELS)}
    return tuple(sorted(found, key=lambda one: (-one.outstanding, -one.weight, place.get(one.level, len(place)), one.owner)))


def _most(told: tuple[float, float], runs: Sequence[Sequence[Phrases]], usage: Usage, usages: Sequence[Usage]) -> tuple[float, float]:
    """The largest weights, of what comes and of what goes, by which any of the runs differs from the others; at least `told`."""
    for place, one in enumerate(runs):
        rest = [*runs[:place], *runs[place + 1 :]]
        come, go = reach(weights(rest[0], one, _usual(rest), usage.without(usages[place])))
        told = max(told[0], come), max(told[1], go)
    return told


def _usual(runs: Sequence[Sequence[Phrases]]) -> Mapping[str, float]:
    """The mean share of a run's documents that each phrase is in."""
    total = Counter[str]()
    for documents in runs:
        total.update(shares(documents))
    return {term: share / len(runs) for term, share in total.items()}


def _judged(one: Keyword, most: float | None) -> Change:
    """A keyword against the most that chance has made of any; None: nothing is known of that."""
    verdict: Verdict | None = None
    if most is not None:
        weight = abs(one.weight)
        verdict = "stands out" if weight > most and not same(weight, most) else "not distinguishable"
    return Change(term=one.term, before=one.before, hits=one.hits, weight=one.weight, verdict=verdict)
