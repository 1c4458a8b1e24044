"""Names and arguments whose bytes are no text: they work, or are refused before anything is written, never with a traceback."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from taskweave.errors import BadInput
from taskweave.runs import RunConfig, Segment
from tests.cli.door import parameters, refused, shell, type_in

ODD = os.fsdecode(b"b\xffd")
SAID = r"the argument '{}' cannot be read as text: name it in UTF-8. Nothing was written."


@pytest.mark.parametrize("name", sorted({name for name, _ in parameters()}))
def test_every_command_refuses_an_argument_that_is_no_text(name: str) -> None:
    for words in ([ODD], ["tiny", "--out", ODD], ["tiny", "--tag", f"k={ODD}"], ["tiny", ODD, "--json"]):
        done = type_in(name, *words)
        assert done.exit_code == 2, done.output
        assert "cannot be read as text" in done.stderr
        if "--json" in words:
            assert json.loads(done.stdout)["exit"] == 2
    assert not list(Path().iterdir())


def test_it_is_said_which_argument_it_is_and_what_to_do() -> None:
    assert SAID.format(r"b\xffd") in refused("run", "tiny", "--until", "week:1", "--out", ODD)
    assert SAID.format(r"k=\xff") in refused("run", "tiny", "--tag", os.fsdecode(b"k=\xff"))


@pytest.mark.parametrize("words", [("--out", "ü2"), ("--out", "r", "--tag", "k=ü")])
def test_in_a_locale_that_cannot_say_it_the_locale_is_named(words: tuple[str, ...]) -> None:
    done = shell("run", "tiny", "--until", "week:1", *words, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    said = done.stderr.decode()
    assert done.returncode == 2, said
    assert "set PYTHONUTF8=1, or LC_ALL=C.UTF-8" in said
    assert "Traceback" not in said
    assert not list(Path().iterdir())


def test_what_can_be_said_works_as_a_name_and_as_a_tag() -> None:
    assert type_in("run", "tiny", "--until", "week:1", "--out", "ü2 % ?#", "--tag", "k=ü").exit_code == 0
    assert "k=ü" in type_in("status", "ü2 % ?#").stdout


def test_in_a_folder_whose_name_is_no_text_a_run_goes_well_and_what_would_name_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    Path(ODD).mkdir()
    monkeypatch.chdir(ODD)
    for words in (
        *(["run", "tiny", "--until", "week:1", "--out", "r"], ["status", "r"], ["resume", "r", "--until", "week:2"], ["digest", "r"]),
        *(["verify", "r"], ["export", "r", "--format", "jsonl", "--out", "data"], ["runs", "."]),
    ):
        done = type_in(*words)
        assert done.exit_code == 0, (words, done.output)
    for words in (["fork", "r", "--at", "week:1", "--out", "f"], ["run", "tiny", "--out", "f", "--backbone", "replay:r"]):
        assert "it is no text in UTF-8. Rename what is called so" in refused(*words)
    assert sorted(path.name for path in Path().iterdir()) == ["data", "r"]


def test_a_config_holds_texts_only() -> None:
    config = RunConfig(organization="a", tags={"k": "\udcff"}, segments=(Segment(backbone="scripted", origin="scripted"),))
    with pytest.raises(BadInput, match=r"cannot write down .*udcff"):
        config.text()
