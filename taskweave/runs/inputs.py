"""Is what a run works from still what it began with?  Entry points: `changed`, `write_down`.

Every input that decides what is asked has a name that a person knows (a key of the organization, an agent, a prompt, a setting) and a
digest, kept in the journal from the first start on.  The organization counts as resolved, so that its comments and layout may be
edited; a role's `share` does not count, since only reports read it.  Knows nothing of what the inputs do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from taskweave.engine.journal import Journal
from taskweave.engine.reader import JournalReader
from taskweave.records import Json, canonical
from taskweave.runs import folder as folders

if TYPE_CHECKING:
    from taskweave.org.schema import Organization
    from taskweave.runs.config import RunConfig
    from taskweave.runs.folder import RunFolder


def changed(folder: RunFolder) -> list[str]:
    """What differs from what the run began with, by name; nothing before its first start.

    Raises BadInput where an input is missing or no longer readable.
    """
    now = _digests(folder)
    with JournalReader(folder.journal_path) as reader:
        before = reader.inputs()
    names = [*now, *(name for name in before if name not in now)] if before else []
    return [name for name in names if before.get(name) != now.get(name)]


def write_down(folder: RunFolder) -> None:
    """Write down what a run works from, at its first start; later that stays."""
    with JournalReader(folder.journal_path) as reader:
        if reader.inputs():
            return
    with Journal(folder.journal_path, create=False) as journal:
        journal.write_inputs(_digests(folder))


def _digests(folder: RunFolder) -> dict[str, str]:
    return {name: hashlib.sha256(canonical(value).encode("utf-8", "surrogatepass")).hexdigest() for name, value in _inputs(folder)}


def _inputs(folder: RunFolder) -> Iterator[tuple[str, Json]]:
    yield from (("config.json: " + name, value) for name, value in _told(folder.config))
    for segment in {one.org: one for one in folder.config.segments}.values():
        yield from ((f"{segment.org}: {name}", value) for name, value in _organized(folder.organization(segment)))
        agents = json.loads(folder.population(segment).to_json())
        yield f"{segment.population}: who is in it", [agent["id"] for agent in agents]
        yield from ((f"{segment.population}: {agent['id']}", agent) for agent in agents)
    yield from ((f"entities.json: {entity.id}", entity.row()) for entity in folder.entities())
    if (routes := folder.routes()) is not None:
        yield from ((f"{folder.config.routing}: route {number}", route.told()) for number, route in enumerate(routes.routes, 1))
    for server, kept in folder.mcp_servers().items():
        yield from ((f"{folders.MCP_SERVERS}: {server}.{tool['name']}", tool) for tool in kept["tools"])
    for prompts, one in {one.prompts: one for one in folder.config.segments}.items():
        yield from ((f"{prompts}/{prompt.id}.md", prompt.digest) for prompt in folder.prompts(one))


def _told(config: RunConfig) -> Iterator[tuple[str, Json]]:
    yield from (("seed", config.seed), ("assign", config.assign), ("backbone", config.backbone), ("style", config.style))
    if config.without:  # a run that leaves nothing out is the one that was begun before parts could be
        yield "without", sorted(config.without)
    for number, segment in enumerate(config.segments):
        # Where it is asked may change; which backbone it is may not.
        decides = segment.model_dump(mode="json", exclude={"given", "base_url"})
        yield from ((f"segments.{number}.{name}", value) for name, value in decides.items())


def _organized(org: Organization) -> Iterator[tuple[str, Json]]:
    for name, value in org.model_dump(mode="json", exclude={"given": True, "roles": {"__all__": {"share"}}}).items():
        if not isinstance(value, Mapping):
            yield name, value
            continue
        parts: Mapping[str, Any] = value
        if name == "environment":  # a run whose figures have no season is the one that was begun before they could have one
            parts = {key: {k: v for k, v in kpi.items() if k != "season" or v is not None} for key, kpi in parts.items()}
        if name in ("roles", "people", "goals"):
            yield f"{name} (their order)", list(parts)
        yield from ((f"{name}.{key}", part) for key, part in parts.items())
