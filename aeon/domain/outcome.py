"""The outcome of a finished run: its history, statistics, best pass and expiration response, from
its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, get_args

from aeon.domain import history
from aeon.domain.assessment import (
    ConvergenceAssessment,
    ConvergenceScores,
    ExpirationPoint,
    SpentReason,
    TTLExpirationResponse,
    TTLExpiredMetadata,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import AeonError
from aeon.domain.events import RunFinished
from aeon.domain.graph import current_outputs
from aeon.domain.history import ExecutionPass, RunState, TerminationReason

_SCORES = ("completeness_score", "coherence_score", "consistency_score")


def latest_complete(passes: Sequence[ExecutionPass]) -> ExecutionPass | None:
    """The most recent execution pass that was completed (FR-062)."""
    return next((p for p in reversed(passes) if p.complete and p.pass_number > 0), None)


def latest_assessed(passes: Sequence[ExecutionPass]) -> ExecutionPass | None:
    """The most recent pass that a model assessed; its scores are those of the run."""
    return next((passed for passed, _ in reversed(_find_assessed(passes))), None)


def _find_assessed(
    passes: Sequence[ExecutionPass],
) -> list[tuple[ExecutionPass, ConvergenceAssessment]]:
    found = ((passed, passed.evaluation_results.convergence) for passed in passes)
    return [
        (passed, assessment) for passed, assessment in found if assessment and assessment.evaluated
    ]


def final_answer(state: RunState) -> str:
    """The answer of the latest completed pass; in core mode, and before there is such a pass, of
    what there is."""
    latest = latest_complete(state.passes)
    return state.answer if latest is None or latest.taskprofile is None else latest.answer


def final_checks(passes: Sequence[ExecutionPass]) -> tuple[CheckOutcome, ...]:
    """What the checks found on the answer that `final_answer` gives."""
    latest = latest_complete(passes)
    return latest.evaluation_results.checks if latest else ()


def best_pass(passes: Sequence[ExecutionPass]) -> history.BestPass | None:
    """The pass closest to convergence: fewest failed criteria, highest of the lowest scores,
    latest."""

    def closeness(
        one: tuple[ExecutionPass, ConvergenceAssessment],
    ) -> tuple[bool, int, float, float, int]:
        passed, assessment = one
        scores = [assessment.scores[name] for name in _SCORES]
        given = [score for score in scores if score is not None]
        failed = 0 if assessment.converged else len(assessment.reason_codes)
        return assessment.converged, -failed, min(given), given[0], passed.pass_number

    assessed = _find_assessed(passes)
    if not assessed:
        return None
    best, assessment = max(assessed, key=closeness)
    scores = assessment.scores
    return history.BestPass(
        pass_number=best.pass_number,
        answer=best.answer,
        completeness_score=scores.completeness_score,
        coherence_score=scores.coherence_score,
        consistency_score=scores.consistency_score,
    )


def is_spent(reason: TerminationReason) -> TypeGuard[SpentReason]:
    """Whether a run ended because its TTL or another cap was reached."""
    return reason in get_args(SpentReason)


def expiration_point(passes: Sequence[ExecutionPass]) -> ExpirationPoint:
    """Where a budget ended: at a phase boundary when the last execution pass was completed, else
    mid phase (FR-063)."""
    last = passes[-1] if passes else None
    return "phase_boundary" if last and last.pass_number > 0 and last.complete else "mid_phase"


def expiration_response(state: RunState, reason: SpentReason) -> TTLExpirationResponse:
    """The response of a run whose TTL or another cap ended it."""
    latest = latest_complete(state.passes)
    steps = state.plan.steps if state.plan else ()
    result: dict[str, Any] = {
        "pass_number": latest.pass_number if latest else state.pass_number,
        "answer": final_answer(state),
        "outputs": current_outputs(latest.steps if latest and latest.taskprofile else steps),
    }
    if latest is None:
        result["incomplete_steps"] = [step.step_id for step in steps if step.incomplete]
    return TTLExpirationResponse(
        latest_pass_result=result if latest else None,
        partial_result=None if latest else result,
        expiration_point=expiration_point(state.passes),
        ttl_expired_metadata=_describe_expiration(state, latest),
        termination_reason=reason,
    )


def _describe_expiration(state: RunState, latest: ExecutionPass | None) -> TTLExpiredMetadata:
    # Of a run that no model assessed, the codes say that its evaluation was unavailable, if it was
    # tried.
    assessed, assessment = next(reversed(_find_assessed(state.passes)), (latest, state.assessment))
    pass_number = assessed.pass_number if assessed else state.pass_number
    if assessment is None:
        return TTLExpiredMetadata(pass_number=pass_number)
    scores = assessment.scores if assessment.evaluated else ConvergenceScores()
    return TTLExpiredMetadata(
        completeness_score=scores.completeness_score,
        coherence_score=scores.coherence_score,
        consistency_score=scores.consistency_score,
        consistency_status=scores.consistency_status,
        detected_issues=assessment.detected_issues,
        reason_codes=assessment.reason_codes,
        pass_number=pass_number,
    )


def statistics(state: RunState, converged: bool, seconds: float) -> history.Statistics:
    """Totals and patterns over the passes, for tuning (FR-076)."""
    assessments: dict[int, ConvergenceAssessment] = {}
    blockers: Counter[str] = Counter()
    issues: Counter[str] = Counter()
    for passed in state.passes:
        report = passed.evaluation_results.validation_report
        if report:
            issues.update(issue.type for issue in report.issues)
        assessment = passed.evaluation_results.convergence
        if assessment:
            assessments[passed.pass_number] = assessment
            blockers.update(() if assessment.converged else assessment.reason_codes)
    return history.Statistics(
        total_passes=sum(p.pass_number > 0 for p in state.passes),
        total_refinements=state.refinements,
        convergence_achieved=converged,
        total_time_seconds=seconds,
        fragments_refined=dict(state.attempts),
        convergence_blockers=dict(blockers.most_common()),
        issues_by_type=dict(sorted(issues.items())),
        scores_by_pass={
            number: {name: assessment.scores[name] for name in _SCORES}
            for number, assessment in assessments.items()
        },
        depth_adjustments=tuple(
            f"pass {change.pass_number}: {change.reason}" for change in state.transitions
        ),
    )


def build_outcome(
    execution_id: str,
    task: str,
    configuration: Mapping[str, Any],
    state: RunState,
    reason: TerminationReason,
    error: AeonError | None,
    seconds: float,
) -> history.Outcome:
    """How a run ended, with everything it has (FR-071 to FR-076, FR-095)."""
    state = _with_whole_last_pass(state)
    answer = final_answer(state)
    converged = reason == "converged"
    metadata = {
        "manual_intervention": list(state.manual_intervention),
        "conflicts": [issue.model_dump(exclude_none=True) for issue in state.conflicts],
        "ttl_used": state.ttl_used,
    }
    whole_history = history.ExecutionHistory(
        execution_id=execution_id,
        task_input=task,
        configuration=dict(configuration),
        passes=state.passes,
        profile_transitions=state.transitions,
        final_convergence=state.assessment,
        final_output=answer,
        final_result=history.FinalResult(
            converged=converged, result_type=reason, output=answer, metadata=metadata
        ),
        overall_statistics=statistics(state, converged, seconds),
    )
    return history.Outcome(
        answer=answer,
        checks=final_checks(state.passes),
        converged=converged,
        termination_reason=reason,
        history=whole_history,
        state=state,
        best_pass=best_pass(state.passes),
        ttl_expiration=expiration_response(state, reason) if is_spent(reason) else None,
        error=history.RunError(type=type(error).__name__, message=error.message, hint=error.hint)
        if error
        else None,
    )


def _with_whole_last_pass(state: RunState) -> RunState:
    """In core mode the last pass holds all steps, the others the one that they carried out."""
    last = state.passes[-1] if state.passes else None
    if last is None or last.taskprofile is not None or state.plan is None:
        return state
    whole = last.model_copy(update={"steps": state.plan.steps})
    return state.model_copy(update={"passes": (*state.passes[:-1], whole)})


def make_finished_event(ended: history.Outcome) -> RunFinished:
    """The event of a run's end."""
    return RunFinished(
        termination_reason=ended.termination_reason,
        converged=ended.converged,
        passes=ended.history.overall_statistics.total_passes,
        ttl_used=ended.state.ttl_used,
        ttl_allocated=ended.state.ttl_allocated,
        answer=ended.answer,
    )
