"""Plans as differences from earlier ones, so that a file with a plan per line grows only with the
changes; and `history.json`, which has a plan once and then its changes.

The step numbers (`step_index`, `total_steps`) follow from the order and are in no difference.
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
# A new step has only what differs from these; ids and descriptions always do.
_DEFAULTS = PlanStep(step_id="-", description="-").model_dump(mode="json") | {"description": None}
_HEADS = ("goal", "task", "questions", "subplans")


class OrderChange(Value):
    """A change of the steps' order: from position `start` (0-based), `inserted` replaces `removed`
    ids."""

    start: int = Field(ge=0)
    removed: int = Field(ge=0)
    inserted: tuple[str, ...]


class StepDifference(Value):
    """The changed fields of one step with their new values; for a new step, the fields that differ
    from their defaults."""

    step_id: str
    fields: JsonObject


class StepsDifference(Value):
    """A plan's steps as their difference from earlier ones; steps that are not named are
    unchanged."""

    kind: Literal["delta"] = "delta"
    order: OrderChange | None = None
    steps: tuple[StepDifference, ...] = ()


class PlanChange(StepsDifference):
    """A plan as its difference from an earlier one; fields that are null or not named are
    unchanged."""

    goal: str | None = None
    task: str | None = None
    questions: tuple[FollowUpQuestion, ...] | None = None
    subplans: tuple[SubplanOrigin, ...] | None = None


class PlanDifference(PlanChange):
    """A plan as its difference from the plan of an earlier line, whose `step_number` is `base`;
    fields that are null or not named are unchanged."""

    base: int


class PlanSnapshot(Value):
    """A complete plan."""

    kind: Literal["full"] = "full"
    plan: Plan


PlanState = PlanSnapshot | PlanDifference


def state_after(base: tuple[int, Plan] | None, plan: Plan) -> PlanState:
    """Return a plan as its changes from the plan `base`, given with its line's number; complete if
    there is no base."""
    if base is None:
        return PlanSnapshot(plan=plan)
    number, before = base
    if plan is before:  # as for all steps of a batch
        return PlanDifference(base=number)
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
    """Return the changes from `before` to `after`. Shared steps cost nothing."""
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
    """Return the changes from the steps `before` to the steps `after`. Shared steps cost
    nothing."""
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
    """Apply a difference to an earlier plan."""
    heads = {name: getattr(change, name) for name in _HEADS if getattr(change, name) is not None}
    return plan.model_copy(update={**heads, "steps": apply_steps(plan.steps, change)})


def apply_steps(steps: tuple[PlanStep, ...], change: StepsDifference) -> tuple[PlanStep, ...]:
    """Apply a difference to earlier steps; steps that it does not name are shared. Raises
    pydantic's ValidationError or LookupError for an invalid difference."""
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
    """Return the JSON object to write for a history. It grows with the changes of the plan."""
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
    """Return the fields of the `ExecutionHistory` that a document was written for, its plans and
    steps as values. Raises pydantic's ValidationError, LookupError or TypeError for a document that
    was not written for a history."""
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
