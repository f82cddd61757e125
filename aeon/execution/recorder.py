"""Containers for the current run and pass until they become history. They decide nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from aeon.domain import events
from aeon.domain.assessment import AnswerComparison, ConvergenceAssessment
from aeon.domain.errors import AeonError
from aeon.domain.graph import answer_text, is_answer_complete
from aeon.domain.history import (
    Advisory,
    AdvisoryKind,
    EvaluationResults,
    ExecutionPass,
    Phase,
    PhaseRecord,
    RunState,
    StepResult,
    TerminationReason,
    Timing,
)
from aeon.domain.outcome import is_stopped
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementRecord
from aeon.domain.report import HARMLESS, Severity, reaches
from aeon.domain.request import CallSite
from aeon.execution.answers import AnswerCollector
from aeon.execution.event_stream import EventStream
from aeon.execution.tool_rounds.allowance import EmitAt
from aeon.plan.transitions import cut_off
from aeon.plan.triggers import Trigger, list_harmless_issues


class Stopwatch:
    """Measures time from its creation: the start by the clock, the duration by the monotonic
    clock."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds so far; at least one microsecond, the finest resolution written."""
        return max(1e-6, time.monotonic() - self._began)

    def read(self) -> Timing:
        """Return the start, the present time, and the seconds between them."""
        seconds = self.seconds
        end = self._start + timedelta(seconds=seconds)
        return Timing(
            start_time=self._start.isoformat(), end_time=end.isoformat(), duration_seconds=seconds
        )


@dataclass
class OpenPhase:
    """The current phase, and its outcome."""

    outcome: Literal["done", "skipped", "unavailable", "abandoned"] = "done"


@dataclass
class OpenPass:
    """The current pass. `before` is the run's state at its start, `plan` the plan made in it; a
    `brief` pass, of core mode, is recorded only with the steps it executed."""

    number: int
    before: RunState
    brief: bool = False
    plan: Plan | None = None
    phases: list[PhaseRecord] = field(default_factory=list)
    results: dict[str, StepResult] = field(default_factory=dict)
    evaluation: EvaluationResults = field(default_factory=EvaluationResults)
    comparison: AnswerComparison | None = None
    refinement: RefinementRecord | None = None
    answer: str = ""
    answer_complete: bool = False
    complete: bool = False
    watch: Stopwatch = field(default_factory=Stopwatch)

    def close(self, after: RunState) -> ExecutionPass:
        """Return the record of this pass; `after` is the run's state at its end."""
        before = self.before
        steps = after.plan.steps if after.plan else ()
        results = {
            step.step_id: self.results[step.step_id]
            for step in steps
            if step.step_id in self.results
        }
        plan = self.plan or before.plan
        if self.brief:
            # In core mode, each pass would repeat the plan and all steps.
            plan = plan if self.number <= 1 else None
            steps = tuple(step for step in steps if step.step_id in results)
        return ExecutionPass(
            pass_number=self.number,
            phase=self._last_phase(),
            phases=tuple(self.phases),
            plan_state=plan,
            steps=steps,
            execution_results=results,
            evaluation_results=self.evaluation,
            refinement=self.refinement,
            refinement_changes=self.refinement.accepted if self.refinement else (),
            clarity_states=_clarity_states(results),
            taskprofile=before.profile,
            adaptive_depth=before.depth,
            ttl_remaining=before.ttl_remaining,
            ttl_used=after.ttl_used - before.ttl_used,
            answer=self.answer,
            answer_complete=self.answer_complete,
            complete=self.complete,
            timing_information=self.watch.read(),
        )

    def _last_phase(self) -> Phase:
        if self.number == 0:
            return "PLAN"
        return self.phases[-1].phase if self.phases else "EXECUTE"


def _clarity_states(results: Mapping[str, StepResult]) -> dict[str, str]:
    states = ((step_id, result.clarity_state) for step_id, result in results.items())
    return {step_id: state for step_id, state in states if state}


def _list_severities(evaluation: EvaluationResults) -> list[Severity]:
    report, assessment = evaluation.validation_report, evaluation.convergence
    severities = [issue.severity for issue in report.issues] if report else []
    judged = list_harmless_issues(assessment) if assessment else []
    return [*severities, *(HARMLESS for _ in judged)]


@dataclass(frozen=True, slots=True)
class AcceptedAnswer:
    """The accepted answer with its evaluation, and the state to restore it."""

    plan: Plan
    results: Mapping[str, StepResult]
    evaluation: EvaluationResults
    pass_number: int = 0

    @property
    def text(self) -> str:
        """The answer's text."""
        return answer_text(self.plan)


class RunRecorder:
    """The state of the current run: its passes and phases, advisories and answers. Each change is
    announced on its `stream`."""

    def __init__(self, stream: EventStream, *, answer_mark: str = "") -> None:
        self.stream = stream
        self.watch = Stopwatch()
        self.state = RunState(answer_mark=answer_mark)
        self.answers = AnswerCollector()
        self._advised: set[tuple[object, ...]] = set()
        self._pass: OpenPass | None = None
        self.accepted: AcceptedAnswer | None = None
        """The latest complete answer that was evaluated."""
        self.taken_back: list[Trigger] = []
        """Changes tried since then and taken back."""
        self._converged: AcceptedAnswer | None = None
        self.converged_pass: int | None = None
        """The pass whose answer is returned by a run that mended a converged one."""
        stream.subscribers.append(self.answers.note)

    def reserve_events(self, site: CallSite, count: int) -> EmitAt:
        """Reserve the places of the next `count` events of a dispatch whose work runs
        concurrently."""
        first = self.stream.reserve_parts(site, count)
        return lambda place, event: self.stream.emit(event, site, first + place)

    def accept_answer(self, evaluation: EvaluationResults) -> None:
        """Remember a complete answer with its evaluation, to be restored if a later one is not
        accepted."""
        if is_answer_complete(self.plan):
            self.accepted = AcceptedAnswer(self.plan, self.state.results, evaluation)

    @property
    def is_mending(self) -> bool:
        """Whether an answer has converged and its known faults are being mended."""
        return self._converged is not None

    def begin_mending(self, this: OpenPass, severity: Severity | None) -> bool:
        """Return whether a pass's converged answer is refined before it is accepted: its review
        left issues of the severity, or its assessment some that count as such."""
        if self.is_mending or severity is None or not this.complete:
            return self.is_mending
        if any(reaches(found, severity) for found in _list_severities(this.evaluation)):
            self._converged = AcceptedAnswer(
                self.plan, self.state.results, this.evaluation, pass_number=this.number
            )
        return self.is_mending

    def decide_mended(self, assessment: ConvergenceAssessment) -> TerminationReason | None:
        """Return how a run ends once its mended answer is complete and assessed; None before."""
        if not self.is_mending or not is_answer_complete(self.plan):
            return None
        return "converged" if assessment.converged else "stalled"

    def settle_mending(
        self, reason: TerminationReason, error: AeonError | None
    ) -> tuple[TerminationReason, AeonError | None]:
        """Return how the run ends, and its error: if mending a converged answer brought no better
        one, the run ends as converged with the earlier answer."""
        before = self._converged
        if before is None or is_stopped(reason):
            return reason, error
        if reason == "converged":
            self.converged_pass = self.state.passes[-1].pass_number
            return reason, error
        why = f": {error.message}" if error else "."
        self.advise("set_back", f"The answer of pass {before.pass_number} could not be mended{why}")
        self.converged_pass = before.pass_number
        self.update(
            plan=before.plan,
            results=dict(before.results),
            assessment=before.evaluation.convergence,
        )
        return "converged", None

    def stop_listening(self) -> None:
        """Stop collecting answers."""
        self.stream.subscribers.remove(self.answers.note)

    def snapshot(self) -> RunState:
        """Return the state with the answers of model, supervisor and tools, in order of
        dispatch."""
        return self.state.model_copy(update=self.answers.by_kind())

    @property
    def plan(self) -> Plan:
        """The current plan, from phase B on."""
        assert self.state.plan is not None, "there is no plan before phase B"
        return self.state.plan

    def update(self, **changes: Any) -> None:
        """Change fields of the state."""
        self.state = self.state.model_copy(update=changes)

    def advise(self, kind: AdvisoryKind, message: str, step_id: str | None = None) -> None:
        """Add an advisory for the user, at most once per pass; for a missing tool once per run."""
        number = self.state.pass_number
        key = (kind, message, step_id, None if kind == "unknown_tool" else number)
        if key not in self._advised:
            self._advised.add(key)
            advisory = Advisory(kind=kind, message=message, pass_number=number, step_id=step_id)
            self.update(advisories=(*self.state.advisories, advisory))
            self.stream.emit(events.AdvisoryRaised(advisory=advisory))

    @contextmanager
    def open_pass(self, number: int, ready: tuple[str, ...], *, brief: bool) -> Iterator[OpenPass]:
        """Open a pass, which is recorded however it ends; an incomplete one marks the steps that
        were running as cut off."""
        self._pass = this = OpenPass(number, self.state, brief)
        self.update(pass_number=number)
        left = self.state.ttl_remaining
        self.stream.emit(events.PassStarted(pass_number=number, ttl_remaining=left, ready=ready))
        try:
            yield this
        finally:
            if not this.complete and self.state.plan is not None:
                self.update(plan=cut_off(self.state.plan))
            self.update(passes=(*self.state.passes, this.close(self.state)))
            left = self.state.ttl_remaining
            self.stream.emit(
                events.PassFinished(pass_number=number, ttl_remaining=left, complete=this.complete)
            )

    @contextmanager
    def phase(self, stage: str, phase: Phase | Literal["PROFILE"]) -> Iterator[OpenPhase]:
        """Open a phase: announced, recorded if it belongs to a pass, and recorded as abandoned if
        an exception ends it."""
        number = self.state.pass_number
        watch = Stopwatch()
        note = OpenPhase()
        self.update(phase=phase)
        self.stream.emit(events.PhaseStarted(stage=stage, phase=phase, pass_number=number))
        try:
            yield note
        except BaseException:
            note.outcome = "abandoned"
            raise
        finally:
            if self._pass and phase != "PROFILE":
                time = watch.read()
                self._pass.phases.append(
                    PhaseRecord(
                        phase=phase,
                        outcome=note.outcome,
                        start_time=time.start_time,
                        end_time=time.end_time,
                    )
                )
            self.stream.emit(
                events.PhaseFinished(
                    stage=stage, phase=phase, pass_number=number, outcome=note.outcome
                )
            )
