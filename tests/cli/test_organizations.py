"""Commands about an organization, before any run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskweave.shipped import built_in
from tests.cli.door import ROOT, refused, type_in


def test_an_organization_with_problems_is_refused_with_all_of_them(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: A\nroles:\n  Boss: {}\n  Clerk: {reports_to: Bos, cuont: 2}\n", encoding="utf-8")
    for words in (["validate", file], ["run", file]):
        said = refused(*words)
        assert "bad.yaml:4" in said
        assert "'Boss'" in said or "Boss" in said
        assert "count" in said
    assert not Path("runs").exists()


def test_validate_shows_warnings_beside_errors_and_counts_like_a_person(tmp_path: Path) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text("roles: {Wizard: {}}\n", encoding="utf-8")
    assert type_in("validate", file).stdout == "Odd is valid: 1 agent, 1 role, 1 tier, 0 departments.\n"
    file.write_text("roles: {Wizard: {cuont: 1}}\n", encoding="utf-8")
    said = refused("validate", file)
    assert "did you mean 'count'?" in said
    assert "warning:" in said
    assert "does not know 'Wizard'" in said
    assert json.loads(type_in("validate", file, "--json").stdout)["warnings"]


def test_new_makes_a_folder_that_runs() -> None:
    assert type_in("new", "acme corp").exit_code == 0
    assert type_in("validate", "acme corp/organization.yaml").stderr == ""
    words = ["--until", "week:1", "--prompts", "acme corp/prompts", "--incidents", "acme corp/incidents.yaml", "--out", "erster lauf ü"]
    assert type_in("run", "acme corp/organization.yaml", *words).exit_code == 0
    assert "not empty" in refused("new", "acme corp") or "lies there already" in refused("new", "acme corp")


def test_the_starter_speaks_of_every_prompt() -> None:
    readme = (ROOT / "orgs" / "starter" / "README.md").read_text(encoding="utf-8")
    assert [p.name for p in (ROOT / "prompts").glob("*.md") if p.stem.lower() != "readme" and f"`{p.name}`" not in readme] == []


@pytest.mark.parametrize("name", list(built_in()))
def test_every_built_in_organization_is_valid_and_can_be_shown(name: str) -> None:
    assert type_in("validate", name).stderr == ""
    for words in (["--format", "tree"], ["--format", "mermaid"], ["--format", "graphml"], ["--resolved"]):
        assert type_in("show", name, *words).exit_code == 0


def test_the_schema_is_one() -> None:
    assert json.loads(type_in("schema").stdout)["properties"]["roles"]


@pytest.mark.parametrize(("given", "written"), [("on", "on"), ("yes", "on"), ("off", "off"), ("", "off")])
def test_the_switch_of_the_tools_is_read_as_it_is_written_and_shown(tmp_path: Path, given: str, written: str) -> None:
    file = tmp_path / "tools.yaml"
    file.write_text("roles: {Boss: {tools: [wiki]}}\n" + (f"tools: {given}\n" if given else ""), encoding="utf-8")
    shown = type_in("show", file, "--resolved").stdout
    assert f"\ntools: {written}  # {'given' if given else 'inferred'}\n" in shown
    file.write_text("roles: {Boss: {}}\ntools: perhaps\n", encoding="utf-8")
    assert "neither 'on' nor 'off'" in refused("validate", file)
