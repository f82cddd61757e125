"""The state of a run, updated by its events. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceScores, ConvergenceThresholds
from aeon.domain.checks import ToolResult
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite
from aeon.llm.stack.limits import LimitSettings
from aeon.llm.watching import Piece, Waiting
from aeon.store.cassette import Provenance

_LEAST_SECONDS_SHOWN = 0.5
_LEAST_SECONDS_MEASURED = 0.02
SCORES = ("completeness", "coherence", "consistency")


def was_called(result: ToolResult) -> bool:
    """Check whether the tool itself was called: not when it does not exist, is not approved or its
    arguments are invalid."""
    return result.error_kind not in ("unknown", "invalid_arguments", "refused")


@dataclass(slots=True)
class StepView:
    """The present state of a step. `calling` are the tools being called for it, by the number of
    the call, `runs` how often it was started; `queued` until a request is sent for it."""

    step: PlanStep
    started: datetime | None = None
    seconds: float | None = None
    calling: dict[int, str] = field(default_factory=dict)
    runs: int = 0
    queued: bool = False

    @property
    def state(self) -> str:
        """As `PlanStep.state`, or queued."""
        return "queued" if self.queued else self.step.state


@dataclass(slots=True)
class CallView:
    """A structured call under way: its start, the cause and end of a wait before it is made
    (again), and the text of its answer so far. `begun` once a request was sent for it."""

    call: str
    step_id: str | None = None
    since: datetime | None = None
    wait: str = ""
    until: datetime | None = None
    text: str = ""
    begun: bool = False


@dataclass(slots=True)
class RunView:
    """The display state of a run; a subscriber. Given: the thresholds of its scores (None: nothing
    is assessed), the seconds that running work has once the run is `stopped`, how many steps run in
    parallel, the caps, the cost up to an event (None: unknown), the recording of a replay, which
    shows no times, and another picture."""

    thresholds: ConvergenceThresholds | None = None
    grace_seconds: float = 10.0
    parallel: int = 8
    limits: LimitSettings = field(default_factory=LimitSettings)
    cost_at: Callable[[e.Recorded], float | None] = lambda _: None
    recording: Provenance | None = None
    draw: Callable[[datetime, int, int], list[Any]] | None = None
    task: str = ""
    synthetic: bool = False
    started: datetime | None = None
    now: datetime | None = None
    stopped: datetime | None = None
    pass_number: int = 0
    phase: str = ""
    plan: Plan | None = None
    expected: int | None = None
    steps: dict[str, StepView] = field(default_factory=dict)
    ttl_remaining: int = 0
    ttl_allocated: int = 0
    tokens: int = 0
    cost: float | None = None
    requests: int = 0
    endpoint: str = ""
    fell_back: bool = False
    watched: bool = False
    in_flight: dict[int, CallView] = field(default_factory=dict)
    took: dict[str, list[float]] = field(default_factory=dict)
    batch_ended: datetime | None = None
    refining_seconds: float = 0.0
    passes_done: int = 0
    scores: list[ConvergenceScores] = field(default_factory=list)

    def __call__(self, recorded: e.Recorded) -> None:
        """Process one event."""
        self.now = datetime.fromisoformat(recorded.time)
        event = recorded.event
        self._track_course(event)
        self._track_steps(event)
        self._track_calls(event)
        match event:
            case e.CallAnswered() | e.CallFailed():
                self.tokens += event.usage.total_tokens
                self.requests += event.usage.requests
                self.cost = self.cost_at(recorded)
                self.endpoint = event.endpoint
            case e.FallbackUsed():
                self.fell_back = True
            case e.Assessed() if event.assessment.evaluated:
                self.scores.append(event.assessment.scores)

    def watch(self, seen: Waiting | Piece, now: datetime) -> None:
        """Process an observation of a call under way."""
        site = seen.site
        # An observation may precede the event of the call's start.
        call = self.in_flight.setdefault(site.sequence, CallView(seen.call, site.step_id, now))
        self.watched = call.begun = True
        if step := self.steps.get(site.step_id or ""):
            step.started = now if step.queued else step.started
            step.queued = False
        match seen:
            case Waiting():
                # A short wait is for other calls: its length is unknown.
                is_long = seen.seconds > _LEAST_SECONDS_SHOWN
                call.wait = (
                    ("the rate limit" if is_long else "its turn") if seen.seconds else seen.text
                )
                call.until = now + timedelta(seconds=seen.seconds) if is_long else None
            case Piece():
                call.wait = ""
                call.until = None
                call.text = seen.text if seen.begins else call.text + seen.text

    @property
    def elapsed(self) -> timedelta:
        """How long the run has lasted, up to the last event."""
        return self.now - self.started if self.now and self.started else timedelta()

    def _track_calls(self, event: e.Event) -> None:
        match event:
            case e.CycleStarted() if event.call not in e.FREE_WORK:
                begun = CallView(event.call, event.site.step_id, self.now)
                self.in_flight.setdefault(event.site.sequence, begun)
            case e.CycleFinished():
                self._end_call(event.site, self.in_flight.pop(event.site.sequence, None))
            # What came of a failed attempt is no part of the answer.
            case e.RetryScheduled() if call := self.in_flight.get(event.site.sequence):
                call.wait = event.error
                call.until = self.now and self.now + timedelta(seconds=event.seconds)
                call.text = ""
            case e.CallAnswered() | e.CallFailed() if call := self.in_flight.get(
                event.site.sequence
            ):
                call.wait = ""
                call.until = None

    def _track_course(self, event: e.Event) -> None:
        match event:
            case e.RunStarted():
                self.started = self.now
                self.task = event.task
                self.synthetic = event.synthetic
            case e.PhaseStarted():
                self.phase = event.phase
            case e.PassStarted():
                self.pass_number = event.pass_number
                self.ttl_remaining = event.ttl_remaining
                self.ttl_allocated = self.ttl_allocated or event.ttl_remaining
                self.batch_ended = None
            case e.PassFinished() if event.pass_number:
                self.passes_done += 1
            case e.CycleStarted() if event.ttl_remaining is not None:
                self.ttl_remaining = event.ttl_remaining
            case e.ProfileInferred():
                self.ttl_allocated = self.ttl_remaining = event.depth.allocated_ttl
            case e.ProfileUpdated():
                self.ttl_allocated = event.transition.ttl_after

    def _start_step(self, step: PlanStep) -> None:
        view = self._step_view(step)
        view.started = self.now
        view.runs += 1
        calls = [call for call in self.in_flight.values() if call.step_id == step.step_id]
        begun = any(call.begun for call in calls)
        view.queued = self.watched and not begun and step.tool is None

    def _track_steps(self, event: e.Event) -> None:
        match event:
            case e.CycleStarted(plan=Plan()) if self.expected is None:
                self._replan(event.plan)  # as Phase B has it so far
            case e.PlanMade():
                self.expected = event.expected_calls
                self._replan(event.plan)
            case e.Refined():
                self._replan(event.plan)
            case e.StepStarted():
                self._start_step(event.step)
            case e.StepFinished():
                self._end_step(event.step)
            case e.StepUnfolded():
                self._replan(event.plan)
            case e.StepSkipped():
                self._step_view(event.step)
            case e.ToolStarted() if event.step_id in self.steps:
                self.steps[event.step_id].calling[event.number] = event.tool
            case e.ToolCalled() if event.step_id in self.steps:
                self.steps[event.step_id].calling.pop(event.number, None)

    def _step_view(self, step: PlanStep) -> StepView:
        view = self.steps.setdefault(step.step_id, StepView(step))
        view.step = step
        return view

    def _replan(self, plan: Plan | None) -> None:
        self.plan = plan
        self.steps = {step.step_id: self._step_view(step) for step in (plan.steps if plan else ())}

    def _end_step(self, step: PlanStep) -> None:
        view = self._step_view(step)
        view.calling.clear()
        view.queued = False
        if view.started and self.now:
            view.seconds = (self.now - view.started).total_seconds()
            self._measure("step", view.seconds)
        self.batch_ended = self.now

    def _end_call(self, site: CallSite, call: CallView | None) -> None:
        if call is None or call.call == "step" or not (call.since and self.now):
            return
        seconds = (self.now - call.since).total_seconds()
        self._measure(call.call, seconds)
        if site.phase == "REFINE" and site.pass_number:
            self.refining_seconds += seconds

    def _measure(self, call: str, seconds: float) -> None:
        # The time of a stored answer predicts nothing.
        if seconds >= _LEAST_SECONDS_MEASURED:
            self.took.setdefault(call, []).append(seconds)
