"""How far a run is, seen from outside: what is counted, and at which pace it goes on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import taskweave as tw
from taskweave.engine.journal import Journal
from taskweave.engine.reader import ClosedWeek, JournalReader
from taskweave.report.status import _left


def moment(ago: float) -> str:
    """So many seconds ago, as a journal writes it."""
    return (datetime.now(UTC) - timedelta(seconds=ago)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_time_left_is_told_from_the_weeks_of_the_session_that_runs() -> None:
    closed = [ClosedWeek(week=n, digest="", facts={}, at=moment(86_400 + 60 * (20 - n))) for n in range(1, 21)]
    began = moment(30)
    assert _left(closed, 52, began) is None, "nothing is known of today's pace"
    closed += [ClosedWeek(week=21, digest="", facts={}, at=moment(10))]
    assert _left(closed, 52, began) is None, "one week has no pace"
    closed += [ClosedWeek(week=22, digest="", facts={}, at=moment(0))]
    left = _left(closed, 52, began)
    assert left is not None
    assert 290 < left < 301, "thirty weeks of ten seconds"


def test_a_session_begins_where_its_journal_says(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal(path, create=True) as journal, JournalReader(path) as reader:
        assert reader.session_began() is None
        journal.begin_session()
        began = reader.session_began()
        assert began is not None
        journal.close_week(1, "d", {})
        assert began <= reader.weeks()[0].at <= moment(0)


def test_what_a_run_has_asked_itself_is_not_called_inherited(tmp_path: Path) -> None:
    run = tw.simulate("tiny", until="week:1", out=tmp_path / "r")
    now = run.resume(until="week:2").status()
    assert (now.inherited, now.lost) == (0, 0)
    assert now.calls > 0
