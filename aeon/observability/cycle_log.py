"""`cycles.jsonl`: each cycle of a run, with its plan, raw answers, repairs and tool calls (Sprint 1
FR-037 to FR-039)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Literal, TypeVar

from aeon.domain import events as e
from aeon.domain.checks import ToolResult
from aeon.domain.errors import ArtefactError
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import ReasoningMode, Usage
from aeon.domain.values import JsonMapping, JsonObject, Value
from aeon.observability.artefacts import replace_file
from aeon.observability.event_log import Journal
from aeon.observability.plan_delta import (
    PlanDifference,
    PlanSnapshot,
    PlanState,
    apply_change,
    state_after,
)
from aeon.observability.settings import PlanStateForm

_Event = TypeVar("_Event", bound=e.Event)
_BATCH = "batch"  # the call of a line that only holds the plan of several concurrent cycles
_ABANDONED = "Abandoned"
_REPAIR = "repair"
WHOLE_BELOW = 50
"""A plan with fewer steps is written in full by default, so that `jq .plan_state` works on every
line."""


class CycleError(Value):
    """An error of a cycle: the request that failed (`repair`, or the cycle's own call), its class
    and its message.

    `transient`: the request was retried. `StepError`: an error of the step itself, such as a
    missing or failing tool (FR-055).
    """

    call: str
    type: str
    message: str
    transient: bool = False


class SupervisorAction(Value):
    """A repair: the errors of the first answer, the answer of each attempt, and the outcome."""

    action: Literal["repair"] = "repair"
    call: str
    errors: tuple[str, ...]
    attempts: tuple[str, ...]
    outcome: Literal["repaired", "unrecoverable"]


class CycleRecord(Value):
    """One line of `cycles.jsonl`: one LLM cycle, a tool step without one, or a batch.

    `step_number` is the line's number in order of dispatch, `cycle` the TTL cycle, `sequence` the
    number of its events in `events.jsonl`; `docs/artefacts.md` explains each field. A line whose
    `call` is `batch` is no cycle: it holds the plan of steps dispatched together, and is written
    before any of them can end.
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
    round: int = 0
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
class _OpenCycle:
    started: e.CycleStarted
    time: str
    number: int
    plan_state: PlanState | None
    whole: bool = False
    events: list[e.Event] = field(default_factory=list)

    def record(self, run_id: str, end_time: str, *, abandoned: bool = False) -> CycleRecord:
        """Return the cycle's line in its current state; with the error `Abandoned` if it was not
        finished."""
        site = self.started.site
        call = self.started.call
        answers = self._select(e.CallAnswered)
        return CycleRecord.model_construct(
            run_id=run_id,
            step_number=self.number,
            cycle=None if call in (*e.FREE_WORK, _BATCH) else site.cycle,
            sequence=site.sequence,
            pass_number=site.pass_number,
            phase=site.phase,
            call=call,
            step_id=site.step_id,
            round=site.round,
            reasoning_mode=site.mode,
            timestamp=self.time,
            end_time=end_time,
            plan_state=self.plan_state,
            llm_output=_find_last_text(answers),
            supervisor_actions=tuple(self._actions()),
            tool_calls=self._tool_calls(),
            ttl_remaining=self.started.ttl_remaining,
            errors=self._errors(abandoned=abandoned),
            usage=self._sum_usage(),
            models=tuple(dict.fromkeys(answer.model for answer in answers)),
            endpoints=tuple(
                dict.fromkeys(answer.endpoint for answer in answers if answer.endpoint)
            ),
            response_ids=tuple(answer.response_id for answer in answers if answer.response_id),
            synthetic=any(answer.synthetic for answer in answers),
        )

    def open_again(self, number: int, time: str) -> _OpenCycle:
        """Return a further line of the same dispatch, on the plan of this one."""
        state = self.plan_state
        if state is not None and not self.whole:
            state = PlanDifference(base=self.number)
        return _OpenCycle(self.started, time, number, state, self.whole)

    def _select(self, kind: type[_Event]) -> list[_Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def _sum_usage(self) -> Usage:
        sent = (event for event in self.events if isinstance(event, e.CallAnswered | e.CallFailed))
        return sum((event.usage for event in sent), Usage())

    def _actions(self) -> Iterator[SupervisorAction]:
        attempts: list[str] = []
        for event in self.events:
            if isinstance(event, e.CallAnswered) and event.call == _REPAIR:
                attempts.append(event.text)
            elif isinstance(event, e.RepairFinished):
                done = event.record
                yield SupervisorAction(
                    call=done.call,
                    errors=done.errors,
                    attempts=tuple(attempts),
                    outcome=done.outcome,
                )
                attempts = []

    def _tool_calls(self) -> tuple[ToolResult, ...]:
        called: list[e.ToolCalled] = []
        left: list[e.ToolStarted] = []
        for event in self.events:
            if isinstance(event, e.ToolStarted):
                left.append(event)
            elif isinstance(event, e.ToolCalled):
                called.append(event)
                left = [one for one in left if one.number != event.number]
        by_number = attrgetter("number")
        ended = [one.result for one in sorted(called, key=by_number)]
        abandoned = [
            ToolResult(tool=one.tool, arguments=one.arguments, error=_ABANDONED)
            for one in sorted(left, key=by_number)
        ]
        return (*ended, *abandoned)

    def _errors(self, *, abandoned: bool) -> tuple[CycleError, ...]:
        call = self.started.call
        errors: list[CycleError] = []
        for event in self.events:
            errors += _make_errors(event, call, [error for error in errors if not error.transient])
        if abandoned or any(event.step.incomplete for event in self._select(e.StepFinished)):
            errors.append(CycleError(call=call, type=_ABANDONED, message=""))
        return tuple(errors)


def _find_last_text(answers: Sequence[e.CallAnswered]) -> str | None:
    texts = (answer.text for answer in reversed(answers) if answer.call != _REPAIR)
    return next(texts, None)


def _make_errors(event: e.Event, call: str, lasting: Sequence[CycleError]) -> Iterator[CycleError]:
    """Yield the errors of an event in a cycle that began with `call`, without repeating `lasting`
    ones."""
    match event:
        case e.CallFailed():
            yield CycleError(call=event.call, type=event.error, message=event.message)
        case e.RetryScheduled():
            kind, _, text = event.error.partition(": ")
            message = f"{text} (attempt {event.attempt}, retried after {event.seconds:.3g} s)"
            yield CycleError(call=event.call, type=kind, message=message.strip(), transient=True)
        case e.CycleFinished(error=str(kind)):
            if not any(kind in (error.type, error.message) for error in lasting):
                yield CycleError(call=call, type=kind, message=event.message)
        case e.StepFinished(step=step):
            yield from _find_step_errors(step, call, lasting)


def _find_step_errors(
    step: PlanStep, call: str, lasting: Sequence[CycleError]
) -> Iterator[CycleError]:
    # A step that failed by its call has the call's message in its own.
    known = [error.message for error in lasting if error.message]
    for message in step.errors:
        if not any(text in message for text in known):
            yield CycleError(call=call, type="StepError", message=message)


class CycleLog(Journal):
    """A subscriber that writes a line for each LLM cycle when it ends, however it ends (FR-039).

    After `close`, the lines are in the order of `step_number`; in this order they depend only on
    the run's answers. A plan that is not written in full (see `form`) and that several cycles share
    gets its own line before theirs, since any of them may end first: wherever the file stops, every
    line can be rebuilt.
    """

    def __init__(
        self, path: Path, warn: Callable[[str], None], form: PlanStateForm = "auto"
    ) -> None:
        super().__init__(path, warn)
        self._form = form
        self._numbers: list[tuple[int, int]] = []
        self._run_id = ""
        self._open: dict[int, _OpenCycle] = {}
        self._dispatched = 0
        self._carrier: _OpenCycle | None = None
        self._newest: tuple[int, Plan] | None = None
        self._ended: _OpenCycle | None = None

    def __call__(self, recorded: e.Recorded) -> None:
        """Process one event; write a line when it ends a cycle."""
        event = recorded.event
        if isinstance(event, e.RunStarted):
            self._run_id = event.run_id
        elif isinstance(event, e.CycleStarted):
            start = self._start_round if event.site.round else self._start
            start(event, recorded.time)
        elif isinstance(event, e.RunFinished):
            self._abandon_open_cycles(recorded.time)
        elif cycle := self._open.get(recorded.sequence) or self._open_again(recorded):
            cycle.events.append(event)
            # A step may continue after its call.
            if isinstance(event, e.StepFinished) or (
                isinstance(event, e.CycleFinished) and event.site.step_id is None
            ):
                self._ended = self._open.pop(recorded.sequence)
                self._write_cycle(cycle, recorded.time)

    def close(self) -> None:
        """Close the file. Cycles that the run left unfinished are written as `Abandoned`."""
        self._abandon_open_cycles("")
        super().close()
        if self._numbers != sorted(self._numbers):
            self._sort()

    def _sort(self) -> None:
        path = self._lines.path
        try:
            lines = path.read_bytes().splitlines(keepends=True)
            if len(lines) == len(self._numbers):  # otherwise some lines belong to another run
                ordered = sorted(zip(self._numbers, lines, strict=True), key=itemgetter(0))
                replace_file(path, b"".join(line for _, line in ordered))
        except (OSError, ArtefactError) as error:
            self._warn(f"{path}: its lines stay in the order in which they were written: {error}")

    def _start(self, event: e.CycleStarted, time: str) -> None:
        plan = event.plan
        whole = self._is_whole(plan)
        if self._open and not whole:
            self._write_shared_plan(event, time)
        state = state_after(None if whole else self._newest, plan) if plan else None
        profile = event.call not in e.FREE_WORK and event.site.cycle == 0
        cycle = _OpenCycle(event, time, 0 if profile else self._next_number(), state, whole)
        if whole:
            # No other line can refer to a line that is written only when its cycle ends.
            self._carrier = None
            self._newest = None
        elif not self._open:
            self._carrier = cycle
            self._newest = (cycle.number, plan) if plan else self._newest
        self._open[event.site.sequence] = cycle

    def _start_round(self, event: e.CycleStarted, time: str) -> None:
        """Start a further round of a step that uses tools: its own line, under the number and plan
        of the dispatch, so that no number depends on which step is faster."""
        before = self._open.pop(event.site.sequence, None)
        if before is None:  # the run is over
            return
        self._write_cycle(before, time)
        again = before.open_again(before.number, time)
        again.started = event
        self._open[event.site.sequence] = again

    def _is_whole(self, plan: Plan | None) -> bool:
        if plan is None:
            return False
        is_small = self._form == "auto" and len(plan.steps) < WHOLE_BELOW
        return is_small or self._form == "full"

    def _open_again(self, recorded: e.Recorded) -> _OpenCycle | None:
        """Open one more line for a dispatch with several calls, such as voting judges."""
        last = self._ended
        if (
            last is None
            or last.started.site.sequence != recorded.sequence
            or last.started.site.step_id is not None
        ):
            return None
        again = last.open_again(self._next_number(), recorded.time)
        self._open[recorded.sequence] = again
        return again

    def _next_number(self) -> int:
        self._dispatched += 1
        return self._dispatched

    def _write_shared_plan(self, event: e.CycleStarted, time: str) -> None:
        """Write the plan of a cycle dispatched while others are running, unless the file has it
        already. The first of these has not written its line yet, so its plan and number are written
        too."""
        first = self._carrier
        self._carrier = None
        if first is not None and first.plan_state is not None:
            self._write_batch(first.started, first.time, first.number, first.plan_state)
            first.plan_state = PlanDifference(base=first.number)
            first.number = self._next_number()
        if event.plan is not None and (self._newest is None or self._newest[1] != event.plan):
            number = self._next_number()
            state = state_after(self._newest, event.plan)
            self._write_batch(event, time, number, state)
            self._newest = (number, event.plan)

    def _write_batch(self, first: e.CycleStarted, time: str, number: int, state: PlanState) -> None:
        batch = replace(first, call=_BATCH, site=replace(first.site, step_id=None))
        self._write_cycle(_OpenCycle(batch, time, number, state), time)

    def _write_cycle(self, cycle: _OpenCycle, time: str, *, abandoned: bool = False) -> None:
        record = cycle.record(self._run_id, time or cycle.time, abandoned=abandoned)
        self.write(record.model_dump(mode="json"))
        self._numbers.append((cycle.number, cycle.started.site.round))

    def _abandon_open_cycles(self, time: str) -> None:
        cycles = sorted(self._open.items())
        self._open = {}
        for _, cycle in cycles:
            self._write_cycle(cycle, time, abandoned=True)


def with_whole_plans(lines: Iterable[JsonMapping]) -> Iterator[JsonObject]:
    """Yield the cycles' lines of a `cycles.jsonl` in the order of their numbers, each with its
    complete plan. Raises LookupError if a line that a plan builds on is missing."""
    plans: dict[int, Plan | None] = {}
    for line in sorted(lines, key=itemgetter("step_number")):
        state = line["plan_state"]
        plan = None
        if state is not None and state["kind"] == "delta":
            base = plans.get(state["base"])
            if base is None:
                raise LookupError(_describe_missing("line", line["step_number"], state["base"]))
            plan = apply_change(base, PlanDifference.model_validate(state))
        elif state is not None:
            plan = Plan.model_validate(state["plan"])
        plans[line["step_number"]] = plan
        if line["call"] != _BATCH:
            snapshot = PlanSnapshot(plan=plan).model_dump(mode="json") if plan else None
            yield {**line, "plan_state": snapshot}


def _describe_missing(field: str, number: int, base: int) -> str:
    return f"the plan of {field} {number} builds on line {base}, which is missing"


def plan_at(lines: Iterable[JsonMapping], cycle: int) -> Plan | None:
    """Return the complete plan with which the LLM cycle number `cycle` was dispatched; None if
    there was no plan yet. `lines` are the objects of a `cycles.jsonl`, in any order
    (`aeon.files.jsonl.read_lines`). Raises LookupError if there is no such cycle, or a line that
    its plan builds on is missing."""
    return _rebuild(lines, "cycle", cycle)


def plan_of(lines: Iterable[JsonMapping], sequence: int) -> Plan | None:
    """Return the same for any line, tool steps too, by its `sequence`. Raises LookupError like
    `plan_at`."""
    return _rebuild(lines, "sequence", sequence)


def _rebuild(lines: Iterable[JsonMapping], field: str, number: int) -> Plan | None:
    lines = list(lines)
    states = {line["step_number"]: line["plan_state"] for line in lines if not line.get("round")}
    found = [line["plan_state"] for line in lines if line[field] == number]
    if not found:
        raise LookupError(f"there is no {field} {number}")
    state = found[0]
    changes = []
    while state is not None and state["kind"] == "delta":
        changes.append(PlanDifference.model_validate(state))
        if states.get(state["base"]) is None:
            raise LookupError(_describe_missing(field, number, state["base"]))
        state = states[state["base"]]
    if state is None:
        return None
    return reduce(apply_change, reversed(changes), Plan.model_validate(state["plan"]))
