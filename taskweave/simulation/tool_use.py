"""How does somebody use tools while executing?  Each call is chosen in one small question, performed as a look-up, and recorded.

Entry point: `use` (at most MOST_CALLS calls of one execution).  A call sees the weeks sealed so far, what its upstream results changed, and
what it changed itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from taskweave.backbones.structured import CallRow
from taskweave.cutting import cut
from taskweave.engine.promises import Context as WorkContext
from taskweave.errors import ToolRefused
from taskweave.records import BY_CODE_SAID, Json, canonical
from taskweave.simulation import answers
from taskweave.simulation.setting import Setting
from taskweave.tools.at_hand import at_hand
from taskweave.tools.landing import effect_of
from taskweave.tools.mcp_servers import ServerTool
from taskweave.tools.tool import Tool
from taskweave.tools.world import Called, Effect

PROMPT = "execute_tool"
MOST_CALLS = 2  # of one execution: a look, and what follows from it
MOST_COLLEAGUES = 8
SHOWN = 60  # tokens of what a call said, where the deliverable is written
KEPT = 4_000  # characters of what a call said


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolUse:
    """What came of the calls of one execution."""

    calls: tuple[CallRow, ...] = ()
    notes: tuple[str, ...] = ()
    rows: tuple[dict[str, Json], ...] = ()  # of tool_calls, without the result
    effects: tuple[Effect, ...] = ()
    evidence: tuple[str, ...] = ()


async def use(
    setting: Setting, ctx: WorkContext, *, agent: str, result: str, inputs: Mapping[str, Json], upstream: Sequence[Effect]
) -> ToolUse:
    """Let the agent use its tools for the execution whose `inputs` these are; `upstream` is what its upstream results changed."""
    tooling = setting.tooling
    assert tooling is not None
    tools = {tool.name: tool for tool in setting.tools_of(agent)}
    moment = f"{inputs['date']} 09:00"
    calls: list[CallRow] = []
    notes: list[str] = []
    rows: list[dict[str, Json]] = []
    effects: list[Effect] = []
    had: list[Json] = []
    for number in range(1, MOST_CALLS + 1):
        after = [*upstream, *effects]
        seen = await ctx.look_up(
            "tool:at_hand",
            {"actor": agent, "moment": moment, "after": [effect.key for effect in after]},
            lambda after=after: at_hand(tooling.world, tools.values(), actor=agent, moment=moment, after=after),  # type: ignore[misc]  # a default binds it
        )
        asked = {
            **{name: inputs[name] for name in ("organization", "date", "author", "task", "subtask")},
            "tools": [{"name": t.name, "arguments": ", ".join(t.schema["properties"]), "summary": t.summary} for t in tools.values()],
            "at_hand": seen,
            "had": had,
            "colleagues": _colleagues(setting, agent),
        }
        ctx.actor = agent
        answered = await setting.one(
            ctx, PROMPT, asked, answers.tool_choice(tuple(tools.values())), lambda answer: _read(answer, tools), lambda: None, agent
        )
        calls += answered.calls
        notes += [f"{PROMPT}: {note}" for note in answered.notes]
        if answered.quality == "fallback":
            notes[-1] += f"; no tool was used, which {BY_CODE_SAID}"
        if answered.value is None:
            break
        name, arguments = answered.value
        key = f"{result}:tool#{number}"
        if isinstance(chosen := tools[name], ServerTool):
            outcome = await tooling.mcp.use(ctx, chosen, arguments, actor=agent, moment=moment)
        else:
            outcome = await ctx.look_up(
                f"tool:{name}",
                {"arguments": arguments, "actor": agent, "moment": moment, "after": [effect.key for effect in after]},
                lambda after=after, name=name, arguments=arguments, key=key: _outcome(  # type: ignore[misc]  # defaults bind them
                    tooling.world.call(tools[name], arguments, actor=agent, moment=moment, key=key, after=after), agent, moment
                ),
            )
        rows.append({"id": key, "tool": name, "arguments": arguments, "outcome": outcome})
        had.append({"tool": name, "said": outcome["said"]})
        if outcome["writes"]:
            effects.append(effect_of(rows[-1]))
            break
    evidence = tuple(f"tool {one['tool']}: {cut(one['said'], SHOWN)}" for one in had)
    return ToolUse(calls=tuple(calls), notes=tuple(notes), rows=tuple(rows), effects=tuple(effects), evidence=evidence)


def _outcome(called: Called, agent: str, moment: str) -> Json:
    """A call as it is journaled, and as the table keeps it: bounded."""
    said = called.said if isinstance(called.said, str) else canonical(called.said)
    seen = dict(called.effect.seen) if called.effect is not None else {}
    return {"ok": called.ok, "said": said[:KEPT], "writes": called.effect is not None, "by": agent, "at": moment, "seen": seen}


def _read(answer: Json, tools: Mapping[str, Tool]) -> tuple[str, dict[str, Json]] | None:
    """The tool that was chosen and its checked arguments, None for none; ValueError for what cannot be called."""
    call = answers.ToolChoice.model_validate(answer).call
    if call.tool == answers.NO_TOOL:
        return None
    if call.tool not in tools:
        raise ValueError(f"call.tool: {call.tool!r} is not one of {', '.join(tools)}, {answers.NO_TOOL}")
    try:
        return call.tool, json.loads(canonical(tools[call.tool].checked(call.arguments)))
    except ToolRefused as refused:
        raise ValueError(str(refused)) from None


def _colleagues(setting: Setting, agent: str) -> list[Json]:
    """Whom one writes to: those of the own department first."""
    me = setting.population.agent(agent)
    others = [other for other in setting.population.agents if other.id != agent]
    near = sorted(others, key=lambda other: (other.department != me.department, other.tier))  # stable: of equals the first in the file
    return [{"name": other.persona.name, "role": other.role} for other in near[:MOST_COLLEAGUES]]
