"""The command line's help: every command and option says what it is for."""

from __future__ import annotations

import typer.main

from taskweave.cli import app
from tests.cli.door import ROOT, parameters, shell


def test_every_option_of_every_command_is_documented_with_an_example() -> None:
    undocumented = [
        f"{name} {parameter.name}"
        for name, parameter in parameters()
        if "e.g. " not in (getattr(parameter, "help", None) or "") and parameter.name != "help"
    ]
    assert undocumented == []


def test_every_command_is_documented_with_an_example_and_stands_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, one in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        assert f"taskweave {name}" in (one.help or ""), name
        assert f"taskweave {name}" in readme, f"README.md does not show 'taskweave {name}'"


def test_help_of_every_command_can_be_shown_on_a_narrow_terminal_without_colour() -> None:
    for name in ["", *{name for name, _ in parameters()}]:
        done = shell(*filter(None, [name]), "--help", PYTHONIOENCODING="ascii", COLUMNS="40")
        assert done.returncode == 0, done.stderr
        assert b"Usage" in done.stdout
