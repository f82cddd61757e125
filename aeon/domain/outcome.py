"""Derives the outcome of a finished run from its state: history, statistics, best pass and
expiration response."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard, get_args

from aeon.domain import history
from aeon.domain.assessment import (
    ConvergenceAssessment,
    ConvergenceScores,
    ConvergenceSettings,
    ExpirationPoint,
    SpentReason,
    TTLExpirationResponse,
    TTLExpiredMetadata,
)
from aeon.domain.checks import CheckOutcome, weight_passed
from aeon.domain.errors import AeonError, StoreMiss
from aeon.domain.events import RunFinished
from aeon.domain.graph import current_outputs
from aeon.domain.history import ExecutionPass, RunState, TerminationReason
from aeon.domain.values import JsonMapping, JsonObject

_ROUNDING = 1e-9  # 0.8 - 0.7 is a little more than 0.1
_SCORES = ("completeness_score", "coherence_score", "consistency_score")


def latest_complete(passes: Sequence[ExecutionPass]) -> ExecutionPass | None:
    """Return the latest completed execution pass (FR-062)."""
    return next((p for p in reversed(passes) if p.complete and p.pass_number > 0), None)


def latest_assessed(passes: Sequence[ExecutionPass]) -> ExecutionPass | None:
    """Return the latest pass that a model assessed; its scores are the run's."""
    return next((passed for passed, _ in reversed(_find_assessed(passes))), None)


def _find_assessed(
    passes: Sequence[ExecutionPass],
) -> list[tuple[ExecutionPass, ConvergenceAssessment]]:
    found = ((passed, passed.evaluation_results.convergence) for passed in passes)
    return [
        (passed, assessment) for passed, assessment in found if assessment and assessment.evaluated
    ]


def final_answer(state: RunState) -> str:
    """Return the answer of the latest completed pass; in core mode, and before there is such a
    pass, the current answer."""
    latest = latest_complete(state.passes)
    return state.answer if latest is None or latest.taskprofile is None else latest.answer


def final_checks(
    passes: Sequence[ExecutionPass], chosen: history.BestPass | None = None
) -> tuple[CheckOutcome, ...]:
    """Return the outcomes of the checks on a run's answer: that of the `chosen` pass, else the one
    that `final_answer` returns."""
    latest = passes[chosen.pass_number] if chosen else latest_complete(passes)
    return latest.evaluation_results.checks if latest else ()


def best_pass(passes: Sequence[ExecutionPass]) -> history.BestPass | None:
    """Return the best of the passes judged by checks or a model: complete answer, most required
    checks passed, greatest weight of passed checks, most comparisons won, fewest failed codes,
    highest lowest score, latest. None if none was judged, and in core and single mode, where only
    the run has an answer."""
    # A pass that was set back has an earlier pass's answer.
    candidates = [
        one
        for one in find_judged(passes)
        if not one.passed.is_set_back and one.passed.taskprofile is not None
    ]
    if not candidates:
        return None
    best = max(candidates, key=lambda one: one.rank).passed
    assessment = best.evaluation_results.convergence
    scores = assessment.scores if assessment else ConvergenceScores()
    return history.BestPass(
        pass_number=best.pass_number,
        answer=best.answer,
        completeness_score=scores.completeness_score,
        coherence_score=scores.coherence_score,
        consistency_score=scores.consistency_score,
    )


@dataclass(frozen=True, slots=True)
class JudgedPass:
    """A pass judged by checks or a model; `wins` counts the comparisons won so far."""

    passed: ExecutionPass
    wins: int

    @property
    def checks(self) -> Sequence[CheckOutcome]:
        """The outcomes of the checks."""
        return self.passed.evaluation_results.checks

    @property
    def scores(self) -> list[float]:
        """The given scores, completeness first."""
        assessment = self.passed.evaluation_results.convergence
        given = [assessment.scores[name] for name in _SCORES] if assessment else []
        return [score for score in given if score is not None]

    @property
    def rank(self) -> tuple[float, ...]:
        """The rank of the pass: greater is better."""
        assessment = self.passed.evaluation_results.convergence
        codes = assessment.reason_codes if assessment and not assessment.converged else ()
        scores = self.scores or [0.0]
        return (
            self.passed.answer_complete,
            -sum(check.blocks for check in self.checks),
            weight_passed(self.checks),
            self.wins,
            -len(codes),
            min(scores),
            scores[0],
            self.passed.pass_number,
        )


def find_judged(passes: Sequence[ExecutionPass]) -> list[JudgedPass]:
    """Return the passes judged by checks or a model, in order."""
    found: list[JudgedPass] = []
    wins = 0
    for passed in passes:
        results = passed.evaluation_results
        wins += results.comparison is not None and results.comparison.outcome == "better"
        is_assessed = results.convergence is not None and results.convergence.evaluated
        if is_assessed or results.checks or results.comparison:
            found.append(JudgedPass(passed, wins))
    return found


def count_passes_without_gain(passes: Sequence[ExecutionPass], min_gain: float) -> int:
    """Count the latest consecutive judged passes without a gain.

    The first judged pass is a gain. A later one is a gain if more checks passed than ever before;
    or else, with as many checks, if it won a comparison, or if its lowest score exceeds the best so
    far by more than `min_gain`.
    """
    count = 0
    best_checks = -1
    best_score = -1.0
    for judged in find_judged(passes):
        checks = sum(check.passed for check in judged.checks)
        score = min(judged.scores, default=0.0)
        comparison = judged.passed.evaluation_results.comparison
        has_won = comparison is not None and comparison.outcome == "better"
        has_risen = best_score < 0 or score - best_score > min_gain + _ROUNDING
        is_gain = checks > best_checks or (checks == best_checks and (has_won or has_risen))
        count = 0 if is_gain else count + 1
        best_checks = max(best_checks, checks)
        best_score = max(best_score, score)
    return count


def has_plateau(passes: Sequence[ExecutionPass], settings: ConvergenceSettings) -> bool:
    """Whether `convergence.patience` consecutive passes have gained nothing, and the answer need
    not wait for pending steps."""
    if settings.patience is None:
        return False
    steps = passes[-1].steps
    if settings.when == "plan_done" and any(step.status == "pending" for step in steps):
        return False
    return count_passes_without_gain(passes, settings.min_gain) >= settings.patience


def is_spent(reason: TerminationReason) -> TypeGuard[SpentReason]:
    """Whether a run ended because its TTL or another cap was reached."""
    return reason in get_args(SpentReason)


def is_stopped(reason: TerminationReason) -> bool:
    """Whether a run was stopped early, by a person or to wait for one."""
    return reason in ("interrupted", "waiting")


def expiration_point(passes: Sequence[ExecutionPass]) -> ExpirationPoint:
    """Return where a budget ended: at a phase boundary if the last execution pass was completed,
    else mid phase (FR-063)."""
    last = passes[-1] if passes else None
    return "phase_boundary" if last and last.pass_number > 0 and last.complete else "mid_phase"


def expiration_response(state: RunState, reason: SpentReason) -> TTLExpirationResponse:
    """Return the response of a run that its TTL or another cap ended."""
    latest = latest_complete(state.passes)
    steps = state.plan.steps if state.plan else ()
    result: JsonObject = {
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
    # If no model assessed the run, the codes say that its evaluation was unavailable, if it was
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
    """Compute totals and patterns over the passes, for tuning (FR-076)."""
    scores: dict[int, dict[str, float | None]] = {}
    blockers: Counter[str] = Counter()
    issues: Counter[str] = Counter()
    for passed in state.passes:
        report = passed.evaluation_results.validation_report
        if report:
            issues.update(issue.type for issue in report.issues)
        assessment = passed.evaluation_results.convergence
        if assessment:
            scores[passed.pass_number] = {name: assessment.scores[name] for name in _SCORES}
            blockers.update(() if assessment.converged else assessment.reason_codes)
    return history.Statistics(
        total_passes=sum(p.pass_number > 0 for p in state.passes),
        total_refinements=state.refinements,
        convergence_achieved=converged,
        total_time_seconds=seconds,
        fragments_refined=dict(state.attempts),
        convergence_blockers=dict(blockers.most_common()),
        issues_by_type=dict(sorted(issues.items())),
        scores_by_pass=scores,
        depth_adjustments=tuple(
            f"pass {change.pass_number}: {change.reason}" for change in state.transitions
        ),
    )


def build_outcome(
    execution_id: str,
    task: str,
    configuration: JsonMapping,
    state: RunState,
    reason: TerminationReason,
    error: AeonError | None,
    seconds: float,
    *,
    takes_best: bool = False,
    converged_pass: int | None = None,
) -> history.Outcome:
    """Build the complete outcome of a run (FR-071 to FR-076, FR-095). The answer is the latest one;
    the best pass's if `takes_best` or after a plateau; or that of `converged_pass`, which is the
    last one if the run converged while steps were pending."""
    state = _with_whole_last_pass(state)
    takes_best = takes_best or reason == "plateau"
    converged = reason == "converged"
    if converged and converged_pass is None and not state.passes[-1].answer_complete:
        converged_pass = state.passes[-1].pass_number
    chosen = _choose_pass(state.passes, takes_best=takes_best, converged_pass=converged_pass)
    answer = chosen.answer if chosen else final_answer(state)
    whole_history = history.ExecutionHistory(
        execution_id=execution_id,
        task_input=task,
        configuration=dict(configuration),
        passes=state.passes,
        profile_transitions=state.transitions,
        final_convergence=_find_assessment(state, chosen),
        final_output=answer,
        final_result=history.FinalResult(
            converged=converged, result_type=reason, output=answer, metadata=_describe_rest(state)
        ),
        overall_statistics=statistics(state, converged, seconds),
    )
    return history.Outcome(
        answer=answer,
        answer_pass=chosen.pass_number if chosen else None,
        checks=final_checks(state.passes, chosen),
        converged=converged,
        termination_reason=reason,
        history=whole_history,
        state=state,
        best_pass=best_pass(state.passes),
        ttl_expiration=expiration_response(state, reason) if is_spent(reason) else None,
        error=_describe_error(error) if error else None,
    )


def _find_assessment(
    state: RunState, chosen: history.BestPass | None
) -> ConvergenceAssessment | None:
    """Return the assessment of the `chosen` pass, whose answer the run returns, else the latest
    one."""
    results = state.passes[chosen.pass_number].evaluation_results if chosen else None
    return results.convergence if results and results.convergence else state.assessment


def _choose_pass(
    passes: Sequence[ExecutionPass], *, takes_best: bool, converged_pass: int | None
) -> history.BestPass | None:
    if converged_pass is not None:
        return best_pass(passes[converged_pass : converged_pass + 1])
    return best_pass(passes) if takes_best else None


def _describe_error(error: AeonError) -> history.RunError:
    of_replay = error if isinstance(error, StoreMiss) else StoreMiss("")
    return history.RunError(
        type=type(error).__name__,
        message=error.message,
        hint=error.hint,
        call=of_replay.call,
        differs=of_replay.differs,
    )


def _describe_rest(state: RunState) -> JsonObject:
    """Return what a run leaves to a person, and its used TTL."""
    return {
        "manual_intervention": list(state.manual_intervention),
        "conflicts": [issue.model_dump(exclude_none=True) for issue in state.conflicts],
        "ttl_used": state.ttl_used,
    }


def _with_whole_last_pass(state: RunState) -> RunState:
    """Put all steps into the last pass of core mode; the other passes have only the step they
    executed."""
    last = state.passes[-1] if state.passes else None
    if last is None or last.taskprofile is not None or state.plan is None:
        return state
    whole = last.model_copy(update={"steps": state.plan.steps})
    return state.model_copy(update={"passes": (*state.passes[:-1], whole)})


def make_finished_event(ended: history.Outcome) -> RunFinished:
    """Return the event of a run's end."""
    return RunFinished(
        termination_reason=ended.termination_reason,
        converged=ended.converged,
        passes=ended.history.overall_statistics.total_passes,
        ttl_used=ended.state.ttl_used,
        ttl_allocated=ended.state.ttl_allocated,
        answer=ended.answer,
    )
