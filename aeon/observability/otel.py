"""Traces of a run under OpenTelemetry's names for generative AI: spans for the run, its passes, its
planning, evaluation and steps, its calls and tools. docs/decisions/0030 explains why they are made
during the run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import singledispatchmethod, wraps
from textwrap import shorten
from typing import Any, TypeVar, cast

from opentelemetry.context import Context, attach, detach
from opentelemetry.trace import (
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    set_span_in_context,
)
from opentelemetry.util.genai.invocation import (
    LocalAgentInvocation,
    ToolInvocation,
    WorkflowInvocation,
)
from opentelemetry.util.genai.types import Error, InputMessage, OutputMessage, TextPart

from aeon.domain import events as e
from aeon.domain.assessment import SCORE_CODES, ConvergenceAssessment
from aeon.domain.history import GOOD_ENDS
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.domain.values import JsonObject
from aeon.llm.protocols import CALL_HEADERS
from aeon.llm.settings import ProviderSettings
from aeon.observability.otel_export import ABANDONED, Telemetry, TracedCall, open_telemetry

_SPANS_OF_PHASES = {"PLAN": "plan", "REFINE": "plan", "EVALUATE": "evaluate"}
_LONGEST = 300
_Method = TypeVar("_Method", bound=Callable[..., Any])
_call: ContextVar[TracedCall | None] = ContextVar("traced_call", default=None)


def _harmless(method: _Method) -> _Method:
    """Run the method under a lock; turn its first error into a warning, and every error into
    None."""

    @wraps(method)
    def guard(self: Tracing, *args: Any) -> Any:
        with self.lock:
            try:
                return method(self, *args)
            except Exception as error:
                self.warn_once(error)

    return cast(_Method, guard)


@contextmanager
def open_tracing(warn: Callable[[str], None]) -> Iterator[tuple[Tracing, ...]]:
    """Open what traces a run; nothing under OTEL_SDK_DISABLED. Raises ConfigError for an exporter
    that cannot be created."""
    with open_telemetry(warn) as telemetry:
        tracing = Tracing(telemetry, warn) if telemetry else None
        failure: Error | None = ABANDONED
        try:
            yield (tracing,) if tracing else ()
            failure = None
        finally:
            if tracing:
                tracing.end(failure)


class Tracing:
    """A subscriber that starts and ends spans during the run, and a tracer of its calls. Other
    threads send the spans, so that it returns at once."""

    def __init__(self, telemetry: Telemetry, warn: Callable[[str], None]) -> None:
        self.lock = threading.RLock()
        self._telemetry = telemetry
        self._handler = telemetry.handler
        self._warn = warn
        self._has_warned = False
        self._run: WorkflowInvocation | None = None
        self._pass: LocalAgentInvocation | None = None
        self._thinking: tuple[str, int] | None = None  # its phase and start
        self._thought: Span | None = None
        self._steps: dict[str, Span] = {}
        self._tools: dict[tuple[int, int], tuple[ToolInvocation, Any]] = {}
        self._calls: set[TracedCall] = set()
        self._latest: dict[int, SpanContext] = {}  # by dispatch: the call that a repair belongs to

    def warn_once(self, error: Exception) -> None:
        """Warn of the first error."""
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"observability.otel: {type(error).__name__}: {error}")

    @_harmless
    def __call__(self, recorded: e.Recorded) -> None:
        """Process one event, in the thread in which it happens."""
        self._take(recorded.event)

    @singledispatchmethod
    def _take(self, event: e.Event) -> None:
        """Ignore all other events: they change no span."""

    @_take.register
    def _(self, event: e.RunStarted) -> None:
        run = self._run = self._handler.workflow("aeon", conversation_id=event.run_id)
        # Not everything in this thread belongs to the run; spans that do get it as their parent.
        run.suspend()
        # The conventions' newer name for the workflow's name in that version of util-genai.
        run.attributes |= {
            "gen_ai.agent.name": "aeon",
            "aeon.run_id": event.run_id,
            "aeon.synthetic": event.synthetic,
        }
        if run.should_capture_content:
            run.input_messages = [InputMessage("user", [TextPart(event.task)])]

    @_take.register
    def _(self, event: e.RunFinished) -> None:
        reason = event.termination_reason
        if self._run:
            self._run.attributes |= {
                "aeon.converged": event.converged,
                "aeon.passes": event.passes,
                "aeon.termination_reason": reason,
                "aeon.ttl.used": event.ttl_used,
            }
            if self._run.should_capture_content:
                answer = OutputMessage("assistant", [TextPart(event.answer)], reason)
                self._run.output_messages = [answer]
        is_good = reason in GOOD_ENDS
        self.end(None if is_good else Error(reason.replace("_", " "), reason))

    @_take.register
    def _(self, event: e.StepStarted) -> None:
        step = event.step
        known: dict[str, str | int] = {
            "gen_ai.operation.name": "step",
            "aeon.step": step.step_id,
            "aeon.pass": event.pass_number,
        }
        if step.tool:
            known["aeon.tool"] = step.tool
        span = self._telemetry.tracer.start_span(
            f"step {step.step_id}", self._parent(), SpanKind.INTERNAL, known
        )
        self._steps[step.step_id] = span

    @_take.register
    def _(self, event: e.StepFinished) -> None:
        step = event.step
        span = self._steps.pop(event.step.step_id, None)
        if span is None:
            return
        span.set_attribute("aeon.status", step.state)
        if step.status == "failed":
            why = _shorten(step.errors[-1]) if step.errors else ""
            span.set_status(Status(StatusCode.ERROR, why))
            span.set_attribute("error.type", "StepFailed")
        span.end()

    @_take.register
    def _(self, event: e.PassStarted) -> None:
        self._pass = self._handler.invoke_local_agent(
            agent_name=f"pass {event.pass_number}", context=self._parent()
        )
        self._pass.suspend()
        self._pass.attributes |= {
            "aeon.pass": event.pass_number,
            "aeon.ttl.remaining": event.ttl_remaining,
        }

    @_take.register
    def _(self, event: e.PassFinished) -> None:
        if self._pass:
            self._pass.attributes["aeon.complete"] = event.complete
            self._pass.stop()
        self._pass = None

    @_take.register
    def _(self, event: e.PhaseStarted) -> None:
        if event.phase in _SPANS_OF_PHASES:
            self._thinking = event.phase, time.time_ns()

    @_take.register
    def _(self, event: e.PhaseFinished) -> None:
        if self._thought:
            self._thought.set_attribute("aeon.outcome", event.outcome)
            self._thought.end()
        self._thinking = self._thought = None

    @_take.register
    def _(self, event: e.ToolStarted) -> None:
        place = self._parent(event.step_id)
        tool = self._handler.tool(event.tool, tool_type="function", context=place)
        tool.suspend()
        tool.attributes |= {"aeon.pass": event.site.pass_number, "aeon.step": event.step_id}
        if tool.should_capture_content:
            tool.arguments = event.arguments
        # The thread that runs the tool copies this thread's context.
        self._tools[event.site.sequence, event.number] = tool, attach(tool.context)

    @_take.register
    def _(self, event: e.ToolCalled) -> None:
        called = self._tools.pop((event.site.sequence, event.number), None)
        if called is None:
            return
        tool, token = called
        detach(token)
        tool.tool_result = event.result.output if tool.should_capture_content else None
        tool.attributes["aeon.replayed"] = event.result.replayed
        if event.result.error_kind:
            message = _shorten(event.result.error or "")
            tool.fail(Error(message, event.result.error_kind))
        tool.stop()

    @_take.register
    def _(self, event: e.RetryScheduled) -> None:
        call = _call.get()
        if call in self._calls and call:
            call.retry(event)
            self._latest[event.site.sequence] = call.span.get_span_context()

    @_take.register
    def _(self, event: e.Assessed) -> None:
        if self._pass:
            for result in _evaluations(event.assessment):
                self._telemetry.emit("gen_ai.evaluation.result", result, self._pass.span)

    @_harmless
    def start_call(self, request: LLMRequest, provider: ProviderSettings) -> TracedCall | None:
        """Open the span of a request and make it current in this thread; a repair is linked to the
        call it repairs."""
        site = request.site
        call = TracedCall(self._telemetry, request, provider, self._parent(site.step_id))
        if site.attempt and site.sequence in self._latest:
            call.span.add_link(self._latest[site.sequence], {"aeon.link": "repair"})
        self._latest[site.sequence] = call.span.get_span_context()
        self._calls.add(call)
        return call

    @_harmless
    def end_call(self, call: TracedCall, outcome: LLMResponse | BaseException) -> None:
        """End the span of a request with its outcome."""
        if call in self._calls:
            self._calls.remove(call)
            call.end(outcome)

    @_harmless
    def end(self, failure: Error | None) -> None:
        """End all open spans."""
        # Requests under way go on in their threads, which find their span no longer known.
        for call in self._calls:
            call.abandon()
        for tool, _ in self._tools.values():
            tool.fail(ABANDONED)
        for span in (*self._steps.values(), *filter(None, (self._thought,))):
            span.end()
        for invocation, error in ((self._pass, ABANDONED), (self._run, failure)):
            if invocation and error:
                invocation.fail(error)
            elif invocation:
                invocation.stop()
        self._calls = set()
        self._tools = {}
        self._steps = {}
        self._thought = self._pass = self._run = None

    def _parent(self, step_id: str | None = None) -> Context | None:
        """Return the parent of a new span: the step; or the planning or evaluation, whose span
        starts with its first call; or the pass; or the run."""
        above = self._pass or self._run
        if step_id in self._steps and self._pass:
            return set_span_in_context(self._steps[step_id], self._pass.context)
        if not self._thinking or not self._pass:
            return above.context if above else None
        if not self._thought:
            phase, began = self._thinking
            operation = _SPANS_OF_PHASES[phase]
            name = self._pass.agent_name or ""
            known = {
                "gen_ai.operation.name": operation,
                "gen_ai.agent.name": name,
                "aeon.phase": phase,
            }
            self._thought = self._telemetry.tracer.start_span(
                f"{operation} {name}",
                self._pass.context,
                SpanKind.INTERNAL,
                known,
                start_time=began,
            )
        return set_span_in_context(self._thought, self._pass.context)

    def trace_calls(self, llm: LLMAdapter, provider: ProviderSettings) -> LLMAdapter:
        """Return the adapter with a span for each of its requests and attempts."""
        return _TracedAdapter(llm, self, provider)


class _TracedAdapter:
    def __init__(self, inner: LLMAdapter, tracing: Tracing, provider: ProviderSettings) -> None:
        self._inner = inner
        self._tracing = tracing
        self._provider = provider

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        before = CALL_HEADERS.set({})
        call = self._tracing.start_call(request, self._provider)
        current = _call.set(call)
        outcome: LLMResponse | BaseException | None = None
        try:
            response = outcome = self._inner.complete(request)
            return response
        except BaseException as error:
            outcome = error
            raise
        finally:
            if call and outcome:
                self._tracing.end_call(call, outcome)
            _call.reset(current)
            CALL_HEADERS.reset(before)


def _shorten(message: str) -> str:
    return shorten(message, _LONGEST, placeholder="...")


def _evaluations(assessment: ConvergenceAssessment) -> Iterator[JsonObject]:
    """Yield the verdict, each score and each criterion, labelled `pass` or `fail`; without a
    verdict, the reason."""
    if not assessment.evaluated:
        yield {"gen_ai.evaluation.name": "convergence", "error.type": assessment.reason_codes[0]}
        return
    explanation = assessment.explanation
    scores = assessment.scores
    codes = assessment.reason_codes
    found: list[tuple[str, float | None, bool, str]] = [
        ("convergence", None, assessment.converged, explanation)
    ]
    found += [
        (name, scores[f"{name}_score"], low not in codes, explanation)
        for name, (_, low) in SCORE_CODES.items()
    ]
    found += [(each.name, None, each.met, each.reason) for each in assessment.criteria]
    for name, score, passed, why in found:
        known = {
            "name": name,
            "score.value": score,
            "score.label": "pass" if passed else "fail",
            "explanation": why,
        }
        yield {
            f"gen_ai.evaluation.{key}": value for key, value in known.items() if value is not None
        }
