"""How is one effect of an incident read?  Entry point: `read_effect`.

What a file says of any organization - by an activity, by words that roles match, by `any` goal - becomes what it means in this one, so
that the journal holds names only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from taskweave.org.population import Agent
from taskweave.org.yamlfile import Mapping, Node, Scalar
from taskweave.records import Priority
from taskweave.simulation.incidents.effects import (
    Absence,
    Budget,
    Deadline,
    Departure,
    Effect,
    Free,
    Hire,
    News,
    Outage,
    Pressing,
    Push,
    Ranking,
    Target,
    Workload,
    after,
    before,
)
from taskweave.simulation.incidents.names import KINDS
from taskweave.simulation.incidents.reading import SHOWN, Fields, Reader, as_number, hint

MOST_HOURS = 2000.0  # of a task that an incident brings
MOST_HIRED = 50
SELECTORS = (*KINDS, "activity", "match", "else")
ANY = "any"  # of a goal or a key figure: the first that fits


def read_effect(reader: Reader, node: Node, affected: tuple[str, ...] | None) -> Effect | None:
    """The effect that a mapping with one key names; None where it is wrong, or where the organization has nothing for `any` to mean.

    `affected` are the names of those whom the incident affects, None for all.
    """
    if not isinstance(node, Mapping) or len(node.entries) != 1:
        reader.wrong(node, "an effect is one key with its value, e.g. `- news: ...`")
        return None
    key, value = node.entries[0]
    if key.text not in EFFECTS:
        reader.wrong(key, f"an effect {key.text[:SHOWN]!r} is not acted on by this version; {hint(key.text, tuple(EFFECTS))}")
        return None
    problems = len(reader.problems)
    effect = EFFECTS[key.text](reader, value, affected)
    return effect if len(reader.problems) == problems else None


def read_target(reader: Reader, node: Node, fields: Fields, what: str) -> Target | None:
    """Whom an effect, or an incident, strikes.  None where it is wrong; a target of no kind where none is named."""
    named = [name for name in (*KINDS, "activity", "match") if name in fields]
    if not named:
        if "else" in fields:
            reader.wrong(fields["else"], "`else` goes with `activity` or `match`: it says whom they mean where nobody fits")
            return None
        return Target()
    if len(named) > 1:
        reader.wrong(node, f"{what} names exactly one of {', '.join(SELECTORS[:-1])}")
        return None
    how, given = named[0], fields[named[0]]
    if "else" in fields and how in KINDS:
        reader.wrong(fields["else"], "`else` goes with `activity` or `match`: a name is there, or is wrong")
        return None
    names = reader.names(given)
    if names is None:
        return None
    for kind in KINDS:
        if how == kind:
            known = [reader.known(name, kind) for name in names]
            return None if None in known else Target(kind=kind, names=tuple(name for name in known if name is not None))
    return _selected(reader, given, fields, how, [name.text.strip() for name in names])


def _selected(reader: Reader, node: Node, fields: Fields, how: str, words: list[str]) -> Target | None:
    """The roles that have one of the activities, or match one of the words; `else` where there are none."""
    who = reader.who
    titles = who.matching(words) if how == "match" else tuple(dict.fromkeys(title for word in words for title in who.doing(word)))
    spare = reader.choice(fields, "else", ("all", "top"), "") if "else" in fields else ""
    if titles:
        return Target(kind="role", names=titles)
    if spare == "all":
        return Target(kind="role", names=tuple(who.org.roles))
    if spare == "top":
        return Target(kind="role", names=(who.org.root.title,))
    if "else" not in fields:
        said = f"no role has the activity {' or '.join(words)!r}" if how == "activity" else f"no role matches {', '.join(words)!r}"
        near = f"; {hint(words[0], who.org.activities)}" if how == "activity" else ""
        reader.wrong(node, f"{said}{near}. Name others, or say with `else: all` or `else: top` who is meant then")
    return None


# ---------------------------------------------------------------- one function an effect
def _news(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    if isinstance(node, Scalar):
        return News(text=" ".join(node.text.split()))
    reader.wrong(node, "news is a text")
    return None


def _absence(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, (*SELECTORS, "count", "for"), "an absence")
    if fields is None:
        return None
    target = read_target(reader, node, fields, "an absence")
    span = reader.span(fields.get("for"))
    if "for" not in fields:
        reader.wrong(node, "an absence says how long: `for: 2 weeks`")
    count = reader.count(fields, "count")
    return None if target is None or span is None else Absence(target=target, count=count, span=span)


def _departure(reader: Reader, node: Node, affected: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, (*SELECTORS, "count"), "a departure")
    if fields is None:
        return None
    count, target = reader.count(fields, "count"), read_target(reader, node, fields, "a departure")
    if target is None:
        return None
    who = reader.who
    meant = [who.population.agent(agent) for agent in target.agents(who, _struck(reader, affected))]
    free = [agent for agent in meant if not who.plans(agent)]
    led = [agent for agent in meant if who.plans(agent)]
    if _loose(fields):  # whoever fits: as many as may leave, and if only heads fit, others
        if not free and any(not who.plans(agent) for agent in who.population):
            target = Target(kind="role", names=tuple(who.org.roles))
        elif free and target.kind is not None and count is not None:
            count = min(count, len(free))
        elif not free:
            reader.wrong(node, "nobody can leave: everybody here leads others, or plans for itself")
        return Departure(target=target, count=count)
    # Of the heads of one title one stays.
    may = len(free) + sum(min(number, len(who.deputies(who.population.agent(name)))) for name, number in _heads(led).items())
    if not may:
        head = meant[0].role if meant else "nobody"
        reader.wrong(node, f"{head} cannot leave: a head goes only where another of its title stays. Name somebody who leads nobody")
    elif count is not None and count > may:
        reader.wrong(
            fields["count"], f"count is {count}; of those named {may} may leave: a head goes only where another of its title stays"
        )
    return Departure(target=target, count=count)


def _heads(led: Sequence[Agent]) -> dict[str, int]:
    """How many heads there are of each title, by the id of the first."""
    first: dict[str, str] = {}
    for agent in led:
        first.setdefault(agent.role, agent.id)
    return {first[role]: number for role, number in Counter(agent.role for agent in led).items()}


def _hire(reader: Reader, node: Node, affected: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, (*SELECTORS, "in", "count"), "a hire")
    if fields is None:
        return None
    wait, count, target = reader.span(fields.get("in")), reader.count(fields, "count"), read_target(reader, node, fields, "a hire")
    if "in" not in fields:
        reader.wrong(node, "a hire says when somebody begins: `in: 4 weeks`")
    if count is not None and count > MOST_HIRED:
        reader.wrong(fields["count"], f"count is {count}; at most {MOST_HIRED} are hired at once")
    if target is None or wait is None:
        return None
    who = reader.who
    agents = [who.population.agent(agent) for agent in target.agents(who, _struck(reader, affected))]
    if _loose(fields):  # whoever fits first, and if only heads fit, anybody
        agents += who.population.agents
    roles = [agent.role for agent in agents if who.executes(agent) and not who.plans(agent)]
    if not roles:
        reader.wrong(node, "nobody of those named only works on tasks: heads are not hired. Name another role")
        return None
    return Hire(role=roles[0], wait=wait, count=count or 1)


def _workload(reader: Reader, node: Node, affected: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, (*SELECTORS, "title", "hours", "due", "priority", "goals"), "a workload")
    if fields is None:
        return None
    target, title = read_target(reader, node, fields, "a workload"), reader.needed(node, fields, "title", "Residency audit")
    hours = reader.number(fields, "hours", least=0.25, most=MOST_HOURS)
    if "hours" not in fields:
        reader.wrong(node, "a workload says how much: `hours: 24`")
    due = reader.span(fields.get("due")) if "due" in fields else "4 weeks"
    priority = cast(Pressing, reader.choice(fields, "priority", ("urgent", "high", "normal", "low"), "normal"))
    goals = _goals(reader, fields)
    if target is None or title is None or hours is None or due is None:
        return None
    who = reader.who
    if not any(who.executes(who.population.agent(agent)) for agent in target.agents(who, _struck(reader, affected))):
        if _loose(fields):
            target = Target(kind="role", names=tuple(who.org.roles))  # heads are meant who have no time: somebody of the organization
        else:
            reader.wrong(node, f"nobody of those named has time for tasks, so nobody could do {title[:SHOWN]!r}. Name another role")
    return Workload(target=target, title=title, hours=hours, due=due, priority=priority, goals=goals)


def _loose(fields: Fields) -> bool:
    """Whether nobody is named: who is meant follows from an activity, from words, or from whom the incident affects."""
    return not any(kind in fields for kind in KINDS)


def _goals(reader: Reader, fields: Fields) -> tuple[str, ...]:
    node = fields.get("goals")
    names = reader.names(node) if node is not None else None
    found = [reader.one_of(name, {"goals": name}, "goals", tuple(reader.who.org.goals), "goal") for name in names or ()]
    return tuple(goal for goal in found if goal is not None)


def _capacity(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, (*SELECTORS, "factor", "for"), "a capacity")
    if fields is None:
        return None
    target, span = read_target(reader, node, fields, "a capacity"), reader.span(fields.get("for"))
    factor = reader.number(fields, "factor", least=0.0, most=2.0)
    if "factor" not in fields:
        reader.wrong(node, "a capacity says how much of it is left: `factor: 0.8`")
    return None if target is None or factor is None else Free(target=target, factor=factor, span=span)


def _budget(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, (*SELECTORS, "hours", "hiring", "for"), "a budget")
    if fields is None:
        return None
    target, span = read_target(reader, node, fields, "a budget"), reader.span(fields.get("for"))
    hours = reader.number(fields, "hours", least=0.0)
    freeze = reader.choice(fields, "hiring", ("freeze",), "") == "freeze"
    if "hours" not in fields and "hiring" not in fields:
        reader.wrong(node, "a budget bounds new tasks, `hours: 200`, or ends hiring, `hiring: freeze`, or both")
    return None if target is None else Budget(target=target, hours=hours, freeze=freeze, span=span)


def _kpi(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    figures = reader.who.org.environment
    fields = reader.fields(node, (*figures, ANY, "slope", "for"), "a kpi")
    if fields is None:
        return None
    span, slope = reader.span(fields.get("for")), reader.weekly(fields, "slope", -1e6, 1e6)
    shifts = {name: reader.number(fields, name) for name in fields if name in figures}
    if ANY in fields:
        share = _percent(reader, fields)
        measured = next((goal for goal in reader.who.org.goals.values() if goal.kpi and goal.target is not None), None)
        if share is None or measured is None or measured.kpi is None or measured.target is None:
            return None
        start = figures[measured.kpi].start
        worse = -1 if measured.target > start else 1
        shifts[measured.kpi] = round(worse * abs(start) * share, 6)
    if not shifts:
        reader.wrong(node, f"a kpi names what it shifts, `churn: +0.5`; {hint('', tuple(figures))}")
    known = {name: value for name, value in shifts.items() if value is not None}
    return Push(shifts=known, slope=slope or 0.0, span=span)


def _percent(reader: Reader, fields: Fields) -> float | None:
    """What `any: worse 10%` says: a share of the figure's first value."""
    text = reader.text(fields, ANY) or ""
    value = as_number(text.removeprefix("worse").strip().removesuffix("%")) if text.startswith("worse") and text.endswith("%") else None
    if value is None or not 0 < value <= 100:
        reader.wrong(fields[ANY], f"any is {text[:SHOWN]!r}; write 'worse 10%': away from the goal that it measures")
        return None
    return value / 100


def _outage(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, ("tool", "for"), "a tool_outage")
    if fields is None:
        return None
    tool, span = reader.needed(node, fields, "tool", "sql"), reader.span(fields.get("for"))
    return None if tool is None else Outage(tool=tool, span=span)


def _deadline(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, ("goal", "by", "earlier", "later"), "a deadline")
    if fields is None:
        return None
    goals = reader.who.org.goals
    said = [name for name in ("by", "earlier", "later") if name in fields]
    if len(said) != 1:
        reader.wrong(node, "a deadline says exactly one of `by: 2026-09-30`, `earlier: 4 weeks`, `later: 4 weeks`")
        return None
    dated = [name for name, goal in goals.items() if goal.by is not None]
    if reader.text(fields, "goal") == ANY and ANY not in goals and not dated:
        return None
    goal = dated[0] if reader.text(fields, "goal") == ANY and ANY not in goals else _goal(reader, node, fields)
    by = reader.day(fields, "by")
    if goal is not None and by is None and said[0] != "by" and (span := reader.span(fields[said[0]])) is not None:
        now = goals[goal].by
        if now is None:
            reader.wrong(node, f"{goal!r} has no deadline to move; say the day, `by: 2026-09-30`")
            return None
        by = before(now, span) if said[0] == "earlier" else after(now, span)
    return None if goal is None or by is None else Deadline(goal=goal, by=by)


def _priority(reader: Reader, node: Node, _: tuple[str, ...] | None) -> Effect | None:
    fields = reader.fields(node, ("goal", "to"), "a priority")
    if fields is None:
        return None
    to = reader.choice(fields, "to", ("high", "normal", "low"), "")
    if "to" not in fields:
        reader.wrong(node, "a priority says what it becomes: `to: high`")
    goals = reader.who.org.goals
    if reader.text(fields, "goal") == ANY and ANY not in goals:
        return Ranking(goal=next(iter(goals)), to=cast(Priority, to)) if goals and to else None
    goal = _goal(reader, node, fields)
    return None if goal is None or not to else Ranking(goal=goal, to=cast(Priority, to))


def _goal(reader: Reader, node: Node, fields: Fields) -> str | None:
    return reader.one_of(node, fields, "goal", tuple(reader.who.org.goals), "goal")


def _struck(reader: Reader, affected: tuple[str, ...] | None) -> frozenset[str]:
    who = reader.who
    if affected is None:
        return frozenset(agent.id for agent in who.population)
    return frozenset(agent for name in affected for agent in who.named(name))


EFFECTS: dict[str, Callable[[Reader, Node, tuple[str, ...] | None], Effect | None]] = {
    "news": _news,
    "absence": _absence,
    "departure": _departure,
    "hire": _hire,
    "workload": _workload,
    "capacity": _capacity,
    "budget": _budget,
    "kpi": _kpi,
    "deadline": _deadline,
    "priority": _priority,
    "tool_outage": _outage,
}
