"""A probe names what an endpoint can and what it cannot: real servers, each with one flaw."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from taskweave.backbones import local
from taskweave.backbones.openai import OpenAI
from taskweave.backbones.probe import Found
from taskweave.backbones.probed import FRESH, Probed, keep, recall, style_for
from taskweave.backbones.reach import Canary, Reach, reach
from taskweave.errors import Refused, Transient
from taskweave.records import Completion, Request
from tests.cli.door import refused, type_in
from tests.endpoints import Endpoint


def probe(server: Endpoint, *words: str) -> dict[str, Any]:
    """What `taskweave probe --json` says of a server."""
    done = type_in("probe", "--backbone", "openai:any", "--base-url", server.url, "--json", *words)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def table(server: Endpoint) -> str:
    """What `taskweave probe` says to a person, in one line."""
    done = type_in("probe", "--backbone", "openai:any", "--base-url", server.url)
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_of_a_good_endpoint_everything_is_found_with_few_calls() -> None:
    with Endpoint() as server:
        found = probe(server)
    assert (found["reachable"], found["listed"], found["usage"], found["rung"]) == (True, False, True, "json_schema")
    assert (found["seed_repeats"], found["structured"], found["style"]) == (True, True, "full")
    assert found["context"] >= 16_000
    assert (found["limit"], found["cut"], found["omitted"]) == (None, None, [])
    assert list(found["rates"]) == ["1", "8", "16"]
    assert all(rate > 0 for rate in found["rates"].values())
    assert found["cost"]["calls"] == len(server.requests) <= 40
    assert found["cost"]["prompt_tokens"] < 60_000


@pytest.mark.parametrize("usage", [True, False])
def test_an_endpoint_that_cuts_prompts_silently_is_named_with_what_raises_it(usage: bool) -> None:
    with Endpoint(window=2_048, usage=usage) as server:
        found, said = probe(server), table(server)
    assert found["cut"] is True
    assert 1_500 < found["context"] <= 2_048 < found["limit"] < 3_000
    assert found["style"] == "compact"
    assert "was cut at the front without a word" in said
    for setting in ("OLLAMA_CONTEXT_LENGTH", "num_ctx", "--ctx-size", "--max-model-len", "Context Length"):
        assert setting in said


def test_an_endpoint_that_refuses_long_prompts_is_told_from_one_that_cuts_them() -> None:
    with Endpoint(window=2_048, honest=True) as server:
        found = probe(server)
    assert found["cut"] is False
    assert found["context"] <= 2_048 < found["limit"]


def test_an_endpoint_that_knows_plain_chat_only_is_named() -> None:
    with Endpoint(forms=()) as server:
        found, said = probe(server), table(server)
    assert (found["rung"], found["structured"], found["style"]) == ("plain", True, "compact")
    assert "plain chat only" in said


def test_an_endpoint_that_takes_a_schema_and_does_not_keep_to_it_is_named() -> None:
    with Endpoint(keeping=False) as server:
        found = probe(server)
    assert (found["rung"], found["structured"], found["style"]) == ("plain", True, "compact")
    assert "json_schema is taken and then not held to" in found["notes"]["rung"]


def test_an_endpoint_that_knows_no_schemas_holds_the_next_form() -> None:
    with Endpoint(forms=("json_object",)) as server:
        found = probe(server)
    assert (found["rung"], found["style"]) == ("json_object", "full")


def test_an_endpoint_that_calls_tools_natively_is_told_from_others() -> None:
    with Endpoint() as server:
        assert probe(server)["tools"] is True
        assert "tool calls native" in table(server)
    with Endpoint(calls=None) as server:
        found = probe(server)
        assert (found["tools"], found["rung"]) == (False, "json_schema")
        assert "takes no tools" in found["notes"]["tools"]
    with Endpoint(calls=False) as server:
        found = probe(server)
        assert found["tools"] is False
        assert "'Recorded.'" in found["notes"]["tools"]


def test_an_endpoint_without_usage_is_named() -> None:
    with Endpoint(usage=False) as server:
        found, said = probe(server), table(server)
    assert found["usage"] is False
    assert found["context"] >= 16_000
    assert "not reported" in said


def test_an_endpoint_that_ignores_seeds_is_named() -> None:
    with Endpoint(seeds=False) as server:
        found, said = probe(server), table(server)
    assert found["seed_repeats"] is False
    assert "does not repeat" in said


def test_a_model_that_answers_in_prose_is_shown_with_its_words() -> None:
    with Endpoint(obedient=False) as server:
        found, said = probe(server), table(server)
    assert (found["rung"], found["structured"], found["style"]) == (None, False, "compact")
    assert "Yes, they fit." in said


def test_of_a_model_that_repeats_no_word_the_tokens_tell_what_was_read() -> None:
    with Endpoint(repeating=False) as server:
        assert probe(server)["context"] >= 16_000
    with Endpoint(repeating=False, window=2_048) as server:
        found = probe(server)
        assert (found["cut"], found["context"] <= 2_500, found["limit"] < 3_000) == (True, True, True)
    with Endpoint(repeating=False, usage=False) as server:
        found = probe(server)
        assert (found["context"], found["limit"]) == (None, None)
        assert "does not repeat a word" in found["notes"]["context"]


def test_what_was_not_answered_in_time_says_so_and_the_rest_is_kept() -> None:
    with Endpoint(faults=[None, *["hang"] * 60]) as server:
        found = probe(server, "--seconds", "4")
    assert found["reachable"] is True
    assert (found["rung"], found["seed_repeats"], found["rates"]) == (None, None, {})
    notes = [found["notes"][part] for part in ("rung", "seed", "context", "rates")]
    assert all("no answer within" in note or "no time left" in note for note in notes)


def test_an_endpoint_that_is_not_there_ends_with_75_and_keeps_nothing() -> None:
    done = type_in("probe", "--backbone", "openai:any", "--base-url", "http://127.0.0.1:9/v1", "--json")
    assert done.exit_code == 75
    assert "no connection to 127.0.0.1:9" in json.loads(done.stdout)["error"]
    assert recall("openai:any", "http://127.0.0.1:9/v1") is None


def test_a_wrong_key_and_an_unknown_model_end_with_75_in_the_providers_words() -> None:
    with Endpoint(faults=["key"]) as server:
        done = type_in("probe", "--backbone", "openai:loopbak", "--base-url", server.url)
    assert done.exit_code == 75
    assert "Incorrect API key" in done.stderr
    assert "among them loopback" in done.stderr


def test_a_file_that_is_no_model_is_bad_input_as_it_is_for_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(self: local.Local) -> None:
        raise Refused("half.gguf: cannot be loaded as a model")

    monkeypatch.setattr(local, "find_spec", lambda name: name)  # as if the runtime were there
    monkeypatch.setattr(local.Local, "make_ready", cannot)
    half = tmp_path / "half.gguf"
    half.write_bytes(b"GGUF")
    for words in (["probe"], ["run", "tiny", "--out", str(tmp_path / "r")]):
        assert "cannot be loaded as a model" in refused(*words, "--backbone", f"local:{half}")


def test_scripted_has_nothing_to_probe() -> None:
    assert "nothing to probe" in refused("probe", "--backbone", "scripted")


def test_anything_that_completes_can_be_probed() -> None:
    import asyncio

    from taskweave.backbones import probe as probing

    class Own:
        name, origin = "own", "model"

        async def complete(self, request: Request) -> Completion:
            return Completion(text="no")

    class Out(Own):
        async def complete(self, request: Request) -> Completion:
            raise Transient("away")

    own = asyncio.run(probing.probe(Own(), base_url=None))  # type: ignore[arg-type]
    assert (own.trouble, own.probed.listed, own.probed.rung, own.probed.usage) == ("", None, None, False)
    assert asyncio.run(probing.probe(Out(), base_url=None)).trouble == "away"  # type: ignore[arg-type]


def test_a_backbone_that_is_known_to_be_small_stays_compact_however_well_it_answered() -> None:
    import asyncio

    from taskweave.backbones import probe as probing
    from taskweave.cli.probing import findings

    with Endpoint() as server:

        class Small(OpenAI):
            style = "compact"

        async def probed() -> Found:
            small = Small("any", server.url)
            try:
                return await probing.probe(small, base_url=server.url)
            finally:
                await small.close()

        found = asyncio.run(probed())
    said = {finding.what: finding for finding in findings(found, found.probed, 3_700)}
    assert (said["style"].found, found.probed.rung) == ("compact", "json_schema")
    assert said["style"].means.endswith("the model is known to be a small one")


@pytest.mark.parametrize(
    ("canaries", "found"),
    [
        ([], Reach(None, None, None)),
        ([Canary(sent=60, repeated=True), Canary(sent=4000, repeated=True)], Reach(4000, None, None)),
        ([Canary(sent=60, repeated=True), Canary(sent=4000)], Reach(60, 4000, True)),
        ([Canary(sent=1000, repeated=True, read=950), Canary(sent=4000, read=2048)], Reach(1000, 4000, True)),
        ([Canary(sent=1000, repeated=True, read=950), Canary(sent=3000, read=2048)], Reach(1000, 3000, True)),
        ([Canary(sent=1000, repeated=True, read=950), Canary(sent=3000, read=2850)], Reach(1000, 3000, None)),
        ([Canary(sent=60, repeated=True), Canary(sent=1000, read=700), Canary(sent=4000, read=700)], Reach(60, 1000, True)),
        ([Canary(sent=1000, repeated=True), Canary(sent=4000, over=True)], Reach(1000, 4000, False)),
        ([Canary(sent=1000), Canary(sent=2000, repeated=True)], Reach(2000, None, None)),
        ([Canary(sent=60, read=80), Canary(sent=4000, read=3700)], Reach(4000, None, None)),
        ([Canary(sent=60, read=80), Canary(sent=4000, read=2048)], Reach(60, 4000, True)),
        ([Canary(sent=60), Canary(sent=4000)], Reach(None, None, None)),
    ],
)
def test_a_lost_word_is_told_from_an_overlooked_one_by_the_tokens_and_the_other_words(canaries: list[Canary], found: Reach) -> None:
    assert reach(canaries) == found


@pytest.mark.parametrize(
    ("rung", "structured", "limit", "style"),
    [
        ("json_schema", True, None, "full"),
        ("json_object", True, 8_000, "full"),
        ("plain", True, None, "compact"),
        (None, False, None, "compact"),
        ("json_object", False, None, "compact"),
        ("json_schema", True, 3_500, "compact"),
        (None, None, None, "full"),
    ],
)
def test_weak_answers_and_short_contexts_are_asked_in_the_compact_style(
    rung: Any, structured: bool | None, limit: int | None, style: str
) -> None:
    context = None if limit is None else 3_600 if limit > 4_000 else 2_000
    assert style_for(rung=rung, structured=structured, context=context, limit=limit) == style


def test_what_was_found_is_kept_for_its_address_and_for_a_week(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    moment = datetime.now(UTC)
    new = Probed(backbone="openai:m", base_url="http://127.0.0.1:1/v1", at=moment.isoformat(), context=4_000)
    keep(new)
    assert recall("openai:m", "http://127.0.0.1:1/v1") == new
    assert recall("openai:m", None) is recall("openai:other", "http://127.0.0.1:1/v1") is None
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    assert recall("openai:m", None) == new, "the environment may say where it listens"
    keep(Probed(backbone="openai:m", base_url="http://127.0.0.1:1/v1", at=(moment - FRESH - timedelta(hours=1)).isoformat()))
    assert recall("openai:m", "http://127.0.0.1:1/v1") is None


def test_a_short_look_does_not_forget_what_a_probe_had_measured() -> None:
    probed = Probed(backbone="openai:m", base_url=None, at="2026-01-01", rates={"1": 40.0}, seed_repeats=True, context=2_000, limit=2_500)
    again = Probed(backbone="openai:m", base_url=None, at="2026-01-02", context=4_000).beside(probed)
    assert (again.rates, again.seed_repeats) == ({"1": 40.0}, True)
    assert (again.context, again.limit, again.at) == (4_000, None, "2026-01-02")
    assert (again.takes(4_000), again.takes(5_000), probed.takes(2_500), probed.takes(2_200)) == (True, None, False, None)
