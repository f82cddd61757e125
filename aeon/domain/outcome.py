"""The outcome of a finished run: its history, statistics, best pass and expiration response, from its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard, get_args

from aeon.domain.assessment import ExpirationPoint, SpentReason, TTLExpirationResponse, TTLExpiredMetadata
from aeon.domain.errors import AeonError
from aeon.domain.graph import current_outputs
from aeon.domain.history import (
    BestPass,
    ExecutionHistory,
    ExecutionPass,
    FinalResult,
    Outcome,
    RunError,
    RunState,
    Statistics,
    TerminationReason,
)


def latest_complete(passes: Sequence[ExecutionPass]) -> ExecutionPass | None:
    """The most recent execution pass that was completed (FR-062)."""
    return next((p for p in reversed(passes) if p.complete and p.pass_number > 0), None)


def latest_assessed(passes: Sequence[ExecutionPass]) -> ExecutionPass | None:
    """The most recent pass that a model assessed; its scores are those of the run."""
    return next((p for p in reversed(passes) if _is_assessed(p)), None)


def _is_assessed(record: ExecutionPass) -> bool:
    assessment = record.evaluation_results.convergence
    return assessment is not None and assessment.evaluated


def final_answer(state: RunState) -> str:
    """The answer of the latest completed pass; in core mode, and before there is such a pass, of what there is."""
    latest = latest_complete(state.passes)
    return state.answer if latest is None or latest.taskprofile is None else latest.answer


def best_pass(passes: Sequence[ExecutionPass]) -> BestPass | None:
    """The pass closest to convergence: fewest failed criteria, then the highest of the lowest scores, then the
    latest."""
    assessed = [p for p in passes if _is_assessed(p)]
    if not assessed:
        return None
    best = max(assessed, key=_closeness)
    scores = best.evaluation_results.convergence.scores  # type: ignore[union-attr]
    return BestPass(
        pass_number=best.pass_number,
        completeness_score=scores["completeness_score"],
        coherence_score=scores["coherence_score"],
        consistency_score=scores["consistency_score"],
        answer=best.answer,
    )


def _closeness(record: ExecutionPass) -> tuple[bool, int, float, float, int]:
    assessment = record.evaluation_results.convergence
    assert assessment is not None
    scores = [assessment.scores[f"{name}_score"] for name in ("completeness", "coherence", "consistency")]
    failed = 0 if assessment.converged else len(assessment.reason_codes)
    return assessment.converged, -failed, min(scores), scores[0], record.pass_number


def is_spent(reason: TerminationReason) -> TypeGuard[SpentReason]:
    """Whether a run ended because its TTL or another cap was reached."""
    return reason in get_args(SpentReason)


def expiration_point(passes: Sequence[ExecutionPass]) -> ExpirationPoint:
    """Where a budget ended: at a phase boundary when the last execution pass was completed, else inside a phase
    (FR-063)."""
    last = passes[-1] if passes else None
    return "phase_boundary" if last and last.pass_number > 0 and last.complete else "mid_phase"


def expiration_response(state: RunState, reason: SpentReason) -> TTLExpirationResponse:
    """The response of a run whose TTL or another cap ended it."""
    latest = latest_complete(state.passes)
    assessed = latest_assessed(state.passes)
    assessment = assessed.evaluation_results.convergence if assessed else None
    scores = assessment.scores if assessment else None
    return TTLExpirationResponse(
        latest_pass_result=_pass_result(latest, state) if latest else None,
        partial_result=None if latest else _partial_result(state),
        expiration_point=expiration_point(state.passes),
        ttl_expired_metadata=TTLExpiredMetadata(
            completeness_score=scores.completeness_score if scores else None,
            coherence_score=scores.coherence_score if scores else None,
            consistency_score=scores.consistency_score if scores else None,
            consistency_status=scores.consistency_status if scores else {},
            detected_issues=assessment.detected_issues if assessment else (),
            reason_codes=assessment.reason_codes if assessment else _unassessed_codes(state),
            pass_number=assessed.pass_number if assessed else latest.pass_number if latest else state.pass_number,
        ),
        termination_reason=reason,
    )


def _unassessed_codes(state: RunState) -> tuple[str, ...]:
    """The reason codes of a run that no model assessed: that its evaluation was unavailable, if it was tried."""
    return state.assessment.reason_codes if state.assessment else ()


def _pass_result(record: ExecutionPass, state: RunState) -> dict[str, Any]:
    whole = record.steps if record.taskprofile else state.plan.steps if state.plan else ()
    return {"pass_number": record.pass_number, "answer": final_answer(state), "outputs": current_outputs(whole)}


def _partial_result(state: RunState) -> dict[str, Any]:
    steps = state.plan.steps if state.plan else ()
    return {
        "pass_number": state.pass_number,
        "answer": state.answer,
        "outputs": current_outputs(steps),
        "incomplete_steps": [step.step_id for step in steps if step.incomplete],
    }


def statistics(state: RunState, converged: bool, seconds: float) -> Statistics:
    """Totals and patterns over the passes, for tuning (FR-076)."""
    assessments = {
        p.pass_number: p.evaluation_results.convergence for p in state.passes if p.evaluation_results.convergence
    }
    reports = [p.evaluation_results.validation_report for p in state.passes]
    blockers = Counter(code for a in assessments.values() if not a.converged for code in a.reason_codes)
    return Statistics(
        total_passes=sum(p.pass_number > 0 for p in state.passes),
        total_refinements=state.refinements,
        convergence_achieved=converged,
        total_time_seconds=seconds,
        fragments_refined=dict(state.attempts),
        convergence_blockers=dict(blockers.most_common()),
        issues_by_type=dict(sorted(Counter(i.type for r in reports if r for i in r.issues).items())),
        scores_by_pass={
            number: {name: a.scores[name] for name in ("completeness_score", "coherence_score", "consistency_score")}
            for number, a in assessments.items()
        },
        depth_adjustments=tuple(f"pass {t.pass_number}: {t.reason}" for t in state.transitions),
    )


def build_history(
    execution_id: str,
    task: str,
    configuration: Mapping[str, Any],
    state: RunState,
    reason: TerminationReason,
    answer: str,
    seconds: float,
) -> ExecutionHistory:
    """Everything a run did, as it is given back (FR-071 to FR-076, FR-095)."""
    converged = reason == "converged"
    stats = statistics(state, converged, seconds)
    return ExecutionHistory(
        execution_id=execution_id,
        task_input=task,
        configuration=dict(configuration),
        passes=state.passes,
        profile_transitions=state.transitions,
        final_convergence=state.assessment,
        final_output=answer,
        final_result=FinalResult(
            converged=converged,
            result_type=reason,
            output=answer,
            metadata={
                "manual_intervention": list(state.manual_intervention),
                "conflicts": [issue.model_dump(exclude_none=True) for issue in state.conflicts],
                "ttl_used": state.ttl_used,
            },
        ),
        overall_statistics=stats,
    )


def with_whole_last_pass(state: RunState) -> RunState:
    """A run of core mode with all steps in its last pass: the others hold the one that they carried out."""
    last = state.passes[-1] if state.passes else None
    if last is None or last.taskprofile is not None or state.plan is None:
        return state
    return state.model_copy(
        update={"passes": (*state.passes[:-1], last.model_copy(update={"steps": state.plan.steps}))}
    )


def build_outcome(
    execution_id: str,
    task: str,
    configuration: Mapping[str, Any],
    state: RunState,
    reason: TerminationReason,
    error: AeonError | None,
    seconds: float,
) -> Outcome:
    """How a run ended, with everything it has."""
    state = with_whole_last_pass(state)
    answer = final_answer(state)
    return Outcome(
        answer=answer,
        converged=reason == "converged",
        termination_reason=reason,
        history=build_history(execution_id, task, configuration, state, reason, answer, seconds),
        state=state,
        best_pass=best_pass(state.passes),
        ttl_expiration=expiration_response(state, reason) if is_spent(reason) else None,
        error=RunError(type=type(error).__name__, message=error.message, hint=error.hint) if error else None,
    )
