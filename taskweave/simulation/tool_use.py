"""How does somebody use tools while executing?  Each call is chosen in one small question, performed as a look-up, and recorded.

Entry point: `use` (at most MOST_CALLS calls of one execution).  A call sees the weeks sealed so far, what its upstream results changed, and
what it changed itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from random import Random

from taskweave.backbones.structured import CallRow
from taskweave.cutting import cut
from taskweave.engine.promises import Context as WorkContext
from taskweave.records import BY_CODE_SAID, Json, canonical
from taskweave.simulation import answers
from taskweave.simulation.setting import Setting
from taskweave.simulation.tool_offer import Offer, offer
from taskweave.simulation.tooling import checked
from taskweave.tools.at_hand import at_hand
from taskweave.tools.landing import effect_of
from taskweave.tools.mcp_servers import ServerTool
from taskweave.tools.tool import Tool
from taskweave.tools.world import Called, Effect

PROMPT = "execute_tool"
MOST_CALLS = 2  # of one execution: a look, and what follows from it
MOST_COLLEAGUES = 8
FEW = 6  # tools among which a weak model chooses
NOT_USED = f"no tool was used, which {BY_CODE_SAID}"
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
    setting: Setting,
    ctx: WorkContext,
    *,
    agent: str,
    result: str,
    inputs: Mapping[str, Json],
    upstream: Sequence[Effect],
    moments: Sequence[str],
) -> ToolUse:
    """Let the agent use its tools for the execution whose `inputs` these are.

    `upstream` is what its upstream results changed; there is at most one call at each of the `moments` (simulated, in order).
    """
    tooling = setting.tooling
    assert tooling is not None
    tools, today = {tool.name: tool for tool in setting.tools_of(agent)}, str(inputs["date"])
    offered = _offer(setting, tuple(tools.values()), inputs, result)
    calls: list[CallRow] = []
    notes: list[str] = []
    rows: list[dict[str, Json]] = []
    effects: list[Effect] = []
    had: list[Json] = []
    for number, moment in enumerate(moments, 1):
        after = [*upstream, *effects]
        seen = await ctx.look_up(
            "tool:at_hand",
            {"actor": agent, "moment": moment, "after": [effect.key for effect in after]},
            lambda after=after, moment=moment: at_hand(  # type: ignore[misc]  # defaults bind them
                tooling.world, tools.values(), actor=agent, moment=moment, after=after, as_of=today
            ),
        )
        asked = {
            **{name: inputs[name] for name in ("organization", "date", "author", "task", "subtask")},
            "tools": [dict(line) for line in offered.lines],
            "at_hand": seen,
            "had": had,
            "colleagues": _colleagues(setting, agent, tooling.world.present(date.fromisoformat(today))),
        }
        schema = answers.tool_choice(offered.tools)
        answered = await setting.ask(ctx, PROMPT, asked, schema, lambda answer: _read(answer, tools), lambda: None, agent=agent)
        calls += answered.calls
        notes += [note if note.startswith(PROMPT) else f"{PROMPT}: {note}" for note in answered.notes]
        if answered.quality == "fallback" and not any(NOT_USED in note for note in answered.notes):
            notes[-1] += f"; {NOT_USED}"
        if answered.value is None:
            break
        name, arguments, changes = answered.value
        notes += [f"{PROMPT}: {change}" for change in changes]
        key = f"{result}:tool#{number}"
        if isinstance(chosen := tools[name], ServerTool):
            outcome = await tooling.mcp.use(ctx, chosen, arguments, actor=agent, moment=moment)
        else:
            outcome = await ctx.look_up(
                f"tool:{name}",
                {"arguments": arguments, "actor": agent, "moment": moment, "after": [effect.key for effect in after]},
                lambda after=after, moment=moment, name=name, arguments=arguments, key=key: _outcome(  # type: ignore[misc]  # defaults bind them
                    tooling.world.call(tools[name], arguments, actor=agent, moment=moment, key=key, after=after, as_of=today), agent, moment
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


def _read(answer: Json, tools: Mapping[str, Tool]) -> tuple[str, dict[str, Json], tuple[str, ...]] | None:
    """The tool that was chosen, its checked arguments, and what had to be changed to read them; None for no tool.

    Raises ValueError for what cannot be called.
    """
    call = answers.ToolChoice.model_validate(answer).call
    if call.tool == answers.NO_TOOL:
        return None
    if call.tool not in tools:
        raise ValueError(f"call.tool: {call.tool!r} is not one of {', '.join(tools)}, {answers.NO_TOOL}")
    return call.tool, checked(tools[call.tool], call.arguments), call.changes


def _offer(setting: Setting, tools: tuple[Tool, ...], inputs: Mapping[str, Json], result: str) -> Offer:
    """The tools that this execution chooses from; few for a model that is asked in small questions."""
    task, subtask = inputs["task"], inputs["subtask"]
    about = f"{subtask['goal']} {subtask['activity']} {task['title']} {task['description']}"
    most, turn = (None if setting.style is None else FEW), Random(f"{setting.seed}:tools:{result}").randrange(len(tools))
    return offer(tools, about, room=setting.budget(PROMPT, "tools"), most=most, turn=turn)


def _colleagues(setting: Setting, agent: str, present: Collection[str]) -> list[Json]:
    """Whom one writes to: those of the own department first, of these who have most tools in common, by which it reaches them."""
    me, own = setting.population.agent(agent), set(setting.tools_of(agent))
    others = [other for other in setting.population.agents if other.id != agent and other.id in present]
    shared = {other.id: len(own.intersection(setting.tools_of(other.id))) for other in others}
    # Stable: of equals the first in the file.
    near = sorted(others, key=lambda other: (other.department != me.department, -shared[other.id], other.tier))
    return [{"name": other.persona.name, "role": other.role} for other in near[:MOST_COLLEAGUES]]
