"""Is this file a run.db that can be read, and how is it opened where nothing may be written?

Entry points: `create`, `open_read_only`, `put_in_place`.  Knows the file's stamp and SQLite's locking, and of its tables only `weeks`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from taskweave.errors import BadInput, DiskFull

APPLICATION = 0x54575244  # "TWRD"
_REBUILD = "It is derived from journal.db: delete it and `taskweave resume` this run rebuilds it"


_BESIDE = ("-wal", "-shm", "-journal")


def building(path: Path) -> Path:
    """Where a file is built that will take the place of `path`."""
    return path.with_name(path.name + ".building")


def create(path: Path) -> sqlite3.Connection:
    """A writing connection to a new, empty file; an old one and what belongs to it are deleted."""
    try:
        remove(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        write_ahead(connection)
    except IsADirectoryError as error:
        raise a_folder(path) from error
    except (sqlite3.OperationalError, OSError) as error:
        raise unwritable(path, error) from error
    return connection


def remove(path: Path) -> None:
    """Delete a database and what belongs to it."""
    if path.is_dir():
        raise IsADirectoryError(path)  # unlink says so on Linux only
    for suffix in (*_BESIDE, ""):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def write_ahead(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")  # derived: a crash costs a re-execution, never a call


def settled_weeks(path: Path) -> frozenset[int]:
    """The weeks that a run.db holds, none where it is missing or cannot be read.  Folds its WAL into it where nobody reads it."""
    if not path.is_file():
        return frozenset()
    try:
        connection = sqlite3.connect(path, isolation_level=None)
    except sqlite3.DatabaseError:
        return frozenset()
    try:
        if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            return frozenset()
        weeks = frozenset(int(week) for (week,) in connection.execute("SELECT week FROM weeks"))
        leave_wal(connection)
        return weeks
    except (sqlite3.DatabaseError, ValueError, TypeError):  # whatever bytes lie there: they are rebuilt
        return frozenset()
    finally:
        connection.close()


def put_in_place(built: Path, path: Path) -> sqlite3.Connection:
    """Put a closed file that has left WAL in the place of another, and open it for writing.

    Readers of the old one keep it to the end of their transaction; the old one's WAL, if it has one, must not be taken for the new one's.
    """
    try:
        for suffix in _BESIDE:
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        os.replace(built, path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        write_ahead(connection)
    except (sqlite3.OperationalError, OSError) as error:
        raise unwritable(path, error) from error
    return connection


def code_of(error: Exception) -> int:
    """SQLite's primary result code; 0 where it is not SQLite that complains."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def disk_full(path: Path, error: Exception) -> DiskFull | None:
    """What to say where there is no room for the file, or its disk reports an error; None for other trouble."""
    if code_of(error) == sqlite3.SQLITE_FULL or getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"{path}: the disk is full. Free some space, then `taskweave resume` this run")
    if code_of(error) == sqlite3.SQLITE_IOERR or getattr(error, "errno", None) == errno.EIO:
        return DiskFull(f"{path}: the disk reports an error ({error}). See to it, then `taskweave resume` this run")
    return None


def a_folder(path: Path) -> BadInput:
    """What to say where a folder lies in the file's place."""
    return BadInput(f"{path}: is a folder, and a database belongs there. Move it away; `taskweave resume` this run builds the file")


def unwritable(path: Path, error: Exception) -> DiskFull | BadInput:
    """What to say where the file cannot be made or written."""
    return disk_full(path, error) or BadInput(f"{path}: cannot be created ({error}); is its folder there, and may it be written?")


def stamp(connection: sqlite3.Connection, version: int) -> None:
    """Say whose file this is and which tables it has; done last, so that a half-made one is not taken for a run.db."""
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {version}")


def open_read_only(path: Path, version: int) -> sqlite3.Connection:
    """A connection that cannot write.

    Raises BadInput where the file is missing, foreign or damaged, or has other tables: it is rebuilt then, never migrated.
    """
    if path.is_dir():
        raise a_folder(path)
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file. `taskweave resume` this run builds it from journal.db")
    try:
        connection = _connect(path)
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # SQLite's own message may hold bytes of the file
        if code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise BadInput(f"{path}: another process holds the file ({error}). Ask again when it has done") from error
        raise damaged(path, error) from error
    application: int = connection.execute("PRAGMA application_id").fetchone()[0]
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == APPLICATION and found == version:
        return connection
    connection.close()
    if application != APPLICATION:
        raise BadInput(f"{path}: is a database, but not a run.db (application id {application:#x}). {_REBUILD}")
    raise BadInput(f"{path}: was written by another version of TaskWeave, its tables differ. {_REBUILD}")


def damaged(path: Path, error: object) -> BadInput:
    """What to say where SQLite finds the file unreadable, on opening or later."""
    return BadInput(f"{path}: cannot be read ({str(error)[:120]}). {_REBUILD}")


def _connect(path: Path) -> sqlite3.Connection:
    """mode=ro sees a live run's WAL.

    Where SQLite may not make its -shm beside the file, and neither a WAL nor a rollback journal holds anything, the file is all there
    is: then immutable.
    """
    connection = _try(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return connection
    except sqlite3.OperationalError as error:
        connection.close()
        pending = any(beside.exists() and beside.stat().st_size for beside in (Path(f"{path}-wal"), Path(f"{path}-journal")))
        if code_of(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY) or os.access(path.parent, os.W_OK) or pending:
            raise
    connection = _try(path, "mode=ro&immutable=1")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return connection


def _try(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.fsencode(path.resolve()))}?{options}", uri=True, isolation_level=None, check_same_thread=False)


def leave_wal(connection: sqlite3.Connection) -> None:
    """Fold the WAL into the file.  Another process that reads keeps SQLite from leaving WAL; then all of it is in the file nevertheless."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute("PRAGMA busy_timeout = 500")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
