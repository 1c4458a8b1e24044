"""What is measured can be asked for by one command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from benchmarks import __main__ as benchmarks
from benchmarks.answering import Answering


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The engine's measurements take minutes: here it is only told that they were asked for."""
    asked: list[str] = []
    monkeypatch.setattr(benchmarks.engine, "main", lambda: asked.append("engine"))
    return asked


def test_without_a_run_the_engine_is_measured_and_what_a_year_takes(
    measured: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmarks.tokens, "main", lambda words: measured.append(f"tokens {words}") or 0)
    assert benchmarks.main([]) == 0
    assert measured == ["engine", "tokens []"]
    assert capsys.readouterr().out == ""


def test_with_a_run_its_texts_are_too(tmp_path: Path, measured: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    tw.simulate("tiny", until="week:1", out=tmp_path / "r")
    assert benchmarks.main([str(tmp_path / "r"), "--pairs", "10", "--seed", "7"]) == 0
    assert measured == ["engine"]
    assert "4-grams shared by two deliverables of different tasks (seed 7)" in capsys.readouterr().out


def test_what_is_wrong_with_the_words_is_said_before_anything_is_measured(tmp_path: Path, measured: list[str]) -> None:
    assert benchmarks.main([str(tmp_path / "nowhere")]) == 2
    with pytest.raises(SystemExit):
        benchmarks.main(["--pairs", "10"])
    assert measured == []


@pytest.mark.parametrize("words", [[], ["--scripted"]])
def test_tokens_are_measured_alone_with_the_bar_beside_each(
    words: list[str], measured: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert benchmarks.main(["tokens", "tiny", "--until", "week:1", *words]) == 0
    said = capsys.readouterr().out
    assert measured == []
    for figure in (
        "an executed subtask: uncached prompt tokens",
        "execution alone: calls",
        "<= 10,000",
        "list prices",
        "executed subtasks",
    ):
        assert figure in said
    assert ("(computed)" in said) == bool(words)
    assert benchmarks.main(["tokens", "nowhere"]) == 2


def asked(words: str, most: int = 500) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"content": {"type": "string"}, "kind": {"type": "string", "enum": ["brief", "plan"]}}}
    messages = [{"role": "system", "content": "A firm that repairs chairs. " * 200}, {"role": "user", "content": words}]
    return {"model": "m", "messages": messages, "max_tokens": most, "response_format": {"json_schema": {"schema": schema}}}


def test_the_server_answers_as_long_as_it_is_asked_and_tells_what_it_had_before() -> None:
    with Answering() as server:
        first = server.completion(asked("Today is Monday. Write no brief. One of these kinds: plan, report. 80 to 90 words."))
        second = server.completion(asked("Today is Tuesday. Write no brief. One of these kinds: plan, report. 80 to 90 words.", most=20))
    answer = json.loads(first["choices"][0]["message"]["content"])
    assert 80 <= len(answer["content"].split()) <= 90
    assert answer["kind"] == "plan"
    assert first["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    assert second["choices"][0]["finish_reason"] == "length"
    assert second["usage"]["completion_tokens"] == 20
    assert second["usage"]["prompt_tokens_details"] == {"cached_tokens": 1408}
