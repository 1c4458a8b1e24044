"""Measures of texts, each against an example computed by hand."""

from __future__ import annotations

import random

import pytest

from taskweave.evaluation.text import Built, Share, distinct_titles, grams, naming_sources, nearest_neighbours, pair_overlap, stripped


@pytest.mark.parametrize(
    ("title", "left"),
    [
        ("Churn report W12", "churn report"),
        ("Churn report, 2026-03-04 (Q3)", "churn report"),
        ("Churn report of 5 March, Monday", "churn report of"),
        ("CHURN report by Ines Roux", "churn report by"),
        ("Übergabe №3: v2.1", "übergabe"),
        ("2026", ""),
    ],
)
def test_a_title_is_stripped_of_digits_dates_and_names(title: str, left: str) -> None:
    assert stripped(title, ["Ines Roux"]) == left


def test_titles_that_differ_only_in_digits_dates_and_names_are_one() -> None:
    titles = ["Plan for Ada, week 1", "Plan for Bob, week 2", "Audit", "audit!"]
    assert distinct_titles(titles, ["Ada Roux", "Bob"]) == Share(2, 4)
    assert distinct_titles(titles) == Share(3, 4)
    assert distinct_titles([]).value is None


def test_grams_are_sequences_of_four_words() -> None:
    assert grams("One two, three four FIVE.") == {("one", "two", "three", "four"), ("two", "three", "four", "five")}
    assert grams("one two three") == frozenset()


def test_overlap_of_a_pair_is_over_the_smaller_text() -> None:
    texts = [("t1", "a b c d e f"), ("t2", "a b c d x")]  # 3 and 2 grams, 1 shared
    assert pair_overlap(texts, pairs=10) == (0.5, 10)
    assert pair_overlap([("t1", "a b c d"), ("t1", "a b c d")]) == (None, 0)
    assert pair_overlap([]) == (None, 0)


def test_pairs_are_drawn_by_seed_from_different_groups() -> None:
    rng = random.Random(3)
    texts = [(f"t{n // 3}", " ".join(rng.choices("abcdef", k=40))) for n in range(30)]
    assert pair_overlap(texts, pairs=50, seed=1) == pair_overlap(texts, pairs=50, seed=1) != pair_overlap(texts, pairs=50, seed=2)
    same = [("t1", "a b c d e"), ("t1", "a b c d e"), ("t2", "v w x y z")]
    assert pair_overlap(same, pairs=50).mean == 0


def test_nearest_neighbours_are_of_other_groups_and_exact() -> None:
    texts = [("t1", "a b c d e f"), ("t1", "a b c d e f"), ("t2", "a b c d x"), ("t3", "p q r s")]
    # contained: 1/3, 1/3, 1/2, 0; Jaccard: 1/4, 1/4, 1/4, 0; the 95th percentile of 4 by nearest rank is the largest
    assert nearest_neighbours(texts) == (0.5, 0.25, 4)
    assert nearest_neighbours([("t1", "a b c d"), ("t2", "A b, c d!")]) == (1.0, 1.0, 2)
    assert nearest_neighbours([("t1", "a b c d")]) == (None, None, 0)


def test_the_percentile_is_by_nearest_rank() -> None:
    copies = [(f"c{n}", "a b c d") for n in range(2)]
    others = [(f"t{n}", f"x{n} y{n} z{n} w{n}") for n in range(38)]
    assert nearest_neighbours(copies + others).jaccard == 0.0  # 2 of 40 are beyond the 95th
    assert nearest_neighbours(copies + others[:37]).jaccard == 1.0


def brute_force(texts: list[tuple[str, str]]) -> list[float]:
    found = [(group, grams(text)) for group, text in texts]
    return sorted(max(len(a & b) / len(a) for other, b in found if other != group) for group, a in found)


def test_the_inverted_index_finds_what_comparing_all_pairs_finds() -> None:
    rng = random.Random(5)
    texts = [(f"t{n // 2}", " ".join(rng.choices("abcd", k=rng.randint(5, 30)))) for n in range(60)]
    assert nearest_neighbours(texts).contained == brute_force(texts)[56]


def test_three_thousand_texts_that_share_boilerplate_are_compared() -> None:
    rng = random.Random(7)
    words = [f"w{n}" for n in range(400)]
    texts = [(f"t{n // 5}", "this report was written for the weekly meeting " + " ".join(rng.choices(words, k=142))) for n in range(3_000)]
    assert nearest_neighbours(texts).texts == 3_000


def test_a_text_names_what_it_builds_on_by_title_or_author() -> None:
    source = (("Churn  Report", "Ines Roux"),)
    texts = [
        Built("As the churn report shows.", source),
        Built("Thanks to INES\nROUX.", source),
        Built("Churn reports and Ines, Roux & others", (("Churn Report", "Bo Li"),)),
        Built("Built on nothing", ()),
        Built("Nameless sources", (("", ""),)),
        Built("Written by Ines Roux herself", source, frozenset({"Ines Roux"})),
    ]
    assert naming_sources(texts) == Share(2, 5)
    assert naming_sources([]).value is None
