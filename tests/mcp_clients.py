"""An MCP client for tests: `asked` starts a server's command, asks it something over stdio, and ends it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

T = TypeVar("T")
ROOT = Path(__file__).resolve().parent.parent


def asked(run: Path, ask: Callable[[ClientSession], Awaitable[T]], *options: str, errors: Path | None = None) -> T:
    """What `ask` returns of a session with `taskweave mcp RUN`; `errors` is where the server's stderr goes."""

    async def session() -> T:
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "taskweave", "mcp", str(run), *options],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        with open(errors or os.devnull, "w", encoding="utf-8") as log:
            async with stdio_client(server, errlog=log) as (reading, writing), ClientSession(reading, writing) as client:
                await client.initialize()
                return await ask(client)

    return asyncio.run(session())


async def told(client: ClientSession, name: str, **arguments: Any) -> Any:
    """The data of a tool's answer, which must not be a refusal."""
    answer = await client.call_tool(name, arguments)
    text = answer.content[0]
    assert text.type == "text"
    assert not answer.is_error, text.text
    value = json.loads(text.text)
    assert value == answer.structured_content
    return value["data"]


async def refused(client: ClientSession, name: str, **arguments: Any) -> str:
    """Why a call is refused."""
    answer = await client.call_tool(name, arguments)
    text = answer.content[0]
    assert text.type == "text"
    assert answer.is_error, text.text
    said: str = json.loads(text.text)["error"]
    return said
