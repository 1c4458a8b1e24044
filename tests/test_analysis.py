"""DuckDB analyses a copy of what the caller may see, deterministically and within bounds, and reaches nothing else."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from taskweave.records import Json
from taskweave.tools import analysis
from taskweave.tools.shelf import granted
from taskweave.tools.world import World
from tests.simulated import rows, simulated
from tests.test_tool_use import SHOP, choosing, using
from tests.tool_world import BO, a_world, call, done


@pytest.fixture
def world() -> World:
    made = a_world()
    readings = [(week, kpi, 3.0 + week / 10) for week in range(1, 21) for kpi in ("churn", "orders")]
    deliverables = [(f"d{n:03}", f"Title {n % 7}", "report", "Ines Roux", f"2026-{1 + n % 3:02}-{1 + n % 28:02}") for n in range(300)]
    made.land(1, [], readings=readings, deliverables=deliverables)
    return made


def asked(world: World, statement: str, **more: Any) -> Json:
    called = call(world, "duckdb_query", statement=statement, **more)
    assert called.ok, called.said
    return called.said


def refused(world: World, statement: str) -> str:
    called = call(world, "duckdb_query", statement=statement)
    assert not called.ok, called.said
    assert called.effect is None
    return str(called.said)


def test_it_computes_what_the_other_tool_cannot(world: World) -> None:
    found = asked(world, "SELECT kpi, median(value), corr(week, value) FROM readings GROUP BY ALL")
    assert found["rows"] == [["churn", 4.05, 1], ["orders", 4.05, 1]]
    months = asked(world, "SELECT monthname(CAST(finished AS DATE)) AS m, count(*) AS n FROM deliverables GROUP BY m ORDER BY n, m DESC")
    assert months == {"columns": ["m", "n"], "rows": [["March", 100], ["January", 100], ["February", 100]], "more": False}


def test_rows_are_sorted_by_value_where_the_statement_does_not_say_how(world: World) -> None:
    assert asked(world, "VALUES (3, 'b'), (1, 'z'), (3, 'a')")["rows"] == [[1, "z"], [3, "a"], [3, "b"]]
    assert asked(world, "SELECT week FROM readings WHERE kpi = 'churn' ORDER BY week DESC LIMIT 2")["rows"] == [[20], [19]]
    assert asked(world, "SELECT id, id FROM deliverables LIMIT 2 -- twice")["columns"] == ["id", "id"]


def test_what_it_says_does_not_depend_on_the_order_in_which_rows_were_written() -> None:
    said = []
    given = [(week, "churn", 0.1 * week) for week in range(1, 200)]
    for readings in (given, given[::-1]):
        world = a_world()
        world.land(1, [], readings=readings)
        said.append(asked(world, "SELECT sum(value), avg(value), stddev(value), string_agg(week, ',') FROM readings"))
    assert said[0] == said[1]


def test_at_most_fifty_rows_come_back_and_more_is_said(world: World) -> None:
    found = asked(world, "SELECT id FROM deliverables")
    assert (len(found["rows"]), found["more"]) == (50, True)


def test_it_sees_the_own_mails_without_their_texts_and_nobody_elses(world: World) -> None:
    done(world, "mail_send", to=["HR"], subject="Chairs", text="A secret between us.")
    done(world, "mail_send", actor=BO.id, to=["someone@example.com"], subject="Wages", text="Not for Ines.", key="k2")
    assert asked(world, "SELECT subject, sender FROM mails")["rows"] == [["Chairs", "backend-engineer"]]
    assert [row[0] for row in asked(world, "SELECT subject FROM mails", actor=BO.id)["rows"]] == ["Chairs", "Wages"]
    assert "secret" not in str(asked(world, "SELECT * FROM mails"))
    for private in ("mailboxes", "documents", "landed"):
        assert f"there is no table '{private}'" in refused(world, f"SELECT * FROM {private}")


def test_it_sees_what_the_caller_has_written_before_and_tables_of_any_values(world: World) -> None:
    done(world, "sql_write", statement="CREATE TABLE findings (a, b, c)")
    done(world, "sql_write", statement="INSERT INTO findings VALUES (1, 2.5, 'x'), ('two', 3, NULL), (x'0102', NULL, '')", key="k3")
    found = asked(world, "SELECT * FROM findings")
    assert found["rows"] == [["(2 bytes)", None, ""], ["1", 2.5, "x"], ["two", 3, None]]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT current_date", "current_date is not allowed"),
        ("SELECT p.name FROM people p WHERE current_timestamp IS NOT NULL", "current_timestamp is not allowed"),
        ("SELECT now()", "the function now() is not allowed"),
        ("SELECT today()", "the function today() is not allowed"),
        ("SELECT random()", "the function random() is not allowed"),
        ("SELECT uuid()", "the function uuid() is not allowed"),
        ("SELECT name FROM people ORDER BY random()", "the function random() is not allowed"),
        ("SELECT age(DATE '2020-01-01')", "the function age() is not allowed"),
        ("SELECT current_user", "current_user is not allowed"),
        ("SELECT * FROM people USING SAMPLE 1", "drawn by chance"),
        ("SELECT * FROM people TABLESAMPLE 50%", "drawn by chance"),
        ("SELECT CAST('2026-01-01' AS TIMESTAMPTZ)", "the type"),
    ],
)
def test_clocks_and_chance_are_refused(world: World, statement: str, why: str) -> None:
    assert why in refused(world, statement)


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH '{f}'",
        "COPY people TO '{f}'",
        "COPY (SELECT 1) TO '{f}' (FORMAT parquet)",
        "EXPORT DATABASE '{f}'",
        "INSTALL httpfs",
        "LOAD '{f}'",
        "PRAGMA version",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "CALL pragma_version()",
        "CREATE TABLE x AS SELECT 1",
        "INSERT INTO people VALUES (1)",
        "DROP TABLE people",
        "CREATE MACRO f() AS 1",
        "EXPLAIN SELECT 1",
        "SELECT 1; SELECT 2",
        "SELECT 1; COPY people TO '{f}'",
        "SELECT * FROM '{f}'",
        "SELECT * FROM read_csv('{f}')",
        "SELECT * FROM read_text('{f}')",
        "SELECT * FROM parquet_scan('{f}')",
        "SELECT * FROM glob('/*')",
        "WITH x AS (SELECT * FROM read_blob('{f}')) SELECT * FROM x",
        "SELECT (SELECT content FROM read_text('{f}'))",
        "SELECT * FROM 'https://example.com/x.csv'",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('people')",
        "SELECT getenv('HOME')",
        "SELECT current_setting('threads')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM pg_catalog.pg_class",
        "SELECT * FROM sqlite_master",
        "SHOW TABLES",
        "DESCRIBE people",
        "SELECT * FROM people WHERE id = $1",
        "SELECT * FROM world",
        "SELECT nextval('x')",
        "(((",
        "",
    ],
)
def test_nothing_but_one_select_over_the_companys_tables_is_possible(world: World, statement: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("hunter2", encoding="utf-8")
    assert "hunter2" not in refused(world, statement.format(f=file) if "{f}" in statement else statement)
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
    assert asked(world, "SELECT count(*) FROM people")["rows"] == [[2]]


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM '{f}'", "SELECT * FROM read_text('{f}')", "COPY (SELECT 1) TO '{f}.out'", "SET threads = 2"]
)
def test_behind_the_list_of_what_is_allowed_duckdb_itself_is_shut(world: World, statement: str, tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("hunter2\n", encoding="utf-8")
    monkeypatch.setattr(analysis, "_parsed", lambda db, text: {"modifiers": []})
    monkeypatch.setattr(analysis, "_found", lambda db, text, ordered: db.execute(text).fetchall())
    why = refused(world, statement.format(f=file))
    assert "disabled" in why or "locked" in why
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("SELECT count(*) FROM deliverables a, deliverables b, deliverables c", "looks at about"),
        ("SELECT count(*) FROM deliverables a JOIN deliverables b ON a.id < b.id JOIN deliverables c ON b.id < c.id", "looks at about"),
        ("SELECT * FROM range(10000000)", "in the place of a table"),
        ("SELECT repeat('x', 1000000000)", "the function repeat() is not allowed"),
        ("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT max(x) FROM r", "recursive"),
        ("SELECT " + "(" * 1500 + "1" + ")" * 1500, "depth"),
        (
            "WITH c0 AS (SELECT id AS x FROM deliverables)"
            + "".join(f", c{n} AS (SELECT x || x AS x FROM c{n - 1})" for n in range(1, 32))
            + " SELECT length(x) FROM c31",
            "memory",
        ),
    ],
)
def test_a_statement_that_would_take_too_much_is_refused_before_it_does(world: World, statement: str, why: str) -> None:
    assert why in refused(world, statement)


def test_tables_that_are_too_large_are_refused_by_their_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MOST_READ", 320)
    assert asked(world, "SELECT count(*) FROM deliverables")["rows"] == [[300]]
    assert "more than 320 rows" in refused(world, "SELECT count(*) FROM deliverables, readings")


def test_what_no_estimate_foresees_is_ended_after_a_while(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis, "MOST_LOOKED_AT", 10**18)
    monkeypatch.setattr(analysis, "MOST_SECONDS", 0.3)
    endless = "SELECT count(*) FROM deliverables a, deliverables b, deliverables c, deliverables d"
    assert "takes more than 0.3 seconds" in refused(world, endless + " WHERE regexp_matches(a.id || b.id || c.id || d.id, '(d*)*x')")


def test_it_does_not_change_the_database_it_reads(world: World) -> None:
    before = world.database()
    asked(world, "SELECT count(*) FROM people")
    assert world.database() == before
    assert isinstance(sqlite3.sqlite_version, str)


def test_a_role_with_duckdb_has_it_and_a_run_that_uses_it_repeats(tmp_path: Path) -> None:
    assert [tool.name for tool in granted(["duckdb"])] == ["sql_tables", "duckdb_query"]
    stubs = {"decompose": using, "execute_tool": choosing("duckdb_query", statement="SELECT role, count(*) FROM people GROUP BY ALL")}
    run = simulated(tmp_path / "run", SHOP.replace("[sqlite, wiki, email]", "[duckdb]"), until="week:2", stubs=stubs)
    said = {call["outcome"]["said"] for call in rows(run, "tool_calls")}
    assert said == {'{"columns":["role","count_star()"],"more":false,"rows":[["Head",1],["Joiner",2]]}'}
    assert run.verify().ok
