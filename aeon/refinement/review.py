"""The review of a refinement: what it is given beside the changes, and which actions its issues refuse. Pure."""

from __future__ import annotations

from collections.abc import Collection

from aeon.domain.graph import current_outputs, dependents
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefusedAction
from aeon.domain.report import SemanticValidationReport, Severity, reaches
from aeon.plan.deltas import DeltaResult


def outputs_around(plan: Plan, draft: DeltaResult) -> dict[str, str]:
    """The outputs that a draft's changes concern: of the changed steps, of what they depend on, and of what depends on
    them, as they were before."""
    changed = {change.step_id for change in draft.changes}
    versions = [version for change in draft.changes for version in (change.before, change.after) if version]
    around = {dependency for version in versions for dependency in version.dependencies}
    around |= _dependents(plan, changed)
    return {step_id: output for step_id, output in current_outputs(plan.steps).items() if step_id in changed | around}


def rejected_by(
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
