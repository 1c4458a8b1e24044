"""Keywords of texts, each against an example worked out by hand."""

from __future__ import annotations

import math

import pytest

from taskweave.evaluation.keywords import changed, phrases, rarity, reach, shares, weights


def test_a_phrase_is_a_run_of_words_between_stop_words_and_punctuation() -> None:
    assert phrases("We renew the zero-trust architecture, and budgets.") == {
        *("renew", "zero-trust", "architecture", "zero-trust architecture", "budgets")
    }


def test_a_phrase_has_four_words_at_most() -> None:
    assert "cross border data transfer" in phrases("cross border data transfer rules")
    assert "cross border data transfer rules" not in phrases("cross border data transfer rules")


@pytest.mark.parametrize("text", ["W12 2026-03-04 Q3", "on Monday in March", "it is what we will do", "Ines", "", "– … !", "x"])
def test_dates_numbers_names_and_small_words_are_no_phrases(text: str) -> None:
    assert phrases(text, {"ines"}) == frozenset()


def test_other_scripts_have_phrases_too() -> None:
    assert phrases("数据 合规") == {"数据", "合规", "数据 合规"}
    assert phrases("Prüfung der Überweisung") >= {"prüfung der überweisung"}


def test_what_every_document_says_weighs_nothing() -> None:
    documents = [frozenset({"plan", "audit"}), frozenset({"plan"}), frozenset({"plan"})]
    assert rarity(documents) == {"plan": 0.0, "audit": math.log(2)}
    assert shares(documents) == {"plan": 1.0, "audit": 1 / 3}


def test_a_keyword_weighs_by_the_share_of_documents_and_its_rarity() -> None:
    base, other = [frozenset({"ads"}), frozenset({"ads", "churn"})], [frozenset({"audit"}), frozenset({"audit", "churn"})]
    rare = {"ads": 1.0, "audit": 2.0, "churn": 1.0}
    weighed = weights(base, other, shares(base), rare)
    assert weighed == {"ads": -1.0, "audit": 2.0}  # churn is in half of both
    comes, goes = changed(base, other, weighed, 9)
    assert [(one.term, one.before, one.hits) for one in comes] == [("audit", 0, 2)]
    assert [(one.term, one.before, one.hits) for one in goes] == [("ads", 2, 0)]
    assert reach(weighed) == (2.0, 1.0)
    assert reach({}) == (0.0, 0.0)


def test_what_is_as_usual_elsewhere_does_not_come_or_go() -> None:
    base, other = [frozenset({"ads"})], [frozenset({"audit", "churn"})]
    rare = dict.fromkeys(("ads", "audit", "churn"), 1.0)
    # other runs mostly say churn, and never ads
    assert weights(base, other, {"ads": 0.25, "churn": 1.0}, rare) == {"audit": 1.0, "ads": -0.25}


def test_of_phrases_that_say_the_same_the_longest_stands() -> None:
    base, other = [phrases("Sell more.")], [phrases("Data residency audit first.")]
    comes, _ = changed(base, other, weights(base, other, shares(base), rarity([*base, *other])), 9)
    assert [one.term for one in comes] == ["data residency audit"]


def test_no_more_are_kept_than_asked_for_and_ties_go_by_the_alphabet() -> None:
    base, other = [frozenset[str]()], [frozenset({"b", "c", "a"})]
    comes, goes = changed(base, other, weights(base, other, {}, dict.fromkeys("abc", 1.0)), 2)
    assert [one.term for one in comes] == ["a", "b"]
    assert goes == ()
