"""A collector of OpenTelemetry's own protocol on loopback, which decodes what it is sent: spans, events and metrics.

with OtlpCollector() as collector:
    ...                    # OTEL_EXPORTER_OTLP_ENDPOINT=collector.url
    collector.spans        # each with its name, parent, attributes, times, links
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Span(NamedTuple):
    """A span as it arrived; times in seconds since 1970, ids in hex; `status` 2 is an error."""

    name: str
    trace: str
    id: str
    parent: str
    kind: int
    start: float
    end: float
    status: int
    message: str
    attributes: dict[str, Any]
    links: list[tuple[str, dict[str, Any]]]
    events: list[tuple[str, dict[str, Any]]]

    @property
    def operation(self) -> str:
        """`chat`, `plan`, `invoke_agent` and so on."""
        return str(self.attributes["gen_ai.operation.name"])


class Event(NamedTuple):
    """A record of the logs that has the name of an event, with the span it belongs to."""

    name: str
    span: str
    attributes: dict[str, Any]


class OtlpCollector:
    """The server. `status` is what it answers; while `held` is clear, it answers nothing."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.paths: list[str] = []
        self.bodies = b""
        self.spans: list[Span] = []
        self.events: list[Event] = []
        self.metrics: dict[str, list[tuple[dict[str, Any], float]]] = {}
        self.resource: dict[str, Any] = {}
        self.released = threading.Event()
        self.released.set()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def url(self) -> str:
        """What goes into OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> OtlpCollector:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def of(self, operation: str) -> list[Span]:
        """The spans of an operation, by their start."""
        return sorted(
            (span for span in self.spans if span.operation == operation),
            key=lambda span: span.start,
        )

    def take(self, path: str, body: bytes) -> None:
        """Decode what was sent."""
        with self._lock:
            self.paths.append(path)
            self.bodies += body
            {
                "/v1/traces": self._take_spans,
                "/v1/logs": self._take_logs,
                "/v1/metrics": self._take_metrics,
            }[path](body)

    def _take_spans(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = values(resource.resource.attributes)
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                self.spans.append(
                    Span(
                        span.name,
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.kind,
                        span.start_time_unix_nano / 1e9,
                        span.end_time_unix_nano / 1e9,
                        span.status.code,
                        span.status.message,
                        values(span.attributes),
                        [(link.span_id.hex(), values(link.attributes)) for link in span.links],
                        [(event.name, values(event.attributes)) for event in span.events],
                    )
                )

    def _take_logs(self, body: bytes) -> None:
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
            for record in (record for scope in resource.scope_logs for record in scope.log_records):
                self.events.append(
                    Event(record.event_name, record.span_id.hex(), values(record.attributes))
                )

    def _take_metrics(self, body: bytes) -> None:
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for metric in (metric for scope in resource.scope_metrics for metric in scope.metrics):
                points = getattr(metric, metric.WhichOneof("data")).data_points
                self.metrics[metric.name] = [
                    (
                        values(point.attributes),
                        getattr(point, "sum", None) or getattr(point, "as_int", 0),
                    )
                    for point in points
                ]


def values(attributes: Iterable[Any]) -> dict[str, Any]:
    """Attributes as plain values."""
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind) if kind else None
    return [_value(each) for each in found.values] if kind == "array_value" else found


def _handler(collector: OtlpCollector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.released.wait()
            if collector.status == 200:
                packed = self.headers.get("Content-Encoding") == "gzip"
                collector.take(self.path, gzip.decompress(body) if packed else body)
            self.send_response(collector.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

    return Handler
