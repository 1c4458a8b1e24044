"""A tool is chosen by a native call where an endpoint has it, else down the ladder; however the call is written, one place reads it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskweave.api import Run, simulate
from taskweave.backbones import calling
from taskweave.backbones.dialect import Dialect, Trouble
from taskweave.backbones.openai import OpenAI
from taskweave.backbones.scripted import Scripted
from taskweave.driving import Organization
from taskweave.engine.reader import JournalReader
from taskweave.records import Completion, Request, Sampling
from taskweave.simulation.answers import ToolChoice, tool_choice
from taskweave.tools.shelf import granted
from tests.loopback import Loopback
from tests.simulated import WORKSHOP, events, rows

SHOP = WORKSHOP.replace("count: 2,", "count: 2, tools: [sqlite, wiki, email],") + "tools: on\n"
TOOLS = granted(["wiki", "email"])
REQUEST = Request(
    prompt="execute_tool", version=1, inputs={}, messages=(("system", "You are."), ("user", "Choose.")), schema=tool_choice(TOOLS),
    sampling=Sampling(temperature=0.5, max_tokens=500), backbone="openai:any", seed=7,
)  # fmt: skip
PAGE = {"title": "Chairs", "text": "Forty are done."}
CHOSEN = {"call": {"tool": "wiki_write", "arguments": PAGE}}


class Saying(Loopback):
    """A server that answers every choice of a tool with the same message, and all else well."""

    def __init__(self, message: dict[str, Any], finish: str = "stop", **more: Any) -> None:
        super().__init__(**more)
        self._said, self._finish = message, finish

    def completion(self, request: dict[str, Any], fault: int | str | bytes | None) -> dict[str, Any]:
        answer = super().completion(request, fault)
        schema = request.get("response_format", {}).get("json_schema", {})
        if fault is None and ("tools" in request or schema.get("name") == "execute_tool"):
            answer["choices"][0] |= {"message": {"role": "assistant", "content": None, **self._said}, "finish_reason": self._finish}
        return answer


def called(name: str | None, arguments: Any, *more: tuple[str, Any]) -> dict[str, Any]:
    """A message with native calls."""
    calls = [(name, arguments), *more]
    return {"tool_calls": [{"id": f"c{n}", "type": "function", "function": {"name": f, "arguments": a}} for n, (f, a) in enumerate(calls)]}


def completed(server: Loopback, *requests: Request) -> list[Completion]:
    async def ask() -> list[Completion]:
        backbone = OpenAI("any", server.url)
        try:
            return [await backbone.complete(request) for request in requests]
        finally:
            await backbone.close()

    return asyncio.run(ask())


# ---------------------------------------------------------------- what is sent
def test_a_choice_of_a_tool_is_sent_as_native_tools_of_which_one_must_be_called() -> None:
    body = Dialect().wire("any", REQUEST).body
    assert [one["function"]["name"] for one in body["tools"]] == [*(tool.name for tool in TOOLS), "none"]
    assert "response_format" not in body
    assert (body["tool_choice"], body["parallel_tool_calls"]) == ("required", False)
    for sent, tool in zip(body["tools"], TOOLS, strict=False):
        own = tool.for_openai()
        assert sent == own | {"function": own["function"] | {"description": tool.summary}}


def test_a_schema_that_is_no_choice_is_never_sent_as_tools() -> None:
    schema = {"type": "object", "properties": {"call": {"type": "string"}}, "required": ["call"], "additionalProperties": False}
    assert "tools" not in Dialect().wire("any", replace(REQUEST, schema=schema)).body
    assert "tools" not in Dialect().wire("any", replace(REQUEST, schema=None)).body


def test_names_that_no_endpoint_takes_for_functions_go_down_the_ladder() -> None:
    schema = calling.choice([calling.Function("remote.look up", "Look it up.", {"type": "object", "properties": {}})])
    wire = Dialect().wire("any", replace(REQUEST, schema=schema))
    assert (wire.rung, "tools" in wire.body) == ("json_schema", False)


def test_the_rungs_of_a_choice_are_tools_then_those_of_every_answer() -> None:
    dialect = Dialect()
    lowered = [replace(REQUEST, lowered=by) for by in range(4)]
    assert [dialect.wire("any", one).rung for one in lowered] == ["tools", "json_schema", "json_object", "plain"]
    assert dialect.learn(Trouble(status=400, words="does not support tools"), dialect.wire("any", REQUEST).body)
    assert [dialect.wire("any", one).rung for one in lowered] == ["json_schema", "json_object", "plain", "plain"]


@pytest.mark.parametrize(
    ("status", "words", "parameter", "gone", "rung"),
    [
        (400, "registry.ollama.ai/library/gemma does not support tools", "", "tools", "json_schema"),
        (500, "tools param requires --jinja flag", "", "tools", "json_schema"),
        (404, "No endpoints found that support tool use.", "", "tools", "json_schema"),
        (400, "Unrecognized request argument supplied: tools", "tools", "tools", "json_schema"),
        (422, "Unknown parameter: 'parallel_tool_calls'.", "parallel_tool_calls", "parallel_tool_calls", "tools"),
        (400, 'tool_choice "required" is not supported', "tool_choice", '"tool_choice": "required"', "tools"),
        (400, "'maxLength' is not permitted in tools[0].function.parameters", "", "maxLength", "tools"),
    ],
)
def test_what_an_endpoint_refuses_of_native_calls_is_left_out_for_all_later_ones(
    status: int, words: str, parameter: str, gone: str, rung: str
) -> None:
    dialect = Dialect()
    before = dialect.wire("any", REQUEST).body
    assert gone in json.dumps(before)
    assert dialect.learn(Trouble(status=status, words=words, parameter=parameter), before)
    after = dialect.wire("any", REQUEST)
    assert after.rung == rung
    assert rung != "tools" or gone not in json.dumps(after.body)
    assert after.body.get("tool_choice") in (None, "required" if "tool_choice" not in gone else "auto")


def test_a_server_that_wants_a_parser_for_auto_is_asked_without_tools() -> None:
    dialect = Dialect()
    for words in ("tool_choice 'required' is not supported", '"auto" tool choice requires --enable-auto-tool-choice to be set'):
        assert dialect.learn(Trouble(status=400, words=words), dialect.wire("any", REQUEST).body)
    assert dialect.wire("any", REQUEST).rung == "json_schema"


def test_a_model_that_is_not_there_is_no_refusal_of_tools() -> None:
    body = Dialect().wire("any", REQUEST).body
    assert not Dialect().learn(Trouble(status=404, words="The model `best-tools` does not exist"), body)


def test_a_refusal_of_tools_says_nothing_of_other_answers() -> None:
    other = replace(REQUEST, schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    with Loopback(faults=["tools"]) as server:
        first, second, third = completed(server, REQUEST, REQUEST, other)
    assert [one.rung for one in (first, second, third)] == ["json_schema"] * 3
    assert len(server.requests) == 4, "the second call knows what the first has learnt"


# ---------------------------------------------------------------- what is read
def test_a_native_call_is_kept_as_the_choice_in_canonical_json() -> None:
    with Saying(called("wiki_write", json.dumps(PAGE, indent=2)), finish="tool_calls") as server:
        (got,) = completed(server, REQUEST)
    assert got.text == '{"call":{"arguments":{"text":"Forty are done.","title":"Chairs"},"tool":"wiki_write"}}'
    assert (got.rung, got.finish) == ("tools", "tool_calls")


def test_a_native_call_that_was_cut_off_is_no_answer() -> None:
    with Saying(called("wiki_write", '{"title": "Cha'), finish="length") as server:
        (got,) = completed(server, REQUEST)
    assert got.finish == "length"


@pytest.mark.parametrize(
    ("answer", "tool", "arguments", "changes"),
    [
        (CHOSEN, "wiki_write", PAGE, 0),
        ({"name": "wiki_write", "arguments": PAGE}, "wiki_write", PAGE, 0),
        ({"type": "function", "function": {"name": "functions.wiki_write", "parameters": PAGE}}, "wiki_write", PAGE, 0),
        ({"call": {"tool": "wiki_write", "arguments": json.dumps(PAGE)}}, "wiki_write", PAGE, 1),
        ({"call": {"tool": "wiki_write", "arguments": "{'title': 'Chairs', 'text': 'Forty are done.',}"}}, "wiki_write", PAGE, 2),
        ({"tool": "wiki_write", **PAGE}, "wiki_write", PAGE, 1),
        ({"wiki_write": PAGE}, "wiki_write", PAGE, 1),
        ({"tool_calls": [CHOSEN["call"], {"tool": "wiki_list"}]}, "wiki_write", PAGE, 1),
        ({"tool": "document_write", "name": "a", "title": "b"}, "document_write", {"name": "a", "title": "b"}, 1),
        ({"call": None}, "none", {}, 0),
        ({"call": "None"}, "none", {}, 0),
        ({"tool": "none", "arguments": ""}, "none", {}, 0),
        ({"name": "mail_read"}, "mail_read", {}, 0),
    ],
)
def test_a_call_is_read_in_whatever_form_a_model_writes_it(answer: Any, tool: str, arguments: Any, changes: int) -> None:
    call = ToolChoice.model_validate(answer).call
    assert (call.tool, call.arguments, len(call.changes)) == (tool, arguments, changes)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"reason": "no tool is needed"}, "no tool is named"),
        ({"call": 7}, "is no call"),
        ({"tool": ["wiki_write"], "arguments": {}}, "is no name"),
        ({"tool": "wiki_write", "arguments": [1, 2]}, "is not a JSON object"),
    ],
)
def test_what_names_no_call_is_refused_with_what_is_wrong(answer: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ToolChoice.model_validate(answer)


def test_a_choice_cannot_say_of_itself_that_it_was_changed() -> None:
    assert ToolChoice.model_validate({"call": {**CHOSEN["call"], "changes": ["nothing"]}}).call.changes == ()


# ---------------------------------------------------------------- runs
def using(request: Request) -> Any:
    """A decomposition in which every subtask looks for tools."""
    step = {"goal": "Repair chairs", "activity": "implement", "role": "Joiner", "hours": 4, "after": [], "need": "", "sources": ["tools"]}
    return {"subtasks": [{**step, "goal": f"Repair chair {n}"} for n in range(len(request.inputs["subtasks"]))]}


class Mixed:
    """A backbone that asks an endpoint for tools, and the stand-in for all else."""

    name = "openai:any"
    origin = "model"

    def __init__(self, url: str) -> None:
        self._endpoint, self._scripted = OpenAI("any", url), Scripted(stubs={"decompose": using})

    async def complete(self, request: Request) -> Completion:
        return await (self._endpoint if request.prompt == "execute_tool" else self._scripted).complete(request)

    async def close(self) -> None:
        await self._endpoint.close()


def ran(place: Path, server: Loopback, **more: Any) -> Run:
    return simulate(Organization(SHOP), out=place, backbone=Mixed(server.url), until="week:1", look=False, **more)  # type: ignore[arg-type]


def rungs(run: Run) -> set[str]:
    return {row["rung"] for row in rows(run, "calls", prompt="execute_tool")}


def test_with_native_calls_every_choice_takes_the_rung_tools_and_a_run_of_them_replays_without(tmp_path: Path) -> None:
    with Saying(called("wiki_write", json.dumps(PAGE))) as server:
        run = ran(tmp_path / "run", server)
    assert rungs(run) == {"tools"}
    assert {row["tool"] for row in rows(run, "tool_calls")} == {"wiki_write"}
    assert not events(run, "fallback")
    assert run.status().rungs == {"tools": len(rows(run, "calls", prompt="execute_tool"))}, "the stand-in says none"
    again = simulate(Organization(SHOP), out=tmp_path / "again", backbone=f"replay:{run.path}", until="week:1")
    assert again.digest() == run.digest()
    assert run.verify().ok


def test_the_wire_form_is_in_no_key_and_in_no_digest(tmp_path: Path) -> None:
    text = json.dumps(CHOSEN)
    with Saying(called("wiki_write", json.dumps(PAGE))) as server:
        native = ran(tmp_path / "native", server)
    with Saying({"content": text}, faults=["tools"]) as server:
        laddered = ran(tmp_path / "laddered", server, limit=1)
    assert (rungs(native), rungs(laddered)) == ({"tools"}, {"json_schema"})
    assert native.digest() == laddered.digest()
    keys = []
    for run in (native, laddered):
        with JournalReader(run.folder.journal_path) as journal:
            keys.append([(one.site, one.prompt) for one in journal.taken()])
    assert keys[0] == keys[1]


@pytest.mark.parametrize(
    "message",
    [
        {"content": f"<tool_call>\n{json.dumps({'name': 'wiki_write', 'arguments': PAGE})}\n</tool_call>"},
        {"content": f"I will write it down. {json.dumps(CHOSEN)} There."},
        {"content": f"<function=wiki_write>{json.dumps(PAGE)}</function>"},
        {"content": f"[TOOL_CALLS][{json.dumps({'name': 'wiki_write', 'arguments': PAGE})}]"},
        called("wiki_write", "{'title': 'Chairs', 'text': 'Forty are done.',}"),
        called("wiki_write", json.dumps(PAGE), ("wiki_list", "{}")),
        called("functions.wiki_write", PAGE),
        {"function_call": {"name": "wiki_write", "arguments": json.dumps(PAGE)}},
    ],
    ids=["tag", "prose", "function tag", "mistral", "bad JSON", "several", "object", "legacy"],
)
def test_calls_that_weak_servers_write_otherwise_are_understood_at_once(tmp_path: Path, message: dict[str, Any]) -> None:
    with Saying(message) as server:
        run = ran(tmp_path / "run", server)
    made = rows(run, "tool_calls")
    assert made
    assert all((call["tool"], call["arguments"]) == ("wiki_write", PAGE) for call in made)
    assert not events(run, "fallback")
    assert len({(row["site"], row["ordinal"]) for row in rows(run, "calls", prompt="execute_tool")}) == len(made)


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (called("wiki_delete", "{}"), "'wiki_delete' is not one of"),
        (called("wiki_write", '{"title": "Chairs"}'), "text: Field required"),
        (called("wiki_write", "Chairs, please"), "call.arguments"),
        (called(None, "{}"), "None is no name"),
        ({"content": "I would rather write."}, "no JSON object"),
    ],
    ids=["unknown", "missing", "no JSON", "no name", "prose"],
)
def test_a_call_that_cannot_be_made_is_asked_for_once_more_and_then_no_tool_is_used(
    tmp_path: Path, message: dict[str, Any], said: str
) -> None:
    with Saying(message) as server:
        run = ran(tmp_path / "run", server)
    assert rows(run, "tool_calls") == []
    asked = [row["reason"] for row in rows(run, "calls", prompt="execute_tool")]
    told = [str(event["object"]) for event in events(run, "fallback")]
    assert len(asked) == 2 * len(told) > 0
    assert all(said in reason for reason in asked)
    assert all("no tool was used" in text for text in told)
    assert run.verify().ok


def test_an_answer_without_a_form_lowers_the_rung_of_its_own_call_only(tmp_path: Path) -> None:
    with Saying({"content": "I would rather write."}) as server:
        run = ran(tmp_path / "run", server)
    by = {(row["site"], row["ordinal"]): row["rung"] for row in rows(run, "calls", prompt="execute_tool")}
    assert set(by.values()) == {"tools", "json_schema"}
    assert list(by.values()).count("tools") == list(by.values()).count("json_schema")
