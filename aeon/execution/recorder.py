"""The pass that is under way, until it becomes an `ExecutionPass` of the history. A container: it decides nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from aeon.domain.history import (
    EvaluationResults,
    ExecutionPass,
    Phase,
    PhaseRecord,
    RunState,
    StepResult,
)
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementRecord
from aeon.execution.stopwatch import Stopwatch


@dataclass
class OpenPhase:
    """A phase under way, and how it ended."""

    outcome: Literal["done", "skipped", "unavailable", "abandoned"] = "done"


@dataclass
class OpenPass:
    """A pass under way. `before` is the run at its start, `plan` the plan that it made; a `brief` one, of core mode, is
    recorded with the steps that it carried out alone."""

    number: int
    before: RunState
    brief: bool = False
    plan: Plan | None = None
    phases: list[PhaseRecord] = field(default_factory=list)
    results: dict[str, StepResult] = field(default_factory=dict)
    evaluation: EvaluationResults = field(default_factory=EvaluationResults)
    refinement: RefinementRecord | None = None
    answer: str = ""
    complete: bool = False
    watch: Stopwatch = field(default_factory=Stopwatch)

    def close(self, after: RunState) -> ExecutionPass:
        """The record of this pass, which ends with the run as it is `after` it."""
        before = self.before
        steps = after.plan.steps if after.plan else ()
        # In core mode each pass would repeat the plan, and all steps.
        plan = None if self.brief and self.number > 1 else self.plan or before.plan
        results = {
            step.step_id: self.results[step.step_id]
            for step in steps
            if step.step_id in self.results
        }
        return ExecutionPass(
            pass_number=self.number,
            phase=self._last_phase(),
            phases=tuple(self.phases),
            plan_state=plan,
            steps=tuple(step for step in steps if not self.brief or step.step_id in results),
            execution_results=results,
            evaluation_results=self.evaluation,
            refinement=self.refinement,
            refinement_changes=self.refinement.accepted if self.refinement else (),
            clarity_states={
                step_id: r.clarity_state for step_id, r in results.items() if r.clarity_state
            },
            taskprofile=before.profile,
            adaptive_depth=before.depth,
            ttl_remaining=before.ttl_remaining,
            ttl_used=after.ttl_used - before.ttl_used,
            answer=self.answer,
            complete=self.complete,
            timing_information=self.watch.read(),
        )

    def _last_phase(self) -> Phase:
        if self.number == 0:
            return "PLAN"
        return self.phases[-1].phase if self.phases else "EXECUTE"
