"""Exports traces, metrics and events as the standard `OTEL_*` variables configure, and makes the
spans of calls to a model."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.metadata import version as installed_version
from typing import Any
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry._logs import LoggerProvider, LogRecord, get_logger_provider
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.propagate import inject
from opentelemetry.sdk import _logs as sdk_logs
from opentelemetry.sdk import metrics as sdk_metrics
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider, set_span_in_context
from opentelemetry.util.genai.handler import TelemetryHandler
from opentelemetry.util.genai.types import Error, InputMessage, OutputMessage, TextPart

from aeon.domain.errors import AeonError, ConfigError
from aeon.domain.events import RetryScheduled
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.domain.values import JsonObject
from aeon.llm.protocols import CALL_HEADERS
from aeon.llm.settings import EndpointSettings, ProviderSettings

ABANDONED = Error("left unfinished", "Abandoned")
FLUSH_SECONDS = 2.0  # a collector that is down may not hold up the end of a run
_SHOWN = 200
_NAMED_OTHERWISE = {"azure": "azure.ai.openai", "gemini": "gcp.gemini", "mistral": "mistral_ai"}
_TOKENS = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cached_tokens": "cache_read.input_tokens",
    "cache_write_tokens": "cache_write.input_tokens",
    "reasoning_tokens": "reasoning.output_tokens",
}


class Telemetry:
    """Creates spans, metrics and events. Without a receiver of events (`has_events`), they are
    added to the span."""

    def __init__(
        self,
        tracers: TracerProvider,
        meters: MeterProvider,
        loggers: LoggerProvider,
        *,
        has_events: bool,
    ) -> None:
        name = "aeon"
        version = installed_version("aeon-engine")
        self.handler = TelemetryHandler(tracers, meters, loggers, None, name, version)
        self.tracer = tracers.get_tracer(name, version)
        self._logger = loggers.get_logger(name, version) if has_events else None
        # From the newer conventions: that version of util-genai has one histogram of tokens,
        # without their parts.
        meter = meters.get_meter(name, version)
        prefix = "gen_ai.client.inference"
        bounds = [0.01 * 2**number for number in range(14)]
        self._duration = meter.create_histogram(
            f"{prefix}.duration", "s", explicit_bucket_boundaries_advisory=bounds
        )
        self._tokens = {
            field: meter.create_counter(f"{prefix}.usage.{name}", "{token}")
            for field, name in _TOKENS.items()
        }

    def emit(self, name: str, attributes: JsonObject, span: Span) -> None:
        """Emit an event of a span."""
        if self._logger is None:
            span.add_event(name, attributes)
        else:
            record = LogRecord(
                event_name=name, attributes=attributes, context=set_span_in_context(span)
            )
            record.timestamp = time.time_ns()
            self._logger.emit(record)

    def measure(self, seconds: float, usage: Usage, attributes: JsonObject) -> None:
        """Record a call's duration in `seconds` and its token usage."""
        self._duration.record(seconds, attributes)
        for field, counter in self._tokens.items():
            if count := getattr(usage, field):
                counter.add(count, attributes)


class TracedCall:
    """A request to a model. The span of its current attempt is current in the thread that makes
    it."""

    def __init__(
        self,
        telemetry: Telemetry,
        request: LLMRequest,
        provider: ProviderSettings,
        parent: Context | None,
    ) -> None:
        self._telemetry = telemetry
        self._request = request
        self._parent = parent
        self._asked = request.parameters.over(provider.parameters)
        self._provider = _NAMED_OTHERWISE.get(provider.display_name, provider.display_name)
        self._server = _server_of(provider)
        self._open()

    @property
    def span(self) -> Span:
        """The span of the current attempt."""
        return self._invocation.span

    def _open(self) -> None:
        request = self._request
        asked = self._asked
        site = self._request.site
        self._began = time.perf_counter()
        call = self._invocation = self._telemetry.handler.inference(
            self._provider, request_model=asked.model or None, context=self._parent, **self._server
        )
        call.temperature = asked.temperature
        call.max_tokens = asked.max_tokens
        call.reasoning_level = asked.effort
        call.prompt_name = request.call
        call.output_type = "json"
        call.attributes |= {
            "aeon.call": request.call,
            "aeon.role": request.role,
            "aeon.pass": site.pass_number,
            "aeon.phase": site.phase,
            "aeon.cycle": site.cycle,
        }
        call.attributes |= {"aeon.step": site.step_id} if site.step_id else {}
        call.attributes |= {"aeon.round": site.round} if site.round else {}
        if call.should_capture_content:
            call.input_messages = [
                InputMessage(each.role, [TextPart(each.content)]) for each in request.messages
            ]
        headers: dict[str, str] = {}
        inject(headers, call.context)
        CALL_HEADERS.set(headers)

    def retry(self, event: RetryScheduled) -> None:
        """End the failed attempt's span and start the next one's, which includes the wait and links
        to it."""
        kind, _, message = event.error.partition(": ")
        before = self.span.get_span_context()
        self._fail(Error(message, kind), Usage())
        self._open()
        self.span.add_link(before, {"aeon.link": "retry"})
        self._invocation.attributes |= {
            "aeon.attempt": event.attempt + 1,
            "aeon.waited_seconds": event.seconds,
        }

    def end(self, outcome: LLMResponse | BaseException) -> None:
        """End the request's span with its outcome."""
        if isinstance(outcome, BaseException):
            usage = outcome.usage if isinstance(outcome, AeonError) else Usage()
            self._fail(Error(str(outcome), type(outcome).__name__), usage)
            return
        call = self._invocation
        call.response_model_name = outcome.model or None
        call.response_id = outcome.response_id
        call.finish_reasons = [outcome.finish_reason]
        call.attributes |= {
            "aeon.synthetic": outcome.synthetic,
            "aeon.usage_reported": outcome.usage_reported,
        }
        call.attributes |= {"aeon.endpoint": outcome.endpoint} if outcome.endpoint else {}
        if call.should_capture_content:
            call.output_messages = [
                OutputMessage("assistant", [TextPart(outcome.text)], outcome.finish_reason)
            ]
        self._measure(outcome.usage, {"gen_ai.response.model": outcome.model})
        call.stop()

    def abandon(self) -> None:
        """End the span from another thread, while the request continues."""
        self.span.set_status(Status(StatusCode.ERROR, ABANDONED.message))
        self.span.set_attribute("error.type", ABANDONED.type)
        self.span.end()

    def _fail(self, error: Error, usage: Usage) -> None:
        self._measure(usage, {"error.type": error.type})
        self._invocation.fail(error)

    def _measure(self, usage: Usage, attributes: dict[str, str]) -> None:
        call = self._invocation
        model = self._asked.model or ""
        if usage.total_tokens:
            call.input_tokens = usage.input_tokens
            call.output_tokens = usage.output_tokens
            call.cache_read_input_tokens = usage.cached_tokens
            call.cache_write_input_tokens = usage.cache_write_tokens
            call.thinking_tokens = usage.reasoning_tokens
        same = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": model,
        }
        self._telemetry.measure(time.perf_counter() - self._began, usage, {**same, **attributes})


def _server_of(provider: ProviderSettings) -> JsonObject:
    address = provider.address(os.environ) if isinstance(provider, EndpointSettings) else None
    url = urlsplit(address or "")
    port = url.port or (443 if url.scheme == "https" else 80)
    return {"server_address": url.hostname, "server_port": port} if url.hostname else {}


class _Problems(logging.Handler):
    """The first complaint of the exporters, and whether they lost anything."""

    first = ""
    is_lost = False

    def emit(self, record: logging.LogRecord) -> None:
        self.first = self.first or record.getMessage()[:_SHOWN]
        self.is_lost |= record.levelno >= logging.ERROR


@contextmanager
def open_telemetry(warn: Callable[[str], None]) -> Iterator[Telemetry | None]:
    """Return the providers that the program has set up, or else new ones for this run alone, which
    have FLUSH_SECONDS at its end to send the rest; None under OTEL_SDK_DISABLED. Raises ConfigError
    for an exporter that cannot be created."""
    theirs = trace.get_tracer_provider()
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        yield None
        return
    if not isinstance(theirs, trace.ProxyTracerProvider):
        events = get_logger_provider()
        has_events = isinstance(events, sdk_logs.LoggerProvider)
        yield Telemetry(theirs, get_meter_provider(), events, has_events=has_events)
        return
    with _own_telemetry(warn) as telemetry:
        yield telemetry


@contextmanager
def _own_telemetry(warn: Callable[[str], None]) -> Iterator[Telemetry]:
    of_traces = _make_exporters("traces")
    of_metrics = _make_exporters("metrics")
    of_logs = _make_exporters("logs")
    resource = Resource.create()
    if str(resource.attributes["service.name"]).startswith("unknown_service"):
        resource = resource.merge(Resource({"service.name": "aeon"}))
    tracers = sdk_trace.TracerProvider(resource=resource, shutdown_on_exit=False)
    loggers = sdk_logs.LoggerProvider(resource, shutdown_on_exit=False)
    meters = sdk_metrics.MeterProvider(
        [PeriodicExportingMetricReader(each) for each in of_metrics],
        resource,
        shutdown_on_exit=False,
    )
    for exporter in of_traces:
        tracers.add_span_processor(BatchSpanProcessor(exporter))
    for exporter in of_logs:
        loggers.add_log_record_processor(BatchLogRecordProcessor(exporter))
    log = logging.getLogger("opentelemetry")
    problems = _Problems(logging.WARNING)
    log.addHandler(problems)
    log.propagate = False  # also for threads that outlive the run
    try:
        yield Telemetry(tracers, meters, loggers, has_events=bool(of_logs))
    finally:
        is_sent = _shut_down(tracers.shutdown, meters.shutdown, loggers.shutdown)
        # Without any handler, Python would print the complaints that come later.
        log.addHandler(logging.NullHandler())
        log.removeHandler(problems)
        for exporter in () if is_sent else (*of_traces, *of_logs, *of_metrics):
            exporter.shutdown()  # gives up what it is still trying to send
        if problems.is_lost or not is_sent:
            why = problems.first or f"it did not answer for {FLUSH_SECONDS:g} seconds"
            warn(f"observability.otel: the collector did not accept everything: {why}")


def _shut_down(*ends: Callable[[], object]) -> bool:
    """Let the providers send the rest. Returns whether the time was enough."""
    threads = [threading.Thread(target=end, name="aeon-otel", daemon=True) for end in ends]
    until = time.monotonic() + FLUSH_SECONDS
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return not any(thread.is_alive() for thread in threads)


def _make_exporters(signal: str) -> list[Any]:
    """Create the exporters that `OTEL_<SIGNAL>_EXPORTER` names from their own variables; OTLP if it
    names none."""
    variable = f"OTEL_{signal.upper()}_EXPORTER"
    made = []
    protocols = (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next(filter(None, map(os.environ.get, protocols)), "http/protobuf").partition("/")[0]
    for name in (os.environ.get(variable) or "otlp").replace(" ", "").split(","):
        given = f"otlp_proto_{protocol}" if name == "otlp" else name
        try:
            found = entry_points(group=f"opentelemetry_{signal}_exporter", name=given)
            if name != "none":
                made.append(next(iter(found)).load()())
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            if isinstance(error, StopIteration):
                why = "is not installed"
            hint = (
                f"{variable} is otlp, console or none, OTEL_EXPORTER_OTLP_PROTOCOL http/protobuf."
            )
            raise ConfigError(
                f"observability.otel: the exporter {given} of {signal}: {why}", hint=hint
            ) from error
    return made
