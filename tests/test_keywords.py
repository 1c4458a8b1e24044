"""Keywords of texts, each against an example worked out by hand."""

from __future__ import annotations

import math

import pytest

from taskweave.evaluation.keywords import Usage, changed, phrases, reach, shares, weights

NONE = Usage.of([frozenset()])  # by which every phrase is new
NEW = 1 + math.log(2)  # what such a one weighs


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


def test_what_every_document_says_weighs_least_and_what_none_says_most() -> None:
    documents = [frozenset({"plan", "audit"}), frozenset({"plan"}), frozenset({"plan"})]
    usage = Usage.of(documents)
    weighed = [usage.rarity(term) for term in ("plan", "audit", "churn")]
    assert weighed == pytest.approx([1, 1 + math.log(2), 1 + math.log(4)])
    assert shares(documents) == {"plan": 1.0, "audit": 1 / 3}


def test_what_is_new_weighs_the_same_however_many_runs_there_are_to_tell() -> None:
    runs = [Usage.of([frozenset({"plan"}), frozenset({word})]) for word in ("audit", "churn", "ads")]
    together = Usage.of_all(runs)
    assert {one.rarity("new") for one in (runs[0], together, together.without(runs[0]))} == {runs[0].rarity("new")}
    assert together.rarity("plan") == runs[0].rarity("plan") == pytest.approx(1 + math.log(1.5))
    assert together.without(runs[0]).rarity("audit") == together.rarity("new")


def test_a_keyword_weighs_by_the_share_of_documents_and_its_rarity() -> None:
    base, other = [frozenset({"ads"}), frozenset({"ads", "churn"})], [frozenset({"audit"}), frozenset({"audit", "churn"})]
    weighed = weights(base, other, shares(base), Usage.of(base))
    assert weighed == pytest.approx({"ads": -1.0, "audit": 1 + math.log(3)})  # churn is in half of both
    comes, goes = changed(base, other, weighed, 9)
    assert [(one.term, one.before, one.hits) for one in comes] == [("audit", 0, 2)]
    assert [(one.term, one.before, one.hits) for one in goes] == [("ads", 2, 0)]
    assert reach(weighed) == pytest.approx((1 + math.log(3), 1.0))
    assert reach({}) == (0.0, 0.0)


def test_what_is_as_usual_elsewhere_does_not_come_or_go() -> None:
    base, other = [frozenset({"ads"})], [frozenset({"audit", "churn"})]
    # other runs mostly say churn, and never ads
    assert weights(base, other, {"ads": 0.25, "churn": 1.0}, NONE) == {"audit": NEW, "ads": -0.25 * NEW}


def test_of_phrases_that_say_the_same_the_longest_stands() -> None:
    base, other = [phrases("Sell more.")], [phrases("Data residency audit first.")]
    comes, _ = changed(base, other, weights(base, other, shares(base), Usage.of(base)), 9)
    assert [one.term for one in comes] == ["data residency audit"]


def test_no_more_are_kept_than_asked_for_and_ties_go_by_the_alphabet() -> None:
    base, other = [frozenset[str]()], [frozenset({"b", "c", "a"})]
    comes, goes = changed(base, other, weights(base, other, {}, NONE), 2)
    assert [one.term for one in comes] == ["a", "b"]
    assert goes == ()
