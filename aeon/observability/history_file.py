"""`history.json`: the history of a run, in which a plan is written once and then what changed of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.plan import Plan, renumbered
from aeon.observability.plan_delta import (
    PlanChange,
    StepsDifference,
    apply_change,
    apply_steps,
    plan_change,
    steps_difference,
)


def history_document(history: ExecutionHistory) -> dict[str, Any]:
    """The JSON object that is written for a history. It grows with the changes of the plan."""
    document = history.model_dump(mode="json", exclude={"passes": {"__all__": {"plan_state", "steps"}}})
    base: Plan | None = None
    passes = []
    for record, written in zip(history.passes, document["passes"], strict=True):
        plan, steps = record.plan_state, record.steps
        if plan is not None:
            change = plan_change(base, plan) if base else plan
            written["plan_state"] = change.model_dump(mode="json")
            base = plan
        if base is not None and steps and steps == renumbered(steps):
            written["steps"] = steps_difference(base.steps, steps).model_dump(mode="json")
            base = base.model_copy(update={"steps": steps})
        else:
            written["steps"] = [step.model_dump(mode="json") for step in steps]
        passes.append({name: written.get(name) for name in ExecutionPass.model_fields})
    return {**document, "passes": passes}


def restore_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the `ExecutionHistory` that a document was written for, its plans and steps as values.

    Raises pydantic's ValidationError, LookupError or TypeError for a document that no history was written to.
    """
    base: Plan | None = None
    passes = []
    for written in document["passes"]:
        plan, steps = written["plan_state"], written["steps"]
        if plan is not None:
            changed = "kind" in plan
            base = plan = apply_change(_there(base), PlanChange(**plan)) if changed else Plan.model_validate(plan)
        if isinstance(steps, Mapping):
            steps = apply_steps(_there(base).steps, StepsDifference.model_validate(steps))
            base = _there(base).model_copy(update={"steps": steps})
        passes.append({**written, "plan_state": plan, "steps": steps})
    return {**document, "passes": passes}


def _there(plan: Plan | None) -> Plan:
    if plan is None:
        raise LookupError("a plan or its steps are a difference, but no plan is written before it")
    return plan
