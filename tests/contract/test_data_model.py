"""The validation rules of the data model, entity by entity."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from aeon.domain.assessment import (
    ConvergenceAssessment,
    ConvergenceScores,
    TTLExpirationResponse,
    TTLExpiredMetadata,
)
from aeon.domain.history import (
    ExecutionHistory,
    ExecutionPass,
    FinalResult,
    Phase,
    Statistics,
    Timing,
)
from aeon.domain.plan import ClarityState, FollowUpQuestion, Plan, PlanStep, StepStatus, Subplan
from aeon.domain.profile import AdaptiveDepthConfiguration, TaskProfile
from aeon.domain.refinement import ActionType, RefinementAction, SupervisorAssessment
from aeon.domain.report import IssueType, SemanticValidationReport, Severity, ValidationIssue
from tests.contract.components import a_plan

STEP = {"step_id": "a", "description": "do a"}
PROFILE = {
    "profile_version": 1,
    "reasoning_depth": 3,
    "information_sufficiency": 0.5,
    "expected_tool_usage": "none",
    "output_breadth": "narrow",
    "confidence_requirement": "low",
    "raw_inference": "because",
}
DEPTH = {
    "detected_complexity": "moderate",
    "allocated_ttl": 10,
    "reasoning_mode": "deep",
    "adjustment_reason": "why",
}
ISSUE = {
    "issue_id": "i1",
    "type": "relevance",
    "severity": "LOW",
    "description": "beside the point",
}
TIMING = {
    "start_time": "2025-01-01T00:00:00+00:00",
    "end_time": "2025-01-01T00:00:01+00:00",
    "duration_seconds": 1.0,
}
PASS = {
    "pass_number": 0,
    "phase": "PLAN",
    "phases": (),
    "plan_state": None,
    "taskprofile": TaskProfile(**PROFILE),
    "adaptive_depth": AdaptiveDepthConfiguration(**DEPTH),
    "ttl_remaining": 3,
    "timing_information": TIMING,
}
EXPIRED = {
    "expiration_point": "phase_boundary",
    "ttl_expired_metadata": TTLExpiredMetadata(pass_number=1),
}


def step(**fields: Any) -> PlanStep:
    return PlanStep(**{**STEP, **fields})


def issue(**fields: Any) -> ValidationIssue:
    return ValidationIssue(**{**ISSUE, **fields})


def report(*issues: ValidationIssue, **fields: Any) -> SemanticValidationReport:
    return SemanticValidationReport(
        validation_id="v", artifact_type="plan", issues=issues, **fields
    )


def history(*numbers: int, **counted: Any) -> ExecutionHistory:
    return ExecutionHistory(
        execution_id="id",
        task_input="make tea",
        configuration={},
        passes=tuple(ExecutionPass(**{**PASS, "pass_number": number}) for number in numbers),
        final_result=FinalResult(converged=False, result_type="stalled", output=""),
        overall_statistics=Statistics(
            **{
                "total_passes": max(0, len(numbers) - 1),
                "total_refinements": 0,
                "convergence_achieved": False,
                "total_time_seconds": 1.0,
                **counted,
            }
        ),
    )


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        # Steps of plan files may have conditions, which the data model does not know.
        (StepStatus, {"pending", "running", "complete", "failed", "invalid", "skipped"}),
        (ClarityState, {"CLEAR", "PARTIALLY_CLEAR", "BLOCKED"}),
        (ActionType, {"ADD", "MODIFY", "REMOVE", "REPLACE", "SUBPLAN_CREATE", "STEP_MARK_INVALID"}),
        (Phase, {"PLAN", "EXECUTE", "EVALUATE", "REFINE", "RE_EXECUTE"}),
        (Severity, {"LOW", "MEDIUM", "HIGH", "CRITICAL"}),
        (
            IssueType,
            {"specificity", "relevance", "consistency", "hallucination", "do_say_mismatch"},
        ),
    ],
)
def test_enumerations_are_those_specified(kind: Any, values: set[str]):
    assert set(get_args(kind)) == values


@pytest.mark.parametrize(
    ("entity", "fields"),
    [
        (
            PlanStep,
            "step_id step_index total_steps incoming_context handoff_to_next clarity_state step_output dependencies"
            " provides status description",
        ),
        (
            ExecutionPass,
            "pass_number phase plan_state execution_results evaluation_results refinement_changes ttl_remaining"
            " timing_information steps taskprofile",
        ),
        (
            ExecutionHistory,
            "execution_id task_input configuration passes final_result overall_statistics final_convergence"
            " final_output",
        ),
        (
            RefinementAction,
            "action_type target_step_id new_step justification semantic_validation_input inconsistency_detected",
        ),
        (ConvergenceAssessment, "converged reason_codes scores explanation detected_issues"),
        (
            SemanticValidationReport,
            "validation_id artifact_type issues overall_severity issue_summary proposed_repairs",
        ),
        (ValidationIssue, "issue_id type severity description location proposed_repair"),
        (
            TaskProfile,
            "profile_version reasoning_depth information_sufficiency expected_tool_usage output_breadth"
            " confidence_requirement raw_inference ambiguity_level dependency_complexity expected_step_count",
        ),
        (
            AdaptiveDepthConfiguration,
            "detected_complexity ambiguity_score uncertainty_score allocated_ttl reasoning_mode adjustment_reason"
            " heuristics_used",
        ),
        (Subplan, "parent_step_id subplan_goal substeps depth_level created_by"),
        (
            TTLExpirationResponse,
            "converged result_type latest_pass_result partial_result expiration_point ttl_expired_metadata"
            " termination_reason",
        ),
        (
            TTLExpiredMetadata,
            "completeness_score coherence_score consistency_status detected_issues reason_codes pass_number",
        ),
        (FinalResult, "converged result_type output metadata"),
        (Statistics, "total_passes total_refinements convergence_achieved total_time_seconds"),
        (Timing, "start_time end_time duration_seconds"),
        (SupervisorAssessment, "blocking issues repairs"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_entities_have_their_specified_fields(entity: Any, fields: str):
    assert set(fields.split()) <= set(entity.model_fields)


@pytest.mark.parametrize(
    "make",
    [
        lambda: step(step_id=""),
        lambda: step(description=""),
        lambda: step(step_index=0),
        lambda: step(step_index=3, total_steps=2),
        lambda: step(status="done"),
        lambda: step(clarity_state="MUDDY"),
        lambda: step(clarity_state="BLOCKED", status="complete"),
        lambda: step(clarity_state="BLOCKED", status="failed"),
        lambda: step(procedure="while True: pass"),
        lambda: Plan(goal="g", steps=(step(), step())),
        lambda: Plan(
            goal="g",
            steps=(
                step(step_index=1, total_steps=2),
                step(step_id="b", step_index=1, total_steps=2),
            ),
        ),
        lambda: Plan(goal="g", steps=(step(step_index=1, total_steps=2),)),
        lambda: RefinementAction(action_type="DROP", target_step_id="a", justification="why"),
        lambda: RefinementAction(action_type="ADD", new_step=step(), justification=""),
        lambda: RefinementAction(action_type="ADD", justification="why"),
        lambda: RefinementAction(action_type="MODIFY", new_step=step(), justification="why"),
        lambda: RefinementAction(action_type="MODIFY", target_step_id="a", justification="why"),
        lambda: RefinementAction(action_type="REPLACE", target_step_id="a", justification="why"),
        lambda: RefinementAction(action_type="REPLACE", new_step=step(), justification="why"),
        lambda: RefinementAction(action_type="REMOVE", justification="why"),
        lambda: RefinementAction(action_type="STEP_MARK_INVALID", justification="why"),
        lambda: RefinementAction(action_type="SUBPLAN_CREATE", justification="why"),
        lambda: ConvergenceAssessment(converged=False, reason_codes=()),
        lambda: ConvergenceScores(completeness_score=1.7),
        lambda: ConvergenceScores(coherence_score=-0.1),
        lambda: ConvergenceScores(consistency_score=float("nan")),
        lambda: issue(issue_id=""),
        lambda: issue(type="ugly"),
        lambda: issue(severity="WARNING"),
        lambda: issue(description=""),
        lambda: report(issue(), issue()),
        lambda: report(issue(severity="HIGH"), overall_severity="MEDIUM"),
        lambda: report(issue(), issue_summary={"relevance": 2}),
        lambda: SemanticValidationReport(validation_id="v", artifact_type="poem"),
        lambda: TaskProfile(**{**PROFILE, "reasoning_depth": 0}),
        lambda: TaskProfile(**{**PROFILE, "reasoning_depth": 6}),
        lambda: TaskProfile(**{**PROFILE, "information_sufficiency": 1.01}),
        lambda: TaskProfile(**{**PROFILE, "information_sufficiency": -0.01}),
        lambda: TaskProfile(**{**PROFILE, "expected_tool_usage": "some"}),
        lambda: TaskProfile(**{**PROFILE, "output_breadth": "wide"}),
        lambda: TaskProfile(**{**PROFILE, "confidence_requirement": "extreme"}),
        lambda: TaskProfile(**{**PROFILE, "raw_inference": ""}),
        lambda: TaskProfile(**{**PROFILE, "ambiguity_level": 2}),
        lambda: TaskProfile(**{**PROFILE, "profile_version": 0}),
        lambda: TaskProfile(**{**PROFILE, "expected_step_count": -1}),
        lambda: AdaptiveDepthConfiguration(**{**DEPTH, "detected_complexity": "huge"}),
        lambda: AdaptiveDepthConfiguration(**{**DEPTH, "ambiguity_score": 1.1}),
        lambda: AdaptiveDepthConfiguration(**{**DEPTH, "uncertainty_score": -1}),
        lambda: AdaptiveDepthConfiguration(**{**DEPTH, "allocated_ttl": -1}),
        lambda: AdaptiveDepthConfiguration(**{**DEPTH, "reasoning_mode": "medium"}),
        lambda: AdaptiveDepthConfiguration(**{**DEPTH, "adjustment_reason": ""}),
        lambda: Subplan(parent_step_id="a", subplan_goal="", substeps=(step(),), depth_level=1),
        lambda: Subplan(parent_step_id="a", subplan_goal="g", substeps=(), depth_level=1),
        lambda: Subplan(parent_step_id="a", subplan_goal="g", substeps=(step(),), depth_level=0),
        lambda: Subplan(parent_step_id="a", subplan_goal="g", substeps=(step(),), depth_level=6),
        lambda: ExecutionPass(**{**PASS, "pass_number": -1}),
        lambda: ExecutionPass(**{**PASS, "phase": "DECIDE"}),
        lambda: ExecutionPass(**{**PASS, "ttl_remaining": -1}),
        lambda: Timing(**{**TIMING, "duration_seconds": -1}),
        lambda: Timing(**{**TIMING, "end_time": TIMING["start_time"]}),
        lambda: Timing(**{**TIMING, "end_time": "2024-12-31T23:59:59+00:00"}),
        lambda: history(),
        lambda: history(1),
        lambda: history(0, 2),
        lambda: history(0, 1, 1),
        lambda: history(0, 1, total_passes=2),
        lambda: history(0, 1, convergence_achieved=True),
        lambda: TTLExpirationResponse(**EXPIRED, latest_pass_result={}, converged=True),
        lambda: TTLExpirationResponse(**EXPIRED, latest_pass_result={}, result_type="expired"),
        lambda: TTLExpirationResponse(**EXPIRED, latest_pass_result={}, termination_reason="bored"),
        lambda: TTLExpirationResponse(
            **{**EXPIRED, "expiration_point": "halfway"}, latest_pass_result={}
        ),
        lambda: TTLExpirationResponse(**EXPIRED),
        lambda: TTLExpirationResponse(**{**EXPIRED, "expiration_point": "mid_phase"}),
        lambda: FollowUpQuestion(question="", assumption="green"),
    ],
)
def test_what_breaks_a_rule_cannot_be_made(make: Any):
    with pytest.raises(ValidationError):
        make()


def test_a_ttl_expiration_says_so_by_itself():
    expired = TTLExpirationResponse(**EXPIRED, latest_pass_result={"answer": "tea"})
    assert expired.converged is False
    assert expired.result_type == expired.termination_reason == "ttl_expired"
    assert expired.partial_result is None
    assert expired.ttl_expired_metadata.completeness_score is None


def test_a_ttl_that_ends_in_the_first_pass_leaves_a_partial_result():
    partial = TTLExpirationResponse(
        **{**EXPIRED, "expiration_point": "mid_phase"}, partial_result={"outputs": {}}
    )
    assert partial.latest_pass_result is None


def test_steps_are_numbered_from_one_by_their_place():
    plan = Plan(goal="g", steps=(step(), step(step_id="b"), step(step_id="c")))
    assert [(s.step_index, s.total_steps) for s in plan.steps] == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("severities", "highest"),
    [
        ((), "LOW"),
        (("LOW",), "LOW"),
        (("LOW", "MEDIUM"), "MEDIUM"),
        (("HIGH", "MEDIUM"), "HIGH"),
        (("LOW", "CRITICAL", "HIGH"), "CRITICAL"),
    ],
)
def test_a_report_derives_its_severity_and_counts(severities: tuple[Any, ...], highest: str):
    made = report(*(issue(issue_id=f"i{n}", severity=s) for n, s in enumerate(severities)))
    assert made.overall_severity == highest
    assert made.issue_summary == {
        "specificity": 0,
        "relevance": len(severities),
        "consistency": 0,
        "hallucination": 0,
        "do_say_mismatch": 0,
    }


def test_a_report_gathers_the_repairs_that_its_issues_propose():
    repair = {"action": "rewrite", "target": "a", "changes": {"description": "better"}}
    made = report(issue(proposed_repair=repair), issue(issue_id="i2"))
    assert made.proposed_repairs == (repair,)


def test_scores_are_read_by_name():
    scores = ConvergenceScores(completeness_score=0.1, coherence_score=0.2, consistency_score=0.3)
    assert [scores[f"{name}_score"] for name in ("completeness", "coherence", "consistency")] == [
        0.1,
        0.2,
        0.3,
    ]
    assert scores["consistency_status"] == {}


@pytest.mark.parametrize(
    "value",
    [
        a_plan(),
        report(issue()),
        TaskProfile(**PROFILE),
        AdaptiveDepthConfiguration(**DEPTH),
        ExecutionPass(**PASS),
        history(0, 1, 2),
        TTLExpirationResponse(**EXPIRED, latest_pass_result={"a": [1]}),
        Subplan(parent_step_id="a", subplan_goal="g", substeps=(step(),), depth_level=5),
        RefinementAction(
            action_type="ADD",
            new_step=step(),
            justification="why",
            semantic_validation_input=(issue(),),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_entity_survives_json_and_cannot_be_changed(value: Any):
    assert type(value).model_validate_json(value.model_dump_json()) == value
    with pytest.raises(ValidationError, match="frozen"):
        setattr(value, next(iter(type(value).model_fields)), None)
