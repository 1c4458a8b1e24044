"""A run over MCP on this process's stdin and stdout.  Entry point: `serve`, which returns when the client is gone.

Only here the `mcp` package is known.  Nothing but the protocol goes to stdout: the package keeps it for itself while it serves.
"""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

from taskweave.errors import BadInput
from taskweave.serving.desk import Desk

EXTRA = "mcp"
LEAST = (2, 0)  # the first whose servers are made as here


def refuse_missing() -> None:
    """BadInput where the package is not installed, or is too old."""
    if find_spec("mcp") is None:
        raise BadInput(f'taskweave mcp needs a package that is not installed: pip install "taskweave[{EXTRA}]"')
    found = version("mcp")
    if tuple(int(part) for part in found.split(".")[:2] if part.isdigit()) < LEAST:
        raise BadInput(
            f'taskweave mcp needs mcp {".".join(map(str, LEAST))} or later, and {found} is installed: pip install "taskweave[{EXTRA}]"'
        )


def serve(desk: Desk, program: str) -> None:
    """Answer until stdin ends, or nobody reads the answers; `program` is the version that the client is told."""
    try:
        asyncio.run(_served(desk, program))
    except* BrokenPipeError:
        pass  # the client is gone


async def _served(desk: Desk, program: str) -> None:
    import mcp.types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    async def tools(_: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool.for_mcp()) for tool in desk.tools])

    async def call(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = desk.call(params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=answer.text)], structured_content=answer.value, is_error=answer.refused
        )

    server = Server("taskweave", version=program, instructions=desk.about, on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
