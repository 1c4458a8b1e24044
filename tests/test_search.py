"""What a search finds: merged results of written weeks, by their rarest shared terms."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskweave.pool import search
from taskweave.pool.pool import Pool
from taskweave.pool.search import TERMS, Query
from tests import pool_rows as rows


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with Pool.create(tmp_path / "run.db") as made:
        made.write_week(0, "", [rows.agent("ada", "Backend Engineer"), rows.agent("bob", "Data Analyst", department="Insights")])
        yield made


def merged(identifier: str, text: str, **more: object) -> tuple[str, dict[str, object]]:
    return rows.result(identifier, merged=True, title=text, content="", **more)  # type: ignore[arg-type]


def test_only_merged_results_are_found(pool: Pool) -> None:
    pool.write_week(1, "", [rows.result("t1/s1", title="churn table"), merged("t1", "churn report")])
    assert pool.search(Query("churn")) == ["t1"]


def test_accents_case_and_scripts_are_folded_alike_on_both_sides(pool: Pool) -> None:
    pool.write_week(1, "", [merged("t1", "Übergänge der Café-Kunden"), merged("t2", "ЗАДАЧА отдела"), merged("t3", "nothing of that")])
    assert pool.search(Query("ubergange")) == ["t1"]
    assert pool.search(Query("CAFÉ")) == ["t1"]
    assert pool.search(Query("cafe\u0301")) == ["t1"]
    assert pool.search(Query("задача")) == ["t2"]


@pytest.mark.parametrize("text", ["", " \n\t", "...", "😀🎉", "\0", '"', "'", "*", "^", ")(", "--", "\ud83d"])
def test_a_text_without_a_term_finds_nothing(pool: Pool, text: str) -> None:
    pool.write_week(1, "", [merged("t1", "anything")])
    assert pool.search(Query(text)) == []


@pytest.mark.parametrize(
    "text",
    ['churn" OR "x', "title : churn", "NEAR(churn, 2)", "churn AND NOT churn", "{churn}", "churn*", "^churn",
     "'; DROP TABLE merged; --churn",
     "churn\0", "\0churn", "churn 😀", "churn\ud83d", "-churn", "churn:churn"],
)  # fmt: skip
def test_operators_quotes_and_broken_characters_are_only_text(pool: Pool, text: str) -> None:
    pool.write_week(1, "", [merged("t1", "churn"), merged("t2", "sales"), merged("t3", "tax")])
    assert pool.search(Query(text)) == ["t1"]


def test_a_huge_text_is_a_legal_query(pool: Pool) -> None:
    pool.write_week(1, "", [merged("t1", "churn"), merged("t2", "sales")])
    rng = random.Random(1)
    words = " ".join(str(rng.random()) for _ in range(6_000))
    assert len(words) > 100_000
    assert pool.search(Query(f"{words} churn {words}")) == ["t1"]
    assert pool.search(Query("x" * 200_000)) == []


_TEXTS = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=_TEXTS,
    document=_TEXTS,
    filters=st.fixed_dictionaries({}, optional=dict.fromkeys(("role", "department", "kind", "goal", "exclude_task"), _TEXTS)),
)
def test_no_text_raises_in_query_filter_or_document(pool: Pool, text: str, document: str, filters: dict[str, str]) -> None:
    pool.write_week(1, "", [merged("t1", document), merged("t2", "plain churn report")])
    found = pool.search(Query(text, **filters), 2)  # type: ignore[arg-type]
    assert set(found) <= {"t1", "t2"}
    assert found == pool.search(Query(text, **filters), 2)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(word=st.text(st.characters(categories=("Lu", "Ll", "Lo", "Nd"), max_codepoint=0x2FFF), min_size=3, max_size=12))
def test_any_word_of_a_document_finds_it(pool: Pool, word: str) -> None:
    pool.write_week(1, "", [merged("t1", f"before {word} after"), merged("t2", "other text"), merged("t3", "more text")])
    assert not pool._index.terms(word) or "t1" in pool.search(Query(word))


# ---------------------------------------------------------------- which terms
def test_the_eight_rarest_terms_are_used_ties_by_the_term(pool: Pool) -> None:
    documents = [merged(f"t{n:02d}", " ".join(["common", *(f"w{i}" for i in range(12) if n <= 2 * i)])) for n in range(30)]
    pool.write_week(1, "", documents)
    text = "common " + " ".join(f"w{i}" for i in range(12))
    assert pool._index.terms(text) == [f"w{i}" for i in range(8)]  # in 1, 3, 5, ... 15 of 30 documents
    assert TERMS == 8
    pool.write_week(2, "", [merged(f"v{n}", "zebra aardvark") for n in range(2)])
    assert pool._index.terms("zebra aardvark") == ["aardvark", "zebra"]


def test_a_term_of_most_documents_counts_only_where_nothing_rarer_is_asked(pool: Pool) -> None:
    pool.write_week(
        1, "", [merged("t1", "report on churn"), merged("t2", "report on sales"), merged("t3", "report on tax"), merged("t4", "report")]
    )
    assert pool.search(Query("report on churn"), 9) == ["t1"]
    assert pool.search(Query("report"), 9) == ["t4", "t1", "t2", "t3"]  # nothing rarer: the shortest says it most


def test_the_only_document_is_found(pool: Pool) -> None:
    pool.write_week(1, "", [merged("t1", "churn")])
    assert pool.search(Query("churn of firms")) == ["t1"]


def test_a_rare_word_outweighs_a_frequent_one_and_a_title_outweighs_the_text(pool: Pool) -> None:
    pool.write_week(1, "", [merged(f"x{n}", f"plan {n} filler") for n in range(9)] + [merged("y", "audit alone"), merged("z", "other")] * 1)
    assert pool.search(Query("plan audit"), 1) == ["y"]
    pool.write_week(
        2,
        "",
        [
            rows.result("a", merged=True, title="words here", content="quota"),
            rows.result("b", merged=True, title="quota", content="words here"),
        ],
    )
    assert pool.search(Query("quota")) == ["b", "a"]


def test_equal_scores_are_ordered_by_id_and_k_bounds_the_answer(pool: Pool) -> None:
    pool.write_week(1, "", [merged(name, "same text") for name in ("c", "a", "d", "b")] + [merged(f"z{n}", "other") for n in range(9)])
    assert pool.search(Query("same")) == ["a", "b", "c"]
    assert pool.search(Query("same"), 9) == ["a", "b", "c", "d"]
    assert pool.search(Query("same"), 0) == []


# ---------------------------------------------------------------- filters
@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({}, ["t1", "t2", "t3"]),
        ({"role": "Data Analyst"}, ["t2"]),
        ({"role": "data analyst"}, ["t2"]),
        ({"department": "Product"}, ["t1", "t3"]),
        ({"kind": "SQL"}, ["t3"]),
        ({"goal": "grow"}, ["t1"]),
        ({"since_week": 2}, ["t2", "t3"]),
        ({"until_week": 1}, ["t1"]),
        ({"since_week": 2, "until_week": 2}, ["t2"]),
        ({"exclude_task": "t1"}, ["t2", "t3"]),
        ({"goal_first": "growth"}, ["t2", "t1", "t3"]),
        ({"goal_first": "grow", "since_week": 2}, ["t2", "t3"]),
        ({"role": "Nobody"}, []),
        ({"role": "Data Analyst", "goal": "grow"}, []),
    ],
)
def test_each_filter_narrows(pool: Pool, filters: dict[str, object], found: list[str]) -> None:
    pool.write_week(1, "", [rows.task("t1", unit="u", goals=("keep", "grow")), merged("t1", "churn")])
    pool.write_week(2, "", [rows.task("t2", unit="u", goals=("growth",)), merged("t2", "churn", agent="bob")])
    pool.write_week(3, "", [merged("t3", "churn", artifact="SQL")])
    assert pool.search(Query("churn", **filters), 9) == found  # type: ignore[arg-type]


def test_a_rewritten_result_is_found_by_its_new_text_only(pool: Pool) -> None:
    pool.write_week(1, "", [merged("t1", "churn"), merged("t2", "sales")])
    pool.write_week(2, "", [merged("t1", "tax")])
    assert pool.search(Query("churn")) == []
    assert pool.search(Query("tax", since_week=2)) == ["t1"]


def test_a_question_ranks_a_bounded_number_of_documents_the_most_recent(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "CANDIDATES", 3)
    pool.write_week(1, "", [merged(f"t{n}", "same") for n in range(8)])
    assert pool.search(Query("same"), 9) == ["t5", "t6", "t7"]


def test_a_reopened_pool_ranks_as_the_one_that_wrote_it(pool: Pool) -> None:
    rng = random.Random(2)
    words = [f"word{n}" for n in range(80)]
    for week in range(1, 9):
        pool.write_week(week, "", [merged(f"w{week}/t{n}", " ".join(rng.choices(words, k=30))) for n in range(10)])
    queries = [Query(" ".join(rng.choices(words, k=6))) for _ in range(40)]
    with Pool.open(pool.path) as reader:
        assert [reader.search(query, 5) for query in queries] == [pool.search(query, 5) for query in queries]
