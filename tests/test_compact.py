"""`--style compact`: small questions, composed into the answers of the steps, each filled in its place where it is not answered."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import taskweave.driving as driving
from taskweave.api import Run, simulate
from taskweave.backbones.scripted import INPUTS, STEPS, TOOL, Scripted, small
from taskweave.errors import Divergence, PromptInvalid
from taskweave.given import prompt_folders
from taskweave.prompts import PromptBook
from taskweave.records import Json, Request
from taskweave.rehearsal import first_request
from taskweave.shipped import shipped_prompts
from taskweave.simulation import compact, small_answers
from taskweave.simulation.answers import Answer
from taskweave.simulation.small_texts import is_copy, without_repeats
from tests.compact_samples import asked, asked_for_tools
from tests.simulated import events, rows, simulated

BOOK = PromptBook.load(shipped_prompts("compact"))
IDS = [prompt.id for prompt in BOOK]
CHOICES = ("goal", "activity", "role", "after", "to", "tool")
ARGUMENTS = "execute_tool_arguments"  # as many fields as the tool has, of the types that it takes
LONGER = {"execute": 700, "merge": 620, "partition_week": 500, "diagnose": 480, "respond_task": 480}  # tokens; all others 450
LONGER |= {"execute_tool": 500, ARGUMENTS: 520}


@pytest.fixture(scope="module")
def requests(tmp_path_factory: pytest.TempPathFactory) -> list[Request]:
    """What is asked in the first month of tiny, which chooses its roles, and of company_a, each with a grave incident."""
    place = tmp_path_factory.mktemp("asked")
    return asked(place / "tiny", "tiny", "model") + asked(place / "a", "company_a", "match") + asked_for_tools(place / "tools")


def is_decision(schema: Mapping[str, Json]) -> bool:
    return any("enum" in field for field in schema["properties"].values())


def fits(schema: Mapping[str, Json], value: Json) -> bool:
    """Whether a value is valid against one of the small schemas, which are flat objects of strings."""
    if not isinstance(value, dict) or value.keys() != schema["properties"].keys() or list(schema["required"]) != list(schema["properties"]):
        return False
    for name, field in schema["properties"].items():
        text = value[name]
        if field["type"] in ("integer", "boolean"):
            continue
        if field["type"] != "string" or not isinstance(text, str) or text not in field.get("enum", [text]):
            return False
        if not field.get("minLength", 0) <= len(text) <= field.get("maxLength", 10**6):
            return False
    return True


# ---------------------------------------------------------------- the questions
def test_every_question_is_asked_and_has_its_prompt(requests: list[Request]) -> None:
    assert sorted({request.prompt for request in requests}) == IDS == sorted(small.QUESTIONS)
    assert sorted(compact.STEPS) == sorted([*STEPS, TOOL])
    steps = sorted(STEPS, key=len)
    assert [prompt for prompt in IDS if not any(prompt == step or prompt.startswith(f"{step}_") for step in steps)] == []


def test_no_call_has_more_than_three_fields_and_one_decision(requests: list[Request]) -> None:
    for request in requests:
        assert request.schema is not None
        if request.prompt == ARGUMENTS:
            assert [one["name"] for one in request.inputs["tool"]["arguments"]] == list(request.schema["properties"])
            continue
        assert 1 <= len(request.schema["properties"]) <= 3
        assert not is_decision(request.schema) or len(request.schema["properties"]) == 1, request.prompt


def test_every_text_has_a_length_for_which_the_answer_has_room(requests: list[Request]) -> None:
    for request in requests:
        assert request.schema is not None
        texts = [field for field in request.schema["properties"].values() if "enum" not in field and field["type"] == "string"]
        least = 0 if request.prompt == ARGUMENTS else 1
        assert all(least <= field["minLength"] < field["maxLength"] for field in texts), request.prompt
        assert sum(field["maxLength"] for field in texts) / 2.5 < request.sampling.max_tokens, request.prompt
        assert request.sampling.temperature <= 0.4


def test_each_prompt_names_an_answer_and_shows_it_by_example() -> None:
    for prompt in BOOK:
        kind = getattr(small_answers, prompt.schema)
        assert issubclass(kind, Answer)
        roles = [role for role, _, _ in prompt.parts]
        assert roles == ["system", "user", "assistant", "user"]
        shown = json.loads(prompt.parts[2][1][0].template.render())
        assert prompt.id == ARGUMENTS or shown.keys() == kind.model_fields.keys()
        kind.model_validate(shown)
        if prompt.id != ARGUMENTS and (not any(name in CHOICES for name in shown) or prompt.id == "decompose"):
            assert fits(small_answers.texts(*shown), shown), prompt.id


def test_prompts_stay_small(requests: list[Request]) -> None:
    for request in requests:
        assert request.tokens() <= LONGER.get(request.prompt, 450), (request.prompt, request.tokens())


def test_the_choice_is_among_what_the_prompt_shows(requests: list[Request]) -> None:
    decisions = [one for one in requests if one.schema is not None and is_decision(one.schema) and one.prompt != ARGUMENTS]
    assert {next(iter(request.schema["properties"])) for request in decisions if request.schema} == set(CHOICES)
    for request in decisions:
        assert request.schema is not None
        ((_, field),) = request.schema["properties"].items()
        assert len(field["enum"]) <= compact.OPTIONS + 1
        assert [name for name in field["enum"] if name not in request.messages[-1][1]] == [], request.prompt


def test_no_small_question_reads_as_a_whole_step() -> None:
    for prompt in BOOK:
        whole_only = INPUTS.get(prompt.id, frozenset(["nothing"])) - small.INPUTS[prompt.id]
        assert whole_only
        assert not prompt.variables & whole_only, prompt.id
        assert prompt.variables >= small.INPUTS[prompt.id], prompt.id


def test_the_scripted_backbone_answers_each_within_its_schema(requests: list[Request]) -> None:
    scripted = Scripted()
    for request in requests:
        assert request.schema is not None
        answer = scripted.answer(request)
        assert fits(request.schema, answer), (request.prompt, answer)


def test_the_samples_are_inputs_of_every_question() -> None:
    samples = json.loads((shipped_prompts("compact") / "samples.json").read_text(encoding="utf-8"))
    assert sorted(samples["steps"]) == IDS
    assert all({"organization", *one} == BOOK[prompt].variables for prompt, inputs in samples["steps"].items() for one in inputs)
    BOOK.try_out(shipped_prompts("compact"))


# ---------------------------------------------------------------- a run
def nonsense(request: Request) -> Json:
    """Of three requests one is answered by something else than was asked."""
    mark = int(request.schema_digest() or "0", 16) ^ int(request.text_digests()[-1], 16)
    if mark % 3:
        return Scripted().answer(request)
    return [{"content": " "}, {"plan": 7}, {"answer": "yes"}, "no", {"goal": ["growth"], "to": None}][mark // 3 % 5]


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A month of tiny with nonsense for a third of the answers."""
    place = tmp_path_factory.mktemp("bad") / "run"
    stubs = dict.fromkeys(IDS, nonsense)
    return simulated(place, "tiny", until="month:1", stubs=stubs, style="compact", assign="model")


def test_a_scripted_run_ends_without_a_fallback_and_writes_its_own_prompts(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "tiny", until="month:1", style="compact")
    assert run.finished
    assert run.config.style == "compact"
    assert events(run, "fallback") == []
    assert {result["quality"] for result in run.results()} == {"ok"}
    assert sorted(path.stem for path in (tmp_path / "run" / "prompts").iterdir()) == IDS
    composites = rows(run, "tasks", kind="composite")
    assert len({task["title"] for task in composites}) == len(composites)
    assert {goal for task in composites for goal in task["goals"]} == {"growth", "delivery"}
    assert len({task["activity"] for task in composites}) > 2
    assert any(use["how"] == "explicit" and use["kind"] == "result" for use in run.table("uses"))


def test_the_digest_does_not_depend_on_how_many_calls_are_in_flight(tmp_path: Path) -> None:
    digests = {simulated(tmp_path / str(limit), until="week:3", style="compact", limit=limit).digest() for limit in (1, 32)}
    assert len(digests) == 1
    assert simulated(tmp_path / "full", until="week:3").digest() not in digests


def test_a_run_is_resumed_in_its_style(tmp_path: Path) -> None:
    whole = simulated(tmp_path / "whole", until="week:3", style="compact")
    part = simulated(tmp_path / "part", until="week:1", style="compact").resume(until="week:3")
    assert part.digest() == whole.digest()
    again = Run.open(tmp_path / "part").resume()
    assert again.digest() == whole.digest()


def test_a_style_edited_in_the_run_folder_is_named(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1", style="compact")
    config = tmp_path / "run" / "config.json"
    config.write_text(config.read_text().replace('"compact"', '"full"'))
    with pytest.raises(Divergence, match=r"config\.json: style"):
        Run.open(run.path).resume(until="week:2")


def test_with_nonsense_for_a_third_of_the_answers_every_structure_is_valid(bad: Run) -> None:
    assert bad.finished
    org = driving.Organization.load("tiny")
    composites = rows(bad, "tasks", kind="composite")
    assert composites
    assert all(task["title"].strip() and task["activity"] in org.activities and set(task["goals"]) <= set(org.goals) for task in composites)
    subtasks = bad.table("subtasks")
    assert subtasks
    assert all(subtask["goal"].strip() and subtask["role"] in org.roles and subtask["hours"] > 0 for subtask in subtasks)
    assert all(result["title"].strip() and result["content"].strip() for result in bad.results())
    assert all(state["plan"].strip() for state in bad.table("states"))


def test_each_fallback_says_which_question_it_was_and_why(bad: Run) -> None:
    said = [event["object"] for event in events(bad, "fallback")]
    assert [note for note in said if note.startswith("decompose ") and " was filled by code: " in note]
    questions = {prompt for prompt in IDS if any(note.startswith(f"{prompt} ") and " was filled by code: " in note for note in said)}
    failed = {row["prompt"] for row in bad.table("calls") if row["fallback"]}
    assert questions == failed
    assert len(failed) > 5
    share = sum(row["fallback"] for row in bad.table("calls")) / len(bad.table("calls"))
    assert 0 < share < 0.34
    assert {result["origin"] for result in bad.results() if result["quality"] == "fallback"} == {"fallback"}


def answering(prompt: str, item: int, value: Json) -> dict[str, Any]:
    """A stub for the `item`-th question (from 1) of each work by that prompt: `value`; else what the scripted backbone says."""

    def stub(request: Request) -> Json:
        inputs = request.inputs
        at = inputs.get("number") or len([title for title in inputs["titles"] if title != MARK]) + 1
        return value if at == item else Scripted().answer(request)

    return {prompt: stub}


MARK = "of last week"


def test_a_subtask_that_is_not_answered_is_filled_in_its_place(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1", style="compact", stubs=answering("decompose", 2, {"goal": ""}))
    for task in rows(run, "tasks", kind="composite"):
        subtasks = rows(run, "subtasks", task=task["id"])
        filled = [subtask["goal"] == f"{task['title']}: the part of the {subtask['role']}" for subtask in subtasks]
        assert filled == [number == 1 for number in range(len(subtasks))]
    assert [event["object"] for event in events(run, "fallback") if event["object"].startswith("decompose s2 was filled by code: goal")]


def test_a_task_that_is_not_answered_is_filled_in_its_place(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1", style="compact", stubs=answering("partition_week", 2, {"title": "x"}))
    first, second, *_ = rows(run, "tasks", kind="composite")
    assert not first["title"].startswith("Joiner: ")
    assert second["title"].startswith(("Joiner: ", "Head: "))
    assert second["goals"] == []
    assert any(event["object"].startswith("partition_week 2 was filled by code: ") for event in events(run, "fallback"))


def test_titles_and_goals_that_are_taken_are_made_unlike_and_that_is_said(tmp_path: Path) -> None:
    task = {"title": "Repair chairs", "background": "They wait.", "description": "The chairs are repaired and checked."}
    stubs = {"partition_week": lambda _: task, "decompose": lambda _: {"goal": "Glue the legs of the chairs."}}
    run = simulated(tmp_path / "run", until="week:2", style="compact", stubs=stubs)
    titles = [row["title"] for row in rows(run, "tasks", kind="composite")]
    assert len({title.casefold() for title in titles}) == len(titles) > 3
    assert all(title.startswith("Repair chairs") for title in titles)
    assert "Repair chairs (Joiner)" in titles
    goals = [row["goal"] for row in rows(run, "subtasks") if row["task"] == rows(run, "tasks", kind="composite")[0]["id"]]
    assert goals[:2] == ["Glue the legs of the chairs.", "Glue the legs of the chairs, as the Joiner"]
    said = [event["object"] for event in events(run, "repair")]
    assert any("the title 'Repair chairs' is taken" in note for note in said)
    assert any("its goal was that of an earlier subtask" in note for note in said)


def test_what_a_text_says_again_and_again_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    circle = "We repair chairs. " + "We count the chairs that are not repaired. " * 8
    run = simulated(tmp_path / "run", until="week:1", style="compact", stubs={"formulate": lambda _: {"plan": circle}})
    plans = {state["plan"] for state in run.table("states") if "@" in state["id"] and state["revision"] == 1}
    assert "We repair chairs. We count the chairs that are not repaired." in plans
    assert circle not in plans
    assert any("formulate: what plan said again was left out" in event["object"] for event in events(run, "repair"))


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("One. Two. One! One. Three.", "One. Two. Three."),
        ("One. Two. One! Three.", "One. Two. One! Three."),
        ("- a b\n- c d.\n\nNext: x.", "- a b\n- c d.\n\nNext: x."),
        ("Late are 3" + " of the messages that are late" * 20, "Late are 3 of the messages that are late"),
    ],
)
def test_a_text_is_left_as_it_is_where_it_says_nothing_again(text: str, left: str) -> None:
    assert without_repeats(text) == left


def test_whoever_is_asked_hears_it_at_the_next_opening(tmp_path: Path) -> None:
    heard: list[Request] = []

    def formulate(request: Request) -> Json:
        heard.append(request)
        return Scripted().answer(request)

    stubs = {
        "formulate": formulate,
        "reconcile_whom": lambda request: {"to": request.inputs["others"][0]["owner"]},
        "reconcile_request": lambda request: {"text": f"Tell us by Friday what the {request.inputs['other']['title']} needs."},
    }
    simulated(tmp_path / "run", "company_a", until="week:2", style="compact", stubs=stubs)
    texts = [asked_for["text"] for request in heard for asked_for in request.inputs["requests"]]
    assert texts
    assert all(text.startswith("Tell us by Friday") for text in texts)


# ---------------------------------------------------------------- choosing it, and own prompts
def test_the_scripted_backbone_is_asked_whole_steps_unless_told_otherwise(tmp_path: Path) -> None:
    assert simulated(tmp_path / "run", until="week:1").config.style == "full"
    assert simulated(tmp_path / "compact", until="week:1", style="compact").config.style == "compact"


def own(folder: Path, style: Any = "compact", note: str = "Be brief.") -> Path:
    """A folder with an own merge prompt of a style."""
    folder.mkdir(parents=True)
    file = shipped_prompts(style) / "merge.md"
    (folder / "merge.md").write_text(
        file.read_text(encoding="utf-8").replace("Short, concrete", f"{note} Short, concrete"), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize("inside", ["", "compact"])
def test_own_prompts_of_the_style_lie_in_the_folder_or_in_its_folder_compact(tmp_path: Path, inside: str) -> None:
    own(tmp_path / "mine" / inside)
    if inside:
        shutil.copy(shipped_prompts("full") / "align.md", tmp_path / "mine")  # for the other style
    run = simulate("tiny", out=tmp_path / "run", prompts=[tmp_path / "mine"], until="week:1", style="compact")
    assert "Be brief." in (run.path / "prompts" / "merge.md").read_text(encoding="utf-8")
    assert prompt_folders([tmp_path / "mine"], "compact")[1] == tmp_path / "mine" / inside
    assert prompt_folders([], "full") == [shipped_prompts("full")]


def test_a_whole_steps_prompt_is_refused_where_small_ones_are_needed(tmp_path: Path) -> None:
    own(tmp_path / "mine", "full")
    with pytest.raises(PromptInvalid, match=r"merge\.md: schema is 'Merged', but the step 'merge' reads a 'Document'"):
        simulate("tiny", out=tmp_path / "run", prompts=[tmp_path / "mine"], until="week:1", style="compact")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("step", ["execute", "decompose_role", "respond_task"])
def test_a_small_question_is_shown_before_any_run(step: str) -> None:
    shown = first_request(driving.Organization.load("tiny"), step, prompts=None, seed=1, style="compact")
    assert [message.role for message in shown.messages] == ["system", "user", "assistant", "user"]


def test_a_style_is_not_written_into_what_is_asked(requests: list[Request]) -> None:
    def said(request: Request) -> Iterator[str]:
        yield from (text for _, text in request.messages)

    assert not any("compact" in text.casefold() for request in requests for text in said(request))


def test_an_example_given_back_is_no_answer_and_its_title_is_replaced(tmp_path: Path) -> None:
    example = {prompt.id: json.loads(prompt.demonstrations()[-1][1]) for prompt in BOOK}
    title = example["execute"]["title"]
    stubs = {
        "decompose": lambda _: example["decompose"],
        "execute": lambda request: {**Scripted().answer(request), "title": title},
        "partition_week": lambda request: {**Scripted().answer(request), "title": example["partition_week"]["title"]},
    }
    run = simulated(tmp_path / "run", until="week:1", style="compact", stubs=stubs)
    assert all(": the part of the " in subtask["goal"] for subtask in run.table("subtasks"))
    assert any("goal is the example's" in event["object"] for event in events(run, "fallback"))
    titles = {row["title"] for row in rows(run, "tasks", kind="composite")}
    assert titles
    assert not any(title.startswith(example["partition_week"]["title"]) for title in titles)
    assert any("partition_week 1: its title was the example's" in event["object"] for event in events(run, "repair"))
    partials = [result for result in run.results() if result["subtask"] is not None]
    assert partials
    assert {result["quality"] for result in partials} == {"repaired"}
    assert title not in {result["title"] for result in partials}


def test_each_item_is_marked_for_its_own_text_and_a_decision_of_code_changes_none(tmp_path: Path) -> None:
    spoilt: list[str] = []

    def stub(prompt: str) -> Callable[[Request], Any]:
        def answered(request: Request) -> Any:
            bad = prompt == "decompose_after" or request.inputs["number"] == 2
            spoilt.append(prompt)
            return "nonsense" if bad else Scripted().answer(request)

        return answered

    run = simulated(
        tmp_path / "run", until="week:1", style="compact", stubs={name: stub(name) for name in ("decompose", "decompose_after")}
    )
    assert set(spoilt) == {"decompose", "decompose_after"}
    marks = {(subtask["id"].rpartition("/s")[2], subtask["quality"], subtask["origin"]) for subtask in run.subtasks()}
    assert {mark for mark in marks if mark[0] == "2"} == {("2", "fallback", "fallback")}
    assert {quality for number, quality, _ in marks if number != "2"} <= {"ok", "repaired"}
    fallen = {call["prompt"] for call in run.calls() if call["fallback"]}
    assert fallen == {"decompose", "decompose_after"}, "that code decided is counted all the same"


def test_an_example_given_back_with_a_few_words_changed_is_a_copy() -> None:
    example = "Write the words of the 40 labels so that children of six can read them."
    begun = "Write the words of the 40 labels so that children can see how to make a difference in the world, and what it takes."
    told = f"The next part of the work of the team is to write the words of the 40 labels so that {'and so on, ' * 20}"
    taught = f"{example[:-1]} and their teachers too, in three languages."
    for text in (example, example.upper(), example.replace(" of six", ""), taught, begun, told):
        assert is_copy(text, example), text
    for text in ("Write the words of the reminder so that patients can confirm by text message.", "Count the labels.", ""):
        assert not is_copy(text, example), text
    assert not is_copy("Reading hour", "Reading room")
