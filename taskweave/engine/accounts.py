"""What a run has taken so far, over all its sessions, from its journal: tokens by backbone, seconds, the slowest answer.

Entry points: `usage`, `driven`, `slowest`; each takes a connection.  What was inherited from another run has cost this one nothing.
An attempt without an end counts at the most that it can have taken, as does one whose end says that its answer may have been made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime

from taskweave.engine.budget import Usage

# Ends after which an answer may have been made, and billed, all the same.
MAYBE_BILLED = "('unknown', 'fault')"
_WRITTEN = ("attempts", "ends", "outcomes", "ticks", "weeks")  # what a session writes as it goes

_ANSWERED = """
SELECT r.backbone, sum(o.prompt_tokens), sum(o.completion_tokens), 0, 0, 0
FROM outcomes o JOIN requests r USING (key) WHERE o.kind = 'complete' AND NOT o.inherited GROUP BY 1
"""
_LOST = f"""
SELECT r.backbone, 0, 0, count(*), sum(a.est - r.longest), sum(r.longest)
FROM attempts a LEFT JOIN ends e ON e.attempt = a.id
    JOIN (SELECT key, backbone, json_extract(sampling, '$.max_tokens') AS longest FROM requests WHERE sampling IS NOT NULL) r USING (key)
WHERE e.how IS NULL OR e.how IN {MAYBE_BILLED} GROUP BY 1
"""


def usage(db: sqlite3.Connection) -> list[Usage]:
    """What the run's own calls took, in one or two rows a backbone."""
    return [Usage(*row) for query in (_ANSWERED, _LOST) for row in db.execute(query)]


def driven(db: sqlite3.Connection) -> float:
    """Seconds that engines drove the run; a session that was killed counts up to the last row that it wrote."""
    return sum((end - began).total_seconds() for began, end in _sessions(db) if end > began)


def slowest(db: sqlite3.Connection) -> float:
    """Seconds that the run's own slowest answer took, 0 before there is one."""
    seconds = "max(CASE json_valid(value) WHEN 1 THEN json_extract(value, '$.latency') END)"
    row = db.execute(f"SELECT {seconds} FROM outcomes WHERE kind = 'complete' AND NOT inherited").fetchone()
    return float(row[0] or 0.0)


def _sessions(db: sqlite3.Connection) -> Iterator[tuple[datetime, datetime]]:
    rows = db.execute(
        "SELECT s.at, max(t.at), lead(s.at, 1, '9999') OVER (ORDER BY s.seq) FROM sessions s LEFT JOIN stops t ON t.session = s.seq"
        " GROUP BY s.seq ORDER BY s.seq"
    ).fetchall()
    for began, stopped, following in rows:
        yield _moment(began), _moment(stopped or _last_written(db, began, following))


def _last_written(db: sqlite3.Connection, began: str, following: str) -> str:
    query = " UNION ALL ".join(f"SELECT max(at) AS at FROM {table} WHERE at >= ?1 AND at < ?2" for table in _WRITTEN)
    return str(db.execute(f"SELECT coalesce(max(at), ?1) FROM ({query})", (began, following)).fetchone()[0])


def _moment(at: str) -> datetime:
    return datetime.fromisoformat(at.replace("Z", "+00:00"))
