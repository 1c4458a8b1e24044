"""Token counts that cannot be are not believed; those that can are, however large."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave.backbones.openai import OpenAI
from taskweave.backbones.pricing import Price
from taskweave.backbones.usage import SLACK, TEMPLATE, UNBOUNDED, Usage, usage_of
from tests.cli.door import type_in
from tests.loopback import Loopback
from tests.simulated import WORKSHOP
from tests.test_openai_backbone import complete, request

SENT, LIMIT, ANSWERED = 4_000, 500, 900


def told(**counts: Any) -> Usage:
    """What is believed of a usage that is good but for these."""
    cached = counts.pop("cached", 128)
    usage = {"prompt_tokens": 1_000, "completion_tokens": 200, "prompt_tokens_details": {"cached_tokens": cached}} | counts
    return usage_of(usage, sent=SENT, limit=LIMIT, answered=ANSWERED)


def test_a_usage_that_can_be_is_believed() -> None:
    assert told() == Usage(1_000, 200, 128)
    assert told(cached=1_000).cached == 1_000
    assert told(cached=0).cached == 0


@pytest.mark.parametrize("wrong", [True, False, -1, 1.0, 1.5, "200", None, [], {}, float("nan"), 10**9])
def test_what_is_no_count_is_not_reported(wrong: Any) -> None:
    assert told(prompt_tokens=wrong) == Usage(None, 200, None)
    assert told(completion_tokens=wrong) == Usage(1_000, None, 128)
    assert told(cached=wrong) == Usage(1_000, 200, None)


def test_no_more_of_a_prompt_was_cached_than_it_has() -> None:
    assert told(cached=1_001) == Usage(1_000, 200, None)


def test_a_prompt_has_no_more_tokens_than_bytes_and_a_template() -> None:
    assert told(prompt_tokens=SENT + TEMPLATE).prompt == SENT + TEMPLATE
    assert told(prompt_tokens=SENT + TEMPLATE + 1).prompt is None
    assert told(prompt_tokens=0).prompt is None
    assert told(prompt_tokens=1).prompt == 1, "a server that reads less than it was sent is to be found out by that"


def test_an_answer_may_be_thought_unseen_but_is_not_much_longer_than_allowed() -> None:
    assert told(completion_tokens=SLACK * LIMIT).completion == SLACK * LIMIT > ANSWERED
    assert told(completion_tokens=SLACK * LIMIT + 1).completion is None
    assert usage_of({"completion_tokens": 5_000}, sent=SENT, limit=LIMIT, answered=5_000).completion == 5_000, "all of it is there"
    assert usage_of({"completion_tokens": UNBOUNDED}, sent=SENT, limit=None, answered=9).completion == UNBOUNDED
    assert usage_of({"completion_tokens": UNBOUNDED + 1}, sent=SENT, limit=None, answered=9).completion is None
    assert told(completion_tokens=0).completion is None
    assert usage_of({"completion_tokens": 0}, sent=SENT, limit=LIMIT, answered=0).completion == 0


@pytest.mark.parametrize("usage", [None, [], "much", 7, {"prompt_tokens_details": 7}, {"prompt_tokens_details": None}])
def test_a_usage_that_is_none_reports_nothing(usage: Any) -> None:
    assert usage_of(usage, sent=SENT, limit=LIMIT, answered=ANSWERED) == Usage(None, None, None)


# ---------------------------------------------------------------- over HTTP
class Counting(Loopback):
    """Reports a usage of its own."""

    def __init__(self, **usage: Any) -> None:
        super().__init__()
        self.usage = usage

    def completion(self, request: dict[str, Any], fault: int | str | bytes | None) -> dict[str, Any]:
        body = super().completion(request, fault)
        body["usage"] = body["usage"] | self.usage
        return body


def test_true_is_no_number_of_tokens_though_it_counts_as_one_in_json_readers() -> None:
    with Counting(prompt_tokens=True, completion_tokens=True) as server:
        found = complete(server)
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens) == (None, None, None)
    assert found.tokens(request()) == (request().tokens(), -(-len((found.text or "").encode()) // 4))


def test_a_bound_that_the_endpoint_does_not_take_bounds_no_count() -> None:
    with Counting(completion_tokens=90_000) as server:
        assert complete(server).completion_tokens is None
        server.faults = [b'{"error": {"message": "max_tokens: unsupported", "param": "max_tokens"}}'] * 2
        server.faults[1] = b'{"error": {"message": "no such thing", "param": "max_completion_tokens"}}'
        assert complete(server).completion_tokens == 90_000


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens_details": {"cached_tokens": 10_000_000}}, {"prompt_tokens": 10**9, "completion_tokens": 10**9}, {"prompt_tokens": -5}],
    ids=["cached", "huge", "negative"],
)
def test_no_usage_makes_a_run_cost_what_it_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, usage: dict[str, Any]) -> None:
    monkeypatch.chdir(tmp_path)
    with Counting(**usage) as server:
        backbone = OpenAI("gpt-4o-mini", server.url)
        run = tw.simulate(tw.Organization(WORKSHOP), out="r", until="week:1", backbone=backbone, style="full", look=False)
    now, used = run.status(), server.used
    assert now.cost is not None
    assert 0 < now.cost < 3 * (used["prompt"] * 0.15 + used["completion"] * 0.6) / 1e6
    assert all(0 <= row["cached_tokens"] <= row["prompt_tokens"] < 10_000 for row in run.table("calls"))
    assert "$-" not in type_in("status", "r").stdout


def test_a_price_is_never_negative_whatever_a_backbone_of_ones_own_says_was_cached() -> None:
    assert Price(input=1.0, cached=0.5, output=0.0).cost(1_000, 10_000_000, 0) == pytest.approx(0.0005)
