"""s_match and the choice of Eq. 6."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskweave.shipped import find_organization
from taskweave.simulation import matching
from taskweave.simulation.matching import TIE, Matcher, choose
from tests.simulated import simulated

WORD = re.compile(r"[^\W_]+")


def bm25(question: str, documents: dict[str, str]) -> dict[str, float]:
    """Plain BM25 (k1 = 1.2, b = 0.75) over lower-case words."""
    counts = {name: Counter(WORD.findall(text.lower())) for name, text in documents.items()}
    lengths = {name: sum(found.values()) for name, found in counts.items()}
    mean = sum(lengths.values()) / len(lengths) or 1.0
    df = Counter(term for found in counts.values() for term in found)
    return {
        name: sum(
            math.log(1 + (len(counts) - df[t] + 0.5) / (df[t] + 0.5))
            * (found[t] * 2.2 / (found[t] + 1.2 * (0.25 + 0.75 * lengths[name] / mean)))
            for t in WORD.findall(question.lower())
            if t in found
        )
        for name, found in counts.items()
    }


def test_the_agent_whose_document_shares_the_rare_words_fits_best() -> None:
    matcher = Matcher({"ann": ["writes reports on churn"], "bo": ["writes reports on invoices"], "cy": ["writes reports"]})
    scores = matcher.score("a report on invoices", ["ann", "bo", "cy"])
    assert max(scores, key=scores.__getitem__) == "bo"
    assert all(0 <= score <= 1 for score in scores.values())


def test_a_document_grows_with_what_its_agent_has_done() -> None:
    matcher = Matcher({"ann": ["clerk"], "bo": ["clerk"]})
    assert matcher.score("tax engine", ["ann", "bo"]) == {"ann": 0.0, "bo": 0.0}
    matcher.add("bo", ["Tax engine: first results"])
    assert matcher.score("tax engine", ["ann", "bo"])["bo"] > 0


def test_a_text_of_unknown_words_matches_nobody_and_an_empty_one_raises_nothing() -> None:
    matcher = Matcher({"ann": ["clerk"], "bo": []})
    assert matcher.score("xylophone", ["ann", "bo"]) == {"ann": 0.0, "bo": 0.0}
    assert matcher.score("", ["ann", "bo"]) == {"ann": 0.0, "bo": 0.0}


IDLE, BUSY = (0, 0), (60, 60)
CLERKS = {"a": "Clerk", "b": "Clerk"}
CLERK_AND_TYPIST = {"a": "Clerk", "b": "Typist"}


def test_ties_within_a_title_go_to_the_least_loaded_and_then_to_the_first_name() -> None:
    assert choose({"b": 0.5, "a": 0.5}, CLERKS, {"a": BUSY, "b": IDLE})[0] == "b"
    assert choose({"b": 0.5, "a": 0.5}, CLERKS, {"a": IDLE, "b": IDLE})[0] == "a"
    assert choose({"b": 0.5, "a": 0.5}, CLERKS, {"a": (0, 600), "b": (0, 60)})[0] == "b"
    assert choose({"b": 0.5, "a": 0.5 + TIE / 2}, CLERKS, {"a": BUSY, "b": IDLE})[0] == "b"
    assert choose({"b": 0.5, "a": 0.5 + TIE * 2}, CLERKS, {"a": BUSY, "b": IDLE})[0] == "a"


def test_across_titles_the_better_match_gets_it_however_near_the_other_is() -> None:
    assert choose({"a": 0.5, "b": 0.5 - TIE / 100}, CLERK_AND_TYPIST, {"a": BUSY, "b": IDLE})[0] == "a"
    assert choose({"a": 0.5, "b": 0.5}, CLERK_AND_TYPIST, {"a": BUSY, "b": IDLE})[0] == "b"
    assert choose({"a": 0.5, "b": 0.5}, CLERK_AND_TYPIST, {"a": IDLE, "b": IDLE})[0] == "a"


def test_a_tie_reaches_down_from_the_best_match_and_not_from_one_to_the_next() -> None:
    scores = {"a": 0.5, "b": 0.5 - TIE * 0.8, "c": 0.5 - TIE * 1.6}
    assert choose(scores, dict.fromkeys("abc", "Clerk"), {"a": (90, 90), "b": BUSY, "c": IDLE})[0] == "b"


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.floats(0, 1.5), min_size=1), st.data())
def test_where_everybody_has_an_own_title_the_argmax_is_chosen(scores: dict[str, float], data: st.DataObject) -> None:
    minutes = st.integers(0, 600)
    load = {name: (data.draw(minutes), data.draw(minutes)) for name in scores}
    chosen, why = choose(scores, {name: name for name in scores}, load)
    assert scores[chosen] == max(scores.values())
    assert ("tied" in why) == (list(scores.values()).count(scores[chosen]) > 1)


def test_the_reason_names_the_runner_up() -> None:
    assert choose({"a": 0.9, "b": 0.4}, CLERKS, {"a": IDLE, "b": IDLE})[1] == "match 0.90; next b 0.40"
    assert choose({"a": 0.9}, CLERKS, {"a": IDLE})[1] == "only eligible; match 0.90"
    assert choose({"a": 0.9, "b": 0.87}, CLERKS, {"a": BUSY, "b": IDLE})[1] == "match 0.87, tied with a 0.90; less loaded"
    assert choose({"a": 0.9, "b": 0.87}, CLERKS, {"a": IDLE, "b": IDLE})[1] == "match 0.90, tied with b 0.87; first name"


@pytest.mark.parametrize(("source", "least"), [("descriptions", 0.74), ("documents", 0.87)])
def test_the_choice_finds_the_gold_people_at_least_as_often_as_plain_bm25(source: str, least: float) -> None:
    data = Path(os.environ.get("TASKWEAVE_TEST_DATA", "")) / "peoplejoin"
    if not os.environ.get("TASKWEAVE_TEST_DATA") or not data.is_dir():
        pytest.skip("TASKWEAVE_TEST_DATA names no folder with peoplejoin/: the gold people are not compared")
    tenants = {}
    for file in sorted((data / "tenants").glob("*.json")):
        tenant = json.loads(file.read_text(encoding="utf-8"))
        users = [user["user_id"] for user in tenant["users"]]
        if source == "descriptions":
            texts = {user: str(tenant["user_id_to_descriptions"].get(user, "")) for user in users}
        else:
            owned = tenant["user_id_to_documents"]
            texts = {user: " ".join(d["title"] + " " + d["content"] for d in owned.get(user, [])) for user in users}
        tenants[tenant["tenant_id"]] = (texts, Matcher({user: [text] for user, text in texts.items()}))
    right: Counter[str] = Counter()
    asked = 0
    for line in (data / "questions.dev.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        if question["tenant_id"] not in tenants or not question["reference_people"]:
            continue
        texts, matcher = tenants[question["tenant_id"]]
        asked += 1
        scores, plain = matcher.score(question["question"], list(texts)), bm25(question["question"], texts)
        # Everybody there has a place of their own: what is measured is who would be given the question.
        found = {
            "choice": choose(scores, {user: user for user in texts}, dict.fromkeys(texts, IDLE))[0],
            "match": min(scores, key=lambda user: (-scores[user], user)),
            "bm25": min(plain, key=lambda user: (-plain[user], user)),
        }
        right.update(name for name, user in found.items() if user in question["reference_people"])
    print(f"{source}: {asked} questions, " + ", ".join(f"{name} {number / asked:.3f}" for name, number in sorted(right.items())))
    assert asked > 300
    assert right["choice"] == right["match"]
    assert right["choice"] >= right["bm25"]
    assert right["choice"] / asked >= least


@pytest.mark.fire
def test_agents_of_one_title_work_about_the_same_hours_and_would_not_without_ties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ratios(name: str) -> list[float]:
        """Hours worked of the hours that one was there: the most used agent of a title to its least used."""
        # Without customers and such: whoever knows one of them is not as good as a colleague who does not.
        text = re.sub(r"(?m)^entities:.*\n", "", find_organization("manu").read_text(encoding="utf-8"))
        run = simulated(tmp_path / name, text, until="week:12")
        booked: Counter[str] = Counter()
        available: Counter[str] = Counter()
        for row in run.table("load"):
            booked[row["agent"]] += row["booked"]
            available[row["agent"]] += row["available"]
        titles: dict[str, list[float]] = {}
        for agent in run.table("agents"):
            if booked[agent["id"]]:
                titles.setdefault(agent["role"], []).append(booked[agent["id"]] / available[agent["id"]])
        return [max(used) / min(used) for used in titles.values() if len(used) > 1]

    tied = ratios("tied")
    monkeypatch.setattr(matching, "TIE", 0.0)
    untied = ratios("untied")
    print(f"with ties {median(tied):.2f}, at most {max(tied):.2f}; without {median(untied):.2f}, at most {max(untied):.2f}")
    assert len(tied) == len(untied) == 11
    assert median(tied) < 1.2 < median(untied)
    assert max(tied) < 1.6 < max(untied)
