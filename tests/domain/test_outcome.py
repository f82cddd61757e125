"""A finished run, told: latest and best pass, expiry, statistics (FR-062, FR-064, FR-071 to FR-076)."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.domain import outcome
from aeon.domain.assessment import (
    AnswerComparison,
    ComparedWithEarlier,
    ConvergenceAssessment,
    ConvergenceScores,
    PairStatus,
)
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import ServerFailed
from aeon.domain.history import (
    EvaluationResults,
    ExecutionPass,
    ProfileTransition,
    RunState,
    TerminationReason,
    Timing,
)
from aeon.domain.profile import DEFAULT_PROFILE, AdaptiveDepthConfiguration
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from tests.plan.builders import done, failed, plan_of, step

DEPTH = AdaptiveDepthConfiguration(
    detected_complexity="moderate", allocated_ttl=9, reasoning_mode="deep", adjustment_reason="why"
)
TIMING = Timing(
    start_time="2025-01-01T00:00:00+00:00",
    end_time="2025-01-01T00:00:01+00:00",
    duration_seconds=1.0,
)


def assessment(
    *scores: float, codes: tuple[str, ...] = ("incomplete",), **fields: Any
) -> ConvergenceAssessment:
    completeness, coherence, consistency = scores or (0.5, 0.5, 0.5)
    return ConvergenceAssessment(
        reason_codes=codes,
        scores=ConvergenceScores(
            completeness_score=completeness,
            coherence_score=coherence,
            consistency_score=consistency,
            consistency_status={"plan_steps": PairStatus(status="consistent")},
        ),
        **{"converged": False, **fields},
    )


UNAVAILABLE = ConvergenceAssessment(converged=False, reason_codes=("evaluation_unavailable",))


def a_pass(
    number: int, assessed: ConvergenceAssessment | None = None, **fields: Any
) -> ExecutionPass:
    return ExecutionPass(
        **{
            "pass_number": number,
            "phase": "PLAN" if number == 0 else "EVALUATE",
            "phases": (),
            "plan_state": None,
            "steps": (done("a"),),
            "evaluation_results": EvaluationResults(convergence=assessed),
            "taskprofile": DEFAULT_PROFILE,
            "adaptive_depth": DEPTH,
            "ttl_remaining": 5,
            "answer": f"answer of {number}",
            "complete": True,
            "timing_information": TIMING,
            **fields,
        }
    )


def test_the_latest_complete_pass_is_an_execution_pass_that_was_finished():
    passes = (a_pass(0), a_pass(1), a_pass(2), a_pass(3, complete=False))
    assert outcome.latest_complete(passes).pass_number == 2
    assert outcome.latest_complete((a_pass(0),)) is None
    assert outcome.latest_complete(()) is None


def test_the_answer_is_that_of_the_latest_completed_pass():
    state = RunState(
        passes=(a_pass(0), a_pass(1), a_pass(2, complete=False)), plan=plan_of(done("z"))
    )
    assert outcome.final_answer(state) == "answer of 1"


def test_without_a_completed_pass_the_answer_is_what_there_is():
    assert (
        outcome.final_answer(RunState(passes=(a_pass(0),), plan=plan_of(done("z"))))
        == "output of z"
    )
    assert outcome.final_answer(RunState()) == ""


@pytest.mark.parametrize(
    ("assessments", "best"),
    [
        ([assessment(0.5, 0.5, 0.5), assessment(0.6, 0.6, 0.6)], 2),
        ([assessment(0.6, 0.6, 0.6), assessment(0.5, 0.5, 0.5)], 1),
        ([assessment(0.9, 0.9, 0.1), assessment(0.5, 0.5, 0.5)], 2),
        ([assessment(0.5, 0.5, 0.5), assessment(0.5, 0.5, 0.5)], 2),
        ([assessment(0.8, 0.5, 0.5), assessment(0.6, 0.5, 0.5)], 1),
        ([assessment(0.9, 0.9, 0.9, codes=("x", "y")), assessment(0.2, 0.2, 0.2)], 2),
        ([assessment(0.1, 0.1, 0.1, converged=True, codes=("complete",)), assessment(1, 1, 1)], 1),
        ([assessment(0.5, 0.5, 0.5), UNAVAILABLE], 1),
    ],
)
def test_the_best_pass_failed_the_fewest_criteria_and_then_has_the_highest_lowest_score(
    assessments, best: int
):
    passes = [a_pass(number, assessed) for number, assessed in enumerate(assessments, start=1)]
    found = outcome.best_pass(passes)
    assert found.pass_number == best
    assert found.answer == f"answer of {best}"


@pytest.mark.parametrize("passes", [(), (a_pass(0),), (a_pass(0), a_pass(1, UNAVAILABLE))])
def test_there_is_no_best_pass_where_nothing_was_assessed(passes):
    assert outcome.best_pass(passes) is None


def test_expiry_at_a_boundary_gives_the_latest_pass_with_its_scores():
    last = assessment(0.6, 0.7, 0.8, detected_issues=("no milk",), codes=("incomplete", "own"))
    state = RunState(
        passes=(a_pass(0), a_pass(1), a_pass(2, last)), assessment=last, plan=plan_of(done("z"))
    )
    expired = outcome.expiration_response(state, "ttl_expired")
    assert expired.latest_pass_result == {
        "pass_number": 2,
        "answer": "answer of 2",
        "outputs": {"a": "output of a"},
    }
    assert expired.partial_result is None
    told = expired.ttl_expired_metadata
    assert (told.completeness_score, told.coherence_score, told.consistency_score) == (
        0.6,
        0.7,
        0.8,
    )
    assert told.consistency_status["plan_steps"].status == "consistent"
    assert (told.detected_issues, told.reason_codes, told.pass_number) == (
        ("no milk",),
        ("incomplete", "own"),
        2,
    )


def test_expiry_in_the_first_pass_gives_what_there_is_and_names_what_is_not():
    plan = plan_of(done("z"), step("y", incomplete=True), step("x", "y"))
    state = RunState(passes=(a_pass(0), a_pass(1, complete=False)), plan=plan, pass_number=1)
    expired = outcome.expiration_response(state, "max_tokens")
    assert expired.latest_pass_result is None
    assert expired.partial_result == {
        "pass_number": 1,
        "answer": "output of z",
        "outputs": {"z": "output of z"},
        "incomplete_steps": ["y"],
    }
    told = expired.ttl_expired_metadata
    assert (told.completeness_score, told.coherence_score, told.consistency_score) == (
        None,
        None,
        None,
    )
    assert (told.consistency_status, told.reason_codes, told.pass_number) == ({}, (), 1)


def issue(issue_id: str, kind: Any) -> ValidationIssue:
    return ValidationIssue(issue_id=issue_id, type=kind, severity="LOW", description="so it is")


def test_statistics_count_what_the_passes_hold():
    report = SemanticValidationReport(
        validation_id="v",
        artifact_type="plan",
        issues=(issue("1", "relevance"), issue("2", "consistency")),
    )
    passes = (
        a_pass(0, evaluation_results=EvaluationResults(validation_report=report)),
        a_pass(
            1,
            evaluation_results=EvaluationResults(
                validation_report=report, convergence=assessment()
            ),
        ),
        a_pass(2, assessment(codes=("incomplete", "own"))),
        a_pass(3, UNAVAILABLE),
        a_pass(4, assessment(1, 1, 1, converged=True, codes=("complete",))),
    )
    state = RunState(passes=passes, attempts={"b": 2}, refinements=3)
    told = outcome.statistics(state, True, 2.5)
    assert (told.total_passes, told.total_refinements, told.convergence_achieved) == (4, 3, True)
    assert told.total_time_seconds == 2.5
    assert told.fragments_refined == {"b": 2}
    assert told.convergence_blockers == {"incomplete": 2, "own": 1, "evaluation_unavailable": 1}
    assert next(iter(told.convergence_blockers)) == "incomplete"
    assert told.issues_by_type == {"consistency": 2, "relevance": 2}
    assert told.scores_by_pass[4]["completeness_score"] == 1
    assert told.scores_by_pass[3]["completeness_score"] is None


def test_statistics_name_every_change_of_depth():
    transition = ProfileTransition(
        pass_number=2,
        from_version=1,
        to_version=2,
        reason="harder than it looked",
        before=DEFAULT_PROFILE,
        after=DEFAULT_PROFILE,
        ttl_before=10,
        ttl_after=20,
    )
    told = outcome.statistics(RunState(transitions=(transition,)), False, 0)
    assert told.depth_adjustments == ("pass 2: harder than it looked",)


def test_an_outcome_says_how_it_ended_and_gives_everything_it_has():
    state = RunState(
        passes=(a_pass(0), a_pass(1, assessment())),
        assessment=assessment(),
        plan=plan_of(failed("a")),
        manual_intervention=("b",),
        ttl_used=6,
    )
    error = ServerFailed("down", hint="Wait.")
    told = outcome.build_outcome("id", "make tea", {"ttl": 9}, state, "failed", error, 1.5)
    assert (told.converged, told.termination_reason, told.ttl_expiration) == (False, "failed", None)
    assert (told.error.type, told.error.message, told.error.hint) == (
        "ServerFailed",
        "down",
        "Wait.",
    )
    assert (
        told.answer
        == told.history.final_output
        == told.history.final_result.output
        == "answer of 1"
    )
    assert told.history.final_result.result_type == "failed"
    assert told.history.final_result.metadata == {
        "manual_intervention": ["b"],
        "conflicts": [],
        "ttl_used": 6,
    }
    assert (told.history.execution_id, told.history.task_input, told.history.configuration) == (
        "id",
        "make tea",
        {"ttl": 9},
    )
    assert told.history.final_convergence == assessment()


def test_the_assessment_at_the_end_is_that_of_the_answer():
    good, bad = assessment(0.9, 1.0, 1.0), assessment(0.5, 1.0, 1.0)
    state = RunState(passes=(a_pass(0), a_pass(1, good), a_pass(2, bad)), assessment=bad)
    latest = outcome.build_outcome("id", "make tea", {}, state, "max_passes", None, 1.5)
    assert (latest.answer, latest.history.final_convergence) == ("answer of 2", bad)
    plateau = outcome.build_outcome("id", "make tea", {}, state, "plateau", None, 1.5)
    assert (plateau.answer, plateau.history.final_convergence) == ("answer of 1", good)


def test_an_outcome_of_an_expired_run_has_its_response():
    state = RunState(passes=(a_pass(0), a_pass(1, assessment())), assessment=assessment())
    told = outcome.build_outcome("id", "make tea", {}, state, "ttl_expired", None, 1.5)
    assert told.ttl_expiration.expiration_point == "phase_boundary"
    assert told.error is None
    assert not told.converged


def test_a_converged_run_says_so_everywhere():
    told = outcome.build_outcome(
        "id", "make tea", {}, RunState(passes=(a_pass(0), a_pass(1))), "converged", None, 1.5
    )
    assert told.converged
    assert told.history.final_result.converged
    assert told.history.overall_statistics.convergence_achieved


def found(name: str, passed: bool, *, required: bool = True, weight: float = 1) -> CheckOutcome:
    return CheckOutcome(name=name, type="equals", passed=passed, required=required, weight=weight)


def judged(
    number: int,
    score: float = 0.5,
    *checks: CheckOutcome,
    compared: ComparedWithEarlier | None = None,
    codes: tuple[str, ...] = ("incomplete",),
    whole: bool = True,
) -> ExecutionPass:
    results = EvaluationResults(
        convergence=assessment(score, 1.0, 1.0, codes=codes),
        checks=checks,
        comparison=AnswerComparison(outcome=compared) if compared else None,
    )
    return a_pass(
        number, evaluation_results=results, answer=f"answer {number}", answer_complete=whole
    )


@pytest.mark.parametrize(
    ("passes", "best"),
    [
        ([judged(1, 0.9, found("r", True), whole=False), judged(2, 0.2, found("r", False))], 2),
        ([judged(1, 0.2), judged(2, 0.9, compared="better", whole=False)], 1),
        ([judged(1, 0.9, whole=False), judged(2, 0.2, whole=False)], 1),
        ([judged(1, 0.9, found("r", False)), judged(2, 0.2, found("r", True))], 2),
        (
            [
                judged(1, 0.9, found("r", True), found("o", False, required=False)),
                judged(2, 0.2, found("r", True), found("o", True, required=False, weight=3)),
            ],
            2,
        ),
        ([judged(1, 0.9), judged(2, 0.2, compared="better")], 2),
        ([judged(1, 0.9), judged(2, 0.2, compared="as_good")], 1),
        ([judged(1, 0.9), judged(2, 0.9, compared="worse")], 1),
        ([judged(1, 0.2, codes=("a",)), judged(2, 0.9, codes=("a", "b"))], 1),
        ([judged(1, 0.5), judged(2, 0.5)], 2),
    ],
)
def test_a_whole_answer_decides_then_checks_comparisons_codes_and_scores(
    passes: list[ExecutionPass], best: int
) -> None:
    chosen = outcome.best_pass(passes)
    assert chosen is not None
    assert chosen.pass_number == best


def test_a_pass_that_checks_alone_judged_may_be_the_best() -> None:
    unjudged = a_pass(
        1, evaluation_results=EvaluationResults(checks=(found("r", True),)), answer="a"
    )
    chosen = outcome.best_pass([unjudged])
    assert chosen is not None
    assert (chosen.pass_number, chosen.completeness_score) == (1, None)


@pytest.mark.parametrize(
    ("passes", "count"),
    [
        ([], 0),
        ([judged(1)], 0),
        ([judged(1, 0.5), judged(2, 0.6)], 0),
        ([judged(1, 0.5), judged(2, 0.52)], 1),
        ([judged(1, 0.5), judged(2, 0.4), judged(3, 0.5)], 2),
        ([judged(1, 0.5), judged(2, 0.4), judged(3, 0.6)], 0),
        ([judged(1, 0.9, found("r", False)), judged(2, 0.1, found("r", True))], 0),
        ([judged(1, 0.1, found("r", True)), judged(2, 0.9, found("r", False))], 1),
        ([judged(1, 0.5), judged(2, 0.9, compared="as_good")], 0),
        ([judged(1, 0.5), judged(2, 0.5, compared="as_good")], 1),
        ([judged(1, 0.5), judged(2, 0.1, compared="better")], 0),
        ([judged(1, 0.5), judged(2, 0.5, compared="worse"), judged(3, 0.5, compared="worse")], 2),
    ],
)
def test_a_gain_is_more_checks_else_a_comparison_won_else_a_higher_least_score(
    passes: list[ExecutionPass], count: int
) -> None:
    assert outcome.count_passes_without_gain(passes, min_gain=0.05) == count


@pytest.mark.parametrize(
    ("reason", "takes_best", "answer"),
    [
        ("ttl_expired", False, "answer 2"),
        ("ttl_expired", True, "answer 1"),
        ("plateau", False, "answer 1"),
    ],
)
def test_the_answer_is_the_latest_or_the_best(
    reason: TerminationReason, takes_best: bool, answer: str
) -> None:
    state = RunState(passes=(a_pass(0), judged(1, 0.9), judged(2, 0.2)))
    ended = outcome.build_outcome("id", "t", {}, state, reason, None, 1.0, takes_best=takes_best)
    assert ended.answer == answer


def test_a_run_that_converged_while_steps_were_pending_gives_the_answer_that_converged() -> None:
    ended_by_a_part = judged(2, 1.0, codes=("complete",), whole=False)
    state = RunState(passes=(a_pass(0), judged(1, 0.9), ended_by_a_part))
    ended = outcome.build_outcome("id", "t", {}, state, "converged", None, 1.0, takes_best=True)
    assert (ended.answer, ended.answer_pass) == ("answer 2", 2)
