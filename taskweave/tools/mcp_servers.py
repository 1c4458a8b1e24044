"""Which tools does a role have of MCP servers, and how is one called at most once?  Entry points: `fetched`, `kept`, `McpServers`.

Their tools are asked for once, at a run's begin, and kept with the run: a resume, a replay and a verification need no server.  A server
runs from the first call that is made of it, in the process that drives the run.  What it says is data, bounded and without the keys.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from taskweave.backbones.legible import legible
from taskweave.backbones.masking import LEAST, Mask
from taskweave.errors import BadInput, ToolRefused
from taskweave.records import Json, canonical
from taskweave.tools.mcp_schema import checked, tamed
from taskweave.tools.mcp_wire import CannotStart, SaidNo, Wire
from taskweave.tools.tool import Tool

if TYPE_CHECKING:
    from taskweave.engine.promises import Context
    from taskweave.org.organization import McpServer, Organization

IDEMPOTENCY_KEY = "taskweave/idempotency-key"  # in a call's `_meta`
MOST_TOOLS, MOST_PAGES = 64, 20  # of one server
MOST_NAME, MOST_TOLD = 64, 400  # characters of a tool's name as endpoints take it, and of what is said of it
MOST_SAID = 4_000  # characters of an answer
MOST_FAILURES = 3  # in a row, after which a server is left alone until the run is resumed
UNKNOWN = "unknown"
_UNFIT = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class ServerTool(Tool):
    """A tool `called` so on a `server`; `told` is what the server says of it, `takes` the schema of its arguments as canonical JSON."""

    server: str = ""
    called: str = ""
    told: str = ""
    takes: str = "{}"

    @cached_property
    def description(self) -> str:
        return f"{self.called}, of the server {self.server}, which says of it: {json.dumps(self.told, ensure_ascii=False)}"

    @cached_property
    def schema(self) -> dict[str, Json]:
        found: dict[str, Json] = json.loads(self.takes)
        return found

    def checked(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        try:
            return checked(self.schema, arguments)
        except ToolRefused as refused:
            raise ToolRefused(f"{self.name}: {refused}") from None


def unset(org: Organization) -> list[str]:
    """The environment variables that servers of the organization are to be given, and that are not there."""
    return [name for name in dict.fromkeys(name for one in _used(org).values() for name in one.env) if not os.environ.get(name)]


def refuse_unset(org: Organization) -> None:
    """Raises BadInput where a variable is not set."""
    if missing := unset(org):
        server = next(name for name, one in _used(org).items() if missing[0] in one.env)
        raise BadInput(f"the server {server!r} needs the environment variable {missing[0]}, which is not set: export {missing[0]}=...")


def refuse_unkept(org: Organization, found: Mapping[str, Json]) -> None:
    """Raises BadInput where an organization uses a server that the run, which it is to go on with, was not begun with."""
    if missing := [name for name in _used(org) if name not in found]:
        raise BadInput(f"the run was begun without the MCP server {missing[0]!r}, so its tools are not known; no role may name it")


def _used(org: Organization) -> dict[str, McpServer]:
    """The servers that a role names, where tools are on."""
    named = {tool.strip().partition(".")[0] for role in org.roles.values() for tool in role.tools} if org.tools else set()
    return {name: one for name, one in org.servers.items() if name in named}


# ---------------------------------------------------------------- at a run's begin
def fetched(org: Organization, folder: Path, say: Callable[[str], None] = lambda _: None) -> dict[str, Json]:
    """What is kept with a run of its servers: for each the folder it runs in and its tools.  Starts each once; `say` hears of it.

    Raises BadInput, naming the command, for a server that cannot be started or whose tools cannot be used.
    """
    refuse_unset(org)
    found: dict[str, Json] = {}
    for name, one in _used(org).items():
        say(f"Asking the server {name} for its tools: {' '.join(one.command)}")
        mask = _Masks(one)
        try:
            wire = _start(one, folder)
            try:
                listed, names = _listed(wire, one)
            finally:
                wire.close()
        except (CannotStart, SaidNo, OSError) as why:
            raise BadInput(f"the server {name!r} cannot be used ({' '.join(one.command)}, in {folder}): {mask.line(why)}") from None
        found[name] = {"folder": str(folder), "tools": [_kept_tool(name, tool, mask) for tool in _wanted(name, one, listed, names)]}
    return found


def _start(one: McpServer, folder: Path) -> Wire:
    return Wire(one.command, folder=folder, env={name: os.environ.get(name, "") for name in one.env}, seconds=one.seconds)


def _listed(wire: Wire, one: McpServer) -> tuple[list[dict[str, Json]], list[str]]:
    """The tools that the server lists, as far as they are wanted, and the names of all that were looked at."""
    tools: list[dict[str, Json]] = []
    names: list[str] = []
    asked: dict[str, Json] = {}
    for _ in range(MOST_PAGES):
        page = wire.ask("tools/list", asked)
        given = page.get("tools")
        found = [tool for tool in given if _is_tool(tool)] if isinstance(given, list) else []
        names += [tool["name"] for tool in found]
        tools += [tool for tool in found if not one.tools or tool["name"] in one.tools]
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or not cursor or len(tools) > MOST_TOOLS:
            break
        asked = {"cursor": cursor}
    return list({tool["name"]: tool for tool in tools}.values()), names


def _is_tool(tool: Json) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str) and 0 < len(tool["name"]) <= 128


def _wanted(name: str, one: McpServer, listed: Sequence[dict[str, Json]], names: Sequence[str]) -> Sequence[dict[str, Json]]:
    have = [tool["name"] for tool in listed]
    for wanted in one.tools:
        if wanted not in have:
            raise BadInput(f"servers.{name}.tools: the server has no tool {wanted!r}{_nearest(wanted, names)}")
    if len(listed) > MOST_TOOLS:
        raise BadInput(f"the server {name!r} has more than {MOST_TOOLS} tools: name those that are wanted under servers.{name}.tools")
    if not listed:
        raise BadInput(f"the server {name!r} lists no tool")
    return listed


def _kept_tool(server: str, tool: Mapping[str, Json], mask: _Masks) -> dict[str, Json]:
    try:
        takes = tamed(tool.get("inputSchema"))
    except ValueError as why:
        rest = f"Name other tools of it under servers.{server}.tools"
        raise BadInput(f"the tool {mask.line(tool['name'])!r} of the server {server!r} cannot be used: {why}. {rest}") from None
    described = tool.get("description")
    told = " ".join(legible(mask.masked(described if isinstance(described, str) else "")).split())[:MOST_TOLD]
    return {"name": mask.masked(tool["name"]), "told": told, "takes": mask.all_in(takes)}


# ---------------------------------------------------------------- what a role has
def kept(org: Organization, found: Mapping[str, Json], taken: Iterable[str]) -> dict[str, dict[str, ServerTool]]:
    """The tools of each server by their names there, from what was `fetched`; servers of which nothing was kept have none.

    `taken` are names that other tools have.
    """
    tools: dict[str, dict[str, ServerTool]] = {}
    names = set(taken)
    for server in sorted(found.keys() & org.servers.keys()):
        tools[server] = {}
        for tool in found[server]["tools"]:
            name = _own_name(server, tool["name"], names)
            names.add(name)
            told = {"server": server, "called": tool["name"], "told": tool["told"], "takes": canonical(tool["takes"])}
            tools[server][tool["name"]] = ServerTool(name=name, function=_not_here, writes=False, **told)
    return tools


def of_role(org: Organization, names: Sequence[str], tools: Mapping[str, Mapping[str, ServerTool]]) -> list[ServerTool]:
    """The tools of servers that a role with these `tools:` has.  Raises BadInput for one that its server has not."""
    found: dict[str, ServerTool] = {}
    for named in names:
        server, _, called = named.strip().partition(".")
        if server not in org.servers or server not in tools:
            continue
        if called and called not in tools[server]:
            raise BadInput(f"{named!r}: the server has no such tool{_nearest(called, list(tools[server]))}")
        found |= {tool.name: tool for tool in ([tools[server][called]] if called else tools[server].values())}
    return list(found.values())


def _own_name(server: str, called: str, taken: set[str]) -> str:
    """A name that every endpoint takes, and no other tool has."""
    plain = f"{_UNFIT.sub('_', server)}_{_UNFIT.sub('_', called)}"[:MOST_NAME]
    name, number = plain, 2
    while name in taken:
        name, number = f"{plain[: MOST_NAME - 4]}_{number}", number + 1
    return name


def _not_here(*_: Json) -> Json:
    raise ToolRefused("it is a server's, which only a run calls")


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(names[:8])}{', …' if len(names) > 8 else ''}" if names else ""


# ---------------------------------------------------------------- while a run is driven
class McpServers:
    """The servers of one run: each is started when it is first called, and one call of it is made at a time."""

    def __init__(self, org: Organization, found: Mapping[str, Json]) -> None:
        self.kept = found
        self._specs = {name: one for name, one in org.servers.items() if name in found}
        self._folders = {name: Path(found[name]["folder"]) for name in self._specs}
        self._locks = {name: threading.Lock() for name in self._specs}
        self._masks = {name: _Masks(one) for name, one in self._specs.items()}
        self._failures = dict.fromkeys(self._specs, 0)
        self._wires: dict[str, Wire] = {}

    def close(self) -> None:
        """End those that run."""
        for wire in self._wires.values():
            wire.close()
        self._wires.clear()

    async def use(self, ctx: Context, tool: ServerTool, arguments: Mapping[str, Json], *, actor: str, moment: str) -> Json:
        """What came of a call, as a row of tool_calls keeps it.  It happens at most once; where nobody can know, that is said."""
        question = {"server": tool.server, "tool": tool.called, "arguments": dict(arguments), "actor": actor, "moment": moment}
        found = await ctx.reach(f"tool:{tool.name}", question, lambda key: self.call(tool, arguments, key))
        if UNKNOWN in found:
            found = {"ok": False, "said": f"it is not known whether this was done: {found[UNKNOWN]}", UNKNOWN: True}
        return {**found, "writes": False, "by": actor, "at": moment, "seen": {}, "server": tool.server}

    def call(self, tool: ServerTool, arguments: Mapping[str, Json], key: str) -> Json:
        """{ok, said} of a call, bounded and masked.  Raises OSError where it may have been done and nobody can tell."""
        name, mask = tool.server, self._masks[tool.server]
        with self._locks[name]:
            if self._failures[name] >= MOST_FAILURES:
                return _no(f"the server {name} failed {MOST_FAILURES} times in a row and is not asked again before the run is resumed")
            try:
                wire = self._running(name)
            except CannotStart as why:
                self._failures[name] += 1
                return _no(f"not done: the server {name} cannot be started: {mask.line(why)}")
            try:
                result = wire.ask("tools/call", {"name": tool.called, "arguments": dict(arguments), "_meta": {IDEMPOTENCY_KEY: key}})
            except SaidNo as why:
                self._failures[name] = 0
                return _no(f"the server {name} refuses: {mask.line(why, MOST_SAID - 200)}")
            except OSError as why:
                self._failures[name] += 1
                raise OSError(f"the server {name}: {mask.line(why)}") from None
            if not isinstance(result.get("content"), list) and result.get("structuredContent") is None:
                self._failures[name] += 1
                raise OSError(f"the server {name}: what it answers has no content")
            self._failures[name] = 0
        return {"ok": result.get("isError") is not True, "said": _said(result, mask)}

    def _running(self, name: str) -> Wire:
        wire = self._wires.get(name)
        if wire is not None and wire.alive:
            return wire
        if wire is not None:
            del self._wires[name]
            wire.close()
        self._wires[name] = _start(self._specs[name], self._folders[name])
        return self._wires[name]


class _Masks:
    """Hides what the variables of a server hold, wherever it might say it."""

    def __init__(self, one: McpServer) -> None:
        # So few characters are no secret (`1`, `debug`), and stand in any answer.
        self._masks = [Mask(value, words=len(value) < LEAST) for value in (os.environ.get(name, "") for name in one.env)]

    def masked(self, text: str) -> str:
        for mask in self._masks:
            text = mask.masked(text)
        return text

    def all_in(self, value: Json) -> Json:
        """The value with each text in it masked."""
        if isinstance(value, Mapping):
            return {self.masked(name): self.all_in(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.all_in(part) for part in value]
        return self.masked(value) if isinstance(value, str) else value

    def line(self, what: object, most: int = 600) -> str:
        said = self.masked(str(what)[: 4 * most])
        for mask in self._masks:
            said = mask.line(said, most)
        return Mask("").line(said, most)


def _said(result: Mapping[str, Json], mask: _Masks) -> str:
    """The text of an answer; what else is in it is only named."""
    content = result.get("content")
    parts = [_part(one) for one in (content[:MOST_TOOLS] if isinstance(content, list) else ())]
    text = "\n".join(part for part in parts if part)
    if not text and result.get("structuredContent") is not None:
        text = canonical(result["structuredContent"])
    # Cut before it is masked, which takes time; with so much more that no key is cut in two where the rest ends.
    text = legible(mask.masked(text[: 4 * MOST_SAID])).strip()
    return text if len(text) <= MOST_SAID else f"{text[: MOST_SAID - 40]}… ({len(text):,} characters or more)"


def _part(one: Json) -> str:
    if not isinstance(one, Mapping):
        return ""
    if one.get("type") == "text" and isinstance(one.get("text"), str):
        return str(one["text"])
    return f"({str(one.get('type'))[:40]}, which cannot be shown)"


def _no(why: str) -> Json:
    return {"ok": False, "said": why}
