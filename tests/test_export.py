"""The JSONL export: one file a table, equal for equal runs."""

from __future__ import annotations

import errno
import hashlib
import json
from pathlib import Path

import pytest

from taskweave.errors import BackboneOut, BadInput
from taskweave.exports.jsonl import export
from taskweave.pool.pool import Pool
from taskweave.pool.tables import COLUMNS, TABLES
from tests import pool_rows as rows


def a_run(path: Path, latency: float, order: int) -> Pool:
    pool = Pool.create(path)
    booked = [
        rows.task("Y1@cto/t1", title="Übergabe \u2028 \r\n 😀", goals=("grow",)),
        rows.task("Y1@cto/t0"),
        rows.call("s", latency=latency),
    ]
    pool.write_week(1, "", booked[::order])
    return pool


def test_every_table_is_one_file_of_one_json_object_a_row_with_sorted_keys(tmp_path: Path) -> None:
    with a_run(tmp_path / "run.db", 1.0, 1) as pool:
        files = export(pool, tmp_path / "out")
    assert [file.name for file in files] == [f"{table}.jsonl" for table in TABLES]
    assert sorted(entry.name for entry in (tmp_path / "out").iterdir()) == sorted(file.name for file in files)
    data = (tmp_path / "out" / "tasks.jsonl").read_bytes()
    assert b"\r" not in data
    assert "Übergabe".encode() in data
    first, second = (json.loads(line) for line in data.decode().split("\n")[:-1])
    assert (first["id"], second["id"], second["goals"]) == ("Y1@cto/t0", "Y1@cto/t1", ["grow"])
    assert second["title"] == "Übergabe \u2028 \r\n 😀"
    assert list(first) == sorted({*COLUMNS["tasks"]} - {"entities"})  # left out where it holds nothing
    assert (tmp_path / "out" / "goals.jsonl").read_bytes() == b""


def test_equal_runs_give_equal_bytes_but_for_calls(tmp_path: Path) -> None:
    for name, latency, order in (("a", 1.0, 1), ("b", 2.0, -1)):
        with a_run(tmp_path / f"{name}.db", latency, order) as pool:
            export(pool, tmp_path / name)
    differing = [
        table for table in TABLES if (tmp_path / "a" / f"{table}.jsonl").read_bytes() != (tmp_path / "b" / f"{table}.jsonl").read_bytes()
    ]
    assert differing == ["calls"]


def test_the_digest_can_be_recomputed_from_the_export(tmp_path: Path) -> None:
    state = hashlib.sha256()
    with a_run(tmp_path / "run.db", 1.0, 1) as pool:
        for file in export(pool, tmp_path / "out"):
            if file.stem != "calls":
                for line in file.read_text(encoding="utf-8").split("\n")[:-1]:
                    state.update(f"{file.stem}\t{line}\n".encode())
        assert pool.digest() == state.hexdigest()


def test_an_earlier_export_is_replaced_also_one_that_was_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with a_run(tmp_path / "run.db", 1.0, 1) as pool:
        export(pool, out)
        (out / ".building-x").mkdir()
        pool.write_week(2, "", [rows.task("Y1@cto/t2")])
        export(pool, out)
    assert len((out / "tasks.jsonl").read_text().split("\n")) == 4


def test_a_folder_that_holds_anything_else_is_refused_untouched(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.docx").write_text("years of work")
    with a_run(tmp_path / "run.db", 1.0, 1) as pool:
        with pytest.raises(BadInput, match=r"thesis\.docx"):
            export(pool, out)
        with pytest.raises(BadInput, match="is a file"):
            export(pool, out / "thesis.docx")
        with pytest.raises(BadInput, match="cannot be written"):
            export(pool, out / "thesis.docx" / "deeper")
        with pytest.raises(BadInput, match="cannot be written"):
            export(pool, Path("/proc/nowhere"))
    assert [entry.name for entry in out.iterdir()] == ["thesis.docx"]


def test_all_files_are_of_one_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_run(tmp_path / "run.db", 1.0, 1) as writer, Pool.open(tmp_path / "run.db") as reader:
        lines = Pool.lines
        week = iter(range(2, 100))

        def and_write(self: Pool, table: str) -> object:
            writer.write_week(next(week), "", [rows.event(next(week), "start", "x")])
            return lines(self, table)

        monkeypatch.setattr(Pool, "lines", and_write)
        export(reader, tmp_path / "out")
    assert len(set((tmp_path / "out" / "events.jsonl").read_text().split("\n")) - {""}) <= 1


@pytest.mark.parametrize("at", ["opened", "replaced"])
def test_an_export_that_fails_leaves_no_folder_that_it_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if at == "replaced":
        monkeypatch.setattr("os.replace", full)
    else:
        monkeypatch.setattr(Pool, "lines", full)
    (tmp_path / "there").mkdir()
    with a_run(tmp_path / "run.db", 1.0, 1) as pool:
        for out in (tmp_path / "new" / "data", tmp_path / "there"):
            with pytest.raises(BackboneOut, match="the disk is full; nothing was exported"):
                export(pool, out)
    assert not (tmp_path / "new").exists()
    assert not list((tmp_path / "there").iterdir())
