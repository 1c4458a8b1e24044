"""`taskweave fork`: what one types, the names of what is made, what is said of it, and its exit codes."""

from __future__ import annotations

import json
import shutil
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskweave import driving
from taskweave.api import Run
from taskweave.runs import RunFolder
from taskweave.simulation.year import Outcome
from tests.cli.door import ROOT, garble, refused, type_in

AUDIT = "{title: Audit, severity: high, affects: all}"


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_fork_runs_at_once_under_a_name_of_its_own_and_says_what_it_took(finished: Path) -> None:
    Path("audit.yaml").write_text(AUDIT, encoding="utf-8")
    done = type_in("fork", finished, "--at", "week:2", "--incidents", "audit.yaml", "--tag", "study=audits")
    assert done.exit_code == 0, done.output
    made = Path("runs") / f"{finished.name}-week2"
    assert f"taskweave diff {finished} {made}" in done.stdout
    said = type_in("status", made).stdout
    assert f"taken from {finished.name}" in said
    assert "study=audits" in said
    assert f"{made.name}: a fork of {finished.name} from week 2 on (incident audit added), study=audits" in type_in("runs").stdout
    assert type_in("verify", made).exit_code == 0


def test_prompts_that_were_changed_are_said_wherever_the_fork_is_shown(finished: Path) -> None:
    Path("mine").mkdir()
    body = (ROOT / "prompts" / "execute.md").read_text(encoding="utf-8").rstrip() + "\nWrite like a poet.\n"
    Path("mine/execute.md").write_text(body, encoding="utf-8")
    assert type_in("fork", finished, "--at", "week:2", "--prompts", "mine", "--out", "runs/poet").exit_code == 0
    assert f"{finished.name}, from week 2 on (other prompts)" in type_in("status", "poet").stdout
    assert json.loads(type_in("status", "poet", "--json").stdout)["parent_changed"] == ["other prompts"]
    assert "from week 2 on (other prompts)" in type_in("runs").stdout
    for runs in ((finished, "poet"), ("poet", finished)):
        said = " ".join(type_in("diff", *runs).stdout.split())
        assert "execute.md" in said
        assert "align.md" not in said
    assert f"a fork of {finished.name} at week 2, with other prompts from there on" in " ".join(
        type_in("diff", finished, "poet").stdout.split()
    )


def test_redraws_make_so_many_runs_and_json_is_one_object(finished: Path) -> None:
    done = type_in("fork", finished, "--at", "week:2", "--redraw", "2", "--out", "control", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [one["run"] for one in told["runs"]] == ["control-1", "control-2"]
    assert len({one["digest"] for one in told["runs"]}) == 2
    assert all(0 < one["status"]["inherited"] < one["status"]["calls"] for one in told["runs"])
    one = type_in("fork", finished, "--at", "week:2", "--redraw", "1", "--out", "single", "--json")
    assert json.loads(one.stdout)["digest"] == told["runs"][0]["digest"]
    second = Run.open(finished).fork(at="week:2", redraw=2, out="second")
    assert second.digest() == told["runs"][1]["digest"], "from Python a number makes one control, the one of that number"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--at", "week:99"), "week:99"),
        (("--at", "week:2", "--incidents", "none.yaml"), "none.yaml"),
        (("--at", "week:2", "--drop", "nothing"), "there is no incident 'nothing' to drop"),
        (("--at", "week:2", "--backbone", "none"), "none"),
        (("--at", "week:2", "--base-url", "http://127.0.0.1:1/v1"), "has no meaning"),
        (("--at", "week:2", "--tag", "x"), "a tag is written K=V"),
        ((), "--at"),
    ],
)
def test_what_cannot_be_forked_is_refused_with_code_2(finished: Path, words: tuple[str, ...], said: str) -> None:
    assert said in refused("fork", finished, *words)
    assert not Path("runs").exists()


def test_after_an_interrupt_only_runs_that_can_be_read_are_compared(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive, drives = driving.drive, count(1)

    def interrupted(folder: RunFolder, *given: Any, **more: Any) -> Outcome:
        if next(drives) == 2:
            folder.with_config(budget_tokens=1)
            folder = RunFolder.open(folder.path)
        return drive(folder, *given, **more)

    monkeypatch.setattr(driving, "drive", interrupted)
    done = type_in("fork", finished, "--at", "week:3", "--redraw", "3", "--out", "cj")
    assert done.exit_code == 3
    assert "not begun: taskweave resume cj-3" in done.stderr
    command = done.stdout.partition("compare")[2].split()
    assert command[:4] == ["taskweave", "diff", str(finished), "cj-1"]
    assert "cj-3" not in command
    assert type_in(*command[1:]).exit_code == 0
    begun = json.loads(type_in("status", "cj-3", "--json").stdout)
    assert (begun["state"], begun["week"], begun["done"], begun["planned"]) == ("new", 2, 0, 0)
    assert json.loads(type_in("status", "cj-1", "--json").stdout)["done"] > 0


def test_a_damaged_journal_is_named_as_the_runs_and_not_as_its_copy(finished: Path) -> None:
    shutil.copytree(finished, "r")
    garble(Path("r/journal.db"))
    for words in (["fork", "r", "--at", "week:2"], ["verify", "r"]):
        said = refused(*words)
        assert said.startswith("taskweave: r/journal.db: the journal is damaged")
        assert ".taskweave-new-" not in said
        assert "taskweave-verify-" not in said
    assert sorted(path.name for path in Path().iterdir() if not (path.name == "runs" and not list(path.iterdir()))) == ["r"]


def test_a_backbone_that_is_paid_for_is_not_asked_without_a_yes(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    done = type_in("fork", finished, "--at", "week:2", "--backbone", "openai:gpt-4o-mini")
    assert done.exit_code == 2
    assert "may be billed, and nobody can be asked here" in done.stderr
    assert "at most about" in done.stderr
    assert not Path("runs").exists()


def test_an_interrupt_before_the_fork_is_made_names_no_run_to_resume(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(driving, "fork", interrupted)
    done = type_in("fork", finished, "--at", "week:2")
    assert done.exit_code == 130
    assert "interrupted" in done.stderr
    assert "resume" not in done.stderr


def test_another_organization_is_named_wherever_the_fork_is_shown(finished: Path) -> None:
    told = yaml.safe_load((finished / "org.yaml").read_text(encoding="utf-8").replace("start: 2", "start: !!str 2"))
    told["goals"] = {**told.get("goals", {}), "calm": {"text": "No release after Thursday"}}
    Path("new.yaml").write_text(yaml.safe_dump(told, sort_keys=False), encoding="utf-8")
    done = type_in("fork", finished, "--at", "week:2", "--org", "new.yaml", "--out", "runs/new")
    assert done.exit_code == 0, done.output
    assert "from week 2 on (another organization)" in type_in("status", "new").stdout
    assert "organization of new: org-week2.yaml from week 2 on" in " ".join(type_in("diff", finished, "new").stdout.split())
    held = json.loads(type_in("show", "new", "--json").stdout)["organizations"]
    assert [(one["from"], one["file"]) for one in held] == [(1, "org.yaml"), (2, "org-week2.yaml")]
    assert "calm" not in type_in("show", "new", "--resolved").stdout
    assert "calm" in type_in("show", "new", "--resolved", "--at", "week:2").stdout
    assert "is no run" in refused("show", "company_a", "--at", "week:2")
    assert "soon" in refused("show", "new", "--at", "soon")


def test_a_file_that_cannot_amend_the_run_is_refused_and_nothing_is_made(finished: Path) -> None:
    Path("other.yaml").write_text("name: Another\nroles: {Boss: {}}\n", encoding="utf-8")
    assert "name: is 'Another'" in refused("fork", finished, "--at", "week:2", "--org", "other.yaml", "--out", "runs/other")
    assert "nowhere.yaml" in refused("fork", finished, "--at", "week:2", "--org", "nowhere.yaml", "--out", "runs/other")
    assert not Path("runs/other").exists()


def test_each_of_some_incidents_makes_a_fork_drawn_by_the_seed_and_what_came_of_them_is_told_by_category(finished: Path) -> None:
    words = ("fork", finished, "--at", "week:2", "--incidents", "library:policy", "--incidents", "library:economic", "--each", "2")
    assert type_in(*words, "--out", "runs/what").exit_code == 0
    made = sorted(Path("runs").iterdir())
    assert len(made) == 4
    added = {}
    for path in made:
        parent = RunFolder.open(path).config.parent
        assert parent is not None
        (added[path.name],) = parent.added
    assert all(name == f"what-{incident}" for name, incident in added.items())
    assert type_in(*words, "--out", "runs/again").exit_code == 0
    assert sorted(path.name.removeprefix("again-") for path in Path("runs").glob("again-*")) == sorted(added.values())
    assert type_in("fork", finished, "--at", "week:2", "--redraw", "2", "--out", "runs/chance").exit_code == 0
    done = type_in("diff", finished, *made, "runs/chance-1", "runs/chance-2", "--by", "category")
    assert done.exit_code == 0
    assert "4 incidents against" in done.stdout
    assert "policy, 2 incidents, units that hear of it" in done.stdout
    told = json.loads(type_in("diff", finished, *made, "runs/chance-1", "runs/chance-2", "--by", "category", "--json").stdout)
    assert [one["category"] for one in told["reactions"]] == ["policy", "policy", "economic", "economic"]
    assert "has an incident that it has not" in refused("diff", finished, "runs/chance-1", "runs/chance-2", "--by", "category")


def test_each_without_incidents_and_beside_redraws_is_refused(finished: Path) -> None:
    assert "Add --incidents library:policy" in refused("fork", finished, "--at", "week:2", "--each", "2")
    words = ("fork", finished, "--at", "week:2", "--incidents", "library:policy", "--each", "2", "--redraw", "2")
    assert "Make the controls with a command of their own" in refused(*words)
    assert not Path("runs").exists()


def test_two_incidents_of_one_title_make_two_forks(finished: Path) -> None:
    Path("two.yaml").write_text(f"[{AUDIT}, {AUDIT}]", encoding="utf-8")
    assert type_in("fork", finished, "--at", "week:3", "--incidents", "two.yaml", "--each", "5").exit_code == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == [f"{finished.name}-week3-audit", f"{finished.name}-week3-audit-2"]
