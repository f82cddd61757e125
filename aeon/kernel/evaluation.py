"""The evaluation of a pass: its validation, then its assessment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from aeon.domain import events
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import LLMError, ValidationError
from aeon.domain.graph import current_outputs
from aeon.domain.history import EvaluationResults
from aeon.domain.report import UNREVIEWED, SemanticValidationReport
from aeon.domain.request import CallName
from aeon.kernel.recorder import OpenPass, OpenPhase
from aeon.kernel.run import OpenRun
from aeon.memory.interface import Memory
from aeon.refinement.models import Validate

T = TypeVar("T")
UNAVAILABLE = ConvergenceAssessment(
    converged=False, reason_codes=("evaluation_unavailable",), explanation="This pass could not be evaluated."
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Evaluates one run's plan and passes, as far as its budget allows."""

    run: OpenRun
    validate: Validate
    assess: Callable[..., ConvergenceAssessment]
    memory: Memory
    criteria: Mapping[str, Any]

    def review(self, phase: OpenPhase, *artefacts: Any) -> SemanticValidationReport | None:
        """The report on artefacts; None when it is unavailable or not affordable."""
        run = self.run
        report = self._ask(phase, "semantic_validation", lambda: self.validate(*artefacts))
        if report is not None:
            run.stream.emit(
                events.Validated(pass_number=run.state.pass_number, cycle=run.state.ttl_used, report=report)
            )
        return report

    def evaluate(
        self, this: OpenPass, phase: OpenPhase, *, is_reviewed: bool
    ) -> tuple[SemanticValidationReport | None, ConvergenceAssessment]:
        """The report on a pass (none unless `is_reviewed`), and its assessment or `UNAVAILABLE`; a pass whose
        evaluation is not affordable is not complete."""
        run, report, assessment = self.run, None, None
        plan, conflicts = run.plan, run.state.conflicts
        steps, outputs = list(plan.steps), current_outputs(plan.steps)
        this.answer = run.state.answer
        if is_reviewed:
            report = self.review(phase, "cross_phase", plan, steps, outputs, self.memory.search(""))
        if report or not is_reviewed:
            given = (report or UNREVIEWED, plan, steps, outputs, dict(self.criteria))
            assessment = self._ask(
                phase, "convergence", lambda: self.assess(*given, left_to_person=conflicts), run.assessment_cycles
            )
        found = assessment or UNAVAILABLE
        if phase.outcome != "abandoned":
            this.complete = assessment is not None or run.affordable()
            this.evaluation = EvaluationResults(validation_report=report, convergence=found)
            misses = 0 if assessment else run.state.unavailable_evaluations + 1
            run.update(unavailable_evaluations=misses, assessment=found)
            run.stream.emit(events.Assessed(pass_number=this.number, cycle=run.state.ttl_used, assessment=found))
        return report, found

    def _ask(self, phase: OpenPhase, call: CallName, ask: Callable[[], T], cycles: int = 1) -> T | None:
        """An evaluating call's value; None when it is not affordable, or unavailable, its error when that happens twice
        running."""
        run = self.run
        if not run.affordable(cycles):
            phase.outcome = "abandoned"
            return None
        try:
            return run.call(call, ask, cycles=cycles)
        except (LLMError, ValidationError) as error:
            phase.outcome = "unavailable"
            run.advise("evaluation_unavailable", f"{call}: {error.message}")
            if run.state.unavailable_evaluations:
                raise
            return None
