"""Reasons to refuse one action, by ids and status alone. Private to `aeon.plan.deltas`.

A reason is a sentence that a person, or a planner asked again, can act on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from aeon.domain.graph import level_among
from aeon.domain.plan import PlanStep, Subplan
from aeon.domain.refinement import ACTIONS, ActionType, RefinementAction
from aeon.plan.draft import Draft, substep_id

_TOGETHER = ({"ADD", "SUBPLAN_CREATE"}, {"MODIFY", "SUBPLAN_CREATE"}, {"STEP_MARK_INVALID", "REPLACE"})
"""The pairs of actions that one refinement may apply to the same step."""


def kind_of(action: RefinementAction) -> ActionType:
    """The effective type of an action: a REPLACE under the same id is a MODIFY."""
    new = action.new_step
    same_id = action.action_type == "REPLACE" and new is not None and new.step_id == action.target_step_id
    return "MODIFY" if same_id else action.action_type


def objection(
    action: RefinementAction, draft: Draft, subplans: Mapping[str, Subplan], max_nesting_depth: int
) -> str | None:
    """The reason to refuse the action, None if there is none. References to other steps are not checked."""
    if not action.rule.needs_target:
        return _check_new_step(action.new_step, draft) if action.new_step else "it has no new_step"
    target = draft.original.get(action.fragment) or draft.steps.get(action.fragment)
    if target is None:
        return f"there is no step '{action.fragment}' in the plan"
    return (
        _check_earlier_actions(action, draft)
        or _check_status(action, target, draft)
        or _check_content(action, target, draft)
        or (_check_subplan(target, draft, subplans, max_nesting_depth) if action.rule.decomposes else None)
    )


def _check_earlier_actions(action: RefinementAction, draft: Draft) -> str | None:
    kind = kind_of(action)
    for earlier in draft.kinds.get(action.fragment, ()):
        if {kind, earlier} not in _TOGETHER:
            return (
                f"step '{action.fragment}' has already been given to {earlier} in this refinement: one change is enough"
            )
    return None


def _check_status(action: RefinementAction, target: PlanStep, draft: Draft) -> str | None:
    rule, standing = ACTIONS[kind_of(action)], target.standing
    named = f"step '{target.step_id}' is " + (f"replaced by '{target.replaced_by}'" if target.replaced_by else standing)
    if target.replaced_by is not None:
        return f"{named}: change '{draft.current(target.step_id)}' instead"
    if target.status == "running":
        return f"{named}: a running step cannot be changed"
    if standing not in rule.targets:
        return f"{named}: {rule.refusal}"
    if rule.retires and standing == "pending" and target.step_id in draft.held:
        return f"{named}, and a step already executed depends on it: it has to stay"
    return None


def _check_content(action: RefinementAction, target: PlanStep, draft: Draft) -> str | None:
    new, rule = action.new_step, ACTIONS[kind_of(action)]
    if new is None or not rule.needs_new_step:
        return None
    if target.step_id in {draft.current(dependency) for dependency in new.dependencies}:
        if rule.adds:
            return f"step '{new.step_id}' depends on '{target.step_id}', the step that it is to change"
        return f"step '{target.step_id}' depends on itself"
    if rule.adds:
        return _check_new_step(new, draft)
    return None if new.description.strip() else f"step '{target.step_id}' has no description"


def _check_new_step(new: PlanStep, draft: Draft) -> str | None:
    if not new.step_id.strip():
        return "the new step has no step_id"
    if draft.knows(new.step_id):
        return f"the id '{new.step_id}' is taken: a new step needs a new id"
    if new.step_id in new.dependencies:
        return f"step '{new.step_id}' depends on itself"
    return None if new.description.strip() else f"step '{new.step_id}' has no description"


def _check_subplan(
    target: PlanStep, draft: Draft, subplans: Mapping[str, Subplan], max_nesting_depth: int
) -> str | None:
    level = level_among(draft.steps, target.step_id) + 1
    if level > max_nesting_depth:
        return (
            f"step '{target.step_id}' cannot be decomposed: its subplan would be level {level}, deeper than "
            "refinement.max_nesting_depth allows; it needs manual intervention"
        )
    subplan = subplans.get(target.step_id)
    if subplan is None:
        return f"there is no subplan for step '{target.step_id}'"
    if subplan.parent_step_id != target.step_id:
        return f"the subplan for step '{target.step_id}' belongs to step '{subplan.parent_step_id}'"
    return _check_substeps(target.step_id, subplan.substeps, draft)


def _check_substeps(parent_id: str, substeps: Sequence[PlanStep], draft: Draft) -> str | None:
    counts = Counter(substep_id(parent_id, step.step_id) for step in substeps)
    for substep in substeps:
        step_id = substep_id(parent_id, substep.step_id)
        if counts[step_id] > 1:
            return f"the subplan names '{step_id}' {counts[step_id]} times"
        if draft.knows(step_id):
            return f"the subplan's id '{step_id}' is taken: it needs new ids"
        if step_id in {substep_id(parent_id, dependency) for dependency in substep.dependencies}:
            return f"the subplan's step '{step_id}' depends on itself"
        if parent_id in substep.dependencies and substep_id(parent_id, parent_id) not in counts:
            return f"the subplan's step '{step_id}' depends on '{parent_id}', the step it is a part of"
        if not substep.step_id.strip() or not substep.description.strip():
            return f"the subplan's step '{step_id}' lacks an id or a description"
    return None
