"""What must be known before a subtask is executed?  Γ = 𝒬(Ψ, ℝ, Ω), Eq. 5 (TaskWeave, Sec. 3.3).

Entry points: `read_after`, `break_cycles` (explicit upstream work), `resolve` (the context of one execution).  It refuses to know when the
upstream work is done: callers wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from taskweave.cutting import cut, fair_share, tokens
from taskweave.engine.promises import Context as WorkContext
from taskweave.pool.pool import Pool
from taskweave.pool.search import Query
from taskweave.records import Context, Dependency, DependencyQuery
from taskweave.simulation.environment import Reading

MOST_DEPENDENCIES = 4  # that one execution sees; explicit ones come first
RETRIEVED = 3
LEAST_EXCERPT = 20  # tokens
WHOLE = 100_000  # tokens: an excerpt that is the whole text, to be cut once
_LABELS = 6  # tokens of the labels around a dependency's fields


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """One thing that a result rests on: `kind` result, environment, tool or incident; `how` explicit, retrieved or merged."""

    used: str
    kind: str
    how: str


def read_after(names: Sequence[str], index: int, count: int, upstream: Mapping[str, str]) -> tuple[list[int], list[str], list[str]]:
    """What subtask `index` (from 0) of `count` names as upstream: indexes of siblings, ids of other tasks, and notes on illegal names.

    A sibling is named "s1", "s2", ...; another task by its short name, a key of `upstream`.
    """
    siblings: list[int] = []
    tasks: list[str] = []
    notes: list[str] = []
    for name in names:
        text = str(name).strip()
        number = text[1:] if text[:1] in {"s", "S"} else text
        if text in upstream:
            tasks.append(upstream[text])
        elif number.isdecimal() and len(number) < 5 and 1 <= int(number) <= count and int(number) != index + 1:
            siblings.append(int(number) - 1)
        else:
            notes.append(f"s{index + 1}: upstream {cut(text, 20)!r} is not one of the work offered and was left out")
    return list(dict.fromkeys(siblings)), list(dict.fromkeys(tasks)), notes


def break_cycles(after: Sequence[Sequence[int]]) -> tuple[list[tuple[int, ...]], list[str]]:
    """The same edges without those that would close a cycle, taken in order of subtask and of name; says which were left out."""
    kept: list[list[int]] = [[] for _ in after]

    def reaches(start: int, goal: int) -> bool:
        seen, todo = {start}, [start]
        while todo:
            node = todo.pop()
            if node == goal:
                return True
            for below in kept[node]:
                if below not in seen:
                    seen.add(below)
                    todo.append(below)
        return False

    notes: list[str] = []
    for index, upstream in enumerate(after):
        for other in upstream:
            if reaches(other, index):
                notes.append(f"s{index + 1} after s{other + 1} would close a cycle and was left out")
            else:
                kept[index].append(other)
    return [tuple(sorted(edges)) for edges in kept], notes


def heights(after: Sequence[Sequence[int]]) -> list[int]:
    """Of each subtask, the length of the longest chain of subtasks that wait for it, itself included (acyclic `after`)."""
    result = [0] * len(after)

    def height(index: int) -> int:
        if not result[index]:
            result[index] = 1 + max((height(other) for other, upstream in enumerate(after) if index in upstream), default=0)
        return result[index]

    for index in range(len(after)):
        height(index)
    return result


def within(dependencies: Sequence[Dependency], budget: int) -> list[Dependency]:
    """The same dependencies with excerpts of one length, so that together they take about `budget` tokens."""
    named = sum(_LABELS + sum(map(tokens, (d.id, d.title, d.role, d.author, d.artifact))) for d in dependencies)
    each = fair_share((tokens(d.excerpt) for d in dependencies), budget - named, LEAST_EXCERPT)
    return [d if tokens(d.excerpt) <= each else replace(d, excerpt=cut(d.excerpt, each)) for d in dependencies]


async def resolve(
    ctx: WorkContext,
    pool: Pool,
    query: DependencyQuery,
    *,
    explicit: Sequence[Dependency],
    task: str,
    readings: Sequence[Reading],
    searching: bool,
    budget: int,
) -> tuple[Context, list[Use], list[str]]:
    """Γ of one execution, what it consists of, and notes on what there was no room for.

    `explicit` are the finished upstream results with their whole text; the pool's merged results of closed weeks are searched where the
    query asks and `searching` (there is a closed week): what serves the task's goal comes first.  Bounded by
    MOST_DEPENDENCIES and by `budget` tokens.
    """
    shown = list(explicit[:MOST_DEPENDENCIES])
    unseen = [f"{dependency.id} was waited for and not shown: {MOST_DEPENDENCIES} results are" for dependency in explicit[len(shown) :]]
    uses = [Use(used=dependency.id, kind="result", how="explicit") for dependency in shown]
    found: list[str] = []
    if searching and "pool" in query.sources and query.text.strip():
        known = {dependency.id for dependency in shown}
        room = min(RETRIEVED, MOST_DEPENDENCIES - len(shown))
        question = {"text": query.text, "filters": dict(query.filters), "exclude": task, "k": RETRIEVED}

        given = query.filters.get
        asked = Query(
            query.text, role=given("role"), department=given("department"), kind=given("kind"), exclude_task=task, goal_first=given("goal")
        )
        hits = await ctx.look_up("search", question, lambda: pool.search(asked, k=RETRIEVED))
        found = [hit for hit in hits if hit not in known][:room]
        uses += [Use(used=hit, kind="result", how="retrieved") for hit in found]
    results = within([*shown, *pool.dependencies(found, WHOLE)], budget)
    evidence: list[str] = []
    if "environment" in query.sources:
        for reading in readings:
            target = f", target {reading.target:g} {reading.unit}".rstrip() if reading.target is not None else ""
            evidence.append(f"{reading.kpi}: {reading.value:g} {reading.unit}".rstrip() + target)
            uses.append(Use(used=reading.kpi, kind="environment", how="explicit"))
    return Context(results=tuple(results), evidence=tuple(evidence)), uses, unseen
