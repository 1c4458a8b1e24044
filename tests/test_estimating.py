"""What a run will take: counted on a rehearsal whose answers are as long as measured ones."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave import driving
from taskweave.backbones import local
from taskweave.backbones.lengths import Lengths, Planned, StepLength, read_lengths, shipped_lengths
from taskweave.backbones.probed import Probed, keep
from taskweave.backbones.scripted import STEPS, TOOL
from taskweave.backbones.scripted.small import QUESTIONS
from taskweave.backbones.stretched import fitted, free_texts, stretched
from taskweave.driving import Organization
from taskweave.engine.reader import JournalReader
from taskweave.errors import BadInput, FileInvalid
from taskweave.estimating import Row, Span, estimate, lengths_from
from taskweave.exports.lengths import prompts_mark
from taskweave.prompts import PromptBook
from taskweave.records import StyleName, tokens
from tests import loopback
from tests.endpoints import Endpoint
from tests.loopback import Loopback
from tests.simulated import WORKSHOP

MODEL = "openai:gpt-4o-mini"
HEAD = "as_of: 2026-01-31\nmeasured_on: x\n"
SCHEMA = {
    "type": "object",
    "properties": {
        "plan": {"type": "string"},
        "owner": {"type": "string", "enum": ["ceo", "the head of all that is made and sold here, and of all who make and sell it"]},
        "focus": {"type": "array", "items": {"type": "string"}},
    },
}
ANSWER = {
    "plan": "We repair forty chairs until Friday, and say so. Then the tables follow, with new varnish. Nobody waits for long.",
    "owner": "the head of all that is made and sold here, and of all who make and sell it",
    "focus": ["chairs", "tables"],
}


# ---------------------------------------------------------------- answers of a measured length
@pytest.mark.parametrize("length", [40, 60, 90, 200, 1000])
def test_an_answer_is_made_as_long_as_measured_and_stays_the_answer_that_it_was(length: int) -> None:
    text = fitted(json.loads(json.dumps(ANSWER)), SCHEMA, length)
    found = json.loads(text)
    assert tokens(text) == pytest.approx(length, abs=max(3, length // 50))
    assert (found["owner"], found["focus"]) == (ANSWER["owner"], ANSWER["focus"]), "choices and short texts stay"
    assert found["plan"].startswith("We repair")


def test_a_text_that_cannot_become_so_short_keeps_its_first_word() -> None:
    assert json.loads(fitted(json.loads(json.dumps(ANSWER)), SCHEMA, 1))["plan"] == "We"
    assert stretched("Nobody waits.", 0) == "Nobody"


def test_a_text_is_stretched_by_its_own_sentences_and_cut_between_words() -> None:
    assert stretched("One is. Two are.", 40) == "One is. Two are. One is. Two are. One"
    assert stretched("Größe zählt überall.", 14) == "Größe zählt"


def test_texts_that_are_choices_are_not_touched() -> None:
    value = {"tasks": [{"title": "A", "activity": "plan"}, {"title": "B", "activity": "test"}]}
    item = {"type": "object", "properties": {"title": {"type": "string"}, "activity": {"type": "string", "enum": ["plan", "test"]}}}
    schema = {"type": "object", "properties": {"tasks": {"type": "array", "items": item}}}
    assert [holder[key] for holder, key in free_texts(value, schema)] == ["A", "B"]


# ---------------------------------------------------------------- files of lengths
def test_the_shipped_lengths_know_every_step_and_say_on_what_they_rest() -> None:
    assert shipped_lengths().steps.keys() == {*STEPS, TOOL}
    assert shipped_lengths("compact").steps.keys() == QUESTIONS.keys()
    for style in ("full", "compact"):
        assert "no model was asked" in shipped_lengths(style).measured_on


def test_lengths_are_written_as_they_are_read(tmp_path: Path) -> None:
    steps = {"execute": StepLength(completion=210.5, text=200, again=1.25), "decompose": StepLength(completion=300, items=3.5)}
    planned = Planned(organization="Äpfel & Co", weeks=8, share=0.625, prompts="p0123")
    lengths = Lengths(as_of="2026-01-31", measured_on='a run: "pilot"', prompt_factor=0.91, steps=steps, planned=planned)
    file = tmp_path / "lengths.yaml"
    file.write_text(lengths.text(), encoding="utf-8")
    assert read_lengths(file) == lengths


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{HEAD}prompt_factor: 1\nsteps:\n  execute: {{completion: 0}}", ":5: steps.execute.completion: '0' must be more than 0"),
        (f"{HEAD}prompt_factor: 1\nsteps:\n  execute: {{mean: 3}}", ":5: steps.execute needs the key 'completion'"),
        ("measured_on: x\nprompt_factor: 1\nsteps: {execute: {completion: 3}}", "needs the key 'as_of'"),
        (f"{HEAD}prompt_factor: none\nsteps: {{execute: {{completion: 3}}}}", ":3: prompt_factor: 'none' is not a number"),
        (f"{HEAD}prompt_factor: 1\nsteps: {{execute: {{completion: 3, again: 0.5}}}}", ":4: steps.execute.again: '0.5' must be"),
        (
            f"{HEAD}prompt_factor: 1\nsteps:\n  dance: {{completion: 3}}",
            ":5: a step in steps: there is no step 'dance'; did you mean 'diagnose'?",
        ),
        (
            f"{HEAD}prompt_factor: 1\nsteps: {{exekute: {{completion: 3}}}}",
            ":4: a step in steps: there is no step 'exekute'; did you mean 'execute'?",
        ),
        ("", ":1: is empty"),
    ],
)
def test_a_file_of_lengths_that_cannot_be_used_is_named_with_line_and_reason(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "lengths.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FileInvalid) as trouble:
        lengths_from(file)
    assert f"{file}" in str(trouble.value)
    assert said in str(trouble.value)


def test_lengths_that_are_nowhere_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="there is no such file"):
        lengths_from(tmp_path / "nothing.yaml")
    with pytest.raises(BadInput, match="there is no run in it"):
        lengths_from(tmp_path)


# ---------------------------------------------------------------- the estimate
def near(run: tw.Run, span: Span) -> tuple[float, float]:
    """How far an estimate is from what a run used, of prompt and of completion tokens: 0.1 is 10 % too much."""
    now = run.status()
    return span.total.prompt / now.prompt_tokens - 1, span.total.completion / now.completion_tokens - 1


@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_with_the_lengths_of_a_finished_run_the_estimate_is_within_a_tenth_of_what_it_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, factor: float
) -> None:
    monkeypatch.setattr(loopback, "_LONG", {name: int(words * factor) for name, words in loopback._LONG.items()})
    with Loopback() as server:
        run = tw.simulate("tiny", until="week:8", out=tmp_path / "r", backbone=MODEL, base_url=server.url, look=False)
    (file,) = run.export(tmp_path / "lengths.yaml", "lengths")
    (span,) = estimate(Organization.load("tiny"), backbone=MODEL, until="week:8", lengths=lengths_from(file)).spans
    assert all(abs(off) <= 0.1 for off in near(run, span)), near(run, span)


@pytest.mark.parametrize("style", ["full", "compact"])
def test_so_it_is_with_tools_in_both_styles(tmp_path: Path, style: StyleName) -> None:
    org = Organization(WORKSHOP.replace("count: 2,", "count: 2, tools: [sqlite, wiki, email],") + "tools: on\n")
    with Loopback() as server:
        run = tw.simulate(org, until="week:8", out=tmp_path / "r", backbone=MODEL, base_url=server.url, look=False, style=style)
    (file,) = run.export(tmp_path / "lengths.yaml", "lengths")
    lengths = lengths_from(file)
    made = Counter(row["prompt"] for row in run.table("calls"))
    used = {name for name in made if name.startswith("execute_tool")}
    assert used == ({"execute_tool"} if style == "full" else {"execute_tool", "execute_tool_arguments"})
    found = estimate(org, backbone=MODEL, until="week:8", lengths=lengths, style=style)
    (span,) = found.spans
    assert all(abs(off) <= 0.1 for off in near(run, span)), near(run, span)
    rows = {row.name: row.calls for row in span.steps}
    for name in used:
        assert rows[name] / rows["execute"] == pytest.approx(made[name] / made["execute"], rel=0.1)
    assert not used & set(found.unmeasured)


@pytest.mark.fire
@pytest.mark.parametrize(("name", "until"), [("startup", "week:6"), ("company_a", "quarter:1")])
def test_so_it_is_for_larger_organizations(tmp_path: Path, name: str, until: str) -> None:
    with Loopback() as server:
        run = tw.simulate(name, until=until, out=tmp_path / "r", backbone=MODEL, base_url=server.url, look=False)
    (span,) = estimate(Organization.load(name), backbone=MODEL, until=until, lengths=lengths_from(run.path)).spans
    assert all(abs(off) <= 0.1 for off in near(run, span)), near(run, span)


def test_what_was_asked_to_look_at_an_endpoint_is_no_step_with_a_length(tmp_path: Path) -> None:
    with Endpoint() as server:
        run = tw.simulate("tiny", until="week:1", out=tmp_path / "r", backbone="openai:any", base_url=server.url)
    with JournalReader(run.folder.journal_path) as journal:
        assert "look" in journal.sites()
    (file,) = run.export(tmp_path / "lengths.yaml", "lengths")
    assert read_lengths(file).steps.keys() <= shipped_lengths().steps.keys()


def test_questions_that_were_asked_again_are_paid_again(tmp_path: Path) -> None:
    with Loopback(faults=["nonsense", "prose", "null"] * 12) as server:
        run = tw.simulate("tiny", until="week:8", out=tmp_path / "r", backbone=MODEL, base_url=server.url, limit=1, look=False)
    lengths = lengths_from(run.path)
    assert max(step.again for step in lengths.steps.values()) > 1
    (span,) = estimate(Organization.load("tiny"), backbone=MODEL, until="week:8", lengths=lengths).spans
    assert abs(span.total.calls / run.status().calls - 1) < 0.1
    assert all(abs(off) <= 0.1 for off in near(run, span)), near(run, span)


def test_an_estimate_adds_up_by_step_level_and_role_and_the_quarter_is_part_of_it() -> None:
    found = estimate(Organization(WORKSHOP), backbone=MODEL, until="week:14")
    assert [span.until for span in found.spans] == ["quarter:1", "week:14"]
    first, whole = found.spans
    assert 0 < first.total.prompt < whole.total.prompt
    for span in found.spans:
        for rows in (span.steps, span.levels, span.roles):
            for place in range(1, 5):
                assert sum(row[place] for row in rows) == pytest.approx(span.total[place])  # type: ignore[misc]
        assert [row.name for row in span.levels] == ["year", "quarter", "month", "week", "execution"]
        assert {row.name for row in span.roles} == {"Head", "Joiner"}
        assert span.hours is None
    assert found.unmeasured == ()
    alone = estimate(Organization(WORKSHOP), backbone=MODEL, until="quarter:1").spans[0]
    assert first == alone, "a run of a quarter takes as much"


def test_where_less_was_planned_than_the_stand_in_plans_less_is_executed() -> None:
    def counted(**more: Any) -> dict[str, Row]:
        lengths = replace(shipped_lengths(), **more)
        (span,) = estimate(Organization(WORKSHOP), backbone=MODEL, until="week:3", lengths=lengths).spans
        return {row.name: row for row in span.levels}

    whole, mark = counted(), prompts_mark(PromptBook.load())
    half = counted(planned=Planned(organization="Workshop", weeks=3, share=0.3, prompts=mark))
    other = counted(planned=Planned(organization="Another", weeks=3, share=0.3, prompts=mark))
    assert counted(planned=Planned(organization="Workshop", weeks=3, share=0.3, prompts="p0")) == whole, "asked with other prompts"
    assert 0.3 < half["execution"].calls / whole["execution"].calls < 0.6
    assert half["week"].calls == whole["week"].calls
    assert other == whole


def test_longer_answers_make_longer_prompts() -> None:
    def counted(**more: StepLength) -> Span:
        lengths = Lengths(as_of="2026-01-31", measured_on="x", prompt_factor=1, steps={**shipped_lengths().steps, **more})
        return estimate(Organization(WORKSHOP), backbone=MODEL, until="week:3", lengths=lengths).spans[0]

    def merge(span: Span) -> Row:
        return next(row for row in span.steps if row.name == "merge")

    assert merge(counted(execute=StepLength(completion=400))).prompt > merge(counted()).prompt


def test_a_step_that_was_not_measured_is_named_and_has_its_shipped_length() -> None:
    lengths = Lengths(as_of="2026-01-31", measured_on="x", prompt_factor=2, steps={"execute": StepLength(completion=100)})
    found = estimate(Organization(WORKSHOP), backbone=MODEL, until="week:1", lengths=lengths)
    assert {"formulate", "decompose"} <= set(found.unmeasured)
    by = {row.name: row for row in found.spans[0].steps}
    assert by["execute"].completion == 100 * by["execute"].calls
    assert by["formulate"].completion == shipped_lengths().steps["formulate"].completion * by["formulate"].calls


def test_hours_come_from_a_probe_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    url = "http://127.0.0.1:9/v1"
    keep(Probed(backbone=MODEL, base_url=url, at="2999-01-01T00:00:00+00:00", rates={"1": 10.0, "8": 40.0, "16": 80.0}))
    org = Organization(WORKSHOP)
    eight = estimate(org, backbone=MODEL, base_url=url, until="week:1", limit=9)
    one = estimate(org, backbone=MODEL, base_url=url, until="week:1", limit=1)
    assert eight.speed == (8, 40.0)
    assert one.spans[0].hours == pytest.approx(one.spans[0].total.completion / 10 / 3600)


def test_the_style_of_an_estimate_is_that_of_the_run_whatever_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setattr(local, "find_spec", lambda name: name)  # as if the runtime were there
    file = tmp_path / "weak.gguf"
    file.write_bytes(b"GGUF")
    monkeypatch.setattr(local, "_packaged", lambda: file)
    routes = tmp_path / "routing.yaml"
    routes.write_text("routes: [{step: merge, backbone: 'openai:small', base_url: 'http://127.0.0.1:9/v1'}]", encoding="utf-8")
    at = "2999-01-01T00:00:00+00:00"
    keep(Probed(backbone="openai:weak", base_url=None, at=at, style="compact", structured=False))
    keep(Probed(backbone="openai:short", base_url=None, at=at, context=4_000, limit=5_000, structured=True, rung="json_schema"))
    keep(Probed(backbone="openai:good", base_url=None, at=at, structured=True, rung="json_schema"))
    keep(Probed(backbone="openai:small", base_url="http://127.0.0.1:9/v1", at=at, style="compact", structured=False))
    org, recorded = Organization(WORKSHOP), tw.simulate(Organization(WORKSHOP), out=tmp_path / "r", until="week:1", style="compact")
    given: list[tuple[str, Path | None]] = [
        *(("local", None), (f"local:{file}", None), ("openai:weak", None), ("openai:short", None), ("openai:good", None)),
        *(("openai:unknown", None), ("scripted", None), (f"replay:{recorded.path}", None), ("openai:good", routes)),
    ]
    for number, (backbone, routing) in enumerate(given):
        monkeypatch.setattr(local.Local, "make_ready", lambda self: None)
        folder, _ = driving.begin(
            org, out=tmp_path / f"run-{number}", backbone=backbone, seed=1, until="week:1", base_url=None, prompts=[], assign="match",
            incidents=[], limit=4, patience=60, tags={}, look=False, routing=routing,
        )  # fmt: skip
        found = estimate(org, backbone=backbone, until="week:1", routing=routing)
        assert found.style == folder.config.style, backbone
    assert estimate(org, backbone="local", until="week:1", style="full").style == "full"


def test_what_a_run_refuses_an_estimate_refuses_too(tmp_path: Path) -> None:
    org, file = Organization(WORKSHOP), tmp_path / "routing.yaml"
    file.write_text("routes: [{step: merge, backbone: 'openai:m', base_url: 'file:///etc/passwd'}]", encoding="utf-8")
    with pytest.raises(BadInput, match="routing.yaml:1: base URL 'file:///etc/passwd' is not one"):
        estimate(org, backbone="openai:good", until="week:1", routing=file)
    with pytest.raises(BadInput, match="base URL 'file:///etc/passwd' is not one"):
        estimate(org, backbone="openai:good", base_url="file:///etc/passwd", until="week:1")
    with pytest.raises(BadInput, match="has no meaning for the backbone 'scripted'"):
        estimate(org, backbone="scripted", base_url="http://127.0.0.1:9/v1", until="week:1")


def test_an_estimate_without_a_price_has_no_cost_and_what_is_no_backbone_is_refused() -> None:
    org = Organization(WORKSHOP)
    assert estimate(org, backbone="openai:unheard-of", until="week:1").spans[0].total.cost is None
    assert estimate(org, backbone="scripted", until="week:1").spans[0].total.cost == 0
    with pytest.raises(BadInput, match="unknown backbone"):
        estimate(org, backbone="gpt", until="week:1")


def test_what_is_routed_elsewhere_costs_what_it_costs_there(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(
        "routes: [{step: execute, backbone: scripted}, {step: merge, backbone: 'openai:gpt-4o', name: second}]", encoding="utf-8"
    )
    plain, routed = (
        estimate(Organization.load("tiny"), backbone="openai:gpt-4o-mini", until="week:1", routing=given).spans[0] for given in (None, file)
    )
    assert (plain.backbones, routed.total.calls) == ((), plain.total.calls)
    costs = {row.name: row.cost for row in routed.backbones}
    assert costs.keys() == {"scripted", "openai:gpt-4o-mini", "openai:gpt-4o#second"}
    assert costs["scripted"] == 0
    steps = {row.name: row for row in routed.steps}
    assert steps["execute"].cost == 0
    assert (
        costs["openai:gpt-4o#second"]
        == steps["merge"].cost
        == pytest.approx(steps["merge"].prompt * 2.5e-6 + steps["merge"].completion * 1e-5)
    )
    assert routed.total.cost == pytest.approx(sum(cost or 0 for cost in costs.values()))
