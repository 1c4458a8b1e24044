"""What is measured can be asked for by one command, and is measured as it says.  How much it is is nobody's test."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from benchmarks import __main__ as benchmarks
from benchmarks import growth, rows, texts, tokens
from benchmarks.answering import Answering
from benchmarks.process import Measured, simulated
from benchmarks.table import Row, fraction, megabytes, render, seconds
from benchmarks.waiting import Latent, Waited
from taskweave.engine.stats import Pace
from taskweave.org.delegation import Delegation
from taskweave.org.population import Population
from taskweave.org.schema import parse
from tests.workshop import question

SMALLEST = rows.Scale(
    organization="tiny",
    large="tiny",
    until="week:1",
    asked=20,
    chained=10,
    repeated=30,
    waits=(rows.Wait(0.001, 2, 1.25),),
    sizes=(6, 15),
    growing="week:1",
    whole=False,
)


@pytest.mark.parametrize("name", rows.ROWS)
def test_each_row_can_be_measured(name: str) -> None:
    found = rows.measured(name, SMALLEST)
    assert found
    assert all(row.over for row in found if row.bar is not None)
    lacking = [row.what for row in found if row.value is None]
    assert lacking == (["mean prompt tokens, week 1 / week 4"] if name == "tokens" else [])
    assert all(row.value > 0 for row in found if row.value is not None and "exponent" not in row.what)


def test_what_is_asked_for_is_measured_and_nothing_else(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def one(name: str, bar: float) -> Any:
        return lambda scale: [Row(f"{name} to {scale.until}", 2.0, bar, "all of it", fraction)]

    for module in (benchmarks, rows):
        monkeypatch.setattr(module, "ROWS", {"year": one("year", 3.0), "call": one("call", 1.0)})
    assert benchmarks.main([]) == 0
    assert "year to year" in (said := capsys.readouterr().out)
    assert "call to year" in said
    assert "1 of 2 bars met" in said
    assert benchmarks.main(["call", "--quick"]) == 0
    assert "year to quarter" not in (said := capsys.readouterr().out)
    assert "0 of 1 bars met" in said
    assert benchmarks.main(["year", "--quick"]) == 0
    assert "0 of 0 bars met" in capsys.readouterr().out  # that bar is a year's


def test_a_row_that_there_is_not_is_refused_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        benchmarks.main(["year", "runs/company-a-1"])
    assert ended.value.code == 2
    assert "python -m benchmarks.texts runs/company-a-1" in capsys.readouterr().err


def test_the_table_has_a_line_a_figure_with_its_bar_and_whether_it_was_met() -> None:
    assert render(
        [
            Row("wall clock", 12.34, 10, "2,600 subtasks", seconds),
            Row("peak memory", 87e6, 250e6, "", megabytes),
            Row("subtasks for each", 5.5, 5.5, "once", fraction, least=True),
            Row("subtasks for all", 5.0, 5.5, "once", fraction, least=True),
            Row("no bar", 1.0, None, "", fraction),
            Row("no value", None, 1.0, "", fraction),
        ]
    ) == [
        "what               measured  bar        met  over",
        "wall clock           12.3 s  <= 10.0 s  NO   2,600 subtasks",
        "peak memory           87 MB  <= 250 MB  yes",
        "subtasks for each      5.50  >= 5.50    yes  once",
        "subtasks for all       5.00  >= 5.50    NO   once",
        "no bar                 1.00",
        "no value                  –  <= 1.00",
    ]


def test_a_process_that_fails_is_said_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"python -m taskweave run nowhere .* ended with 2: .*nowhere"):
        simulated("nowhere", tmp_path / "run")


# ---------------------------------------------------------------- growth
@pytest.mark.parametrize("power", [0.0, 1.0, 1.7])
def test_the_exponent_is_the_power_with_which_a_value_grows(power: float) -> None:
    assert growth.exponent([500, 4_000, 41_000], [3 * size**power for size in (500, 4_000, 41_000)]) == pytest.approx(power)


def test_the_exponent_is_fitted_by_least_squares() -> None:
    assert growth.exponent([1, 10, 100], [1, 100, 100]) == pytest.approx(1.0)  # 0, 2, 2 over 0, 1, 2


def test_time_and_memory_are_held_against_subtasks_and_against_agents() -> None:
    sizes = [growth.Size(n, Measured(wall=n**2, cpu=n, memory=1000, subtasks=n**2)) for n in (10, 100, 1000)]
    assert growth.exponents(sizes) == pytest.approx(growth.Exponents(1.0, 0.5, 0.0, 2.0, 1.0, 0.0))


@pytest.mark.parametrize("agents", [5, 15, 40, 100, 200, 1_000])
def test_an_organization_has_so_many_agents_of_known_roles_and_heads_of_a_few_reports(agents: int) -> None:
    odd: list[str] = []
    org = parse(growth.organization(agents), "growth.yaml", warn=odd)
    assert odd == []  # such as a role that the catalogue does not know
    population = Population.sample(org, 1)
    delegation = Delegation(org, population)
    reports = [len(delegation.reports(agent.id)) for agent in population if delegation.reports(agent.id)]
    assert len(population) == agents
    assert org.tiers == (3 if agents < 190 else 4)
    assert max(reports) <= 15
    assert agents < 100 or min(reports[1:]) >= 8


@pytest.mark.parametrize("agents", [1, 4, 5_000])
def test_no_organization_is_made_of_too_few_or_too_many(agents: int) -> None:
    with pytest.raises(ValueError, match=f"no organization of {agents} agents"):
        growth.organization(agents)


# ---------------------------------------------------------------- waiting
def test_wall_clock_is_held_against_what_the_latencies_allow() -> None:
    chained = Waited(Pace(wall=3.0, answers=2, latencies=2.0, critical_path=2.0, limit=1), measured=2.1)
    beside = Waited(Pace(wall=3.0, answers=8, latencies=8.0, critical_path=1.0, limit=4), measured=8.1)
    assert (chained.over_bound, beside.over_bound) == (1.5, 1.5)
    assert beside.speedup == pytest.approx(8 / 3)


def test_latencies_are_drawn_by_request_around_their_mean() -> None:
    def of(seed: int) -> float:
        return Latent(0.02).latency(replace(question("execute"), seed=seed))

    drawn = [of(seed) for seed in range(4_000)]
    assert drawn == [of(seed) for seed in range(4_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(0.02, rel=0.05)
    assert max(drawn) > 2 * 0.02


# ---------------------------------------------------------------- texts and tokens
def test_the_texts_of_a_run_are_measured_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tw.simulate("tiny", until="week:1", out=tmp_path / "r")
    assert texts.main([str(tmp_path / "r"), "--pairs", "10", "--seed", "7"]) == 0
    assert "4-grams shared by two deliverables of different tasks (seed 7)" in capsys.readouterr().out
    assert texts.main([str(tmp_path / "nowhere")]) == 2


@pytest.mark.parametrize("words", [[], ["--scripted"]])
def test_tokens_are_measured_alone_with_the_bar_beside_each(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert tokens.main(["tiny", "--until", "week:1", *words]) == 0
    said = capsys.readouterr().out
    for figure in (
        "an executed subtask: uncached prompt tokens",
        "execution alone: calls",
        "<= 10,000",
        "list prices",
        "executed subtasks",
    ):
        assert figure in said
    assert ("(computed)" in said) == bool(words)
    assert tokens.main(["nowhere"]) == 2


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
