"""Among which tools does somebody choose?  Entry point: `offer`: all of a role's, or those nearest to the work where they do not fit.

A tool takes room twice, in the prompt's list and in the answer's schema.  It refuses to know who asks, and what a tool does.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from taskweave.cutting import value_tokens
from taskweave.records import Json, canonical, tokens
from taskweave.simulation.answers import tool_choice
from taskweave.simulation.matching import Matcher
from taskweave.simulation.small_texts import turned
from taskweave.tools.tool import Tool


class Offer(NamedTuple):
    """The tools to choose from, in the role's order, and their lines in a prompt: the last one says under `more` how many were left out."""

    tools: tuple[Tool, ...]
    lines: tuple[dict[str, Json], ...]


def offer(tools: tuple[Tool, ...], about: str, *, room: int, most: int | None = None, turn: int = 0) -> Offer:
    """At least one of `tools`, as many as take `room` tokens in the list and in the schema, and at most `most` of them.

    Nearest to the text `about` come first, equals in an order that begins with another one each `turn`, so that none is always left out.
    """
    line_of = {tool.name: _line(tool) for tool in tools}
    costs = {tool.name: _cost(tool) for tool in tools}
    most = len(tools) if most is None else most
    chosen = set(line_of)
    if len(tools) > most or sum(costs.values()) > room:
        near = _matcher(tools).score(about, list(line_of))
        chosen = set()
        for name in sorted(turned(list(line_of), turn), key=lambda name: -near[name]):  # stable: of equals the first in turn
            if len(chosen) < most and (not chosen or costs[name] <= room):
                chosen.add(name)
                room -= costs[name]
    lines = [dict(line) for name, line in line_of.items() if name in chosen]
    if rest := len(tools) - len(lines):
        lines[-1]["more"] = rest
    return Offer(tuple(tool for tool in tools if tool.name in chosen), tuple(lines))


@lru_cache(maxsize=1024)
def _line(tool: Tool) -> dict[str, Json]:
    return {"name": tool.name, "arguments": ", ".join(tool.schema["properties"]), "summary": tool.summary}


@lru_cache(maxsize=1024)
def _cost(tool: Tool) -> int:
    """Tokens of a tool in the list and, about, in the schema."""
    return value_tokens(_line(tool)) + tokens(canonical(tool_choice((tool,)))) - tokens(canonical(tool_choice(())))


@lru_cache(maxsize=256)
def _matcher(tools: tuple[Tool, ...]) -> Matcher:
    return Matcher({tool.name: [tool.name, tool.summary, " ".join(tool.schema["properties"])] for tool in tools})
