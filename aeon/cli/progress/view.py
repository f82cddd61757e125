"""A run as a person watches it: what its events have told so far. No drawing here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from aeon.cli.terminal.text import one_line
from aeon.domain import events as e
from aeon.domain.assessment import ConvergenceScores, ConvergenceThresholds
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.domain.tool_result import ToolResult
from aeon.store.cassette import Provenance

SCORES = ("completeness", "coherence", "consistency")


@dataclass(frozen=True, slots=True)
class StepView:
    """A step as it stands; `ended` numbers the ends of steps, so that the latest are known.

    `tool` is the one that was called for it, `calling` the one whose call is under way; `repaired` and `fallback` say
    what became of a missing one.
    """

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
        """How it was carried out, or is to be: `tool calculator`, `model`; with what became of a missing tool."""
        if self.fallback:
            return "model, in place of a missing tool"
        tool = self.tool or self.step.tool
        if tool is None:
            return "model"
        return f"tool {one_line(tool)}" + (", repaired" if self.repaired else "")

    @property
    def state(self) -> str:
        """pending, running, complete, failed, invalid, blocked or replaced."""
        if self.step.replaced_by is not None:
            return "replaced"
        return "blocked" if self.step.blocked else self.step.status


def _never() -> bool:
    return False


def _no_cost(_: e.Recorded) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a run is shown against: the bars of its scores (None where nothing is assessed), how long work may go on
    once it is `stopping`, and what it has cost, in the currency of the prices, up to an event (None: not known)."""

    thresholds: ConvergenceThresholds | None = None
    grace_seconds: float = 10.0
    stopping: Callable[[], bool] = _never
    cost: Callable[[e.Recorded], float | None] = _no_cost


@dataclass(slots=True)
class RunView:
    """What is known of a run. A subscriber: each event it is given changes it.

    `recording` is set for a replay: who had answered, and when; of its times nothing is told. `expected` is the number
    of cycles that the plan was expected to take, `newest` the step whose output came last, `stopped` when the run was
    seen to be stopping.
    """

    conditions: Conditions = Conditions()
    task: str = ""
    provider: str = ""
    synthetic: bool = False
    started: datetime | None = None
    now: datetime | None = None
    pass_number: int = 0
    phase: str = ""
    trail: dict[str, str] = field(default_factory=dict)
    steps: dict[str, StepView] = field(default_factory=dict)
    scores: list[ConvergenceScores] = field(default_factory=list)
    ttl_remaining: int | None = None
    ttl_allocated: int | None = None
    tokens: int = 0
    requests: int = 0
    in_flight: dict[int, str] = field(default_factory=dict)
    repairs: int = 0
    retries: int = 0
    tool_calls: int = 0
    evaluates: bool = False
    questions: list[FollowUpQuestion] = field(default_factory=list)
    cost: float | None = None
    expected: int | None = None
    plan: Plan | None = None
    newest: PlanStep | None = None
    stopped: datetime | None = None
    advisories: list[str] = field(default_factory=list)
    note: str = ""
    validated: e.Validated | None = None
    assessed: e.Assessed | None = None
    refined: e.Refined | None = None
    finished: e.RunFinished | None = None
    recording: Provenance | None = None
    _planned: bool = False

    def __call__(self, recorded: e.Recorded) -> None:
        """Take in one event."""
        self.now = datetime.fromisoformat(recorded.time)
        match recorded.event:
            case e.RunStarted() as event:
                self.started = self.now
                self.task, self.provider, self.synthetic = event.task, event.provider, event.synthetic
            case e.RunFinished() as event:
                self.finished, self.ttl_allocated = event, event.ttl_allocated
                self.ttl_remaining = event.ttl_allocated - event.ttl_used
                self.in_flight.clear()
            case e.PhaseStarted() | e.PhaseFinished() | e.PassStarted() | e.PassFinished() as event:
                self._progressed(event)
            case e.CycleStarted() | e.CycleFinished() | e.CallAnswered() | e.CallFailed():
                self._called(recorded)
            case e.PlanMade() | e.Refined() | e.StepStarted() | e.StepFinished() as event:
                self._planned_or_done(event)
            case e.ProfileInferred(depth=depth):
                self.evaluates = True
                self.ttl_allocated = self.ttl_remaining = depth.allocated_ttl
            case e.ProfileUpdated(transition=transition):
                self.ttl_allocated = transition.ttl_after
            case e.Validated() as event:
                self.validated = event
            case e.Assessed() as event:
                self.assessed = event
                self.scores += [event.assessment.scores] if event.assessment.evaluated else []
            case _:
                self._noticed(recorded.event)

    @property
    def elapsed(self) -> timedelta:
        """How long the run has lasted, up to the last event."""
        return self.now - self.started if self.now and self.started else timedelta()

    def counts(self) -> dict[str, int]:
        """How many steps are in each state, in the order a person asks for them; states without steps are left out."""
        states = [view.state for view in self.steps.values()]
        order = ("complete", "running", "blocked", "failed", "invalid", "pending", "replaced")
        return {state: states.count(state) for state in order if state in states}

    def _progressed(self, event: e.PhaseStarted | e.PhaseFinished | e.PassStarted | e.PassFinished) -> None:
        if event.pass_number != self.pass_number:
            self.pass_number, self.trail = event.pass_number, {}
        match event:
            case e.PhaseStarted():
                self.phase = event.phase
                self.trail[event.phase] = "running"
            case e.PhaseFinished():
                self.trail[event.phase] = event.outcome
            case e.PassStarted() | e.PassFinished():
                self.ttl_remaining = event.ttl_remaining

    def _called(self, recorded: e.Recorded) -> None:
        match recorded.event:
            case e.CycleStarted() as event:
                if event.call != "tool":
                    self.in_flight[event.site.sequence] = event.call
                if event.ttl_remaining is not None:
                    self.ttl_remaining = event.ttl_remaining
                if event.plan is not None and not self._planned:
                    self._replan(event.plan)
            case e.CycleFinished() as event:
                self.in_flight.pop(event.site.sequence, None)
            case e.CallAnswered() | e.CallFailed() as event:
                self.tokens += event.usage.total_tokens
                self.requests += event.usage.requests
                self.cost = self.conditions.cost(recorded)

    def _planned_or_done(self, event: e.PlanMade | e.Refined | e.StepStarted | e.StepFinished) -> None:
        match event:
            case e.PlanMade():
                self._planned, self.expected = True, event.expected_calls
                self._replan(event.plan)
            case e.Refined():
                self.questions += event.refinement.questions
                self.refined = event
                self._replan(event.plan)
            case e.StepStarted():
                self.steps[event.step.step_id] = StepView(event.step, self.now)
            case e.StepFinished():
                self._step_ended(event.step)

    def _replan(self, plan: Plan) -> None:
        self.plan, known = plan, self.steps
        self.steps = {
            step.step_id: replace(known[step.step_id], step=step) if step.step_id in known else StepView(step)
            for step in plan.steps
        }

    def _step_ended(self, step: PlanStep) -> None:
        if step.step_output and step.status != "failed":
            self.newest = step
        known = self.steps.get(step.step_id)
        started = known.started if known else None
        seconds = (self.now - started).total_seconds() if self.now and started else None
        ended = 1 + max((view.ended for view in self.steps.values()), default=0)
        self.steps[step.step_id] = replace(
            known or StepView(step), step=step, seconds=seconds, ended=ended, calling=None
        )

    def _noticed(self, event: e.Event) -> None:
        match event:
            case e.RepairFinished(record=record):
                self.repairs += 1
                self.note = f"{record.call}: {record.outcome}"
            case e.ToolStarted(step_id=step_id, tool=tool):
                self._mark(step_id, calling=tool)
            case e.ToolCalled(step_id=step_id, result=result):
                self.tool_calls += was_called(result)
                self._mark(step_id, tool=result.tool, calling=None)
                if result.error is not None:
                    self.note = f"tool {result.tool}: {result.error}"
            case e.RetryScheduled():
                self.retries += 1
                self.note = f"{event.call}: {event.error}, again in {event.seconds:.1f}s"
            case e.FallbackUsed():
                self.note = f"{event.endpoint} answers in place of {event.failed}: {event.error}"
            case e.AdvisoryRaised(advisory=advisory):
                where = f" {advisory.step_id}" if advisory.step_id else ""
                self.note = f"{advisory.kind}{where}: {advisory.message}"
                self.advisories.append(self.note)
                if advisory.kind == "repaired_step":
                    self._mark(advisory.step_id, repaired=True)
                elif advisory.kind == "fallback_step":
                    self._mark(advisory.step_id, fallback=True)

    def _mark(self, step_id: str | None, **changes: Any) -> None:
        if step_id in self.steps:
            self.steps[step_id] = replace(self.steps[step_id], **changes)


def was_called(result: ToolResult) -> bool:
    """Whether the tool itself was reached: not when it is not there, not approved, or its arguments are refused."""
    return result.error_kind not in ("unknown", "invalid_arguments", "refused")
