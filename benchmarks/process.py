"""What does a command take, from a cold process to its exit?  Entry points: `command` for any, `simulated` for a run.

Wall clock and CPU are the kernel's; the peak of resident memory is told by the process itself as it ends, since a child's own figure
begins with its parent's.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from taskweave.engine.reader import JournalReader

# Runs a module as `python -m` does, then writes the peak of memory (bytes) where it is told to.
_TELLING = """
import runpy, sys
file, module, sys.argv[1:] = sys.argv[1], sys.argv[2], sys.argv[3:]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    try:
        with open("/proc/self/status") as status:
            peak = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        import resource
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    with open(file, "w") as told:
        told.write(str(peak))
"""


class Took(NamedTuple):
    """Seconds of wall clock and of CPU, the peak of resident memory in bytes, and the exit code."""

    wall: float
    cpu: float
    memory: int
    code: int


class Measured(NamedTuple):
    """The same of a run that reached its horizon, and how many subtasks it executed."""

    wall: float
    cpu: float
    memory: int
    subtasks: int


def command(*words: str) -> Took:
    """`python -m taskweave WORDS` in a process of its own, whose standard output nobody reads."""
    with tempfile.TemporaryDirectory() as place:
        told = Path(place) / "peak"
        argv = [sys.executable, "-c", _TELLING, str(told), "taskweave", *words]
        nothing = os.open(os.devnull, os.O_WRONLY)
        began = time.perf_counter()
        try:
            child = os.posix_spawn(argv[0], argv, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, nothing, 1)])
        finally:
            os.close(nothing)
        _, status, usage = os.wait4(child, 0)
        wall = time.perf_counter() - began
        return Took(wall, usage.ru_utime + usage.ru_stime, int(told.read_text()), os.waitstatus_to_exitcode(status))


def simulated(organization: str, run: Path, *, until: str = "year") -> Measured:
    """`taskweave run ORGANIZATION --until UNTIL`, scripted; the run is kept in `run`.  Raises RuntimeError where it does not finish."""
    took = command("run", organization, "--until", until, "--out", str(run))
    if took.code:
        raise RuntimeError(f"taskweave run {organization} ended with {took.code}")
    return Measured(took.wall, took.cpu, took.memory, executed(run))


def executed(run: Path) -> int:
    """The executed subtasks of a run, as its last closed week counts them."""
    with JournalReader(run / "journal.db") as journal:
        return int(journal.weeks()[-1].facts["subtasks"])
