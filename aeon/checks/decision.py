"""The consequences of checks: whether a pass may converge, and the issues for a refinement. Nothing
is judged here: a required check that has not passed blocks, whatever the judge says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aeon.domain.assessment import SCORE_CODES, ConvergenceAssessment
from aeon.domain.checks import CheckOutcome, RubricCheck, find_failed_codes, is_negated
from aeon.domain.graph import final_steps, find_pending_steps
from aeon.domain.plan import Plan
from aeon.domain.report import FAILED_CHECK, IssueLocation, ValidationIssue


def block(
    assessment: ConvergenceAssessment, checks: Sequence[CheckOutcome]
) -> ConvergenceAssessment:
    """Return the assessment with the checks applied: required ones that failed become reason codes,
    and an optional one that the judge found unmet does not."""
    if not checks:
        return assessment
    names = {check.name for check in checks}
    judged = () if assessment.converged else assessment.reason_codes
    codes = [code for code in judged if code not in names]
    codes += find_failed_codes(checks)
    if codes:
        changes = {"converged": False, "reason_codes": tuple(codes)}
    else:
        changes = {"converged": True, "reason_codes": _list_good_codes(assessment, checks)}
    return assessment.model_copy(update=changes)


def _list_good_codes(
    assessment: ConvergenceAssessment, checks: Sequence[CheckOutcome]
) -> tuple[str, ...]:
    passed = [check.name for check in checks if check.passed]
    if assessment.converged:
        return tuple(dict.fromkeys((*assessment.reason_codes, *passed)))
    names = {check.name for check in checks}
    reached = (good for good, _ in SCORE_CODES.values())
    met = (result.name for result in assessment.criteria if result.name not in names)
    return (*reached, *met, *passed)


def describe_rubrics(rubrics: Mapping[str, RubricCheck]) -> dict[str, str]:
    """Describe rubrics as criteria, by name."""
    return {
        name: f"This must not hold: {one.value}" if is_negated(one) else one.value
        for name, one in rubrics.items()
    }


def read_rubrics(
    assessment: ConvergenceAssessment | None, rubrics: Mapping[str, RubricCheck]
) -> tuple[CheckOutcome, ...]:
    """Return the judge's findings on the rubrics; a rubric without a finding is not measured."""
    criteria = assessment.criteria if assessment else ()
    found = {result.name: result for result in criteria}
    outcomes = []
    for name, one in rubrics.items():
        result = found.get(name)
        outcomes.append(
            CheckOutcome(
                name=name,
                type=one.type,
                passed=result is not None and result.met,
                feedback=result.reason if result else "The judge gave no usable finding on it.",
                required=one.required,
                weight=one.weight,
                measured=result is not None,
            )
        )
    return tuple(outcomes)


def describe_unjudged(checks: Sequence[CheckOutcome]) -> ConvergenceAssessment:
    """Return the assessment of a pass that was not judged because required checks failed."""
    return ConvergenceAssessment(
        converged=False,
        reason_codes=find_failed_codes(checks),
        explanation="The judge was not asked: required checks failed.",
    )


def make_issues(checks: Sequence[CheckOutcome], plan: Plan) -> tuple[ValidationIssue, ...]:
    """Convert failed required checks to issues that bind a refinement, with each check's verbatim
    message; those of the answer only once no pending step may still mend it. No change of the plan
    mends a rubric without a finding."""
    is_partial = bool(find_pending_steps(plan))
    final = final_steps(plan)
    where = final[0].step_id if len(final) == 1 else None
    return tuple(
        ValidationIssue(
            issue_id=f"check:{check.name}",
            type=FAILED_CHECK,
            severity="HIGH",
            description=check.feedback or f"The check {check.name} failed.",
            location=IssueLocation(step_id=check.step_id or where),
        )
        for check in checks
        if check.blocks
        and not (is_partial and check.step_id is None)
        and (check.measured or not check.type.endswith("llm-rubric"))
    )
