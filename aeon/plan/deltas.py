"""Applies refinement actions to a plan; an action that cannot be applied is refused, the others are applied.

Serves FR-009, FR-010, FR-015, FR-069, FR-070 and FR-083.

All ids are settled before any reference is looked at, so actions may refer to steps that later actions add. What an
action may do depends on its target's status alone:

    ADD                a new id
    MODIFY             pending or BLOCKED; keeps its id
    REMOVE             pending; dependents inherit its dependencies
    REPLACE            pending or BLOCKED, under its own id or a new one; complete, failed or invalid: a new id only
    SUBPLAN_CREATE     pending or BLOCKED
    STEP_MARK_INVALID  complete or failed

`inconsistency_detected` widens and narrows nothing here; the review of the changes is shown it. It says that a change
conflicts with executed steps; those are never changed whether it is set or not, and the two ways to resolve such a
conflict, STEP_MARK_INVALID and REPLACE under a new id, only retire them (FR-069).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from aeon.domain.errors import PlanError
from aeon.domain.graph import by_id, cycle_in, cycle_text, is_live, topological, unneeded
from aeon.domain.plan import EXECUTED, Plan, PlanStep, Subplan, SubplanOrigin, renumbered
from aeon.domain.refinement import ACTIONS, ActionType, RefinementAction, RefusedAction, StepChange
from aeon.domain.values import Value
from aeon.plan.draft import OWN, Draft
from aeon.plan.objections import kind_of, objection

_NO_SUBPLANS: Mapping[str, Subplan] = MappingProxyType({})


class DeltaResult(Value):
    """A plan after a refinement: which actions were applied, which refused and why, and what changed (FR-073).

    `changes` come in plan order, steps that are gone last; renumbering alone is no change.
    """

    plan: Plan
    accepted: tuple[RefinementAction, ...] = ()
    refused: tuple[RefusedAction, ...] = ()
    changes: tuple[StepChange, ...] = ()

    def changed_by(self, action: RefinementAction) -> frozenset[str]:
        """The ids of the steps that an action is about: its target, its new step, the steps of its subplan."""
        substeps = action.rule.decomposes
        return frozenset(
            {
                action.fragment,
                *((action.new_step.step_id,) if action.new_step else ()),
                *(s.step_id for s in self.plan.steps if substeps and s.parent_step_id == action.fragment),
            }
        )


def apply_actions(
    plan: Plan,
    actions: Sequence[RefinementAction],
    *,
    subplans: Mapping[str, Subplan] = _NO_SUBPLANS,
    max_steps: int = 100,
    max_nesting_depth: int = 5,
    one_final_step: bool = False,
) -> DeltaResult:
    """Apply the actions that can be applied together, refuse the others (FR-009, FR-010, FR-069, FR-070, FR-083).

    `subplans` holds the subplan of each SUBPLAN_CREATE's target. Actions that make the plan longer than `max_steps`, or
    empty, are refused, last first. With `one_final_step` so are those after which the plan would not end with exactly
    one live step that gives the whole answer. The new plan is in stable topological order and renumbered; unchanged
    steps are shared, and an unchanged plan is returned itself. Executed steps keep their output; only `status` and
    `replaced_by` of one change. Raises PlanError when the plan has a cycle that no action takes part in.
    """
    late: dict[int, str] = {}
    while True:
        draft, refused = _make_draft(plan, actions, late, subplans, max_nesting_depth)
        accepted = [number for number in range(len(actions)) if number not in refused]
        wrong = (
            _find_unknown_references(draft)
            or _find_closing_action(draft)
            or _find_emptying_removal(draft, actions, accepted)
            or _find_surplus_actions(draft, actions, accepted, subplans, max_steps)
            or (_find_lost_final_step(draft, accepted) if one_final_step else {})
        )
        if not wrong:
            break
        late |= wrong
    steps = draft.result()
    applied = [actions[number] for number in accepted]
    new_plan = _rebuilt(plan, steps, _subplans(plan, applied, subplans)) if accepted else plan
    return DeltaResult(
        plan=new_plan,
        accepted=tuple(applied),
        refused=tuple(RefusedAction(action=actions[number], reason=refused[number]) for number in sorted(refused)),
        changes=tuple(_changes(plan, steps, new_plan)),
    )


def _make_draft(
    plan: Plan,
    actions: Sequence[RefinementAction],
    late: Mapping[int, str],
    subplans: Mapping[str, Subplan],
    max_nesting_depth: int,
) -> tuple[Draft, dict[int, str]]:
    """The plan with every action worked in that was not refused and cannot be objected to; subplans last."""
    draft, refused = Draft.of(plan), dict(late)
    numbered = [(number, action) for number, action in enumerate(actions) if number not in late]
    for number, action in sorted(numbered, key=lambda each: each[1].rule.decomposes):
        reason = objection(action, draft, subplans, max_nesting_depth)
        if reason is not None:
            refused[number] = reason
        else:
            _apply_action(number, action, draft, subplans)
    draft.settle()
    return draft, refused


def _apply_action(number: int, action: RefinementAction, draft: Draft, subplans: Mapping[str, Subplan]) -> None:
    new = cast(PlanStep, action.new_step)  # there where the rule says so
    if not action.rule.needs_target:
        draft.add(number, new)
        return
    kind, target = kind_of(action), draft.steps[action.fragment]
    draft.kinds.setdefault(target.step_id, []).append(kind)
    _CHANGES[kind](draft, number, target, new, action.justification, subplans)


_CHANGES: Mapping[ActionType, Callable[[Draft, int, PlanStep, PlanStep, str, Mapping[str, Subplan]], None]] = {
    "MODIFY": lambda draft, number, target, new, _why, _subplans: draft.modify(number, target, new),
    "REPLACE": lambda draft, number, target, new, _why, _subplans: draft.replace(number, target, new),
    "REMOVE": lambda draft, number, target, _new, _why, _subplans: draft.remove(number, target),
    "STEP_MARK_INVALID": lambda draft, _number, target, _new, why, _subplans: draft.mark_invalid(target, why),
    "SUBPLAN_CREATE": lambda draft, number, target, _new, _why, made: draft.decompose(
        number, target, made[target.step_id]
    ),
}


def _find_unknown_references(draft: Draft) -> dict[int, str]:
    """The actions whose steps depend on something that neither the plan nor an accepted action has."""
    wrong: dict[int, str] = {}
    for number, step_id, dependency in draft.declared:
        if dependency not in draft.steps and dependency not in draft.heirs:
            reason = (
                f"step '{step_id}' depends on '{dependency}', which is not a step of the plan and is not added to it"
            )
            wrong.setdefault(number, reason)
    return wrong


def _find_closing_action(draft: Draft) -> dict[int, str]:
    """The action that closes a cycle: no earlier ones make one without it. Empty when there is no cycle."""
    if not _cycle_up_to(draft, max(draft.numbers)):
        return {}
    numbers = sorted(draft.numbers)
    closing = numbers[bisect_left(numbers, True, key=lambda number: bool(_cycle_up_to(draft, number)))]
    cycle = _cycle_up_to(draft, closing)
    if closing == OWN:
        raise PlanError(f"the plan has a cycle: {cycle_text(cycle)}", hint="Remove one of these dependencies.")
    return {closing: f"it would close a cycle: {cycle_text(cycle)}"}


def _cycle_up_to(draft: Draft, last: int) -> tuple[str, ...]:
    """A cycle among the edges that actions up to this one make."""
    return cycle_in({one: [other for other, made in draft.edges[one].items() if made <= last] for one in draft.steps})


def _find_emptying_removal(
    draft: Draft, actions: Sequence[RefinementAction], accepted: Sequence[int]
) -> dict[int, str]:
    """The last removal, when no step would be left."""
    removals = [number for number in accepted if actions[number].action_type == "REMOVE"]
    return {} if draft.steps or not removals else {removals[-1]: "no step would be left: a plan needs at least one"}


def _find_surplus_actions(
    draft: Draft,
    actions: Sequence[RefinementAction],
    accepted: Sequence[int],
    subplans: Mapping[str, Subplan],
    max_steps: int,
) -> dict[int, str]:
    """The last of the actions that make the plan longer, as many as have to go."""
    wrong: dict[int, str] = {}
    excess = len(draft.steps) - max_steps
    for number in reversed(accepted):
        growth = _growth(actions[number], draft, subplans)
        if excess > 0 and growth > 0:
            wrong[number] = "the plan would have more steps than execution.max_steps allows"
            excess -= growth
    return wrong


def _growth(action: RefinementAction, draft: Draft, subplans: Mapping[str, Subplan]) -> int:
    rule = ACTIONS[kind_of(action)]
    if rule.decomposes:
        return len(subplans[action.fragment].substeps)
    return int(rule.adds and (not rule.retires or action.fragment in draft.steps))


def _find_lost_final_step(draft: Draft, accepted: Sequence[int]) -> dict[int, str]:
    """The last action, while the plan does not end with exactly one step that gives, or gave, the whole answer."""
    final = unneeded(step for step in draft.result() if is_live(step))
    if not accepted or (len(final) == 1 and _is_the_answer(final[0], draft)):
        return {}
    if len(final) == 1:
        step_id = final[0].step_id
        reason = f"the plan would end with '{step_id}', which was carried out as a part of the answer, not as the whole"
        return {accepted[-1]: reason}
    named = ", ".join(step.step_id for step in final) or "none"
    return {
        accepted[-1]: f"the plan must end with exactly one step, with this change it would have {len(final)}: {named}"
    }


def _is_the_answer(final: PlanStep, draft: Draft) -> bool:
    """Whether a final step is still to be carried out, or was final already when it was."""
    before = unneeded(step for step in draft.original.values() if is_live(step))
    return final.status not in EXECUTED or final.step_id in {step.step_id for step in before}


def _subplans(
    plan: Plan, actions: Sequence[RefinementAction], made: Mapping[str, Subplan]
) -> tuple[SubplanOrigin, ...]:
    """What the plan's subplans are after the actions; a step that replaces a parent takes its subplan over."""
    known = {each.parent_step_id: each for each in plan.subplans}
    for action in actions:
        step_id, new = action.fragment, action.new_step
        if action.rule.decomposes:
            known[step_id] = made[step_id].origin
        elif action.action_type == "REPLACE" and new is not None and step_id in known:
            known[new.step_id] = known[step_id].model_copy(update={"parent_step_id": new.step_id})
    return tuple(known.values())


def _rebuilt(plan: Plan, steps: Sequence[PlanStep], subplans: tuple[SubplanOrigin, ...]) -> Plan:
    new = renumbered(topological(steps))
    same = len(new) == len(plan.steps) and all(one is other for one, other in zip(new, plan.steps, strict=True))
    return plan if same else plan.model_copy(update={"steps": new, "subplans": subplans})


def _changes(plan: Plan, steps: Sequence[PlanStep], new_plan: Plan) -> Iterator[StepChange]:
    before, drafted = by_id(plan.steps), by_id(steps)
    for step in new_plan.steps:
        if drafted[step.step_id] is not before.get(step.step_id):
            yield StepChange(step_id=step.step_id, before=before.get(step.step_id), after=step)
    for step_id, step in before.items():
        if step_id not in drafted:
            yield StepChange(step_id=step_id, before=step, after=None)
