"""A plan as its difference from an earlier one, so that a file with a plan a line grows with the
changes alone; and `history.json`, in which a plan is written once and then what changed of it.

The step numbers (`step_index`, `total_steps`) follow from the order and stand in no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Literal

from pydantic import Field

from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, SubplanOrigin, renumber_steps
from aeon.domain.values import JsonMapping, JsonObject, Value

_NUMBERS = {"step_index", "total_steps"}
_DEFAULTS = PlanStep(step_id="-", description="-").model_dump(mode="json") | {"description": None}
_HEADS = ("goal", "task", "questions", "subplans")


class OrderChange(Value):
    """A change of the steps' order: from position `start` (0-based) `removed` ids give way to
    `inserted`."""

    start: int = Field(ge=0)
    removed: int = Field(ge=0)
    inserted: tuple[str, ...]


class StepDifference(Value):
    """The fields of one step that changed, with their new values; of a new step, those that are not
    their defaults."""

    step_id: str
    fields: JsonObject


class StepsDifference(Value):
    """The steps of a plan as their difference from earlier ones; a step that is not named is as it
    was there."""

    kind: Literal["delta"] = "delta"
    order: OrderChange | None = None
    steps: tuple[StepDifference, ...] = ()


class PlanChange(StepsDifference):
    """A plan as its difference from an earlier one; what is null or not named is as it was
    there."""

    goal: str | None = None
    task: str | None = None
    questions: tuple[FollowUpQuestion, ...] | None = None
    subplans: tuple[SubplanOrigin, ...] | None = None


class PlanDifference(PlanChange):
    """A plan as its difference from the one of the line whose `step_number` is `base`, which stands
    above it in the file; what is null or not named is as it was there."""

    base: int


class PlanSnapshot(Value):
    """A whole plan."""

    kind: Literal["full"] = "full"
    plan: Plan


PlanState = PlanSnapshot | PlanDifference


def state_after(base: tuple[int, Plan] | None, plan: Plan) -> PlanState:
    """A plan as what it changes of the one of line `base`, by its number; whole when there is none
    to build on."""
    if base is None:
        return PlanSnapshot(plan=plan)
    number, before = base
    change = plan_change(before, plan)
    return PlanDifference(
        base=number,
        order=change.order,
        steps=change.steps,
        goal=change.goal,
        task=change.task,
        questions=change.questions,
        subplans=change.subplans,
    )


def plan_change(before: Plan, after: Plan) -> PlanChange:
    """What turns `before` into `after`. Shared steps cost nothing."""
    change = steps_difference(before.steps, after.steps)
    return PlanChange(
        order=change.order,
        steps=change.steps,
        goal=after.goal if after.goal != before.goal else None,
        task=after.task if after.task != before.task else None,
        questions=after.questions if after.questions != before.questions else None,
        subplans=after.subplans if after.subplans != before.subplans else None,
    )


def _find_changed_fields(old: PlanStep | None, step: PlanStep) -> JsonObject:
    now = step.model_dump(mode="json")
    then = old.model_dump(mode="json") if old else {**_DEFAULTS, "step_id": step.step_id}
    return {
        name: value for name, value in now.items() if name not in _NUMBERS and value != then[name]
    }


def steps_difference(before: Sequence[PlanStep], after: Sequence[PlanStep]) -> StepsDifference:
    """What turns the steps `before` into those `after`. Shared steps cost nothing."""
    if before is after:
        return StepsDifference()
    known = {step.step_id: step for step in before}
    changed = []
    for step in after:
        old = known.get(step.step_id)
        if step is old:
            continue
        fields = _find_changed_fields(old, step)
        if fields:
            changed.append(StepDifference(step_id=step.step_id, fields=fields))
    order = _order_change([step.step_id for step in before], [step.step_id for step in after])
    return StepsDifference(order=order, steps=tuple(changed))


def apply_change(plan: Plan, change: PlanChange) -> Plan:
    """The plan that a difference makes of an earlier one."""
    heads = {name: getattr(change, name) for name in _HEADS if getattr(change, name) is not None}
    return plan.model_copy(update={**heads, "steps": apply_steps(plan.steps, change)})


def apply_steps(steps: tuple[PlanStep, ...], change: StepsDifference) -> tuple[PlanStep, ...]:
    """The steps that a difference makes of earlier ones; those that it does not name are shared.
    Raises pydantic's ValidationError or LookupError for a difference that is none."""
    known = {step.step_id: step for step in steps}
    for each in change.steps:
        old = known.get(each.step_id)
        fields = old.model_dump() if old else {"step_id": each.step_id}
        known[each.step_id] = PlanStep.model_validate({**fields, **each.fields})
    ids = [step.step_id for step in steps]
    if change.order is not None:
        ids[change.order.start : change.order.start + change.order.removed] = change.order.inserted
    return renumber_steps(tuple(known[step_id] for step_id in ids))


def _order_change(before: list[str], after: list[str]) -> OrderChange | None:
    if before == after:
        return None
    start = _count_equal(before, after)
    same = _count_equal(before[start:][::-1], after[start:][::-1])
    return OrderChange(
        start=start,
        removed=len(before) - start - same,
        inserted=tuple(after[start : len(after) - same]),
    )


def _count_equal(one: list[str], other: list[str]) -> int:
    return len(list(takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


def history_document(history: ExecutionHistory) -> JsonObject:
    """The JSON object that is written for a history. It grows with the changes of the plan."""
    document = history.model_dump(
        mode="json", exclude={"passes": {"__all__": {"plan_state", "steps"}}}
    )
    base: Plan | None = None
    passes = []
    for record, written in zip(history.passes, document["passes"], strict=True):
        plan = record.plan_state
        steps = record.steps
        if plan is not None:
            change = plan_change(base, plan) if base else plan
            written["plan_state"] = change.model_dump(mode="json")
            base = plan
        if base is not None and steps and steps == renumber_steps(steps):
            written["steps"] = steps_difference(base.steps, steps).model_dump(mode="json")
            base = base.model_copy(update={"steps": steps})
        else:
            written["steps"] = [step.model_dump(mode="json") for step in steps]
        passes.append({name: written.get(name) for name in ExecutionPass.model_fields})
    return {**document, "passes": passes}


def restore_document(document: JsonMapping) -> JsonObject:
    """The fields of the `ExecutionHistory` that a document was written for, its plans and steps as
    values. Raises pydantic's ValidationError, LookupError or TypeError for a document that no
    history was written to."""
    base: Plan | None = None
    passes = []
    for written in document["passes"]:
        plan = written["plan_state"]
        steps = written["steps"]
        if plan is not None:
            if "kind" in plan:
                plan = apply_change(_there(base), PlanChange.model_validate(plan))
            else:
                plan = Plan.model_validate(plan)
            base = plan
        if isinstance(steps, Mapping):
            steps = apply_steps(_there(base).steps, StepsDifference.model_validate(steps))
            base = _there(base).model_copy(update={"steps": steps})
        passes.append({**written, "plan_state": plan, "steps": steps})
    return {**document, "passes": passes}


def _there(plan: Plan | None) -> Plan:
    if plan is None:
        raise LookupError("a plan or its steps are a difference, but no plan is written before it")
    return plan
