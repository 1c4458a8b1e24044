"""The answers' classes, and the schemas that calls ask for."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from taskweave.simulation import answers
from tests.loopback import instance

GOALS, ACTIVITIES = ("retention", "growth"), ("analyse", "write")
SCHEMAS: dict[type[BaseModel], dict[str, Any]] = {
    answers.Formulation: answers.formulation(),
    answers.Partition: answers.partition(("ada", "bo"), GOALS),
    answers.WeekPartition: answers.week_partition(3, ACTIVITIES, GOALS),
    answers.Decomposition: answers.decomposition(3, ("Writer",), ("w/t1",), ACTIVITIES, 12.0),
    answers.Deliverable: answers.deliverable(("report", "e-mail")),
    answers.Merged: answers.merged(),
    answers.Diagnosis: answers.diagnosis(),
    answers.Alignment: answers.alignment(),
    answers.Reconciliation: answers.reconciliation(("ada",)),
    answers.RollUp: answers.roll_up(),
    answers.Response: answers.response(1, ACTIVITIES, ()),
}
STRICT = {"type", "properties", "required", "additionalProperties", "items", "enum", "minItems", "maxItems", "minimum", "maximum"}


def parts(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for part in schema.get("properties", {}).values():
        yield from parts(part)
    if "items" in schema:
        yield from parts(schema["items"])


@pytest.mark.parametrize("answer", SCHEMAS, ids=lambda a: a.__name__)
def test_schemas_keep_to_what_strict_mode_takes(answer: type[BaseModel]) -> None:
    for part in parts(SCHEMAS[answer]):
        assert set(part) <= STRICT
        if part["type"] == "object":
            assert part["required"] == list(part["properties"])
            assert part["additionalProperties"] is False
        assert part.get("enum", ["some"]), "an empty enum allows nothing"


@pytest.mark.parametrize("answer", SCHEMAS, ids=lambda a: a.__name__)
def test_whatever_the_schema_allows_is_a_valid_answer(answer: type[BaseModel]) -> None:
    for seed in range(30):
        drawn = instance(SCHEMAS[answer], random.Random(seed), ["one", "two", "three"])
        assert set(drawn) == set(answer.model_fields)
        answer.model_validate(json.loads(json.dumps(drawn)))


def test_counts_and_legal_names_are_put_into_the_schema() -> None:
    week = answers.week_partition(3, ACTIVITIES, GOALS)["properties"]["tasks"]
    assert (week["minItems"], week["maxItems"]) == (3, 3)
    assert week["items"]["properties"]["activity"]["enum"] == ["analyse", "write"]
    assert week["items"]["properties"]["goals"]["items"]["enum"] == ["retention", "growth"]
    subtask = answers.decomposition(3, ("Writer",), ("w/t1",), ACTIVITIES, 12.0)["properties"]["subtasks"]["items"]["properties"]
    assert subtask["after"]["items"]["enum"] == ["s1", "s2", "w/t1"]
    assert subtask["role"]["enum"] == ["Writer"]
    assert subtask["hours"]["maximum"] == 12.0
    objectives = answers.partition(("ada", "bo"), ())["properties"]["objectives"]
    assert objectives["minItems"] == 2
    assert objectives["items"]["properties"]["goals"] == {"type": "array", "items": {"type": "string"}, "maxItems": 0}


def test_more_names_than_a_provider_takes_become_a_plain_string() -> None:
    schema = answers.decomposition(1, tuple(f"Role {n}" for n in range(300)), (), ACTIVITIES)
    assert schema["properties"]["subtasks"]["items"]["properties"]["role"] == {"type": "string"}


def test_a_schema_is_built_once() -> None:
    assert answers.week_partition(3, ACTIVITIES, GOALS) is answers.week_partition(3, ACTIVITIES, GOALS)


TASK = {"title": "T", "background": "", "description": "D", "activity": "write", "priority": "Urgent", "goals": None, "constraints": None}


def test_small_slips_of_a_model_are_read_as_meant() -> None:
    task = answers.WeekPartition.model_validate({"tasks": [TASK], "comment": "more than asked"}).tasks[0]
    assert (task.priority, task.goals, task.constraints) == ("high", (), "")
    assert answers.Formulation.model_validate({"plan": " P ", "focus": "one", "risks": ["", "r"]}).focus == ("one",)
    assert task.spec().title == "T"


@pytest.mark.parametrize("wrong", [{"title": "  "}, {"priority": "whenever"}, {"goals": [1]}, {"description": None}])
def test_what_says_nothing_is_no_answer(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        answers.ProposedTask.model_validate(TASK | wrong)


@pytest.mark.parametrize("hours", [0, -1, float("nan"), float("inf"), "some"])
def test_hours_are_a_number_above_zero(hours: Any) -> None:
    subtask = {"goal": "G", "activity": "write", "role": "Writer", "hours": hours, "after": [], "need": "", "sources": ["pool", "web"]}
    with pytest.raises(ValidationError):
        answers.ProposedSubtask.model_validate(subtask)
    assert answers.ProposedSubtask.model_validate(subtask | {"hours": "2.5"}).sources == ("pool",)


def test_an_answer_cannot_be_changed() -> None:
    answer = answers.RollUp(summary="s")
    with pytest.raises(ValidationError):
        answer.summary = "other"  # type: ignore[misc]
