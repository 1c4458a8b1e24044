"""How is a trace shown?  Entry points: `render` (for a terminal) and `as_json` (for a program).

Knows nothing of where the trace came from; the pool walks, this draws.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text
from rich.tree import Tree

from taskweave.pool.plans import Fields, Plan
from taskweave.pool.trace import Link, Trace
from taskweave.records import Json
from taskweave.report.asking import asked

STAND_IN = "scripted stand-in"  # how the text of a run without a model is marked wherever it is shown
_TEXT = 400  # characters of a plan that are shown


def as_json(trace: Trace) -> dict[str, Json]:
    """The whole trace as JSON values, the contents of results included."""
    values: dict[str, Any] = asdict(trace)
    return {"stand_in": _itself(trace).get("origin") == "scripted", **values}


def render(trace: Trace) -> RenderableType:
    """The trace as a person reads it: the thing itself, why it was made, what it rests on, what rests on it."""
    parts: list[RenderableType] = [_heading(trace), *_facts(trace)]
    if trace.result:
        parts.append(Padding(Text(trace.result["content"]), (1, 2)))
    if not trace.incident and not trace.entity:
        parts.append(_plans("Planned by (nearest first, the root last)", trace.plans))
    for incident in trace.incidents:
        parts.append(_line("incident heard", f"{incident['id']} {incident['title']} ({incident['category']}, {incident['severity']})"))
    if not trace.incident and not trace.entity:
        parts.append(_tree("Rests on", trace.upward, trace.hidden_upward))
    parts.append(_tree("What rests on it", trace.downward, trace.hidden_downward))
    if trace.diagnosed:
        parts.append(_plans("Diagnosed in", trace.diagnosed, diagnosis=True))
    parts += [_call(call) for call in trace.calls]
    if hidden := _hidden(trace.upward, trace.hidden_upward) + _hidden(trace.downward, trace.hidden_downward):
        parts.append(
            Text(f"{hidden:,} links are not shown: --depth goes deeper, --breadth shows more of each, or trace one of the ids", "dim")
        )
    return Group(*parts)


def _heading(trace: Trace) -> Text:
    row = _itself(trace)
    title = row.get("title") or row.get("goal") or row.get("period") or row.get("name") or ""
    heading = Text.assemble((title, "bold"), "  ", (f"{trace.kind} {trace.id}", "dim"))
    if (origin := row.get("origin")) not in (None, "model"):
        heading.append(f"  [{STAND_IN if origin == 'scripted' else origin}]", "yellow")
    return heading


def _itself(trace: Trace) -> Fields:
    """The row of what was traced."""
    return trace.result or trace.subtask or trace.task or trace.state or trace.incident or trace.entity or {}


def _facts(trace: Trace) -> list[Text]:
    facts: list[tuple[str, str]] = []
    if trace.result:
        facts.append(("what", f"{trace.result['artifact']}, finished {trace.result['finished']}, quality {trace.result['quality']}"))
    if trace.agent:
        facts.append(("who", f"{trace.agent['name']}, {trace.agent['role']} ({trace.agent['id']})"))
    if trace.delegator:
        facts.append(("given by", f"{trace.delegator['name']}, {trace.delegator['role']} ({trace.delegator['id']})"))
    if trace.subtask:
        facts.append(("subtask", f"{trace.subtask['goal']} — {trace.subtask['hours']:g} h, {trace.subtask['status']}"))
        facts.append(("assigned", trace.subtask["why"] or ""))
    if trace.task:
        facts.append(("task", f"{trace.task['title']} ({trace.task['id']}), {trace.task['status']}"))
    if trace.incident:
        facts.append(("incident", f"{trace.incident['category']}, {trace.incident['severity']}: {trace.incident['description']}"))
        affects = trace.incident["affects"]
        facts.append(("affects", affects if isinstance(affects, str) else ", ".join(affects)))
        facts.append(("asks for", "; ".join(asked(trace.incident["effects"]))))
        facts.append(("in force", f"from {trace.incident['since'] or '–'} until {trace.incident['until'] or '–'}"))
    if trace.entity:
        for name, values in trace.entity["attributes"].items():
            (_, first), *later = values
            facts.append((name.replace("_", " "), "; ".join([first, *(f"from {since} {text}" for since, text in later)])))
    facts.append(("about", ", ".join(f"{one['name']} ({one['id']})" for one in trace.entities)))
    for fact in (trace.result or {}).get("facts") or ():
        said = "not said" if fact["start"] is None else f"said at {fact['start']:,}-{fact['end']:,}"
        facts.append(("fact", f"{fact['id']} {fact['text']!r}: {said}"))
    facts.append(("goals", ", ".join(trace.goals)))
    facts.append(("prompt", " · ".join(filter(None, (trace.prompt, trace.backbone)))))
    return [_line(name, value) for name, value in facts if value]


def _line(name: str, value: str) -> Text:
    return Text.assemble((f"  {name:<9} ", "dim"), value)


def _plans(label: str, plans: tuple[Plan, ...], *, diagnosis: bool = False) -> RenderableType:
    tree = Tree(Text(label, "bold"))
    for plan in plans:
        node = tree.add(
            Text.assemble(plan.id, (f"  {plan.level}, {plan.period}, revision {plan.revision} of {plan.revisions}", "dim")),
        )
        node.add(Text(_short((plan.diagnosis or "") if diagnosis else plan.plan)))
    if not plans:
        tree.add(Text("no planning state is recorded", "dim"))
    return tree


def _short(text: str) -> str:
    return text if len(text) <= _TEXT else text[:_TEXT].rsplit(" ", 1)[0] + " …"


def _tree(label: str, links: tuple[Link, ...], hidden: int) -> Tree:
    tree = Tree(Text(label, "bold"))
    if not links and not hidden:
        tree.add(Text("nothing", "dim"))
    if not links and hidden:
        tree.add(Text(f"{hidden} not shown", "dim"))
    _grow(tree, links, hidden)
    return tree


def _grow(tree: Tree, links: tuple[Link, ...], hidden: int) -> None:
    for link in links:
        label = Text.assemble((f"{link.how} ", "cyan"), link.title or link.id, (f"  {link.kind} {link.id}", "dim"))
        label.append("".join(f", {part}" for part in (link.by, link.when) if part), "dim")
        if link.quality not in ("", "ok"):
            label.append(f"  [{link.quality}]", "yellow")
        if link.repeated:
            label.append("  (shown elsewhere)", "dim")
        if link.hidden and not link.links:
            label.append(f"  (+ {link.hidden} not shown)", "dim")
        _grow(tree.add(label), link.links, link.hidden)
    if hidden and links:
        tree.add(Text(f"… and {hidden} more", "dim"))


def _hidden(links: tuple[Link, ...], here: int) -> int:
    """How many links the bounds cut, here and below."""
    return here + sum(_hidden(link.links, link.hidden) for link in links)


def _call(call: Fields) -> Text:
    used = f"{_count(call['prompt_tokens'])} + {_count(call['completion_tokens'])} tokens"
    fell = f", fell back: {call['reason']}" if call["fallback"] else ""
    return _line("call", f"{call['site']} #{call['ordinal']}, {call['prompt']}, {call['backbone']}, {used}{fell}")


def _count(tokens: int | None) -> str:
    return "–" if tokens is None else f"{tokens:,}"
