"""The state of a run, updated by its events. Nothing is drawn here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from aeon.cli.terminal.glyphs import STATES
from aeon.cli.terminal.text import one_line
from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceScores, ConvergenceThresholds
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.domain.tool_result import ToolResult
from aeon.store.cassette import Provenance

SCORES = ("completeness", "coherence", "consistency")
_NEVER_CALLED = ("unknown", "invalid_arguments", "refused")


def state_of(step: PlanStep) -> str:
    """pending, running, complete, failed, invalid, blocked or replaced."""
    if step.replaced_by is not None:
        return "replaced"
    return "blocked" if step.blocked else step.status


@dataclass(frozen=True, slots=True)
class StepView:
    """A step as it stands. `ended` numbers the ends of steps; `tool` was called for it, `calling` is being called;
    `repaired` and `fallback` tell how a missing tool was replaced."""

    step: PlanStep
    started: datetime | None = None
    seconds: float | None = None
    ended: int = 0
    tool: str | None = None
    calling: str | None = None
    repaired: bool = False
    fallback: bool = False

    @property
    def way(self) -> str:
        """How the step is carried out: `tool calculator`, `model`."""
        if self.fallback:
            return "model, instead of a missing tool"
        tool = self.tool or self.step.tool
        if tool is None:
            return "model"
        return f"tool {one_line(tool)}" + (", repaired" if self.repaired else "")

    @property
    def state(self) -> str:
        """As `state_of` its step."""
        return state_of(self.step)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Settings of the display: the thresholds of its scores (None: nothing is assessed), the seconds that running
    work has once the run is `stopping`, and the cost up to an event (None: not known)."""

    thresholds: ConvergenceThresholds | None = None
    grace_seconds: float = 10.0
    stopping: Callable[[], bool] = lambda: False
    cost: Callable[[e.Recorded], float | None] = lambda _: None


@dataclass(slots=True)
class RunView:
    """The state of a run for display. A subscriber: each event updates the view.

    `recording` is set for a replay, of which no times are shown. `expected` is the number of cycles that the plan was
    expected to take, `newest` the step whose output came last, `stopped` when the run was first seen to be stopping.
    """

    conditions: Conditions = Conditions()
    recording: Provenance | None = None
    task: str = ""
    synthetic: bool = False
    started: datetime | None = None
    now: datetime | None = None
    stopped: datetime | None = None
    finished: bool = False
    pass_number: int = 0
    phase: str = ""
    trail: dict[str, str] = field(default_factory=dict)
    plan: Plan | None = None
    expected: int | None = None
    steps: dict[str, StepView] = field(default_factory=dict)
    newest: PlanStep | None = None
    ttl_remaining: int | None = None
    ttl_allocated: int | None = None
    tokens: int = 0
    cost: float | None = None
    in_flight: dict[int, str] = field(default_factory=dict)
    repairs: int = 0
    retries: int = 0
    tool_calls: int = 0
    scores: list[ConvergenceScores] = field(default_factory=list)
    validated: e.Validated | None = None
    assessed: e.Assessed | None = None
    refined: e.Refined | None = None
    questions: list[FollowUpQuestion] = field(default_factory=list)
    advisories: list[str] = field(default_factory=list)
    note: str = ""

    def __call__(self, recorded: e.Recorded) -> None:
        """Take in one event."""
        self.now = datetime.fromisoformat(recorded.time)
        event = recorded.event
        match event:
            case e.RunStarted():
                self.started, self.task, self.synthetic = self.now, event.task, event.synthetic
            case e.RunFinished():
                self.finished, self.ttl_allocated = True, event.ttl_allocated
                self.ttl_remaining = event.ttl_allocated - event.ttl_used
                self.in_flight.clear()
            case e.CallAnswered() | e.CallFailed():
                self.tokens += event.usage.total_tokens
                self.cost = self.conditions.cost(recorded)
            case _:
                self._track_progress(event)
                self._track_steps(event)
                self._track_judgements(event)
                self._track_incidents(event)

    @property
    def elapsed(self) -> timedelta:
        """How long the run has lasted, up to the last event."""
        return self.now - self.started if self.now and self.started else timedelta()

    def counts(self) -> dict[str, int]:
        """How many steps are in each state that occurs."""
        states = [view.state for view in self.steps.values()]
        return {state: states.count(state) for state in STATES if state in states}

    def _track_progress(self, event: e.Event) -> None:
        match event:
            case e.PhaseStarted():
                self._enter_pass(event.pass_number)
                self.phase = event.phase
                self.trail[event.phase] = "running"
            case e.PhaseFinished():
                self._enter_pass(event.pass_number)
                self.trail[event.phase] = event.outcome
            case e.PassStarted() | e.PassFinished():
                self._enter_pass(event.pass_number)
                self.ttl_remaining = event.ttl_remaining
            case e.CycleStarted():
                if event.call != "tool":
                    self.in_flight[event.site.sequence] = event.call
                if event.ttl_remaining is not None:
                    self.ttl_remaining = event.ttl_remaining
            case e.CycleFinished():
                self.in_flight.pop(event.site.sequence, None)

    def _enter_pass(self, number: int) -> None:
        if number != self.pass_number:
            self.pass_number, self.trail = number, {}

    def _track_steps(self, event: e.Event) -> None:
        match event:
            case e.CycleStarted():
                # The plan before it is made: as Phase B has it so far.
                if event.plan is not None and self.expected is None:
                    self._replan(event.plan)
            case e.PlanMade():
                self.expected = event.expected_calls
                self._replan(event.plan)
            case e.Refined():
                self._replan(event.plan)
            case e.StepStarted():
                self.steps[event.step.step_id] = StepView(event.step, self.now)
            case e.StepFinished():
                self._end_step(event.step)
            case e.ToolStarted():
                self._mark(event.step_id, calling=event.tool)
            case e.ToolCalled():
                self._mark(event.step_id, tool=event.result.tool, calling=None)

    def _replan(self, plan: Plan) -> None:
        self.plan, known = plan, self.steps
        self.steps = {
            step.step_id: replace(known[step.step_id], step=step) if step.step_id in known else StepView(step)
            for step in plan.steps
        }

    def _end_step(self, step: PlanStep) -> None:
        if step.step_output and step.status != "failed":
            self.newest = step
        known = self.steps.get(step.step_id, StepView(step))
        seconds = (self.now - known.started).total_seconds() if self.now and known.started else None
        ended = 1 + max((view.ended for view in self.steps.values()), default=0)
        self.steps[step.step_id] = replace(known, step=step, seconds=seconds, ended=ended, calling=None)

    def _mark(self, step_id: str | None, **changes: Any) -> None:
        if step_id in self.steps:
            self.steps[step_id] = replace(self.steps[step_id], **changes)

    def _track_judgements(self, event: e.Event) -> None:
        match event:
            case e.ProfileInferred():
                self.ttl_allocated = self.ttl_remaining = event.depth.allocated_ttl
            case e.ProfileUpdated():
                self.ttl_allocated = event.transition.ttl_after
            case e.Validated():
                self.validated = event
            case e.Assessed():
                self.assessed = event
                self.scores += [event.assessment.scores] if event.assessment.evaluated else []
            case e.Refined():
                self.refined = event
                self.questions += event.refinement.questions

    def _track_incidents(self, event: e.Event) -> None:
        match event:
            case e.RepairFinished(record=record):
                self.repairs += 1
                self.note = f"{record.call}: {record.outcome}"
            case e.ToolCalled(result=result):
                self.tool_calls += was_called(result)
                if result.error is not None:
                    self.note = f"tool {result.tool}: {result.error}"
            case e.RetryScheduled():
                self.retries += 1
                self.note = f"{event.call}: {event.error}, again in {event.seconds:.1f}s"
            case e.FallbackUsed():
                self.note = f"{event.endpoint} answers instead of {event.failed}: {event.error}"
            case e.AdvisoryRaised(advisory=advisory):
                where = f" {advisory.step_id}" if advisory.step_id else ""
                self.note = f"{advisory.kind}{where}: {advisory.message}"
                self.advisories.append(self.note)
                if advisory.kind in ("repaired_step", "fallback_step"):
                    self._mark(advisory.step_id, **{advisory.kind.removesuffix("_step"): True})


def was_called(result: ToolResult) -> bool:
    """Whether the tool itself was reached: not when it does not exist, is not approved or its arguments are invalid."""
    return result.error_kind not in _NEVER_CALLED
