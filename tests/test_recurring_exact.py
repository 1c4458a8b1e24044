"""The three promises for recurring work: one trace however a run is driven, and no stream that moves another."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from pathlib import Path

import pytest

from taskweave import driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.records import Completion, Request
from tests.simulated import simulated
from tests.test_recurring import ABSENCE, RELEASES, desk, logs_of

ORGANIZATION = desk(more=RELEASES)


class Slow(Scripted):
    """The scripted answers, each after a latency of its own."""

    async def complete(self, request: Request) -> Completion:
        await asyncio.sleep(random.Random(str(request.messages)).random() * 0.004)
        return await super().complete(request)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("undisturbed") / "run", ORGANIZATION, incidents=[ABSENCE], until="week:5")


@pytest.mark.parametrize("limit", [1, 32])
def test_the_trace_is_one_whatever_the_limit_and_the_latencies(tmp_path: Path, undisturbed: Run, limit: int) -> None:
    run = simulated(tmp_path / "run", ORGANIZATION, incidents=[ABSENCE], until="week:1", limit=limit)
    folder = run.resume(until="week:2").folder
    assert driving.drive(folder, Slow()).digest
    assert run.resume(until="week:5").digest() == undisturbed.digest()


def test_a_run_that_lost_half_of_its_answers_gives_the_same_cases(tmp_path: Path, undisturbed: Run) -> None:
    run = simulated(tmp_path / "run", ORGANIZATION, incidents=[ABSENCE], until="week:5")
    with sqlite3.connect(run.folder.journal_path) as db:
        sites = [site for (site,) in db.execute("SELECT DISTINCT site FROM outcomes ORDER BY site")]
        for site in random.Random(1).sample(sites, len(sites) // 2):
            db.execute("DELETE FROM outcomes WHERE site = ?", (site,))
    db.close()
    run.folder.run_db_path.unlink()
    assert run.resume().digest() == undisturbed.digest()


def test_a_fork_that_changes_nothing_has_the_same_cases_and_pays_nothing(tmp_path: Path, undisturbed: Run) -> None:
    fork = undisturbed.fork(at="week:3", out=tmp_path / "fork")
    assert fork.digest() == undisturbed.digest()
    assert fork.status().paid == 0


def test_one_more_stream_moves_no_arrival_and_no_hours_of_another(tmp_path: Path, undisturbed: Run) -> None:
    calls = "  calls: {kind: stream, role: Agent, arrivals: 6/week, hours: 0.25-0.5, steps: [answer]}\n"
    more = simulated(tmp_path / "run", ORGANIZATION + calls, incidents=[ABSENCE], until="week:5")
    before, after = ({log.id: log for log in logs_of(run)} for run in (undisturbed, more))
    assert {name: log.arrived for name, log in before.items()} == {name: log.arrived for name, log in after.items()}
    assert {name: log.escalated for name, log in before.items() if log.completed} == {
        name: after[name].escalated for name, log in before.items() if log.completed
    }
    hours = [{s.id: s.worked for log in logs.values() for s in log.steps.values() if s.finished is not None} for logs in (before, after)]
    both = hours[0].keys() & hours[1].keys()
    assert len(both) > 100
    assert all(hours[0][name] == hours[1][name] for name in both)
    assert logs_of(more, "calls")


def test_an_empty_work_is_no_work(tmp_path: Path) -> None:
    organization = desk().partition("work:")[0]
    digests = {
        simulated(tmp_path / name, organization + text, until="week:1").digest() for name, text in (("none", ""), ("empty", "work: {}\n"))
    }
    assert len(digests) == 1
