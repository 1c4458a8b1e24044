"""s_match and the choice of Eq. 6."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from taskweave.simulation.matching import TIE, Matcher, choose

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


def test_ties_go_to_the_least_loaded_and_then_to_the_first_name() -> None:
    idle, busy = (0, 0), (60, 60)
    assert choose({"b": 0.5, "a": 0.5}, {"a": busy, "b": idle})[0] == "b"
    assert choose({"b": 0.5, "a": 0.5}, {"a": idle, "b": idle})[0] == "a"
    assert choose({"b": 0.5, "a": 0.5}, {"a": (0, 600), "b": (0, 60)})[0] == "b"
    assert choose({"b": 0.9, "a": 0.5}, {"a": idle, "b": (600, 600)})[0] == "b"
    assert choose({"b": 0.5, "a": 0.5 + TIE / 4}, {"a": busy, "b": idle})[0] == "b"


def test_the_reason_names_the_runner_up() -> None:
    assert choose({"a": 0.9, "b": 0.4}, {"a": (0, 0), "b": (0, 0)})[1] == "match 0.90; next b 0.40"
    assert choose({"a": 0.9}, {"a": (0, 0)})[1] == "only eligible; match 0.90"


@pytest.mark.parametrize(("source", "least"), [("descriptions", 0.74), ("documents", 0.87)])
def test_match_finds_the_gold_people_at_least_as_often_as_plain_bm25(source: str, least: float) -> None:
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
        for name, scores in (("match", matcher.score(question["question"], list(texts))), ("bm25", bm25(question["question"], texts))):
            right[name] += min(scores, key=lambda user: (-scores[user], user)) in question["reference_people"]
    print(f"{source}: {asked} questions, match {right['match'] / asked:.3f}, plain BM25 {right['bm25'] / asked:.3f}")
    assert asked > 300
    assert right["match"] >= right["bm25"]
    assert right["match"] / asked >= least
