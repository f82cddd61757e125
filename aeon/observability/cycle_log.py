"""`cycles.jsonl`: each cycle of a run, with its plan, raw answers, repairs and tool calls (Sprint 1, FR-037 to
FR-039)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

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
    ToolStarted,
)
from aeon.observability.cycle_record import FREE, CycleRecord, OpenCycle
from aeon.observability.jsonl import JsonLines
from aeon.observability.plan_delta import PlanSnapshot, PlanState, applied, difference
from aeon.plan.models import Plan

__all__ = ["CycleLog", "CycleRecord", "plan_at", "plan_of"]


class CycleLog:
    """A subscriber that writes a line for each LLM cycle when it ends, whatever its end (FR-039).

    Lines stand in the order the cycles ended; sorted by `sequence`, they depend on the run's answers alone. A
    cycle still open when the run ends is written then, with the error `Abandoned`. A plan's base is
    always a line written before the dispatch, so that of a run that was killed every line that is there can be rebuilt.
    The file grows with the changes of the plan, times the number of steps that were dispatched together.

    Raises:
        ArtefactError: the file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self._lines = JsonLines(path)
        self._lock = threading.Lock()
        self._run_id = ""
        self._open: dict[int, OpenCycle] = {}
        self._dispatched = 0
        self._base: tuple[int, Plan] | None = None
        self._newest: tuple[int, Plan] | None = None

    def __call__(self, recorded: Recorded) -> None:
        """Take in one event; write a line when it ends a cycle."""
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
                    self._abandon(recorded.time)
                case (
                    CallAnswered() | CallFailed() | RepairFinished() | RetryScheduled() | ToolStarted() | ToolCalled()
                ) as event:
                    if cycle := self._open.get(event.site.sequence):
                        cycle.note(event)

    def close(self) -> None:
        """Close the file. Cycles that a run left open without ending are written as `Abandoned`."""
        with self._lock:
            try:
                self._abandon("")
            finally:
                self._lines.close()

    def _start(self, event: CycleStarted, time: str) -> None:
        """Open a cycle; the profile call, before the budget, is number 0."""
        profile = event.call != FREE and event.site.cycle == 0
        self._dispatched += 0 if profile else 1
        number = 0 if profile else self._dispatched
        state = self._plan_state(event)
        self._open[event.site.sequence] = OpenCycle(event, time, number, state)

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
        """The plan at dispatch against the newest of those before this batch, whose lines are all written by now.

        A batch is what is dispatched until all of it has ended: its lines have one base, whichever ends first.
        """
        if not self._open:
            self._base = self._newest
        base, plan = self._base, event.plan
        if plan is None:
            return None
        self._newest = (event.site.sequence, plan)
        return PlanSnapshot(plan=plan) if base is None else difference(base[1], plan, base[0])

    def _finish(self, sequence: int, time: str) -> None:
        cycle = self._open.pop(sequence, None)
        if cycle is not None:
            line = cycle.record(self._run_id, time or cycle.time)
            self._lines.write(line.model_dump(mode="json"))

    def _abandon(self, time: str) -> None:
        for sequence in sorted(self._open):
            self._open[sequence].abandoned = True
            self._finish(sequence, time)


def plan_at(lines: Iterable[Mapping[str, Any]], cycle: int) -> Plan | None:
    """The whole plan that the LLM cycle of that number (`cycle`) was dispatched with; None if there was no plan yet.

    `lines` are the objects of a `cycles.jsonl`, in any order (`aeon.observability.jsonl.read_lines`).

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
