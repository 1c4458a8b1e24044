"""A tracer provider of our own, made from the standard OTEL_* variables: `Exporting`.

It is never made the process's global one.  A collector that is down costs no run more than `PATIENCE` seconds, at its end.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExportResult

PATIENCE = 5.0  # seconds that the last spans may take to be sent


class Counted:
    """An exporter that counts what was delivered, and that can be told to give up."""

    def __init__(self, exporter: Any) -> None:
        self.delivered = 0
        self._exporter, self._over = exporter, False

    def export(self, spans: Sequence[Any]) -> Any:
        """Deliver a batch, unless it was given up."""
        if self._over:
            return SpanExportResult.FAILURE
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self.delivered += len(spans)
        return result

    def shutdown(self) -> None:
        """Deliver nothing more; a batch that waits to be tried again is given up."""
        if not self._over:
            self._over = True
            self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing waits here."""
        return bool(self._exporter.force_flush(timeout_millis))


class Exporting:
    """The provider and its exporters, `names` of "otlp" and "console".  Raises ValueError for a variable that cannot be used."""

    def __init__(self, names: Sequence[str]) -> None:
        self._exporters = [Counted(_exporter(name)) for name in names]
        # The last resort of `logging` would write each failed attempt between the lines of the progress.
        self._quiet = logging.NullHandler()
        self.provider: Any = TracerProvider(resource=_resource(), shutdown_on_exit=False)
        for exporter in self._exporters:
            counted: Any = exporter  # an exporter in all but its class, which is none where the package is missing
            self.provider.add_span_processor(BatchSpanProcessor(counted))
        logging.getLogger("opentelemetry").addHandler(self._quiet)

    def close(self, made: int) -> int:
        """Send what is left, for at most PATIENCE seconds, and shut down.  Returns how many of `made` spans an exporter did not deliver."""
        closing = threading.Thread(target=self.provider.shutdown, name="taskweave-telemetry", daemon=True)
        closing.start()
        closing.join(PATIENCE)
        for exporter in self._exporters:
            exporter.shutdown()
        closing.join(1.0)
        logging.getLogger("opentelemetry").removeHandler(self._quiet)
        return max(0, made - min(exporter.delivered for exporter in self._exporters))


def _exporter(name: str) -> Any:
    if name == "console":
        return ConsoleSpanExporter(out=sys.stderr)  # stdout is the answer's
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _resource() -> Resource:
    named = os.environ.get("OTEL_SERVICE_NAME") or "service.name=" in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({} if named else {"service.name": "taskweave"})
