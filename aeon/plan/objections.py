"""Reasons to refuse one action, by ids and status alone. Private to `aeon.plan.deltas`.

A reason is a sentence that a person, or a planner asked again, can act on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from aeon.domain.graph import nesting_level
from aeon.domain.plan import PlanStep, Subplan
from aeon.domain.refinement import ACTIONS, RefinementAction
from aeon.plan.draft import Draft, kind_of, substep_id

_TOGETHER = ({"ADD", "SUBPLAN_CREATE"}, {"MODIFY", "SUBPLAN_CREATE"}, {"STEP_MARK_INVALID", "REPLACE"})
"""The pairs of actions that one refinement may apply to the same step."""


def objection(
    action: RefinementAction, draft: Draft, subplans: Mapping[str, Subplan], max_nesting_depth: int
) -> str | None:
    """The reason to refuse the action, None if there is none. References to other steps are not checked."""
    rule, target = ACTIONS[kind_of(action)], None
    if rule.needs_target:
        target = draft.original.get(action.fragment) or draft.steps.get(action.fragment)
        if target is None:
            return f"there is no step '{action.fragment}' in the plan"
        if reason := _check_target(action, target, draft):
            return reason
    if rule.needs_new_step and action.new_step is not None:
        return _check_new_step(action.new_step, target, draft, is_added=rule.adds)
    if rule.decomposes and target is not None:
        return _check_subplan(target, draft, subplans.get(target.step_id), max_nesting_depth)
    return None


def _check_target(action: RefinementAction, target: PlanStep, draft: Draft) -> str | None:
    kind, standing = kind_of(action), target.standing
    rule = ACTIONS[kind]
    for earlier in draft.kinds.get(target.step_id, ()):
        if {kind, earlier} not in _TOGETHER:
            return (
                f"step '{target.step_id}' has already been given to {earlier} in this refinement: one change is enough"
            )
    if target.replaced_by is not None:
        instead = draft.current(target.step_id)
        return f"step '{target.step_id}' is replaced by '{target.replaced_by}': change '{instead}' instead"
    named = f"step '{target.step_id}' is {standing}"
    if target.status == "running":
        return f"{named}: a running step cannot be changed"
    if standing not in rule.targets:
        return f"{named}: {rule.refusal}"
    if rule.retires and standing == "pending" and target.step_id in draft.held:
        return f"{named}, and a step already executed depends on it: it has to stay"
    return None


def _check_new_step(new: PlanStep, target: PlanStep | None, draft: Draft, *, is_added: bool) -> str | None:
    step_id = new.step_id if is_added or target is None else target.step_id
    wanted = {draft.current(dependency) for dependency in new.dependencies}
    if is_added and target is not None and target.step_id in wanted:
        return f"step '{step_id}' depends on '{target.step_id}', the step that it is to change"
    if not step_id.strip():
        return "the new step has no step_id"
    if is_added and draft.knows(step_id):
        return f"the id '{step_id}' is taken: a new step needs a new id"
    if step_id in wanted:
        return f"step '{step_id}' depends on itself"
    return None if new.description.strip() else f"step '{step_id}' has no description"


def _check_subplan(target: PlanStep, draft: Draft, subplan: Subplan | None, max_nesting_depth: int) -> str | None:
    parent_id, level = target.step_id, nesting_level(draft.steps, target.step_id) + 1
    if level > max_nesting_depth:
        return (
            f"step '{parent_id}' cannot be decomposed: its subplan would be level {level}, deeper than "
            "refinement.max_nesting_depth allows; it needs manual intervention"
        )
    if subplan is None:
        return f"there is no subplan for step '{parent_id}'"
    if subplan.parent_step_id != parent_id:
        return f"the subplan for step '{parent_id}' belongs to step '{subplan.parent_step_id}'"
    counts = Counter(substep_id(parent_id, step.step_id) for step in subplan.substeps)
    for step in subplan.substeps:
        step_id = substep_id(parent_id, step.step_id)
        if counts[step_id] > 1:
            return f"the subplan names '{step_id}' {counts[step_id]} times"
        if draft.knows(step_id):
            return f"the subplan's id '{step_id}' is taken: it needs new ids"
        if step_id in {substep_id(parent_id, dependency) for dependency in step.dependencies}:
            return f"the subplan's step '{step_id}' depends on itself"
        if parent_id in step.dependencies and substep_id(parent_id, parent_id) not in counts:
            return f"the subplan's step '{step_id}' depends on '{parent_id}', the step it is a part of"
        if not step.step_id.strip() or not step.description.strip():
            return f"the subplan's step '{step_id}' lacks an id or a description"
    return None
