"""`cycles.jsonl`: each cycle of a run, with its plan, raw answers, repairs and tool calls (Sprint 1, FR-037 to
FR-039)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from aeon.events import (
    CallAnswered,
    CallFailed,
    CycleFinished,
    CycleStarted,
    Recorded,
    RepairFinished,
    RetryScheduled,
    RunFinished,
    RunStarted,
    StepFinished,
    ToolCalled,
)
from aeon.llm.interface import ReasoningMode, Usage
from aeon.observability.jsonl import JsonLines
from aeon.observability.plan_delta import PlanSnapshot, PlanState, applied, difference
from aeon.plan.models import Plan, PlanStep
from aeon.supervisor.models import RepairRecord
from aeon.tools.models import ToolResult
from aeon.values import Value

ABANDONED, STEP_ERROR = "Abandoned", "StepError"
FREE = "tool"  # what a step that takes no cycle is dispatched as


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
    """A repair: the errors of the answer it began with, what each attempt gave, and how it ended."""

    action: Literal["repair"] = "repair"
    call: str
    errors: tuple[str, ...]
    attempts: tuple[str, ...]
    outcome: Literal["repaired", "unrecoverable"]


class CycleRecord(Value):
    """One line of `cycles.jsonl`: one LLM cycle, or a tool step that needed none (Sprint 1, Log Entry).

    `step_number` is the cycle's number in order of dispatch, 0 for the profile call, which the budget does not pay for,
    null for a tool step that took no cycle. `sequence` is that of its events in `events.jsonl`, `step_id` the plan
    step it works on if it works on one, `timestamp` and `end_time` when it was dispatched and when it ended (ISO
    8601, UTC). `plan_state` is the plan at dispatch, null before there is one: whole the first time, then as its
    difference from an earlier cycle's (`plan_at` rebuilds it). `llm_output` is the raw text of the call's own
    answer, null when none came. `ttl_remaining` is in LLM cycles, this one paid; null for the profile call, which
    the budget comes from. `usage` is that of all its requests, repairs and failed ones included; `models` those that
    answered.
    """

    format: Literal["aeon.cycle/1"] = "aeon.cycle/1"
    run_id: str
    step_number: int | None
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
    response_ids: tuple[str, ...]
    synthetic: bool


@dataclass
class _Open:
    """A cycle that has not ended, and what has been heard of it."""

    started: CycleStarted
    time: str
    plan_state: PlanState | None
    answers: list[CallAnswered] = field(default_factory=list)
    errors: list[CycleError] = field(default_factory=list)
    repairs: list[RepairRecord] = field(default_factory=list)
    tool_calls: list[ToolResult] = field(default_factory=list)
    failure: tuple[str, str] | None = None
    step_errors: tuple[str, ...] = ()
    usage: Usage = field(default_factory=Usage)

    def answered(self, event: CallAnswered) -> None:
        self.answers.append(event)
        self.usage += event.usage

    def failed(self, event: CallFailed) -> None:
        self.errors.append(CycleError(call=event.call, type=event.error, message=event.message))
        self.usage += event.usage

    def retried(self, event: RetryScheduled) -> None:
        message = f"attempt {event.attempt}, tried again after {event.seconds:.3g} s"
        self.errors.append(CycleError(call=event.call, type=event.error, message=message, transient=True))

    def step_ended(self, step: PlanStep) -> None:
        """Note what was found wrong with a step while it was carried out."""
        plan = self.started.plan
        before = next((s.errors for s in plan.steps if s.step_id == step.step_id), ()) if plan else ()
        self.step_errors = step.errors[len(before) :]

    def _all_errors(self) -> tuple[CycleError, ...]:
        """Those of its requests, that of its call, and those of its step, each said once."""
        call, errors = self.started.call, list(self.errors)
        error, message = self.failure or (None, "")
        if error is not None and not any(error in (e.type, e.message) for e in errors if not e.transient):
            errors.append(CycleError(call=call, type=error, message=message))
        for said in self.step_errors:
            if not any(e.message and e.message in said for e in errors if not e.transient):
                errors.append(CycleError(call=call, type=STEP_ERROR, message=said))
        return tuple(errors)

    def record(self, run_id: str, end_time: str) -> CycleRecord:
        site, call = self.started.site, self.started.call
        return CycleRecord(
            run_id=run_id,
            step_number=None if call == FREE else site.cycle,
            sequence=site.sequence,
            pass_number=site.pass_number,
            phase=site.phase,
            call=call,
            step_id=site.step_id,
            reasoning_mode=site.mode,
            timestamp=self.time,
            end_time=end_time,
            plan_state=self.plan_state,
            llm_output=next((a.text for a in reversed(self.answers) if a.call != "repair"), None),
            supervisor_actions=tuple(self._action(record) for record in self.repairs),
            tool_calls=tuple(self.tool_calls),
            ttl_remaining=self.started.ttl_remaining,
            errors=self._all_errors(),
            usage=self.usage,
            models=tuple(dict.fromkeys(a.model for a in self.answers)),
            response_ids=tuple(a.response_id for a in self.answers if a.response_id),
            synthetic=any(a.synthetic for a in self.answers),
        )

    def _action(self, record: RepairRecord) -> SupervisorAction:
        texts = tuple(answer.text for answer in self.answers if answer.call == "repair")
        return SupervisorAction(call=record.call, errors=record.errors, attempts=texts, outcome=record.outcome)


class CycleLog:
    """A subscriber that writes a line for each LLM cycle when it ends, whatever its end (FR-039).

    Lines stand in the order the cycles ended; sorted by `sequence`, they depend on the run's answers alone. A
    cycle still open when the run ends is written then, with the error `Abandoned`. The file grows linearly with a run.

    Raises:
        ArtefactError: the file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)
        self._lock = threading.Lock()
        self._run_id = ""
        self._open: dict[int, _Open] = {}
        self._last: tuple[int, Plan] | None = None

    def __call__(self, recorded: Recorded) -> None:
        """Take in one event; write a line when it ends a cycle."""
        with self._lock:
            match recorded.event:
                case RunStarted(run_id=run_id):
                    self._run_id = run_id
                case CycleStarted() as event:
                    self._open[event.site.sequence] = _Open(event, recorded.time, self._plan_state(event))
                case CycleFinished() as event:
                    self._end_call(event, recorded.time)
                case StepFinished(step=step):
                    if cycle := self._open.get(recorded.sequence):
                        cycle.step_ended(step)
                    self._finish(recorded.sequence, recorded.time)
                case RunFinished():
                    self._abandon(recorded.time)
                case CallAnswered() | CallFailed() | RepairFinished() | RetryScheduled() | ToolCalled() as event:
                    self._note(event)

    def close(self) -> None:
        """Close the file. Cycles that a run left open without ending are written as `Abandoned`."""
        with self._lock:
            try:
                self._abandon("")
            finally:
                self._lines.close()

    def _note(self, event: CallAnswered | CallFailed | RepairFinished | RetryScheduled | ToolCalled) -> None:
        cycle = self._open.get(event.site.sequence)
        match event:
            case _ if cycle is None:
                return
            case CallAnswered():
                cycle.answered(event)
            case CallFailed():
                cycle.failed(event)
            case RepairFinished():
                cycle.repairs.append(event.record)
            case RetryScheduled():
                cycle.retried(event)
            case ToolCalled():
                cycle.tool_calls.append(event.result)

    def _end_call(self, event: CycleFinished, time: str) -> None:
        """Note how a structured call ended.

        A step may go on after it, so the line of a step waits for the step's end.
        """
        cycle = self._open.get(event.site.sequence)
        if cycle is not None:
            cycle.failure = (event.error, event.message) if event.error else None
            if event.site.step_id is None:
                self._finish(event.site.sequence, time)

    def _plan_state(self, event: CycleStarted) -> PlanState | None:
        """The plan at dispatch against that of the dispatch before: taken in dispatch order, so always the same."""
        last, plan = self._last, event.plan
        if plan is None:
            return None
        self._last = (event.site.sequence, plan)
        return PlanSnapshot(plan=plan) if last is None else difference(last[1], plan, last[0])

    def _finish(self, sequence: int, time: str) -> None:
        cycle = self._open.pop(sequence, None)
        if cycle is not None:
            line = cycle.record(self._run_id, time or cycle.time)
            self._lines.write(line.model_dump(mode="json"))

    def _abandon(self, time: str) -> None:
        for sequence in sorted(self._open):
            self._open[sequence].failure = (ABANDONED, "")
            self._finish(sequence, time)


def plan_at(lines: Iterable[Mapping[str, Any]], cycle: int) -> Plan | None:
    """The whole plan that the LLM cycle of that number was dispatched with; None if there was no plan yet.

    `lines` are the objects of a `cycles.jsonl`, in any order (`aeon.observability.jsonl.read_lines`).

    Raises:
        LookupError: there is no such cycle, or a line its plan builds on is missing.
    """
    lines = list(lines)
    sequence = next((line["sequence"] for line in lines if line["step_number"] == cycle), None)
    if sequence is None:
        raise LookupError(f"there is no cycle {cycle}")
    return plan_of(lines, sequence)


def plan_of(lines: Iterable[Mapping[str, Any]], sequence: int) -> Plan | None:
    """The same for any line, tool steps too, by its `sequence`. Raises LookupError as `plan_at`."""
    states = {line["sequence"]: line["plan_state"] for line in lines}
    if sequence not in states:
        raise LookupError(f"there is no line with sequence {sequence}")
    changes: list[Mapping[str, Any]] = []
    state = states[sequence]
    while state is not None and state["kind"] == "delta":
        changes.append(state)
        if states.get(state["base"]) is None:
            raise LookupError(f"the plan of line {sequence} builds on that of line {state['base']}, which is missing")
        state = states[state["base"]]
    if state is None:
        return None
    plan: Mapping[str, Any] = state["plan"]
    for change in reversed(changes):
        plan = applied(plan, change)
    return Plan.model_validate(plan)
