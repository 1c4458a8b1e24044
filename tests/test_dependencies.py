"""Explicit upstream work, cycles, and contexts within their budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from taskweave.cutting import tokens
from taskweave.pool.pool import Pool
from taskweave.records import Dependency, DependencyQuery, Json
from taskweave.simulation.dependencies import LEAST_EXCERPT, break_cycles, heights, read_after, resolve, within
from tests import pool_rows as rows


def test_upstream_names_are_siblings_or_offered_tasks_and_others_are_noted() -> None:
    siblings, tasks, notes = read_after(["s1", "S2", "2", "t4", "s9", "s3", "mars"], 2, 4, {"t4": "unit/t4"})
    assert siblings == [0, 1]
    assert tasks == ["unit/t4"]
    assert len(notes) == 3


def test_a_number_of_any_length_is_noted_and_ends_nothing() -> None:
    assert read_after(["s" + "9" * 5000, "1" * 5000], 1, 4, {})[:2] == ([], [])
    assert read_after(["s10", "s02"], 0, 12, {})[0] == [9, 1]


@given(st.integers(1, 6).flatmap(lambda n: st.lists(st.lists(st.integers(0, n - 1), max_size=4), min_size=n, max_size=n)))
def test_what_is_left_has_no_cycle_and_nothing_harmless_was_left_out(after: list[list[int]]) -> None:
    edges = [list(dict.fromkeys(other for other in upstream if other != index)) for index, upstream in enumerate(after)]
    kept, notes = break_cycles(edges)
    done: set[int] = set()
    while len(done) < len(kept):
        ready = [index for index, upstream in enumerate(kept) if index not in done and set(upstream) <= done]
        assert ready, "a cycle is left"
        done.update(ready)
    assert sum(map(len, edges)) - sum(map(len, kept)) == len(notes)
    if all(other < index for index, upstream in enumerate(edges) for other in upstream):
        assert not notes


def test_the_height_of_a_subtask_is_the_longest_chain_that_waits_for_it() -> None:
    assert heights([(), (0,), (1,), ()]) == [3, 2, 1, 1]


def dependency(number: int, words: int) -> Dependency:
    return Dependency(id=f"t{number}", title="A title", role="Clerk", author="Ann Bell", artifact="report", excerpt="word " * words)


def test_dependencies_that_fit_stay_whole_and_the_rest_share_what_is_left() -> None:
    short, long = dependency(1, 10), dependency(2, 400)
    assert within([short], 400) == [short]
    cut = within([short, long], 200)
    assert cut[0] == short
    assert 100 < tokens(cut[1].excerpt) <= 200
    crowded = within([dependency(n, 400) for n in range(4)], 100)
    assert all(0 < tokens(d.excerpt) <= LEAST_EXCERPT for d in crowded)


class Asked:
    """A work's context that answers a look-up at once."""

    async def look_up(self, kind: str, question: object, answer: Callable[[], Json]) -> Json:
        assert kind == "search"
        return answer()


def test_a_search_is_narrowed_by_its_filters_and_puts_the_goals_own_results_first(tmp_path: Path) -> None:
    with Pool.create(tmp_path / "run.db") as pool:
        pool.write_week(0, "", [rows.agent("ada", "Engineer"), rows.agent("bob", "Analyst")])
        for task, agent, goals in (("t1", "ada", ()), ("t2", "bob", ("grow",)), ("t3", "ada", ("grow",))):
            pool.write_week(1, "", [rows.task(task, unit="u", goals=goals), rows.result(task, merged=True, title="churn", agent=agent)])

        def found(**filters: str) -> list[str]:
            need = DependencyQuery(text="churn", filters=filters, sources=("pool",))
            asked = resolve(Asked(), pool, need, explicit=[], task="t9", readings=[], searching=True, budget=400)  # type: ignore[arg-type]
            context, uses, unseen = asyncio.run(asked)
            assert not unseen
            assert [use.used for use in uses] == [result.id for result in context.results]
            return [result.id for result in context.results]

        assert found() == ["t1", "t2", "t3"]
        assert found(goal="grow") == ["t2", "t3", "t1"]
        assert found(role="Engineer") == ["t1", "t3"]
        assert found(role="Engineer", goal="grow") == ["t3", "t1"]


def test_upstream_work_that_was_waited_for_and_had_no_room_is_said(tmp_path: Path) -> None:
    explicit = [dependency(number, 5) for number in range(6)]
    with Pool.create(tmp_path / "run.db") as pool:
        asked = resolve(
            Asked(),  # type: ignore[arg-type]
            pool, DependencyQuery(), explicit=explicit, task="t9", readings=[], searching=False, budget=400,
        )  # fmt: skip
        context, uses, unseen = asyncio.run(asked)
    assert [use.used for use in uses] == [result.id for result in context.results] == ["t0", "t1", "t2", "t3"]
    assert [note.split()[0] for note in unseen] == ["t4", "t5"]
