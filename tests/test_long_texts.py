"""Texts as long as an answer may be, among answers that say nothing: what code makes in their place is never too long for its place."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave.backbones.scripted import Scripted
from taskweave.records import Completion, Request
from taskweave.simulation import answers
from tests.simulated import rows

DUTY = "Mend whatever comes in, tell whoever brought it what it will take, and keep the ledger of all that was mended " * 5
ORG = f"""
name: Long words
calendar: {{start: 2026-01-05}}
goals: {{orders: {{text: Repair 400 chairs, owner: Head}}}}
roles:
  Head: {{leads: Repair, responsibilities: ["{DUTY.strip()}"]}}
  Joiner: {{reports_to: Head, count: 2, hours: 3-5, responsibilities: ["{DUTY.strip()}"]}}
workload: {{composite_hours: 12, variation: 0}}
"""
MOST = {"title": 300}
LONG = ("goal", "content", "description", "background", "plan", "summary", "text", "need", "title")


class Lengthy(Scripted):
    """One answer in three says nothing, the others as much as they may."""

    def __init__(self, seed: int, share: float) -> None:
        super().__init__()
        self._seed, self._share = seed, share

    async def complete(self, request: Request) -> Completion:
        completion = await super().complete(request)
        draw = random.Random(f"{self._seed}:{request.seed}:{len(request.messages)}:{request.lowered}")
        if draw.random() < self._share:
            return replace(completion, text="")
        assert completion.text is not None
        return replace(completion, text=json.dumps(longer(json.loads(completion.text), draw)))


def longer(value: Any, draw: random.Random, name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: longer(part, draw, key) for key, part in value.items()}
    if isinstance(value, list):
        return [longer(part, draw, name) for part in value]
    if isinstance(value, str) and name in LONG and value:
        most = MOST.get(name, 19_900)
        size = draw.choice((most, most // 2, 460)) if most > 460 else most
        return (value + " " + "and so on and on " * (size // 16 + 1))[:size].strip()
    return value


@pytest.mark.parametrize("style", ["full", "compact"])
@pytest.mark.parametrize(("seed", "share"), [(1, 0.35), (2, 0.35), (3, 1.0)])
def test_whatever_is_long_and_whatever_is_missing_the_run_comes_to_its_end(tmp_path: Path, style: Any, seed: int, share: float) -> None:
    run = tw.simulate(tw.Organization(ORG), out=tmp_path / "run", until="week:3", backbone=Lengthy(seed, share), style=style)
    assert run.outcome is not None
    assert run.outcome.stop is None
    assert all(0 < len(row["title"]) <= 320 for row in rows(run, "results"))
    assert all(0 < len(row["content"]) <= 20_000 for row in rows(run, "results"))
    assert {row["rung"] is not None for row in rows(run, "calls")} == {True}


def test_what_code_makes_is_cut_to_what_an_answer_may_be_and_the_cut_shows() -> None:
    made = answers.Merged.by_code(title="a" * 400, content="b" * 30_000)
    assert (len(made.title), len(made.content)) == (300, 20_000)
    assert made.title.endswith("…")
    assert answers.Merged.by_code(title="a" * 300, content="b").title == "a" * 300
