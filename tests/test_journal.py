"""The journal: what it keeps, what it refuses to open, and what others can read while it is written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taskweave.engine import store
from taskweave.engine.gateway import reserve
from taskweave.engine.journal import Journal, JournalReader
from taskweave.engine.outcomes import Ended, Landed, Outcome
from taskweave.engine.promises import Ask, outcome_key
from taskweave.errors import BadInput, DiskFull, Divergence
from tests.workshop import question


def ask(site: str, ordinal: int = 1, step: str = "make") -> Ask:
    request = question(step, site)
    made = Ask(outcome_key(site, ordinal, 0, "complete", request.logical()), site, ordinal, 0, "complete", request)
    made.estimate = reserve(request)
    return made


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "journal.db"


@pytest.fixture
def inbox(path: Path) -> Path:
    return path.with_name("inbox")


# ---------------------------------------------------------------- opening
def test_there_is_no_silent_new_start(path: Path) -> None:
    with pytest.raises(BadInput, match="there is no journal here. Put it back from a copy"):
        Journal(path, create=False)
    assert not path.exists()
    Journal(path, create=True).close()
    with pytest.raises(BadInput, match="there is a journal already"):
        Journal(path, create=True)


def test_a_folder_that_does_not_exist_is_named(path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such folder"):
        Journal(path.parent / "nowhere" / "journal.db", create=True)


@pytest.mark.parametrize("opened", [lambda path: Journal(path, create=False), JournalReader])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it is empty"),
        (b"SQLite", "it is not an SQLite file"),
        (b"PK\3\4 a zip file, longer than a header", "it is not an SQLite file"),
    ],
)
def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(path: Path, opened: Any, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(BadInput, match=f"journal.db: this is not a TaskWeave journal: {message}"):
        opened(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("opened", [lambda path: Journal(path, create=False), JournalReader])
def test_a_foreign_database_is_refused(path: Path, opened: Any) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE outcomes(key)")
    db.close()
    with pytest.raises(BadInput, match="not a TaskWeave journal: its application id is 0x0"):
        opened(path)


@pytest.mark.parametrize("opened", [lambda path: Journal(path, create=False), JournalReader])
def test_a_journal_of_a_newer_version_is_refused(path: Path, opened: Any) -> None:
    Journal(path, create=True).close()
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {store.VERSION + 1}")
    db.close()
    with pytest.raises(BadInput, match="use a newer TaskWeave"):
        opened(path)


@pytest.mark.parametrize("offset", [100, 4096 * 3, 4096 * 6])
def test_a_damaged_journal_is_refused_and_says_so(path: Path, offset: int) -> None:
    with Journal(path, create=True) as journal:
        for n in range(50):
            journal.begin([ask(f"s{n}")])
    data = bytearray(path.read_bytes())
    data[offset : offset + 600] = b"\xff" * 600
    path.write_bytes(data)
    with pytest.raises(BadInput, match=r"the journal is damaged .* no new run was started"):
        Journal(path, create=False)


def test_a_cut_off_journal_is_refused(path: Path) -> None:
    with Journal(path, create=True) as journal:
        for n in range(50):
            journal.begin([ask(f"s{n}")])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(BadInput, match="the journal is damaged"):
        Journal(path, create=False)


def test_every_commit_is_synchronous_and_a_closed_journal_has_left_wal(path: Path) -> None:
    journal = Journal(path, create=True)
    assert journal._db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    journal.begin([ask("a")])
    journal.close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["inbox", "journal.db"]
    assert path.read_bytes()[18:20] == b"\1\1", "the header says rollback journal, which opens on a read-only folder"


def test_closing_beside_a_reader_does_not_fail(path: Path) -> None:
    journal = Journal(path, create=True)
    journal.begin([ask("a")])
    with JournalReader(path) as reader:
        reader._db.execute("BEGIN")
        reader.last_tick()
        journal.close()
        assert reader.counts is not None
    with JournalReader(path) as reader:
        assert reader.counts().attempts == 1


MOUNTS = r"""
/dev/vda / ext4 rw 0 0
server:/export /mnt/nfs nfs4 rw 0 0
//box/share /mnt/with\040space cifs rw 0 0
host:/home /home/me/far fuse.sshfs rw 0 0
/dev/vdb /mnt/nfs/local xfs rw 0 0
C: /mnt/c 9p rw 0 0
s3 /bucket fuse.s3fs rw 0 0
/dev/fuse /ntfs fuse.ntfs-3g rw 0 0
/dev/vdc /over nfs rw 0 0
/dev/vdd /over ext4 rw 0 0
"""


@pytest.mark.parametrize(
    ("place", "far"),
    [
        ("/runs/a/journal.db", False),
        ("/mnt/nfs/a/journal.db", True),
        ("/mnt/nfsother/journal.db", False),
        ("/mnt/with space/journal.db", True),
        ("/home/me/far/journal.db", True),
        ("/home/me/journal.db", False),
        ("/mnt/nfs/local/journal.db", False),
        ("/mnt/c/journal.db", True),
        ("/bucket/journal.db", True),
        ("/ntfs/journal.db", False),
        ("/over/journal.db", False),
    ],
)
def test_a_network_file_system_is_recognised_by_its_mount(place: str, far: bool) -> None:
    assert store.on_network_file_system(Path(place), MOUNTS) is far


def test_on_a_network_file_system_wal_is_not_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "on_network_file_system", lambda path: True)
    with Journal(path, create=True) as journal:
        assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        journal.begin([ask("a")])
        with JournalReader(path) as reader:
            assert reader.counts().attempts == 1


def test_an_older_run_left_in_wal_by_a_kill_leaves_it_on_a_network_file_system(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import os, sys; from pathlib import Path; from taskweave.engine.journal import Journal\n"
    script += "journal = Journal(Path(sys.argv[1]), create=True); journal.write_stop('x', ''); os._exit(9)"
    subprocess.run([sys.executable, "-c", script, str(path)], check=False, timeout=30)
    assert path.with_name("journal.db-wal").exists()
    monkeypatch.setattr(store, "on_network_file_system", lambda path: True)
    with Journal(path, create=False) as journal:
        assert journal._db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    with JournalReader(path) as reader:
        assert [stop.why for stop in reader.stops()] == ["x"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("killed", [False, True])
def test_a_journal_opens_in_a_folder_that_cannot_be_written(path: Path, killed: bool) -> None:
    journal = Journal(path, create=True)
    journal.begin([ask("a")])
    if killed:  # all is in the file, its header still says WAL
        journal._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        copy = path.read_bytes()
        journal.close()
        path.write_bytes(copy)
    else:
        journal.close()
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        with JournalReader(path) as reader:
            assert reader.counts().attempts == 1
    finally:
        path.parent.chmod(0o755)


# ---------------------------------------------------------------- asks
def test_what_was_asked_and_how_it_went_can_be_read_back(path: Path) -> None:
    first, second = ask("W1@a/t1:make"), ask("W1@a/t1:make", 2, "review")
    with Journal(path, create=True) as journal:
        (attempt,) = journal.begin([first])
        first.tries = 1
        journal.land([], [Ended(attempt, "retry", "429 slow down")])
        (attempt,) = journal.begin([first])
        journal.land([Landed(first, Outcome('{"latency":0.5,"text":"done"}', 11, 3), attempt)])
        journal.begin([second])
        with JournalReader(path) as reader:
            one, two = reader.calls("W1@a/t1:make")
            assert reader.calls("nowhere") == []
            assert reader.sites() == ["W1@a/t1:make"]
    assert first.request is not None
    assert one.messages == first.request.messages
    assert one.sampling == {"temperature": 0.5, "max_tokens": 100}
    assert one.schema == {"type": "object", "title": "make"}
    assert (one.ordinal, one.prompt, one.version, one.backbone, one.kind) == (1, "make", 1, "answers", "complete")
    assert [(attempt.id, attempt.est, attempt.how, attempt.why) for attempt in one.attempts] == [
        (1, first.estimate, "retry", "429 slow down"),
        (2, first.estimate, "outcome", ""),
    ]
    assert one.outcome == {"text": "done", "latency": 0.5}
    assert one.answered is not None
    assert two.outcome is None
    assert [(attempt.id, attempt.how, attempt.ended) for attempt in two.attempts] == [(3, None, None)]


def test_a_text_that_many_requests_share_is_stored_once_and_compressed(path: Path) -> None:
    long = "the stable part of a prompt " * 500
    with Journal(path, create=True) as journal:
        for n in range(100):
            made = ask(f"s{n}")
            made.request = question("make", long)
            journal.begin([made])
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM texts").fetchone()[0] == 3
    db.close()
    assert path.stat().st_size < 150_000 < 100 * len(long)


def test_attempts_without_an_end_are_lost_or_still_open(path: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.begin_session()
        ids = journal.begin([ask(f"a{n}") for n in range(3)])
        journal.land([Landed(ask("a0"), Outcome("{}"), ids[0])])
        assert journal.lost == 0
    with Journal(path, create=False) as journal:
        assert journal.lost == 2
        journal.begin_session()
        journal.begin([ask("b")])
        with JournalReader(path) as reader:
            counts = reader.counts()
    assert (counts.attempts, counts.lost, counts.open, counts.sessions) == (4, 2, 1, 2)
    assert (counts.lost_tokens, counts.open_tokens) == (2 * ask("a1").estimate, ask("b").estimate)


def test_tokens_are_counted_by_prompt_and_what_was_inherited_apart(path: Path) -> None:
    with Journal(path, create=True) as journal:
        asks = [ask("a"), ask("b"), ask("c", step="review")]
        ids = journal.begin(asks)
        journal.land([Landed(item, Outcome("{}", 10 * n, n), id) for n, (item, id) in enumerate(zip(asks, ids, strict=True), start=1)])
    db = sqlite3.connect(path)
    with db:
        db.execute("UPDATE outcomes SET inherited = 1 WHERE site = 'a'")
    db.close()
    with JournalReader(path) as reader:
        uses = reader.prompts()
        assert reader.counts().inherited == 1
    assert [(u.prompt, u.calls, u.inherited, u.prompt_tokens, u.completion_tokens) for u in uses] == [
        ("make", 2, 1, 30, 3),
        ("review", 1, 0, 30, 3),
    ]
    assert (uses[0].inherited_prompt_tokens, uses[0].inherited_completion_tokens) == (10, 1)


def test_a_locked_journal_is_not_read_as_if_nobody_wrote_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Journal(path, create=True).close()
    monkeypatch.setattr(store, "WAIT_SECONDS", 0.05)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BadInput, match="another process has held the file"):
        JournalReader(path)
    writer.execute("ROLLBACK")
    writer.close()


@pytest.mark.parametrize(("code", "left", "read"), [
    (sqlite3.SQLITE_CANTOPEN, "", True),
    (sqlite3.SQLITE_READONLY, "", True),
    (sqlite3.SQLITE_READONLY, "-journal", False),
    (sqlite3.SQLITE_CANTOPEN, "-wal", False),
    (sqlite3.SQLITE_IOERR, "", False),
])  # fmt: skip
def test_a_journal_is_read_as_it_lies_only_where_that_is_all_of_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int, left: str, read: bool
) -> None:
    Journal(path, create=True).close()
    if left:
        Path(f"{path}{left}").write_bytes(b"rows that are not in the file")
    look, looks = store._check_version, 0

    def once(db: sqlite3.Connection, file: Path) -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            trouble = sqlite3.OperationalError("trouble")
            trouble.sqlite_errorcode = code
            raise trouble
        look(db, file)

    monkeypatch.setattr(store, "_check_version", once)
    if read:
        JournalReader(path).close()
    else:
        with pytest.raises((BadInput, DiskFull)):
            JournalReader(path)
        assert looks == 1


def test_an_outcome_is_never_overwritten(path: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.land([Landed(ask("a"), Outcome('"first"'), 1)])
        with pytest.raises(sqlite3.IntegrityError):
            journal.land([Landed(ask("a"), Outcome('"second"'), 2)])
    with Journal(path, create=False) as journal:
        assert journal.outcome(ask("a").key) == Outcome('"first"')
        assert journal.outcome(ask("b").key) is None


def test_a_full_disk_is_named_and_leaves_the_journal_usable(path: Path) -> None:
    with Journal(path, create=True) as journal:
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count={pages + 3}")
        site = ""

        def fill() -> None:
            nonlocal site
            for n in range(1000):
                site = f"s{n}"
                journal.begin([ask(site)])

        with pytest.raises(DiskFull, match=r"journal.db: database or disk is full; make room"):
            fill()
        journal._db.execute("PRAGMA max_page_count=100000")
        before = journal._attempt
        assert list(journal.begin([ask("more")])) == [before + 1]
        # Texts of the failed transaction are written again, not taken for present.
        journal.begin([ask(site)])
    with JournalReader(path) as reader:
        assert reader.calls(site)[0].messages == question("make", site).messages


def test_texts_of_a_joined_transaction_that_was_rolled_back_are_written_again(path: Path) -> None:
    def fill(journal: Journal) -> None:
        with journal.joined():
            for n in range(1000):
                journal.begin([ask(f"s{n}")])

    with Journal(path, create=True) as journal:
        pages = journal._db.execute("PRAGMA page_count").fetchone()[0]
        journal._db.execute(f"PRAGMA max_page_count={pages + 3}")
        with pytest.raises(DiskFull):
            fill(journal)
        journal._db.execute("PRAGMA max_page_count=100000")
        assert journal._count("SELECT count(*) FROM texts") == 0
        journal.begin([ask("s0")])
        with JournalReader(path) as reader:
            assert reader.calls("s0")[0].messages == question("make", "s0").messages


def test_texts_of_a_transaction_that_failed_are_written_again(path: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.begin([ask("a")])
        journal._attempt = 0  # as if another connection had written: the next attempt's id is taken
        with pytest.raises(sqlite3.IntegrityError):
            journal.begin([ask("b")])
        journal._attempt = 1
        journal.begin([ask("b")])
        with JournalReader(path) as reader:
            assert reader.calls("b")[0].messages == question("make", "b").messages


# ---------------------------------------------------------------- weeks, stops, readers
def test_a_week_closes_once_with_its_digest_and_facts(path: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.close_week(1, "aaa", {"done": 3})
        journal.close_week(1, "aaa", {"done": 3})
        with pytest.raises(Divergence, match="week 1 was closed with digest aaa and re-executed to bbb"):
            journal.close_week(1, "bbb", {"done": 4})
        assert journal.weeks == 1
    with JournalReader(path) as reader:
        assert [(week.week, week.digest, week.facts) for week in reader.weeks()] == [(1, "aaa", {"done": 3})]


def test_a_stop_is_current_until_another_session_begins(path: Path) -> None:
    with Journal(path, create=True) as journal:
        journal.begin_session()
        journal.close_week(0, "a", {})
        journal.write_stop("outage", "503")
        with JournalReader(path) as reader:
            assert [(stop.why, stop.cause, stop.week, stop.current) for stop in reader.stops()] == [("outage", "503", 1, True)]
        journal.begin_session()
        with JournalReader(path) as reader:
            assert not reader.stops()[0].current


def test_a_reader_sees_what_is_committed_while_another_process_writes(path: Path, inbox: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom taskweave.engine.journal import JournalReader\n"
        "with JournalReader(Path(sys.argv[1])) as reader:\n    print(reader.last_tick(), reader.counts().attempts, flush=True)\n"
        "    sys.stdin.readline()\n    print(reader.last_tick(), reader.counts().attempts, flush=True)\n"
    )
    with Journal(path, create=True) as journal:
        other = subprocess.Popen([sys.executable, "-c", script, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdin
        assert other.stdout
        assert other.stdout.readline() == "None 0\n"
        journal._db.execute("BEGIN IMMEDIATE")  # a writer in mid-transaction blocks no reader
        journal._db.execute("INSERT INTO ticks(tick) VALUES (99)")
        journal._db.execute("ROLLBACK")
        journal.tick(4, inbox)
        journal.begin([ask("a")])
        out, _ = other.communicate("\n", timeout=30)
        assert out == "4 1\n"


def test_a_reader_cannot_write(path: Path) -> None:
    Journal(path, create=True).close()
    with JournalReader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("INSERT INTO ticks(tick) VALUES (1)")


def test_a_path_with_marks_of_a_uri_can_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "50 % of #1?mode=x"
    folder.mkdir()
    Journal(folder / "journal.db", create=True).close()
    with JournalReader(folder / "journal.db") as reader:
        assert reader.last_tick() is None
