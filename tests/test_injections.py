"""How injections reach a run: with which tick, how often, and what becomes of a file that holds none."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from taskweave.engine.journal import LEAST_ROOM, Journal, JournalReader
from taskweave.errors import BadInput, RunRefused
from taskweave.runs import Inbox
from tests.simulated import simulated


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "journal.db"


@pytest.fixture
def inbox(path: Path) -> Path:
    return path.with_name("inbox")


def drop(inbox: Path, name: str, content: Any) -> Path:
    file = inbox / name
    file.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return file


def test_a_tick_and_what_it_took_are_one_commit_also_when_it_took_nothing(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        statements: list[str] = []
        journal._db.set_trace_callback(statements.append)
        assert journal.tick(0, inbox) == []
        drop(inbox, "news.json", {"title": "news"})
        (taken,) = journal.tick(1, inbox)
        assert (taken.id, taken.tick, taken.payload) == ("news", 1, {"title": "news"})
        words = [statement.split()[0] for statement in statements if not statement.startswith("SELECT")]
        assert words == ["BEGIN", "INSERT", "COMMIT", "BEGIN", "INSERT", "INSERT", "COMMIT"]
        assert journal.last_tick == 1
    assert list(inbox.iterdir()) == []


def test_a_tick_that_has_run_takes_nothing_more_and_repeats_what_it_took(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        drop(inbox, "b.json", {"n": 1})
        drop(inbox, "a.json", {"n": 2})
        first = journal.tick(0, inbox)
    with Journal(path, create=False) as journal:
        late = drop(inbox, "late.json", {"n": 3})
        assert journal.tick(0, inbox) == first
        assert [injection.id for injection in first] == ["a", "b"]
        assert late.exists()
        assert [injection.id for injection in journal.tick(1, inbox)] == ["late"]


def test_a_crash_between_commit_and_unlink_injects_once(path: Path, inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Journal(path, create=True) as journal:
        drop(inbox, "news.json", {"title": "news"})
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", lambda self, missing_ok=False: (_ for _ in ()).throw(PermissionError("crashed here")))
            assert len(journal.tick(0, inbox)) == 1
        assert (inbox / "news.json").exists()
    with Journal(path, create=False) as journal:
        assert journal.tick(1, inbox) == []
        assert [injection.id for injection in journal.tick(0, inbox)] == ["news"]
    assert list(inbox.iterdir()) == []
    with JournalReader(path) as reader:
        assert [(injection.id, injection.tick) for injection in reader.injections()] == [("news", 0)]


def test_a_payload_may_name_a_later_tick_and_one_that_has_passed_is_now(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.tick(5, inbox)
        drop(inbox, "later.json", {"tick": 8})
        drop(inbox, "past.json", {"tick": 2})
        assert [injection.id for injection in journal.tick(6, inbox)] == ["past"]
        assert journal.tick(7, inbox) == []
        assert [injection.id for injection in journal.tick(8, inbox)] == ["later"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"{not json", "the file is not JSON"),
        (b"", "the file is not JSON"),
        (b'{"a": 1,\n}', "the file is not JSON: Expecting property name enclosed in double quotes at line 2, column 1"),
        (b"[1, 2]", "one JSON object, not a list"),
        (b'"text"', "one JSON object, not a text"),
        (b"null", "one JSON object, not null"),
        (b"7", "one JSON object, not a number"),
        (b"\xff\xfe{}", "not UTF-8 text: byte 1 begins no character"),
        (b'{"x": NaN}', "the file is not JSON: NaN is no number there"),
        (b'{"x": "\\ud800"}', "not UTF-8 text: \\ud800 is half a character"),
        (b'{"tick": "week:3"}', "'tick' must be the number of a working day, not \"week:3\""),
        (b'{"tick": true}', "'tick' must be the number of a working day, not true"),
        (b'{"tick": 1.5}', "'tick' must be the number of a working day, not 1.5"),
        (b'{"tick": ' + b"9" * 5000 + b"}", "the file holds a number of 5,000 digits; at most 18 are taken"),
        (b'{"x": -' + b"9" * 19 + b"}", "the file holds a number of 19 digits"),
        (b'{"x": [1e999]}', "the file holds a number that is too large: 1e999"),
        (b'{"x": ' + b"9" * 5000 + b".5}", "the file holds a number that is too large: 9999"),
        (b"[" * 100_000, "nested more than 20 deep"),
    ],
)
def test_a_broken_file_is_set_aside_with_its_reason_and_the_run_goes_on(path: Path, inbox: Path, content: bytes, why: str) -> None:
    with Journal(path, create=True) as journal:
        drop(inbox, "bad.json", content)
        drop(inbox, "good.json", {"title": "good"})
        assert [injection.id for injection in journal.tick(0, inbox)] == ["good"]
    assert sorted(file.name for file in inbox.iterdir()) == ["bad.rejected", "bad.why"]
    assert (inbox / "bad.rejected").read_bytes() == content
    assert why in (inbox / "bad.why").read_text()
    with JournalReader(path) as reader:
        (rejected,) = reader.rejected()
        assert (rejected.name, rejected.tick) == ("bad.json", 0)
        assert why in rejected.why
    for pythons in ("codec", "int_max_str_digits", "char 0", "recursion", "Out of range", "surrogate"):
        assert pythons not in rejected.why


def test_a_name_that_is_no_text_is_rejected_under_one_that_can_be_stored(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        drop(inbox, "good.json", {"title": "good"})
        (inbox / os.fsdecode(b"f\xfcnf.json")).write_text('{"title": "Five"}')
        assert Inbox(inbox).waiting() == ["f\ufffdnf", "good"]
        assert [injection.id for injection in journal.tick(0, inbox)] == ["good"]
        assert journal.tick(1, inbox) == [], "it is not looked at again"
    with JournalReader(path) as reader:
        assert [(one.name, one.tick) for one in reader.rejected()] == [("f\ufffdnf.json", 0)]
        assert "name is not UTF-8" in reader.rejected()[0].why
    assert sorted(map(os.fsencode, os.listdir(inbox))) == [b"f\xfcnf.rejected", b"f\xfcnf.why"]


def test_a_tick_that_a_payload_cannot_be_for_sets_it_aside_unless_it_is_there_already(path: Path, inbox: Path) -> None:
    def meant(payload: dict[str, Any], n: int) -> int:
        if payload["title"] == "late" and n > 2:
            raise BadInput("too late")
        return n

    with Journal(path, create=True) as journal:
        file = drop(inbox, "late.json", {"title": "late"})
        assert [injection.id for injection in journal.tick(2, inbox, meant)] == ["late"]
        drop(inbox, file.name, {"title": "late"})  # as a crash leaves it
        drop(inbox, "later.json", {"title": "late"})
        assert journal.tick(3, inbox, meant) == []
    assert sorted(file.name for file in inbox.iterdir()) == ["later.rejected", "later.why"]


def test_a_rejection_is_written_down_once_and_not_at_every_re_execution(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        for _ in range(2):
            journal.reject("strike", 4, "x" * 5000)
    with JournalReader(path) as reader:
        (rejected,) = reader.rejected()
    assert (rejected.name, rejected.tick) == ("strike", 4)
    assert len(rejected.why) < 1100


def test_a_folder_in_the_inbox_is_set_aside_too(path: Path, inbox: Path) -> None:
    (inbox / "folder.json").mkdir()
    with Journal(path, create=True) as journal:
        assert journal.tick(0, inbox) == []
    assert "cannot be read" in (inbox / "folder.why").read_text()


def test_another_injection_under_a_taken_name_is_set_aside_and_not_swallowed(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        drop(inbox, "news.json", {"title": "one"})
        journal.tick(0, inbox)
        drop(inbox, "news.json", {"title": "two"})
        assert journal.tick(1, inbox) == []
    assert "another injection named 'news' was taken for tick 0" in (inbox / "news.why").read_text()


def test_files_that_are_still_being_written_are_left_alone(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        for name in (".news.json", "news.json.tmp", "x.pause"):
            drop(inbox, name, {})
        assert journal.tick(0, inbox) == []
        assert journal.tick(1, inbox.with_name("missing")) == []
    assert len(list(inbox.iterdir())) == 3


def test_an_injection_can_be_scheduled_before_a_run_and_not_into_its_past(path: Path, inbox: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.schedule("policy", 1, {"title": "policy"})
        journal.schedule("policy", 1, {"title": "policy"})
        with pytest.raises(BadInput, match="another injection named 'policy'"):
            journal.schedule("policy", 1, {"title": "other"})
        assert journal.tick(0, inbox) == []
        assert [injection.id for injection in journal.tick(1, inbox)] == ["policy"]
        with pytest.raises(RunRefused, match="tick 1 has run already .* fork"):
            journal.schedule("late", 1, {})


@pytest.mark.parametrize("kind", ["pipe", "link", "large", "deep"])
def test_what_is_no_plain_file_of_a_sensible_size_is_set_aside(tmp_path: Path, kind: str) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    odd = inbox / "odd.json"
    if kind == "pipe":
        os.mkfifo(odd)
    elif kind == "link":
        odd.symlink_to("/dev/zero")
    elif kind == "large":
        odd.write_text('{"title": "' + "x" * 1_100_000 + '"}', encoding="utf-8")
    else:
        odd.write_text('{"title": ' + "[" * 60 + "]" * 60 + "}", encoding="utf-8")
    with Journal(tmp_path / "journal.db", create=True) as journal:
        assert journal.tick(0, inbox) == []
    assert (inbox / "odd.why").read_text(encoding="utf-8")
    assert not odd.exists()


def test_what_is_no_incident_is_set_aside_with_its_reason_beside_it_and_the_run_goes_on(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    nonsense = run.path / "inbox" / "c.json"
    nonsense.write_text('{"title": "x", "category": "nonsense"}', encoding="utf-8")
    later = run.resume(until="week:2")
    assert later.finished
    assert sorted(file.name for file in nonsense.parent.iterdir()) == ["c.rejected", "c.why"]
    assert "nonsense" in nonsense.with_suffix(".why").read_text(encoding="utf-8")
    assert not list(later.table("incidents"))


def test_a_disk_without_room_is_found_out_before_anything_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated(tmp_path / "run", until="week:1")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=LEAST_ROOM - 1))
    with JournalReader(run.path / "journal.db") as journal:
        before = journal.counts().attempts
    outcome = run.resume(until="week:2").outcome
    assert outcome is not None
    assert outcome.stop == "disk"
    assert "make room" in outcome.cause
    with JournalReader(run.path / "journal.db") as journal:
        assert journal.counts().attempts == before
    monkeypatch.undo()
    assert run.resume(until="week:2").finished
