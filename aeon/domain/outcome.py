"""The outcome of a finished run: its history, statistics, best pass and expiration response, from its state."""

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
    """The answer of the latest completed pass; in core mode, and before there is such a pass, of what there is."""
    latest = latest_complete(state.passes)
    return state.answer if latest is None or latest.taskprofile is None else latest.answer


def best_pass(passes: Sequence[ExecutionPass]) -> history.BestPass | None:
    """The pass closest to convergence: fewest failed criteria, highest of the lowest scores, latest."""

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
    scores = assessment.scores.model_dump(include=set(_SCORES))
    return history.BestPass(pass_number=best.pass_number, answer=best.answer, **scores)


def is_spent(reason: TerminationReason) -> TypeGuard[SpentReason]:
    """Whether a run ended because its TTL or another cap was reached."""
    return reason in get_args(SpentReason)


def expiration_point(passes: Sequence[ExecutionPass]) -> ExpirationPoint:
    """Where a budget ended: at a phase boundary when the last execution pass was completed, else mid phase (FR-063)."""
    last = passes[-1] if passes else None
    return "phase_boundary" if last and last.pass_number > 0 and last.complete else "mid_phase"


def expiration_response(state: RunState, reason: SpentReason) -> TTLExpirationResponse:
    """The response of a run whose TTL or another cap ended it."""
    latest = latest_complete(state.passes)
    steps = state.plan.steps if state.plan else ()
    outputs = current_outputs(latest.steps if latest and latest.taskprofile else steps)
    result: dict[str, Any] = {
        "pass_number": latest.pass_number if latest else state.pass_number,
        "answer": final_answer(state),
        "outputs": outputs,
    }
    if latest is None:
        result["incomplete_steps"] = [step.step_id for step in steps if step.incomplete]
    # Of a run that no model assessed, the codes say that its evaluation was unavailable, if it was tried.
    assessed, assessment = next(reversed(_find_assessed(state.passes)), (latest, state.assessment))
    scores = assessment.scores if assessment and assessment.evaluated else ConvergenceScores()
    return TTLExpirationResponse(
        latest_pass_result=result if latest else None,
        partial_result=None if latest else result,
        expiration_point=expiration_point(state.passes),
        ttl_expired_metadata=TTLExpiredMetadata(
            **dict(scores),
            detected_issues=assessment.detected_issues if assessment else (),
            reason_codes=assessment.reason_codes if assessment else (),
            pass_number=assessed.pass_number if assessed else state.pass_number,
        ),
        termination_reason=reason,
    )


def statistics(state: RunState, converged: bool, seconds: float) -> history.Statistics:
    """Totals and patterns over the passes, for tuning (FR-076)."""
    results = {p.pass_number: p.evaluation_results for p in state.passes}
    assessments = {number: r.convergence for number, r in results.items() if r.convergence}
    reports = [r.validation_report for r in results.values() if r.validation_report]
    blockers = Counter(
        code for a in assessments.values() if not a.converged for code in a.reason_codes
    )
    return history.Statistics(
        total_passes=sum(p.pass_number > 0 for p in state.passes),
        total_refinements=state.refinements,
        convergence_achieved=converged,
        total_time_seconds=seconds,
        fragments_refined=dict(state.attempts),
        convergence_blockers=dict(blockers.most_common()),
        issues_by_type=dict(
            sorted(Counter(issue.type for r in reports for issue in r.issues).items())
        ),
        scores_by_pass={
            number: {name: a.scores[name] for name in _SCORES} for number, a in assessments.items()
        },
        depth_adjustments=tuple(f"pass {t.pass_number}: {t.reason}" for t in state.transitions),
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
    answer, converged = final_answer(state), reason == "converged"
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
    """The event that tells of a run's end."""
    return RunFinished(
        termination_reason=ended.termination_reason,
        converged=ended.converged,
        passes=ended.history.overall_statistics.total_passes,
        ttl_used=ended.state.ttl_used,
        ttl_allocated=ended.state.ttl_allocated,
        answer=ended.answer,
    )
