"""A tool chosen in two small questions: which one, or none; then its arguments, as one flat object of that tool only.

Entry point: `choose_tool`.  A list is asked for as one text with a mark between its items.  Arguments that the tool does not take, or that
are the example's, are asked for once more; after that no tool is used, which is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from taskweave.records import Json
from taskweave.simulation import small_answers as small
from taskweave.simulation.answers import NO_TOOL, Schema, object_of
from taskweave.simulation.questions import Questions, example_of
from taskweave.simulation.small_texts import is_copy, means
from taskweave.simulation.tool_use import NOT_USED
from taskweave.simulation.tooling import checked
from taskweave.tools.tool import MOST_LINE, Tool

CHOICE, ARGUMENTS = "execute_tool", "execute_tool_arguments"
LINE, PROSE = 100, 480  # characters of an argument
BETWEEN = "|"  # items of a list
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?")
_ROWS = re.compile(r"[;\n]")
_TIMES = {"date": 10, "time": 8}  # characters
_KEPT = ("type", "minimum", "maximum")


async def choose_tool(q: Questions, spare: Any) -> Json:
    """The tool is asked, then its arguments, where it takes any."""
    offered = q.inputs["tools"]
    tools = {tool.name: tool for tool in q.setting.tools_of(q.agent)}
    schema = small.choice("tool", (NO_TOOL, *(line["name"] for line in offered)))
    spared = small.ChosenTool(tool=NO_TOOL)
    said = await q.ask(CHOICE, {}, schema, small.ChosenTool, lambda: spared, names="author subtask tools at_hand had")
    if said is spared:
        q.changed(f"{CHOICE}: {NOT_USED}")
    if means(said.tool, NO_TOOL):
        return _call(NO_TOOL, {})
    tool = tools.get(said.tool.strip())
    if tool is None:
        q.changed(f"{CHOICE}: {said.tool!r} is none of the tools; {NOT_USED}")
        return _call(NO_TOOL, {})
    arguments = await _arguments(q, tool)
    return _call(NO_TOOL, {}) if arguments is None else _call(tool.name, arguments)


def _call(name: str, arguments: Mapping[str, Json]) -> Json:
    return {"call": {"tool": name, "arguments": dict(arguments)}}


async def _arguments(q: Questions, tool: Tool) -> dict[str, Json] | None:
    """The arguments of a tool; None where none came that it takes."""
    if not tool.schema["properties"]:
        return {}
    parts: Mapping[str, Schema] = tool.schema["properties"]
    shown = example_of(q.setting.prompts[ARGUMENTS])

    def check(value: small.ToolArguments) -> None:
        given = value.model_extra or {}
        for name, text in given.items():
            if isinstance(text, str) and is_text(parts.get(name, {})) and any(is_copy(text, str(one)) for one in shown.values()):
                raise ValueError(f"{name} is the example's; write your own about what is asked")
        checked(tool, unflattened(parts, given))

    described = {"name": tool.name, "summary": tool.summary, "arguments": [_described(name, part) for name, part in parts.items()]}
    names = "author task subtask colleagues at_hand had"
    said = await q.ask(
        ARGUMENTS, {"tool": described}, flat(parts), small.ToolArguments, lambda: None, names=names, place=tool.name, check=check
    )
    if said is None:
        q.changed(f"{ARGUMENTS} {tool.name}: {NOT_USED}")
        return None
    return unflattened(parts, said.model_extra or {})


# ---------------------------------------------------------------- flat arguments
def is_text(part: Schema) -> bool:
    """Whether an argument is words of one's own: no choice, number or date."""
    return "enum" not in part and "format" not in part and part.get("type") in ("string", "array")


def flat(parts: Mapping[str, Schema]) -> Schema:
    """The schema of a tool's arguments as one object of texts, choices and numbers, short enough for a weak model."""
    return object_of({name: _flat(part) for name, part in parts.items()})


def _flat(part: Schema) -> Schema:
    if texts := [one for one in part.get("anyOf", ()) if one.get("type") == "string"]:
        return _flat(texts[0])  # what may be a number as well is given as a text
    if "enum" in part or part.get("type") in ("integer", "number", "boolean"):
        return {name: part[name] for name in (*_KEPT, "enum") if name in part}
    if "format" in part:
        most = _TIMES.get(part["format"], LINE)
        return {"type": "string", "minLength": min(4, most), "maxLength": most}
    if part.get("type") == "array":
        most = LINE if _is_plain(part) else PROSE
        return {"type": "string", "minLength": min(1, part.get("minItems", 0)), "maxLength": most}
    if part.get("type") == "string":
        least, most = part.get("minLength", 0), part.get("maxLength", MOST_LINE)
        return {"type": "string", "minLength": least, "maxLength": max(least, min(most, PROSE if most > MOST_LINE else LINE))}
    return part


def unflattened(parts: Mapping[str, Schema], given: Mapping[str, Json]) -> dict[str, Json]:
    """The arguments as the tool takes them: a text that stands for a list is taken apart, one that stands for a number is one."""
    return {name: _items(parts.get(name, {}), value) for name, value in given.items()}


def _items(part: Schema, value: Json) -> Json:
    if isinstance(value, str) and _NUMBER.fullmatch(value) and any(one.get("type") == "number" for one in part.get("anyOf", ())):
        return float(value)
    if part.get("type") != "array" or not isinstance(value, str):
        return value
    rows = [value] if _is_plain(part) else _ROWS.split(value)
    split = [[item.strip() for item in row.split(BETWEEN) if item.strip()] for row in rows]
    return split[0] if _is_plain(part) else [row for row in split if row]


def _is_plain(part: Schema) -> bool:
    """Whether a list holds no lists."""
    items = part.get("items", {})
    return bool(items.get("type") != "array")


def _described(name: str, part: Schema) -> dict[str, Json]:
    """What a prompt says of an argument: its name, which form it has, and its options where it is a choice."""
    kind = part.get("format") or ("choice" if "enum" in part else str(part.get("type", "string")))
    if kind == "array":
        kind = "list" if _is_plain(part) else "rows"
    most = _flat(part).get("maxLength", LINE)
    return {"name": name, "form": kind, "options": list(part.get("enum", [])), "most": most}
