"""From a text to a value: reading, repairing, asking once more, falling back."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from taskweave.backbones.legible import legible
from taskweave.backbones.reading import Unusable, values
from taskweave.backbones.structured import Answered, ask, compact
from taskweave.cutting import tokens
from taskweave.records import Completion, Request, Sampling
from taskweave.simulation import answers

REQUEST = Request(
    prompt="roll_up",
    version=1,
    inputs={"date": "2026-01-05"},
    messages=(("system", "You are."), ("user", "Answer.")),
    schema={"type": "object"},
    sampling=Sampling(temperature=0.5, max_tokens=50),
    backbone="openai:some-model",
)
GOOD = '{"summary": "All is done.", "items": ["a", "b"]}'
SHAPED = replace(
    REQUEST,
    schema={"type": "object", "properties": {"summary": {"type": "string"}, "items": {"type": "array", "items": {"type": "string"}}}},
)


class Roll(BaseModel):
    summary: str
    items: list[str]


class Script:
    """A context that gives the answers it was made with."""

    def __init__(self, *answers: str | Completion) -> None:
        self.site, self.draw, self.ordinal, self.latency = "Y1@ceo:roll_up", 2, 4, 0.0  # look-ups went before
        self.answers, self.asked = list(answers), list[Request]()

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        self.ordinal, self.latency = self.ordinal + 1, 0.25
        answer = self.answers.pop(0)
        return Completion(text=answer) if isinstance(answer, str) else answer


def asked(script: Script, request: Request = REQUEST) -> Answered[Roll]:
    return asyncio.run(ask(script, request, Roll.model_validate, lambda: Roll(summary="fallback", items=[])))


def test_a_good_answer_is_read_and_booked() -> None:
    script = Script(Completion(text=GOOD, prompt_tokens=90, completion_tokens=12, cached_tokens=64))
    got = asked(script)
    assert (got.value.summary, got.quality, got.reason, got.origin) == ("All is done.", "ok", "", "model")
    (call,) = got.calls
    assert (call.site, call.ordinal, call.draw, call.prompt, call.backbone) == ("Y1@ceo:roll_up", 5, 2, "roll_up", "openai:some-model")
    assert (call.prompt_tokens, call.completion_tokens, call.cached_tokens, call.latency) == (90, 12, 64, 0.25)
    assert (call.rung, call.fallback, call.reason) == ("json_schema", False, "")


def test_tokens_are_counted_where_the_provider_reports_none() -> None:
    (call,) = asked(Script(GOOD)).calls
    assert call.prompt_tokens == REQUEST.tokens() == tokens("You are.") + tokens("Answer.") + tokens('{"type":"object"}')
    assert (call.completion_tokens, call.cached_tokens) == (tokens(GOOD), 0)


def test_the_scripted_stand_in_is_marked() -> None:
    assert asked(Script(GOOD), replace(REQUEST, backbone="scripted")).origin == "scripted"


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{GOOD}\n```",
        f"<think>A {{plan}} first.</think>\n{GOOD}",
        f"some thought without its opening</think>{GOOD}",
        f"Here it is:\n\n{GOOD}\n\nI hope {{this}} helps.",
        json.dumps({"summary": "All is done.", "items": ["a", "b"], "sql": "```sql\nSELECT 1\n```</think>"}),
    ],
)
def test_what_stands_around_the_object_is_passed_over(text: str) -> None:
    got = asked(Script(text))
    assert (got.value.items, got.quality) == (["a", "b"], "ok")


@pytest.mark.parametrize(
    "text",
    [
        "{'summary': 'All is done.', 'items': ['a', 'b']}",
        '{"summary": "All is done.", "items": ["a", "b",],}',
        '```json\n{"summary": "All is done." "items": ["a", "b"]}\n```',
        '{"summary": "All is "really" done.", "items": ["a", "b"]}',
        '{"summary": "All is done.", "items": ["a", "b"],} I hope this helps.',
        'Here: {"summary": "All is done.", "items": ["a", "b",]}\n```\nIt\'s "done".',
    ],
)
def test_malformed_json_is_repaired_and_that_is_said(text: str) -> None:
    script = Script(text)
    got = asked(script)
    assert (got.value.items, got.quality) == (["a", "b"], "repaired")
    assert "malformed" in got.reason
    assert len(script.asked) == 1


def test_a_bad_answer_is_asked_again_once_with_what_was_wrong() -> None:
    script = Script('{"summary": 7}', GOOD)
    got = asked(script)
    assert (got.value.summary, got.quality, got.origin) == ("All is done.", "repaired", "model")
    first, second = script.asked
    assert second.messages[: len(first.messages)] == first.messages
    (role, said), (other, error) = second.messages[len(first.messages) :]
    assert (role, said, other) == ("assistant", '{"summary": 7}', "user")
    assert "summary: Input should be a valid string" in error
    assert "items: Field required" in error
    assert replace(second, messages=first.messages) == first, "the inputs, schema and sampling stay"
    assert [(c.ordinal, c.fallback, bool(c.reason)) for c in got.calls] == [(5, False, True), (6, False, False)]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Completion(text='{"summary": "All", "items": ["a", "b"', finish="length"), "cut off at 50 tokens"),
        (Completion(text=GOOD, finish="length"), "cut off at 50 tokens"),
        ('{"summary": "All", "items": ["a", "b"', "stops before it is complete"),
        ('{"summary": "All", "items": ["a", {"b": "}', "stops before it is complete"),
        ('{"items": ["a"], "summary": {"b": 1}', "stops before it is complete"),
        (Completion(text=None), "empty"),
        ("  \n", "empty"),
        (Completion(text=None, refusal="I cannot."), "refused: I cannot."),
        (Completion(text=GOOD, refusal="I cannot."), "refused"),
        (Completion(text=None, finish="content_filter"), "content filter"),
        ("The weather is fine.", "no JSON object"),
        ("<think>I never stop {thinking", "no JSON object"),
        ("[1, 2]", "not a JSON object"),
        ("{}", "not JSON|not a JSON object"),
        ('{"summary": NaN, "items": []}', "summary"),
        ("[" * 90_000, "stops before it is complete"),
        ('{"a":' * 90_000 + "1" + "}" * 90_000, "not JSON"),
    ],
)
def test_a_reply_that_fails_twice_is_a_finding_not_a_crash(answer: str | Completion, reason: str) -> None:
    script = Script(answer, answer)
    got = asked(script)
    assert (got.value.summary, got.quality, got.origin) == ("fallback", "fallback", "fallback")
    assert len(script.asked) == 2
    assert [c.fallback for c in got.calls] == [False, True]
    assert re.search(reason, got.reason), got.reason
    assert got.calls[1].reason


def test_two_different_failures_are_both_told() -> None:
    got = asked(Script("Hello.", '{"summary": "s"}'))
    assert got.reason == "there is no JSON object in the answer; asked again: items: Field required"


def test_an_answer_to_an_empty_answer_keeps_roles_alternating() -> None:
    script = Script(Completion(text=None), GOOD)
    asked(script)
    assert [role for role, _ in script.asked[1].messages] == ["system", "user", "assistant", "user"]
    assert all(said for _, said in script.asked[1].messages)


def test_the_second_question_is_bounded() -> None:
    script = Script('{"summary": 1, "x": "' + "long " * 9000 + '"}', GOOD)
    asked(script)
    assert sum(tokens(said) for _, said in script.asked[1].messages) < 400


def test_half_characters_and_nul_never_reach_a_value() -> None:
    got = asked(Script(r'{"summary": "a\ud83d b\u0000c", "items": ["\ud83d\ude00"]}'))
    assert (got.value.summary, got.value.items) == ("a bc", ["😀"])


def test_an_error_is_compact() -> None:
    with pytest.raises(ValueError, match="items") as caught:
        Roll.model_validate({"summary": "s", "items": [1] * 50})
    said = compact(caught.value)
    assert said.startswith("items.0: Input should be a valid string; items.1:")
    assert said.endswith("… and 47 more")


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_is_read_or_unusable(before: str, after: str) -> None:
    for text in (before, before + GOOD[:30] + after, before + "{" + after + "}"):
        try:
            found = values(Completion(text=text), 50)
        except Unusable:
            continue
        assert all(isinstance(one.value, dict | list) for one in found)
        json.dumps([one.value for one in found], ensure_ascii=False).encode()


@given(st.integers(1, len(GOOD) - 1))
def test_no_beginning_of_an_answer_passes_for_the_whole(length: int) -> None:
    with pytest.raises(Unusable):
        values(Completion(text=GOOD[:length]), 50)


FIT = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")) | st.sampled_from("\t\n")).filter(lambda t: legible(t) == t)


@given(st.dictionaries(FIT, FIT | st.lists(FIT) | st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_what_is_json_is_read_as_it_is(value: dict[str, Any]) -> None:
    assert values(Completion(text=f"```json\n{json.dumps(value)}\n```"), 50) == [(value, "")]


@given(st.characters(categories=("Cc", "Cs")), st.booleans())
def test_no_value_holds_what_steers_a_terminal_or_is_half_a_character(character: str, beside: bool) -> None:
    said = json.dumps({"summary": f"a{character}b{character}", "items": ["é"] if beside else []})
    (found,) = values(Completion(text=said), 50)
    assert found.value["summary"] == ("ab" if character not in "\t\n\r" else f"a{character}b{character}".replace("\r", "\n"))


def test_a_value_that_code_changed_is_a_repaired_one() -> None:
    good = asked(Script(GOOD))
    assert good.with_value("same") == replace(good, value="same")
    changed = good.with_value("other", ["role 'Boss' is not eligible"])
    assert (changed.value, changed.quality, changed.notes) == ("other", "repaired", ("role 'Boss' is not eligible",))
    assert asked(Script("no", "no")).with_value("x", ["n"]).quality == "fallback"


def test_the_logical_request_tells_apart_all_that_an_outcome_depends_on_and_nothing_else() -> None:
    from dataclasses import replace

    from taskweave.records import Request, Sampling

    request = Request(
        prompt="p", version=1, inputs={}, messages=(("system", "s"), ("user", 'quoted "ü"')), schema={"b": 1, "a": [2]},
        sampling=Sampling(temperature=0.5, max_tokens=9), backbone="scripted", seed=7,
    )  # fmt: skip
    other = [
        replace(request, messages=(("system", "s"), ("user", 'quoted "u"'))),
        replace(request, messages=(("user", "s"), ("user", 'quoted "ü"'))),
        replace(request, messages=(("user", 'quoted "ü"'), ("system", "s"))),
        replace(request, messages=(("system", 's"]["user'), ("user", 'quoted "ü"'))),
        replace(request, schema={"b": 1, "a": [3]}),
        replace(request, schema=None),
        replace(request, sampling=Sampling(temperature=0.6, max_tokens=9)),
        replace(request, sampling=Sampling(temperature=0.5, max_tokens=8)),
        replace(request, backbone="openai:m"),
        replace(request, seed=8),
    ]
    assert len({request.logical(), *(changed.logical() for changed in other)}) == 1 + len(other)
    same = [
        replace(request, prompt="q"),
        replace(request, version=2),
        replace(request, inputs={"a": 1}),
        replace(request, schema={"a": [2], "b": 1}),
    ]
    assert {changed.logical() for changed in same} == {request.logical()}
    assert request.logical(request.text_digests()) == request.logical()


LAST = "of several JSON objects the last that fits was taken"


@pytest.mark.parametrize(
    ("text", "summary", "said"),
    [
        ('{"summary": "a", "items": []}', "a", ""),
        ('Here it is: {"summary": "a", "items": []} as asked [1]', "a", ""),
        ('{"summary": "a", "items": []}\nNo wait:\n{"summary": "b", "items": []}', "b", LAST),
        ('{"summary": "a", "items": []}\nHere I used {"tool": "none"}', "a", LAST),
        ('First {"draft": 1}, then {"summary": "b", "items": []}, and {"summary": "c"}', "b", LAST),
        ('{"summary": "a", "items": []} and then {"summary": "b", "items": [', "a", ""),
        ('[{"summary": "a", "items": []}]', "a", "an object was given within a list"),
        (
            '[{"summary": "a", "items": []}, {"summary": "b", "items": []}]',
            "b",
            "of several objects in a list the last that fits was taken",
        ),
        ('{"Summary": "a", "ITEMS": []}', "a", "summary: was written 'Summary'; items: was written 'ITEMS'"),
        ('{"answer": {"summary": "a", "items": []}}', "a", "answer: stood within 'answer'"),
        ('{"summary": {"text": "a", "more": ["b", 3]}, "items": []}', "text: a\nmore:\nb\n3", "summary: an object was given where text"),
        ('{"summary": ["a", "b"], "items": "one"}', "a\nb", "summary: a list was given where text was asked for"),
        ('{"summary":"a","items":[],}', "a", "the JSON was malformed and could be repaired"),
    ],
)
def test_what_a_model_meant_is_taken_and_what_was_changed_is_said(text: str, summary: str, said: str) -> None:
    got = asked(Script(text), SHAPED)
    assert got.value.summary == summary
    assert said in got.reason
    assert (got.quality == "ok") == (said == "" and not got.reason)
    assert len(got.calls) == 1


def test_a_list_stands_for_the_only_list_of_the_object_that_was_asked_for() -> None:
    schema = answers.decomposition(2, ("Backend Engineer",), (), ("implement",), 30.0)
    step = {
        "goal": "g",
        "activity": "implement",
        "role": "Backend Engineer",
        "hours": "about 4,5 h",
        "after": [],
        "need": "",
        "sources": [],
    }
    request = replace(REQUEST, schema=schema)
    for text in (json.dumps([step, step]), json.dumps({"subtasks": {"s1": step, "s2": step}})):
        got = asyncio.run(ask(Script(text), request, answers.Decomposition.model_validate, lambda: answers.Decomposition(subtasks=())))
        assert [(one.goal, one.hours) for one in got.value.subtasks] == [("g", 4.5), ("g", 4.5)]
        assert got.quality == "repaired"
        assert "'about 4,5 h' was taken as 4.5" in got.reason


def test_each_of_many_changes_is_said() -> None:
    schema = answers.decomposition(5, ("Backend Engineer",), (), ("implement",), 30.0)
    step = {"goal": "g", "activity": "implement", "role": "Backend Engineer", "after": [], "need": "", "sources": []}
    steps = [step | {"hours": f"about {n} h"} for n in range(1, 6)]
    request = replace(REQUEST, schema=schema)
    script = Script(json.dumps({"subtasks": steps}))
    got = asyncio.run(ask(script, request, answers.Decomposition.model_validate, lambda: answers.Decomposition(subtasks=())))
    assert all(f"'about {n} h' was taken as {n}" in got.reason for n in range(1, 6))


def test_a_word_in_another_case_or_that_is_not_offered_becomes_the_nearest_one() -> None:
    schema = answers.week_partition(1, ("analyse", "implement"), ("growth",))
    task = {
        "title": "T",
        "background": "",
        "description": "D",
        "activity": "Implement",
        "priority": "Very high",
        "goals": [],
        "constraints": "",
    }
    got = asyncio.run(
        ask(
            Script(json.dumps({"tasks": [task]})),
            replace(REQUEST, schema=schema),
            answers.WeekPartition.model_validate,
            lambda: answers.WeekPartition(tasks=()),
        )
    )
    assert got.value.tasks[0].priority == "high"
    assert "'Very high' is not a legal name here; 'high' was taken" in got.reason


def test_a_list_that_does_not_end_was_cut_off() -> None:
    with pytest.raises(Unusable, match="stops before it is complete"):
        values(Completion(text='[[{"plan":"x"}'), 9)


# ---------------------------------------------------------------- the rungs
def test_an_answer_without_form_is_asked_for_one_rung_lower_and_one_that_is_only_wrong_is_not() -> None:
    for bad, lowered in (("Hello.", 1), ("", 1), ('{"summary": 7}', 0), (Completion(text=None, refusal="No."), 0)):
        script = Script(bad, GOOD)
        assert asked(script, SHAPED).quality == "repaired"
        assert [request.lowered for request in script.asked] == [0, lowered]


def test_an_answer_that_was_cut_off_gets_more_room_the_second_time() -> None:
    script = Script(Completion(text=GOOD[:20], finish="length"), GOOD)
    assert asked(script, SHAPED).value.items == ["a", "b"]
    assert [request.sampling.max_tokens for request in script.asked] == [50, 100]


def test_the_rung_that_was_taken_is_booked() -> None:
    (call,) = asked(Script(Completion(text=GOOD, rung="json_object")), SHAPED).calls
    assert call.rung == "json_object"


TOO_LONG = Completion(text=None, finish="overflow")


def shrunk(script: Script, *, steps: int = 9) -> Answered[Roll]:
    def shrink(halvings: int) -> Request:
        return replace(SHAPED, messages=(("user", "x" * (100 >> min(halvings, steps))),))

    return asyncio.run(ask(script, SHAPED, Roll.model_validate, lambda: Roll(summary="fallback", items=[]), shrink))


def test_a_prompt_that_is_too_long_is_cut_and_asked_again_beside_the_one_try_for_a_bad_answer() -> None:
    script = Script(TOO_LONG, TOO_LONG, "Hello.", GOOD)
    got = shrunk(script)
    assert (got.quality, got.value.items) == ("repaired", ["a", "b"])
    assert got.reason == "the prompt is longer than the model can take; there is no JSON object in the answer"
    assert [len(request.messages[0][1]) for request in script.asked] == [8, 50, 25, 25]
    assert script.asked[3].messages[0] == script.asked[2].messages[0], "the second try rests on the cut prompt"


def test_a_prompt_that_stays_too_long_is_a_fallback() -> None:
    assert shrunk(Script(TOO_LONG, TOO_LONG, TOO_LONG)).quality == "fallback"
    script = Script(TOO_LONG, TOO_LONG)
    got = shrunk(script, steps=1)  # nothing more to cut
    assert (got.quality, len(script.asked)) == ("fallback", 2)
    assert [call.fallback for call in got.calls] == [False, True]
