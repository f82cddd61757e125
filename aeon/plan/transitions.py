"""How the state of a step changes when the step is executed. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from aeon.domain.graph import is_only_final, ready_steps
from aeon.domain.history import StepResult
from aeon.domain.plan import Plan, PlanStep


def start_step(step: PlanStep, context: str) -> PlanStep:
    """Return the step as running, with the context from its dependencies."""
    return step.model_copy(
        update={
            "status": "running",
            "incoming_context": context,
            "incomplete": False,
            "tool_calls": (),
        }
    )


def finish_step(step: PlanStep, result: StepResult) -> PlanStep:
    """Return the step as complete, or as invalid with its output if the worker was BLOCKED
    (FR-093)."""
    status = "invalid" if result.clarity_state == "BLOCKED" else "complete"
    fields = {
        name: getattr(result, name) for name in ("step_output", "clarity_state", "clarity_reason")
    }
    return step.model_copy(update={"status": status, **fields})


def with_error(step: PlanStep, message: str) -> PlanStep:
    """Return the step with a message added to its errors, unless it is among them."""
    return (
        step
        if message in step.errors
        else step.model_copy(update={"errors": (*step.errors, message)})
    )


def with_errors(plan: Plan, messages: Mapping[str, str]) -> Plan:
    """Return the plan with a message added to the errors of each of these steps, by step id."""
    noted = (
        with_error(step, messages[step.step_id]) for step in plan.steps if step.step_id in messages
    )
    return plan.with_steps(*noted)


def fail_step(step: PlanStep, message: str) -> PlanStep:
    """Return the step as failed, with the reason appended to its errors."""
    return step.model_copy(update={"status": "failed", "errors": (*step.errors, message)})


def abandon_step(step: PlanStep) -> PlanStep:
    """Return the step as pending and incomplete, because a budget or a stop ended it early
    (FR-064)."""
    return step.model_copy(update={"status": "pending", "incomplete": True})


def cut_off(plan: Plan) -> Plan:
    """Return the plan of a pass ended by a budget or a stop: steps that ran or could have run are
    marked incomplete."""
    running = (step for step in plan.steps if step.status == "running")
    return plan.with_steps(*(abandon_step(step) for step in (*running, *ready_steps(plan))))


_FOR_PERSON = {
    "status": "pending",
    "clarity_state": None,
    "incomplete": False,
    "agent": "person",
    "tool": None,
    "arguments": None,
}


def leave_to_person(plan: Plan, step_ids: Collection[str], *, asks: bool = False) -> Plan:
    """Return the plan with these steps marked for a person; unknown ids are ignored (FR-065). With
    `asks`, a person does those that failed or are BLOCKED."""
    marked = []
    for step in plan.steps:
        if step.step_id in step_ids and not step.manual_intervention:
            for_person = _FOR_PERSON if asks and _is_open(step) else {}
            marked.append(step.model_copy(update={"manual_intervention": True, **for_person}))
    return plan.with_steps(*marked)


def _is_open(step: PlanStep) -> bool:
    return step.replaced_by is None and (step.status == "failed" or step.blocked)


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A part of a step's context. `blocked` is a BLOCKED step, `unfinished` one left to a person,
    each with its output so far and the reason; `skipped` one that was not executed, with its
    condition, empty if its list had no items. `is_shared`: other steps are given it too."""

    kind: Literal["output", "handoff", "error", "blocked", "unfinished", "skipped"]
    step_id: str
    text: str
    reason: str = ""
    is_shared: bool = False


def everything_before(
    plan: Plan, step: PlanStep, results: Mapping[str, StepResult]
) -> tuple[ContextPart, ...]:
    """Return results, hand-offs and errors of all earlier steps: the context in core mode (Sprint 1
    FR-002, FR-055)."""
    parts: list[ContextPart] = []
    for other in plan.steps:
        if other.step_id != step.step_id:
            is_needed = other.step_id in step.dependencies
            parts += _collect_in_core(other, results.get(other.step_id), is_needed=is_needed)
    is_shared = step.step_id != plan.steps[-1].step_id
    return tuple(replace(part, is_shared=is_shared) for part in parts)


def _collect_in_core(
    step: PlanStep, result: StepResult | None, *, is_needed: bool
) -> Iterator[ContextPart]:
    if step.status == "skipped" and is_needed:
        yield ContextPart("skipped", step.step_id, step.when or "")
    elif result is None:
        return
    elif result.error is not None:
        yield ContextPart("error", step.step_id, result.error)
    elif step.blocked:
        reason = step.clarity_reason or ""
        yield ContextPart("blocked", step.step_id, result.step_output or "", reason)
    else:
        yield from _list_given(result)


def collect_incoming_context(
    plan: Plan, step: PlanStep, results: Mapping[str, StepResult]
) -> tuple[ContextPart, ...]:
    """Return outputs and hand-offs of a step's dependencies, in step order (FR-090)."""
    parts: list[ContextPart] = []
    shared: set[str] = set()
    # A final step may quote, so its answer's schema, which stands before the prompt, is its own.
    if not is_only_final(step, plan):
        for other in plan.steps:
            if other.step_id != step.step_id:
                shared.update(other.dependencies)
    for earlier in plan.steps:
        if earlier.step_id in step.dependencies:
            is_shared = earlier.step_id in shared
            parts += (
                replace(part, is_shared=is_shared)
                for part in _collect_parts(earlier, results.get(earlier.step_id))
            )
    return tuple(parts)


def _collect_parts(step: PlanStep, result: StepResult | None) -> Iterator[ContextPart]:
    if step.status == "skipped":
        yield ContextPart("skipped", step.step_id, step.when or "")
    elif step.unfinished:
        reason = step.clarity_reason if step.blocked else "; ".join(step.errors)
        yield ContextPart("unfinished", step.step_id, step.step_output or "", reason or "")
    elif result is not None:
        yield from _list_given(result)


def _list_given(result: StepResult) -> Iterator[ContextPart]:
    """Yield a result's output and hand-off."""
    if result.step_output is not None:
        yield ContextPart("output", result.step_id, result.step_output)
        if result.handoff:
            yield ContextPart("handoff", result.step_id, result.handoff)
