"""The state of a run, updated by its events. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceScores, ConvergenceThresholds
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.tool_result import ToolResult
from aeon.store.cassette import Provenance

SCORES = ("completeness", "coherence", "consistency")


def was_called(result: ToolResult) -> bool:
    """Whether the tool itself was reached: not when it does not exist, is not approved or its arguments are invalid."""
    return result.error_kind not in ("unknown", "invalid_arguments", "refused")


@dataclass(slots=True)
class StepView:
    """A step as it stands. `calling` is the tool that is being called for it."""

    step: PlanStep
    started: datetime | None = None
    seconds: float | None = None
    calling: str | None = None


@dataclass(slots=True)
class RunView:
    """The state of a run for display; a subscriber. Given: the thresholds of its scores (None: nothing is assessed),
    the seconds that running work has once the run is `stopped`, the cost up to an event (None: not known), and of a
    replay, of which no times are shown, its recording."""

    thresholds: ConvergenceThresholds | None = None
    grace_seconds: float = 10.0
    cost_at: Callable[[e.Recorded], float | None] = lambda _: None
    recording: Provenance | None = None
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
    in_flight: dict[int, str] = field(default_factory=dict)
    scores: list[ConvergenceScores] = field(default_factory=list)

    def __call__(self, recorded: e.Recorded) -> None:
        """Take in one event."""
        self.now = datetime.fromisoformat(recorded.time)
        event = recorded.event
        self._track_course(event)
        self._track_steps(event)
        match event:
            case e.CallAnswered() | e.CallFailed():
                self.tokens += event.usage.total_tokens
                self.cost = self.cost_at(recorded)
            case e.Assessed() if event.assessment.evaluated:
                self.scores.append(event.assessment.scores)

    @property
    def elapsed(self) -> timedelta:
        """How long the run has lasted, up to the last event."""
        return self.now - self.started if self.now and self.started else timedelta()

    def _track_course(self, event: e.Event) -> None:
        match event:
            case e.RunStarted():
                self.started, self.task, self.synthetic = self.now, event.task, event.synthetic
            case e.PhaseStarted():
                self.phase = event.phase
            case e.PassStarted():
                self.pass_number, self.ttl_remaining = event.pass_number, event.ttl_remaining
                self.ttl_allocated = self.ttl_allocated or event.ttl_remaining
            case e.CycleStarted():
                if event.call != "tool":
                    self.in_flight[event.site.sequence] = event.call
                if event.ttl_remaining is not None:
                    self.ttl_remaining = event.ttl_remaining
            case e.CycleFinished():
                self.in_flight.pop(event.site.sequence, None)
            case e.ProfileInferred():
                self.ttl_allocated = self.ttl_remaining = event.depth.allocated_ttl
            case e.ProfileUpdated():
                self.ttl_allocated = event.transition.ttl_after

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
                self._step_view(event.step).started = self.now
            case e.StepFinished():
                self._end_step(event.step)
            case e.ToolStarted() if event.step_id in self.steps:
                self.steps[event.step_id].calling = event.tool
            case e.ToolCalled() if event.step_id in self.steps:
                self.steps[event.step_id].calling = None

    def _step_view(self, step: PlanStep) -> StepView:
        view = self.steps.setdefault(step.step_id, StepView(step))
        view.step = step
        return view

    def _replan(self, plan: Plan | None) -> None:
        self.plan = plan
        self.steps = {step.step_id: self._step_view(step) for step in (plan.steps if plan else ())}

    def _end_step(self, step: PlanStep) -> None:
        view = self._step_view(step)
        view.calling = None
        if view.started and self.now:
            view.seconds = (self.now - view.started).total_seconds()
