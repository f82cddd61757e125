"""The report of semantic validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, get_args

from pydantic import Field, model_validator

from aeon.domain.values import JsonMapping, JsonObject, Value

ArtifactType = Literal["plan", "step", "execution_artifact", "cross_phase"]
IssueType = Literal["specificity", "relevance", "consistency", "hallucination", "do_say_mismatch"]
FailedCheck = Literal["failed_check"]
FAILED_CHECK: FailedCheck = "failed_check"
"""The type of a failed check's issue, for a refinement; a review has no such issues."""
Severity = Literal["LOW", "MEDIUM", "HIGH", "CRITICAL"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
HARMLESS: Severity = "LOW"
"""The severity as which an issue of the assessment counts that does not prevent convergence: the
judge gives none, and found the answer good enough with it."""


class IssueLocation(Value):
    """The place of an issue: a step, and a description of the part."""

    step_id: str | None = None
    artifact_reference: str | None = None


class ProposedRepair(Value):
    """A fix suggested by the model; advisory. `changes` is free-form (FR-045)."""

    action: str
    target: str
    changes: JsonObject = Field(default_factory=dict)


class ValidationIssue(Value):
    """One issue, classified and graded by the model alone (FR-042 to FR-045)."""

    issue_id: str = Field(min_length=1)
    type: IssueType | FailedCheck
    severity: Severity
    description: str = Field(min_length=1)
    location: IssueLocation | None = None
    proposed_repair: ProposedRepair | None = None

    @property
    def step_id(self) -> str | None:
        """The step it concerns, if any."""
        return self.location.step_id if self.location else None


class SemanticValidationReport(Value):
    """The issues of one validation; advisory (FR-081). Severity and summary are derived from the
    issues."""

    validation_id: str
    artifact_type: ArtifactType
    issues: tuple[ValidationIssue, ...] = ()
    overall_severity: Severity = "LOW"
    issue_summary: dict[str, int] = Field(default_factory=dict)
    proposed_repairs: tuple[JsonObject, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _derive(cls, data: object) -> Any:
        if not isinstance(data, dict):
            return data
        issues = [ValidationIssue.model_validate(issue) for issue in data.get("issues", ())]
        if len({issue.issue_id for issue in issues}) < len(issues):
            raise ValueError("issue_id must be unique within a report")
        derived = _derive_fields(issues)
        _check_derived(data, derived)
        own = {name: value for name, value in data.items() if value and name not in derived}
        repairs = data.get("proposed_repairs") or derived["proposed_repairs"]
        return {**derived, **own, "proposed_repairs": repairs, "issues": issues}


def _derive_fields(issues: Sequence[ValidationIssue]) -> JsonObject:
    severities = (issue.severity for issue in issues)
    counts: Counter[str] = Counter(issue.type for issue in issues)
    repairs = (issue.proposed_repair for issue in issues)
    return {
        "overall_severity": max(severities, key=SEVERITIES.index, default="LOW"),
        "issue_summary": {kind: counts[kind] for kind in get_args(IssueType)},
        "proposed_repairs": [repair.model_dump() for repair in repairs if repair],
    }


def _check_derived(data: JsonMapping, derived: JsonMapping) -> None:
    """Raise ValueError for a severity or a summary that does not follow from the issues."""
    given = data.get("overall_severity")
    if given and given != derived["overall_severity"]:
        raise ValueError(
            f"overall_severity must follow from the issues: {derived['overall_severity']}"
        )
    summary = data.get("issue_summary")
    if summary and Counter(summary) != Counter(derived["issue_summary"]):
        raise ValueError(f"issue_summary must follow from the issues: {derived['issue_summary']}")


def reaches(severity: Severity, threshold: Severity) -> bool:
    """Whether a severity from the model is at least the configured one."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(threshold)


UNREVIEWED = SemanticValidationReport(validation_id="unreviewed", artifact_type="cross_phase")
"""Replaces the report on work that is assessed without a review."""
