"""The engine's promises, tried on whole runs by random trouble: latencies, kills at every commit, injections, changed draws."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taskweave import driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.engine.store import Transaction
from taskweave.errors import Divergence
from taskweave.records import Completion, Request
from taskweave.runs import Inbox, RunFolder
from taskweave.simulation.stage import Stage
from tests.simulated import WORKSHOP, events, simulated

WEEKS = "week:3"
FEW = settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def begun(out: Path, backbone: Scripted, **more: Any) -> RunFolder:
    """A run of three weeks of the workshop that has not begun."""
    told = {
        "seed": 1,
        "until": WEEKS,
        "base_url": None,
        "prompts": [],
        "assign": "match",
        "incidents": [],
        "limit": 8,
        "patience": 60,
        "tags": {},
    }
    return driving.begin(driving.Organization(WORKSHOP), out=out, backbone=backbone, **told | more)[0]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("undisturbed") / "run", until=WEEKS)


# ---------------------------------------------------------------- latencies and limits
class Late(Scripted):
    """Answers after a time that depends on nothing but chance."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._chance = random.Random(seed)

    async def complete(self, request: Request) -> Completion:
        await asyncio.sleep(self._chance.choice((0, 0, 0.001, 0.004)))
        return await super().complete(request)


@FEW
@given(seed=st.integers(0, 2**16), limit=st.sampled_from([1, 2, 5, 16, 64]))
def test_whatever_the_latencies_and_the_limit_there_is_one_trace(
    undisturbed: Run, tmp_path_factory: pytest.TempPathFactory, seed: int, limit: int
) -> None:
    late = Late(seed)
    folder = begun(tmp_path_factory.mktemp("late") / "run", late, limit=limit)
    assert driving.drive(folder, late).stop is None
    assert Run(folder).digest() == undisturbed.digest()


# ---------------------------------------------------------------- kills
class Watched(Scripted):
    """Notes what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, int]] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append((request.logical(), request.seed))
        return await super().complete(request)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lay on the disk after each commit of a run, as a kill at that instant would have left it: a folder a commit, by number."""
    place = tmp_path_factory.mktemp("images")
    watched = Watched()
    folder = begun(place / "run", watched)
    made = 0
    leave = Transaction.__exit__

    def photographed(
        self: Transaction, kind: type[BaseException] | None, trouble: BaseException | None, trace: TracebackType | None
    ) -> None:
        nonlocal made
        leave(self, kind, trouble, trace)
        image = place / f"{made:03d}"
        shutil.copytree(folder.path, image, ignore=shutil.ignore_patterns("*-shm", "lock"))
        made += 1

    patch = pytest.MonkeyPatch()
    patch.setattr(Transaction, "__exit__", photographed)
    try:
        assert driving.drive(folder, watched).stop is None
    finally:
        patch.undo()
    assert made > 50
    return place


def answered(journal: Path) -> set[str]:
    db = sqlite3.connect(journal)
    keys = {key for (key,) in db.execute("SELECT key FROM outcomes WHERE kind = 'complete'")}
    db.close()
    return keys


def resumes(image: Path, where: Path, digest: str) -> None:
    shutil.copytree(image, where)
    before = answered(where / "journal.db")
    watched = Watched()
    rest = Run(*driving.resume(RunFolder.open(where), backbone=watched))
    assert rest.outcome is not None
    assert rest.outcome.stop is None
    assert rest.digest() == digest
    # Each answer that is there now was there before or was asked for once.
    assert len(watched.asked) == len(answered(where / "journal.db") - before)
    db = sqlite3.connect(where / "journal.db")
    (again,) = db.execute(
        "SELECT count(*) FROM attempts a JOIN ends e ON e.attempt = a.id AND e.how = 'outcome'"
        " WHERE EXISTS (SELECT 1 FROM attempts b WHERE b.key = a.key AND b.id > a.id)"
    ).fetchone()
    db.close()
    assert again == 0


@FEW
@given(data=st.data())
def test_killed_after_any_commit_it_ends_with_the_same_trace_and_asks_nothing_again(
    undisturbed: Run, images: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    image = data.draw(st.sampled_from(sorted(folder.name for folder in images.iterdir() if folder.name != "run")))
    resumes(images / image, tmp_path_factory.mktemp("image") / "run", undisturbed.digest())


@pytest.mark.fire
def test_killed_after_each_commit_of_a_run_it_ends_with_the_same_trace(undisturbed: Run, images: Path, tmp_path: Path) -> None:
    for image in sorted(folder for folder in images.iterdir() if folder.name != "run"):
        resumes(image, tmp_path / image.name, undisturbed.digest())


# ---------------------------------------------------------------- injections
class Injecting(Scripted):
    """Throws an incident into the inbox while it answers, at certain calls."""

    def __init__(self, inbox: Path, calls: set[int]) -> None:
        super().__init__()
        self._inbox, self._calls, self._made = Inbox(inbox), calls, 0
        self.thrown = 0

    async def complete(self, request: Request) -> Completion:
        self._made += 1
        if self._made in self._calls:
            self.thrown += 1
            self._inbox.send({"title": f"Trouble {self._made}", "severity": "high", "affects": "all", "duration": "1 week"})
        return await super().complete(request)


@FEW
@given(calls=st.sets(st.integers(1, 60), min_size=1, max_size=3), limit=st.sampled_from([1, 8]))
def test_whenever_an_incident_is_thrown_in_re_execution_repeats_it(
    tmp_path_factory: pytest.TempPathFactory, calls: set[int], limit: int
) -> None:
    place = tmp_path_factory.mktemp("injected") / "run"
    folder = begun(place, Scripted({}), limit=limit)
    injecting = Injecting(folder.inbox, calls)
    assert driving.drive(folder, injecting).stop is None
    run = Run(folder)
    heard = [(event["time"], event["subject"]) for event in events(run, "incident")]
    digest = run.digest()
    assert len(heard) + len(Inbox(folder.inbox).waiting()) == injecting.thrown > 0
    for name in ("run.db", "run.db-wal", "run.db-shm"):
        (place / name).unlink(missing_ok=True)
    again = run.resume(backbone=Scripted())
    assert again.digest() == digest
    assert [(event["time"], event["subject"]) for event in events(again, "incident")] == heard
    assert run.verify().ok


# ---------------------------------------------------------------- draws
@pytest.mark.parametrize(("purpose", "week"), [("hours", 1), ("hours", 2), ("hours", 3)])
def test_a_changed_draw_is_a_divergence_of_its_week_and_overwrites_nothing(tmp_path: Path, purpose: str, week: int) -> None:
    run = simulated(tmp_path / "run", WORKSHOP.replace("variation: 0", "variation: 0.3"), until=WEEKS)
    before = run.digest()
    drawn = Stage.random

    def otherwise(self: Stage, what: str, site: str) -> random.Random:
        return drawn(self, what, f"{site} otherwise" if what == purpose and self.week.number >= week else site)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stage, "random", otherwise)
        with pytest.raises(Divergence, match=rf"week {week} (was closed with digest|is closed, and the journal holds no answer)"):
            run.resume()
    assert Run.open(run.path).digest() == before
