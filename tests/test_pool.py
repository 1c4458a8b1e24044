"""run.db: written week by week, read while it is written, opened where nothing may be written."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from taskweave.errors import BadInput, DiskFull, EngineFault
from taskweave.pool import files
from taskweave.pool.pool import Pool, excerpt, week_digest
from taskweave.pool.search import Query
from taskweave.pool.tables import COLUMNS, PRIMARY_KEY, TABLES, TOLD
from tests import pool_rows as rows
from tests import tables_lock


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with Pool.create(tmp_path / "run.db") as made:
        yield made


DESIGN_5 = """agents id name role tier department persona | edges source target kind
| states id level period owner parent revision plan diagnosis
| tasks id state kind activity title description priority goals planned_hours due status done_on_time
| subtasks id task goal activity role proposed assignee delegator why hours status created started finished
| results id task subtask agent artifact title content finished quality origin | uses result used kind how
| provenance result state goals prompt backbone agent delegator calls | tool_calls id result tool arguments outcome
| incidents id title category severity description tick until affects | events seq time kind actor subject object case
| load week agent available booked spilled | readings week kpi value | goals week goal progress
| calls site ordinal draw prompt backbone prompt_tokens completion_tokens cached_tokens latency rung fallback"""


def test_the_tables_stand_in_the_promised_order_and_hold_the_promised_columns() -> None:
    promised = [line.split() for line in DESIGN_5.split("|")]
    assert [table for table, *_ in promised] == [table for table in TABLES if table != "entities"]
    for table, *columns in promised:
        assert set(columns) <= set(COLUMNS[table]), table


def test_what_a_run_is_told_of_the_tables_is_what_is_declared() -> None:
    assert TOLD.read_text(encoding="utf-8") == tables_lock.text(), "run python -m tests.tables_lock"


def test_a_pool_is_written_and_read_without_loading_what_declares_its_tables(tmp_path: Path) -> None:
    used = f"""
import sys
from pathlib import Path
from taskweave.pool.pool import Pool
with Pool.create(Path({str(tmp_path / "run.db")!r})) as pool:
    pool.write_week(1, "", [("uses", {{"result": "r", "used": "u", "kind": "result", "how": "merged"}})])
    print(len(list(pool.rows("uses"))), {{"sqlalchemy", "sqlmodel"}} & sys.modules.keys())
"""
    done = subprocess.run([sys.executable, "-c", used], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "set()"]


def test_rows_come_back_as_dicts_sorted_by_primary_key_with_their_types(pool: Pool) -> None:
    late = rows.task("Y1@cto/t2", goals=("grow", "keep"), done_on_time=None)
    pool.write_week(1, "d", [late, rows.task("Y1@cto/t1", planned_hours=8)])
    first, second = pool.rows("tasks")
    assert (first["id"], first["planned_hours"], first["done_on_time"], first["due"]) == ("Y1@cto/t1", 8.0, True, None)
    assert (second["id"], second["goals"], second["done_on_time"]) == ("Y1@cto/t2", ["grow", "keep"], None)
    assert list(pool.rows("tasks", id="Y1@cto/t2", due=None)) == [second]
    assert pool.one("tasks", "Y1@cto/t1") == first
    assert pool.one("tasks", "Y1@cto/t9") is None


def test_of_two_rows_with_one_key_the_last_wins_within_a_week_and_across_weeks(pool: Pool) -> None:
    pool.write_week(1, "a", [rows.task("Y1@cto/t1", status="open"), rows.task("Y1@cto/t1", status="spilled")])
    assert [row["status"] for row in pool.rows("tasks")] == ["spilled"]
    pool.write_week(2, "b", [rows.task("Y1@cto/t1", status="done")])
    assert [row["status"] for row in pool.rows("tasks")] == ["done"]
    assert pool.weeks() == {1: "a", 2: "b"}


@pytest.mark.parametrize("table", TABLES)
def test_a_row_of_any_table_is_replaced_and_not_doubled(pool: Pool, table: str) -> None:
    values = {column: 7 if column in ("tier", "revision", "seq", "week", "ordinal", "draw", "tick") else "x" for column in COLUMNS[table]}
    numbers = {"planned_hours", "hours", "available", "booked", "spilled", "value", "progress", "latency"}
    values |= {column: 1 for column in COLUMNS[table] if column in numbers or column.endswith("_tokens")}
    values |= {column: True for column in ("done_on_time", "fallback") if column in values}
    pool.write_week(1, "", [(table, values), (table, dict(values))])
    assert len(list(pool.rows(table))) == 1
    assert set(PRIMARY_KEY[table]) <= set(COLUMNS[table])


def test_a_week_that_cannot_be_written_leaves_nothing_of_itself(pool: Pool) -> None:
    bad = rows.task("Y1@cto/t2", title=None)
    with pytest.raises(EngineFault, match=r"'tasks'.*tasks\.title"):
        pool.write_week(1, "d", [rows.task("Y1@cto/t1"), bad])
    assert list(pool.rows("tasks")) == []
    assert pool.weeks() == {}
    pool.write_week(1, "d", [rows.task("Y1@cto/t1")])


def test_a_wrong_table_a_wrong_column_and_a_missing_value_are_named(pool: Pool) -> None:
    with pytest.raises(EngineFault, match="no table 'task'"):
        pool.write_week(1, "", [("task", {})])
    with pytest.raises(EngineFault, match="'readings' has no column 'kip'"):
        pool.write_week(1, "", [("readings", {"week": 1, "kip": "churn", "value": 1})])
    with pytest.raises(EngineFault, match="'readings' lacks value"):
        pool.write_week(1, "", [("readings", {"week": 1, "kpi": "churn"})])
    with pytest.raises(BadInput, match="no table 'result'; did you mean 'results'"):
        list(pool.rows("result"))
    with pytest.raises(BadInput, match="no column 'titel'"):
        list(pool.rows("results", titel="x"))


def test_a_full_disk_is_named_and_the_run_can_be_resumed(pool: Pool) -> None:
    pool.write_week(1, "d", [rows.task("Y1@cto/t1")])
    pages = pool._raw.execute("PRAGMA page_count").fetchone()[0]
    pool._raw.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DiskFull, match="disk is full.*resume"):
        pool.write_week(2, "e", [rows.result(f"Y1@cto/t1/s{n}", content="x" * 4000) for n in range(50)])
    assert pool.weeks() == {1: "d"}


def test_any_change_of_the_declared_tables_is_another_version() -> None:
    ask = "from taskweave.pool import pool; print(pool._VERSION)"
    change = """
from pathlib import Path
from taskweave.pool import tables
told = tables.TOLD.read_text(encoding="utf-8")
class Changed:
    def read_text(self, encoding):
        return told.replace("INTEGER", "NUMERIC", 1)
assert Changed().read_text("utf-8") != told
tables.TOLD = Changed()
"""
    versions = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for code in (ask, change + ask)
    }
    assert len(versions) == 2


@pytest.mark.parametrize("left", ["-wal", "-journal"])
def test_a_file_that_is_locked_or_has_more_beside_it_is_not_read_as_if_it_were_at_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    path = tmp_path / "run.db"
    with Pool.create(path) as made:
        made.write_week(1, "d", [rows.task("Y1@cto/t1")])
        made.finish()
    monkeypatch.setattr(os, "access", lambda *_: False)  # as on a medium that cannot be written
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    connect = files._try
    monkeypatch.setattr(files, "_try", lambda *given: quick(connect(*given)))
    with pytest.raises(BadInput, match="another process holds the file"):
        Pool.open(path)
    other.execute("ROLLBACK")
    other.close()
    Pool.open(path).close()

    def cannot(given: Path, options: str) -> sqlite3.Connection:
        if "immutable" in options:
            pytest.fail("it was read without what lies beside it")
        return connect(given.with_name("nowhere.db"), options)

    Path(f"{path}{left}").write_bytes(b"rows that are not in the file")
    monkeypatch.setattr(files, "_try", cannot)
    with pytest.raises((BadInput, sqlite3.OperationalError)):
        Pool.open(path)


def quick(connection: sqlite3.Connection) -> sqlite3.Connection:
    connection.execute("PRAGMA busy_timeout = 50")
    return connection


def test_text_that_sqlite_cannot_hold_is_stored_readable(pool: Pool) -> None:
    pool.write_week(1, "d", [rows.result("Y1@cto/t1", merged=True, title="broken \ud83d emoji", content="a\0b")])
    pool.write_week(2, "e", [rows.task("Y1@cto/t1", goals=("\udc00",))])
    row = pool.one("results", "Y1@cto/t1")
    assert row is not None
    assert row["title"].startswith("broken \ufffd")
    assert row["content"] == "a\0b"
    assert len(pool.digest()) == 64


# ---------------------------------------------------------------- digests
def test_the_digest_is_the_one_that_formats_defines(pool: Pool) -> None:
    pool.write_week(
        1, "", [("readings", {"week": 1, "kpi": "churn", "value": 3}), ("readings", {"week": 1, "kpi": "Übergänge", "value": 2.5})]
    )
    pool.write_week(2, "", [rows.use("r2", "r1"), rows.call("x")])
    lines = 'uses\t{"how":"explicit","kind":"result","result":"r2","used":"r1"}\n'
    lines += 'readings\t{"kpi":"churn","value":3.0,"week":1}\nreadings\t{"kpi":"Übergänge","value":2.5,"week":1}\n'
    assert pool.digest() == hashlib.sha256(lines.encode()).hexdigest()


def test_the_digest_is_blind_to_calls_and_to_the_order_of_writing(tmp_path: Path) -> None:
    parts = [rows.agent("ada", "Engineer"), rows.task("Y1@cto/t1"), rows.result("Y1@cto/t1", merged=True)]
    digests = []
    for name, order in (("a", parts), ("b", parts[::-1]), ("c", [*parts, rows.call("Y1@cto/t1:merge")])):
        with Pool.create(tmp_path / name) as pool:
            pool.write_week(1, "", order)
            digests.append(pool.digest())
    assert len(set(digests)) == 1
    with Pool.create(tmp_path / "d") as pool:
        pool.write_week(1, "", [*parts, rows.event(1, "start", "x")])
        assert pool.digest() not in digests


def test_a_weeks_digest_chains_sees_every_value_and_no_wall_clock() -> None:
    week = [rows.task("Y1@cto/t1"), rows.call("s", latency=1.0)]
    base = week_digest("p", week)
    assert base == week_digest("p", [rows.task("Y1@cto/t1"), rows.call("s", latency=2.0)])
    assert base != week_digest("q", week)
    assert base != week_digest("p", [rows.task("Y1@cto/t1", title="Another"), week[1]])
    assert base != week_digest("p", [])
    table, values = rows.task("Y1@cto/t1")
    assert base == week_digest("p", [(table, dict(reversed(values.items())))])


# ---------------------------------------------------------------- what agents ask
def test_dependencies_come_in_the_order_asked_with_author_and_role(pool: Pool) -> None:
    pool.write_week(
        1, "", [rows.agent("ada", "Backend Engineer", name="Ada Roux"), rows.result("a/s1", content="One. Two."), rows.result("a/s2")]
    )
    second, first = pool.dependencies(["a/s2", "a/s1"], 100)
    assert (first.id, first.author, first.role, first.artifact, first.excerpt) == (
        "a/s1",
        "Ada Roux",
        "Backend Engineer",
        "report",
        "One. Two.",
    )
    assert second.id == "a/s2"
    assert pool.dependencies([], 100) == []
    with pytest.raises(EngineFault, match="'a/s3'"):
        pool.dependencies(["a/s1", "a/s3"], 100)


@pytest.mark.parametrize(
    ("text", "tokens", "cut"),
    [
        ("Short.", 2, "Short."),
        ("First sentence here. Second one follows it.", 8, "First sentence here. […]"),
        ("one two three four five six seven", 5, "one two three […]"),
        ("x" * 100, 5, "x" * 14 + " […]"),
        ("äöü " * 20, 4, "äöü […]"),
        ("anything", 0, ""),
        ("anything at all", 1, ""),
    ],
)
def test_an_excerpt_ends_with_a_sentence_or_a_word_and_says_that_it_was_cut(text: str, tokens: int, cut: str) -> None:
    assert excerpt(text, tokens) == cut
    assert len(excerpt(text, tokens).encode()) <= 4 * tokens


def test_titles_by_agent_follow_the_order_of_writing_before_and_after_reopening(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Pool.create(path) as pool:
        assert pool.titles_by_agent() == {}
        pool.write_week(1, "", [rows.result("b", merged=True, title="B"), rows.result("a", merged=True, title="A")])
        pool.write_week(2, "", [rows.result("c/s1", title="C"), rows.result("d", merged=True, by="bob", title="D")])
        pool.write_week(3, "", [rows.result("b", merged=True, title="B again")])
        expected = {"ada": ("B again", "A", "C"), "bob": ("D",)}
        assert pool.titles_by_agent() == expected
    with Pool.open(path) as pool:
        assert pool.titles_by_agent() == expected


# ---------------------------------------------------------------- the file
def test_creating_deletes_what_is_there_with_its_wal(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").write_bytes(b"no database at all")
    with Pool.create(path) as pool:
        pool.write_week(1, "d", [])
        assert pool.weeks() == {1: "d"}


def test_a_run_that_is_being_written_is_read_week_by_week(pool: Pool) -> None:
    pool.write_week(1, "", [rows.task("Y1@cto/t1")])
    with Pool.open(pool.path) as reader:
        assert len(list(reader.rows("tasks"))) == 1
        with reader.snapshot():
            before = reader.digest()
            pool.write_week(2, "", [rows.task("Y1@cto/t2")])
            assert reader.digest() == before
        assert len(list(reader.rows("tasks"))) == 2
        assert reader.digest() == pool.digest() != before


def test_a_reader_cannot_write(pool: Pool) -> None:
    with Pool.open(pool.path) as reader:
        with pytest.raises(EngineFault, match="read-only"):
            reader.write_week(1, "", [])
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader._raw.execute("DELETE FROM tasks")


def test_a_finished_run_is_one_file_also_where_somebody_was_reading(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Pool.create(path) as pool:
        pool.write_week(1, "", [rows.task("Y1@cto/t1")])
        with Pool.open(path) as reader:
            list(reader.rows("tasks"))
            pool.finish()
            shutil.copy(path, tmp_path / "copy.db")
        pool.finish()
        assert len(list(pool.rows("tasks"))) == 1
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["copy.db", "run.db"]
    with Pool.open(tmp_path / "copy.db") as copy:
        assert len(list(copy.rows("tasks"))) == 1


_READ = """
import os, sys
from pathlib import Path
from taskweave.pool.pool import Pool
from taskweave.pool.search import Query
if os.getuid() == 0:  # root may write everywhere
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
assert not os.access(Path(sys.argv[1]).parent, os.W_OK)
with Pool.open(Path(sys.argv[1])) as pool:
    print(len(list(pool.rows("results"))), pool.search(Query("churn")))
"""


@pytest.mark.parametrize("mode", ["finished", "still in WAL mode"])
def test_a_run_opens_in_a_folder_where_nothing_may_be_written(mode: str) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        with Pool.create(folder / "run.db") as pool:
            pool.write_week(1, "", [rows.result("t1", merged=True, content="Churn fell.")])
            if mode == "finished":
                pool.finish()
        (folder / "run.db").chmod(0o444)
        folder.chmod(0o555)
        command = [sys.executable, "-c", _READ, str(folder / "run.db")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
        assert done.stdout.strip() == "1 ['t1']", done.stderr
        assert [entry.name for entry in folder.iterdir()] == ["run.db"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    other.close()


def _newer(path: Path) -> None:
    Pool.create(path).close()
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.write_bytes(b"not a database, though long enough to be looked at" * 50), "cannot be read"),
        (lambda path: path.write_bytes(b""), "not a run.db"),
        (_foreign, "not a run.db"),
        (_newer, "another version of TaskWeave"),
    ],
)
def test_a_file_that_is_no_run_db_is_named_with_the_command_that_rebuilds_it(tmp_path: Path, make: object, says: str) -> None:
    path = tmp_path / "run.db"
    make(path)  # type: ignore[operator]
    with pytest.raises(BadInput, match=f"{says}.*taskweave resume"):
        Pool.open(path)


@pytest.mark.parametrize("from_byte", [4096, 250_000])
def test_a_damaged_run_db_is_named_with_the_command_that_rebuilds_it(tmp_path: Path, from_byte: int) -> None:
    path = tmp_path / "run.db"
    with Pool.create(path) as pool:
        pool.write_week(1, "", [rows.result(f"t{n}", merged=True, content="x" * 3000) for n in range(50)])
        pool.finish()
    data = bytearray(path.read_bytes())
    data[from_byte:] = bytes(len(data) - from_byte)
    path.write_bytes(data)
    with pytest.raises(BadInput, match="taskweave resume"), Pool.open(path) as pool:
        pool.digest()


def test_a_run_db_that_is_built_anew_takes_its_place_when_it_holds_the_weeks_of_the_old_one(tmp_path: Path) -> None:
    path, beside = tmp_path / "run.db", tmp_path / "run.db.building"
    weeks = {week: [rows.result(f"t{week}", merged=True)] for week in (1, 2, 3)}
    with Pool.create(path) as pool:
        for week in (1, 2):
            pool.write_week(week, f"old {week}", weeks[week])
    beside.write_bytes(b"what a killed process left")
    with Pool.create(path) as pool, Pool.open(path) as reader:
        pool.write_week(1, "new 1", weeks[1])
        assert reader.weeks() == {1: "old 1", 2: "old 2"}
        assert beside.exists()
        assert pool.search(Query("t1")) == pool.search(Query("t1"))
        pool.write_week(2, "new 2", weeks[2])
        assert not beside.exists()
        with Pool.open(path) as other:
            assert other.weeks() == {1: "new 1", 2: "new 2"}
            pool.write_week(3, "new 3", weeks[3])  # what lives on is read live
            assert [row["id"] for row in other.rows("results")] == ["t1", "t2", "t3"]
        with pytest.raises(BadInput, match="Ask again"):
            reader.digest()
        assert pool.writes == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.db"]


def test_a_run_db_whose_rebuilding_ends_early_is_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with Pool.create(path) as pool:
        for week in (1, 2):
            pool.write_week(week, "", [rows.result(f"t{week}", merged=True)])
        digest = pool.digest()
    with Pool.create(path) as pool:
        pool.write_week(1, "", [])
    with Pool.open(path) as pool:
        assert pool.digest() == digest
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.db"]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_bytes_a_run_db_holds_it_is_read_or_named(tmp_path: Path, seed: int) -> None:
    path, draw = tmp_path / "run.db", random.Random(seed)
    with Pool.create(path) as pool:
        pool.write_week(1, "", [rows.result(f"t{n}", merged=True, content="x" * 300) for n in range(50)] + [rows.task("t1")])
        pool.finish()
    data = bytearray(path.read_bytes())
    for _ in range(40):
        at = draw.randrange(100, len(data))
        data[at : at + 8] = draw.randbytes(8)
    path.write_bytes(data)
    with contextlib.suppress(BadInput), Pool.open(path) as pool:
        pool.digest()
    with contextlib.suppress(BadInput), Pool.open(path) as pool:
        list(pool.rows("results"))
    with contextlib.suppress(BadInput), Pool.open(path) as pool:
        pool.trace("t1")
    with Pool.create(path) as pool:
        pool.write_week(1, "", [rows.result("t1", merged=True)])
        pool.finish()
    with Pool.open(path) as pool:
        assert len(list(pool.rows("results"))) == 1


def test_a_folder_in_the_place_of_run_db_is_named(tmp_path: Path) -> None:
    (tmp_path / "run.db").mkdir()
    for ask in (Pool.create, Pool.open):
        with pytest.raises(BadInput, match=r"run\.db: is a folder"):
            ask(tmp_path / "run.db")


def test_a_year_of_rows_is_written_in_about_a_second(tmp_path: Path) -> None:
    weeks = [[row for n in range(580) for row in [rows.event(week * 1000 + n, "start", f"Y1/t{n}")]] for week in range(52)]
    with Pool.create(tmp_path / "run.db") as pool:
        started = os.times()
        for week, booked in enumerate(weeks):
            pool.write_week(week, week_digest("", booked), booked)
        spent = os.times()
        assert len(list(pool.rows("events"))) == 52 * 580
    assert spent.user + spent.system - started.user - started.system < 4  # measured 0.4 s; the margin is for a busy machine


def test_any_row_is_json(pool: Pool) -> None:
    pool.write_week(1, "", [rows.agent("ada", "Engineer"), rows.state("Y1@cto"), rows.task("Y1@cto/t1"), rows.call("x")])
    for table in TABLES:
        for line in pool.lines(table):
            assert list(json.loads(line)) == sorted(json.loads(line))


def test_results_can_be_searched_only_once_their_week_is_written(pool: Pool) -> None:
    assert pool.search(Query("churn")) == []
    pool.write_week(1, "", [rows.result("t1", merged=True, title="Churn")])
    assert pool.search(Query("churn")) == ["t1"]
