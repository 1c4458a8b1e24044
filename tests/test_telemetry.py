"""A run told as OpenTelemetry spans: asked for, in the conventions' words, beside the run and never in its way."""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import taskweave as tw
from taskweave import telemetry
from taskweave.backbones.scripted import Scripted
from taskweave.engine.promises import Context
from taskweave.errors import BadInput, Refused, Transient
from taskweave.records import Completion
from taskweave.telemetry import attributes, captures, disabled, exporters
from tests.cli.door import shell
from tests.loopback import Loopback
from tests.test_layers import loaded_by
from tests.workshop import Answers, drive, engine_in, question

KEY = "sk-loopback-secret-0123456789"
PLANS = {"formulate", "partition", "decompose", "align", "reconcile", "respond"}


# ---------------------------------------------------------------- off, and asked for
def test_a_run_that_is_not_told_loads_nothing_of_opentelemetry(tmp_path: Path) -> None:
    loaded = loaded_by(f"import taskweave as tw; tw.simulate('tiny', until='week:1', out={str(tmp_path / 'r')!r})")
    assert "taskweave.telemetry" in loaded
    assert [name for name in loaded if name.startswith(("opentelemetry", "taskweave.telemetry."))] == []


def test_what_is_switched_off_gathers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with telemetry.session(telemetry.Telemetry(), lambda: pytest.fail("facts were gathered")) as spans:
        assert spans is None
    monkeypatch.undo()
    for asked in (None, telemetry.Telemetry()):
        with telemetry.session(asked, lambda: pytest.fail("facts were gathered")) as spans:
            assert spans is None


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ({}, ()),
        ({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ()),
        ({"OTEL_TRACES_EXPORTER": ""}, ()),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, ("otlp",)),
        ({"OTEL_TRACES_EXPORTER": "console, otlp,console"}, ("console", "otlp")),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, ("otlp",)),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, ("otlp",)),
    ],
)
def test_the_standard_variables_ask(said: dict[str, str], asked: tuple[str, ...]) -> None:
    warned: list[str] = []
    assert exporters(said, warned.append) == asked
    assert warned == []


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "'zipkin'"),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "'grpc'"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, "port 4318"),
    ],
)
def test_what_is_asked_and_not_there_is_said(said: dict[str, str], words: str) -> None:
    warned: list[str] = []
    assert exporters(said, warned.append) == ()
    assert len(warned) == 1
    assert words in warned[0]


def test_it_can_be_switched_off_and_texts_are_told_only_where_that_is_said() -> None:
    assert disabled({"OTEL_SDK_DISABLED": "TRUE"})
    assert not disabled({"OTEL_SDK_DISABLED": "1"})
    captured = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    assert [captures({captured: word}) for word in ("true", "span_only", "span_and_event", "false", "event_only", "")] == [True] * 3 + [
        False
    ] * 3
    assert not captures({})


def test_a_missing_extra_is_named_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    for name in [name for name in sys.modules if name.startswith(("opentelemetry", "taskweave.telemetry."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    run = tw.simulate("tiny", until="week:1", out=tmp_path / "r")
    assert run.finished
    assert run.warnings == [telemetry.MISSING]
    assert "pip install 'taskweave[otel]'" in telemetry.MISSING


def test_what_is_no_tracer_provider_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="tracer_provider='console'"):
        tw.simulate("tiny", until="week:1", out=tmp_path / "r", tracer_provider="console")  # type: ignore[arg-type]  # what is tested
    assert not (tmp_path / "r").exists()


def test_errors_are_of_few_kinds() -> None:
    class ApiError(Exception):
        status_code = 503

    class ConnectionRefused(Exception): ...

    def made(ours: Exception, theirs: Exception) -> BaseException:
        try:
            try:
                raise theirs
            except type(theirs):
                raise ours from None
        except type(ours) as caught:
            return caught

    assert attributes.trouble_kind(made(Transient("host said 503: busy"), ApiError())) == "503"
    assert attributes.trouble_kind(made(Transient("no answer within 3 s"), TimeoutError())) == "timeout"
    assert attributes.trouble_kind(made(Transient("no connection"), ConnectionRefused())) == "ConnectionRefused"
    assert attributes.trouble_kind(Refused("no quota")) == "Refused"
    assert attributes.trouble_kind(made(KeyError("x"), ValueError())) == "KeyError"


def test_of_an_endpoint_only_host_and_port_are_told() -> None:
    assert attributes.server_of("https://me:secret@api.example.com/v1?key=x") == ("api.example.com", 443)
    assert attributes.server_of("http://127.0.0.1:8000/v1") == ("127.0.0.1", 8000)
    assert attributes.server_of(None) is None


def test_sampling_that_an_endpoint_did_not_take_is_not_told() -> None:
    said = attributes.chat(question("make"), Completion(text="x", omitted=("temperature", "seed")), "openai:m", None, captured=False)
    assert [name for name in said if name.startswith("gen_ai.request.")] == ["gen_ai.request.model", "gen_ai.request.max_tokens"]


# ---------------------------------------------------------------- the spans
class Kept:
    """The spans of a tracer provider, as a tree."""

    def __init__(self) -> None:
        pytest.importorskip("opentelemetry.sdk", reason="pip install '.[otel]'")
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        self.exporter: Any = InMemorySpanExporter()
        self.provider: Any = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> list[Any]:
        return list(self.exporter.get_finished_spans())

    def of(self, operation: str) -> list[Any]:
        return [span for span in self.spans if span.attributes["gen_ai.operation.name"] == operation]

    def parent(self, span: Any) -> Any:
        return next(other for other in self.spans if span.parent is not None and other.context.span_id == span.parent.span_id)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Kept, tw.Run, Any]:
    """Two weeks of tiny, asked of a server over HTTP."""
    kept = Kept()
    with Loopback() as server:
        run = tw.simulate(
            "tiny",
            out=tmp_path_factory.mktemp("told") / "r",
            until="week:2",
            backbone="openai:loopback",
            base_url=server.url,
            look=False,
            tracer_provider=kept.provider,
        )
    return kept, run, server


def test_under_one_workflow_each_work_is_an_agents_and_its_calls_lie_below(told: tuple[Kept, tw.Run, Any]) -> None:
    kept, run, _ = told
    (root,) = kept.of("invoke_workflow")
    assert root.parent is None
    assert root.name == "invoke_workflow Tiny"
    assert {kept.parent(span).name for span in kept.of("invoke_agent")} == {root.name}
    assert {kept.parent(span).attributes["gen_ai.operation.name"] for span in kept.of("plan")} == {"invoke_agent"}
    assert {kept.parent(span).attributes["gen_ai.operation.name"] for span in kept.of("retrieval")} == {"invoke_agent"}
    for span in kept.of("chat"):
        above, step = kept.parent(span), attributes.step_of(span.attributes["taskweave.site"])
        assert above.attributes["gen_ai.operation.name"] == ("plan" if step in PLANS else "invoke_agent")
        assert above.attributes["taskweave.site"] == span.attributes["taskweave.site"]
        assert above.start_time <= span.start_time <= span.end_time <= above.end_time
    assert Counter(span.attributes["taskweave.site"] for span in kept.of("chat")) == Counter(call["site"] for call in run.calls())
    assert len({span.context.trace_id for span in kept.spans}) == 1


def test_names_and_kinds_of_spans_are_the_conventions(told: tuple[Kept, tw.Run, Any]) -> None:
    kept, _, _ = told
    kinds = {(re.sub(r" (Product Manager|Chief.*|Backend.*|Customer.*)$", " ROLE", span.name), span.kind.name) for span in kept.spans}
    assert kinds == {
        ("invoke_workflow Tiny", "INTERNAL"),
        ("invoke_agent ROLE", "INTERNAL"),
        ("plan ROLE", "INTERNAL"),
        ("retrieval", "INTERNAL"),
        ("chat loopback", "CLIENT"),
    }


def test_attributes_have_the_conventions_names(told: tuple[Kept, tw.Run, Any]) -> None:
    kept, _, _ = told
    incubating = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for name, value in vars(incubating).items() if name.startswith("GEN_AI_") and isinstance(value, str)}
    newer = {"gen_ai.prompt.version", "gen_ai.retrieval.top_k"}  # release 0.1.0 of the GenAI conventions, after 1.41
    others = {"server.address", "server.port", "error.type", "openai.response.system_fingerprint"}
    names = {name for span in kept.spans for name in span.attributes if not name.startswith("taskweave.")}
    assert names <= known | newer | others
    assert not names & {"gen_ai.system", "gen_ai.prompt", "gen_ai.completion", "gen_ai.usage.prompt_tokens"}, "names of the past"


def test_a_call_says_what_was_asked_of_whom_and_what_it_took(told: tuple[Kept, tw.Run, Any]) -> None:
    kept, run, server = told
    for span in kept.of("chat"):
        said = span.attributes
        assert said["gen_ai.provider.name"] == "openai"
        assert said["gen_ai.request.model"] == said["gen_ai.response.model"] == "loopback"
        assert said["gen_ai.output.type"] == "json"
        assert said["gen_ai.response.finish_reasons"] == ("stop",)
        assert f"http://{said['server.address']}:{said['server.port']}/v1" == server.url
        assert (span.end_time - span.start_time) / 1e9 >= said["taskweave.latency"] - 0.001
    sent = Counter((r["temperature"], r["max_tokens"], r["seed"]) for r in server.requests)
    assert sent == Counter(
        tuple(s.attributes[f"gen_ai.request.{n}"] for n in ("temperature", "max_tokens", "seed")) for s in kept.of("chat")
    )
    names = {"input": "prompt_tokens", "output": "completion_tokens", "cache_read.input": "cached_tokens"}
    for name, column in names.items():
        total = sum(span.attributes.get(f"gen_ai.usage.{name}_tokens", 0) for span in kept.of("chat"))
        assert total == sum(call[column] or 0 for call in run.calls()), name
    assert not [s for s in kept.spans if "gen_ai.usage.input_tokens" in s.attributes and s not in kept.of("chat")], "counted once"


def test_a_work_says_who_does_it_and_a_search_how_much_it_found(told: tuple[Kept, tw.Run, Any]) -> None:
    kept, run, _ = told
    roles = {agent["id"]: agent["role"] for agent in run.agents()}
    executed = {f"{subtask['id']}:execute": subtask["assignee"] for subtask in run.subtasks() if subtask["status"] == "done"}
    spans = {span.attributes["taskweave.site"]: span for span in kept.of("invoke_agent")}
    assert executed
    assert {site: spans[site].attributes["gen_ai.agent.id"] for site in executed} == executed
    assert all(roles[s.attributes["gen_ai.agent.id"]] == s.attributes["gen_ai.agent.name"] for s in spans.values())
    works = {result["id"] for result in run.results() if result["subtask"] is not None}
    retrieved = [use for use in run.uses() if use["how"] == "retrieved" and use["result"] in works]
    found = [span.attributes["taskweave.retrieval.found"] for span in kept.of("retrieval")]
    assert 0 < len(retrieved) <= sum(found)


def test_a_session_says_which_run_and_how_far(told: tuple[Kept, tw.Run, Any]) -> None:
    kept, _, _ = told
    (root,) = kept.of("invoke_workflow")
    said = {name.removeprefix("taskweave."): value for name, value in root.attributes.items() if name.startswith("taskweave.")}
    assert said == {"run": "r", "seed": 1, "until": "week:2", "backbone": "openai:loopback", "week": 2, "stop": "finished"}


def test_no_text_is_told_unless_that_is_asked_and_the_key_never(
    told: tuple[Kept, tw.Run, Any], tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet, _, _ = told
    assert not [name for span in quiet.spans for name in span.attributes if "messages" in name or "text" in name]
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Loopback(faults=["refusal"]) as server:
        run = tw.simulate(
            "tiny",
            out=tmp_path / "r",
            until="week:1",
            backbone="openai:loopback",
            base_url=server.url,
            look=False,
            tracer_provider=kept.provider,
        )
    assert run.finished
    assert set(server.keys) == {KEY}
    told_in = [json.loads(span.attributes["gen_ai.input.messages"]) for span in kept.of("chat")]
    sent = [
        [{"role": m["role"], "parts": [{"type": "text", "content": m["content"]}]} for m in request["messages"]]
        for request in server.requests
    ]
    assert sorted(map(str, told_in)) == sorted(map(str, sent))
    outputs = [json.loads(span.attributes["gen_ai.output.messages"]) for span in kept.of("chat")]
    assert {(one["role"], one["finish_reason"]) for (one,) in outputs} == {("assistant", "stop")}
    assert "I cannot help with that." in str(outputs)
    assert KEY not in "".join(span.to_json() for span in kept.spans)


def test_a_call_that_was_tried_again_is_one_span_with_an_event_for_each_failure(tmp_path: Path, kept: Kept) -> None:
    with Loopback(faults=[429, 500, "drop"]) as server:
        tw.simulate(
            "tiny",
            out=tmp_path / "r",
            until="week:1",
            backbone="openai:m",
            base_url=server.url,
            look=False,
            limit=1,
            tracer_provider=kept.provider,
        )
    (tried,) = [span for span in kept.of("chat") if span.events]
    assert [event.attributes["error.type"] for event in tried.events] == ["429", "500", "APIConnectionError"]
    assert tried.attributes["taskweave.attempts"] == 4
    assert tried.status.status_code.name == "UNSET"
    assert "error.type" not in tried.attributes


def test_an_outage_ends_its_spans_with_the_error(tmp_path: Path, kept: Kept) -> None:
    with Loopback(faults=[503] * 9) as server:
        run = tw.simulate(
            "tiny",
            out=tmp_path / "r",
            until="week:1",
            backbone="openai:m",
            base_url=server.url,
            look=False,
            patience=0.0,
            tracer_provider=kept.provider,
        )
    assert run.outcome is not None
    assert run.outcome.stop == "outage"
    assert {(span.attributes["error.type"], span.status.status_code.name) for span in kept.of("chat")} == {("503", "ERROR")}
    assert {span.attributes["error.type"] for span in kept.of("invoke_agent")} == {"503"}
    (root,) = kept.of("invoke_workflow")
    assert (root.attributes["error.type"], root.attributes["taskweave.stop"], root.attributes["taskweave.week"]) == ("outage", "outage", 0)


def test_a_prompt_that_is_too_long_is_an_error_of_its_call(tmp_path: Path, kept: Kept) -> None:
    with Loopback(faults=["overflow"]) as server:
        tw.simulate(
            "tiny", out=tmp_path / "r", until="week:1", backbone="openai:m", base_url=server.url, look=False, tracer_provider=kept.provider
        )
    (failed,) = [span for span in kept.of("chat") if span.status.status_code.name == "ERROR"]
    assert failed.attributes["error.type"] == "context_length_exceeded"


def test_where_calls_are_routed_each_names_the_model_and_server_that_answered(tmp_path: Path, kept: Kept) -> None:
    with Loopback() as one, Loopback() as other:
        (tmp_path / "routes.yaml").write_text(
            f"routes: [{{step: execute, backbone: 'openai:big', base_url: '{other.url}', name: second}}]\n"
        )
        tw.simulate(
            "tiny",
            out=tmp_path / "r",
            until="week:1",
            backbone="openai:small",
            base_url=one.url,
            routing=tmp_path / "routes.yaml",
            look=False,
            tracer_provider=kept.provider,
        )
    told = {(attributes.step_of(s.attributes["taskweave.site"]) == "execute", s.name, s.attributes["server.port"]) for s in kept.of("chat")}
    ports = [int(server.url.rpartition(":")[2].partition("/")[0]) for server in (one, other)]
    assert told == {(False, "chat small", ports[0]), (True, "chat big", ports[1])}


def test_what_is_replayed_is_not_told_again(tmp_path: Path, kept: Kept) -> None:
    run = tw.simulate("tiny", out=tmp_path / "r", until="week:1")
    run = run.resume(tracer_provider=kept.provider)
    assert [span.name for span in kept.spans] == ["invoke_workflow Tiny"]
    kept.exporter.clear()
    before = Counter(call["site"] for call in run.calls())
    run = run.resume(until="week:2", tracer_provider=kept.provider)
    now = Counter(call["site"] for call in run.calls()) - before
    assert Counter(span.attributes["taskweave.site"] for span in kept.of("chat")) == now
    assert {span.attributes["taskweave.site"] for span in kept.of("invoke_agent")} == set(now)
    assert {(span.kind.name, span.attributes["gen_ai.provider.name"]) for span in kept.of("chat")} == {("INTERNAL", "scripted")}


def test_a_look_up_that_is_no_search_is_a_tools(tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    from taskweave.telemetry.spans import Facts, Spans

    async def asks_sql(ctx: Context, *_: object) -> None:
        ctx.actor = "analyst-2"
        await ctx.look_up("sql", {"query": "select 1"}, lambda: [[1]])
        await ctx.complete(question("make", ctx.site))

    facts = Facts(
        run="r", organization="Shop", seed=1, until="week:1", backbone="answers", roles={"analyst-2": "Data Analyst"}, called={}, servers={}
    )
    for captured in (False, True):
        (place := tmp_path / str(captured)).mkdir()
        with Spans(kept.provider, facts, captured=captured) as spans:
            engine = engine_in(place, Answers(), witness=spans)
            engine.launch("a:execute", asks_sql, reads=engine.given(None))
            drive(engine)
    quiet, open_ = kept.of("execute_tool")
    assert quiet.name == "execute_tool sql"
    assert dict(quiet.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "sql",
        "gen_ai.tool.type": "function",
        "gen_ai.agent.name": "Data Analyst",
    }
    assert kept.parent(quiet).name == "invoke_agent Data Analyst"
    assert (open_.attributes["gen_ai.tool.call.arguments"], open_.attributes["gen_ai.tool.call.result"]) == (
        '{"query":"select 1"}',
        "[[1]]",
    )


def test_a_run_is_the_same_told_or_not(told: tuple[Kept, tw.Run, Any], tmp_path: Path, kept: Kept) -> None:
    _, run, _ = told
    with Loopback() as server:
        untold = tw.simulate("tiny", out=tmp_path / "r", until="week:2", backbone="openai:loopback", base_url=server.url, look=False)
    assert untold.digest() == run.digest()


def test_a_trace_goes_on_where_the_program_began_it(tmp_path: Path, kept: Kept) -> None:
    with kept.provider.get_tracer("mine").start_as_current_span("study", attributes={"gen_ai.operation.name": "none"}) as mine:
        tw.simulate("tiny", out=tmp_path / "r", until="week:1", tracer_provider=kept.provider)
    (root,) = kept.of("invoke_workflow")
    assert root.parent.span_id == mine.context.span_id


def test_an_answer_no_exporter_could_encode_is_told(kept: Kept, tmp_path: Path) -> None:
    class Half(Scripted):
        async def complete(self, request: Any) -> Completion:
            answer = await super().complete(request)
            return Completion(text=answer.text, model="half\ud800")

    tw.simulate("tiny", out=tmp_path / "r", until="week:1", backbone=Half(), tracer_provider=kept.provider)
    for span in kept.of("chat"):
        assert span.attributes["gen_ai.response.model"].encode() == "half\ufffd".encode()
        assert span.attributes["taskweave.usage.estimated"]


# ---------------------------------------------------------------- a provider of our own
class Collector:
    """A real OTLP/HTTP collector on loopback."""

    def __init__(self) -> None:
        bodies: list[tuple[str, bytes]] = []
        self.bodies = bodies

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None: ...

            def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
                bodies.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def requests(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        return [ExportTraceServiceRequest.FromString(body) for _, body in self.bodies]


@pytest.fixture
def collector() -> Iterator[Collector]:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[otel]'")
    collector = Collector()
    yield collector
    collector.close()


def test_the_environment_sends_spans_to_a_collector_and_leaves_the_program_its_provider(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry import trace

    before = trace.get_tracer_provider()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    run = tw.simulate("tiny", out=tmp_path / "r", until="week:1")
    assert run.warnings == []
    assert trace.get_tracer_provider() is before
    assert {path for path, _ in collector.bodies} == {"/v1/traces"}
    resources = [resource for request in collector.requests() for resource in request.resource_spans]
    assert {a.value.string_value for r in resources for a in r.resource.attributes if a.key == "service.name"} == {"taskweave"}
    names = Counter(span.name.partition(" ")[0] for r in resources for scope in r.scope_spans for span in scope.spans)
    assert names["invoke_workflow"] == 1
    assert names["chat"] == len(run.calls())


@pytest.mark.parametrize("reached", ["refuses", "hangs"])
def test_a_collector_that_is_down_does_not_disturb_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: str) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[otel]'")
    from taskweave.telemetry import exporting

    monkeypatch.setattr(exporting, "PATIENCE", 0.2)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        if reached == "hangs":
            listening.listen()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{listening.getsockname()[1]}")
        run = tw.simulate("tiny", out=tmp_path / "r", until="week:1")
    assert run.finished
    assert len(run.warnings) == 1
    assert re.match(r"(\d+) of \1 spans did not reach the collector", run.warnings[0])
    assert run.digest() == tw.simulate("tiny", out=tmp_path / "s", until="week:1", tracer_provider=None).digest()


def test_a_variable_that_cannot_be_used_is_said_and_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[otel]'")
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "-1")
    run = tw.simulate("tiny", out=tmp_path / "r", until="week:1")
    assert run.finished
    assert len(run.warnings) == 1
    assert "OTEL_* variable" in run.warnings[0]


def test_on_the_command_line_spans_go_to_stderr_and_a_dead_collector_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="pip install '.[otel]'")
    done = shell("run", "tiny", "--until", "week:1", "--out", tmp_path / "r", "--json", OTEL_TRACES_EXPORTER="console")
    assert done.returncode == 0
    assert json.loads(done.stdout)
    assert b'"name": "invoke_workflow Tiny"' in done.stderr
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        done = shell("resume", tmp_path / "r", OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    assert done.returncode == 0
    assert done.stderr.decode().splitlines() == [
        "warning: 1 of 1 spans did not reach the collector that OTEL_EXPORTER_OTLP_* names; the run is whole"
    ]
