"""Why a plan is to be refined: the structured signals, collected. A leaf; it decides nothing about meaning."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from aeon.convergence.models import ConvergenceAssessment
from aeon.plan.graph import unresolved_steps
from aeon.plan.models import Plan, PlanStep
from aeon.validation.models import ValidationIssue
from aeon.values import Value

TriggerKind = Literal[
    "validation_issue",
    "blocked_step",
    "failed_step",
    "invalid_step",
    "unmet_criterion",
    "blocking_issue",
    "low_score",
]


class Trigger(Value):
    """One reason to refine: its kind, what it is about (a step, issue or criterion), and what was said of it."""

    kind: TriggerKind
    about: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.about}"


def issue_triggers(issues: Sequence[ValidationIssue], closed: Collection[str] = ()) -> tuple[Trigger, ...]:
    """A trigger for each validation issue, those at steps that are closed to refinement left out."""
    open_issues = (issue for issue in issues if issue.step_id not in closed)
    return tuple(Trigger(kind="validation_issue", about=issue.issue_id) for issue in open_issues)


def step_triggers(plan: Plan, closed: Collection[str] = (), raised: Collection[str] = ()) -> tuple[Trigger, ...]:
    """A trigger for each BLOCKED, failed or invalid step that nothing has replaced yet (FR-093).

    A step that refinement declared invalid is one until a refinement had it as its reason (`raised`): that nothing
    takes its place is then an answer.
    """
    found = (_of_step(step) for step in unresolved_steps(plan) if step.step_id not in closed)
    return tuple(trigger for trigger in found if trigger.kind != "invalid_step" or str(trigger) not in raised)


def _of_step(step: PlanStep) -> Trigger:
    if step.blocked:
        return Trigger(kind="blocked_step", about=step.step_id, detail=step.clarity_reason or "")
    kind: TriggerKind = "failed_step" if step.status == "failed" else "invalid_step"
    return Trigger(kind=kind, about=step.step_id, detail="; ".join(step.errors))


def assessment_triggers(assessment: ConvergenceAssessment, pending: bool) -> tuple[Trigger, ...]:
    """Unmet criteria, blocking issues, and, when nothing is left pending, the scores that are too low."""
    unmet = tuple(
        Trigger(kind="unmet_criterion", about=criterion.name, detail=criterion.reason)
        for criterion in assessment.criteria
        if not criterion.met
    )
    blocking = tuple(
        Trigger(kind="blocking_issue", about="the answer", detail=issue) for issue in assessment.blocking_issues
    )
    low = () if pending else tuple(code for code in assessment.reason_codes if code in LOW_SCORE_CODES)
    return (
        *unmet,
        *blocking,
        *((Trigger(kind="low_score", about=", ".join(low), detail=_of_scores(assessment)),) if low else ()),
    )


def _of_scores(assessment: ConvergenceAssessment) -> str:
    """What the model said beside the blocking issues, which are triggers of their own."""
    harmless = [issue for issue in assessment.detected_issues if issue not in assessment.blocking_issues]
    return " ".join((assessment.explanation, *harmless))


LOW_SCORE_CODES = ("incomplete", "incoherent", "inconsistent")


def pass_triggers(
    plan: Plan,
    issues: Sequence[ValidationIssue],
    assessment: ConvergenceAssessment,
    closed: Collection[str] = (),
    raised: Collection[str] = (),
) -> tuple[Trigger, ...]:
    """Every trigger after a pass; steps in `closed` are left to a person and trigger nothing (FR-065).

    `raised` are the triggers of earlier refinements.
    """
    pending = any(step.status == "pending" or step.blocked for step in plan.steps)
    found = (*issue_triggers(issues, closed), *step_triggers(plan, closed, raised))
    return found if assessment.converged else (*found, *assessment_triggers(assessment, pending))
