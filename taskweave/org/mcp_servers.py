"""Which MCP servers may an organization's roles use?  Entry points: `SERVERS` (how the file names them), `check`, `server_of`.

The file holds commands and names of environment variables, never what these hold.  Pure: nothing is started, nothing looked up.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING

from taskweave.org import form
from taskweave.org.form import Field, Kind, Reading, Where, nearest, said
from taskweave.org.yamlfile import Node, Scalar
from taskweave.records import Json

if TYPE_CHECKING:
    from taskweave.org.organization import Organization

MOST_SECONDS = 600
_NAME = re.compile(r"[a-z][a-z0-9-]{0,23}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(f"{said(text)} cannot name a server; take small letters, digits and '-', such as 'crm'")
    return text


def _variable(text: str) -> str:
    if not _VARIABLE.fullmatch(text):
        raise ValueError(f"{said(text.partition('=')[0])} is not the name of an environment variable; no value belongs in the file")
    return text


_WORDS = form.listing(form.TEXT)


def _command(reading: Reading, node: Node, path: Where) -> Json:
    """The words of a command; a lone text is taken apart as a shell would."""
    found: Json = _WORDS.read(reading, node, path)
    if isinstance(node, Scalar) and found:
        try:
            found = tuple(shlex.split(found[0]))
        except ValueError as why:
            return reading.wrong(node.line, f"{'.'.join(path)}: {said(node.text)} is no command ({why})")
    if found is not None and not found:
        return reading.wrong(node.line, f"{'.'.join(path)} names no command; write for example [python, crm_server.py]")
    return found


SERVERS = form.mapping_of(
    _name,
    form.record(
        {
            "command": Field(Kind(_command, _WORDS.schema), "what starts it, run in the folder of this file", required=True),
            "env": Field(
                form.listing(form.scalar(_variable, {"type": "string", "pattern": f"^{_VARIABLE.pattern}$"}, "a variable's name")),
                "names of environment variables that it is given, for keys and the like",
            ),
            "tools": Field(form.listing(form.NAME), "those of its tools that may be used; all by default"),
            "seconds": Field(form.number(more_than=0, most=MOST_SECONDS), "how long a call may take, 30 by default"),
        },
        short="command",
    ),
    "a server",
)


def server_of(named: str, servers: Container[str]) -> str | None:
    """The server that an entry of a role's `tools` means (`crm`, `crm.lookup_customer`); None where it means none."""
    server = named.strip().partition(".")[0]
    return server if server in servers else None


def check(raw: Mapping[str, Json], reading: Reading) -> None:
    """Note what does not fit: a role that names a tool which its server's list lacks, servers that nobody can use."""
    servers: Mapping[str, Json] = raw.get("servers", {})
    used = set()
    for title, role in raw["roles"].items():
        for place, named in enumerate(role.get("tools", ())):
            server, _, tool = named.strip().partition(".")
            if server not in servers:
                continue
            used.add(server)
            listed = servers[server].get("tools", ())
            if tool and listed and tool not in listed:
                what = f"{said(named)} of {said(title)} is not among the tools of servers.{server}{nearest(tool, listed)}"
                reading.wrong_at(("roles", title, "tools", str(place)), what)
    for server in servers:
        if server not in used:
            reading.warn_at(("servers", server), f"no role has a tool of the server {said(server)}; name it under a role's 'tools'")
    if used and not raw.get("tools", False):
        reading.warn_at(("servers",), "the servers are not used: agents use tools only with 'tools: on'")


def written(org: Organization) -> Json:
    """The servers as they stand in a file."""
    return {name: {key: value for key, value in one.model_dump().items() if value != ()} for name, one in org.servers.items()}
