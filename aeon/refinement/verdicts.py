"""The review of a refinement, the verdict on it, and what a person should know of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from aeon.domain.graph import current_outputs, dependents, ready_steps
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.refinement import RefinementAction, RefinementRecord, RefusedAction, SupervisorAssessment
from aeon.domain.report import SemanticValidationReport, Severity, ValidationIssue, reaches
from aeon.plan.deltas import DeltaResult
from aeon.refinement.models import Remark


def select_outputs(plan: Plan, draft: DeltaResult) -> dict[str, str]:
    """The outputs that a draft's changes concern: of the changed steps, of what they depend on, and of what depends on
    them, as they were before."""
    changed = {change.step_id for change in draft.changes}
    versions = [version for change in draft.changes for version in (change.before, change.after) if version]
    around = {dependency for version in versions for dependency in version.dependencies}
    around |= _dependents(plan, changed)
    return {step_id: output for step_id, output in current_outputs(plan.steps).items() if step_id in changed | around}


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
        issue = next((grave[step_id] for step_id in grave if step_id in concerned), None)
        if issue is not None:
            refused.append(RefusedAction(action=action, reason=f"{issue.severity} issue: {issue.description}"))
    return tuple(refused)


def _dependents(plan: Plan, step_ids: Collection[str]) -> frozenset[str]:
    return frozenset(step.step_id for step_id in step_ids for step in dependents(plan, step_id))


def supervise(
    before: Plan, after: Plan, safe: Sequence[RefinementAction], refused: Sequence[RefusedAction]
) -> SupervisorAssessment:
    """What is safe to apply, what is not and why, and whether execution is stuck with it (FR-004)."""
    return SupervisorAssessment(
        blocking=is_stuck(before, after), issues=tuple(refusal.reason for refusal in refused), repairs=tuple(safe)
    )


def is_stuck(before: Plan, after: Plan) -> bool:
    """Whether nothing changed and nothing can run; a question without an answer changes nothing."""
    raised = after.questions[len(before.questions) :]
    changed = _unmarked(after) != _unmarked(before) or any(question.answer is not None for question in raised)
    return not changed and not ready_steps(after)


def _unmarked(plan: Plan) -> tuple[PlanStep, ...]:
    """The steps of a plan as they would be if none were left to a person: that alone is no progress."""
    return tuple(
        step.model_copy(update={"manual_intervention": False}) if step.manual_intervention else step
        for step in plan.steps
    )


def make_remarks(record: RefinementRecord, issues: Sequence[ValidationIssue]) -> tuple[Remark, ...]:
    """What a person should know of a refinement that these issues were given to."""
    refused = (
        Remark("refused_action", f"{r.action.action_type} {r.action.fragment}: {r.reason}", r.action.fragment)
        for r in record.refused
    )
    return (*refused, *_unanswered(record.unanswered, issues), *_overridden(record.accepted, issues))


def _unanswered(unanswered: Sequence[str], issues: Sequence[ValidationIssue]) -> Iterator[Remark]:
    for issue in issues:
        if issue.issue_id in unanswered:
            message = f"{issue.severity} issue {issue.issue_id} got neither a change nor a reason: {issue.description}"
            yield Remark("unanswered_issue", message, issue.step_id)


def _overridden(accepted: Sequence[RefinementAction], issues: Sequence[ValidationIssue]) -> Iterator[Remark]:
    """The validator's repairs that an applied change overrides: the planner's wins (FR-079)."""
    repairs = {issue.issue_id: issue.proposed_repair for issue in issues if issue.proposed_repair}
    for action in accepted:
        for issue_id in action.overrides_issues:
            if repair := repairs.get(issue_id):
                message = (
                    f"{action.action_type} {action.fragment} was applied instead of what validation proposed for"
                    f" {issue_id}: {repair.action} {repair.target}"
                )
                yield Remark("conflict", message, action.fragment)
