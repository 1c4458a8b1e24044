"""How a journal's file is made, opened and recognised, and what its troubles are called.

Entry point: `open_for_writing` and `open_for_reading`.  A file that is not this version's journal is refused, never started anew.
What the tables mean is said in `journal.py`; nothing here reads or writes rows.
"""

from __future__ import annotations

import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from taskweave.errors import BadInput, DiskFull

APPLICATION_ID = 0x54574A31  # "TWJ1", shown by `file journal.db`
VERSION = 3  # 2 knew neither forks nor the bound that had ended a run
WAIT_SECONDS = 30.0
ASKED = "key, site, ordinal, draw, kind, prompt, version, backbone, seed, sampling, schema, messages"  # all of a row of `requests`

# Only outcomes are looked up by key while a run goes on: an index by digest more would write a page anew for each row of each commit.
_AT = "at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))"
_SCHEMA = f"""
CREATE TABLE outcomes(key TEXT PRIMARY KEY, site TEXT NOT NULL, ordinal INTEGER NOT NULL, draw INTEGER NOT NULL, kind TEXT NOT NULL,
    value TEXT NOT NULL, cost REAL, inherited INTEGER NOT NULL DEFAULT 0,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, {_AT});
CREATE TABLE requests(key TEXT NOT NULL, site TEXT NOT NULL, ordinal INTEGER NOT NULL, draw INTEGER NOT NULL, kind TEXT NOT NULL,
    prompt TEXT, version INTEGER, backbone TEXT, seed INTEGER, sampling TEXT, schema INTEGER, messages TEXT NOT NULL);
CREATE TABLE offered(key TEXT PRIMARY KEY, site TEXT NOT NULL, ordinal INTEGER NOT NULL, draw INTEGER NOT NULL, kind TEXT NOT NULL,
    prompt TEXT, version INTEGER, backbone TEXT, seed INTEGER, sampling TEXT, schema INTEGER, messages TEXT NOT NULL,
    value TEXT NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, at TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE texts(id INTEGER PRIMARY KEY, body BLOB NOT NULL);
CREATE TABLE sessions(seq INTEGER PRIMARY KEY, first_attempt INTEGER NOT NULL, {_AT});
CREATE TABLE attempts(id INTEGER PRIMARY KEY, key TEXT NOT NULL, est INTEGER NOT NULL, {_AT});
CREATE TABLE ends(attempt INTEGER PRIMARY KEY, how TEXT NOT NULL, why TEXT NOT NULL, {_AT});
CREATE TABLE ticks(tick INTEGER PRIMARY KEY, {_AT});
CREATE TABLE injections(id TEXT PRIMARY KEY, tick INTEGER NOT NULL, payload TEXT NOT NULL);
CREATE INDEX injections_by_tick ON injections(tick);
CREATE TABLE rejected(seq INTEGER PRIMARY KEY, name TEXT NOT NULL, why TEXT NOT NULL, tick INTEGER NOT NULL);
CREATE TABLE weeks(week INTEGER PRIMARY KEY, digest TEXT NOT NULL, facts TEXT NOT NULL, {_AT});
CREATE TABLE inputs(name TEXT PRIMARY KEY, digest TEXT NOT NULL);
CREATE TABLE stops(seq INTEGER PRIMARY KEY, session INTEGER NOT NULL, why TEXT NOT NULL, cause TEXT NOT NULL, week INTEGER NOT NULL,
    bound TEXT, {_AT});
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {VERSION};
"""

# File systems on which the shared memory of WAL does not work between hosts.
_NETWORK = re.compile(
    r"nfs\d?|cifs|smb\w*|9p|afs|ceph|lustre|gfs2?|ocfs2|gpfs|beegfs|glusterfs|davfs|vboxsf|ncpfs|coda"
    r"|fuse\.(sshfs|glusterfs|ceph\w*|s3fs|gcsfuse|rclone|davfs2|smb\w*|nfs\w*|vmhgfs-fuse|blobfuse\d?|goofys|juicefs)"
)


def open_for_writing(path: Path, *, create: bool) -> sqlite3.Connection:
    """The one writing connection.  `create` makes a new journal and refuses an existing one; without it there must be one."""
    if create:
        if path.exists():
            raise BadInput(f"{path}: there is a journal already; resume its run, or choose another folder")
        if not path.parent.is_dir():
            raise BadInput(f"{path.parent}: there is no such folder to put a journal into")
    else:
        _check_header(path)
    with named_trouble(path):
        db = sqlite3.connect(path, isolation_level=None, timeout=WAIT_SECONDS)
        try:
            if create:
                db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            else:
                _check_version(db, path)
                check_pages(db, path)
            # WAL needs memory shared by all who open the file; across a network each would see its own.
            db.execute("PRAGMA journal_mode=" + ("DELETE" if on_network_file_system(path) else "WAL"))
            db.execute("PRAGMA synchronous=FULL")
            db.execute("PRAGMA wal_autocheckpoint=2000")
        except BaseException:
            db.close()
            raise
    return db


def open_for_reading(path: Path) -> sqlite3.Connection:
    """A read-only connection, beside a writer or on a folder that cannot be written."""
    _check_header(path)
    uri = path.resolve().as_uri()
    with named_trouble(path):
        db = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, timeout=WAIT_SECONDS)
        try:
            _check_version(db, path)
            return db
        except sqlite3.OperationalError as trouble:
            db.close()
            if not _at_rest(path, trouble):
                raise
        except BaseException:
            db.close()
            raise
        db = sqlite3.connect(f"{uri}?immutable=1", uri=True, isolation_level=None)
        try:
            _check_version(db, path)
        except BaseException:
            db.close()
            raise
    return db


def _at_rest(path: Path, trouble: sqlite3.OperationalError) -> bool:
    """Whether this is a journal left in WAL mode where nothing may be written, so that nobody can be writing it and nothing is pending.

    Any other trouble (it is locked, say), or rows that are not in the file yet, and what the file holds is not all there is.
    """
    pending = any(beside.exists() and beside.stat().st_size for beside in (Path(f"{path}-wal"), Path(f"{path}-journal")))
    return _code(trouble) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) and not pending


def leave_wal(db: sqlite3.Connection) -> None:
    """Fold the write-ahead log into the file, so that the folder can be copied and opened read-only."""
    db.execute("PRAGMA busy_timeout=500")
    try:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.OperationalError as trouble:
        # A reader has the file open: it stays in WAL mode, which is as safe; the next clean close leaves it.
        if _code(trouble) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise


def on_network_file_system(path: Path, mounts: str | None = None) -> bool:
    """Whether `path` lies on a file system that other hosts may share.  `mounts` is the text of /proc/mounts."""
    if mounts is None:
        table = Path("/proc/mounts")
        mounts = table.read_text(encoding="utf-8", errors="replace") if table.exists() else ""
    place = path.resolve()
    depth, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), fields[1]))
        # A later mount on the same point hides the earlier one.
        if place.is_relative_to(point) and len(point.parts) >= depth:
            depth, kind = len(point.parts), fields[2]
    return _NETWORK.fullmatch(kind) is not None


class Transaction:
    """BEGIN IMMEDIATE .. COMMIT; `with connection` does not begin one in autocommit mode.  SQLite's troubles leave it named."""

    __slots__ = ("_db", "_path")

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db, self._path = db, path

    def __enter__(self) -> None:
        try:
            self._db.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as trouble:
            raise named(self._path, trouble) from trouble

    def __exit__(self, kind: type[BaseException] | None, trouble: BaseException | None, _: TracebackType | None) -> None:
        if kind is None:
            try:
                self._db.execute("COMMIT")
            except sqlite3.DatabaseError as refused:
                self._roll_back()
                raise named(self._path, refused) from refused
            return
        self._roll_back()
        if isinstance(trouble, sqlite3.DatabaseError):
            raise named(self._path, trouble) from trouble

    def _roll_back(self) -> None:
        if self._db.in_transaction:  # a full disk makes SQLite roll back by itself
            self._db.execute("ROLLBACK")


@contextmanager
def named_trouble(path: Path) -> Iterator[None]:
    """Turn SQLite's troubles into ours, with the file's name."""
    try:
        yield
    except sqlite3.DatabaseError as trouble:
        raise named(path, trouble) from trouble
    except UnicodeDecodeError as trouble:  # SQLite's own message holds bytes of the file
        raise damaged(path, str(trouble)) from trouble


@contextmanager
def legible(path: Path, what: str) -> Iterator[None]:
    """Around reading what a row says: quick_check sees the pages of a file, not a changed byte within a value."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, zlib.error) as trouble:
        raise damaged(path, f"{what}: {trouble}") from trouble


def named(path: Path, trouble: sqlite3.DatabaseError) -> Exception:
    """What SQLite reported, as the error a person can act on; a bug of ours (a key used twice, a closed file) stays what it is."""
    code = _code(trouble)
    # A text that is none, says Python's sqlite3; a table or column whose name has changed in the file, says SQLite.
    if (code == 0 and "decode" in str(trouble)) or (code == sqlite3.SQLITE_ERROR and "no such" in str(trouble)):
        return damaged(path, str(trouble))
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return DiskFull(f"{path}: {trouble}; make room on that disk, then resume: all that was journaled is kept")
    if code == sqlite3.SQLITE_NOTADB:
        return _foreign(path, "it is not an SQLite file")
    if code == sqlite3.SQLITE_CORRUPT:
        return damaged(path, str(trouble))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BadInput(f"{path}: another process has held the file for {WAIT_SECONDS:.0f} s ({trouble}); end it, then try again")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return BadInput(f"{path}: {trouble}; the file and its folder must be accessible (copy the folder to where they are)")
    return trouble


def _code(trouble: sqlite3.DatabaseError) -> int:
    """The primary result code; 0 where the module itself, not SQLite, complains."""
    return int(getattr(trouble, "sqlite_errorcode", 0)) & 0xFF


def _check_header(path: Path) -> None:
    if not path.is_file():
        raise BadInput(
            f"{path}: there is no journal here. Put it back from a copy: what the run was asked and answered is in it, and nowhere else"
        )
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except PermissionError as trouble:
        raise BadInput(f"{path}: {trouble.strerror}; the journal must be readable") from trouble
    if head != b"SQLite format 3\0":
        raise _foreign(path, "it is empty" if not head else "it is not an SQLite file")


def _check_version(db: sqlite3.Connection, path: Path) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise _foreign(path, f"its application id is {application:#x}")
    if version != VERSION:
        raise BadInput(
            f"{path}: the journal has format {version}, this TaskWeave writes format {VERSION}; "
            f"use {'a newer' if version > VERSION else 'the older'} TaskWeave for this run, or start a new run"
        )


def check_pages(db: sqlite3.Connection, path: Path) -> None:
    """Raises BadInput where a page of the file is damaged; reads all of it once."""
    problems = [str(row[0]) for row in db.execute("PRAGMA quick_check(3)")]
    if problems != ["ok"]:
        raise damaged(path, "; ".join(problems).replace("\n", "; "))


def _foreign(path: Path, why: str) -> BadInput:
    return BadInput(f"{path}: this is not a TaskWeave journal: {why}; name a run folder, or put its own journal.db back")


def damaged(path: Path, why: str) -> BadInput:
    """What to say of a journal whose bytes have changed; `why` may quote them."""
    why = why if len(why) <= 200 else why[:199] + "…"
    return BadInput(f"{path}: the journal is damaged ({why}); restore it from a copy: nothing was changed, and no new run was started")
