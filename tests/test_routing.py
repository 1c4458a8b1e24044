"""Which backbone answers what: routes by tier, role and step, from the file to the tables."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
import taskweave.driving as driving
from taskweave.api import Run
from taskweave.backbones.routing import EXECUTED, Routed, Routes, idle, read_routes
from taskweave.backbones.scripted import Scripted
from taskweave.errors import BadInput, Divergence, RoutingInvalid
from taskweave.org.schema import parse
from taskweave.prompts import PromptBook
from taskweave.records import Completion, Request, step_of
from taskweave.report.closing import closing, render
from taskweave.report.status import answers_told
from tests.cli.door import refused, type_in
from tests.loopback import Loopback
from tests.samples import INPUTS
from tests.simulated import WORKSHOP, rows

BY_STEP = """
routes:
  - {step: [execute, merge], backbone: openai:small, base_url: URL}
  - {tier: 1, backbone: openai:large}
"""
TWICE = """
routes:
  - {step: execute, role: Joiner, backbone: scripted, name: joiners}
  - {tier: [1], backbone: scripted, name: heads}
"""


def routes(text: str) -> Routes:
    return read_routes(text, "routing.yaml", parse(WORKSHOP, "workshop.yaml"))


def written(where: Path, text: str) -> Path:
    file = where / "routes.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def run_with(where: Path, text: str, **given: Any) -> Run:
    where.mkdir()
    given = {"until": "week:2", "out": where / "run"} | given
    return tw.simulate(driving.Organization(WORKSHOP), routing=written(where, text), **given)


# ---------------------------------------------------------------- choosing
def test_the_first_route_that_fits_counts_and_what_none_takes_goes_to_the_runs_own_backbone() -> None:
    chosen = routes(BY_STEP).chosen
    assert chosen("execute", 1, "Head") == "openai:small"
    assert chosen("formulate", 1, "Head") == "openai:large"
    assert chosen("execute", 2, "Joiner") == "openai:small"
    assert chosen("decompose", 2, "Joiner") is None


def test_a_route_fits_only_where_all_that_it_names_does() -> None:
    chosen = routes(TWICE).chosen
    assert chosen("execute", 2, "Joiner") == "scripted:#joiners"
    assert chosen("merge", 2, "Joiner") is None
    assert chosen("execute", 1, "Head") == "scripted:#heads"


# ---------------------------------------------------------------- running
def test_each_server_gets_exactly_the_steps_that_are_routed_to_it_and_tables_say_which_wrote_what(tmp_path: Path) -> None:
    with Loopback() as large, Loopback() as small:
        run = run_with(tmp_path / "a", BY_STEP.replace("URL", small.url), base_url=large.url, look=False)
        assert run.outcome is not None
        assert run.outcome.stop is None
        asked = {server: {r["response_format"]["json_schema"]["name"] for r in server.requests} for server in (large, small)}
        assert asked[small] == {"execute", "merge"}
        assert "formulate" in asked[large]
        assert not asked[large] & asked[small]
        assert ({r["model"] for r in large.requests}, {r["model"] for r in small.requests}) == ({"large"}, {"small"})
        sent = len(large.requests), len(small.requests)
    used = {name: tuple(totals[key] for key in ("calls", "asked")) for name, totals in run.status().backbones.items()}
    assert {name: calls for name, (calls, _) in used.items()} == {"openai:large": sent[0], "openai:small": sent[1]}
    assert all(asked_ <= calls for calls, asked_ in used.values())
    assert {row["backbone"] for row in run.provenance()} == {"openai:small"}
    assert {row["origin"] for table in (run.results(), run.tasks(), run.subtasks()) for row in table} <= {"model", "fallback"}
    assert run.status().origin == "model"


def test_what_scripted_and_a_model_wrote_in_one_run_is_told_apart(tmp_path: Path) -> None:
    with Loopback() as server:
        run = run_with(tmp_path / "a", "routes: [{step: execute, backbone: openai:m}]", base_url=server.url, look=False)
    assert {row["origin"] for row in run.results() if row["subtask"]} == {"model"}
    assert {row["origin"] for row in run.results() if row["subtask"] is None} == {"scripted"}
    assert {row["origin"] for row in run.subtasks()} == {"scripted"}
    now = run.status()
    assert (now.origin, now.cost) == ("mixed", None), "what the model took has a price"
    with run.pool() as pool:
        found = closing(pool, run.folder.organization(), run.folder.population(), answers_told(run.folder))
    assert [used.name for used in found.backbones] == ["openai:m", "scripted"]
    assert "By backbone" in str(getattr(render(found), "renderables", ())[7].title)


def test_a_routed_run_gives_one_digest_whatever_the_limit_and_that_of_an_unrouted_one_has_the_same_work(tmp_path: Path) -> None:
    one, many = (run_with(tmp_path / str(limit), TWICE, limit=limit) for limit in (1, 32))
    assert one.digest() == many.digest()
    assert {row["backbone"] for row in one.calls()} == {"scripted", "scripted:#heads", "scripted:#joiners"}
    plain = tw.simulate(driving.Organization(WORKSHOP), until="week:2", out=tmp_path / "plain")
    assert list(plain.results()) == list(one.results())


def test_the_file_is_kept_with_the_run_found_on_resume_and_noticed_when_edited(tmp_path: Path) -> None:
    run = run_with(tmp_path / "a", TWICE)
    (tmp_path / "a" / "routes.yaml").unlink()
    assert run.config.routing == "routing.yaml"
    calls = run.status().calls
    again = run.resume()
    assert (again.finished, again.status().calls) == (True, calls)
    longer = again.resume(until="week:3")
    straight = run_with(tmp_path / "b", TWICE, until="week:3")
    assert longer.digest() == straight.digest()
    kept = run.path / "routing.yaml"
    kept.write_text(TWICE.replace("Joiner", "Head") + "# a remark\n", encoding="utf-8")
    with pytest.raises(Divergence, match="changed since the run began: routing.yaml: route 1"):
        run.resume()
    kept.write_text(TWICE + "# a remark\n", encoding="utf-8")
    assert run.resume().finished, "a remark changes nothing"


def test_a_route_may_lead_to_the_object_that_answers_the_run(tmp_path: Path) -> None:
    asked: list[str] = []

    def merges(request: Any) -> Any:
        asked.append(request.backbone)
        return Scripted().answer(request)

    text = "routes: [{step: merge, backbone: scripted}, {step: execute, backbone: scripted, name: other}]"
    run = run_with(tmp_path / "a", text, backbone=Scripted({"merge": merges}))
    assert set(asked) == {"scripted"}
    assert {row["backbone"] for row in rows(run, "calls", prompt="execute")} == {"scripted:#other"}


def test_a_replay_answers_for_every_backbone_that_the_routes_name() -> None:
    asked: list[str] = []

    class Recorded(Scripted):
        async def complete(self, request: Request) -> Completion:
            asked.append(request.backbone)
            return Completion(text="{}")

    replayed = Routed(Recorded(), routes(BY_STEP.replace("URL", "http://127.0.0.1:9/v1")), spec="replay:runs/a")
    for name in ("openai:small", "openai:large", "scripted"):
        request = PromptBook.load().request("merge", INPUTS["merge"], schema=None, backbone=name)
        assert asyncio.run(replayed.complete(request)).text == "{}"
    assert asked == ["openai:small", "openai:large", "scripted"]


# ---------------------------------------------------------------- what is refused
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("routes: []", "routing.yaml:1: no route is named"),
        ("ways: []", "routing.yaml:1: unknown key 'ways'; there are 'routes'"),
        ("- a", "must be a mapping"),
        ("routes: [{step: execute}]", "routing.yaml:1: routes needs the key 'backbone'"),
        ("routes:\n  - {stepp: execute, backbone: scripted}", "routing.yaml:2: unknown key 'stepp'"),
        ("routes:\n  - {step: excute, backbone: scripted}", "there is no step 'excute'; did you mean 'execute'?"),
        ("routes:\n  - {role: Joinr, backbone: scripted}", "there is no role 'Joinr'; did you mean 'Joiner'?"),
        ("routes:\n  - {tier: 3, backbone: scripted}", "there is no tier '3'; there are '1', '2'"),
        ("routes:\n  - {tier: 1, role: Joiner, backbone: scripted}", "routing.yaml:2: no agent is of a tier and a role"),
        ("routes: [", "is not YAML"),
        ("", "is empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_line_reason_and_the_nearest_right_name(text: str, said: str) -> None:
    with pytest.raises(RoutingInvalid) as trouble:
        routes(text)
    assert said in str(trouble.value)


def test_every_problem_of_a_file_is_said_at_once() -> None:
    with pytest.raises(RoutingInvalid) as trouble:
        routes("routes:\n  - {step: nothing, backbone: scripted}\n  - {role: Nobody, backbone: scripted}\n")
    assert [problem.line for problem in trouble.value.problems] == [2, 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("routes:\n  - {step: merge, backbone: telepathy}", "routes.yaml:2: unknown backbone 'telepathy'"),
        ("routes:\n  - {step: merge, backbone: scripted, base_url: http://127.0.0.1:9/v1}", "has no meaning for the backbone 'scripted'"),
        ("routes:\n  - {step: merge, backbone: 'openai:m', base_url: nowhere}", "base URL 'nowhere' is not one"),
    ],
)
def test_a_backbone_that_cannot_be_asked_is_refused_before_anything_is_written(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadInput) as trouble:
        run_with(tmp_path / "a", text)
    assert said in str(trouble.value)
    assert not (tmp_path / "a" / "run").exists()


def test_two_urls_of_one_name_need_names_of_their_own(tmp_path: Path) -> None:
    text = """
routes:
  - {step: execute, backbone: openai:m, base_url: "http://127.0.0.1:9/v1"}
  - {step: merge, backbone: openai:m, base_url: "http://127.0.0.1:8/v1"}
"""
    with pytest.raises(RoutingInvalid, match="routes.yaml:4: 'openai:m' is asked at http://127.0.0.1:9/v1 already"):
        run_with(tmp_path / "a", text)
    named = read_routes(text.replace("openai:m, base_url: \"http://127.0.0.1:8", "openai:m, name: two, base_url: \"http://127.0.0.1:8"),
                        "r", parse(WORKSHOP, "w"))  # fmt: skip
    assert [route.identity for route in named.routes] == ["openai:m", "openai:m#two"]


def test_a_base_url_that_nothing_asks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no meaning for the backbone 'scripted'"):
        run_with(tmp_path / "a", TWICE, base_url="http://127.0.0.1:9/v1")


def test_the_command_line_takes_a_routing_file_and_shows_what_each_backbone_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = written(tmp_path, "routes: [{step: execute, backbone: scripted, name: writers}]")
    done = type_in("run", "tiny", "--until", "week:1", "--out", "r", "--routing", file)
    assert done.exit_code == 0, done.output
    assert "By backbone" in done.stdout
    told = type_in("status", "r").stdout
    assert "by backbone" in told
    assert "scripted:#writers" in told
    assert "none.yaml: there is no such file" in refused("run", "tiny", "--routing", "none.yaml")


# ---------------------------------------------------------------- routes that take nothing
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "routes: [{role: Joiner, step: decompose, backbone: scripted}]",
            "routing.yaml:1: this route (step decompose, role Joiner) takes nothing: nobody is asked that (Joiner is asked execute, merge)",
        ),
        (
            "routes:\n  - {step: [execute, merge], backbone: scripted}\n  - {role: Joiner, backbone: scripted}",
            "routing.yaml:3: this route (role Joiner) takes nothing: earlier routes take all of it",
        ),
        ("routes: [{backbone: scripted}, {backbone: scripted}]", "this route (anything) takes nothing: earlier routes take all of it"),
    ],
)
def test_a_route_that_takes_nothing_whatever_happens_is_named_with_the_reason(text: str, said: str) -> None:
    assert [why for why in idle(routes(text), parse(WORKSHOP, "workshop.yaml")) if said in why]


@pytest.mark.parametrize("name", ["tiny", "startup", "company_a"])
def test_no_route_is_called_idle_that_a_run_sends_something(tmp_path: Path, name: str) -> None:
    run = tw.simulate(name, until="week:2", out=tmp_path / "run")
    agents, org = {agent.id: agent for agent in run.folder.population().agents}, run.folder.organization()
    owners = {row["id"]: row["assignee"] for row in run.table("subtasks")} | {row["id"]: row["agent"] for row in run.table("results")}
    asked = set()
    for call in run.table("calls"):
        place, _, step = call["site"].rpartition(":")
        agent = owners[place] if step in EXECUTED else place.partition("@")[2].partition("/")[0]
        asked.add((step_of(call["prompt"]), agents[agent].role))
    assert len(asked) > 10
    for step, role in sorted(asked):
        text = f"routes: [{{step: {step}, role: {role!r}, backbone: scripted}}]"
        assert idle(read_routes(text, "r", org), org) == []


def test_run_and_estimate_say_which_route_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "routes: [{step: execute, backbone: scripted, name: a}, {step: execute, backbone: scripted, name: b}]")
    for words in (["run", "tiny", "--out", "r"], ["estimate", "tiny"]):
        done = type_in(*words, "--until", "week:1", "--routing", "routes.yaml")
        assert done.exit_code == 0, done.output
        assert "routes.yaml:1: this route (step execute) takes nothing" in " ".join(done.stderr.split())
