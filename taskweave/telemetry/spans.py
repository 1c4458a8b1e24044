"""One run's spans: an `invoke_workflow`, under it an `invoke_agent` a work, and under that what it asked and looked up now.

Entry point: `Spans`, the engine's witness.  While a work runs only moments are noted; its spans are made when it ends, with those times,
so that a replayed work makes none and the engine meets no code of an exporter.  A request that was tried again is one span with an event
for each attempt that failed, as the conventions want it.  Refuses to know how spans are exported.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

import taskweave
from taskweave.engine.promises import COMPLETE, Ask
from taskweave.records import Completion, Json
from taskweave.telemetry import Tracers, attributes

SEARCH = "search"  # the kind of look-up that is a retrieval; every other is a tool
# The steps that decide what is to be done, by whom and when; a diagnosis looks back, and a deliverable is the work itself.
PLANNING = frozenset({"formulate", "partition", "decompose", "align", "reconcile", "respond"})
WANTED = frozenset({"finished", "interrupted", "stopped", "budget"})  # ends that someone has chosen


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What is known of a session before it begins: `roles` by agent; by the identity that requests carry,
    what a backbone is `called` (kind and model), and its `servers` (host, port).
    """

    run: str
    organization: str
    seed: int
    until: str
    backbone: str
    roles: Mapping[str, str]
    called: Mapping[str, str]
    servers: Mapping[str, tuple[str, int]]


@dataclass(slots=True)
class Noted:
    """One ask, and when what happened to it; times in nanoseconds since the epoch."""

    ask: Ask
    asked: int
    sent: int | None = None
    over: int | None = None
    troubles: list[tuple[int, str]] = field(default_factory=list)
    completion: Completion | None = None
    latency: float = 0.0
    found: Json = None


class Spans:
    """A context manager around a session.  `made` counts the sampled spans, all of which an exporter should have seen."""

    def __init__(self, provider: Tracers, facts: Facts, *, captured: bool) -> None:
        self.made = 0
        self._tracer: Any = provider.get_tracer("taskweave", taskweave.__version__)
        self._facts, self._captured = facts, captured
        self._works: dict[str, list[Noted]] = {}
        # The wall clock may be set while a run goes on; an order of events may not.
        self._zero = time.time_ns() - time.perf_counter_ns()
        self._around: Any = contexts.get_current()
        self._root: Any = None
        self._stop: str | None = None

    def __enter__(self) -> Spans:
        facts = self._facts
        said = attributes.workflow(facts.organization) | {
            "taskweave.run": facts.run,
            "taskweave.seed": facts.seed,
            "taskweave.until": facts.until,
            "taskweave.backbone": facts.backbone,
        }
        self._root = self._begin(f"invoke_workflow {facts.organization}", self._around, self._now(), said)
        return self

    def __exit__(self, kind: type[BaseException] | None, trouble: BaseException | None, _: TracebackType | None) -> None:
        for site in list(self._works):
            self._tell(site, self._works.pop(site), cut=True)
        stop = self._stop if kind is None else kind.__name__
        if stop is not None:
            self._root.set_attribute("taskweave.stop", stop)
            if stop not in WANTED:
                self._fail(self._root, stop)
        self._root.end(self._now())

    def reached(self, week: int, stop: str | None) -> None:
        """How far the session came, and why it went no further."""
        self._stop = stop or "finished"
        self._root.set_attribute("taskweave.week", week)

    # ---------------------------------------------------------------- what the engine tells
    def asked(self, ask: Ask) -> None:
        self._works.setdefault(ask.site, []).append(Noted(ask, self._now()))

    def sent(self, ask: Ask) -> None:
        noted = self._works[ask.site][-1]
        if noted.sent is None:
            noted.sent = self._now()

    def failed(self, ask: Ask, trouble: BaseException) -> None:
        noted = self._works[ask.site][-1]
        noted.over = self._now()
        noted.troubles.append((noted.over, attributes.trouble_kind(trouble)))

    def landed(self, ask: Ask, completion: Completion, latency: float) -> None:
        noted = self._works[ask.site][-1]
        noted.over, noted.completion, noted.latency = self._now(), completion, latency

    def looked_up(self, ask: Ask, answer: Json) -> None:
        noted = self._works[ask.site][-1]
        noted.over, noted.found = self._now(), answer

    def ended(self, site: str) -> None:
        if (asks := self._works.pop(site, None)) is not None:
            self._tell(site, asks, cut=False)

    # ---------------------------------------------------------------- what becomes of it
    def _tell(self, site: str, asks: list[Noted], *, cut: bool) -> None:
        """Make a work's spans.  `cut`: it did not come to its end."""
        now = self._now()
        actor = next((actor for noted in asks if noted.ask.work is not None and (actor := noted.ask.work.context.actor)), "")
        role = self._facts.roles.get(actor, actor)
        work = self._begin(_named("invoke_agent", role), self._under(self._root), asks[0].asked, attributes.agent(role, actor, site))
        calls = [noted for noted in asks if noted.ask.kind == COMPLETE]
        plan = None
        if calls and attributes.step_of(site) in PLANNING:
            plan = self._begin(_named("plan", role), self._under(work), calls[0].asked, attributes.plan(role, site))
        for noted in asks:
            if noted.ask.kind == COMPLETE:
                self._tell_call(noted, self._under(plan or work), now)
            else:
                self._tell_look_up(noted, role, self._under(work), now)
        if plan is not None:
            plan.end(calls[-1].over or now)
        if cut:
            self._fail(work, _kind_of_end(asks[-1]))
        work.end(now)

    def _tell_call(self, noted: Noted, under: Any, now: int) -> None:
        request = noted.ask.request
        assert request is not None, "only look-ups have none"
        if noted.sent is None:
            return  # it was queued, and the run ended before its turn
        server = self._facts.servers.get(request.backbone)
        called = self._facts.called.get(request.backbone, request.backbone)
        said = attributes.chat(request, noted.completion, called, server, captured=self._captured)
        said |= {"taskweave.site": noted.ask.site, "taskweave.ordinal": noted.ask.ordinal, "taskweave.attempts": noted.ask.tries}
        if noted.completion is not None:
            said["taskweave.latency"] = round(noted.latency, 4)
        kind = SpanKind.INTERNAL if server is None else SpanKind.CLIENT
        span = self._begin(f"chat {said['gen_ai.request.model']}", under, noted.sent, said, kind)
        for number, (moment, trouble) in enumerate(noted.troubles, 1):
            span.add_event("taskweave.attempt_failed", {attributes.ERROR: trouble, "taskweave.attempt": number}, timestamp=moment)
        if noted.completion is None:
            self._fail(span, _kind_of_end(noted))
        elif (error := said.get(attributes.ERROR)) is not None:
            self._fail(span, error)
        span.end(noted.over or now)

    def _tell_look_up(self, noted: Noted, role: str, under: Any, now: int) -> None:
        kind, question, found = noted.ask.kind, noted.ask.question, noted.found
        if kind == SEARCH:
            asked = json.loads(question)
            said = attributes.retrieval(asked if isinstance(asked, dict) else {}, found, captured=self._captured)
            name = "retrieval"
        else:
            said, name = attributes.tool(kind, question, found, role, captured=self._captured), f"execute_tool {kind}"
        self._begin(name, under, noted.asked, said).end(noted.over or now)

    def _begin(self, name: str, under: Any, start: int, said: attributes.Attributes, kind: Any = SpanKind.INTERNAL) -> Any:
        span = self._tracer.start_span(name, context=under, kind=kind, attributes=said, start_time=start)
        self.made += span.get_span_context().trace_flags.sampled
        return span

    def _under(self, span: Any) -> Any:
        return trace.set_span_in_context(span, self._around)

    def _fail(self, span: Any, kind: str) -> None:
        span.set_attribute(attributes.ERROR, kind)
        span.set_status(Status(StatusCode.ERROR))

    def _now(self) -> int:
        return self._zero + time.perf_counter_ns()


def _named(operation: str, role: str) -> str:
    return f"{operation} {role}" if role else operation


def _kind_of_end(noted: Noted) -> str:
    return noted.troubles[-1][1] if noted.troubles else attributes.CANCELLED
