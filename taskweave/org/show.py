"""How does an organization look?  Entry points: `tree`, `mermaid`, `graphml` and `resolved`.

`resolved` writes the full file, each value marked given or inferred; it loads again to an equal organization with the same people.  The
others show the agents and the delegation graph; an arrow always leads from who gives work to who does it.  Refuses to print: each
gives a text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date

from taskweave.org import entity_keys, kpis, mcp_servers, recurring
from taskweave.org.delegation import Delegation
from taskweave.org.entity_keys import SINGULAR
from taskweave.org.organization import CrossLink, Organization
from taskweave.org.population import Agent, Population
from taskweave.records import Json

PLAIN = re.compile(r"[\w%/.+-]+(?: [\w%/.+()-]+)*")


def tree(org: Organization, population: Population) -> str:
    """The agents by reporting lines, each with its tier, department and the levels it plans."""
    delegation = Delegation(org, population)
    root = next(agent for agent in population if agent.head is None)
    counted = [(len(population), "agent"), (org.tiers, "tier"), (len(org.departments), "department")]
    lines = [f"{org.name}: " + ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counted)]
    lines += _branch(delegation, population, root, "", "")
    links = [f"  {_link(delegation, population, org, link)}" for link in org.cross_links]
    servers = [*([f"  mail -> {org.mail.smtp}"] if org.mail else []), *([f"  feed -> {org.feed.mastodon}"] if org.feed else [])]
    off = "" if org.tools else " (never, while tools are off)"
    counts = ", ".join(f"{one.count} {kind if one.count != 1 else SINGULAR[kind]}" for kind, one in org.entities.items())
    lines += [*(["cross links:"] if links else []), *links, *([f"has to do with: {counts}"] if counts else [])]
    return "\n".join([*lines, *([f"servers that it reaches{off}:"] if servers else []), *servers])


def _link(delegation: Delegation, population: Population, org: Organization, link: CrossLink) -> str:
    """Who may give work to whom by a cross link, as it stands in the graph, and the link as the file has it."""
    written = f"{link.source} -> {link.target}"
    units = delegation.linked(link)
    edges = [(unit, agent.id) for unit in units for agent in population if agent.role == link.target]
    giving = [unit for unit, target in edges if delegation.edges.get((unit, target)) == "cross"]
    titles = dict.fromkeys(population.agent(unit).role for unit in giving or units)
    if not giving:
        return f"{written} adds nothing: both are in the unit of {' and '.join(titles)}"
    found = "; ".join(f"{title} -> {link.target}" for title in titles)
    return found if found == written else f"{found} (by {written})"


def _branch(delegation: Delegation, population: Population, agent: Agent, head: str, below: str) -> Iterator[str]:
    levels = ", ".join(delegation.levels(agent.id))
    facts = [f"tier {agent.tier}", *([agent.department] if agent.department else []), *([f"plans {levels}"] if levels else [])]
    if agent.executes < 1 and agent.executes > 0:
        facts.append(f"executes {agent.executes:.0%}")
    yield f"{head}{agent.role}: {agent.persona.name} ({'; '.join(facts)})"
    reports = delegation.reports(agent.id)
    for name in reports:
        last = name == reports[-1]
        yield from _branch(
            delegation, population, population.agent(name), below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def mermaid(org: Organization, population: Population) -> str:
    """The delegation graph as a Mermaid flowchart: solid for reporting lines, dotted for cross links.

    That a head also works itself, a loop in the graph, is said in its box.
    """
    delegation = Delegation(org, population)
    nodes = {agent.id: f"a{number}" for number, agent in enumerate(population)}
    lines = ["flowchart TD"]
    for agent in population:
        own = f"<br/>executes {agent.executes:.0%}" if (agent.id, agent.id) in delegation.edges else ""
        label = f"{agent.role}<br/>{agent.persona.name}{own}".replace('"', "#quot;")
        lines.append(f'  {nodes[agent.id]}["{label}"]')
    for source, target, edge in delegation.graph.edges(data=True):
        if source != target:
            lines.append(f"  {nodes[source]} {'-.->' if edge['kind'] == 'cross' else '-->'} {nodes[target]}")
    return "\n".join(lines)


def graphml(org: Organization, population: Population) -> str:
    """The delegation graph as GraphML, with name, role, tier and department of each node and the kind of each edge."""
    import networkx as nx

    return "\n".join(nx.generate_graphml(Delegation(org, population).graph))


# ------------------------------------------------------------ the resolved file
def resolved(org: Organization, population: Population) -> str:
    """The organization as a file in which nothing is left to infer; every value is marked `# given` or `# inferred`.

    Its people are all of the population, those made up as well.
    """
    return "\n".join(_Writer(org, population).lines()) + "\n"


class _Writer:
    """Writes block YAML, one value or list a line, with its mark."""

    def __init__(self, org: Organization, population: Population) -> None:
        self._org, self._population = org, population

    def lines(self) -> Iterator[str]:
        values = self._org.model_dump(exclude={"given"})
        values["cross_links"] = [f"{link.source} -> {link.target}" for link in self._org.cross_links]
        values["people"] = self._people()
        values["work"] = {name: recurring.written(one) for name, one in self._org.work.items()}
        values["servers"] = mcp_servers.written(self._org) or None  # left out where there are none
        values["environment"] = {name: kpis.written(one) for name, one in self._org.environment.items()}
        values["entities"] = {kind: entity_keys.written(one) for kind, one in self._org.entities.items()}
        for role in values["roles"].values():
            del role["title"]
        for key, value in values.items():
            yield from self._value(key, value, ())

    def _people(self) -> dict[str, Json]:
        """Everybody by name, those of the file first: among agents of one role the order says who is which."""
        everybody = {
            agent.persona.name: {"role": agent.role, "years": agent.persona.years, "knows": agent.persona.knows, "away": agent.away}
            for agent in self._population
        }
        return {name: everybody[name] for name in [*self._org.people, *everybody]}

    def _value(self, key: str, value: Json, path: tuple[str, ...]) -> Iterator[str]:
        here, indent = (*path, key), "  " * len(path)
        mark = "given" if ".".join(here) in self._org.given else "inferred"
        if value is None or (value == "" and key == "unit"):
            return  # what does not apply is left out, as in the file it came from
        if isinstance(value, Mapping):
            if value:
                yield f"{indent}{_scalar(key)}:"
            else:
                yield f"{indent}{_scalar(key)}: {{}}  # {mark}"
            for name, inner in value.items():
                yield from self._value(name, inner, here)
        elif isinstance(value, list | tuple) and key != "hours":
            if not value:
                yield f"{indent}{_scalar(key)}: []  # {mark}"
                return
            yield f"{indent}{_scalar(key)}:  # {mark}"
            for item in value:
                yield f"{indent}  - {_item(item)}"
        else:
            yield f"{indent}{_scalar(key)}: {_written(key, value)}  # {mark}"


def _written(key: str, value: Json) -> str:
    """A value in the form in which its field is written."""
    if key == "hours" and isinstance(value, tuple):
        low, high = map(_number, value)
        return low if low == high else f"{low}-{high}"
    if key == "drift":
        return f"{'+' if value >= 0 else ''}{_number(value)}/week"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int | float):
        return _number(value)
    return _scalar(str(value))


def _item(item: Json) -> str:
    if isinstance(item, tuple):
        return "/".join(day.isoformat() for day in item)
    return item.isoformat() if isinstance(item, date) else _scalar(str(item))


def _number(value: float) -> str:
    """The shortest text that reads back as this number."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


def _scalar(text: str) -> str:
    """A text as YAML: plain where nothing in it means anything, else quoted with what YAML takes for a line's end escaped."""
    if PLAIN.fullmatch(text) and not text.startswith(("-", "%")):
        return text
    return re.sub("[\x7f-\x9f\u2028\u2029\ufeff]", lambda char: f"\\u{ord(char[0]):04x}", json.dumps(text, ensure_ascii=False))
