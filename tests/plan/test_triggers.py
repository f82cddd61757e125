"""Why a pass is refined (RULES 8): every trigger, and nothing that is none."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores, CriterionResult
from aeon.domain.plan import PlanStep
from aeon.domain.report import IssueLocation, ValidationIssue
from aeon.plan.triggers import (
    WHOLE,
    Trigger,
    code_triggers,
    find_unanswered,
    issue_triggers,
    pass_triggers,
    show_reasons,
    step_triggers,
)
from tests.plan.builders import blocked, done, failed, plan_of, step


def assessed(converged: bool = False, **fields: Any) -> ConvergenceAssessment:
    given = {
        "reason_codes": ("complete",) if converged else ("incomplete",),
        "explanation": "as it stands",
        **fields,
    }
    return ConvergenceAssessment(
        converged=converged, scores=ConvergenceScores(completeness_score=0.5), **given
    )


def issue(
    issue_id: str = "i1", step_id: str | None = None, severity: Any = "LOW"
) -> ValidationIssue:
    location = IssueLocation(step_id=step_id) if step_id else None
    return ValidationIssue(
        issue_id=issue_id,
        type="relevance",
        severity=severity,
        description=f"{issue_id} it is",
        location=location,
    )


def invalid(step_id: str, **fields: Any) -> PlanStep:
    return done(step_id).model_copy(update={"status": "invalid", **fields})


def kinds(
    *steps: PlanStep, issues: Any = (), assessment: Any = None, closed: Any = ()
) -> list[str]:
    return [
        str(t) for t in pass_triggers(plan_of(*steps), issues, assessment or assessed(), closed)
    ]


@pytest.mark.parametrize("severity", ["LOW", "MEDIUM", "HIGH", "CRITICAL"])
def test_every_issue_is_a_trigger_whatever_its_severity(severity: Any):
    assert kinds(step("a"), issues=[issue(severity=severity)]) == ["validation_issue:i1"]


@pytest.mark.parametrize(
    ("one", "trigger", "detail"),
    [
        (blocked("a"), "blocked_step:a", "what is meant?"),
        (failed("a"), "failed_step:a", "it broke"),
        (invalid("a", errors=("no longer true",)), "invalid_step:a", "no longer true"),
    ],
)
def test_a_step_that_cannot_help_is_a_trigger_with_its_reason(
    one: PlanStep, trigger: str, detail: str
):
    (found,) = step_triggers(plan_of(one, step("b", "a")))
    assert (str(found), found.detail) == (trigger, detail)


@pytest.mark.parametrize(
    "one", [step("a"), done("a"), step("a", status="running"), invalid("a", replaced_by="b")]
)
def test_other_steps_are_none(one: PlanStep):
    assert step_triggers(plan_of(one)) == ()


@pytest.mark.parametrize("codes", [("incomplete",), ("incoherent", "inconsistent")])
def test_low_scores_are_triggers_only_when_nothing_is_pending(codes: tuple[str, ...]):
    low = assessed(reason_codes=codes)
    assert kinds(done("a"), assessment=low) == [f"low_score:{', '.join(codes)}"]
    assert kinds(done("a"), step("b"), assessment=low) == []


def test_a_step_that_waits_behind_a_failed_one_is_pending_all_the_same():
    assert kinds(failed("a"), step("b", "a")) == ["failed_step:a"]


def test_unmet_criteria_and_blocking_issues_are_triggers_also_while_work_is_pending():
    assessment = assessed(
        reason_codes=("hot", "omission_detected", "incomplete"),
        criteria=(
            CriterionResult(name="hot", met=False, reason="cold"),
            CriterionResult(name="sweet", met=True),
        ),
        detected_issues=("no milk", "no doily"),
        blocking_issues=("no milk",),
    )
    found = pass_triggers(plan_of(done("a"), step("b", "a")), (), assessment)
    assert [(t.kind, t.detail) for t in found] == [
        ("unmet_criterion", "cold"),
        ("blocking_issue", "no milk"),
    ]
    assert found[0].about == "hot"


def test_a_converged_pass_has_only_its_issues_and_steps():
    assert kinds(done("a"), assessment=assessed(converged=True)) == []
    assert kinds(failed("a"), issues=[issue()], assessment=assessed(converged=True)) == [
        "validation_issue:i1",
        "failed_step:a",
    ]


def test_a_pass_that_could_not_be_evaluated_has_only_its_steps():
    unavailable = ConvergenceAssessment(converged=False, reason_codes=("evaluation_unavailable",))
    assert kinds(done("a"), assessment=unavailable) == []
    assert kinds(blocked("a"), assessment=unavailable) == ["blocked_step:a"]


def test_steps_left_to_a_person_trigger_nothing():
    issues = [issue("i1", "a"), issue("i2", "b"), issue("i3")]
    assert kinds(failed("a"), blocked("b"), step("c"), issues=issues, closed=("a",)) == [
        "validation_issue:i2",
        "validation_issue:i3",
        "blocked_step:b",
    ]
    assert issue_triggers([issue("i1", "a")], ("a",)) == ()


def test_nothing_is_a_trigger_while_all_goes_well():
    assert kinds(done("a"), step("b", "a")) == []


def test_a_step_declared_invalid_is_a_trigger_once_and_a_failed_one_until_it_is_replaced():
    steps = plan_of(invalid("a"), failed("b"))
    raised = [str(trigger) for trigger in step_triggers(steps)]
    assert raised == ["invalid_step:a", "failed_step:b"]
    assert [str(trigger) for trigger in step_triggers(steps, raised=raised)] == ["failed_step:b"]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("incomplete", "low_score"),
        ("inconsistent", "low_score"),
        ("contradiction_detected", "blocking_issue"),
        ("blocking_issue", "blocking_issue"),
        ("cited", "unmet_criterion"),
    ],
)
def test_a_reason_code_alone_says_what_kind_of_trigger_it_is(code: str, kind: str):
    assert [(t.kind, t.about) for t in code_triggers([code])] == [(kind, code)]


def test_a_reason_code_of_what_is_met_triggers_nothing():
    assert code_triggers(["complete", "coherent", "consistent"]) == ()


def test_a_blocked_step_that_is_left_to_a_person_does_not_keep_low_scores_from_triggering():
    assert kinds(done("a"), blocked("b"), closed=("b",)) == ["low_score:incomplete"]


def test_a_contradiction_of_the_whole_that_is_left_to_a_person_triggers_nothing_but_other_issues_do():
    conflict = issue("i1", severity="CRITICAL").model_copy(update={"type": "consistency"})
    assert kinds(step("a"), issues=[conflict, issue("i2")], closed=(WHOLE,)) == [
        "validation_issue:i2"
    ]


def test_a_failed_check_is_to_be_answered_whatever_severity_binds():
    failed = ValidationIssue(
        issue_id="check:tests", type="failed_check", severity="HIGH", description="1 failed"
    )
    assert find_unanswered([failed], [], binding="CRITICAL") == ("check:tests",)
    assert [str(one) for one in issue_triggers([failed])] == ["failed_check:check:tests"]


LOW = Trigger(kind="low_score", about="incomplete, inconsistent")
CHECK = ValidationIssue(
    issue_id="check:tests", type="failed_check", severity="HIGH", description="1 failed"
)


def test_a_low_score_is_shown_by_the_names_of_the_scores():
    shown = {"kind": "low_score", "about": "completeness, consistency"}
    assert show_reasons([LOW]) == [shown]
    assert show_reasons([LOW], [issue(severity="MEDIUM")]) == [shown]


@pytest.mark.parametrize(
    ("issues", "binding"), [([issue(severity="HIGH")], "HIGH"), ([CHECK], "CRITICAL")]
)
def test_a_low_score_is_not_shown_beside_an_issue_that_binds(issues: Any, binding: Any):
    assert show_reasons([LOW], issues, binding) == []
    more = LOW.model_copy(update={"detail": "The list is short."})
    assert [shown["detail"] for shown in show_reasons([more], issues, binding)] == [more.detail]


def test_a_low_score_is_not_shown_beside_a_fault_that_the_assessment_names():
    fault = Trigger(kind="blocking_issue", about="the answer", detail="The sum is wrong.")
    assert [shown["kind"] for shown in show_reasons([fault, LOW])] == ["blocking_issue"]
