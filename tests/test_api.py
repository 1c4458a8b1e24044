"""TaskWeave from Python: the same runs, as values and DataFrames."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave import driving
from taskweave.backbones.scripted import Scripted
from taskweave.errors import DiskFull
from taskweave.pool.pool import Pool
from taskweave.pool.tables import COLUMNS, TABLES
from taskweave.records import Completion, Request
from taskweave.runs import Inbox, RunFolder


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tw.Run:
    return tw.simulate("tiny", until="week:3", out=tmp_path_factory.mktemp("api") / "tiny")


class Slow(Scripted):
    """The stand-in, with a wait."""

    async def complete(self, request: Request) -> Completion:
        await asyncio.sleep(0.02)
        return await super().complete(request)


def test_the_public_names_are_these() -> None:
    assert sorted(tw.__all__) == [
        *("BackboneOut", "BadInput", "BudgetReached", "Divergence", "EngineFault", "IncidentInvalid", "Interrupted", "Organization"),
        *("OrganizationInvalid", "PromptInvalid", "Run", "RunRefused", "Stopped", "Table", "TaskWeaveError", "__version__"),
        *("diff", "runs", "simulate"),
    ]  # fmt: skip
    for name in tw.__all__:
        assert getattr(tw, name) is not None
    assert dir(tw) == sorted(tw.__all__)
    with pytest.raises(AttributeError, match="nonsense"):
        tw.nonsense  # noqa: B018 - the access is what is tested


class Mine(Scripted):
    """Somebody's own backbone."""

    name = "mine"


class Namesake(Scripted):
    """Somebody's own backbone that is called like the shipped one; it counts what it answers."""

    answered = 0

    async def complete(self, request: Request) -> Completion:
        Namesake.answered += 1
        return await super().complete(request)


@pytest.mark.parametrize("mine", [Mine, Namesake])
def test_a_run_begun_with_an_object_goes_on_with_one_of_its_name_only(mine: type[Scripted]) -> None:
    run = tw.simulate("tiny", until="week:1", out="r", backbone=mine())
    with pytest.raises(tw.RunRefused, match=rf"a backbone object named '{mine.name}'.*resume\(backbone=\.\.\.\)"):
        tw.Run.open("r").resume(until="week:2")
    before = Namesake.answered
    other = Slow()
    other.name = "another"
    with pytest.raises(tw.RunRefused, match=f"named 'another', but '{mine.name}' answered so far"):
        run.resume(until="week:2", backbone=other)
    went_on = run.resume(until="week:2", backbone=mine())
    assert went_on.finished
    assert went_on.status().week == 2
    assert (Namesake.answered > before) is (mine is Namesake)


def test_what_is_asked_of_a_run_once_it_is_held_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    look = driving._refuse_changed

    def slow(folder: RunFolder) -> None:
        look(folder)
        assert folder.holder() is not None
        Inbox(folder.inbox).control("stop")

    run = tw.simulate("tiny", until="week:1", out="r")
    monkeypatch.setattr(driving, "_refuse_changed", slow)
    for went in (tw.simulate("tiny", out="s"), run.resume(until="year")):
        assert went.outcome is not None
        assert went.outcome.stop == "stopped"


def test_what_is_odd_in_injected_incidents_is_among_the_warnings(tmp_path: Path) -> None:
    run = tw.simulate("tiny", until="week:1", out="r")
    file = tmp_path / "news.yaml"
    file.write_text("- {title: News, category: economic, description: Something., severity: low, affects: all, duration: 1 weeks}")
    assert run.inject(file, at="week:3") == ["news"]
    assert run.warnings == []
    assert run.inject(file, at="week:4") == ["news-2"]
    assert "a second incident of that title" in run.warnings[0]


def test_a_full_disk_under_run_db_stops_the_run_and_leaves_it_to_be_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    create = Pool.create

    def little_room(path: Path) -> Pool:
        pool = create(path)
        pages = pool._raw.execute("PRAGMA page_count").fetchone()[0]
        pool._raw.execute(f"PRAGMA max_page_count = {pages + 60}")
        return pool

    with monkeypatch.context() as full:
        full.setattr(Pool, "create", little_room)
        run = tw.simulate("tiny", until="week:8", out="full")
    assert run.outcome is not None
    assert run.outcome.stop == "disk"
    now = run.status()
    assert (now.state, now.finished) == ("disk", False)
    assert "run.db: the disk is full" in now.cause
    assert run.resume().digest() == tw.simulate("tiny", until="week:8", out="room").digest()


def test_a_disk_that_is_full_before_anything_is_asked_stops_the_run_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(path: Path) -> Pool:
        raise DiskFull(f"{path}: the disk is full")

    with monkeypatch.context() as full:
        full.setattr(Pool, "create", no_room)
        run = tw.simulate("tiny", until="week:1", out="full")
    assert run.outcome is not None
    assert (run.outcome.stop, run.outcome.week, run.status().state) == ("disk", 0, "disk")
    assert run.resume().finished
    with monkeypatch.context() as full:
        full.setattr(Pool, "create", no_room)
        again = run.resume(until="week:2")
    assert again.outcome is not None
    assert (again.outcome.stop, again.outcome.week, again.status().state) == ("disk", 1, "disk")
    assert again.resume().finished


def test_simulate_gives_a_run_that_is_finished(run: tw.Run) -> None:
    assert run.outcome is not None
    assert run.outcome.stop is None
    assert run.finished
    assert run.status().week == 3
    assert run.digest() == tw.Run.open(run.path).digest()


def test_every_table_is_a_method_with_rows_and_a_dataframe(run: tw.Run) -> None:
    for name in TABLES:
        table = getattr(run, name)()
        assert list(table) == list(run.table(name))
        assert len(table.df()) == len(table)
        assert list(table.df().columns) == list(table.columns) == list(COLUMNS[name])
    assert len(run.tool_calls()) == 0  # an empty table keeps its columns
    assert len(run.agents()) == 4
    assert run.agents()[0]["id"]
    assert set(run.tasks().df()["status"]) <= {"open", "done", "spilled", "blocked", "dropped"}
    with pytest.raises(tw.BadInput, match="nonsense"):
        run.table("nonsense")


def test_without_pandas_df_says_what_to_install(run: tw.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    assert list(run.agents())
    with pytest.raises(tw.BadInput, match="pip install pandas"):
        run.agents().df()


def test_a_result_can_be_traced_and_the_run_exported(run: tw.Run) -> None:
    result = next(row for row in run.results() if row["subtask"] is None)
    trace = run.trace(result["id"])
    assert trace.upward
    assert trace.plans[-1].level == "year"
    assert [path.stem for path in run.export("data")] == list(TABLES)
    with pytest.raises(tw.BadInput, match="jsonl"):
        run.export("data", "parquet")  # type: ignore[arg-type]


def test_runs_are_listed_as_a_table(run: tw.Run) -> None:
    table = tw.runs(str(run.path.parent / "*"))
    assert list(table.df()["run"]) == ["tiny"]
    import taskweave.runs  # the room of that name must not hide the call

    assert list(taskweave.runs(str(run.path.parent / "*"))) == list(table)
    assert list(tw.runs("nowhere/*")) == []
    assert list(tw.runs("nowhere/*").df()[["run", "state", "week"]].columns) == ["run", "state", "week"]


def test_an_organization_is_loaded_by_path_by_name_and_from_text(tmp_path: Path) -> None:
    assert tw.Organization.load("tiny").name == "Tiny"
    file = tmp_path / "one.yaml"
    file.write_text("name: One\nroles: {Boss: {}, Clerk: {reports_to: Boss}}\n", encoding="utf-8")
    org = tw.Organization.load(file)
    assert list(org.roles) == ["Boss", "Clerk"]
    assert tw.Organization(file.read_text()).resolved == org.resolved
    run = tw.simulate(org, until="week:1")
    assert run.path == Path("runs/one-1")
    assert (run.path / "org.yaml").read_bytes() == file.read_bytes()
    with pytest.raises(tw.OrganizationInvalid):
        tw.Organization("name: One\nroles: {Boss: {boss: 1}}\n")


def test_an_organization_without_a_name_keeps_the_one_of_its_file_inside_the_run(tmp_path: Path) -> None:
    file = tmp_path / "paper_lantern.yaml"
    file.write_text("roles: {Boss: {}, Clerk: {reports_to: Boss}}\n", encoding="utf-8")
    loaded = tw.Organization.load(file)
    run = tw.simulate(loaded, until="week:1")
    assert (run.path, run.status().organization) == (Path("runs/paper-lantern-1"), "Paper Lantern")
    inside = run.folder.organization()
    assert inside == loaded.resolved
    assert "Paper Lantern" in inside.description
    unnamed = tw.simulate(tw.Organization(file.read_text()), until="week:1")
    assert unnamed.folder.organization().name == "Organization"


def test_simulate_works_inside_a_running_loop() -> None:
    async def notebook() -> tw.Run:
        return tw.simulate("tiny", until="week:1", out="in-a-loop")

    inside = asyncio.run(notebook())
    assert inside.finished
    assert inside.digest() == tw.simulate("tiny", until="week:1", out="outside").digest()


def interrupt_when(path: Path, weeks: int) -> threading.Thread:
    def wait() -> None:
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if (path / "journal.db").exists() and tw.Run.open(path).status().week >= weeks:
                os.kill(os.getpid(), signal.SIGINT)
                return
            time.sleep(0.02)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


@pytest.mark.parametrize("in_a_loop", [False, True])
def test_an_interrupt_returns_a_run_that_can_be_resumed(in_a_loop: bool) -> None:
    def go() -> tw.Run:
        return tw.simulate("tiny", until="week:6", out="cut", backbone=Slow())

    async def notebook() -> tw.Run:
        return go()

    thread = interrupt_when(Path("cut"), 1)
    if in_a_loop:
        # A notebook's loop leaves Ctrl-C to Python; asyncio.run would take it.
        loop = asyncio.new_event_loop()
        cut = loop.run_until_complete(notebook())
        loop.close()
    else:
        cut = go()
    thread.join()
    assert cut.outcome is not None
    assert cut.outcome.stop in ("interrupted", "stopped")
    assert not cut.finished
    assert cut.status().lost == 0
    resumed = cut.resume(backbone=Slow())
    assert resumed.finished
    assert resumed.digest() == tw.simulate("tiny", until="week:6", out="whole").digest()


def test_an_incident_can_be_injected_from_python(tmp_path: Path) -> None:
    file = tmp_path / "strike.yaml"
    file.write_text("title: Strike\ncategory: internal\ndescription: No.\nseverity: low\naffects: all\n", encoding="utf-8")
    run = tw.simulate("tiny", until="week:1", out="r")
    assert run.inject(file, at="week:2") == ["strike"]
    assert [row["id"] for row in run.resume(until="week:2").incidents()] == ["strike"]


def test_a_run_that_another_holds_is_refused(run: tw.Run) -> None:
    with run.folder.lock(), pytest.raises(tw.RunRefused, match=str(os.getpid())):
        run.resume()


def test_a_run_db_with_less_than_the_closed_weeks_is_refused_until_it_is_rebuilt() -> None:
    run = tw.simulate("tiny", until="week:3", out="r")
    whole = run.digest()
    with contextlib.closing(sqlite3.connect("r/run.db")) as db, db:
        db.execute("DELETE FROM weeks WHERE week = 3")  # as an interrupted re-execution leaves it
    asked: list[Callable[[], object]] = [run.tasks, run.digest, lambda: run.trace("t1"), lambda: run.export("data")]
    for ask in asked:
        with pytest.raises(tw.RunRefused, match=r"holds weeks 1-2 of the 3 that are closed.*'taskweave resume r' completes it"):
            ask()
    assert not Path("data").exists()
    with run.folder.lock(), pytest.raises(tw.RunRefused, match=f"being rebuilt by .*{os.getpid()}"):
        run.tasks()
    assert run.status().week == 3
    assert run.resume().digest() == whole


def test_there_is_no_digest_and_no_export_before_a_week_is_sealed() -> None:
    run = tw.simulate("tiny", until="week:1", out="r")
    with contextlib.closing(sqlite3.connect("r/journal.db")) as db, db:
        db.execute("DELETE FROM weeks")
    with contextlib.closing(sqlite3.connect("r/run.db")) as db, db:
        db.execute("DELETE FROM weeks")
    for ask in (run.digest, lambda: run.export("data")):
        with pytest.raises(tw.RunRefused, match="no week is sealed yet.*taskweave resume r"):
            ask()
    assert not Path("data").exists()


def test_a_live_run_is_read_though_its_journal_is_a_moment_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    run = tw.simulate("tiny", until="week:2", out="r")
    answers = [{1: "a"}, {1: "a"}, {1: "a", 2: "b"}]
    monkeypatch.setattr(Pool, "weeks", lambda _: answers.pop(0))
    with run.folder.lock():
        assert len(run.agents()) == 4
    assert answers == []


def test_the_digest_of_a_status_is_called_that_of_a_week(run: tw.Run) -> None:
    assert run.outcome is not None
    assert run.status().week_digest == run.outcome.digest
    assert "digest" not in run.status().row()


def test_a_table_before_there_is_one_says_what_to_do() -> None:
    org = tw.Organization.load("tiny")
    given: dict[str, Any] = {"base_url": None, "prompts": [], "assign": "match", "incidents": [], "limit": 4, "patience": 1.0, "tags": {}}
    folder, _ = driving.begin(org, out=Path("new"), backbone="scripted", seed=1, until="week:1", **given)
    fresh = tw.Run(folder)
    assert fresh.status().state == "new"
    with pytest.raises(tw.RunRefused, match="taskweave resume"):
        fresh.tasks()
