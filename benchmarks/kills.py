"""`python -m benchmarks.kills`: a run that is killed again and again, against a server that fails now and then, beside one that is not.

It prints whether both have one digest, whether anything that had been answered was sent again, and what the server made beside what the
journal holds and `status` counts as lost.  Each process is a `taskweave` of its own, killed by SIGKILL at a random moment.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.answering import Answering, Handler

EARLY, STARTING = 0.3, 2.0  # the share of kills that come within so many seconds of a start
FAULTS = ("429", "503", "drop", "late drop")


class Failing(Answering):
    """Answers as its parent does, except that a share of all requests meets a fault, whichever they are."""

    def __init__(self, share: float, latency: float, seed: int) -> None:
        super().__init__(FailingHandler)
        self.made_of: Counter[bytes] = Counter()
        self.faults = dict.fromkeys(FAULTS, 0)
        self.received = 0
        self._share, self._latency, self._draw, self._counting = share, latency, random.Random(seed), threading.Lock()

    def fault(self) -> str | None:
        """What the next request is to meet."""
        with self._counting:
            self.received += 1
            found = self._draw.choice(FAULTS) if self._draw.random() < self._share else None
            if found is not None:
                self.faults[found] += 1
        time.sleep(self._latency)
        return found

    def made(self, request: bytes) -> None:
        """An answer to it was made, whoever gets it."""
        with self._counting:
            self.made_of[hashlib.sha256(request).digest()] += 1


class FailingHandler(Handler):
    answering: Failing

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        raw = self.rfile.read(length := int(self.headers["content-length"]))
        if len(raw) < length:  # whoever asked was killed
            self.close_connection = True
            return
        body = json.loads(raw)
        fault = self.answering.fault()
        if fault in ("429", "503"):
            self.send(int(fault), {"error": {"message": f"trouble {fault}", "type": "test", "code": None}}, {"retry-after": "0"})
            return
        if fault == "drop":
            self.close_connection = True
            return
        answer = self.answering.completion(body)
        self.answering.made(raw)
        if fault == "late drop":
            self.close_connection = True
            return
        try:
            self.send(200, answer)
        except OSError:
            self.close_connection = True  # whoever asked was killed


class Found(NamedTuple):
    """What came of it."""

    kills: int
    same: bool
    sent_again: int
    completed: int
    distinct: int
    keys: int
    lost: int
    received: int
    attempts: int
    faults: dict[str, int]


def measure(org: str, until: str, *, kills: int, share: float, latency: float, seed: int, limit: int) -> Found:
    """Kill a run so often and let it end; RuntimeError where it ends before that, or otherwise than it should."""
    with ExitStack() as closing:
        place = Path(closing.enter_context(tempfile.TemporaryDirectory()))
        calm = closing.enter_context(Failing(0.0, 0.0, seed))
        _typed("run", org, "--out", place / "calm", "--until", until, *_told(calm, limit))
        failing = closing.enter_context(Failing(share, latency, seed))
        run, draw = place / "killed", random.Random(seed)
        keys = len(_answered(place / "calm"))
        for done in range(kills):
            words: list[object] = ["resume", run] if (run / "config.json").exists() else ["run", org, "--out", run, "--until", until]
            process = _process(*words, *(_told(failing, limit) if words[0] == "run" else ()))
            # Spread over the run, each at a moment of its own: while answers come, or while it starts and re-executes what it has.
            goal = keys * (done + draw.random()) / (kills + 1)
            starting = done and draw.random() < EARLY
            while not starting and process.poll() is None and len(_answered(run)) < goal:
                time.sleep(0.005)
            time.sleep(draw.random() * (STARTING if starting else 0.05))
            if process.poll() is not None:
                raise RuntimeError(f"the run ended before kill {done + 1} (exit {process.returncode})")
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"\rkilled {done + 1} times, {len(_answered(run)):,} of {keys:,} answers", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        _typed("resume", run)
        status = json.loads(_typed("status", run, "--json"))
        digests = [json.loads(_typed("digest", folder, "--json"))["digest"] for folder in (place / "calm", run)]
        with sqlite3.connect(run / "journal.db") as db:
            (again,) = db.execute(
                "SELECT count(*) FROM attempts a JOIN ends e ON e.attempt = a.id AND e.how = 'outcome'"
                " WHERE EXISTS (SELECT 1 FROM attempts b WHERE b.key = a.key AND b.id > a.id)"
            ).fetchone()
            (attempts,) = db.execute("SELECT count(*) FROM attempts").fetchone()
        db.close()
        return Found(
            kills=kills,
            same=digests[0] == digests[1],
            sent_again=again,
            completed=failing.made_of.total(),
            distinct=len(failing.made_of),
            keys=len(_answered(run)),
            lost=status["lost"],
            received=failing.received,
            attempts=attempts,
            faults=failing.faults,
        )


def say(found: Found) -> list[str]:
    """The figures, a line each."""
    twice, unseen = found.completed - found.distinct, found.attempts - found.received
    dropped = found.faults["drop"]
    return [
        f"{found.kills} kills: the digest is {'that of the undisturbed run' if found.same else 'ANOTHER than the undisturbed run has'}",
        f"requests sent again after their answer was journaled: {found.sent_again:,} of {found.keys:,}",
        f"answers that the server made: {found.completed:,} = {found.keys:,} journaled + {twice:,} made and lost on their way",
        f"lost, as status counts: {found.lost:,} = {twice:,} + {dropped:,} dropped before an answer + {unseen:,} that never reached the "
        f"server + {found.lost - twice - dropped - unseen:,} under way at a kill",
        f"faults: {', '.join(f'{count} {name}' for name, count in found.faults.items())}",
    ]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("organization", nargs="?", default="company_a")
    parser.add_argument("--until", default="quarter")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--faults", type=float, default=0.05, help="the share of requests that meet one")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds an answer takes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=16)
    given: Any = parser.parse_args(words)
    found = measure(
        given.organization,
        given.until,
        kills=given.kills,
        share=given.faults,
        latency=given.latency,
        seed=given.seed,
        limit=given.limit,
    )
    for line in say(found):
        print(line)
    return 0 if found.same and not found.sent_again and found.keys == found.distinct and found.completed <= found.keys + found.lost else 1


def _told(server: Answering, limit: int) -> list[object]:
    return ["--backbone", "openai:answering", "--base-url", server.url, "--limit", limit, "--no-look", "--style", "full"]


def _process(*words: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENAI_API_KEY": "none"}
    command = [sys.executable, "-m", "taskweave", *map(str, words)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def _typed(*words: object) -> str:
    with _process(*words) as process:
        said, _ = process.communicate()
    if process.returncode:
        raise RuntimeError(f"taskweave {' '.join(map(str, words))} ended with {process.returncode}")
    return said


def _answered(run: Path) -> set[str]:
    """Keys of the completions that a run's journal holds."""
    if not (run / "journal.db").exists():
        return set()
    db = sqlite3.connect(f"file:{run / 'journal.db'}?mode=ro", uri=True, timeout=30)
    try:
        return {key for (key,) in db.execute("SELECT key FROM outcomes WHERE kind = 'complete'")}
    finally:
        db.close()


if __name__ == "__main__":
    sys.exit(main())
