"""A line of `cycles.jsonl`, and the state of a running cycle from which the line is made."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from aeon.domain.events import (
    CallAnswered,
    CallFailed,
    CycleStarted,
    RepairFinished,
    RetryScheduled,
    ToolCalled,
    ToolStarted,
)
from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import ReasoningMode, Usage
from aeon.domain.tool_result import ToolResult
from aeon.domain.values import Value
from aeon.observability.plan_delta import PlanState

ABANDONED, STEP_ERROR = "Abandoned", "StepError"
FREE = "tool"  # what a step that takes no cycle is dispatched as
BATCH = "batch"  # what the plan of several cycles at once is written as
REPAIR = "repair"
CycleEvent = CallAnswered | CallFailed | RepairFinished | RetryScheduled | ToolStarted | ToolCalled


class CycleError(Value):
    """An error of a cycle: the request it struck (`repair`, or the cycle's own call), its class and its message.

    `transient`: it was tried again. `StepError`: what the step itself was found to have, such as a missing tool or one
    that failed (FR-055).
    """

    call: str
    type: str
    message: str
    transient: bool = False


class SupervisorAction(Value):
    """A repair: the errors of the answer it began with, what each of its attempts gave, and how it ended."""

    action: Literal["repair"] = "repair"
    call: str
    errors: tuple[str, ...]
    attempts: tuple[str, ...]
    outcome: Literal["repaired", "unrecoverable"]


class CycleRecord(Value):
    """One line of `cycles.jsonl`: one LLM cycle, a tool step that needed none, or a batch .

    `step_number` is the line's number in order of dispatch: 0 for the profile call, 1 for what comes first after it.
    `cycle` is the TTL cycle: 0 for the profile call, which the budget does not pay for, null for a tool step that
    took none. `sequence` is that of its events in `events.jsonl`, `step_id` the plan step it works on if it works on
    one, `timestamp` and `end_time` when it was dispatched and when it ended (ISO 8601, UTC). `plan_state` is the plan
    at dispatch, null before there is one: whole while no line has one, then as its difference from that of a line
    above (`plan_at` rebuilds it). `llm_output` is the raw text of the call's own answer, null when none came. A tool
    that had not answered when its step was left has the error `Abandoned` in `tool_calls`. `ttl_remaining` is in LLM
    cycles, this one paid; null for the profile call, which the budget comes from. `usage` is that of all its requests,
    repairs and failed ones included; `models` those that answered, `endpoints` those of the provider that did.

    A line whose `call` is `batch` is no cycle: it holds the plan of the steps that are dispatched together, and is
    written before any of them can end. `sequence` and `ttl_remaining` are those of the first of them; it has no
    `cycle`, no `step_id`, and nothing else to tell.
    """

    format: Literal["aeon.cycle/1"] = "aeon.cycle/1"
    run_id: str
    step_number: int
    cycle: int | None
    sequence: int
    pass_number: int
    phase: str
    call: str
    step_id: str | None
    reasoning_mode: ReasoningMode | None
    timestamp: str
    end_time: str
    plan_state: PlanState | None
    llm_output: str | None
    supervisor_actions: tuple[SupervisorAction, ...]
    tool_calls: tuple[ToolResult, ...]
    ttl_remaining: int | None
    errors: tuple[CycleError, ...]
    usage: Usage
    models: tuple[str, ...]
    endpoints: tuple[str, ...] = ()
    response_ids: tuple[str, ...]
    synthetic: bool


@dataclass
class OpenCycle:
    """A running cycle, with what its events have reported so far."""

    started: CycleStarted
    time: str
    number: int
    plan_state: PlanState | None = None
    answers: list[CallAnswered] = field(default_factory=list)
    errors: list[CycleError] = field(default_factory=list)
    attempts: list[str] = field(default_factory=list)
    actions: list[SupervisorAction] = field(default_factory=list)
    tool_calls: list[ToolResult] = field(default_factory=list)
    tools_in_flight: list[ToolStarted] = field(default_factory=list)
    failure: tuple[str, str] | None = None
    abandoned: bool = False
    step_errors: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def note(self, event: CycleEvent) -> None:
        """Process an event of the running cycle."""
        match event:
            case CallAnswered():
                self._note_answer(event)
            case CallFailed():
                self._note_failure(event)
            case RepairFinished(record=record):
                self._note_repair(record)
            case RetryScheduled():
                self._note_retry(event)
            case ToolStarted():
                self.tools_in_flight.append(event)
            case ToolCalled(result=result):
                self._note_tool_result(result)

    def _note_answer(self, event: CallAnswered) -> None:
        self.answers.append(event)
        self.usage += event.usage
        if event.call == REPAIR:
            self.attempts.append(event.text)

    def _note_failure(self, event: CallFailed) -> None:
        self.errors.append(CycleError(call=event.call, type=event.error, message=event.message))
        self.usage += event.usage

    def _note_retry(self, event: RetryScheduled) -> None:
        kind, _, said = event.error.partition(": ")
        message = f"{said} (attempt {event.attempt}, tried again after {event.seconds:.3g} s)".strip()
        self.errors.append(CycleError(call=event.call, type=kind, message=message, transient=True))

    def _note_repair(self, record: RepairRecord) -> None:
        """Record a finished repair; the attempts since the repair before it belong to it."""
        attempts, self.attempts = tuple(self.attempts), []
        action = SupervisorAction(call=record.call, errors=record.errors, attempts=attempts, outcome=record.outcome)
        self.actions.append(action)

    def _note_tool_result(self, result: ToolResult) -> None:
        ended = next((started for started in self.tools_in_flight if started.tool == result.tool), None)
        if ended is not None:
            self.tools_in_flight.remove(ended)
        self.tool_calls.append(result)

    def step_ended(self, step: PlanStep) -> None:
        """Note what is wrong with a step, found with the plan or while it was carried out, and whether it was left
        unfinished."""
        self.abandoned, self.step_errors = step.incomplete, step.errors

    def _all_errors(self) -> tuple[CycleError, ...]:
        """The errors of the requests, of the call and of the step, without duplicates."""
        call, errors = self.started.call, list(self.errors)
        error, message = self.failure or (None, "")
        if error is not None and not any(error in (e.type, e.message) for e in errors if not e.transient):
            errors.append(CycleError(call=call, type=error, message=message))
        for said in self.step_errors:
            if not any(e.message and e.message in said for e in errors if not e.transient):
                errors.append(CycleError(call=call, type=STEP_ERROR, message=said))
        if self.abandoned:
            errors.append(CycleError(call=call, type=ABANDONED, message=""))
        return tuple(errors)

    def _all_tool_calls(self) -> tuple[ToolResult, ...]:
        """Those that ended, and those that had not."""
        left = (ToolResult(tool=s.tool, arguments=s.arguments, error=ABANDONED) for s in self.tools_in_flight)
        return (*self.tool_calls, *left)

    def record(self, run_id: str, end_time: str) -> CycleRecord:
        """The cycle's line, as it stands now."""
        site, call = self.started.site, self.started.call
        return CycleRecord(
            run_id=run_id,
            step_number=self.number,
            cycle=None if call in (FREE, BATCH) else site.cycle,
            sequence=site.sequence,
            pass_number=site.pass_number,
            phase=site.phase,
            call=call,
            step_id=site.step_id,
            reasoning_mode=site.mode,
            timestamp=self.time,
            end_time=end_time,
            plan_state=self.plan_state,
            llm_output=next((a.text for a in reversed(self.answers) if a.call != REPAIR), None),
            supervisor_actions=tuple(self.actions),
            tool_calls=self._all_tool_calls(),
            ttl_remaining=self.started.ttl_remaining,
            errors=self._all_errors(),
            usage=self.usage,
            models=tuple(dict.fromkeys(a.model for a in self.answers)),
            endpoints=tuple(dict.fromkeys(a.endpoint for a in self.answers if a.endpoint)),
            response_ids=tuple(a.response_id for a in self.answers if a.response_id),
            synthetic=any(a.synthetic for a in self.answers),
        )


def of_batch(first: CycleStarted, time: str, number: int, plan_state: PlanState) -> OpenCycle:
    """The record of a batch: the plan that its steps share, at the dispatch of the first of them."""
    site = replace(first.site, step_id=None)
    return OpenCycle(replace(first, call=BATCH, site=site), time, number, plan_state)
