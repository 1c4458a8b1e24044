"""A fork is its parent up to a week and something else from there on; it pays only for what changed, and the parent stays as it is."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import shutil
import sqlite3
import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import taskweave as tw
from taskweave import driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.engine.reader import JournalReader
from taskweave.errors import BadInput, Divergence, RunRefused
from taskweave.records import Completion, Request
from taskweave.runs import RunFolder
from tests.simulated import WORKSHOP, rows, simulated

TWO = """
name: Two shops
calendar: {start: 2026-01-05}
goals: {orders: {text: Repair 400 chairs, owner: Boss}}
roles:
  Boss: {}
  Repair Head: {reports_to: Boss, leads: Repair}
  Joiner: {reports_to: Repair Head, count: 2, hours: 3-5}
  Sales Head: {reports_to: Boss, leads: Sales}
  Seller: {reports_to: Sales Head, count: 2, hours: 3-5}
workload: {composite_hours: 12}
"""
AUDIT = "{title: Audit of the joints, severity: high, affects: all, category: policy, duration: 2 weeks}"


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("parent") / "base", until="week:6")


@pytest.fixture
def audit(tmp_path: Path) -> Path:
    file = tmp_path / "audit.yaml"
    file.write_text(AUDIT, encoding="utf-8")
    return file


def contents(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "lock"
    }


def week_digests(run: Run) -> list[str]:
    with JournalReader(run.folder.journal_path) as journal:
        return [week.digest for week in journal.weeks()]


def asked_before(run: Run, week: int) -> int:
    """Calls that are not inherited, at sites whose period lies before the week."""
    db = sqlite3.connect(run.folder.journal_path)
    own = [site for (site,) in db.execute("SELECT site FROM outcomes WHERE kind = 'complete' AND NOT inherited")]
    db.close()
    return sum(f"/W{number:02d}@" in site for site in own for number in range(1, week))


# ---------------------------------------------------------------- what is taken and what is paid
@pytest.mark.parametrize("week", [1, 3, 6])
def test_a_fork_that_changes_nothing_pays_nothing_and_is_the_same_run(parent: Run, tmp_path: Path, week: int) -> None:
    before = contents(parent.path)
    fork = parent.fork(at=f"week:{week}", out=tmp_path / "placebo")
    now = fork.status()
    assert (now.calls - now.inherited, now.lost) == (0, 0)
    assert fork.digest() == parent.digest()
    assert contents(parent.path) == before
    assert fork.verify().ok


def test_an_incident_changes_nothing_before_its_week_and_is_heard_from_then_on(parent: Run, tmp_path: Path, audit: Path) -> None:
    fork = parent.fork(at="week:3", out=tmp_path / "audited", incidents=audit)
    assert week_digests(fork)[:2] == week_digests(parent)[:2]
    assert week_digests(fork)[2] != week_digests(parent)[2]
    assert asked_before(fork, 3) == 0
    now = fork.status()
    assert 0 < now.inherited < now.calls
    assert [row["tick"] for row in rows(fork, "incidents")] == [10]
    assert fork.config.parent is not None
    assert (fork.config.parent.week, fork.config.parent.added, fork.config.parent.is_control) == (3, ("audit-of-the-joints",), False)
    assert fork.verify().ok


def test_a_department_that_has_not_heard_of_it_yet_pays_nothing(tmp_path: Path) -> None:
    base = simulated(tmp_path / "base", TWO, until="week:4")
    file = tmp_path / "strike.yaml"
    file.write_text("{title: Strike of the glue makers, severity: medium, affects: [Repair], duration: 2 weeks}", encoding="utf-8")
    fork = base.fork(at="week:3", out=tmp_path / "fork", incidents=file)
    db = sqlite3.connect(fork.folder.journal_path)
    own = [site for (site,) in db.execute("SELECT site FROM outcomes WHERE kind = 'complete' AND NOT inherited AND site LIKE '%/W03@%'")]
    db.close()
    assert any("@repair-head" in site for site in own)
    assert not any("@sales-head" in site and not site.endswith((":diagnose", ":align", ":reconcile")) for site in own)


def test_redrawn_forks_are_controls_that_share_the_weeks_before_and_differ_after(parent: Run, tmp_path: Path) -> None:
    one, two, again = (parent.fork(at="week:3", out=tmp_path / name, redraw=n) for name, n in (("one", 1), ("two", 2), ("again", 1)))
    assert len({run.digest() for run in (parent, one, two, again)}) == 3
    assert one.digest() == again.digest()
    for run in (one, two):
        assert week_digests(run)[:2] == week_digests(parent)[:2]
        assert asked_before(run, 3) == 0
        assert run.config.parent is not None
        assert run.config.parent.is_control


def test_a_fork_of_a_fork_that_takes_the_incident_back_is_the_first_run_and_free(parent: Run, tmp_path: Path, audit: Path) -> None:
    fork = parent.fork(at="week:3", out=tmp_path / "audited", incidents=audit)
    back = fork.fork(at="week:3", out=tmp_path / "back", drop=["audit-of-the-joints"])
    assert back.digest() == parent.digest()
    assert back.status().calls == back.status().inherited
    later = fork.fork(at="week:5", out=tmp_path / "later")
    assert later.digest() == fork.digest()
    assert later.status().calls == later.status().inherited


def test_other_prompts_hold_from_their_week_on_and_are_guarded(parent: Run, tmp_path: Path) -> None:
    laid = tmp_path / "laid"
    laid.mkdir()
    text = (parent.path / "prompts" / "diagnose.md").read_text(encoding="utf-8")
    head, body = text.split("---\n", 2)[1:]
    version = int(next(line.split(":")[1] for line in head.splitlines() if line.startswith("version")))
    laid.joinpath("diagnose.md").write_text(
        f"---\n{head.replace(f'version: {version}', f'version: {version + 1}')}---\n{body}\nBe brief.\n", encoding="utf-8"
    )
    fork = parent.fork(at="week:3", out=tmp_path / "brief", prompts=laid)
    db = sqlite3.connect(fork.folder.journal_path)
    asked = "SELECT DISTINCT version FROM requests WHERE prompt = 'diagnose' AND site LIKE ?"
    versions = [db.execute(asked, (f"%/{week}@%",)).fetchall() for week in ("W02", "W03", "W04")]
    db.close()
    assert versions == [[(version,)], [(version + 1,)], [(version + 1,)]]
    assert fork.verify().ok
    again = fork.fork(at="week:5", out=tmp_path / "again")
    assert again.digest() == fork.digest()
    (fork.path / "prompts-week3" / "diagnose.md").write_text("changed", encoding="utf-8")
    with pytest.raises(BadInput, match=r"prompts-week3"):
        fork.resume(until="week:7")


class Other(Scripted):
    """Answers as the scripted one does, under another name."""

    name, origin = "other", "model"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def complete(self, request: Request) -> Completion:
        self.asked.append(request.backbone)
        return await super().complete(request)


def test_another_backbone_answers_from_its_week_on_and_only_from_then(parent: Run, tmp_path: Path) -> None:
    other = Other()
    fork = parent.fork(at="week:3", out=tmp_path / "other", backbone=other)
    assert set(other.asked) == {"other"}
    by_week: dict[str, set[str]] = {}
    for row in rows(fork, "calls"):
        by_week.setdefault(row["site"].partition("@")[0][-3:], set()).add(row["backbone"])
    assert by_week["W02"] == {"scripted"}
    assert by_week["W04"] == {"other"}
    assert {row["origin"] for row in rows(fork, "results") if "/W05@" in row["id"]} == {"model"}
    assert [(one.week, one.backbone, one.given) for one in fork.config.segments] == [(0, "scripted", "scripted"), (3, "other", None)]
    assert fork.verify().ok
    back = fork.fork(at="week:5", out=tmp_path / "back", backbone="scripted")
    assert [one.backbone for one in back.config.segments] == ["scripted", "other", "scripted"]
    assert week_digests(back)[:4] == week_digests(fork)[:4]


def test_what_a_later_segment_changed_stays_where_an_earlier_fork_changes_something_else(parent: Run, tmp_path: Path) -> None:
    other = parent.fork(at="week:5", out=tmp_path / "other", backbone=Other())
    again = other.fork(at="week:3", out=tmp_path / "again", backbone=Other(), redraw=1)
    assert [(one.week, one.backbone, one.draw) for one in again.config.segments] == [(0, "scripted", 0), (3, "other", 1), (5, "other", 1)]
    drawn = parent.fork(at="week:5", out=tmp_path / "drawn", redraw=2)
    earlier = drawn.fork(at="week:3", out=tmp_path / "earlier", redraw=1)
    assert [(one.week, one.draw) for one in earlier.config.segments] == [(0, 0), (3, 3), (5, 3)]


# ---------------------------------------------------------------- from which runs
def test_a_stopped_run_can_be_forked_up_to_the_week_after_its_last_closed_one(tmp_path: Path, audit: Path) -> None:
    base = simulated(tmp_path / "base", until="week:3")
    fork = base.fork(at="week:4", out=tmp_path / "on", until="week:6")
    assert fork.digest() == simulated(tmp_path / "whole", until="week:6").digest()
    with pytest.raises(RunRefused, match=r"has closed 3 weeks, so a fork may differ from week 4 on at the latest, not from week 5"):
        base.fork(at="week:5", out=tmp_path / "beyond", until="week:6")
    assert not (tmp_path / "beyond").exists()
    with pytest.raises(BadInput, match=r"the horizon of .* is week:3 \(week 3\)\. Name a later one with --until"):
        base.fork(at="week:4", out=tmp_path / "short")


class Held(Scripted):
    """Answers until it has answered some, then waits to be let go."""

    def __init__(self, until: int) -> None:
        super().__init__()
        self.reached, self.go, self._left = threading.Event(), threading.Event(), until

    async def complete(self, request: Request) -> Completion:
        self._left -= 1
        if self._left < 0:
            self.reached.set()
            while not self.go.is_set():
                await asyncio.sleep(0.01)
        return await super().complete(request)


def test_a_live_run_can_be_forked_and_goes_on_undisturbed(parent: Run, tmp_path: Path, audit: Path) -> None:
    held = Held(60)
    ended: list[Run] = []
    live = threading.Thread(
        target=lambda: ended.append(tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "live", until="week:6", backbone=held))
    )
    live.start()
    assert held.reached.wait(30)
    base = Run.open(tmp_path / "live")
    closed = base.status().week
    assert 1 <= closed < 6
    fork = base.fork(at=f"week:{closed + 1}", out=tmp_path / "fork", incidents=audit, backbone=Scripted())
    held.go.set()
    live.join(60)
    assert ended[0].digest() == parent.digest()
    assert asked_before(fork, closed + 1) == 0
    assert fork.digest() == parent.fork(at=f"week:{closed + 1}", out=tmp_path / "same", incidents=audit).digest()


def test_a_read_only_parent_elsewhere_can_be_forked(parent: Run, tmp_path: Path) -> None:
    shutil.copytree(parent.path, tmp_path / "copy")
    for place in [tmp_path / "copy", *(tmp_path / "copy").rglob("*")]:
        place.chmod(0o555 if place.is_dir() else 0o444)
    fork = Run.open(tmp_path / "copy").fork(at="week:3", out=tmp_path / "fork")
    assert fork.digest() == parent.digest()


# ---------------------------------------------------------------- what is refused
def test_what_cannot_be_forked_so_is_refused_and_leaves_nothing(parent: Run, tmp_path: Path, audit: Path) -> None:
    early = tmp_path / "early.yaml"
    early.write_text(f"{AUDIT[:-1]}, at: week:2}}", encoding="utf-8")
    fork = parent.fork(at="week:2", out=tmp_path / "with", incidents=audit)
    refused: list[tuple[Run, dict[str, Any], str]] = [
        (parent, {"at": "week:3", "incidents": early}, "is meant for 2026-01-12, and the fork parts from its parent in week 3"),
        (parent, {"at": "week:3", "drop": ["audit"]}, "there is no incident 'audit' to drop; the run holds: none"),
        (fork, {"at": "week:4", "drop": ["audit-of-the-joints"]}, "happened before week 4"),
        (parent, {"at": "week:99"}, "week:99"),
        (parent, {"at": "soon"}, "soon"),
        (parent, {"at": "week:3", "prompts": tmp_path / "nowhere"}, "there is no such folder of prompts"),
        (parent, {"at": "week:3", "backbone": "openai"}, "openai"),
        (parent, {"at": "week:3", "redraw": 0}, "draws are numbered from 1"),
    ]
    for run, changes, said in refused:
        with pytest.raises(BadInput, match=said.replace("(", r"\(")):
            run.fork(out=tmp_path / "refused", **changes)
        assert not (tmp_path / "refused").exists()
    with pytest.raises(RunRefused, match="there is a run already"):
        parent.fork(at="week:3", out=tmp_path / "with")


def test_a_parent_whose_inputs_were_edited_is_not_forked(tmp_path: Path) -> None:
    base = simulated(tmp_path / "base", until="week:2")
    org = base.path / "org.yaml"
    org.write_text(org.read_text(encoding="utf-8").replace("400 chairs", "500 chairs"), encoding="utf-8")
    with pytest.raises(Divergence, match=r"changed since the run was made: org\.yaml: goals\.orders"):
        base.fork(at="week:2", out=tmp_path / "fork")


def test_a_damaged_parent_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    base = simulated(tmp_path / "base", until="week:2")
    data = bytearray((base.path / "journal.db").read_bytes())
    data[4096 : len(data) // 2] = random.Random(1).randbytes(len(data) // 2 - 4096)
    (base.path / "journal.db").write_bytes(data)
    with pytest.raises(BadInput, match=r"journal\.db: .*damaged"):
        base.fork(at="week:2", out=tmp_path / "fork")
    assert not (tmp_path / "fork").exists()
    assert not list(tmp_path.glob(".taskweave*"))


# ---------------------------------------------------------------- the promises hold in a fork, too
class Failing(Scripted):
    """Answers so many, then fails for good."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self._left = answers

    async def complete(self, request: Request) -> Completion:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return await super().complete(request)


def test_a_fork_that_was_interrupted_is_resumed_and_pays_nothing_twice(parent: Run, tmp_path: Path, audit: Path) -> None:
    whole = parent.fork(at="week:3", out=tmp_path / "whole", incidents=audit)
    made = driving.fork(parent.folder, at="week:3", out=tmp_path / "part", incidents=[audit])
    ((folder, _),) = made
    with pytest.raises(KeyboardInterrupt):
        driving.drive(folder, Failing(20))
    part = Run.open(folder.path)
    assert 0 < part.status().calls - part.status().inherited <= 20
    rest = part.resume()
    assert rest.digest() == whole.digest()
    assert rest.status().calls == whole.status().calls
    assert rest.status().inherited == whole.status().inherited


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(week=st.integers(1, 6), high=st.booleans(), day=st.integers(0, 4), redraw=st.sampled_from([None, 1]))
def test_whatever_the_fork_its_prefix_is_the_parents_and_unpaid(
    parent: Run, tmp_path_factory: pytest.TempPathFactory, week: int, high: bool, day: int, redraw: int | None
) -> None:
    place = tmp_path_factory.mktemp("fork")
    file = place / "incident.yaml"
    happens = date(2026, 1, 5) + timedelta(weeks=week - 1, days=day)
    incident = {"title": "Audit", "severity": "high" if high else "low", "at": happens.isoformat()}
    file.write_text(json.dumps(incident), encoding="utf-8")
    fork = parent.fork(at=f"week:{week}", out=place / "fork", incidents=file, redraw=redraw)
    assert week_digests(fork)[: week - 1] == week_digests(parent)[: week - 1]
    assert asked_before(fork, week) == 0
    assert fork.verify().ok


def test_a_fork_is_a_folder_of_its_own_whose_config_says_where_it_comes_from(parent: Run, tmp_path: Path, audit: Path) -> None:
    fork = parent.fork(at="week:3", out=tmp_path / "fork", incidents=audit, tags={"study": "audits"})
    folder = RunFolder.open(tmp_path / "fork")
    assert folder.config.parent is not None
    assert folder.config.parent.path == str(parent.path.absolute())
    assert folder.config.tags == {"study": "audits"}
    digest = fork.digest()
    shutil.move(str(tmp_path / "fork"), tmp_path / "moved")
    (tmp_path / "moved" / "run.db").unlink()
    assert Run.open(tmp_path / "moved").resume().digest() == digest
