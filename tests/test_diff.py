"""What an event changed: runs against a base, with and without controls."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import taskweave as tw
from taskweave.errors import BadInput
from taskweave.experiments.changes import documents, keyword_changes, task_changes
from taskweave.experiments.comparison import Comparison, Diff
from taskweave.experiments.diff import compare, parted
from taskweave.experiments.rows import RunRows, Span
from taskweave.experiments.telling import LEAST_WIDTH, WIDTH, told
from taskweave.org.calendar import WorkCalendar
from taskweave.pool.tables import Row
from taskweave.runs.config import Parent
from tests import pool_rows as some
from tests.run_rows import FIRM, run_rows
from tests.simulated import simulated

EVENT = {
    "title": "Oak import ban",
    "category": "policy",
    "description": "Oak from abroad may not be used; proof of origin is due.",
    "severity": "high",
    "affects": ["Repair"],
    "at": "2026-01-14",
    "duration": "4 weeks",
}
AGENTS = [some.agent("cto", "CTO", tier=1), some.agent("ada", "Engineer")]
W2, W3 = "Y1/Q1/M01/W02@cto", "Y1/Q1/M01/W03@cto"


class Runs(NamedTuple):
    base: tw.Run
    event: tw.Run
    controls: list[tw.Run]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Four weeks of a workshop, and forks of it in week 2: with an event, and three redrawn ones."""
    place = tmp_path_factory.mktemp("diff")
    file = place / "event.yaml"
    file.write_text(json.dumps(EVENT), encoding="utf-8")
    base = simulated(place / "base")
    controls = [base.fork(at="week:2", redraw=draw, out=place / f"control-{draw}") for draw in (1, 2, 3)]
    return Runs(base, base.fork(at="week:2", incidents=file, out=place / "event"), controls)


def only(diff: Diff) -> Comparison:
    (one,) = diff.comparisons
    return one


def task(unit: str, number: int, title: str, **more: object) -> Row:
    return some.task(f"{unit}/t{number}", title=title, **more)  # type: ignore[arg-type]  # values of any column


def a_run(where: Path, name: str, *rows: Row, digests: str = "abcd", **config: object) -> RunRows:
    return run_rows(where / name, [*AGENTS, *rows], digests=dict(enumerate(digests, 1)), **config)  # type: ignore[arg-type]  # a run's settings


def plans(run: RunRows, first: int, last: int) -> object:
    return documents(run, Span(WorkCalendar(run.organization.calendar), first, last))


# ---------------------------------------------------------------- where they part
def test_runs_are_compared_from_the_first_week_in_which_their_digests_differ(tmp_path: Path) -> None:
    base, other = a_run(tmp_path, "base"), a_run(tmp_path, "other", digests="abxyz")
    one = only(compare(base, [other]))
    assert (one.week, one.last, one.ends) == (3, 4, (4, 5))
    assert parted(base, base) is None
    assert "What happened after week 4 is left out; other goes on to week 5." in told(compare(base, [other]))


def test_a_run_that_is_the_same_as_far_as_both_go_is_identical(tmp_path: Path) -> None:
    base, other = a_run(tmp_path, "base"), a_run(tmp_path, "other", digests="ab")
    diff = compare(base, [other])
    assert only(diff).week is None
    assert only(diff).families == ()
    assert "identical: the same digest up to week 2; base goes on to week 4" in told(diff)


def test_a_comparison_may_end_before_the_runs_do(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base", task(W2, 1, "Sell"))
    other = a_run(tmp_path, "other", task(W2, 1, "Sell"), task(W3, 1, "Buy"), digests="axyz")
    diff = compare(base, [other], until="week:2")
    assert (only(diff).week, only(diff).last) == (2, 2)
    assert only(diff).tasks.added == ()
    assert "What happened after week 2 is left out; both go on to week 4." in told(diff)
    assert "identical: the same digest up to week 1; what happened after that is left out" in told(compare(base, [other], until="week:1"))
    with pytest.raises(BadInput, match="does not lie in the year"):
        compare(base, [other], until="week:99")


def test_an_event_parts_runs_in_its_week(runs: Runs) -> None:
    one = only(tw.diff(runs.base, runs.event))
    assert (one.week, one.last) == (2, 4)
    assert one.told == ("a fork of base at week 2", "incident only in event: Oak import ban (policy, high, from 2026-01-14)")


# ---------------------------------------------------------------- what changed
def test_tasks_are_matched_by_id_and_title(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base", task(W2, 1, "Sell"), task(W2, 2, "Write"), task(W3, 1, "Plan", activity="plan"), task(W3, 9, "Gone"))
    other = a_run(
        tmp_path,
        "other",
        *(task(W2, 1, "Sell"), task(W2, 2, "Edit"), task(W3, 1, "Plan", activity="audit")),
        some.task(f"{W3}/u1", title="Answer", priority="urgent", activity="audit"),
        digests="axyz",
    )
    change = task_changes(base, other, Span(WorkCalendar(base.organization.calendar), 2, 4))
    assert [(one.title, one.retitled) for one in change.added] == [("Answer", False), ("Edit", True)]
    assert [(one.title, one.retitled) for one in change.dropped] == [("Gone", False), ("Write", True)]
    assert (change.added_of, change.dropped_of) == (4, 4)
    assert change.by_activity() == [("Product, analyse", 1, 2), ("Product, audit", 1, 0)]


def test_tasks_of_weeks_that_are_the_same_are_no_part_of_it(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base", task(W2, 1, "Sell"))
    other = a_run(tmp_path, "other", task(W2, 1, "Buy"), digests="abxy")
    assert only(compare(base, [other])).tasks.added == ()


def test_keywords_come_and_go_by_level_and_owner(tmp_path: Path) -> None:
    def plan(run: str, unit: str, text: str, since: str) -> Row:
        return some.state(unit, since=since, plan=text)

    month = "Y1/Q1/M01@cto"
    base = a_run(
        tmp_path,
        "base",
        *(plan("base", W2, "Sell user acquisition.", "2026-01-12T09:00"), plan("base", W3, "User acquisition again.", "2026-01-19T09:00")),
        plan("base", month, "Budget freeze.", "2026-01-12T09:00"),
        digests="abcd",
    )
    other = a_run(
        tmp_path,
        "other",
        *(plan("other", W2, "Data residency proof.", "2026-01-12T09:00"), plan("other", W3, "Data residency!", "2026-01-19T09:00")),
        plan("other", month, "Budget freeze.", "2026-01-12T09:00"),
        digests="axyz",
    )
    (week,) = only(compare(base, [other])).keywords
    assert (week.level, week.owner, week.before, week.after) == ("week", "cto", 2, 2)
    assert [(one.term, one.before, one.hits) for one in week.comes] == [("data residency", 0, 2), ("data residency proof", 0, 1)]
    assert [(one.term, one.before, one.hits) for one in week.goes] == [("user acquisition", 2, 0), ("sell user acquisition", 1, 0)]
    assert {one.verdict for one in week.comes} == {None}


def test_an_event_is_a_keyword_of_those_whom_it_concerns(runs: Runs) -> None:
    found = only(tw.diff(runs.base, runs.event)).keywords
    assert {group.level for group in found if "oak import ban" in [one.term for one in group.comes]} == {"week", "month"}


def test_what_is_in_all_plans_since_the_event_and_in_no_redrawn_one_stands_out(tmp_path: Path) -> None:
    def planned(name: str, *texts: str) -> RunRows:
        units = ((f"Y1/Q1/M01/W0{week}@cto", day) for week, day in ((2, 12), (3, 19), (4, 26)))
        rows = [some.state(unit, since=f"2026-01-{day}T09:00", plan=text) for (unit, day), text in zip(units, texts, strict=True)]
        return a_run(tmp_path, name, *rows, digests=f"a{3 * name[-1]}")

    base = planned("base", "Saw ash.", "Turn elm.", "Glue fir.")
    event = planned("event", "Oak ban: saw yew.", "Oak ban: turn ash.", "Oak ban: glue box.")
    words = ("yew elm box", "ash lime fir", "pine elm larch", "ash elm teak", "plum yew fir")
    controls = [planned(f"n{n}", *(f"{verb} {word}." for verb, word in zip(("Saw", "Turn", "Glue"), told.split(), strict=True)))
                for n, told in enumerate(words)]  # fmt: skip
    (group,) = only(compare(base, [event], controls)).keywords
    assert [(one.term, one.hits) for one in group.comes if one.verdict == "stands out"] == [("oak ban", 3)]
    assert group.outstanding == 1


def test_a_word_that_any_redrawn_run_might_have_does_not_stand_out(tmp_path: Path) -> None:
    words = ("ash", "elm", "fir", "oak", "yew", "box")

    def planned(name: str, text: str) -> RunRows:
        return a_run(tmp_path, name, some.state(W2, since="2026-01-12T09:00", plan=text), digests="axyz")

    base, event, *controls = (planned(f"run-{n}", f"Saw {word}.") for n, word in enumerate(words))
    documented = [documents(run, Span(WorkCalendar(base.organization.calendar), 2, 4)) for run in (base, event, *controls)]
    (group,) = keyword_changes(documented[0], documented[1], documented[2:])
    assert {one.verdict for one in (*group.comes, *group.goes)} == {"not distinguishable"}
    (alone,) = keyword_changes(documented[0], documented[1], documented[2:3])
    assert {one.verdict for one in alone.comes} == {None}


# ---------------------------------------------------------------- against chance
def planning(where: Path, name: str, tasks: int, hours: int, **config: object) -> RunRows:
    told = [task(W2, number, f"{name} {number}", planned_hours=hours / tasks) for number in range(tasks)]
    digests = f"a{name[-1]}{name[-1]}{name[-1]}"
    return a_run(where, name, *told, digests=digests, **config)


def difference(one: Comparison, family: str, name: str) -> tuple[float | None, str | None]:
    found = next(d for kind in one.families if kind.name == family for d in kind.differences if d.name == name)
    return found.difference, None if found.judged is None else found.judged.verdict


def test_each_difference_is_set_against_the_spread_of_base_and_controls(tmp_path: Path) -> None:
    base, inside, outside = planning(tmp_path, "run-0", 10, 100), planning(tmp_path, "run-1", 12, 100), planning(tmp_path, "run-2", 40, 100)
    controls = [planning(tmp_path, f"run-{name}", tasks, 100) for name, tasks in (("3", 9), ("4", 11), ("5", 12))]
    near, far = compare(base, [inside, outside], controls).comparisons
    assert difference(near, "tasks", "Product") == (2, "not distinguishable")
    assert difference(far, "tasks", "Product") == (30, "stands out")
    assert difference(far, "hours", "Product") == (0, "not distinguishable")
    assert near.controls == ("run-3", "run-4", "run-5")
    assert near.controls_added == (9, 11, 12)


def test_it_is_said_how_many_would_stand_out_by_chance(tmp_path: Path) -> None:
    base, other = planning(tmp_path, "run-0", 10, 100), planning(tmp_path, "run-1", 40, 100)
    controls = [planning(tmp_path, f"run-{name}", tasks, 100) for name, tasks in (("3", 9), ("4", 11), ("5", 12))]
    one = only(compare(base, [other], controls))
    assert one.measured == sum(len(family.differences) for family in one.families)
    assert 0 < one.judged < one.measured  # the hours are the same in all: there is no spread that chance could leave
    assert one.by_chance == pytest.approx(0.05 * one.judged)
    assert one.outstanding == sum(family.outstanding for family in one.families) > 0
    assert one.noise is not None
    assert len(one.noise.figures) == 3


@pytest.mark.parametrize("count", [0, 1])
def test_with_fewer_than_two_controls_nothing_is_said_of_noise(tmp_path: Path, count: int) -> None:
    base, other = planning(tmp_path, "run-0", 10, 100), planning(tmp_path, "run-1", 40, 100)
    diff = compare(base, [other], [planning(tmp_path, "run-3", 9, 100)][:count])
    assert difference(only(diff), "tasks", "Product") == (30, None)
    assert (only(diff).outstanding, only(diff).by_chance) == (None, None)
    text = " ".join(told(diff).split())
    assert ("nothing can be said of noise" if count else "is no noise floor: it is the same run by construction") in text
    assert "--at week:2 --redraw 5" in text
    assert "not distinguishable" not in text


def test_urgent_work_is_the_events_and_not_chances(runs: Runs) -> None:
    one = only(tw.diff(runs.base, runs.controls[0], controls=runs.controls[1:]))
    event = only(tw.diff(runs.base, runs.event, controls=runs.controls))
    assert difference(event, "tasks", "urgent, in all departments") == (1, "stands out")
    assert difference(one, "tasks", "urgent, in all departments") == (0, "not distinguishable")


def test_controls_that_vary_other_weeks_are_left_out_and_named(tmp_path: Path) -> None:
    base, other = a_run(tmp_path, "base"), a_run(tmp_path, "other", digests="abxy")
    controls = [a_run(tmp_path, "early", digests="auvw"), a_run(tmp_path, "short", digests="abz"), a_run(tmp_path, "fit", digests="abpq")]
    one = only(compare(base, [other], controls))
    assert one.controls == ("fit",)
    assert [Path(out.run).name for out in one.left_out] == ["early", "short"]
    assert "varies from week 2 on, and the compared run from week 3" in one.left_out[0].why
    assert "has closed 3 weeks only" in one.left_out[1].why


def test_what_a_control_drew_again_in_the_same_words_is_no_reason_to_leave_it_out(tmp_path: Path) -> None:
    base, other = a_run(tmp_path, "base"), a_run(tmp_path, "other", digests="abxy")
    parent = Parent(run="base", path="base", week=3, redraw=True)
    same = [a_run(tmp_path, f"same-{n}", digests=digests, parent=parent) for n, digests in enumerate(("abcz", "abcd"))]
    assert only(compare(base, [other], same)).controls == ("same-0", "same-1")
    earlier = a_run(tmp_path, "earlier", digests="azzz", parent=parent)
    assert only(compare(base, [other], [earlier])).controls == ()


# ---------------------------------------------------------------- what cannot be compared
def refused(base: RunRows, others: Sequence[RunRows], controls: Sequence[RunRows] = ()) -> str:
    with pytest.raises(BadInput) as trouble:
        compare(base, others, controls)
    return str(trouble.value)


def test_other_organizations_calendars_and_seeds_are_refused(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base")
    named = run_rows(tmp_path / "named", organization=FIRM.replace("Bright Ledger", "Dim Ledger"))
    hours = run_rows(tmp_path / "hours", organization=FIRM.replace("hours: 8", "hours: 7"))
    bigger = run_rows(tmp_path / "bigger", organization=FIRM.replace("count: 2", "count: 3"))
    assert "another organization, 'Dim Ledger' and not 'Bright Ledger'" in refused(base, [named])
    assert "another calendar" in refused(base, [hours])
    assert "the two differ in description, roles" in refused(base, [bigger])
    assert "its seed is 2 and not 1" in refused(base, [a_run(tmp_path, "seed", seed=2)])
    assert "another calendar" in refused(base, [a_run(tmp_path, "other", digests="axyz")], [hours])


def test_a_placebo_is_no_control(tmp_path: Path) -> None:
    base, other = a_run(tmp_path, "base"), a_run(tmp_path, "other", digests="axyz")
    placebo = a_run(tmp_path, "placebo", parent=Parent(run="base", path="base", week=2))
    assert "identical by construction and says nothing of chance" in refused(base, [other], [placebo])


def test_there_must_be_two_different_runs(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base")
    assert "is given twice" in refused(base, [base])
    assert "no run to compare it with" in refused(base, [])
    assert "What is given beside it are controls" in refused(base, [], [a_run(tmp_path, "control", digests="axyz")])


# ---------------------------------------------------------------- what is told
def test_in_scripted_runs_what_is_only_text_stands_apart(runs: Runs) -> None:
    text = str(tw.diff(runs.base, runs.event))
    assert only(tw.diff(runs.base, runs.event)).scripted
    capacity, words = text.split("Only text")
    assert "Follows from simulated capacity" in capacity
    for title in ("Hours planned, by department", "Load, booked of available hours"):
        assert title in capacity
        assert title not in words
    for title in ("Tasks added and dropped", "Keywords that come and go"):
        assert title in words
        assert title not in capacity


def test_in_a_models_run_all_is_one_group(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base", task(W2, 1, "Sell", origin="model"))
    other = a_run(tmp_path, "other", task(W2, 1, "Buy", origin="model"), digests="axyz")
    text = told(compare(base, [other]))
    assert "Tasks added and dropped" in text
    assert "Only text" not in text
    assert "simulated capacity" not in text


def test_the_most_telling_is_shown_first_and_the_rest_on_demand(tmp_path: Path) -> None:
    kinds = [f"kind{n}" for n in range(9)]
    base = a_run(tmp_path, "base", *(task(W2, n, kind, activity=kind) for n, kind in enumerate(kinds)))
    added = [task(W2, 10 * n + k, f"{kind} {k}", activity=kind) for n, kind in enumerate(kinds, 1) for k in range(n)]
    other = a_run(tmp_path, "other", *added, digests="axyz")
    diff = compare(base, [other])
    short, long = told(diff), told(diff, all=True)
    assert [line.split(",")[1].split()[0] for line in short.splitlines() if line.startswith("    Product, kind")][:3] == [
        "kind8",
        "kind7",
        "kind6",
    ]
    assert "… and 2 more" in short  # of the eight that differ, the first has one task in both
    assert "--all shows the rest" in short
    assert "more" not in long
    assert len(long.splitlines()) > len(short.splitlines())


def test_no_line_is_longer_than_a_terminal_is_wide(runs: Runs, tmp_path: Path) -> None:
    long = "A run of a name that nobody would type twice, but somebody has" * 2
    base = a_run(tmp_path, "base", task(W2, 1, "Sell"), ("readings", {"week": 4, "kpi": "k" * 70, "value": 1e9}))
    other = replace(a_run(tmp_path, "other", ("readings", {"week": 4, "kpi": "k" * 70, "value": 2e9}), digests="axyz"), name=long)
    for diff in (tw.diff(runs.base, runs.event, controls=runs.controls), compare(base, [other])):
        assert [line for line in told(diff, all=True).splitlines() if len(line) > WIDTH] == []
        for width in (LEAST_WIDTH, 61, 75, 87, 88, 99):
            assert [line for line in told(diff, all=True, width=width).splitlines() if len(line) > width] == []
        assert told(diff, width=1) == told(diff, width=LEAST_WIDTH) != told(diff) == told(diff, width=500)


def test_it_says_what_the_runs_were_given_otherwise(tmp_path: Path) -> None:
    base = a_run(tmp_path, "base")
    parent = Parent(run="base", path="base", week=2, redraw=True, added=("strike",))
    other = replace(a_run(tmp_path, "other", digests="axyz", parent=parent, assign="model"), inputs={"prompts/align.md": "1"})
    assert only(compare(replace(base, inputs={"prompts/align.md": "2"}), [other])).told == (
        "a fork of base at week 2, its answers drawn anew from there on",
        "assign: match in base, model in other",
        "prompts: prompts/align.md",
    )


def test_it_is_one_json_object_with_all_that_is_shown(runs: Runs) -> None:
    told = json.loads(json.dumps(tw.diff(runs.base, runs.event, controls=runs.controls).to_dict(), allow_nan=False))
    (one,) = told["comparisons"]
    assert one["week"] == 2
    assert one["controls"] == ["control-1", "control-2", "control-3"]
    figure = one["families"][0]["differences"][0]
    assert figure.keys() == {"name", "unit", "base", "other", "difference", "judged"}
    assert figure["judged"].keys() == {"low", "high", "spread", "verdict"}


def test_redrawn_forks_among_the_runs_are_controls(runs: Runs) -> None:
    one = only(tw.diff(runs.base, runs.controls[0], runs.event, runs.controls[1]))
    assert one.run == "event"
    assert one.controls == ("control-1", "control-2")


def test_of_redrawn_forks_alone_the_first_is_set_against_the_others(runs: Runs) -> None:
    noise = only(tw.diff(runs.base, *runs.controls))
    assert (noise.run, noise.controls) == ("control-1", ("control-2", "control-3"))
    assert noise.told[0].endswith("nothing else was changed, so that what differs is what chance makes")


def test_a_fork_in_which_nothing_is_changed_is_identical_and_no_control(runs: Runs, tmp_path: Path) -> None:
    placebo = runs.base.fork(at="week:2", out=tmp_path / "placebo")
    assert "identical: the same digest up to week 4" in str(tw.diff(runs.base, placebo))
    with pytest.raises(BadInput, match="identical by construction"):
        tw.diff(runs.base, runs.event, controls=[placebo])
