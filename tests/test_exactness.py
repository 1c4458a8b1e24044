"""The three promises on whole runs: the same trace however calls interleave, nothing asked twice, incidents only where they are heard."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from taskweave import driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.cli.closing_words import after
from taskweave.cli.running import stopped
from taskweave.engine.engine import Engine
from taskweave.engine.journal import Journal
from taskweave.engine.reader import JournalReader
from taskweave.errors import BadInput, Divergence, Refused
from taskweave.pool.tables import TABLES
from taskweave.records import Completion, Request
from taskweave.runs import Inbox, RunFolder
from tests.simulated import events, rows, simulated


class Slow(Scripted):
    """The scripted answers, each after a latency of its own."""

    def __init__(self, seed: int, longest: float = 0.004) -> None:
        super().__init__()
        self._draw, self._longest = random.Random(seed), longest
        self.flying = self.peak = 0

    async def complete(self, request: Request) -> Completion:
        self.flying += 1
        self.peak = max(self.peak, self.flying)
        await asyncio.sleep(self._draw.random() * self._longest)
        self.flying -= 1
        return await super().complete(request)


def begun(where: Path, organization: str = "tiny", *, until: str = "week:4", limit: int = 16, seed: int = 1) -> RunFolder:
    folder, _ = driving.begin(
        driving.Organization.load(organization),
        out=where,
        backbone="scripted",
        seed=seed,
        until=until,
        base_url=None,
        prompts=[],
        assign="match",
        incidents=[],
        limit=limit,
        patience=60,
        tags={},
    )
    return folder


def exported(run: Run, where: Path) -> dict[str, bytes]:
    """The exported files but calls.jsonl."""
    run.export(where)
    return {file.name: file.read_bytes() for file in sorted(where.iterdir()) if file.name != "calls.jsonl"}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("undisturbed") / "run", "tiny")


@pytest.mark.parametrize("limit", [1, 4, 32])
def test_one_trace_whatever_the_latencies_and_the_limit(tmp_path: Path, undisturbed: Run, limit: int) -> None:
    folder = begun(tmp_path / "run", limit=limit)
    slow = Slow(limit)
    outcome = driving.drive(folder, slow)
    assert slow.peak <= limit
    assert outcome.digest == undisturbed.outcome.digest  # type: ignore[union-attr]
    assert exported(Run.open(folder.path), tmp_path / "one") == exported(undisturbed, tmp_path / "two")


def test_another_seed_gives_another_trace(tmp_path: Path, undisturbed: Run) -> None:
    assert simulated(tmp_path / "run", "tiny", seed=2).digest() != undisturbed.digest()


@pytest.mark.parametrize("hash_seed", ["0", "77"])
def test_the_hash_seed_and_the_folder_change_nothing(tmp_path: Path, undisturbed: Run, hash_seed: str) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.simulated import simulated; print(simulated(Path(sys.argv[1]), 'tiny').digest())"
    )
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)}
    command = [sys.executable, "-c", program, str(tmp_path / f"other-{hash_seed}" / "run")]
    (tmp_path / f"other-{hash_seed}").mkdir()
    printed = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True)
    assert printed.stdout.strip() == undisturbed.digest()


def test_a_run_stopped_at_a_boundary_and_resumed_is_the_run_at_once(tmp_path: Path, undisturbed: Run) -> None:
    first = simulated(tmp_path / "run", "tiny", until="week:2")
    assert first.digest() != undisturbed.digest()
    second = first.resume(until="week:4")
    assert second.digest() == undisturbed.digest()
    with JournalReader(second.folder.journal_path) as journal:
        counts = journal.counts()
    assert counts.attempts == sum(counts.outcomes.values()) - searches(second)


def test_a_finished_run_re_executes_without_a_request(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "tiny", until="week:2")
    digest = run.digest()
    run.folder.run_db_path.unlink()
    with JournalReader(run.folder.journal_path) as journal:
        before = journal.counts()
    assert run.resume().digest() == digest
    with JournalReader(run.folder.journal_path) as journal:
        assert journal.counts().attempts == before.attempts


def test_a_journal_without_some_decompositions_gives_the_same_trace(tmp_path: Path, undisturbed: Run) -> None:
    run = simulated(tmp_path / "run", "tiny")
    with sqlite3.connect(run.folder.journal_path) as db:
        sites = [site for (site,) in db.execute("SELECT DISTINCT site FROM outcomes WHERE site LIKE '%:decompose' ORDER BY site")]
        for site in random.Random(1).sample(sites, len(sites) // 2):
            db.execute("DELETE FROM outcomes WHERE site = ?", (site,))
        db.execute("DELETE FROM weeks")  # of a closed week nothing is asked again
    db.close()
    assert run.resume().digest() == undisturbed.digest()


def test_a_changed_answer_in_the_journal_is_a_divergence_of_its_week(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", "tiny", until="week:2")
    with sqlite3.connect(run.folder.journal_path) as db:
        key, value = db.execute("SELECT key, value FROM outcomes WHERE site LIKE '%:merge' ORDER BY site LIMIT 1").fetchone()
        answer = json.loads(value)
        answer["text"] = answer["text"].replace('"title": "', '"title": "Another ', 1)
        db.execute("UPDATE outcomes SET value = ? WHERE key = ?", (json.dumps(answer), key))
    db.close()
    digest = run.digest()
    with pytest.raises(Divergence, match="week 1"):
        run.resume()
    assert run.digest() == digest, "what was written stays until all of it is rebuilt"
    assert not list(run.path.glob("run.db?*"))


SPOILED = {
    "not JSON": "substr(value, 1, length(value) - 1) || '#'",
    "not UTF-8": "CAST(CAST(substr(value, 1, 20) AS BLOB) || x'ff80' || CAST(substr(value, 22) AS BLOB) AS TEXT)",
    "another key": "replace(value, '\"latency\"', '\"latencx\"')",
    "another kind": "'7'",
    "a blob": "x'00ff'",
}


@pytest.mark.parametrize("how", SPOILED)
def test_an_outcome_that_cannot_be_read_is_a_damaged_journal_and_empties_nothing(tmp_path: Path, how: str) -> None:
    run = simulated(tmp_path / "run", "tiny", until="week:2")
    digest = run.digest()
    with contextlib.closing(sqlite3.connect(run.folder.journal_path)) as db, db:
        db.execute(f"UPDATE outcomes SET value = {SPOILED[how]} WHERE site LIKE '%W02%:merge'")
    with pytest.raises(BadInput, match=r"journal\.db: the journal is damaged \(.{0,250}restore it from a copy"):
        run.resume()
    assert run.digest() == digest


@pytest.mark.parametrize("facts", ["'{'", "CAST(x'ff' AS TEXT)", "'[]'"])
def test_a_closed_week_that_cannot_be_read_is_a_damaged_journal(tmp_path: Path, facts: str) -> None:
    run = simulated(tmp_path / "run", "tiny", until="week:1")
    with contextlib.closing(sqlite3.connect(run.folder.journal_path)) as db, db:
        db.execute(f"UPDATE weeks SET facts = {facts}")
    for ask in (run.status, run.digest):
        with pytest.raises(BadInput, match=r"journal\.db: the journal is damaged"):
            ask()


def test_a_run_that_is_stopped_while_it_re_executes_keeps_its_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(tmp_path / "run", "tiny", until="week:3")
    digest = run.digest()
    engines: list[Engine] = []
    make, close = Engine.__init__, Journal.close_week

    def made(self: Engine, **given: Any) -> None:
        make(self, **given)
        engines.append(self)

    def closes(self: Journal, week: int, week_digest: str, facts: dict[str, Any]) -> None:
        close(self, week, week_digest, facts)
        engines[-1].halt("stopped", "no more")

    monkeypatch.setattr(Engine, "__init__", made)
    monkeypatch.setattr(Journal, "close_week", closes)
    outcome = driving.drive(run.folder, Scripted())
    assert (outcome.stop, outcome.week, outcome.executed) == ("stopped", 3, 1)
    assert after(run.folder, outcome)["closing"]
    assert outcome.digest == run.status().week_digest
    assert stopped(run.folder, outcome).startswith("stopped after week 3, of which 1 had been re-executed: no more. Continue with: ")
    assert Run.open(run.path).digest() == digest
    run.folder.run_db_path.unlink()
    assert after(run.folder, driving.drive(run.folder, Scripted()))["closing"] is None, "one week of three is no year to tell of"


def test_nothing_is_asked_again_within_weeks_that_are_closed(tmp_path: Path) -> None:
    class Asked(Scripted):
        def __init__(self) -> None:
            super().__init__()
            self.sites: list[int] = []

        async def complete(self, request: Request) -> Completion:
            self.sites.append(request.seed)
            return await super().complete(request)

    run = simulated(tmp_path / "run", "tiny", until="week:3")
    digest = run.digest()
    with contextlib.closing(sqlite3.connect(run.folder.journal_path)) as db, db:
        (site,) = db.execute("SELECT site FROM outcomes WHERE site LIKE '%/W02@%/s1:execute' ORDER BY site").fetchone()
        db.execute("DELETE FROM outcomes WHERE site = ?", (site,))
    asked = Asked()
    with pytest.raises(Divergence, match=rf"week 2 is closed, and the journal holds no answer to what is asked at {site}"):
        driving.resume(run.folder, backbone=asked, until="week:4")
    assert asked.sites == []
    assert Run.open(run.path).digest() == digest


def test_a_stop_after_everything_was_re_executed_tells_the_weeks_that_are_closed(tmp_path: Path) -> None:
    class Breaks(Scripted):
        async def complete(self, request: Request) -> Completion:
            raise Refused("no key")

    run = simulated(tmp_path / "run", "tiny", until="week:2")
    outcome = driving.drive(run.folder.with_config(until="week:4"), Breaks())
    assert (outcome.stop, outcome.week, outcome.executed) == ("refused", 2, 2)
    assert stopped(run.folder, outcome).startswith("refused after week 2: no key. Continue with: ")


def test_urgent_work_in_one_department_moves_no_draw_of_another(tmp_path: Path) -> None:
    two = """
name: Two
domain: Consulting
roles:
  Chief: {}
  North: {reports_to: Chief, leads: Northern}
  South: {reports_to: Chief, leads: Southern}
  Clerk: {reports_to: North, hours: 2-4}
  Typist: {reports_to: South, hours: 2-4}
"""
    storm = {"title": "Roof leaks", "severity": "high", "at": "2026-01-07", "affects": ["Northern"]}

    def all_normal(request: Request) -> object:
        # What one department writes is read by the other and may change its priorities; what is left then is draws.
        answer = Scripted().answer(request)
        return {"tasks": [task | {"priority": "normal"} for task in answer["tasks"]]}

    stubs = {"partition_week": all_normal}
    calm, hit = (simulated(tmp_path / name, two, incidents=given, stubs=stubs) for name, given in (("calm", []), ("hit", [storm])))
    assert rows(hit, "tasks", priority="urgent")

    def south(run: Run) -> list[tuple[object, ...]]:
        return [
            (row["id"], row["assignee"], row["hours"], row["started"], row["finished"])
            for row in run.table("subtasks")
            if "@south/" in row["id"]
        ]

    assert south(calm) == south(hit)
    assert south(calm)


def test_an_incident_is_heard_by_those_affected_and_their_ancestors_from_its_tick_until_its_end(tmp_path: Path) -> None:
    news = {"title": "Zebra crossing closed", "at": "week:2", "affects": ["Backend Engineer"], "duration": "1 week"}
    run = simulated(tmp_path / "run", "tiny", until="week:4", incidents=[news])
    plans = {(state["id"], state["revision"]): state["plan"] for state in run.table("states")}
    naming = {unit.rsplit("/", 1)[-1].partition("@")[0] for (unit, _), plan in plans.items() if "Zebra crossing closed" in plan}
    assert "W02" in naming
    assert not naming & {"W01"}
    assert [event["subject"] for event in events(run, "incident")] == ["zebra-crossing-closed"]
    assert events(run, "incident_end")


@pytest.mark.fire
def test_a_year_is_the_same_byte_for_byte_whatever_the_limit_the_hash_seed_and_the_folder(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent

    def typed(*words: str, hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, "-m", "taskweave", *words]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=280, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def year(folder: str, limit: str, hash_seed: str) -> tuple[str, dict[str, bytes]]:
        typed("run", "company_a", "--out", folder, "--limit", limit, hash_seed=hash_seed)
        typed("export", folder, "--format", "jsonl", "--out", f"data of {folder}", hash_seed=hash_seed)
        files = {file.name: file.read_bytes() for file in (tmp_path / f"data of {folder}").iterdir()}
        return typed("digest", folder, hash_seed=hash_seed), files

    def first_week(seed: str) -> str:
        words = ("run", "company_a", "--out", f"seed {seed}", "--until", "week:1", "--seed", seed, "--json")
        return str(json.loads(typed(*words, hash_seed="0"))["digest"])

    (digest, files), (other_digest, other_files) = year("A", "1", "0"), year("B x", "32", "1")
    assert digest == other_digest
    assert sorted(files) == sorted(other_files) == sorted(f"{table}.jsonl" for table in TABLES)
    assert files["subtasks.jsonl"].count(b"\n") > 2_500
    assert [name for name in files if files[name] != other_files[name] and name != "calls.jsonl"] == []
    assert first_week("1") != first_week("2")


@pytest.mark.fire
def test_killed_at_twenty_random_moments_it_ends_with_the_undisturbed_digest(tmp_path: Path) -> None:
    undisturbed = simulated(tmp_path / "undisturbed", "company_a", until="quarter").digest()
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    base = [sys.executable, "-m", "taskweave"]
    run = tmp_path / "killed"
    draw, moments = random.Random(5), [0]
    for kill in range(21):
        there = (run / "config.json").exists()
        command = [*base, *(["resume", str(run)] if there else ["run", "company_a", "--out", str(run), "--until", "quarter"])]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if kill == 20:
            assert process.wait(timeout=200) == 0
            break
        # At least one more answer than before, so that every kill falls elsewhere: in planning, in work, between two commits.
        goal = moments[-1] + draw.randint(1, 90)
        while process.poll() is None and answered(run) < goal:
            time.sleep(0.002 + draw.random() * 0.02)
        assert process.poll() is None, "the run ended before it was killed"
        process.send_signal(signal.SIGKILL)
        process.wait()
        moments.append(answered(run))
    assert len(set(moments)) == 21
    assert Run.open(run).digest() == undisturbed
    with sqlite3.connect(run / "journal.db") as db:
        again = db.execute(
            "SELECT count(*) FROM attempts a JOIN ends e ON e.attempt = a.id AND e.how = 'outcome' GROUP BY a.key HAVING count(*) > 1"
        ).fetchall()
        late = db.execute(
            "SELECT count(*) FROM attempts a JOIN attempts b ON b.key = a.key AND b.id > a.id "
            "JOIN ends e ON e.attempt = a.id AND e.how = 'outcome'"
        ).fetchone()
    db.close()
    assert again == []
    assert late == (0,)


@pytest.mark.fire
def test_an_incident_from_a_second_process_is_heard_by_the_running_one_and_re_executes(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": str(root)}
    base = [sys.executable, "-m", "taskweave"]
    run = tmp_path / "live"
    incident = tmp_path / "incident.yaml"
    incident.write_text("{title: Zebra crossing closed, severity: high, affects: all, duration: 3 weeks}\n", encoding="utf-8")
    command = [*base, "run", "company_a", "--out", str(run), "--until", "quarter"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while answered(run) < 50 and time.monotonic() < deadline:
            time.sleep(0.02)
        # It stands still meanwhile: how fast a machine is must not decide whether the run is over by then.
        Inbox(run / "inbox").control("pause")
        subprocess.run([*base, "inject", str(run), str(incident)], env=environment, check=True, capture_output=True)
        Inbox(run / "inbox").control("continue")
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.wait()
    live = Run.open(run)
    (heard,) = rows(live, "incidents")
    assert heard["tick"] > 0
    tick = heard["tick"]
    since = next(event["time"] for event in events(live, "incident"))
    plans = [state for state in live.table("states") if "Zebra crossing closed" in state["plan"]]
    assert plans
    assert min(state["since"] for state in plans) >= since
    digest = live.digest()
    assert live.resume().digest() == digest
    assert tick == rows(Run.open(run), "incidents")[0]["tick"]


def answered(run: Path) -> int:
    """How many outcomes the journal holds; 0 before there is one."""
    if not (run / "journal.db").exists():
        return 0
    with JournalReader(run / "journal.db") as journal:
        return sum(journal.counts().outcomes.values())


def searches(run: Run) -> int:
    with sqlite3.connect(run.folder.journal_path) as db:
        return int(db.execute("SELECT count(*) FROM outcomes WHERE kind <> 'complete'").fetchone()[0])
