"""A plan as its difference from an earlier one, so that a journal with a plan a line grows with the changes alone.

Plans are compared and rebuilt as JSON values; the step numbers (`step_index`, `total_steps`) follow from the order and
stand in no difference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep
from aeon.domain.values import Value

_NUMBERS = {"step_index", "total_steps"}


class OrderChange(Value):
    """A change of the steps' order: from position `start` (0-based) `removed` ids give way to `inserted`."""

    start: int = Field(ge=0)
    removed: int = Field(ge=0)
    inserted: tuple[str, ...]


class StepDifference(Value):
    """The fields of one step that changed, with their new values; of a new step, those that are not their defaults."""

    step_id: str
    fields: dict[str, Any]


class PlanSnapshot(Value):
    """A whole plan."""

    kind: Literal["full"] = "full"
    plan: Plan


class PlanDifference(Value):
    """A plan as its difference from the one of the line whose `step_number` is `base`, which stands above it in the
    file; what is null or not named is as it was there."""

    kind: Literal["delta"] = "delta"
    base: int
    goal: str | None = None
    task: str | None = None
    questions: tuple[FollowUpQuestion, ...] | None = None
    order: OrderChange | None = None
    steps: tuple[StepDifference, ...] = ()


PlanState = PlanSnapshot | PlanDifference


def state_after(base: tuple[int, Plan] | None, plan: Plan) -> PlanState:
    """A plan as what it changes of the one of line `base`, by its number; whole when there is none to build on."""
    return PlanSnapshot(plan=plan) if base is None else difference(base[1], plan, base[0])


def difference(before: Plan, after: Plan, base: int) -> PlanDifference:
    """What turns `before`, the plan of line `base`, into `after`. Shared steps cost nothing."""
    if before is after:
        return PlanDifference(base=base)
    known = {step.step_id: step for step in before.steps}
    changed = [(step, known.get(step.step_id)) for step in after.steps if step is not known.get(step.step_id)]
    steps = [StepDifference(step_id=step.step_id, fields=_changed_fields(old, step)) for step, old in changed]
    return PlanDifference(
        base=base,
        goal=after.goal if after.goal != before.goal else None,
        task=after.task if after.task != before.task else None,
        questions=after.questions if after.questions != before.questions else None,
        order=_order_change([step.step_id for step in before.steps], [step.step_id for step in after.steps]),
        steps=tuple(step for step in steps if step.fields),
    )


def applied(plan: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The plan that a difference makes of an earlier one, both as JSON objects."""
    order = _reordered([step["step_id"] for step in plan["steps"]], change["order"])
    steps = {step["step_id"]: step for step in plan["steps"]}
    for step in change["steps"]:
        step_id = step["step_id"]
        steps[step_id] = {**steps.get(step_id, {"step_id": step_id}), **step["fields"]}
    heads = {name: plan[name] if change[name] is None else change[name] for name in ("goal", "task", "questions")}
    numbered = [
        {**steps[step_id], "step_index": index, "total_steps": len(order)} for index, step_id in enumerate(order, 1)
    ]
    return {**heads, "steps": numbered}


def _changed_fields(before: PlanStep | None, after: PlanStep) -> dict[str, Any]:
    now = after.model_dump(mode="json")
    if before is None:
        defaults = PlanStep(step_id=after.step_id, description="-").model_dump(mode="json") | {"description": None}
        then = defaults
    else:
        then = before.model_dump(mode="json")
    return {name: value for name, value in now.items() if name not in _NUMBERS and value != then[name]}


def _order_change(before: Sequence[str], after: Sequence[str]) -> OrderChange | None:
    """The one stretch in which two orders differ; None when they are the same."""
    if before == after:
        return None
    shortest = min(len(before), len(after))
    start = next((i for i in range(shortest) if before[i] != after[i]), shortest)
    same = next((i for i in range(shortest - start) if before[-1 - i] != after[-1 - i]), shortest - start)
    return OrderChange(
        start=start, removed=len(before) - start - same, inserted=tuple(after[start : len(after) - same])
    )


def _reordered(before: list[str], change: Mapping[str, Any] | None) -> list[str]:
    if change is None:
        return before
    start, end = change["start"], change["start"] + change["removed"]
    return [*before[:start], *change["inserted"], *before[end:]]
