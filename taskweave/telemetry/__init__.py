"""Is this run to be told as OpenTelemetry spans, and to whom?  Entry points: `Telemetry`, which asks, and `session`, around one run.

Asked for by the standard OTEL_* environment variables, or by a tracer provider of the program's own.  The names are those of the GenAI
conventions' release 0.1.0 (the first of their own; for what it left alone: semantic conventions 1.41), all still in development.
Nothing of OpenTelemetry is loaded before it is asked for, and nothing outside this room knows of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from taskweave.telemetry.exporting import Exporting
    from taskweave.telemetry.spans import Facts, Spans

EXPORTERS = ("otlp", "console")
MISSING = "OTEL_* asks for telemetry, and OpenTelemetry is not installed: the run goes on without. pip install 'taskweave[otel]'"
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


class Tracers(Protocol):
    """A tracer provider, as far as it is needed here."""

    def get_tracer(self, name: str, version: str | None = None, /) -> Any: ...


def _silent(_: str) -> None: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Telemetry:
    """Whoever starts a run may have it told: to `tracer_provider`, which stays the program's own, else to what the environment names.

    `warn` takes a sentence about what could not be done; it is never a reason to end a run.
    """

    tracer_provider: Tracers | None = None
    warn: Callable[[str], None] = _silent


@contextmanager
def session(asked: Telemetry | None, facts: Callable[[], Facts]) -> Iterator[Spans | None]:
    """The witness of one run, None where nobody asked; `facts` are only gathered for one.

    At the end its spans are ended, and what this room built is flushed, within seconds, and shut down.
    """
    if asked is None or disabled(os.environ):
        yield None
        return
    exporting = None if asked.tracer_provider is not None else _exporting(asked.warn)
    provider = asked.tracer_provider if exporting is None else exporting.provider
    if provider is None:
        yield None
        return
    from taskweave.telemetry.spans import Spans

    spans = Spans(provider, facts(), captured=captures(os.environ))
    try:
        with spans:
            yield spans
    finally:
        if exporting is not None and (lost := exporting.close(spans.made)):
            asked.warn(f"{lost} of {spans.made} spans did not reach the collector that OTEL_EXPORTER_OTLP_* names; the run is whole")


def _exporting(warn: Callable[[str], None]) -> Exporting | None:
    """What the environment asks for, as far as it can be had."""
    if not (names := exporters(os.environ, warn)):
        return None
    try:
        from taskweave.telemetry.exporting import Exporting

        return Exporting(names)
    except ImportError:
        warn(MISSING)
    except (ValueError, OSError) as trouble:
        warn(f"no telemetry, since OpenTelemetry cannot use an OTEL_* variable: {trouble}")
    return None


def disabled(environ: Mapping[str, str]) -> bool:
    """Whether OTEL_SDK_DISABLED switches all of it off."""
    return environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"


def captures(environ: Mapping[str, str]) -> bool:
    """Whether the texts of prompts and answers may be told: they are the organization's own, so only where that is said."""
    said = environ.get("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "").strip().lower()
    return said in ("true", "span_only", "span_and_event")


def exporters(environ: Mapping[str, str], warn: Callable[[str], None]) -> tuple[str, ...]:
    """The names of EXPORTERS that the environment asks for; `warn` hears of what is asked and not there."""
    named = environ.get("OTEL_TRACES_EXPORTER", "").strip().lower()
    if not named:
        named = "otlp" if any(environ.get(name, "").strip() for name in _ENDPOINTS) else "none"
    asked = list(dict.fromkeys(name.strip() for name in named.split(",") if name.strip() not in ("", "none")))
    if unknown := [name for name in asked if name not in EXPORTERS]:
        warn(f"OTEL_TRACES_EXPORTER={named!r}: there is no exporter {unknown[0]!r} here; there are {', '.join(EXPORTERS)} and none")
    protocol = next((said for name in _PROTOCOLS if (said := environ.get(name, "").strip().lower())), "http/protobuf")
    if "otlp" in asked and protocol != "http/protobuf":
        warn(f"OTLP is spoken as http/protobuf only, not as {protocol!r}: name such an endpoint, mostly at port 4318, and protocol")
        asked.remove("otlp")
    return tuple(name for name in asked if name in EXPORTERS)
