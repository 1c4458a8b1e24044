"""A trace says who made a result, from what, for which plan and goal, with which prompt; and it can be walked both ways."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from taskweave.errors import BadInput
from taskweave.pool.pool import Pool
from taskweave.pool.tables import Row
from taskweave.report.trace import as_json, render
from tests import pool_rows as rows

Y, M, W1, W2 = "Y1@ceo", "Y1/Q1/M01@cto", "Y1/Q1/M01/W01@cto", "Y1/Q1/M01/W02@cto"
T1, T2, T3 = f"{W1}/t1", f"{W1}/t2", f"{W2}/t1"


def a_small_run() -> list[Row]:
    """Week 1: t1 = s1 + s2 (s2 uses s1).  Week 2: t3's only subtask uses t1; t3 is used by nothing."""
    at, later = "2026-01-05T09:00", "2026-01-12T09:00"
    return [
        rows.agent("ceo", "CEO", name="Zoe Lang", tier=1),
        rows.agent("cto", "CTO", name="Tom Berg"),
        rows.agent("ada", "Backend Engineer", name="Ada Roux", tier=3),
        rows.state(Y, since=at, plan="Grow."),
        rows.state(M, Y, since=at),
        rows.state(W1, M, since=at, plan="first plan of the week"),
        rows.state(W1, M, revision=2, since="2026-01-07T09:00", plan="re-planned after the incident"),
        rows.state(W1, M, revision=3, since="2026-01-09T17:00", plan="aligned", diagnosis="One task of two was done."),
        rows.state(W2, M, since=later),
        rows.task(T1, title="Churn report", goals=("retention",)),
        rows.task(T2, title="Urgent fix", status="spilled"),
        rows.task(T3, title="Tax audit"),
        rows.subtask(f"{T1}/s1", created=at, started=at, finished="2026-01-06T10:00"),
        rows.subtask(f"{T1}/s2", created=at),
        rows.subtask(f"{T2}/s1", created="2026-01-07T10:00", status="spilled"),
        rows.subtask(f"{T3}/s1", created=later),
        rows.result(f"{T1}/s1", title="Cohort table"),
        rows.result(f"{T1}/s2", title="Churn findings", content="Built on the Cohort table."),
        rows.result(T1, merged=True, by="cto", title="Churn report"),
        rows.result(f"{T3}/s1", title="Tax note", quality="repaired"),
        rows.result(T3, merged=True, by="cto", title="Tax audit"),
        rows.use(f"{T1}/s2", f"{T1}/s1"),
        rows.use(f"{T1}/s2", "sql:churn", "explicit", "tool"),
        rows.use(T1, f"{T1}/s1", "merged"),
        rows.use(T1, f"{T1}/s2", "merged"),
        rows.use(f"{T3}/s1", T1, "retrieved"),
        rows.use(T3, f"{T3}/s1", "merged"),
        rows.use(M, "pr1", "explicit", "incident"),
        rows.ground(f"{T1}/s1", W1, calls=(f"{T1}/s1:execute",), goals=("retention",)),
        rows.ground(f"{T1}/s2", W1, calls=(f"{T1}/s2:execute",), goals=("retention",)),
        rows.ground(T1, W1, prompt="merge 3 ffff", calls=(f"{T1}:merge",), goals=("retention",)),
        rows.ground(f"{T3}/s1", W2, calls=(f"{T3}/s1:execute",)),
        rows.call(f"{T1}/s1:execute"),
        rows.call(f"{T1}/s2:execute", 0),
        rows.call(f"{T1}/s2:execute", 1, fallback=True, reason="no JSON twice"),
        ("tool_calls", {"id": "c1", "result": f"{T1}/s2", "tool": "sql", "arguments": {"q": "select 1"}, "outcome": [1]}),
        (
            "incidents",
            {"id": "pr1", "title": "Outage", "category": "technology", "description": "Down.", "severity": "high", "affects": "all"},
        ),
    ]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with Pool.create(tmp_path / "run.db") as made:
        made.write_week(1, "", a_small_run())
        yield made


def shown(pool: Pool, identifier: str, width: int = 200, depth: int = 4) -> str:
    console = Console(width=width, record=True, file=open("/dev/null", "w"), force_terminal=False)  # noqa: SIM115
    with console.file:
        console.print(render(pool.trace(identifier, depth=depth)))
        return console.export_text()


def test_a_result_says_who_made_it_for_whom_with_which_prompt_and_calls(pool: Pool) -> None:
    trace = pool.trace(f"{T1}/s2")
    assert (trace.kind, trace.goals, trace.prompt, trace.backbone) == ("result", ("retention",), "execute 1 abc123", "scripted")
    assert trace.agent is not None
    assert trace.delegator is not None
    assert trace.subtask is not None
    assert trace.task is not None
    assert (trace.agent["name"], trace.delegator["name"], trace.task["title"]) == ("Ada Roux", "Tom Berg", "Churn report")
    assert [(call["site"], call["ordinal"], call["fallback"]) for call in trace.calls] == [(f"{T1}/s2:execute", n, n == 1) for n in (0, 1)]
    assert [call["tool"] for call in trace.tool_calls] == ["sql"]


def test_it_rests_on_what_it_used_recursively(pool: Pool) -> None:
    (partial,) = pool.trace(T3).upward
    (merged,) = partial.links
    assert (partial.id, partial.how, partial.quality) == (f"{T3}/s1", "merged", "repaired")
    assert (merged.id, merged.how, merged.title, merged.by) == (T1, "retrieved", "Churn report", "Tom Berg, CTO")
    assert [(link.id, link.how) for link in merged.links] == [(f"{T1}/s1", "merged"), (f"{T1}/s2", "merged")]
    (tool, again) = sorted(merged.links[1].links, key=lambda link: link.kind, reverse=True)
    assert (tool.kind, tool.id) == ("tool", "sql:churn")
    assert (again.id, again.repeated, again.links) == (f"{T1}/s1", True, ())


def test_what_rests_on_it_is_walked_down_to_the_end(pool: Pool) -> None:
    down = pool.trace(f"{T1}/s1").downward
    assert [(link.id, link.how) for link in down] == [(T1, "merged"), (f"{T1}/s2", "explicit")]
    (partial,) = down[0].links
    assert (partial.id, [link.id for link in partial.links]) == (f"{T3}/s1", [T3])
    assert pool.trace(T3).downward == ()


def test_the_plans_go_up_to_the_root_each_in_the_revision_in_force_when_the_work_was_handed_out(pool: Pool) -> None:
    plans = pool.trace(f"{T1}/s1").plans
    assert [(plan.id, plan.revision, plan.revisions) for plan in plans] == [(W1, 1, 3), (M, 1, 1), (Y, 1, 1)]
    assert plans[0].plan == "first plan of the week"
    assert pool.trace(T1).plans[0].revision == 1
    assert pool.trace(T2).plans[0].plan == "re-planned after the incident"


def test_the_diagnoses_that_rested_on_a_result_are_named(pool: Pool) -> None:
    assert [(plan.id, plan.diagnosis) for plan in pool.trace(T1).diagnosed] == [(W1, "One task of two was done.")]
    assert pool.trace(T3).diagnosed == ()


def test_incidents_are_those_that_it_or_a_plan_above_heard(pool: Pool) -> None:
    assert [row["id"] for row in pool.trace(f"{T1}/s1").incidents] == ["pr1"]
    assert [link.id for link in pool.trace("pr1").downward] == [M]
    assert pool.trace(Y).incidents == ()


@pytest.mark.parametrize(
    ("affects", "at", "until", "who_heard"),
    [
        ("all", "2026-01-05T09:00", "2026-01-30", {T1, T2, T3, Y}),
        (["Backend Engineer"], "2026-01-05T09:00", "2026-01-30", {T1, T2, T3, Y}),  # its heads hear it too
        (["CEO"], "2026-01-05T09:00", "2026-01-30", {T1, T2, T3, Y}),  # the plans above were made knowing it
        (["Sales"], "2026-01-05T09:00", "2026-01-30", set()),
        ("all", "2026-01-07T09:00", "2026-01-30", {T2, T3}),  # t1 was handed out before
        ("all", "2026-01-05T09:00", "2026-01-09", {T1, T2, Y}),  # over when t3 was
        ("all", "2026-01-05T09:00", "2026-01-12", {T1, T2, Y}),  # `until` is the first day on which it is over
        (["backend ENGINEER"], "2026-01-05T09:00", "2026-01-30", {T1, T2, T3, Y}),  # named in any case, as in its file
    ],
)
def test_work_has_heard_the_incidents_in_force_for_its_plans_when_it_was_handed_out(
    pool: Pool, affects: object, at: str, until: str, who_heard: set[str]
) -> None:
    row = {"id": "x1", "title": "Law", "category": "policy", "description": "", "severity": "low", "until": until, "affects": affects}
    edges = [("edges", {"source": a, "target": b, "kind": "tier"}) for a, b in (("ceo", "cto"), ("cto", "ada"))]
    pool.write_week(2, "", [("incidents", row), rows.event(1, "incident", "x1", at), *edges])
    assert {identifier for identifier in (T1, T2, T3, Y) if "x1" in [row["id"] for row in pool.trace(identifier).incidents]} == who_heard


def an_incident(since: str, until: str, affects: object = "all") -> list[Row]:
    row = {"id": "x1", "title": "Law", "category": "policy", "description": "", "severity": "low", "until": until, "affects": affects}
    edges = [("edges", {"source": a, "target": b, "kind": "tier"}) for a, b in (("ceo", "cto"), ("cto", "ada"))]
    return [("incidents", {**row, "since": since}), *edges, rows.event(8, "close", W1, "2026-01-09T17:00")]


@pytest.mark.parametrize(
    ("since", "until", "affects", "who_heard"),
    [
        ("2026-01-05", "2026-02-02", "all", {Y: "2026-01-05T09:00", M: "2026-01-05T09:00", W1: "2026-01-05T09:00", W2: "2026-01-12T09:00"}),
        (
            "2026-01-05",
            "2026-02-02",
            ["ada"],
            {Y: "2026-01-05T09:00", M: "2026-01-05T09:00", W1: "2026-01-05T09:00", W2: "2026-01-12T09:00"},
        ),
        ("2026-01-05", "2026-02-02", ["ceo"], {Y: "2026-01-05T09:00"}),  # who is below hears nothing
        ("2026-01-05", "2026-02-02", ["Sales"], {}),
        ("2026-01-07", "2026-01-12", "all", {W1: "2026-01-07T09:00"}),  # re-planned at once; the year and the month were planned before
        ("2026-01-08", "2026-01-12", "all", {W1: "2026-01-12T09:00"}),  # heard at the close, which is dated from the next morning
        ("2026-01-08", "2026-01-09", "all", {}),  # over on the day of the close
        ("2026-01-12", "2026-02-02", "all", {W2: "2026-01-12T09:00"}),  # the close before it knew nothing of it
    ],
)
def test_an_incident_leads_down_to_the_states_made_while_it_was_in_force_for_their_owners(
    pool: Pool, since: str, until: str, affects: object, who_heard: dict[str, str]
) -> None:
    replanned = rows.event(9, "replan", W1, "2026-01-07T09:00")
    closing = rows.state(W1, M, revision=3, since="2026-01-12T09:00", diagnosis="Done.")
    pool.write_week(2, "", [*an_incident(since, until, affects), replanned, closing])
    found = pool.trace("x1").downward
    assert {link.id: link.when for link in found if link.how == "heard"} == who_heard
    assert {state for state in (Y, M, W1, W2) if "x1" in [row["id"] for row in pool.trace(state).incidents]} >= set(who_heard)


def test_a_plan_made_on_the_day_of_a_close_is_not_made_at_that_close(pool: Pool) -> None:
    """The second week has one working day, Monday: it closes on the date from which the first one's closing is dated."""
    closing = rows.state(W1, M, revision=3, since="2026-01-12T09:00", diagnosis="Done.")
    closed = rows.event(9, "close", W2, "2026-01-12T17:00")
    pool.write_week(2, "", [*an_incident("2026-01-12", "2026-01-19"), closing, closed])
    found = pool.trace("x1").downward
    assert {link.id: link.when for link in found if link.how == "heard"} == {W2: "2026-01-12T09:00"}


def test_of_a_plan_that_heard_an_incident_only_what_it_planned_from_then_on_rests_on_it(pool: Pool) -> None:
    pool.write_week(
        2,
        "",
        [
            *an_incident("2026-01-07", "2026-01-12"),
            rows.event(9, "replan", W1, "2026-01-07T09:00"),
            rows.use(T2, "x1", "explicit", "incident"),
        ],
    )
    heard, used = pool.trace("x1").downward
    assert (heard.id, heard.how, [link.id for link in heard.links]) == (W1, "heard", [T2])  # t1 was handed out on Monday
    assert (used.id, used.how) == (T2, "explicit")


def test_a_task_without_a_result_shows_its_subtasks_and_where_they_stand(pool: Pool) -> None:
    trace = pool.trace(T2)
    assert (trace.kind, trace.result) == ("task", None)
    assert [(link.kind, link.how) for link in trace.upward] == [("subtask", "spilled")]


def test_a_state_rests_on_what_its_diagnosis_saw_and_bears_its_tasks_and_units(pool: Pool) -> None:
    assert [(link.id, link.how) for link in pool.trace(W1).upward] == [(T1, "diagnosed"), (T2, "diagnosed")]
    assert [(link.id, link.how) for link in pool.trace(M).downward] == [(W1, "planned"), (W2, "planned")]
    assert [plan.id for plan in pool.trace(W2).plans] == [W2, M, Y]


def test_what_the_bounds_cut_is_counted(pool: Pool) -> None:
    shallow = pool.trace(T3, depth=1)
    assert (shallow.upward[0].links, shallow.upward[0].hidden, shallow.hidden_upward) == ((), 1, 0)
    assert "1 links are not shown" in shown(pool, T3, depth=1)
    assert "not shown" not in shown(pool, T3)
    narrow = pool.trace(T1, breadth=1)
    assert ([link.id for link in narrow.upward], narrow.hidden_upward) == ([f"{T1}/s1"], 1)


def test_a_circle_in_the_uses_or_the_plans_ends_the_walk(pool: Pool) -> None:
    pool.write_week(2, "", [rows.use(f"{T1}/s1", T3, "retrieved"), rows.state(Y, M)])
    assert pool.trace(T1, depth=50).upward
    assert [plan.id for plan in pool.trace(T1).plans] == [W1, M, Y]


@pytest.mark.parametrize(("end", "full"), [("t1/s2", f"{T1}/s2"), ("W02@cto/t1", T3), ("ceo", Y), ("M01@cto", M), ("pr1", "pr1")])
def test_an_unambiguous_end_of_an_id_will_do(pool: Pool, end: str, full: str) -> None:
    assert pool.trace(end).id == full


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("t1", f"is the end of 2 ids: {T1}, {T3}"),
        ("Y1/Q1/M01/W01@cot/t2", f"Nearest: {T2}"),
        ("s", "has the id 's'"),
        ("", "has the id ''"),
        ("\ud83d", "Nothing here has the id"),
    ],
)
def test_an_id_that_is_not_there_is_answered_with_those_it_could_mean(pool: Pool, wrong: str, says: str) -> None:
    with pytest.raises(BadInput) as refused:
        pool.trace(wrong)
    assert says in str(refused.value)


def test_a_pool_without_a_week_says_so(tmp_path: Path) -> None:
    with Pool.create(tmp_path / "empty.db") as empty, pytest.raises(BadInput, match="No week has been written"):
        empty.trace("t1")


def test_rows_can_be_traced_while_they_are_read(pool: Pool) -> None:
    assert [pool.trace(row["id"]).id for row in pool.rows("results")] == pool.ids("results")


# ---------------------------------------------------------------- how it is shown
def test_a_trace_is_shown_with_all_its_parts_and_marked_as_a_stand_in(pool: Pool) -> None:
    text = shown(pool, f"{T1}/s2")
    parts = (
        "Churn findings",
        "scripted stand-in",
        "Ada Roux, Backend Engineer",
        "Tom Berg, CTO",
        "execute 1 abc123",
        "retention",
        "Grow.",
        "Cohort table",
    )
    parts += (
        "Built on the Cohort table.",
        "Outage",
        "revision 1 of 3",
        "One task of two was done.",
        "no JSON twice",
        "merged Churn report",
    )
    for part in parts:
        assert part in text, part
    assert "scripted stand-in" in shown(pool, T2)
    assert "scripted stand-in" not in shown(pool, "pr1"), "an incident is a person's words"


@pytest.mark.parametrize("identifier", [T1, T2, f"{T1}/s1", M, "pr1"])
def test_every_kind_of_trace_is_shown_and_is_json(pool: Pool, identifier: str) -> None:
    assert identifier in shown(pool, identifier).replace("\n", "")
    values = json.loads(json.dumps(as_json(pool.trace(identifier))))
    assert (values["id"], values["stand_in"]) == (identifier, identifier != "pr1")


def test_what_was_cut_is_said(pool: Pool) -> None:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(render(pool.trace(T1, breadth=1)))
    assert "… and 1 more" in capture.get()


def test_brackets_in_a_text_are_text(pool: Pool) -> None:
    pool.write_week(2, "", [rows.result(T1, merged=True, title="[bold]x[/] [red", content="[/oops] :smile:")])
    assert "[bold]x[/] [red" in shown(pool, T1)
    assert "[/oops] :smile:" in shown(pool, T1)
