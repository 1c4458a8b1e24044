"""What do a run's rows add up to?  Entry points: the functions; each is one formula, pure, and returns a named tuple or a number.

Every figure carries its denominator and is None where there is none.  Knows nothing of tables, files or how figures are shown.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from taskweave.evaluation.text import Share
from taskweave.records import LEVELS, STEPS, Json, step_of

Fields = Mapping[str, Json]


class Quarter(NamedTuple):
    """Composite tasks of a quarter.

    `planned` and `dropped` by the quarter they were planned in; `done` and `on_time` by that in which they finished; `spilled` and
    `blocked` are events: a task that is late at two closes counts twice.
    """

    number: int
    planned: int
    done: int
    on_time: Share
    spilled: int
    blocked: int
    dropped: int


class DepartmentLoad(NamedTuple):
    """Hours available and booked; share = booked / available."""

    department: str | None
    available: float
    booked: float
    share: float | None


class RoleShare(NamedTuple):
    """A role's part of the executed subtasks, beside the part that demand implies and the reference gives (None: none given)."""

    role: str
    executed: int
    share: float | None
    demand: float | None
    reference: float | None


class KlPair(NamedTuple):
    """KL in nats: of the executed shares and, for scale, of uniform shares over the same roles."""

    executed: float | None
    uniform: float | None


class StepCalls(NamedTuple):
    """The completions of one step, or of one backbone."""

    name: str
    calls: int
    prompt_tokens: int
    completion_tokens: int


class Answers(NamedTuple):
    """Structured questions of one step at one level, or of one backbone: so many, of which some were repaired and some are fallbacks.

    "" stands for all steps, all levels or all backbones.
    """

    step: str
    level: str
    backbone: str
    asked: int
    repaired: int
    fallback: int

    @property
    def at_once(self) -> int:
        """Those that were valid as they came."""
        return self.asked - self.repaired - self.fallback

    @property
    def fallback_share(self) -> float | None:
        return self.fallback / self.asked if self.asked else None


class Completion(NamedTuple):
    """What is done of what was planned: all, and those in which nothing is a fallback."""

    done: Share
    without_fallback: Share


class Hub(NamedTuple):
    """A merged result and how many other tasks' results it is joined to."""

    id: str
    degree: int


# ---------------------------------------------------------------- shares
def normalised(weights: Mapping[str, float]) -> dict[str, float] | None:
    """The weights over their sum; None where that is 0."""
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()} if total > 0 else None


def kl(p: Mapping[str, float], q: Mapping[str, float]) -> float | None:
    """KL(p || q) = Σ p ln(p / q) in nats, both normalised over the names of either.

    No smoothing: a name with p = 0 adds 0 (the limit); one with p > 0 and q = 0 makes it infinite.  None where p or q has no weight.
    """
    ps, qs = normalised(p), normalised(q)
    if ps is None or qs is None:
        return None
    if any(share > 0 and not qs.get(name) for name, share in ps.items()):
        return math.inf
    return max(0.0, math.fsum(share * math.log(share / qs[name]) for name, share in ps.items() if share > 0))


def divergence(executed: Mapping[str, float], expected: Mapping[str, float | None]) -> KlPair:
    """KL(executed || expected) and KL(uniform || expected) over the roles that have an expectation (not None).

    What other roles executed is left out and the rest normalised again; a role that executed nothing adds 0.
    """
    q = {role: weight for role, weight in expected.items() if weight is not None}
    return KlPair(kl({role: executed.get(role, 0) for role in q}, q), kl(dict.fromkeys(q, 1.0), q))


def role_shares(
    executed: Mapping[str, int], demand: Mapping[str, float], reference: Mapping[str, float | None], order: Iterable[str]
) -> list[RoleShare]:
    """One row a role of `order` that executed, should have (demand), or has a reference."""
    shares: Mapping[str, float] = normalised(executed) or {}
    demands: Mapping[str, float] = normalised(demand) or {}
    references = normalised({role: weight for role, weight in reference.items() if weight is not None}) or {}
    rows = [
        RoleShare(role, executed.get(role, 0), shares.get(role, 0.0) if shares else None, demands.get(role), references.get(role))
        for role in order
    ]
    return [row for row in rows if row.executed or row.demand or row.reference]


# ---------------------------------------------------------------- work
def loads(rows: Iterable[Fields], department_of: Mapping[str, str | None]) -> list[DepartmentLoad]:
    """`load` rows added up by department, by name; agents of none last."""
    available: dict[str | None, float] = defaultdict(float)
    booked: dict[str | None, float] = defaultdict(float)
    for row in rows:
        department = department_of.get(row["agent"])
        available[department] += row["available"]
        booked[department] += row["booked"]
    names = sorted(available, key=lambda name: (name is None, name or ""))
    return [
        DepartmentLoad(name, available[name], booked[name], booked[name] / available[name] if available[name] else None) for name in names
    ]


def step_calls(calls: Iterable[Fields], by: Literal["prompt", "backbone"] = "prompt") -> list[StepCalls]:
    """Calls and tokens by step, which a prompt's id begins with, or by backbone."""
    grouped: dict[str, list[Fields]] = defaultdict(list)
    for call in calls:
        named = call[by] or ""
        grouped[step_of(named.split()[0]) if named and by == "prompt" else named].append(call)
    return [
        StepCalls(name, len(rows), sum(row["prompt_tokens"] or 0 for row in rows), sum(row["completion_tokens"] or 0 for row in rows))
        for name, rows in sorted(grouped.items())
    ]


def answers(told: Iterable[Sequence[Json]], by: Collection[str]) -> list[Answers]:
    """Answers added up by some of step, level and backbone, in the order of steps and levels.

    `told` are [step, level, backbone, asked, repaired, fallback].
    """
    totals: dict[tuple[str, str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for step, level, backbone, *counts in told:
        total = totals[step if "step" in by else "", level if "level" in by else "", backbone if "backbone" in by else ""]
        for place, count in enumerate(counts):
            total[place] += count
    found = [Answers(*key, *counts) for key, counts in totals.items()]
    return sorted(found, key=lambda one: (_place(STEPS, one.step), one.step, _place(LEVELS, one.level), one.level, one.backbone))


def _place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def completion(planned: Collection[str], done: Collection[str], fallbacks: Collection[str]) -> Completion:
    """`planned`, `done` and those with a fallback in them, by id."""
    finished = set(planned) & set(done)
    return Completion(Share(len(finished), len(planned)), Share(len(finished - set(fallbacks)), len(planned)))


# ---------------------------------------------------------------- the dependency graph
def task_edges(uses: Iterable[Fields], task_of: Mapping[str, str], merged: Collection[str]) -> set[tuple[str, str]]:
    """(user, used) over merged results: the user's task took, explicitly or by search, a result of another task.

    `task_of` gives the task of every result.  What a partial uses counts for its task; both ends must have a merged result.
    """
    edges = set()
    for use in uses:
        if use["kind"] == "result" and use["how"] in ("explicit", "retrieved"):
            user, used = task_of.get(use["result"]), task_of.get(use["used"])
            if user != used and user in merged and used in merged and user is not None and used is not None:
                edges.add((user, used))
    return edges


def hubs(edges: Iterable[tuple[str, str]], top: int = 5) -> tuple[list[Hub], list[Hub]]:
    """(the most used, those that use most): at most `top` each, by degree, ties by id."""
    edges = set(edges)
    return _most(Counter(used for _, used in edges), top), _most(Counter(user for user, _ in edges), top)


def _most(degrees: Counter[str], top: int) -> list[Hub]:
    return [Hub(name, degree) for name, degree in sorted(degrees.items(), key=lambda item: (-item[1], item[0]))[:top]]
