"""How tests type: into the command line of this process, or of one of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main
from typer.testing import CliRunner

from taskweave.cli import app
from taskweave.engine.reader import JournalReader

ROOT = Path(__file__).resolve().parent.parent.parent
INCIDENT = "title: Strike\ncategory: internal\ndescription: Nobody works overtime.\nseverity: high\naffects: all\nduration: 2 weeks\n"
HEX = "0123456789abcdef"


def type_in(*words: str | Path) -> Any:
    """What the command line of this process answers."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def refused(*words: str | Path) -> str:
    done = type_in(*words)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    return " ".join(str(done.stderr).split())


def garble(file: Path) -> None:
    """Garbage over the pages in the middle of a file."""
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(content[:middle] + b"\xa5" * 16384 + content[middle + 16384 :])


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def shell(*words: str | Path, **more: str) -> subprocess.CompletedProcess[bytes]:
    """What a process of its own answers."""
    return subprocess.run([*command(), *map(str, words)], capture_output=True, env=environment(**more), timeout=120, check=False)


def command() -> list[str]:
    return [sys.executable, "-m", "taskweave"]


def parameters() -> Iterator[tuple[str, Any]]:
    for name, one in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        for parameter in one.params:
            yield name, parameter


def start(*words: str | Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*command(), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(OPENAI_API_KEY="k")
    )


def wait_for(run: Path, calls: int) -> None:
    """Until the live run has so many answers."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if (run / "journal.db").exists():
            with JournalReader(run / "journal.db") as journal:
                if journal.counts().outcomes.get("complete", 0) >= calls:
                    return
        time.sleep(0.05)
    raise AssertionError("the run did not come so far")


def model_run(url: str, out: str, until: str = "week:8") -> list[str]:
    return ["run", "tiny", "--until", until, "--out", out, "--backbone", "openai:any", "--base-url", url, "--limit", "2", "--no-look"]


def hears(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process has a handler for SIGTERM by now."""
    status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
