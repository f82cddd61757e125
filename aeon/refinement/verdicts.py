"""The review of a refinement, the verdict on it, and what a person should know of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from aeon.domain.graph import current_outputs, ready_steps
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementRecord, RefusedAction
from aeon.domain.report import SemanticValidationReport, Severity, ValidationIssue, reaches
from aeon.plan.deltas import DeltaResult
from aeon.refinement.models import Remark


def select_outputs(plan: Plan, draft: DeltaResult) -> dict[str, str]:
    """The outputs that a draft's changes concern: of the changed steps, of what they depend on, and of what depends on
    them, as they were before."""
    changed = {change.step_id for change in draft.changes}
    versions = [version for change in draft.changes for version in (change.before, change.after) if version]
    concerned = changed | {dependency for version in versions for dependency in version.dependencies}
    concerned |= _dependents(plan, changed)
    return {step_id: output for step_id, output in current_outputs(plan.steps).items() if step_id in concerned}


def reject_actions(
    report: SemanticValidationReport, plan: Plan, draft: DeltaResult, reject_severity: Severity
) -> tuple[RefusedAction, ...]:
    """The actions of a draft of a plan that an issue refuses, by the severity that the model gave it: an issue at a
    step the action is about, or at a step that depended, or would depend, on one of those."""
    grave = {i.step_id: i for i in report.issues if i.step_id and reaches(i.severity, reject_severity)}
    refused = []
    for action in draft.accepted:
        about = draft.changed_by(action)
        concerned = about | _dependents(plan, about) | _dependents(draft.plan, about)
        issue = next((issue for step_id, issue in grave.items() if step_id in concerned), None)
        if issue is not None:
            refused.append(RefusedAction(action=action, reason=f"{issue.severity} issue: {issue.description}"))
    return tuple(refused)


def _dependents(plan: Plan, step_ids: Collection[str]) -> set[str]:
    return {step.step_id for step in plan.steps if not set(step_ids).isdisjoint(step.dependencies)}


def is_stuck(before: Plan, after: Plan) -> bool:
    """Whether nothing changed and nothing can run. A question without an answer changes nothing, and neither does
    leaving a step to a person."""
    unmarked = (
        [step.model_copy(update={"manual_intervention": False}) for step in plan.steps] for plan in (before, after)
    )
    is_answered = any(question.answer is not None for question in after.questions[len(before.questions) :])
    return next(unmarked) == next(unmarked) and not is_answered and not ready_steps(after)


def make_remarks(record: RefinementRecord, issues: Sequence[ValidationIssue]) -> tuple[Remark, ...]:
    """What a person should know of a refinement that these issues were given to: what was refused, which grave issues
    got no answer, and whose proposed repair an applied change overrides: the planner's wins (FR-079)."""
    remarks = [
        Remark(
            "refused_action", f"{each.action.action_type} {each.action.fragment}: {each.reason}", each.action.fragment
        )
        for each in record.refused
    ]
    for issue in issues:
        if issue.issue_id in record.unanswered:
            message = f"{issue.severity} issue {issue.issue_id} got neither a change nor a reason: {issue.description}"
            remarks.append(Remark("unanswered_issue", message, issue.step_id))
    repairs = {issue.issue_id: issue.proposed_repair for issue in issues if issue.proposed_repair}
    for action in record.accepted:
        for issue_id in action.overrides_issues:
            if repair := repairs.get(issue_id):
                message = (
                    f"{action.action_type} {action.fragment} was applied instead of what validation proposed for"
                    f" {issue_id}: {repair.action} {repair.target}"
                )
                remarks.append(Remark("conflict", message, action.fragment))
    return tuple(remarks)
