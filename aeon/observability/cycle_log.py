"""`cycles.jsonl`: each cycle of a run, with its plan, raw answers, repairs and tool calls (Sprint 1 FR-037 to
FR-039)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from aeon.domain.events import (
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
    ToolStarted,
)
from aeon.domain.plan import Plan
from aeon.files.jsonl import JsonLines
from aeon.observability.cycle_record import FREE, CycleRecord, OpenCycle, of_batch
from aeon.observability.plan_delta import PlanDifference, apply_change, state_after

__all__ = ["CycleLog", "CycleRecord", "plan_at", "plan_of"]

_MISSING: Any = object()


class CycleLog:
    """A subscriber that writes a line for each LLM cycle when it ends, whatever its end (FR-039).

    Lines stand in the order they were written; sorted by `step_number`, they depend on the run's answers alone. A
    cycle still open when the run ends is written then, with the error `Abandoned`. A cycle that is alone under way
    carries its plan in its own line. Of cycles that are dispatched together any may end first, so the plan that they
    share gets a line of its own before any of them can end, and theirs refer to it. So of a run that was killed every
    line that is there can be rebuilt, and the file grows with the changes of the plan and with the number of cycles.

    Raises:
        ArtefactError: the file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)
        self._lock = threading.Lock()
        self._run_id = ""
        self._open: dict[int, OpenCycle] = {}
        self._dispatched = 0
        self._carrier: OpenCycle | None = None
        self._newest: tuple[int, Plan] | None = None

    def __call__(self, recorded: Recorded) -> None:
        """Process one event; write a line when it ends a cycle."""
        with self._lock:
            match recorded.event:
                case RunStarted(run_id=run_id):
                    self._run_id = run_id
                case CycleStarted() as event:
                    self._start(event, recorded.time)
                case CycleFinished() as event:
                    self._end_call(event, recorded.time)
                case StepFinished(step=step):
                    if cycle := self._open.get(recorded.sequence):
                        cycle.step_ended(step)
                    self._finish(recorded.sequence, recorded.time)
                case RunFinished():
                    self._abandon_open_cycles(recorded.time)
                case (
                    CallAnswered() | CallFailed() | RepairFinished() | RetryScheduled() | ToolStarted() | ToolCalled()
                ) as event:
                    if cycle := self._open.get(event.site.sequence):
                        cycle.note(event)

    def close(self) -> None:
        """Close the file. Cycles that a run left open without ending are written as `Abandoned`."""
        with self._lock:
            try:
                self._abandon_open_cycles("")
            finally:
                self._lines.close()

    def _start(self, event: CycleStarted, time: str) -> None:
        """Open a cycle; the profile call, before the budget, is number 0."""
        if self._open:
            self._write_shared_plan(event, time)
        profile = event.call != FREE and event.site.cycle == 0
        cycle = OpenCycle(event, time, 0 if profile else self._next_number())
        if event.plan is not None:
            cycle.plan_state = state_after(self._newest, event.plan)
        if not self._open:
            self._carrier = cycle
            self._newest = (cycle.number, event.plan) if event.plan is not None else self._newest
        self._open[event.site.sequence] = cycle

    def _next_number(self) -> int:
        self._dispatched += 1
        return self._dispatched

    def _write_shared_plan(self, event: CycleStarted, time: str) -> None:
        """Write the plan of a cycle that is dispatched while others are running, unless the file has it already.

        The first of these cycles has not written its own line yet: its plan and its line number are written now.
        """
        first, self._carrier = self._carrier, None
        if first is not None and first.plan_state is not None:
            self._write(of_batch(first.started, first.time, first.number, first.plan_state), time)
            first.plan_state = PlanDifference(base=first.number)
            first.number = self._next_number()
        if event.plan is not None and (self._newest is None or self._newest[1] != event.plan):
            number, state = self._next_number(), state_after(self._newest, event.plan)
            self._write(of_batch(event, time, number, state), time)
            self._newest = (number, event.plan)

    def _end_call(self, event: CycleFinished, time: str) -> None:
        """Note how a structured call ended.

        A step may go on after it, so the line of a step waits for the step's end.
        """
        cycle = self._open.get(event.site.sequence)
        if cycle is not None:
            cycle.failure = (event.error, event.message) if event.error else None
            if event.site.step_id is None:
                self._finish(event.site.sequence, time)

    def _finish(self, sequence: int, time: str) -> None:
        cycle = self._open.pop(sequence, None)
        if cycle is not None:
            self._write(cycle, time)

    def _write(self, cycle: OpenCycle, time: str) -> None:
        self._lines.write(cycle.record(self._run_id, time or cycle.time).model_dump(mode="json"))

    def _abandon_open_cycles(self, time: str) -> None:
        for sequence in sorted(self._open):
            self._open[sequence].abandoned = True
            self._finish(sequence, time)


def plan_at(lines: Iterable[Mapping[str, Any]], cycle: int) -> Plan | None:
    """The whole plan that the LLM cycle of that number (`cycle`) was dispatched with; None if there was no plan yet.

    `lines` are the objects of a `cycles.jsonl`, in any order (`aeon.files.jsonl.read_lines`).

    Raises:
        LookupError: there is no such cycle, or a line its plan builds on is missing.
    """
    lines = list(lines)
    sequence = next((line["sequence"] for line in lines if line["cycle"] == cycle), None)
    if sequence is None:
        raise LookupError(f"there is no cycle {cycle}")
    return plan_of(lines, sequence)


def plan_of(lines: Iterable[Mapping[str, Any]], sequence: int) -> Plan | None:
    """The same for any line, tool steps too, by its `sequence`. Raises LookupError as `plan_at`."""
    lines = list(lines)
    state = next((line["plan_state"] for line in lines if line["sequence"] == sequence), _MISSING)
    if state is _MISSING:
        raise LookupError(f"there is no line with sequence {sequence}")
    states = {line["step_number"]: line["plan_state"] for line in lines}
    changes: list[PlanDifference] = []
    while state is not None and state["kind"] == "delta":
        changes.append(PlanDifference.model_validate(state))
        if states.get(state["base"]) is None:
            raise LookupError(f"the plan of sequence {sequence} builds on line {state['base']}, which is missing")
        state = states[state["base"]]
    if state is None:
        return None
    return reduce(apply_change, reversed(changes), Plan.model_validate(state["plan"]))
