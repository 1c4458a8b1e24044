"""Is this file a run.db that can be read, and how is it opened where nothing may be written?

Entry points: `create`, `open_read_only`.  Knows the file's stamp and SQLite's locking, not its tables.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from taskweave.errors import BadInput

APPLICATION = 0x54575244  # "TWRD"
_REBUILD = "It is derived from journal.db: delete it and `taskweave resume` this run rebuilds it"


def create(path: Path) -> sqlite3.Connection:
    """A connection to a new, empty file; an old one and what belongs to it are deleted."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    try:
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError as error:
        raise BadInput(f"{path}: cannot be created ({error}); is its folder there, and may it be written?") from error


def stamp(connection: sqlite3.Connection, version: int) -> None:
    """Say whose file this is and which tables it has; done last, so that a half-made one is not taken for a run.db."""
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {version}")


def open_read_only(path: Path, version: int) -> sqlite3.Connection:
    """A connection that cannot write.

    Raises BadInput where the file is missing, foreign or damaged, or has other tables: it is rebuilt then, never migrated.
    """
    if not path.is_file():
        raise BadInput(f"{path}: there is no such file. `taskweave resume` this run builds it from journal.db")
    try:
        connection = _connect(path)
    except sqlite3.DatabaseError as error:
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
    return BadInput(f"{path}: cannot be read ({error}). {_REBUILD}")


def _connect(path: Path) -> sqlite3.Connection:
    """mode=ro sees a live run's WAL.

    Where SQLite may not make its -shm beside the file, and no WAL holds anything, the file is all there is: then immutable.
    """
    connection = _try(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        return connection
    except sqlite3.OperationalError:
        connection.close()
        wal = Path(f"{path}-wal")
        if os.access(path.parent, os.W_OK) or (wal.exists() and wal.stat().st_size):
            raise
    connection = _try(path, "mode=ro&immutable=1")
    connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return connection


def _try(path: Path, options: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?{options}", uri=True, isolation_level=None, check_same_thread=False)


def leave_wal(connection: sqlite3.Connection) -> None:
    """Fold the WAL into the file.  Another process that reads keeps SQLite from leaving WAL; then all of it is in the file nevertheless."""
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    connection.execute("PRAGMA busy_timeout = 500")
    with contextlib.suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = DELETE").fetchone()
