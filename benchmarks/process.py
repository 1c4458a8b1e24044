"""What does a command take, from a cold process to its exit?  Entry points: `fresh` for any, `simulated` for a scripted run.

Wall clock and CPU are the kernel's, with those of the processes that it waited for.  The peak of resident memory is told by the process
itself as it ends, since what the kernel says of a child begins with its parent's; that of the largest process beside it is added.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from taskweave.engine.reader import JournalReader

# Runs a module as `python -m` does, then writes the peaks of memory in bytes, its own and that beside it, where it is told to.
_TELLING = """
import resource, runpy, sys
file, module, sys.argv[1:] = sys.argv[1], sys.argv[2], sys.argv[3:]
try:
    runpy.run_module(module, run_name="__main__", alter_sys=True)
finally:
    unit = 1 if sys.platform == "darwin" else 1024
    own, beside = (resource.getrusage(who).ru_maxrss * unit for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    try:
        with open("/proc/self/status") as status:
            own = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    except OSError:
        pass
    with open(file, "w") as told:
        told.write(f"{own} {beside}")
"""


class Took(NamedTuple):
    """Seconds of wall clock and of CPU, the peak of resident memory in bytes, and what was said on standard output."""

    wall: float
    cpu: float
    memory: int
    said: str


class Measured(NamedTuple):
    """The same of a run that reached its horizon, and how many subtasks it executed."""

    wall: float
    cpu: float
    memory: int
    subtasks: int


def fresh(module: str, *words: str) -> Took:
    """`python -m MODULE WORDS` in a process of its own.  Raises RuntimeError, with what it said last, where it fails."""
    with tempfile.TemporaryDirectory() as place:
        told, said, noted = Path(place) / "peaks", Path(place) / "said", Path(place) / "noted"
        argv = [sys.executable, "-c", _TELLING, str(told), module, *words]
        opened = [(os.POSIX_SPAWN_OPEN, to, str(file), os.O_WRONLY | os.O_CREAT, 0o600) for to, file in ((1, said), (2, noted))]
        began = time.perf_counter()
        child = os.posix_spawn(argv[0], argv, os.environ, file_actions=opened)
        _, status, usage = os.wait4(child, 0)
        wall, code = time.perf_counter() - began, os.waitstatus_to_exitcode(status)
        if code:
            last = noted.read_text(encoding="utf-8", errors="replace").strip().rpartition("\n")[2]
            raise RuntimeError(f"python -m {module} {' '.join(words)} ended with {code}: {last}")
        memory = sum(map(int, told.read_text().split()))
        return Took(wall, usage.ru_utime + usage.ru_stime, memory, said.read_text(encoding="utf-8"))


def simulated(organization: str, run: Path, *, until: str = "year") -> Measured:
    """`taskweave run ORGANIZATION --until UNTIL`, scripted; the run is kept in `run`."""
    took = fresh("taskweave", "run", organization, "--until", until, "--out", str(run))
    return Measured(took.wall, took.cpu, took.memory, executed(run))


def executed(run: Path) -> int:
    """The executed subtasks of a run, as its last closed week counts them."""
    with JournalReader(run / "journal.db") as journal:
        return int(journal.weeks()[-1].facts["subtasks"])
