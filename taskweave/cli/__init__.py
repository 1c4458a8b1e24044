"""The door: what one types.  Entry point: `main`.

Commands parse, call the rooms and print; nothing is decided here.  Heavy packages load inside the commands, so that `--help` is quick.
"""

from __future__ import annotations

import sys

from taskweave.cli import (
    comparing,
    estimating,
    forking,
    happening,
    organizing,
    output,
    probing,
    reading,
    running,
    serving,
    tooling,
    watching,
)
from taskweave.cli.app import app
from taskweave.cli.output import tolerant_streams

__all__ = ["app", "main"]

# The order of the help: what one does first stands first.
for _room in (running, estimating, probing, watching, forking, comparing, reading, organizing, happening, tooling, serving):
    _room.register(app)


def main() -> None:
    """Run the command line of this process."""
    tolerant_streams()
    try:
        app()
    finally:
        if (code := output.settle()) is not None:  # --help and the like end before a command could flush
            sys.exit(code)
