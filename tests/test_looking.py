"""A run looks at an endpoint that it does not know before it begins: what cannot work is refused, what was asked is in its books."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taskweave.backbones.probed import recall
from taskweave.engine.reader import JournalReader
from taskweave.runs import RunFolder
from tests.cli.door import refused, type_in
from tests.endpoints import Endpoint


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(server: Endpoint, *words: str, until: str = "week:1") -> list[str]:
    return ["run", "tiny", "--until", until, "--backbone", "openai:any", "--base-url", server.url, "--patience", "0", *words]


def looked(server: Endpoint) -> list[str]:
    """The last message of each request that was a question of a look."""
    said = [request["messages"][-1]["content"] for request in server.requests]
    return [text for text in said if "code word" in text or "boxes" in text]


def test_an_endpoint_that_cuts_the_full_styles_prompts_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with Endpoint(window=2_048) as server:
        said = refused(*run(server, "--style", "full", "--out", "r"))
        assert len(server.requests) == len(looked(server)) <= 4
        assert list(tmp_path.iterdir()) == []
        assert "was cut without a word" in said
        assert "OLLAMA_CONTEXT_LENGTH" in said
        assert "--ctx-size" in said
        assert "--style compact" in said
        server.window = None  # set anew: what forbade a run is asked again
        assert type_in(*run(server, "--style", "full", "--out", "r")).exit_code == 0


def test_what_a_look_asked_is_in_the_runs_books_and_is_not_asked_again() -> None:
    with Endpoint() as server:
        done = type_in(*run(server, "--out", "a"))
        assert done.exit_code == 0, done.output
        assert "Looking at openai:any" in done.stderr
        assert "Style full: answers as json_schema hold" in done.stderr
        asked = looked(server)
        assert len(asked) == 2
        with JournalReader(Path("a/journal.db")) as journal:
            calls = journal.calls("look")
            counts = journal.counts()
        assert [call.messages[-1][1] for call in calls] == asked
        assert all(call.outcome["text"] for call in calls)
        assert counts.outcomes["complete"] == counts.attempts == len(server.requests)
        status = json.loads(type_in("status", "a", "--json").stdout)
        assert (status["calls"], status["lost"]) == (len(server.requests), 0)
        server.requests.clear()
        again = type_in(*run(server, "--out", "b"))
        assert again.exit_code == 0
        assert looked(server) == []
        assert "'taskweave probe' looks anew" in again.stderr
    assert type_in("digest", "a").stdout == type_in("digest", "b").stdout


def test_where_no_style_is_given_the_one_that_fits_is_chosen_and_said(tmp_path: Path) -> None:
    with Endpoint(window=2_048) as server:
        done = type_in(*run(server, "--out", "short"))
        assert RunFolder.open("short").config.style == "compact"
        assert "Style compact: prompts are seen whole up to" in done.stderr
    with Endpoint(forms=()) as server:
        done = type_in(*run(server, "--out", "plain"))
        assert RunFolder.open("plain").config.style == "compact"
        assert "better than plain text" in done.stderr


def test_a_context_too_short_for_the_compact_style_is_refused_as_well(tmp_path: Path) -> None:
    with Endpoint(window=600) as server:
        said = refused(*run(server, "--out", "r"))
        assert "the compact style asks" in said
        assert list(tmp_path.iterdir()) == []
    with Endpoint(window=600, honest=True) as server:
        assert "was refused as too long" in refused(*run(server, "--out", "r", "--style", "full"))


def test_a_weak_model_that_repeats_no_word_is_not_refused() -> None:
    for usage in (True, False):
        with Endpoint(repeating=False, usage=usage) as server:
            done = type_in(*run(server, "--out", f"weak-{usage}", "--style", "compact"))
            assert done.exit_code == 0, done.output


def test_trouble_is_left_to_the_run_which_begins_and_can_be_resumed() -> None:
    with Endpoint(faults=["key"] * 2) as server:
        done = type_in(*run(server, "--out", "r"))
        assert done.exit_code == 75
        assert "Incorrect API key" in done.stderr
        assert recall("openai:any", server.url) is None
        with JournalReader(Path("r/journal.db")) as journal:
            assert [attempt.how for attempt in journal.calls("look")[0].attempts] == ["refused"]
        assert type_in("resume", "r").exit_code == 0
    with Endpoint(faults=[503] * 2) as server:
        assert type_in(*run(server, "--out", "s")).exit_code == 75


def test_no_look_asks_nothing_beforehand() -> None:
    with Endpoint(window=2_048) as server:
        done = type_in(*run(server, "--out", "r", "--no-look"))
        assert done.exit_code == 0, done.output
        assert looked(server) == []
        assert RunFolder.open("r").config.style == "full"


def test_nothing_is_asked_for_a_run_that_has_no_place() -> None:
    Path("r").mkdir()
    with Endpoint() as server:
        refused(*run(server, "--out", "r"))
        assert server.requests == []


def test_a_look_that_nobody_waited_for_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    from taskweave.backbones import probe

    monkeypatch.setattr(probe, "A_CALL", 2.0)
    with Endpoint(faults=[None, None, None, "hang"], forms=()) as server:
        done = type_in(*run(server, "--out", "r"))
        assert done.exit_code == 0, done.output
        assert "The look ended early: no answer within 2.0 s. The run begins all the same, in the compact style." in done.stderr
        assert RunFolder.open("r").config.style == "compact"
        status = json.loads(type_in("status", "r", "--json").stdout)
        assert status["calls"] + status["lost"] == len(server.requests) - 2, "two forms were refused, once: what is no answer is no call"
        assert status["lost"] == 1


def test_every_endpoint_that_the_routes_lead_to_is_looked_at() -> None:
    with Endpoint() as good, Endpoint(window=2_048) as short:
        Path("routing.yaml").write_text(f"routes: [{{step: execute, backbone: 'openai:other', base_url: '{short.url}'}}]", encoding="utf-8")
        routed = ("--routing", "routing.yaml", "--out", "r")
        said = refused(*run(good, "--style", "full", *routed))
        assert "openai:other at" in said
        assert "was cut without a word" in said
        assert not Path("r").exists()
        done = type_in(*run(good, *routed))
        assert done.exit_code == 0, done.output
        assert RunFolder.open("r").config.style == "compact", "as the weakest needs it"
        scripted = type_in("run", "tiny", "--until", "week:1", "--style", "full", "--routing", "routing.yaml", "--out", "s")
        assert scripted.exit_code == 2
        assert "openai:other at" in scripted.output
