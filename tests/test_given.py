"""What a program gives: refused with what it was, where, and what to give instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave.records import Completion, Request
from taskweave.shipped import shipped


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Nameless:
    """Has all of a backbone but a name."""

    origin = "model"

    async def complete(self, request: Request) -> Completion:
        return Completion(text="")


class Untold(Nameless):
    """Does not say what it is."""

    name, origin = "untold", "me"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"limit": 0}, "limit=0: the most calls in flight"),
        ({"limit": True}, "limit=True"),
        ({"seed": "1"}, "seed='1': a whole number is needed"),
        ({"seed": 1.5}, "seed=1.5"),
        ({"assign": "foo"}, "assign='foo': .*'match'"),
        ({"tags": {"a": 1}}, "tags={'a': 1}: texts by texts"),
        ({"tags": ["a"]}, r"tags=\['a'\]"),
        ({"until": 8}, "until=8: .*'week:8'"),
        ({"patience": "600"}, "patience='600': a number of seconds"),
        ({"patience": float("inf")}, "patience=inf"),
        ({"patience": 1e308}, "patience=1e.308: a number of seconds up to 1,000,000,000"),
        ({"budget_hours": 1e308}, "budget_hours=1e.308: .*up to 1,000,000 is"),
        ({"budget_usd": 10**400}, "budget_usd=10*: .*up to 1,000,000,000 is"),
        ({"budget_tokens": 10**16}, "budget_tokens=10*: .*up to 1,000,000,000,000,000 is"),
        ({"base_url": 8000}, "base_url=8000"),
        ({"prompts": 3}, "prompts=3: give a path"),
        ({"incidents": [3]}, r"incidents=\[3\]: give a path"),
        ({"backbone": 3}, "backbone=3: name one"),
        ({"backbone": Nameless()}, "its 'name' is None"),
        ({"backbone": Untold()}, "its 'origin' is 'me'"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_can(given: dict[str, Any], says: str) -> None:
    with pytest.raises(tw.BadInput, match=says):
        tw.simulate("tiny", out="r", **given)
    assert not Path("r").exists()


@pytest.mark.parametrize(("given", "says"), [({"limit": 0}, "limit=0"), ({"until": 8}, "until=8"), ({"patience": "x"}, "patience='x'")])
def test_what_resume_cannot_use_is_named_likewise(given: dict[str, Any], says: str) -> None:
    run = tw.simulate("tiny", until="week:1", out="r")
    with pytest.raises(tw.BadInput, match=says):
        run.resume(**given)


def test_one_path_is_as_good_as_a_list_of_one(here: Path) -> None:
    incidents = here / "news.yaml"
    incidents.write_text("- {title: News, category: economic, description: Something., severity: low, affects: all, duration: 1 weeks}")
    prompts = here / "mine"
    prompts.mkdir()
    (prompts / "merge.md").write_text((shipped("prompts") / "merge.md").read_text().rstrip() + "\nBe brief.\n")
    for number, kind in enumerate((str, Path, lambda path: [path], lambda path: (str(path),))):
        run = tw.simulate("tiny", until="week:1", out=f"r{number}", prompts=kind(prompts), incidents=kind(incidents))
        assert [row["id"] for row in run.incidents()] == ["news"]
        assert "Be brief." in (run.path / "prompts" / "merge.md").read_text()


@pytest.mark.parametrize("readme", [None, "README.md", "readme.md"])
def test_a_folder_without_a_prompt_is_refused_though_a_readme_lies_there(here: Path, readme: str | None) -> None:
    (here / "mine").mkdir()
    if readme:
        (here / "mine" / readme).write_text("What I mean to write here.")
    with pytest.raises(tw.BadInput, match="no prompt lies there.*taskweave new DIR"):
        tw.simulate("tiny", out="r", prompts="mine")
