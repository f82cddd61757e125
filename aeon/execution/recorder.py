"""The pass that is under way, until it becomes an `ExecutionPass` of the history. A container: it
decides nothing."""

from __future__ import annotations

from collections.abc import Mapping
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
    """A pass under way. `before` is the run at its start, `plan` the plan that it made; a `brief`
    one, of core mode, is recorded with the steps that it carried out alone."""

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
        results = {
            step.step_id: self.results[step.step_id]
            for step in steps
            if step.step_id in self.results
        }
        plan = self.plan or before.plan
        if self.brief:
            # Each pass of core mode would repeat the plan, and all steps.
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
