"""Applies the valid refinement actions and refuses the others (FR-009, FR-010, FR-069, FR-070,
FR-083). Actions may refer to steps that later ones add; `ACTIONS` says what each may do."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from aeon.domain.errors import PlanError
from aeon.domain.graph import (
    by_id,
    cycle_text,
    find_cycle,
    find_unneeded,
    is_live,
    sort_by_dependencies,
)
from aeon.domain.plan import EXECUTED, Plan, PlanStep, Subplan, SubplanOrigin, renumber_steps
from aeon.domain.refinement import ACTIONS, RefinementAction, RefusedAction, StepChange
from aeon.domain.values import Value
from aeon.plan.draft import Draft, kind_of, leave_with_person

_NO_SUBPLANS: Mapping[str, Subplan] = MappingProxyType({})


class DeltaResult(Value):
    """A plan after a refinement, and its changes in plan order, removed steps last (FR-073)."""

    plan: Plan
    accepted: tuple[RefinementAction, ...] = ()
    refused: tuple[RefusedAction, ...] = ()
    changes: tuple[StepChange, ...] = ()

    def find_changed_steps(self, action: RefinementAction) -> frozenset[str]:
        """Return the ids of the steps that an action concerns: its target, its new step, the steps
        of its subplan."""
        about = {action.fragment, *(step.step_id for step in action.new_steps)}
        if action.rule.decomposes:
            about |= {
                step.step_id for step in self.plan.steps if step.parent_step_id == action.fragment
            }
        return frozenset(about)


def apply_actions(
    plan: Plan,
    actions: Sequence[RefinementAction],
    *,
    subplans: Mapping[str, Subplan] = _NO_SUBPLANS,
    max_steps: int = 100,
    max_nesting_depth: int = 5,
    one_final_step: bool = False,
) -> DeltaResult:
    """Apply the actions that can be applied together and refuse the others (FR-009, FR-010, FR-069,
    FR-070, FR-083).

    Actions that would empty the plan, make it too long or, with `one_final_step`, take that step
    away are refused, the last ones first. `subplans` are by target. An unchanged plan is returned
    itself. Raises PlanError if the plan has a cycle.
    """

    def make_draft(chosen: Mapping[int, RefinementAction]) -> Draft:
        return Draft(plan, chosen, subplans, max_nesting_depth)

    actions = leave_with_person(plan, actions)
    # Every refusal may make others wrong, so the draft is made anew until none is.
    left = dict(enumerate(actions))
    late: dict[int, str] = {}
    while True:
        draft = make_draft(left)
        accepted = {
            number: action for number, action in left.items() if number not in draft.refused
        }
        wrong = _find_unknown_references(draft)
        if not wrong and find_cycle(draft.result()):
            wrong = _find_closing_action(accepted, make_draft)
        wrong = wrong or _find_last_too_many(plan, draft, accepted, max_steps, one_final_step)
        if not wrong:
            break
        late |= wrong
        for number in wrong:
            del left[number]
    new_plan = _rebuild_plan(plan, draft, list(accepted.values()), subplans)
    return DeltaResult(
        plan=new_plan,
        accepted=tuple(accepted.values()),
        refused=tuple(
            RefusedAction(action=actions[number], reason=reason)
            for number, reason in sorted((draft.refused | late).items())
        ),
        changes=tuple(_changes(plan, new_plan, draft)),
    )


def _find_unknown_references(draft: Draft) -> dict[int, str]:
    return {
        number: f"step '{step_id}' depends on '{dependency}', which is not a step of the "
        "plan and is not added to it"
        for number, step_id, dependency in reversed(draft.declared)
        if dependency not in draft.steps and dependency not in draft.heirs
    }


def _find_closing_action(
    accepted: Mapping[int, RefinementAction],
    make_draft: Callable[[Mapping[int, RefinementAction]], Draft],
) -> dict[int, str]:
    """Return the first action that closes a cycle when applied after the actions before it."""
    numbered = list(accepted.items())

    def cycle_after(count: int) -> tuple[str, ...]:
        return find_cycle(make_draft(dict(numbered[:count])).result())

    count = bisect_left(range(len(numbered)), True, key=lambda count: bool(cycle_after(count)))
    found = cycle_text(cycle_after(count))
    if count == 0:
        raise PlanError(f"the plan has a loop: {found}", hint="Remove one of these dependencies.")
    return {numbered[count - 1][0]: f"it would close a loop: {found}"}


def _find_last_too_many(
    plan: Plan,
    draft: Draft,
    accepted: Mapping[int, RefinementAction],
    max_steps: int,
    one_final_step: bool,
) -> dict[int, str]:
    """Return the last action of those that empty the plan, make it too long, or take away its only
    final step."""
    last_first = list(accepted)[::-1]
    if not draft.steps:
        emptying = next(number for number in last_first if accepted[number].rule.retires)
        return {emptying: "no step would be left: a plan needs at least one"}
    surplus = _find_surplus(draft, accepted, len(draft.steps) - max_steps)
    if surplus:
        reason = "the plan would have more steps than execution.max_steps allows"
        return dict.fromkeys(surplus, reason)
    objection = _object_to_final_step(plan, draft) if one_final_step and accepted else None
    return {last_first[0]: objection} if objection else {}


def _find_surplus(draft: Draft, accepted: Mapping[int, RefinementAction], excess: int) -> list[int]:
    """Return the last `excess` actions that add a step, or else the last one that decomposes a
    step."""
    if excess <= 0:
        return []
    growing = [number for number in accepted if _is_growing(accepted[number], draft)][::-1]
    adding = [number for number in growing if not accepted[number].rule.decomposes]
    return adding[:excess] or growing[:1]


def _object_to_final_step(plan: Plan, draft: Draft) -> str | None:
    final = _find_final_steps(draft.result())
    if len(final) != 1:
        named = ", ".join(final) or "none"
        return (
            "the plan must end with exactly one step, with this change it would have "
            f"{len(final)}: {named}"
        )
    [step_id] = final
    if draft.steps[step_id].status in EXECUTED and step_id not in _find_final_steps(plan.steps):
        return (
            f"the plan would end with '{step_id}', which was carried out as a part of "
            "the answer, not as the whole"
        )
    return None


def _find_final_steps(steps: Iterable[PlanStep]) -> list[str]:
    return [step.step_id for step in find_unneeded(steps, is_live)]


def _is_growing(action: RefinementAction, draft: Draft) -> bool:
    rule = ACTIONS[kind_of(action)]
    return rule.decomposes or (rule.adds and (not rule.retires or action.fragment in draft.steps))


def _rebuild_plan(
    plan: Plan, draft: Draft, actions: Sequence[RefinementAction], made: Mapping[str, Subplan]
) -> Plan:
    """Build the plan of a draft. If a step with a subplan is gone, the subplan passes to the step
    that took over its substeps."""
    if not actions:
        return plan
    steps = renumber_steps(sort_by_dependencies(draft.result()))
    if [id(step) for step in steps] == [id(step) for step in plan.steps]:
        return plan
    subplans = _collect_subplans(plan, draft, actions, made)
    # An executed substep keeps the subplan it was made for, even when the parent step is gone.
    parents = {step.step_id for step in steps} | {step.parent_step_id for step in steps}
    needed = tuple(each for parent, each in subplans.items() if parent in parents)
    return plan.model_copy(update={"steps": steps, "subplans": needed})


def _collect_subplans(
    plan: Plan, draft: Draft, actions: Sequence[RefinementAction], made: Mapping[str, Subplan]
) -> dict[str, SubplanOrigin]:
    subplans = {each.parent_step_id: each for each in plan.subplans}
    for action in actions:
        if action.rule.decomposes:
            subplans[action.fragment] = made[action.fragment].origin
    for step_id, heir in draft.handed_over.items():
        if heir is not None and heir not in subplans and step_id in subplans:
            subplans[heir] = subplans[step_id].model_copy(update={"parent_step_id": heir})
    return subplans


def _changes(plan: Plan, new_plan: Plan, draft: Draft) -> Iterator[StepChange]:
    """Yield the changes; a new number alone is no change."""
    drafted = by_id(draft.result())
    for step in new_plan.steps:
        before = draft.original.get(step.step_id)
        if drafted[step.step_id] is not before:
            yield StepChange(step_id=step.step_id, before=before, after=step)
    for step in plan.steps:
        if step.step_id not in drafted:
            yield StepChange(step_id=step.step_id, before=step, after=None)
