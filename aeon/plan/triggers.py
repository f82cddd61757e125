"""Reasons to refine a plan, collected from issues, steps and assessments, without judging their
meaning."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from aeon.domain.assessment import (
    LOW_SCORE_CODES,
    MET_CODES,
    SCORE_CODES,
    ConvergenceAssessment,
    is_own_code,
)
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.refinement import DeclinedIssue, RefinementAction
from aeon.domain.report import FAILED_CHECK, FailedCheck, Severity, ValidationIssue, reaches
from aeon.domain.values import JsonObject, Value

TriggerKind = Literal[
    "validation_issue",
    "blocked_step",
    "failed_step",
    "invalid_step",
    "unmet_criterion",
    "blocking_issue",
    "known_fault",
    "low_score",
    FailedCheck,
    "set_back",
]
WHOLE = "the whole"
"""The fragment of an issue that concerns no single step."""
_OF_ASSESSMENT = ("unmet_criterion", "blocking_issue", "known_fault", "low_score")


class Trigger(Value):
    """One reason to refine: its kind, its subject (a step, an issue or a criterion), and
    details."""

    kind: TriggerKind
    about: str
    detail: str = ""

    @property
    def is_of_assessment(self) -> bool:
        """Whether the reason is a fault that the assessment found, in its own words."""
        return self.kind in _OF_ASSESSMENT and bool(self.detail)

    def __str__(self) -> str:
        return f"{self.kind}:{self.about}"


def fragment_of(issue: ValidationIssue) -> str:
    """Return the step that an issue concerns, or `WHOLE`."""
    return issue.step_id or WHOLE


def is_contradiction(issue: ValidationIssue) -> bool:
    """Whether the model gave an issue the type and severity of a CRITICAL contradiction."""
    return (issue.type, issue.severity) == ("consistency", "CRITICAL")


def open_issues(
    issues: Sequence[ValidationIssue], closed: Collection[str] = ()
) -> tuple[ValidationIssue, ...]:
    """Return the issues that refinement may still address; those left to a person are excluded."""
    return tuple(
        issue
        for issue in issues
        if issue.step_id not in closed
        and not (is_contradiction(issue) and fragment_of(issue) in closed)
    )


def find_unanswered(
    issues: Sequence[ValidationIssue],
    actions: Sequence[RefinementAction],
    declined: Sequence[DeclinedIssue] = (),
    binding: Severity = "HIGH",
) -> tuple[str, ...]:
    """Return the ids of failed checks and of issues of severity `binding` or higher that no action
    answers and that are not declined (FR-086)."""
    answered = {issue_id for action in actions for issue_id in action.answers} | {
        each.issue_id for each in declined
    }
    grave = (issue.issue_id for issue in issues if _binds(issue, binding))
    return tuple(issue_id for issue_id in grave if issue_id not in answered)


def _binds(issue: ValidationIssue, binding: Severity) -> bool:
    return issue.type == FAILED_CHECK or reaches(issue.severity, binding)


def issue_triggers(
    issues: Sequence[ValidationIssue], closed: Collection[str] = ()
) -> tuple[Trigger, ...]:
    """Return a trigger for each validation issue and failed check, except at steps closed to
    refinement."""
    return tuple(
        Trigger(
            kind=FAILED_CHECK if issue.type == FAILED_CHECK else "validation_issue",
            about=issue.issue_id,
        )
        for issue in open_issues(issues, closed)
    )


def step_triggers(
    plan: Plan, closed: Collection[str] = (), raised: Collection[str] = ()
) -> tuple[Trigger, ...]:
    """Return a trigger for each BLOCKED or failed step and, once (`raised`), for each invalid step
    that was not replaced (FR-093)."""
    found = []
    for step in plan.steps:
        if step.status not in ("failed", "invalid") or step.replaced_by is not None:
            continue
        trigger = _make_step_trigger(step)
        if trigger.kind == "invalid_step" and str(trigger) in raised:
            continue
        if step.step_id not in closed:
            found.append(trigger)
    return tuple(found)


def _make_step_trigger(step: PlanStep) -> Trigger:
    if step.blocked:
        return Trigger(kind="blocked_step", about=step.step_id, detail=step.clarity_reason or "")
    kind: TriggerKind = "failed_step" if step.status == "failed" else "invalid_step"
    return Trigger(kind=kind, about=step.step_id, detail="; ".join(step.errors))


def show_reasons(
    triggers: Sequence[Trigger], issues: Sequence[ValidationIssue] = (), binding: Severity = "HIGH"
) -> list[JsonObject]:
    """Return the reasons as prompts show them, without those listed among the `issues`: validation
    issues and failed checks. A low score that says nothing more is left out where a graver reason
    stands: a failed check, an issue of severity `binding` or higher, or a fault that the assessment
    names."""
    has_graver = any(_binds(issue, binding) for issue in issues) or any(
        trigger.kind == "blocking_issue" for trigger in triggers
    )
    return [
        _show_low_score(trigger) if trigger.kind == "low_score" else _show_fields(trigger)
        for trigger in triggers
        if trigger.kind not in ("validation_issue", FAILED_CHECK)
        and not (has_graver and trigger.kind == "low_score" and not trigger.detail)
    ]


def _show_fields(trigger: Trigger) -> JsonObject:
    return trigger.model_dump(exclude_defaults=True)


def _show_low_score(trigger: Trigger) -> JsonObject:
    """Show the names of the scores instead of the reason codes that are recorded."""
    names = (name for name, (_, low) in SCORE_CODES.items() if low in trigger.about.split(", "))
    return {**_show_fields(trigger), "about": ", ".join(names)}


def code_triggers(codes: Sequence[str]) -> tuple[Trigger, ...]:
    """Return a trigger for each reason code of an assessment that did not converge, if only its
    codes are known."""
    found = []
    for code in codes:
        if code in MET_CODES:
            continue
        other: TriggerKind = "blocking_issue" if is_own_code(code) else "unmet_criterion"
        found.append(Trigger(kind="low_score" if code in LOW_SCORE_CODES else other, about=code))
    return tuple(found)


def pass_triggers(
    plan: Plan,
    issues: Sequence[ValidationIssue],
    assessment: ConvergenceAssessment,
    closed: Collection[str] = (),
    raised: Collection[str] = (),
) -> tuple[Trigger, ...]:
    """Return every trigger after a pass, except earlier ones (`raised`) and steps left to a person
    (`closed`, FR-065)."""
    found = [*issue_triggers(issues, closed), *step_triggers(plan, closed, raised)]
    has_work = _has_work(plan, closed)
    if assessment.converged:
        return (*found, *([] if has_work else _fault_triggers(assessment)))
    found += _assessment_triggers(assessment)
    low = ", ".join(code for code in assessment.reason_codes if code in LOW_SCORE_CODES)
    if low and not has_work:
        # Blocking issues are triggers of their own.
        harmless = " ".join(list_harmless_issues(assessment))
        found.append(Trigger(kind="low_score", about=low, detail=harmless))
    return tuple(found)


def list_harmless_issues(assessment: ConvergenceAssessment) -> list[str]:
    """Return the issues that an assessment found, that the review does not have, and that do not
    prevent convergence."""
    repeated = [
        raw["description"]
        for raw in assessment.metadata.get("issues", ())
        if raw.get("review_issue") is not None
    ]
    left_out = {*assessment.blocking_issues, *repeated}
    return [issue for issue in assessment.detected_issues if issue not in left_out]


def _fault_triggers(assessment: ConvergenceAssessment) -> Iterator[Trigger]:
    for issue in list_harmless_issues(assessment):
        yield Trigger(kind="known_fault", about="the answer", detail=issue)


def _assessment_triggers(assessment: ConvergenceAssessment) -> Iterator[Trigger]:
    for criterion in assessment.criteria:
        if not criterion.met:
            yield Trigger(kind="unmet_criterion", about=criterion.name, detail=criterion.reason)
    for issue in assessment.blocking_issues:
        yield Trigger(kind="blocking_issue", about="the answer", detail=issue)


def _has_work(plan: Plan, closed: Collection[str]) -> bool:
    return any(
        step.status == "pending" or (step.blocked and step.step_id not in closed)
        for step in plan.steps
    )
