"""A choice of one function to call, or of none: its schema, its native form, and what an answer of whatever form means.

Entry points: `choice` (the schema), `native` (what a chat completion's `tools` are for such a schema), `text_of` (native calls as the text
that is journaled), `meant` (the choice in an answer, however it was written).  It knows no tool and sends nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from taskweave.backbones.reading import MALFORMED
from taskweave.records import Json, canonical

NONE = "none"  # the name under which nothing is called
CALLED = "tool_calls"  # how a completion ended whose text is a native call in canonical JSON
_NATIVE = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what endpoints take as a function's name
_NAMES = ("tool", "name", "function", "tool_name", "function_name", "action")
_ARGUMENTS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input")
_SEVERAL = ("calls", "tool_calls")
_TAGGED = re.compile(r"<function=([\w.-]+)>\s*(\{.*\})\s*</function>", re.DOTALL)
_NOTHING = ("", NONE, "null", "no_tool", "no tool")


class Function(NamedTuple):
    """What may be called: `parameters` is the JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Json]


class Meant(NamedTuple):
    """A choice: the name (NONE for nothing), the arguments as given, and what had to be changed to read them."""

    name: str
    arguments: dict[str, Json]
    changes: tuple[str, ...] = ()


# ---------------------------------------------------------------- how it is asked
def choice(functions: Iterable[Function]) -> dict[str, Json]:
    """The schema of {call: {tool, arguments}}: one of these with its own arguments, or NONE without any."""
    nothing: dict[str, Json] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    calls = [_call(one) for one in (*functions, Function(NONE, "", nothing))]
    return {"type": "object", "properties": {"call": {"anyOf": calls}}, "required": ["call"], "additionalProperties": False}


def _call(function: Function) -> dict[str, Json]:
    parts = {"tool": {"type": "string", "enum": [function.name]}, "arguments": function.parameters}
    said = {"description": function.description} if function.description else {}
    return {"type": "object", **said, "properties": parts, "required": list(parts), "additionalProperties": False}


def functions(schema: Mapping[str, Json] | None) -> tuple[Function, ...]:
    """The functions among which a schema that `choice` has made lets choose, NONE the last; none for any other schema."""
    parts = {} if schema is None else schema.get("properties", {})
    if parts.keys() != {"call"} or "anyOf" not in parts["call"]:
        return ()
    calls = parts["call"]["anyOf"]
    return tuple(
        Function(one["properties"]["tool"]["enum"][0], one.get("description", ""), one["properties"]["arguments"]) for one in calls
    )


def native(schema: Mapping[str, Json] | None) -> list[dict[str, Json]]:
    """The `tools` of a chat completion that lets choose as the schema does; none for one that is no choice, or has names unfit for it.

    NONE is one of them, so that a call can be required.
    """
    offered = functions(schema)
    if not all(_NATIVE.fullmatch(one.name) for one in offered):
        return []
    return [
        {
            "type": "function",
            "function": {"name": one.name, "description": one.description or one.name, "parameters": one.parameters, "strict": True},
        }
        for one in offered
    ]


# ---------------------------------------------------------------- how it is answered
def text_of(message: Mapping[str, Json]) -> str | None:
    """The calls in a chat completion's message in the form that `choice` asks for, as canonical JSON; None where it has none.

    Calls that a server left in the text under a tag with the function's name are among them.  What is wrong in a call stays.
    """
    listed = message.get("tool_calls")
    found = [one.get("function") for one in listed if isinstance(one, Mapping)] if isinstance(listed, list) else []
    found += [message.get("function_call")]
    calls: list[Json] = [{"tool": one.get("name"), "arguments": _loaded(one.get("arguments"))} for one in found if isinstance(one, Mapping)]
    if not calls and isinstance(content := message.get("content"), str):
        calls = [{"tool": name, "arguments": _loaded(text)} for name, text in _TAGGED.findall(content)]
    if not calls:
        return None
    return canonical({"call": calls[0]} if len(calls) == 1 else {"calls": calls})


def _loaded(arguments: Json) -> Json:
    """Arguments that are JSON written as a text, as endpoints give them; what is none is left as it is."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return arguments


def meant(answer: Json) -> Meant:
    """The choice in an answer: as it was asked for, or as models write a call of their own accord.

    Raises ValueError for what names nothing, and for arguments that are no object.
    """
    changes: list[str] = []
    return Meant(*_meant(answer, changes), tuple(changes))


def _meant(given: Json, changes: list[str]) -> tuple[str, dict[str, Json]]:
    if isinstance(given, Mapping):
        for name in ("call", *_SEVERAL):
            if name in given:
                return _meant(given[name], changes)
    if isinstance(given, list):
        if len(given) > 1:
            changes.append(f"of {len(given)} calls the first was taken")
        return _meant(given[0] if given else None, changes)
    if given is None or isinstance(given, str):
        return _named(given or ""), {}
    if not isinstance(given, Mapping):
        raise ValueError(f"call: {given!r} is no call; give a tool's name and its arguments")
    called = next((key for key in _NAMES if key in given), None)
    if called is None:
        if len(given) != 1 or not isinstance(inner := next(iter(given.values())), Mapping):
            raise ValueError("call.tool: no tool is named")
        changes.append("the arguments stood within the tool's name")
        return _named(next(iter(given))), dict(inner)
    if isinstance(given[called], Mapping):  # {"type": "function", "function": {"name": ..}}
        return _meant(given[called], changes)
    if not isinstance(given[called], str):
        raise ValueError(f"call.tool: {given[called]!r} is no name")
    name, holder = _named(given[called]), next((key for key in _ARGUMENTS if key in given), None)
    if holder is not None:
        return name, _object(given[holder], changes)
    beside = {key: value for key, value in given.items() if key != called and (key, value) != ("type", "function")}
    if beside:
        changes.append("the arguments stood beside the tool's name")
    return name, beside


def _named(name: str) -> str:
    """A function's name as it is offered: without a namespace, or what stands for nothing."""
    plain = name.strip().removeprefix("functions.")
    return NONE if plain.casefold() in _NOTHING else plain


def _object(arguments: Json, changes: list[str]) -> dict[str, Json]:
    if isinstance(arguments, str) and arguments.strip():
        import json_repair

        changes.append("the arguments were written as a text")
        text = arguments
        try:
            arguments = json.loads(text)
        except (ValueError, RecursionError):
            try:
                arguments = json_repair.loads(text)
            except (ValueError, RecursionError):
                arguments = None
            if not isinstance(arguments, Mapping):
                raise ValueError("call.arguments: is not JSON") from None
            changes.append(MALFORMED)
    if arguments is None or arguments in ("", []):
        return {}
    if not isinstance(arguments, Mapping):
        raise ValueError("call.arguments: is not a JSON object")
    return dict(arguments)
