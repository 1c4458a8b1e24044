"""No argument of a tool ends a run, reaches a clock or the machine, or writes what it should not: a refusal says why."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import SMTP
from pathlib import Path

import pytest

from taskweave.records import Json
from taskweave.serving.rebuilt import OBSERVER
from taskweave.tools import sql, world
from taskweave.tools.mcp_schema import tamed
from taskweave.tools.mcp_wire import Wire
from taskweave.tools.shelf import TOOLS
from taskweave.tools.world import World
from tests.tool_world import MOMENT, a_world, call, done, effect_of

NEVER = "9999-12-31"
COMPUTED = "CREATE TABLE grown (a, b AS (printf('%.*c', 300000000, a)))"
CRASHES: list[tuple[str, dict[str, Json], str]] = [
    ("calendar_read", {"person": "hr", "first": NEVER, "days": 31}, "no year"),
    ("calendar_add", {"title": "Late", "day": NEVER, "start": "23:59", "minutes": 480, "people": []}, "no year"),
    ("calendar_free", {"people": [], "day": NEVER, "minutes": 30}, "no year"),
    ("document_write", {"name": "plan", "title": "Plan", "text": "no character: \uffff"}, "not allowed here"),
    ("wiki_write", {"title": "Plan", "text": "no character: \ufffe"}, "not allowed here"),
    ("sheet_write", {"name": "book", "columns": ["n"], "rows": [[10**400]]}, "rows.0.0"),
    ("sheet_write", {"name": "book", "columns": ["n"], "rows": [[float("inf")]]}, "rows.0.0"),
    ("duckdb_query", {"statement": "SELECT to_days(2000000000)"}, "too large to be shown"),
    ("duckdb_query", {"statement": "SELECT to_months(2147483647)"}, "too large to be shown"),
]


@pytest.mark.parametrize(("name", "given", "why"), CRASHES)
def test_what_no_library_takes_is_refused(name: str, given: dict[str, Json], why: str) -> None:
    called = call(a_world(), name, **given)
    assert not called.ok
    assert why in str(called.said)


@pytest.mark.parametrize("now", ["x'6e6f77'", "'now' || char(0)", "'NOW' || char(0) || 'x'"])
def test_the_clock_of_sql_is_the_simulated_one_however_it_is_asked_for(now: str) -> None:
    said = call(a_world(), "sql_query", statement=f"SELECT datetime({now})").said
    assert said["rows"] == [[f"{MOMENT}:00"]]
    refused = call(a_world(), "sql_query", statement="SELECT datetime(1, x'6c6f63616c74696d65')")
    assert "one time zone" in str(refused.said)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM pg_settings, (WITH pg_settings AS (SELECT 1) SELECT * FROM pg_settings)",
        "WITH a AS (SELECT * FROM duckdb_columns), duckdb_columns AS (SELECT 1) SELECT * FROM a",
    ],
)
def test_a_name_after_with_opens_no_view_of_duckdbs_own(statement: str) -> None:
    called = call(a_world(), "duckdb_query", statement=statement)
    assert not called.ok
    assert "a name of its own" in str(called.said)
    assert call(a_world(), "duckdb_query", statement="WITH tables AS (SELECT 1 AS n) SELECT n FROM tables").ok


def test_moments_with_a_zone_do_not_depend_on_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    statement = "SELECT CAST(strptime('2020-07-01 +02', '%Y-%m-%d %z') AS VARCHAR)"
    assert call(a_world(), "duckdb_query", statement=statement).said["rows"] == [["2020-06-30 22:00:00+00"]]


def test_what_a_table_computes_by_itself_is_bounded_for_every_tool() -> None:
    world = a_world()
    done(world, "sql_write", statement=COMPUTED)
    done(world, "sql_write", statement="INSERT INTO grown (a) VALUES ('x')")
    assert call(world, "sql_describe", table="grown").said["first"] == [["x"]]
    assert call(world, "duckdb_query", statement="SELECT * FROM grown").said["rows"] == [["x"]]


def test_a_week_lands_when_tools_have_filled_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "MOST_PAGES", 200)
    full, number = a_world(), 0
    for size in (50_000, 3_000, 10):
        while (called := call(full, "sql_write", statement=f"CREATE TABLE t{number} AS SELECT printf('%.*c', {size}, 'x') AS v")).ok:
            full.land(1, [effect_of(called)])
            number += 1
        assert "full" in str(called.said)
    full.land(2, [], readings=[(week, f"figure {number}", 1.0) for week in range(50) for number in range(200)])
    assert full.rows("SELECT count(*) FROM readings") == [(10_000,)]


def test_a_write_that_was_taken_is_not_refused_when_it_lands_for_what_the_machine_has(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    wide = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000) SELECT n FROM c"
    effect = effect_of(call(world, "sql_write", statement=f"CREATE TABLE wide AS {wide}"))
    peaks = iter(range(0, 10**9, 10**6))
    monkeypatch.setattr(sql, "_peak_memory", lambda: next(peaks))
    assert "memory" in str(call(world, "sql_write", statement=f"CREATE TABLE other AS {wide}").said)
    (landing,) = world.land(1, [effect])
    assert landing.landed


def test_a_statement_of_few_long_steps_is_ended_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "MOST_SECONDS", 0.3)
    texts = "(SELECT printf('%.*c', 40000, 'a') AS a, printf('%.*c', 20000, 'a') || 'b' AS b)"
    numbers = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 20000)"
    called = call(a_world(), "sql_query", statement=f"{numbers} SELECT sum(instr(a, b)) FROM c, {texts}")
    assert "seconds" in str(called.said)


@pytest.mark.parametrize("subject", ["=?utf-8?q?a=0D=0ABcc:_evil@x.yz?=", "a =?utf-8?b?YQ0KQmNjOiBldmlsQHgueXo=?= b"])
def test_an_encoded_word_in_a_subject_makes_no_header(subject: str) -> None:
    world = a_world()
    assert "plain words" in str(call(world, "mail_send", to=["bo@elsewhere.example"], subject=subject, text="Hello").said)
    done(world, "mail_send", to=["bo@elsewhere.example"], subject='Größe, =? 100 %: [a] <b>; "c" (d)', text="Hello")
    ((data,),) = world.rows("SELECT message FROM mails")
    assert message_from_bytes(data, policy=SMTP)["Subject"] == 'Größe, =? 100 %: [a] <b>; "c" (d)'


def test_a_document_that_nobody_could_open_again_is_not_kept() -> None:
    world = a_world()
    done(world, "document_write", name="plan", title="Plan", text="e" * 7_000)
    assert "is not read" in str(call(world, "document_replace_text", name="plan", old="e", new="ex" * 50).said)
    done(world, "document_write", name="long", title="Long", text="e" * 8_000)
    assert "replace by less" in str(call(world, "document_replace_text", name="long", old="e", new="x" * 200).said)
    assert call(world, "document_read", name="plan").ok


def test_whoever_looks_from_outside_is_found_by_nobody() -> None:
    looked_at = a_world()
    looked_at.admit(OBSERVER)
    said = looked_at.call(TOOLS["people_search"], {"text": "o"}, actor=OBSERVER.id, moment=MOMENT, key="").said
    assert OBSERVER.id not in [person["id"] for person in said["people"]]
    assert not call(looked_at, "people_read", person=OBSERVER.id).ok


def test_a_server_that_hears_nothing_more_is_not_waited_for(tmp_path: Path) -> None:
    deaf = """import json, sys, time
asked = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocolVersion": "2025-06-18"}}), flush=True)
sys.stdin.readline()
time.sleep(600)
"""
    wire = Wire([sys.executable, "-c", deaf], folder=tmp_path, env={}, seconds=1.0)
    began = datetime.now(UTC)
    with pytest.raises(OSError, match="hears no more|ended"):
        wire.ask("tools/call", {"text": "x" * 1_000_000})
    assert (datetime.now(UTC) - began).total_seconds() < 30


def test_a_servers_schema_that_refers_to_itself_from_many_names_is_read_at_once() -> None:
    names = {f"p{number}": {"$ref": "#/all"} for number in range(2_000)}
    everything = {"type": "object", "properties": names, "required": ["missing"]}
    began = datetime.now(UTC)
    with pytest.raises(ValueError, match="no schema here can say"):
        tamed({**everything, "all": everything})
    assert (datetime.now(UTC) - began).total_seconds() < 30


def test_a_world_says_why_a_library_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: World = a_world()
    monkeypatch.setitem(TOOLS["wiki_list"].__dict__, "function", _fails)
    called = call(looked_at, "wiki_list")
    assert (called.ok, called.said) == (False, "wiki_list: no such thing")


def _fails(_: object) -> Json:
    raise OverflowError("no such thing")
