from typing import Any

import pytest
from pydantic import ValidationError

from aeon.domain.report import (
    SEVERITIES,
    IssueLocation,
    ProposedRepair,
    SemanticValidationReport,
    ValidationIssue,
    reaches,
)


def issue(
    issue_id: str, severity: Any = "LOW", kind: Any = "relevance", **fields: Any
) -> ValidationIssue:
    return ValidationIssue(
        issue_id=issue_id, type=kind, severity=severity, description="what is wrong", **fields
    )


def report(*issues: ValidationIssue, **fields: Any) -> SemanticValidationReport:
    return SemanticValidationReport(
        validation_id="v1", artifact_type="plan", issues=issues, **fields
    )


def test_severity_summary_and_repairs_follow_from_the_issues() -> None:
    repair = ProposedRepair(action="MODIFY", target="s1", changes={"description": "clearer"})
    made = report(
        issue("i1", "MEDIUM", proposed_repair=repair), issue("i2", "HIGH", "hallucination")
    )
    assert made.overall_severity == "HIGH"
    assert made.issue_summary == {
        "specificity": 0,
        "relevance": 1,
        "consistency": 0,
        "hallucination": 1,
        "do_say_mismatch": 0,
    }
    assert made.proposed_repairs == (repair.model_dump(),)


def test_a_report_without_issues_is_low() -> None:
    assert report().overall_severity == "LOW"
    assert set(report().issue_summary.values()) == {0}


def test_a_given_severity_or_summary_must_agree_with_the_issues() -> None:
    with pytest.raises(ValidationError, match="overall_severity must follow from the issues: HIGH"):
        report(issue("i1", "HIGH"), overall_severity="CRITICAL")
    with pytest.raises(ValidationError, match="issue_summary must follow"):
        report(issue("i1"), issue_summary={"relevance": 2})


def test_issue_ids_are_unique_within_a_report() -> None:
    with pytest.raises(ValidationError, match="unique"):
        report(issue("i1"), issue("i1"))


def test_an_issue_needs_a_known_type_severity_and_a_description() -> None:
    for wrong in ({"type": "style"}, {"severity": "FATAL"}, {"description": ""}):
        with pytest.raises(ValidationError):
            ValidationIssue.model_validate({**issue("i1").model_dump(), **wrong})


def test_the_step_of_an_issue_is_that_of_its_location() -> None:
    assert issue("i1").step_id is None
    assert issue("i1", location=IssueLocation(artifact_reference="the goal")).step_id is None
    assert issue("i1", location=IssueLocation(step_id="s1")).step_id == "s1"


def test_a_report_survives_json() -> None:
    made = report(issue("i1", "CRITICAL", location=IssueLocation(step_id="s1")))
    assert SemanticValidationReport.model_validate_json(made.model_dump_json()) == made


def test_severities_are_ordered_and_reach_themselves_and_what_is_below() -> None:
    assert SEVERITIES == ("LOW", "MEDIUM", "HIGH", "CRITICAL")
    for rank, severity in enumerate(SEVERITIES):
        assert [reaches(severity, threshold) for threshold in SEVERITIES] == [
            rank >= other for other in range(4)
        ]
