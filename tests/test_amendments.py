"""From some week on a run may be of another organization: who joins, leaves and changes; earlier weeks stay, and are not paid again."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import taskweave as tw
from taskweave import driving
from taskweave.api import Run
from taskweave.errors import BadInput, OrganizationInvalid, RunRefused
from taskweave.org.amendment import differences
from taskweave.org.calendar import WorkCalendar
from taskweave.org.delegation import Delegation
from taskweave.org.population import Population
from taskweave.org.schema import parse
from taskweave.org.staffing import staffed
from tests.simulated import events, rows, simulated
from tests.test_fork import Failing, week_digests

SHOP = """
name: Shop
description: A shop that mends chairs.
calendar: {start: 2026-01-05}
goals: {orders: {text: Repair 400 chairs, owner: Boss, kpi: late, target: 1}}
roles:
  Boss: {}
  Repair Head: {reports_to: Boss, leads: Repair}
  Joiner: {reports_to: Repair Head, count: 3, hours: 3-5}
  Sales Head: {reports_to: Boss, leads: Sales}
  Seller: {reports_to: Sales Head, count: 2, hours: 3-5}
  Clerk: {reports_to: Sales Head, hours: 2-4}
people: {Ann Lee: Joiner}
cross_links: [Clerk -> Joiner]
environment: {late: {start: 4, drift: -0.1/week}, visits: 20}
work:
  orders: {kind: stream, role: Clerk, arrivals: 6/week, hours: 1-2, steps: [report]}
workload: {composite_hours: 12}
"""
UNTIL, WEEK = "week:5", 3
VISITS = {"kind": "stream", "role": "Seller", "arrivals": "4/week", "hours": "1-2", "steps": ["report"]}


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return simulated(tmp_path_factory.mktemp("parent") / "base", SHOP, until=UNTIL)


def changed(**keys: Any) -> str:
    """The shop with other values: of a mapping entry by entry, None takes one out."""
    told = yaml.safe_load(SHOP.replace("2026-01-05", "'2026-01-05'"))
    for key, value in keys.items():
        if isinstance(value, dict) and isinstance(told.get(key), dict):
            for name, one in value.items():
                both = {**told[key][name], **one} if isinstance(one, dict) and isinstance(told[key].get(name), dict) else one
                told[key][name] = both
                if one is None:
                    del told[key][name]
        else:
            told[key] = value
    return str(yaml.safe_dump(told, sort_keys=False))


def amended(run: Run, place: Path, *, at: str = f"week:{WEEK}", **keys: Any) -> Run:
    return run.fork(at=at, out=place, org=tw.Organization(changed(**keys)))


def check(parent: Run, fork: Run, week: int = WEEK) -> None:
    """What holds of whatever amendment."""
    assert week_digests(fork)[: week - 1] == week_digests(parent)[: week - 1]
    assert paid_early(fork, week) == []
    *_, now = fork.folder.tenures()
    edges = Delegation(now.organization, now.population).edges
    left = {event["subject"] for event in events(fork, "leave")}
    begins = min(event["seq"] for event in events(fork, "amend")) if events(fork, "amend") else 0
    # What ends in the week's first minute ends before the tick, and so does what follows from it.
    for event in events(fork, "assign"):
        if event["seq"] > begins:
            assert (event["actor"], event["object"]) in edges, event
            assert event["object"] not in left, event
    open_ones = [row for row in rows(fork, "subtasks") if row["status"] not in ("done", "dropped")]
    assert not [row for row in open_ones if row["assignee"] in left]
    assert fork.verify().ok


def paid_early(fork: Run, week: int) -> list[str]:
    """Sites of earlier weeks that were paid, but for work that was carried into the amendment's week or later."""
    since = WorkCalendar(fork.folder.organization().calendar)
    day = since.days[since.weeks[week - 1].first_day].isoformat()
    done = {row["id"] for row in rows(fork, "subtasks") if row["started"] is not None and row["started"] < day}
    done |= {row["id"] for row in rows(fork, "results") if row["subtask"] is None and row["finished"] < day}
    db = sqlite3.connect(fork.folder.journal_path)
    own = [site for (site,) in db.execute("SELECT site FROM outcomes WHERE kind = 'complete' AND NOT inherited")]
    db.close()
    early = [site for site in own if any(f"/W{number:02d}@" in site for number in range(1, week))]
    return [site for site in early if not site.endswith((":execute", ":merge")) or site.rpartition(":")[0] in done]


# ---------------------------------------------------------------- what holds in which weeks
def test_the_same_organization_again_pays_nothing_and_is_the_same_run(parent: Run, tmp_path: Path) -> None:
    fork = parent.fork(at="week:3", out=tmp_path / "placebo", org=tw.Organization(SHOP))
    assert (fork.digest(), fork.status().paid) == (parent.digest(), 0)
    assert fork.config.parent is not None
    assert not fork.config.parent.organization
    told = tmp_path / "reordered.yaml"
    told.write_text("# a comment\n" + SHOP.replace("name: Shop", "") + "name: Shop\n", encoding="utf-8")
    assert parent.fork(at="week:2", out=tmp_path / "again", org=told).digest() == parent.digest()


def test_who_joins_leaves_and_what_else_changes_is_told_and_holds_from_its_week_on(parent: Run, tmp_path: Path) -> None:
    fork = amended(
        parent,
        tmp_path / "fork",
        roles={"Joiner": {"count": 2}, "Seller": {"count": 3}, "Apprentice": {"reports_to": "Repair Head", "hours": "2-3"}},
        goals={"orders": {"text": "Repair 500 tables"}, "lessons": {"text": "Teach the apprentice", "owner": "Repair Head"}},
        environment={"visits": None, "praise": 3},
        cross_links=[],
    )
    check(parent, fork)
    assert [event["subject"] for event in events(fork, "leave")] == ["joiner-3"]
    assert [event["subject"] for event in events(fork, "join")] == ["seller-3", "apprentice"]
    told = {event["subject"]: event["object"] for event in events(fork, "amend")}
    assert told == {
        "goals.orders": "changed",
        "goals.lessons": "added",
        "roles.Joiner.count": "changed",
        "roles.Seller.count": "changed",
        "roles.Apprentice": "added",
        "cross_links.Clerk -> Joiner": "gone",
        "environment.visits": "gone",
        "environment.praise": "added",
    }
    read = {(row["week"], row["kpi"]) for row in rows(fork, "readings")}
    assert {(2, "visits"), (3, "praise")} <= read
    assert not {(2, "praise"), (3, "visits")} & read
    assert {row["goal"] for row in rows(fork, "goals", week=2)} == {"orders"}
    assert {row["goal"] for row in rows(fork, "goals", week=3)} == {"orders", "lessons"}
    assert {row["agent"] for row in rows(fork, "load", week=4)} >= {"apprentice", "seller-3"}
    assert "joiner-3" not in {row["agent"] for row in rows(fork, "load", week=4)}
    assert {row["assignee"] for row in rows(fork, "subtasks") if "/W04@" in row["id"]} >= {"apprentice", "seller-3"}
    assert "another organization" in fork.status().parent_changed
    asked = fork.folder.prompts()
    assert asked
    assert "org-week3.yaml from week 3 on" in str(tw.diff(parent, fork))
    personas = {row["id"]: row["persona"] for row in parent.agents()}
    assert {row["id"]: row["persona"] for row in fork.agents() if row["id"] in personas} == personas


def test_prompts_speak_of_the_new_organization_from_its_week_on(parent: Run, tmp_path: Path) -> None:
    fork = amended(parent, tmp_path / "fork", goals={"orders": {"text": "Repair 500 tables"}})
    from taskweave.report.calls import calls_at

    def asked(week: int) -> str:
        (one, *_) = calls_at(fork.folder, f"Y1/Q1/M01/W{week:02}@repair-head:formulate")
        return " ".join(text for _, text in one.messages)

    assert "400 chairs" in asked(2)
    assert "500 tables" not in asked(2)
    assert "500 tables" in asked(4)
    assert "400 chairs" not in asked(4).split("plan", 1)[0]


def test_a_head_who_leaves_is_followed_by_whoever_leads_its_people(parent: Run, tmp_path: Path) -> None:
    fork = amended(
        parent,
        tmp_path / "fork",
        roles={"Repair Head": None, "Joiner": {"reports_to": "Sales Head"}},
    )
    check(parent, fork)
    assert {event["subject"] for event in events(fork, "leave")} == {"repair-head"}
    assert not [row for row in rows(fork, "states") if "/W03@repair-head" in row["id"]]
    assert [row for row in rows(fork, "subtasks") if "/W03@sales-head" in row["id"] and str(row["assignee"]).startswith("joiner")]


def test_a_person_who_is_named_changes_roles_and_keeps_the_id(parent: Run, tmp_path: Path) -> None:
    fork = amended(
        parent,
        tmp_path / "fork",
        people={"Ann Lee": "Foreman"},
        roles={"Foreman": {"reports_to": "Repair Head", "executes": "50%"}, "Joiner": {"count": 2, "reports_to": "Foreman"}},
        cadence={"year": 1, "quarter": 1, "month": 2, "week": 2},
    )
    check(parent, fork)
    assert {(event["subject"], event["object"]) for event in events(fork, "role")} == {("joiner-1", "Foreman")}
    assert not events(fork, "leave")
    assert {event["subject"] for event in events(fork, "head")} == {"joiner-2", "joiner-3"}
    assert [row for row in rows(fork, "states") if row["owner"] == "joiner-1"]


def test_who_was_hired_or_has_left_meanwhile_is_reckoned_with(tmp_path: Path) -> None:
    happened = [
        {"title": "Growth", "at": "week:1", "effects": [{"hire": {"role": "Joiner", "in": "1 week"}}]},
        {"title": "Loss", "at": "week:2", "effects": [{"departure": {"agent": "seller-1"}}]},
    ]
    base = simulated(tmp_path / "base", SHOP, until=UNTIL, incidents=happened)
    placebo = base.fork(at="week:3", out=tmp_path / "placebo", org=tw.Organization(SHOP))
    assert (placebo.digest(), placebo.status().paid) == (base.digest(), 0)
    fork = amended(base, tmp_path / "fork", goals={"orders": {"text": "Repair 500 tables"}})
    check(base, fork)
    assert not events(fork, "leave") + events(fork, "join")
    fewer = amended(base, tmp_path / "fewer", roles={"Joiner": {"count": 2}, "Seller": {"count": 1}})
    check(base, fewer)
    assert {event["subject"] for event in events(fewer, "leave")} == {"joiner-3", "joiner-4"}


def test_who_is_to_come_when_others_join_is_none_of_them(tmp_path: Path) -> None:
    """Hired before the amendment and coming after it: drawn under the number that the amendment gives to somebody else."""
    happened = [{"title": "Growth", "at": "week:2", "effects": [{"hire": {"role": "Joiner", "in": "2 weeks"}}]}]
    base = simulated(tmp_path / "base", SHOP, until=UNTIL, incidents=happened)
    fork = amended(base, tmp_path / "fork", roles={"Joiner": {"count": 4}})
    assert week_digests(fork)[:2] == week_digests(base)[:2]
    assert fork.verify().ok
    assert [event["subject"] for event in events(fork, "join") + events(fork, "hire")] == ["joiner-4", "joiner-5"]
    assert len({row["persona"]["email"] for row in fork.agents()}) == len(rows(fork, "agents"))


def test_who_was_hired_has_the_role_of_the_forks_week_not_that_of_a_later_amendment(tmp_path: Path) -> None:
    happened = [{"title": "Growth", "at": "week:1", "effects": [{"hire": {"role": "Joiner", "in": "1 week"}}]}]
    base = simulated(tmp_path / "base", SHOP, until=UNTIL, incidents=happened)
    (hired,) = [row["name"] for row in base.agents() if row["id"] == "joiner-4"]
    later = amended(base, tmp_path / "later", at="week:4", people={hired: "Seller"})
    assert [event["subject"] for event in events(later, "role")] == ["joiner-4"]
    fork = amended(later, tmp_path / "fork", goals={"orders": {"text": "Repair 500 tables"}})
    assert {agent.id: agent.role for agent in fork.folder.tenures()[1].population}["joiner-4"] == "Joiner"
    assert not events(fork, "role")


def test_recurring_work_that_ends_is_abandoned_and_other_work_begins(parent: Run, tmp_path: Path) -> None:
    fork = amended(
        parent,
        tmp_path / "fork",
        work={"orders": None, "visits": VISITS},
    )
    check(parent, fork)
    arrived = {(event["object"], event["time"] < "2026-01-19") for event in events(fork, "arrive")}
    assert arrived == {("orders", True), ("visits", False)}
    begun = {event["subject"] for event in events(fork, "arrive")}
    ended = {event["subject"] for event in events(fork, "complete")} | {event["subject"] for event in events(fork, "abandon")}
    assert {case for case in begun if case.startswith("work/orders")} <= ended


def test_cases_that_are_abandoned_are_open_no_more(tmp_path: Path) -> None:
    from taskweave.report.recurring import case_logs, cases
    from taskweave.report.streams import streams

    base = simulated(tmp_path / "base", changed(work={"orders": {"arrivals": "40/week"}}), until=UNTIL)
    fork = base.fork(at="week:3", out=tmp_path / "fork", org=tw.Organization(changed(work={"orders": None})))
    left = len(events(fork, "abandon"))
    assert left > 10
    (found,) = cases(case_logs(rows(fork, "events"), WorkCalendar(fork.folder.organization().calendar)))
    assert (found.arrived - found.completed, found.abandoned, found.open) == (left, left, 0)
    with fork.pool() as pool:
        for organization in (fork.folder.organization(), parse(changed(work={"orders": None, "visits": VISITS}), "other")):
            told = streams(organization, *(list(pool.rows(name)) for name in ("events", "agents", "load")), max(pool.weeks()))
            assert [(one.abandoned, one.weeks[1].open, one.weeks[2].open) for one in told if one.name == "orders"] in (
                [],
                [(left, left, 0)],
            )
    assert fork.status().cases == {"orders": [found.arrived, found.completed, left]}


# ---------------------------------------------------------------- the folder alone
def test_an_amended_run_lives_from_its_folder_alone(parent: Run, tmp_path: Path) -> None:
    fork = amended(parent, tmp_path / "fork", roles={"Joiner": {"count": 4}})
    shutil.move(str(fork.path), tmp_path / "moved")
    (tmp_path / "moved" / "run.db").unlink()
    moved = Run.open(tmp_path / "moved").resume()
    assert moved.digest() == fork_digest(parent, tmp_path)
    later = moved.fork(at="week:4", out=tmp_path / "later")
    assert (later.digest(), later.status().paid) == (moved.digest(), 0)
    again = moved.fork(at="week:3", out=tmp_path / "again", org=tmp_path / "moved" / "org-week3.yaml")
    assert (again.digest(), again.status().paid) == (moved.digest(), 0)
    back = moved.fork(at="week:3", out=tmp_path / "back", org=tmp_path / "moved" / "org.yaml")
    assert week_digests(back)[:2] == week_digests(parent)[:2]
    replayed = tw.simulate(tw.Organization(SHOP), out=tmp_path / "parent-again", until=UNTIL)
    over = replayed.fork(at="week:3", out=tmp_path / "over", org=tmp_path / "moved" / "org-week3.yaml", backbone=f"replay:{moved.path}")
    assert over.digest() == moved.digest()
    text = (tmp_path / "moved" / "org-week3.yaml").read_text(encoding="utf-8")
    (tmp_path / "moved" / "org-week3.yaml").write_text(text.replace("400 chairs", "401 chairs"), encoding="utf-8")
    assert Run.open(tmp_path / "moved").verify().changed == ("org-week3.yaml: goals.orders",)


def fork_digest(parent: Run, place: Path) -> str:
    return amended(parent, place / "once-more", roles={"Joiner": {"count": 4}}).digest()


def test_an_amended_fork_that_was_interrupted_is_resumed_and_pays_nothing_twice(parent: Run, tmp_path: Path) -> None:
    organization = tw.Organization(changed(roles={"Joiner": {"count": 1}}))
    whole = parent.fork(at="week:3", out=tmp_path / "whole", org=organization)
    ((folder, _),) = driving.fork(parent.folder, at="week:3", out=tmp_path / "part", org=organization)
    with pytest.raises(KeyboardInterrupt):
        driving.drive(folder, Failing(20))
    rest = Run.open(folder.path).resume()
    assert (rest.digest(), rest.status().calls) == (whole.digest(), whole.status().calls)


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"name": "Store"}, r"name: is 'Store' and was 'Shop'"),
        ({"calendar": {"hours": 7}}, r"calendar\.hours: is 7\.0 and was 8\.0"),
        ({"tools": "on"}, r"tools: is on and was off"),
        (
            {"cadence": {"quarter": 2, "month": 2, "week": 2}},
            r"cadence\.quarter: is tier 2 and was 1.*or fork where a quarter begins, at week:13",
        ),
    ],
)
def test_what_cannot_change_within_a_run_is_refused_with_its_key(parent: Run, tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        amended(parent, tmp_path / "refused", **keys)
    assert not (tmp_path / "refused").exists()


def test_a_file_that_is_none_and_a_parent_without_tables_are_refused(parent: Run, tmp_path: Path) -> None:
    with pytest.raises(OrganizationInvalid, match="Nobody"):
        parent.fork(
            at="week:3",
            out=tmp_path / "refused",
            org=tw_text(tmp_path, SHOP.replace("reports_to: Boss, leads: Sales", "reports_to: Nobody")),
        )
    shutil.copytree(parent.path, tmp_path / "bare")
    (tmp_path / "bare" / "run.db").unlink()
    with pytest.raises(RunRefused, match=r"run\.db: is missing, and who works there in week 3 is known from it"):
        amended(Run.open(tmp_path / "bare"), tmp_path / "refused", roles={"Joiner": {"count": 4}})
    assert not (tmp_path / "refused").exists()


def tw_text(place: Path, text: str) -> Path:
    (place / "given.yaml").write_text(text, encoding="utf-8")
    return place / "given.yaml"


# ---------------------------------------------------------------- rules, without a run
COUNTS = st.fixed_dictionaries({title: st.integers(1, 4) for title in ("Joiner", "Seller", "Clerk")})


@settings(max_examples=15, deadline=None)
@given(counts=COUNTS, again=COUNTS, seed=st.integers(0, 3))
def test_who_stays_keeps_id_and_persona_and_no_id_is_given_twice(counts: dict[str, int], again: dict[str, int], seed: int) -> None:
    before, middle, after = (
        parse(changed(roles={title: {"count": number} for title, number in one.items()}), "f") for one in ({}, counts, again)
    )
    first = Population.sample(before, seed)
    second = staffed(first, before, middle, seed)
    third = staffed(second, middle, after, seed, [agent.id for agent in first.agents])
    for earlier, later in ((first, second), (second, third), (first, third)):
        known = {agent.id: agent.persona for agent in earlier.agents}
        assert all(agent.persona == known[agent.id] for agent in later.agents if agent.id in known)
    for population, org in ((second, middle), (third, after)):
        assert {title: sum(a.role == title for a in population.agents) for title in org.roles} == {t: r.count for t, r in org.roles.items()}
        roles = {agent.id: agent.role for agent in population.agents}
        assert all(agent.head is None or roles[agent.head] == org.roles[agent.role].reports_to for agent in population.agents)
    assert staffed(first, before, before, seed).agents == first.agents
    assert not differences(before, before)


AMENDMENTS = st.fixed_dictionaries(
    {
        "roles": st.fixed_dictionaries(
            {},
            optional={
                "Joiner": st.fixed_dictionaries(
                    {},
                    optional={
                        "count": st.integers(2, 4),
                        "reports_to": st.sampled_from(["Sales Head", "Boss"]),
                        "fte": st.sampled_from([0.5]),
                    },
                ),
                "Seller": st.fixed_dictionaries({}, optional={"count": st.integers(1, 3), "hours": st.just("2-6")}),
                "Repair Head": st.sampled_from([{"executes": "40%"}, {"count": 2}]),
                "Mender": st.sampled_from([{"reports_to": "Repair Head"}, {"reports_to": "Sales Head", "count": 2}]),
            },
        ),
        "people": st.sampled_from([{}, {"Ann Lee": None}, {"Ann Lee": "Seller"}, {"Bea Orr": "Joiner"}]),
        "goals": st.sampled_from([{}, {"orders": {"text": "Repair 500 tables"}}]),
        "cross_links": st.sampled_from([["Clerk -> Joiner"], [], ["Joiner -> Seller"]]),
    }
)


UNSHRUNK = [Phase.explicit, Phase.reuse, Phase.generate]  # each example is a run


@settings(max_examples=6, deadline=None, phases=UNSHRUNK, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=AMENDMENTS, week=st.integers(1, 5))
def test_whatever_is_amended_earlier_weeks_stay_and_work_goes_where_it_may(
    parent: Run, tmp_path_factory: pytest.TempPathFactory, keys: dict[str, Any], week: int
) -> None:
    place = tmp_path_factory.mktemp("fork")
    cadence = {level: tier for level, tier in parent.folder.organization().cadence.items()}
    fork = amended(parent, place / "fork", at=f"week:{week}", cadence=cadence, **keys)
    check(parent, fork, week)
    for tenure in fork.folder.tenures()[1:]:
        assert week == tenure.week
        assert {agent.id for agent in fork.folder.population().agents} <= {
            one.id for one in (*tenure.population.agents, *tenure.population.former)
        }


def test_who_joins_uses_the_tools_of_the_role_and_is_known_by_them(tmp_path: Path) -> None:
    shop = SHOP.replace("Seller: {", "Seller: {tools: [chat, wiki], ") + "tools: on\n"
    base = simulated(tmp_path / "base", shop, until=UNTIL)
    fork = base.fork(
        at="week:3", out=tmp_path / "fork", org=tw.Organization(shop.replace("count: 2, hours: 3-5}", "count: 3, hours: 3-5}"))
    )
    check(base, fork)
    assert [event["subject"] for event in events(fork, "join")] == ["seller-3"]
    assert "seller-3" in {row["outcome"]["by"] for row in rows(fork, "tool_calls")}


def test_the_closing_table_asks_each_organization_for_its_own_weeks(parent: Run, tmp_path: Path) -> None:
    from taskweave.report.closing import closing

    fork = amended(parent, tmp_path / "fork", roles={"Mender": {"reports_to": "Repair Head", "hours": "3-5"}})
    first, *later = fork.folder.tenures()
    with fork.pool() as pool:
        found = {one.role: one for one in closing(pool, first.organization, first.population, later=later).roles}
    assert found["Mender"].demand > 0
    assert found["Mender"].demand < found["Joiner"].demand / 3


def test_where_all_of_a_role_have_left_its_cases_wait_and_incidents_may_name_it_as_without_an_amendment(tmp_path: Path) -> None:
    incident = {
        "title": "The clerk goes",
        "at": "2026-01-14",
        "affects": "all",
        "effects": [{"departure": {"role": "Clerk", "count": 1}}, {"hire": {"role": "Clerk", "in": "2 weeks"}}],
    }
    base = simulated(tmp_path / "base", SHOP, until=UNTIL, incidents=[incident])
    later, other = tmp_path / "later.yaml", tmp_path / "other.yaml"
    later.write_text("title: The clerks are ill\neffects: [absence: {role: Clerk, for: 1 week}]\n", encoding="utf-8")
    other.write_text(changed(domain="Furniture"), encoding="utf-8")
    fork = base.fork(at=f"week:{WEEK}", org=other, incidents=[later], out=tmp_path / "fork")
    assert not list(events(fork, "abandon"))
    assert {row["title"] for row in rows(fork, "incidents")} == {"The clerk goes", "The clerks are ill"}
    assert list(events(fork, "hire"))
