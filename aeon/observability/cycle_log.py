"""`cycles.jsonl`: each cycle of a run, with its plan, raw answers, repairs and tool calls (Sprint 1 FR-037 to
FR-039)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from aeon.domain.events import CycleFinished, CycleStarted, Recorded, RunFinished, RunStarted, StepFinished
from aeon.domain.plan import Plan
from aeon.files.jsonl import JsonLines
from aeon.observability.cycle_record import BATCH, FREE, CycleRecord, OpenCycle
from aeon.observability.plan_delta import PlanDifference, PlanState, apply_change, state_after

__all__ = ["CycleLog", "CycleRecord", "plan_at", "plan_of"]


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
        self._run_id = ""
        self._open: dict[int, OpenCycle] = {}
        self._dispatched = 0
        self._carrier: OpenCycle | None = None
        self._newest: tuple[int, Plan] | None = None

    def __call__(self, recorded: Recorded) -> None:
        """Process one event; write a line when it ends a cycle."""
        event = recorded.event
        if isinstance(event, RunStarted):
            self._run_id = event.run_id
        elif isinstance(event, CycleStarted):
            self._start(event, recorded.time)
        elif isinstance(event, RunFinished):
            self._abandon_open_cycles(recorded.time)
        elif cycle := self._open.get(recorded.sequence):
            cycle.events.append(event)
            # A step may go on after its call.
            if isinstance(event, StepFinished) or (isinstance(event, CycleFinished) and event.site.step_id is None):
                del self._open[recorded.sequence]
                self._write(cycle, recorded.time)

    def close(self) -> None:
        """Close the file. Cycles that a run left open without ending are written as `Abandoned`."""
        try:
            self._abandon_open_cycles("")
        finally:
            self._lines.close()

    def _start(self, event: CycleStarted, time: str) -> None:
        """Open a cycle; the profile call, before the budget, is number 0."""
        if self._open:
            self._write_shared_plan(event, time)
        profile = event.call != FREE and event.site.cycle == 0
        state = state_after(self._newest, event.plan) if event.plan else None
        cycle = OpenCycle(event, time, 0 if profile else self._next_number(), state)
        if not self._open:
            self._carrier = cycle
            self._newest = (cycle.number, event.plan) if event.plan else self._newest
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
            self._write_batch(first.started, first.time, first.number, first.plan_state)
            first.plan_state = PlanDifference(base=first.number)
            first.number = self._next_number()
        if event.plan is not None and (self._newest is None or self._newest[1] != event.plan):
            number, state = self._next_number(), state_after(self._newest, event.plan)
            self._write_batch(event, time, number, state)
            self._newest = (number, event.plan)

    def _write_batch(self, first: CycleStarted, time: str, number: int, state: PlanState) -> None:
        batch = replace(first, call=BATCH, site=replace(first.site, step_id=None))
        self._write(OpenCycle(batch, time, number, state), time)

    def _write(self, cycle: OpenCycle, time: str, *, abandoned: bool = False) -> None:
        record = cycle.record(self._run_id, time or cycle.time, abandoned=abandoned)
        self._lines.write(record.model_dump(mode="json"))

    def _abandon_open_cycles(self, time: str) -> None:
        cycles, self._open = sorted(self._open.items()), {}
        for _, cycle in cycles:
            self._write(cycle, time, abandoned=True)


def plan_at(lines: Iterable[Mapping[str, Any]], cycle: int) -> Plan | None:
    """The whole plan that the LLM cycle of that number (`cycle`) was dispatched with; None if there was no plan yet.

    `lines` are the objects of a `cycles.jsonl`, in any order (`aeon.files.jsonl.read_lines`). Raises LookupError when
    there is no such cycle, or a line its plan builds on is missing.
    """
    return _rebuild(lines, "cycle", cycle)


def plan_of(lines: Iterable[Mapping[str, Any]], sequence: int) -> Plan | None:
    """The same for any line, tool steps too, by its `sequence`. Raises LookupError as `plan_at`."""
    return _rebuild(lines, "sequence", sequence)


def _rebuild(lines: Iterable[Mapping[str, Any]], field: str, number: int) -> Plan | None:
    lines = list(lines)
    states = {line["step_number"]: line["plan_state"] for line in lines}
    found = [line["plan_state"] for line in lines if line[field] == number]
    if not found:
        raise LookupError(f"there is no {field} {number}")
    state, changes = found[0], []
    while state is not None and state["kind"] == "delta":
        changes.append(PlanDifference.model_validate(state))
        if states.get(state["base"]) is None:
            raise LookupError(f"the plan of {field} {number} builds on line {state['base']}, which is missing")
        state = states[state["base"]]
    return None if state is None else reduce(apply_change, reversed(changes), Plan.model_validate(state["plan"]))
