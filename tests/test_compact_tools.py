"""In the compact style a tool is chosen in two small questions, and what is wrong with either is asked again once and then left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taskweave.prompts import PromptBook
from taskweave.records import Request
from taskweave.shipped import shipped_prompts
from taskweave.simulation.answers import NO_TOOL
from taskweave.simulation.compact_tools import flat, unflattened
from taskweave.simulation.questions import example_of
from taskweave.tools.shelf import TOOLS
from tests.simulated import WORKSHOP, events, rows, simulated

SHOP = WORKSHOP.replace("count: 2,", "count: 2, tools: [sqlite, wiki, email],") + "tools: on\n"
PAGE = {"title": "Chairs", "text": "Forty are done."}


def once(tool: str) -> Any:
    """A stub that chooses this tool first, and then none."""
    return lambda request: {"tool": NO_TOOL if request.inputs["had"] else tool}


def ran(place: Path, **stubs: Any) -> Any:
    return simulated(place, SHOP, until="week:1", style="compact", stubs=stubs)


def test_a_tool_and_then_its_arguments_are_asked_each_in_a_question_of_its_own(tmp_path: Path) -> None:
    asked: list[Request] = []

    def page(request: Request) -> Any:
        asked.append(request)
        return PAGE

    run = ran(tmp_path / "run", execute_tool=once("wiki_write"), execute_tool_arguments=page)
    made = rows(run, "tool_calls")
    assert made
    assert all((call["tool"], call["arguments"]) == ("wiki_write", PAGE) for call in made)
    assert len(asked) == len(made)
    assert all(list(one.schema["properties"]) == ["title", "text"] for one in asked if one.schema is not None)
    assert not events(run, "fallback")
    assert run.verify().ok


def test_a_tool_without_arguments_is_not_asked_for_any(tmp_path: Path) -> None:
    run = ran(tmp_path / "run", execute_tool=once("wiki_list"))
    assert {call["tool"] for call in rows(run, "tool_calls")} == {"wiki_list"}
    assert rows(run, "calls", prompt="execute_tool_arguments") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"title": "Chairs"}, "text: Field required"),
        ({"title": "Chairs", "text": ""}, "text: String should have at least 1 character"),
        ({**PAGE, "author": "head"}, "author: Extra inputs are not permitted"),
        ({**PAGE, "text": "40 shelves in the children's room have no label yet. Whoever misses a book asks."}, "is the example's"),
        ({"title": example_of(PromptBook.load(shipped_prompts("compact"))["execute_tool_arguments"])["board"], "text": "x"}, "example's"),
    ],
    ids=["missing", "empty", "as another", "copied", "copied whole"],
)
def test_arguments_that_the_tool_does_not_take_are_asked_again_once_and_then_no_tool_is_used(
    tmp_path: Path, arguments: Any, said: str
) -> None:
    run = ran(tmp_path / "run", execute_tool=once("wiki_write"), execute_tool_arguments=lambda _: arguments)
    assert rows(run, "tool_calls") == []
    reasons = [row["reason"] for row in rows(run, "calls", prompt="execute_tool_arguments")]
    left = [event for event in events(run, "fallback") if "execute_tool_arguments wiki_write: no tool was used" in str(event["object"])]
    assert len(reasons) == 2 * len(left) > 0
    assert all(said in reason for reason in reasons), reasons[0]
    assert {result["quality"] for result in run.results()} == {"ok"}, "the deliverable is none the worse"
    assert run.verify().ok


def test_a_choice_that_is_no_answer_is_left_with_a_record(tmp_path: Path) -> None:
    run = ran(tmp_path / "run", execute_tool=lambda _: {"weather": 7})
    assert rows(run, "tool_calls") == []
    assert any("execute_tool: no tool was used" in str(event["object"]) for event in events(run, "fallback"))


def test_a_tool_that_is_not_there_is_not_used_and_said(tmp_path: Path) -> None:
    run = ran(tmp_path / "run", execute_tool=lambda _: {"tool": "crystal_ball"})
    assert rows(run, "tool_calls") == []
    assert any("'crystal_ball' is none of the tools; no tool was used" in str(event["object"]) for event in events(run, "fallback"))


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_the_arguments_of_every_tool_are_one_flat_object(tool: Any) -> None:
    schema = flat(tool.schema["properties"])
    assert list(schema["properties"]) == list(tool.schema["properties"]) == schema["required"]
    assert all(part["type"] in ("string", "integer", "number", "boolean") for part in schema["properties"].values())


def test_a_list_is_read_from_a_text_with_marks_between_its_items() -> None:
    parts = TOOLS["sheet_write"].schema["properties"]
    made = unflattened(parts, {"name": "Stock", "columns": "Article | Count", "rows": "Chair | 40; Table | 6"})
    assert made == {"name": "Stock", "columns": ["Article", "Count"], "rows": [["Chair", "40"], ["Table", "6"]]}
    assert unflattened(TOOLS["mail_send"].schema["properties"], {"to": "Ada Holm"}) == {"to": ["Ada Holm"]}
    assert TOOLS["sheet_write"].checked(made)


@pytest.mark.parametrize(("text", "value"), [("40", 40.0), ("-2.5", -2.5), ("forty", "forty"), ("1e9", "1e9"), ("4 0", "4 0")])
def test_a_cell_that_may_hold_a_number_gets_one_where_the_text_is_one(text: str, value: object) -> None:
    assert unflattened(TOOLS["sheet_set"].schema["properties"], {"cell": "B2", "value": text}) == {"cell": "B2", "value": value}


def test_a_run_in_small_questions_repeats_whatever_is_in_flight_and_wherever_it_stopped(tmp_path: Path) -> None:
    whole = simulated(tmp_path / "whole", SHOP, until="week:3", style="compact")
    narrow = simulated(tmp_path / "narrow", SHOP, until="week:3", style="compact", limit=1)
    parts = simulated(tmp_path / "parts", SHOP, until="week:1", style="compact").resume(until="week:3")
    assert whole.digest() == narrow.digest() == parts.digest()
    calls = rows(whole, "tool_calls")
    assert {call["tool"].partition("_")[0] for call in calls} == {"sql", "wiki", "mail"}
    assert all(call["outcome"]["ok"] for call in calls), [call for call in calls if not call["outcome"]["ok"]]
    assert not events(whole, "fallback")
