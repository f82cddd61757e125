"""A line of `cycles.jsonl`, and how it is made of the events of its cycle."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from aeon.domain.events import (
    CallAnswered,
    CallFailed,
    CycleFinished,
    CycleStarted,
    Event,
    RepairFinished,
    RetryScheduled,
    StepFinished,
    ToolCalled,
    ToolStarted,
)
from aeon.domain.request import ReasoningMode, Usage
from aeon.domain.tool_result import ToolResult
from aeon.domain.values import Value
from aeon.observability.plan_delta import PlanState

FREE = "tool"  # what a step that takes no cycle is dispatched as
BATCH = "batch"  # what the plan of several cycles at once is written as
_ABANDONED, _REPAIR = "Abandoned", "repair"


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

    `step_number` is the line's number in order of dispatch, `cycle` the TTL cycle, `sequence` that of its events in
    `events.jsonl`; `docs/artefacts.md` says what each field means. A line whose `call` is `batch` is no cycle: it holds
    the plan of the steps that are dispatched together, and is written before any of them can end.
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
    """A running cycle, with the events that followed its dispatch."""

    started: CycleStarted
    time: str
    number: int
    plan_state: PlanState | None
    events: list[Event] = field(default_factory=list)

    def record(self, run_id: str, end_time: str, *, abandoned: bool = False) -> CycleRecord:
        """The cycle's line, as it stands now; with the error `Abandoned` where it is left unfinished."""
        site, call = self.started.site, self.started.call
        answers = [event for event in self.events if isinstance(event, CallAnswered)]
        sent = [event for event in self.events if isinstance(event, CallAnswered | CallFailed)]
        texts = [answer.text for answer in answers if answer.call != _REPAIR]
        return CycleRecord.model_construct(
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
            llm_output=texts[-1] if texts else None,
            supervisor_actions=tuple(self._actions()),
            tool_calls=self._tool_calls(),
            ttl_remaining=self.started.ttl_remaining,
            errors=self._errors(abandoned=abandoned),
            usage=sum((event.usage for event in sent), Usage()),
            models=tuple(dict.fromkeys(answer.model for answer in answers)),
            endpoints=tuple(dict.fromkeys(answer.endpoint for answer in answers if answer.endpoint)),
            response_ids=tuple(answer.response_id for answer in answers if answer.response_id),
            synthetic=any(answer.synthetic for answer in answers),
        )

    def _actions(self) -> Iterator[SupervisorAction]:
        """The repairs, each with the attempts since the one before."""
        attempts: list[str] = []
        for event in self.events:
            if isinstance(event, CallAnswered) and event.call == _REPAIR:
                attempts.append(event.text)
            elif isinstance(event, RepairFinished):
                done = event.record
                yield SupervisorAction(
                    call=done.call, errors=done.errors, attempts=tuple(attempts), outcome=done.outcome
                )
                attempts = []

    def _tool_calls(self) -> tuple[ToolResult, ...]:
        """Those that ended, and those that had not."""
        ended = [event.result for event in self.events if isinstance(event, ToolCalled)]
        started = [event for event in self.events if isinstance(event, ToolStarted)]
        left = (ToolResult(tool=one.tool, arguments=one.arguments, error=_ABANDONED) for one in started[len(ended) :])
        return (*ended, *left)

    def _errors(self, *, abandoned: bool) -> tuple[CycleError, ...]:
        """The errors of the requests, then those of the call and of the step that no request has named."""
        call, errors = self.started.call, list[CycleError]()
        for event in self.events:
            lasting = [error for error in errors if not error.transient]
            match event:
                case CallFailed():
                    errors.append(CycleError(call=event.call, type=event.error, message=event.message))
                case RetryScheduled():
                    kind, _, said = event.error.partition(": ")
                    message = f"{said} (attempt {event.attempt}, tried again after {event.seconds:.3g} s)".strip()
                    errors.append(CycleError(call=event.call, type=kind, message=message, transient=True))
                case CycleFinished(error=str(kind)):
                    if not any(kind in (error.type, error.message) for error in lasting):
                        errors.append(CycleError(call=call, type=kind, message=event.message))
                case StepFinished(step=step):
                    known = [error.message for error in lasting if error.message]
                    new = [said for said in step.errors if not any(message in said for message in known)]
                    errors += [CycleError(call=call, type="StepError", message=said) for said in new]
                    abandoned = abandoned or step.incomplete
        return (*errors, *([CycleError(call=call, type=_ABANDONED, message="")] if abandoned else []))
