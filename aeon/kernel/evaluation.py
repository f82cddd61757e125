"""What the model judges of a run: the task's profile, from which the budget follows, its plan, and each pass."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from aeon.adaptive.heuristics import complexity_mismatch, configure_depth
from aeon.domain import events
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import LLMError, ValidationError
from aeon.domain.graph import current_outputs
from aeon.domain.history import EvaluationResults, ProfileTransition, RunState
from aeon.domain.profile import DEFAULT_PROFILE, TaskProfile, TTLTable
from aeon.domain.report import UNREVIEWED, SemanticValidationReport
from aeon.domain.request import CallName
from aeon.kernel.recorder import OpenPass, OpenPhase
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from aeon.memory.interface import Memory
from aeon.refinement.components import Depth, WithLimit, WithTable
from aeon.refinement.models import fit_method

T = TypeVar("T")
UNAVAILABLE = ConvergenceAssessment(
    converged=False,
    reason_codes=("evaluation_unavailable",),
    explanation="This pass could not be evaluated.",
)
_UPDATE_SIGNALS = (
    "task_profile_update",
    "convergence_failure",
    "validation_issues",
    "blocked_steps",
    "planning",
)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Profiles one run's task, and evaluates its plan and passes, as far as its budget allows."""

    run: OpenRun
    options: RunOptions
    depth: Depth
    validate: Callable[..., SemanticValidationReport]
    assess: Callable[..., ConvergenceAssessment]
    memory: Memory

    @property
    def table(self) -> TTLTable | None:
        """The map from profiles to TTL; None for a component that allocates without."""
        return self.depth.table if isinstance(self.depth, WithTable) else None

    @property
    def limit(self) -> int:
        """The most cycles that the run may have; a cycle is at least one call (FR-077)."""
        own, options = (
            self.depth.limit if isinstance(self.depth, WithLimit) else sys.maxsize,
            self.options,
        )
        return min(
            cap for cap in (own, options.ttl_limit, options.limits.max_llm_calls) if cap is not None
        )

    def infer_profile(self, task: str, context: dict[str, Any] | None) -> None:
        """Phase A: the profile, or the default one, and its allocation. The only call that costs no cycle."""
        run, source, failure = self.run, "task_profile", ""
        with run.phase("A", "PROFILE"):
            try:
                profile = run.call(
                    "task_profile", lambda: self.depth.infer_task_profile(task, context), cycles=0
                )
            except (LLMError, ValidationError) as error:
                profile, source, failure = DEFAULT_PROFILE, "default_profile", error.message
            allocated = min(self.limit, self.depth.allocate_ttl(profile, self.options.base_ttl))
            depth = configure_depth(profile, allocated, self.table, source)
            run.update(ttl_allocated=allocated, profile=profile, depth=depth)
            if profile is DEFAULT_PROFILE:
                run.advise("profile_fallback", f"The default profile is used: {failure}")
            run.stream.emit(
                events.ProfileInferred(
                    profile=profile, depth=depth, fallback=profile is DEFAULT_PROFILE
                )
            )

    def review(self, phase: OpenPhase, *artefacts: Any) -> SemanticValidationReport | None:
        """The report on artefacts; None when it is unavailable or not affordable."""
        state = self.run.state
        report = self._ask(phase, "semantic_validation", lambda: self.validate(*artefacts))
        if report is not None:
            cycle = self.run.state.ttl_used
            self.run.stream.emit(
                events.Validated(pass_number=state.pass_number, cycle=cycle, report=report)
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
            given = (
                report or UNREVIEWED,
                plan,
                steps,
                outputs,
                dict(self.options.convergence.criteria),
            )
            assessment = self._ask(
                phase,
                "convergence",
                lambda: self.assess(*given, left_to_person=conflicts),
                run.assessment_cycles,
            )
        found = assessment or UNAVAILABLE
        if phase.outcome != "abandoned":
            this.complete = assessment is not None or run.affordable()
            this.evaluation = EvaluationResults(validation_report=report, convergence=found)
            misses = 0 if assessment else run.state.unavailable_evaluations + 1
            run.update(unavailable_evaluations=misses, assessment=found)
            run.stream.emit(
                events.Assessed(pass_number=this.number, cycle=run.state.ttl_used, assessment=found)
            )
        return report, found

    def _ask(
        self, phase: OpenPhase, call: CallName, ask: Callable[[], T], cycles: int = 1
    ) -> T | None:
        """An evaluating call's value; None when it is not affordable or not available, its error the second time."""
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

    def update_profile(
        self,
        this: OpenPass,
        report: SemanticValidationReport | None,
        assessment: ConvergenceAssessment,
    ) -> None:
        """Phase D: profile anew when every signal speaks of a mismatch, as the pass's last act (FR-094)."""
        run, before = self.run, self.run.state.profile
        issues = list(report.issues) if report else []
        states = [result.clarity_state for result in this.results.values() if result.clarity_state]
        mismatch = complexity_mismatch(not assessment.converged, issues, states)
        if before is None or not run.affordable() or not mismatch:
            return
        update = fit_method(self.depth.update_task_profile)
        signals = {"reason_codes": assessment.reason_codes, "planning": planning_signals(run.state)}
        with run.phase("D", "PROFILE") as phase:
            try:
                after = run.call(
                    "task_profile",
                    lambda: update(before, True, issues, states, run.plan.task, **signals),
                )
            except (LLMError, ValidationError) as error:
                phase.outcome = "unavailable"
                run.advise("profile_fallback", f"The profile stays as it is: {error.message}")
                return
            if after is not None:
                self._reallocate(this.number, before, after)

    def _reallocate(self, pass_number: int, before: TaskProfile, after: TaskProfile) -> None:
        run, by_table = self.run, self.depth.allocate_ttl(after, self.options.base_ttl)
        allocated = min(self.limit, max(by_table, run.state.ttl_used + 3))
        transition = ProfileTransition(
            pass_number=pass_number,
            from_version=before.profile_version,
            to_version=after.profile_version,
            reason=after.raw_inference,
            before=before,
            after=after,
            ttl_before=run.state.ttl_allocated,
            ttl_after=allocated,
        )
        depth = configure_depth(after, allocated, self.table, *_UPDATE_SIGNALS)
        transitions = (*run.state.transitions, transition)
        run.update(ttl_allocated=allocated, profile=after, depth=depth, transitions=transitions)
        run.stream.emit(events.ProfileUpdated(transition=transition))


def planning_signals(state: RunState) -> dict[str, Any]:
    """What the planner has done so far: refinements, refusals and their reasons, subplans, questions (FR-033)."""
    plan = state.plan
    return {
        "refinements": state.refinements,
        "refinements_by_step": state.attempts,
        "refused_actions": [
            {
                "action": f"{refused.action.action_type} {refused.action.fragment}",
                "reason": refused.reason,
            }
            for refused in state.refused
        ],
        "subplans": [
            {"step_id": each.parent_step_id, "level": each.depth_level}
            for each in (plan.subplans if plan else ())
        ],
        "questions": [question.question for question in (plan.questions if plan else ())],
        "left_to_a_person": list(state.manual_intervention),
    }
