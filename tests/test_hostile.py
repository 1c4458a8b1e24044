"""A run against a server that deals every trap at random, and the replay of what it answered."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path

import pytest

import taskweave as tw
from taskweave.errors import BadInput, Refused
from taskweave.runs.replaying import replay
from tests.hostile import ANSWERS, REFUSALS, Hostile, Plain


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tw.Run:
    """Eight weeks of tiny against the hostile server."""
    with Hostile(seed=3) as server:
        made = tw.simulate(
            "tiny",
            out=tmp_path_factory.mktemp("hostile") / "run",
            backbone="openai:any",
            base_url=server.url,
            until="week:8",
            limit=1,  # in one order: which trap a request meets depends on what was refused before it
            look=False,
        )
    assert set(server.dealt) <= {*ANSWERS, *REFUSALS}
    assert len(server.dealt) > 15, "nearly every trap was met"
    assert made.outcome is not None
    assert made.outcome.stop is None
    return made


def test_every_structure_of_a_run_is_valid_whatever_was_answered(run: tw.Run) -> None:
    org = run.folder.organization()
    agents = {agent["id"]: agent for agent in run.agents()}
    edges = {(edge["source"], edge["target"]) for edge in run.edges()}
    tasks = {task["id"]: task for task in run.tasks()}
    results = {result["id"] for result in run.results()}
    for task in tasks.values():
        assert task["activity"] in (*org.activities, "plan")
        assert task["priority"] in ("low", "normal", "high", "urgent")
        assert set(task["goals"]) <= set(org.goals)
        assert task["title"].strip()
    for subtask in run.subtasks():
        assert subtask["role"] in org.roles
        assert subtask["activity"] in org.activities
        low, high = org.roles[subtask["role"]].hours
        assert min(low, 0.25) <= subtask["hours"] <= max(high, tasks[subtask["task"]]["planned_hours"])
        if subtask["assignee"]:
            assert agents[subtask["assignee"]]
            assert (subtask["delegator"], subtask["assignee"]) in edges
    for result in run.results():
        assert result["content"].strip()
        assert "\0" not in result["content"]
        result["content"].encode()
    assert all(use["used"] in results for use in run.uses() if use["kind"] == "result")
    assert all(state["plan"].strip() for state in run.states())


def test_every_fallback_is_recorded_with_its_reason(run: tw.Run) -> None:
    fallen = [call for call in run.calls() if call["fallback"]]
    assert fallen
    assert all(call["reason"] for call in fallen)
    assert {e["kind"] for e in run.events()} >= {"fallback", "repair"}
    assert all(event["object"] for event in run.events() if event["kind"] in ("fallback", "repair"))
    marked = Counter(result["origin"] for result in run.results() if result["quality"] == "fallback" and result["subtask"])
    assert set(marked) <= {"fallback"}


def test_each_call_says_on_which_rung_it_was_answered(run: tw.Run) -> None:
    assert {"json_schema", "json_object"} <= {call["rung"] for call in run.calls()} <= {"json_schema", "json_object", "plain"}


def test_a_replay_of_the_run_has_its_digest_and_asks_nobody(run: tw.Run, tmp_path: Path) -> None:
    again = tw.simulate("tiny", out=tmp_path / "again", backbone=f"replay:{run.path}", until="week:8", limit=1)
    assert again.digest() == run.digest()
    assert again.status().backbone == run.status().backbone == "openai:any"


def test_a_replay_of_another_request_stops_and_shows_the_nearest_one(run: tw.Run, tmp_path: Path) -> None:
    other = tw.simulate("tiny", out=tmp_path / "other", backbone=f"replay:{run.path}", until="week:8", seed=2)
    assert other.outcome is not None
    assert other.outcome.stop == "refused"
    assert "holds no answer to this request of the step 'formulate'; the nearest is at Y1@" in other.outcome.cause
    assert "which says '" in other.outcome.cause


@pytest.mark.parametrize(
    ("spec", "base_url", "said"),
    [
        ("replay:none", None, "'none': there is no such run"),
        ("replay:", None, "names no run"),
        ("replay:none", "http://127.0.0.1/v1", "has no meaning for the backbone 'replay:none'"),
    ],
)
def test_only_a_run_can_be_replayed(spec: str, base_url: str | None, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        replay(spec, base_url=base_url)


def test_a_replay_goes_on_from_another_folder(run: tw.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(run.path.parent)
    tw.simulate("tiny", out=tmp_path / "again", backbone=f"replay:{run.path.name}", until="week:1")
    monkeypatch.chdir(tmp_path)
    assert tw.Run.open("again").resume(until="week:8").digest() == run.digest()


def test_a_replay_gives_the_answers_to_one_request_in_their_order(run: tw.Run) -> None:
    made = replay(f"replay:{run.path}")
    from taskweave.records import Request, Sampling

    unknown = Request(
        prompt="dance", version=1, inputs={}, messages=(("user", "x"),), schema=None,
        sampling=Sampling(temperature=0.0, max_tokens=1), backbone=made.name,
    )  # fmt: skip
    with pytest.raises(Refused, match="nor any other of that step"):
        asyncio.run(made.complete(unknown))


def test_a_run_against_a_server_that_knows_only_plain_chat_needs_no_fallback(tmp_path: Path) -> None:
    with Plain() as server:
        made = tw.simulate("tiny", out=tmp_path / "run", backbone="openai:any", base_url=server.url, until="week:2", look=False)
    assert {call["rung"] for call in made.calls()} == {"plain"}
    assert not any(call["fallback"] for call in made.calls())
    assert server.dealt["no json_schema"] <= 16, "what is refused is learnt for the endpoint, not for a call"
