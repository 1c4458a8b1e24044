"""`taskweave tools`: what there is, and who has it."""

from __future__ import annotations

import json
from pathlib import Path

from taskweave.tools.shelf import TOOLS
from tests.cli.door import refused, type_in


def test_every_tool_is_listed_with_its_arguments_and_its_kits() -> None:
    said = type_in("tools").stdout
    for name, tool in TOOLS.items():
        assert f"{name}({', '.join(tool.schema['properties'])})" in said
    listed = json.loads(type_in("tools", "--json").stdout)["tools"]
    assert [tool["name"] for tool in listed] == list(TOOLS)
    assert listed[0]["inputSchema"] == TOOLS["sql_query"].schema


def test_each_role_of_an_organization_is_shown_with_what_it_may_use() -> None:
    roles = json.loads(type_in("tools", "company_a", "--json").stdout)["roles"]
    assert roles["Backend Engineer"] == ["sql_query", "sql_tables", "sql_write", "duckdb_query"]
    assert roles["QA Engineer"] == []
    assert "mail_send" in type_in("tools", "company_a", "--role", "hr").stdout
    assert type_in("tools", "company_a", "--role", "QA Engineer").stdout == "The QA Engineer has no tools.\n"


def test_what_is_no_role_and_no_tool_is_named_with_the_nearest(tmp_path: Path) -> None:
    assert "did you mean 'Data Analyst'?" in refused("tools", "company_a", "--role", "Data Analist")
    assert "needs an organization" in refused("tools", "--role", "HR")
    file = tmp_path / "odd.yaml"
    file.write_text("roles: {Boss: {tools: [exel]}}\n", encoding="utf-8")
    assert "did you mean 'excel'?" in refused("tools", file)


def test_validate_names_a_tool_that_there_is_not(tmp_path: Path) -> None:
    text = "name: Acme\ntools: on\nroles:\n  CEO: {tools: [sqll, wiki]}\n"
    (tmp_path / "acme.yaml").write_text(text, encoding="utf-8")
    assert "the role 'CEO': there is no tool 'sqll'; did you mean 'sql'? Or leave out" in refused("validate", tmp_path / "acme.yaml")
    (tmp_path / "acme.yaml").write_text(text.replace("tools: on\n", ""), encoding="utf-8")
    assert type_in("validate", tmp_path / "acme.yaml").exit_code == 0
