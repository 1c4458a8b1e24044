"""A run in which the backbone failed never looks like a success: what is counted, marked, and beyond which share it stops."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import taskweave.driving as driving
from taskweave.api import Run
from taskweave.backbones.scripted import Scripted
from taskweave.engine.reader import JournalReader
from taskweave.errors import TooManyFallbacks
from taskweave.records import BY_CODE, LEVELS, STEPS, Mark, Request, step_of
from taskweave.report.closing import closing
from taskweave.report.status import answers_told
from taskweave.simulation.tally import Tally, level_of
from tests.cli.door import type_in
from tests.loopback import Loopback
from tests.simulated import WORKSHOP, Stub, events, rows
from tests.test_loop import parallel


def run_with(
    where: Path, stubs: dict[str, Stub], *, until: str = "week:2", most: float | None = None, limit: int = 16, org: str = WORKSHOP
) -> Run:
    """The workshop with a backbone that answers some steps badly, and a bound for fallbacks."""
    folder, backbone = driving.begin(
        driving.Organization(org),
        out=where,
        backbone=Scripted(stubs),
        seed=1,
        until=until,
        base_url=None,
        prompts=[],
        assign="match",
        incidents=[],
        limit=limit,
        patience=60,
        tags={},
        max_fallback=most,
    )
    return Run(folder, driving.drive(folder, backbone))


def nonsense(request: Request) -> Any:
    return "no"


def figures(run: Run) -> Any:
    with run.pool() as pool:
        return closing(pool, run.folder.organization(), run.folder.population(), answers_told(run.folder))


# ---------------------------------------------------------------- words
def test_a_prompt_belongs_to_the_step_that_its_name_begins_with() -> None:
    assert [step_of(step) for step in STEPS] == list(STEPS)
    assert [step_of(name) for name in ("execute_title", "partition_week_task", "partition_owner", "sum")] == [
        "execute",
        "partition_week",
        "partition",
        "sum",
    ]


def test_the_level_of_an_answer_is_that_of_its_unit_and_below_a_task_the_execution() -> None:
    assert [level_of(f"{period}@head:formulate") for period in ("Y1", "Y1/Q1", "Y1/Q1/M01", "Y1/Q1/M01/W01")] == list(LEVELS)
    assert level_of("Y1/Q1/M01/W01@head/t1:decompose") == level_of("Y1/Q1/M01/W01@head/u1/s2.2:execute") == "execution"


def test_of_two_marks_the_worse_counts_and_a_change_by_code_is_a_repair() -> None:
    good, mended = Mark("ok", "model"), Mark("repaired", "scripted")
    assert (good.worse(mended), mended.worse(good), good.worse(BY_CODE), BY_CODE.worse(good)) == (mended, mended, BY_CODE, BY_CODE)
    assert good.worse(Mark("ok", "scripted")) == good
    assert (good.mended, mended.mended, BY_CODE.mended) == (Mark("repaired", "model"), mended, BY_CODE)


# ---------------------------------------------------------------- counting
def test_a_step_that_fails_at_one_level_only_is_seen_in_status_and_closing_though_its_share_of_all_is_small(tmp_path: Path) -> None:
    def fails_at_months(request: Request) -> Any:
        return "no" if request.inputs["unit"]["level"] == "month" else Scripted().answer(request)

    run = run_with(tmp_path / "run", {"formulate": fails_at_months}, until="week:6")
    now = run.status()
    assert now.answers["formulate"] == {"year": (1, 0, 0), "quarter": (1, 0, 0), "month": (2, 0, 2), "week": (6, 0, 0)}
    asked = sum(counts[0] for levels in now.answers.values() for counts in levels.values())
    assert now.fallback_share == 2 / asked < 0.05
    assert [tuple(one) for one in figures(run).answers if one.fallback] == [("formulate", "month", "", 2, 0, 2)]


def test_every_question_that_was_asked_is_counted_once_and_in_the_same_way_however_it_was_reached(tmp_path: Path) -> None:
    def mends(request: Request) -> Any:  # asked a second time it answers well
        return Scripted().answer(request) if len(request.messages) > 2 else {"title": ""}

    run = run_with(tmp_path / "run", {"merge": mends})
    now, calls = run.status(), Counter(step_of(row["prompt"]) for row in run.table("calls"))
    merges = now.answers["merge"]["execution"]
    assert merges == (calls["merge"] // 2, calls["merge"] // 2, 0)
    for step, levels in now.answers.items():
        if step != "merge":
            assert sum(counts[0] for counts in levels.values()) == calls[step]
    again = run.resume(backbone=Scripted({"merge": mends}))
    assert again.status().answers == now.answers
    assert run_with(tmp_path / "one", {"merge": mends}, limit=1).status().answers == now.answers


def test_an_answer_that_is_valid_and_lacks_what_was_asked_for_counts_as_a_fallback(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"partition_week": lambda request: {"tasks": []}, "partition": lambda request: {"objectives": []}})
    answers = run.status().answers
    assert answers["partition"] == {level: (1, 0, 1) for level in ("year", "quarter", "month")}
    assert answers["partition_week"] == {"week": (4, 0, 2)}, "asked again a week, and then made by code"


def test_what_code_had_to_change_in_an_answer_makes_it_a_repaired_one(tmp_path: Path) -> None:
    def odd(request: Request) -> Any:
        return {"tasks": [task | {"activity": "zzz"} for task in Scripted().answer(request)["tasks"]]}

    run = run_with(tmp_path / "run", {"partition_week": odd})
    assert run.status().answers["partition_week"] == {"week": (2, 2, 0)}


# ---------------------------------------------------------------- marks
def test_each_item_says_of_itself_whether_a_backbone_named_it_or_code_filled_it(tmp_path: Path) -> None:
    def one_only(request: Request) -> Any:
        return {"tasks": Scripted().answer(request)["tasks"][:1] if not request.inputs["recent"] else []}

    def first_only(request: Request) -> Any:
        named = any(entry["id"].startswith("s") for entry in request.inputs["upstream"])
        return {"subtasks": [] if named else parallel(request)["subtasks"][:1]}

    run = run_with(tmp_path / "run", {"partition_week": one_only, "decompose": first_only}, until="week:1")
    tasks = {row["id"].rpartition("/")[2]: (row["quality"], row["origin"]) for row in rows(run, "tasks", kind="composite")}
    assert tasks.pop("t1") == ("ok", "scripted")
    assert set(tasks.values()) == {("fallback", "fallback")}
    subtasks = {(row["id"].rpartition("/")[2] == "s1", row["quality"], row["origin"]) for row in run.table("subtasks")}
    assert subtasks == {(True, "ok", "scripted"), (False, "fallback", "fallback")}


def test_a_change_by_code_marks_the_item_that_it_changed_and_no_other(tmp_path: Path) -> None:
    def second_is_odd(request: Request) -> Any:
        first, *others = parallel(request)["subtasks"]
        return {"subtasks": [first, *(step | {"role": "Wizard"} for step in others)]}

    run = run_with(tmp_path / "run", {"decompose": second_is_odd}, until="week:1")
    assert {(row["proposed"], row["quality"]) for row in run.table("subtasks")} == {("Joiner", "ok"), ("Wizard", "repaired")}
    found = figures(run)
    done = [row for row in run.table("subtasks") if row["status"] == "done"]
    assert len([row for row in done if row["quality"] == "ok"]) < len(done) == sum(role.executed for role in found.roles)


def test_an_objective_that_code_passed_on_is_a_fallback_and_one_that_was_rerouted_is_repaired(tmp_path: Path) -> None:
    def misaddressed(request: Request) -> Any:
        objective = Scripted().answer(request)["objectives"][0]
        return {"objectives": [objective | {"owner": "the head"}]} if request.inputs["unit"]["level"] == "year" else {"objectives": []}

    run = run_with(tmp_path / "run", {"partition": misaddressed}, until="week:1")
    marks = {row["id"]: (row["quality"], row["origin"]) for row in rows(run, "tasks", kind="objective")}
    assert marks["Y1@head/o1"] == ("repaired", "scripted")
    assert {mark for id_, mark in marks.items() if not id_.startswith("Y1@")} == {("fallback", "fallback")}


def test_each_revision_of_a_state_says_it_of_the_texts_that_stand_in_it(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"diagnose": nonsense}, until="week:1")
    states = [(row["revision"], row["quality"], row["origin"]) for row in rows(run, "states", level="week")]
    assert states == [(1, "ok", "scripted"), (2, "fallback", "fallback")]
    assert [(row["quality"], row["origin"]) for row in rows(run, "states", id="root")] == [("ok", None)], "nobody was asked for it"


def test_a_task_whose_own_specification_is_a_fallback_is_not_done_without_fallbacks(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"partition_week": nonsense})
    assert {row["quality"] for row in run.table("results")} == {"ok"}
    found, now = figures(run), run.status()
    assert found.tasks.done.hits == now.done > 0
    assert found.tasks.done.of == now.planned
    assert found.tasks.without_fallback.hits == now.done_without_fallback == 0


# ---------------------------------------------------------------- the bound
def test_a_run_stops_once_a_group_has_ten_answers_and_more_fallbacks_than_allowed_and_says_why(tmp_path: Path) -> None:
    run = run_with(tmp_path / "run", {"execute": nonsense}, until="week:8", most=0.7)
    assert run.outcome is not None
    assert run.outcome.stop == "fallback"
    assert driving.ending(run.outcome) is TooManyFallbacks
    assert TooManyFallbacks.exit_code == 3
    assert "the answers of 'execute' at the level 'execution' 10 of 10 (100.0 %) could not be used" in run.outcome.cause
    assert "more than the 70 % that are allowed; most often: 10 times 'there is no JSON object in the answer'" in run.outcome.cause
    now = run.status()
    assert (now.state, now.next) == ("fallback", f"taskweave resume {run.path} --max-fallback 100%")


def test_a_run_that_was_stopped_before_its_first_week_closed_says_its_share_all_the_same(tmp_path: Path) -> None:
    stubs = dict.fromkeys(STEPS, nonsense)
    run = run_with(tmp_path / "run", stubs, until="week:8", most=0.7)
    now = run.status()
    assert (now.state, now.week, now.answers) == ("fallback", 0, {})
    assert now.fallback_share == 1.0
    assert now.asked >= 10
    assert f"of all answers {now.asked} of {now.asked}" in now.cause or now.asked < 20
    said = " ".join(type_in("status", run.path).stdout.split())
    assert f"fallback share 100.0 % of {now.asked} answers until the stop (stops beyond 70 %)" in said
    assert "100.0 %" in type_in("runs", tmp_path).stdout


def test_a_stopped_run_resumed_with_the_same_bound_stops_again_and_with_a_higher_one_ends_as_if_undisturbed(tmp_path: Path) -> None:
    def some(request: Request) -> Any:
        return "no" if int(request.seed) % 2 else Scripted().answer(request)

    stubs = {"execute": some, "merge": some}
    whole = run_with(tmp_path / "whole", stubs, until="week:4")
    run = run_with(tmp_path / "run", stubs, until="week:4", most=0.1)
    assert run.outcome is not None
    assert run.outcome.stop == "fallback"
    before = run.status().calls
    again = run.resume(backbone=Scripted(stubs))
    assert again.outcome is not None
    assert again.outcome.stop == "fallback"
    assert again.status().calls == before, "nothing was asked that had not been"
    lower = again.resume(backbone=Scripted(stubs), max_fallback=0.15)
    assert lower.outcome is not None
    assert lower.outcome.stop == "fallback", "during re-execution"
    through = again.resume(backbone=Scripted(stubs), max_fallback=1.0)
    assert through.outcome is not None
    assert through.outcome.stop is None
    assert through.digest() == whole.digest()
    assert through.status().answers == whole.status().answers


def test_a_bound_that_was_never_reached_changes_nothing(tmp_path: Path) -> None:
    bound = run_with(tmp_path / "bound", {}, most=0.0)
    assert bound.outcome is not None
    assert bound.outcome.stop is None
    assert bound.digest() == run_with(tmp_path / "free", {}).digest()


def test_few_fallbacks_stop_a_run_at_the_seal_of_the_week(tmp_path: Path) -> None:
    small = WORKSHOP.replace("count: 2, ", "").replace("utilisation: 0.8", "utilisation: 0.3")
    run = run_with(tmp_path / "run", {"diagnose": nonsense}, until="week:1", most=0.01, org=small)
    assert run.outcome is not None
    assert (run.outcome.stop, run.outcome.week) == ("fallback", 1)
    assert "all answers" in run.outcome.cause
    with JournalReader(run.folder.journal_path) as journal:
        assert [stop.why for stop in journal.stops()] == ["fallback"]
    assert events(run, "fallback"), "the week is written"
    ended = run.resume(backbone=Scripted({"diagnose": nonsense}), max_fallback=0.2)
    assert (ended.finished, ended.status().calls) == (True, run.status().calls)


@pytest.mark.parametrize(("fallbacks", "asked", "most", "stops"), [(29, 100, 0.29, False), (30, 100, 0.29, True), (9, 9, 0.5, False)])
def test_a_share_is_beyond_the_bound_only_where_it_is_greater_and_of_enough_answers(
    fallbacks: int, asked: int, most: float, stops: bool
) -> None:
    tally, heard = Tally(most), []
    tally.halt = lambda why, cause, bound=None: heard.append(why)
    for number in range(asked):
        site = f"Y1@head/t{number}:execute"
        good = number < asked - fallbacks
        tally.asked(site, "execute", "any", "ok" if good else "fallback", "" if good else "empty")
        tally.settle(site, "ok" if good else "fallback")
    assert bool(heard) is stops


def test_the_command_that_a_stopped_run_names_lets_it_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with Loopback(faults=["nonsense"] * 40) as server:
        asked = ["--backbone", "openai:any", "--base-url", server.url, "--no-look", "--max-fallback", "1%"]
        done = type_in("run", "tiny", "--until", "week:2", "--out", "r", *asked)
        assert done.exit_code == 3, done.output
        said = " ".join(str(done.stderr).split())
        command = said.rpartition("Continue with: ")[2]
        assert re.fullmatch(r"taskweave resume r --max-fallback \d+%", command)
        sent = len(server.requests)
        assert type_in("resume", "r").exit_code == 3
        assert len(server.requests) == sent
        share = next(line for line in str(type_in("status", "r").stdout).splitlines() if "fallback" in line and "share" in line)
        assert "(stops beyond 1 %)" in share
        assert type_in("resume", "r", "--max-fallback", "100%").exit_code == 0
    told = type_in("runs", ".").stdout
    assert "fallback" in told
    assert re.search(r"\d+\.\d %", told)
