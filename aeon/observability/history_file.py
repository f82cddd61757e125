"""`history.json`: the history of a run, in which a plan is written once and then what changed of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import create_model

from aeon.domain.history import ExecutionHistory, ExecutionPass
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.values import Value
from aeon.observability.plan_delta import (
    PlanChange,
    StepsDifference,
    apply_change,
    apply_steps,
    plan_change,
    steps_difference,
)


def derived_model(model: type[Value], description: str, *, leave_out: Collection[str] = (), **fields: Any) -> Any:
    """A model with the fields of another, without some of them, and with some of another type."""
    types = {name: (field.annotation, field) for name, field in model.model_fields.items() if name not in leave_out}
    return create_model(model.__name__, __base__=Value, __doc__=description, **{**types, **fields})


WrittenPass = derived_model(
    ExecutionPass,
    f"""{ExecutionPass.__doc__}

    A `plan_state` or `steps` with `kind` "delta" is written as its difference from the plan written last before it:
    the latest `plan_state`, with the steps of the latest `steps` of that kind after it.
    """,
    plan_state=(Plan | PlanChange | None, ...),
    steps=(tuple[PlanStep, ...] | StepsDifference, ...),
)
HistoryFile: type[Value] = derived_model(
    ExecutionHistory,
    ExecutionHistory.__doc__ or "",
    passes=(tuple[WrittenPass, ...], ...),  # type: ignore[valid-type]
)
"""What is written for an `ExecutionHistory`."""


def history_document(history: ExecutionHistory) -> dict[str, Any]:
    """The JSON object that is written for a history. It grows with the changes of the plan."""
    document = history.model_dump(mode="json", exclude={"passes": {"__all__": {"plan_state", "steps"}}})
    base: Plan | None = None
    for record, written in zip(history.passes, document["passes"], strict=True):
        plan: Plan | PlanChange | None = record.plan_state
        if record.plan_state is not None:
            plan, base = plan_change(base, record.plan_state) if base else plan, record.plan_state
        steps: list[PlanStep] | StepsDifference = list(record.steps)
        if base is not None and _is_numbered(record.steps):
            steps, base = steps_difference(base.steps, record.steps), _with_steps(base, record.steps)
        written["plan_state"] = plan.model_dump(mode="json") if plan else None
        written["steps"] = (
            steps.model_dump(mode="json")
            if isinstance(steps, StepsDifference)
            else [step.model_dump(mode="json") for step in steps]
        )
    in_order = [{name: written[name] for name in ExecutionPass.model_fields} for written in document["passes"]]
    return {**document, "passes": in_order}


def restore_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the `ExecutionHistory` that a document was written for, its plans and steps as values.

    Raises pydantic's ValidationError, LookupError or TypeError for a document that no history was written to.
    """
    base: Plan | None = None
    passes = []
    for written in document["passes"]:
        plan, steps = written["plan_state"], written["steps"]
        if plan is not None:
            base = plan = _plan_after(base, plan)
        if isinstance(steps, Mapping):
            if base is None:
                raise LookupError("the steps of a pass are a difference, but no plan is written before them")
            steps = apply_steps(base.steps, StepsDifference.model_validate(steps))
            base = _with_steps(base, steps)
        passes.append({**written, "plan_state": plan, "steps": steps})
    return {**document, "passes": passes}


def _plan_after(base: Plan | None, written: Mapping[str, Any]) -> Plan:
    if "kind" not in written:
        return Plan.model_validate(written)
    if base is None:
        raise LookupError("a plan is a difference, but none is written before it")
    return apply_change(base, PlanChange.model_validate(written))


def _is_numbered(steps: tuple[PlanStep, ...]) -> bool:
    """Whether steps are those of a whole plan: their numbers follow from their order."""
    total = len(steps)
    return total > 0 and all(
        (step.step_index, step.total_steps) == (index, total) for index, step in enumerate(steps, start=1)
    )


def _with_steps(plan: Plan, steps: tuple[PlanStep, ...]) -> Plan:
    return plan.model_copy(update={"steps": steps})
