"""Plans, steps and outputs as prompts show them: plain data, without what a model does not need."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from aeon.domain.graph import answer_steps, answer_text, by_id, find_pending_steps, is_live
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.report import ValidationIssue
from aeon.domain.values import JsonMapping, JsonObject
from aeon.memory.interface import STEPS
from aeon.plan.deltas import DeltaResult

# The fields of a step's definition, which only a refinement changes.
_DEFINITION = (
    "step_id",
    "description",
    "dependencies",
    "provides",
    "handoff_to_next",
    "tool",
    "tools",
    "arguments",
    "parent_step_id",
)
# With the worker's report, the fields that do not change once the step is executed.
_CARRIED_OUT = (*_DEFINITION, "clarity_state", "clarity_reason", "tool_calls")


def plan_view(plan: Plan, outputs: JsonMapping | None = None) -> JsonObject:
    """Return a plan as prompts show it; `states` leave out what these `outputs` show."""
    steps = [step.view for step in plan.steps]
    above = outputs or {}
    users = _users_by_step(plan.steps) if above else {}
    return {
        "goal": plan.goal,
        "steps": steps,
        "states": [
            {**_state(step, _CARRIED_OUT), "used_by": users.get(step.step_id, [])}
            if _is_carried_out(step) and step.step_id in above
            else view
            for step, view in zip(plan.steps, steps, strict=True)
        ],
        "questions": [
            {
                "question": each.question,
                **(
                    {"answer": each.answer}
                    if each.answer is not None
                    else {"assumption": each.assumption}
                ),
            }
            for each in plan.questions
        ],
        "subplans": [subplan.model_dump() for subplan in plan.subplans],
    }


def _is_carried_out(step: PlanStep) -> bool:
    return step.status in ("complete", "invalid") and not step.blocked


def _select_fields(names: Sequence[str], step: PlanStep) -> JsonObject:
    return {name: value for name, value in step.view.items() if name in names}


def _state(step: PlanStep, shown_elsewhere: Sequence[str]) -> JsonObject:
    return {
        name: value
        for name, value in step.view.items()
        if name == "step_id" or name not in shown_elsewhere
    }


def changes_view(delta: DeltaResult) -> list[JsonObject]:
    """Return the changed steps as they were before, each with the actions that concern it; the plan
    shows them afterwards."""
    actions = [
        {
            "action_type": action.action_type,
            "justification": action.justification,
            **({"inconsistency_detected": True} if action.inconsistency_detected else {}),
            "answers": [issue.issue_id for issue in action.semantic_validation_input],
        }
        for action in delta.accepted
    ]
    about = [delta.find_changed_steps(action) for action in delta.accepted]
    return [
        {
            "step_id": change.step_id,
            "actions": [
                view for view, ids in zip(actions, about, strict=True) if change.step_id in ids
            ],
            "before": change.before.view if change.before else None,
            **({} if change.after else {"removed": True}),
        }
        for change in delta.changes
    ]


def select_answered(delta: DeltaResult) -> list[ValidationIssue]:
    """Return the issues that a refinement answers, each once."""
    answered = {
        issue.issue_id: issue
        for action in delta.accepted
        for issue in action.semantic_validation_input
    }
    return list(answered.values())


def outline_view(
    plan: Plan, own: PlanStep, most: int, *, counts_definitions: bool = False
) -> JsonObject:
    """Return the prompt variables that show a worker the plan around its own step, at most `most`
    steps in each. `steps_left_out` counts the live steps that the outline leaves out, or with
    `counts_definitions` the steps that the definitions leave out."""
    near = _nearest_steps(plan.steps, own, most)
    live_steps = [step for step in plan.steps if is_live(step)]
    is_same = len(live_steps) == len(plan.steps)
    live = near if is_same else _nearest_steps(live_steps, own, most)
    return {
        "outline": [
            _select_fields(("step_id",) if step is own else ("step_id", "description"), step)
            for step in live
        ],
        "definitions": [_select_fields(_DEFINITION, step) for step in near],
        "state": [_state(step, _DEFINITION) for step in near],
        "steps_left_out": (
            len(plan.steps) - len(near) if counts_definitions else len(live_steps) - len(live)
        ),
    }


def _nearest_steps(steps: Sequence[PlanStep], own: PlanStep, most: int) -> list[PlanStep]:
    """Return at most `most` steps, in order: `own`'s dependencies and dependents first, then its
    neighbours."""

    def distance(step: PlanStep) -> tuple[bool, int]:
        is_linked = step.step_id in own.dependencies or own.step_id in step.dependencies
        return step.step_id != own.step_id and not is_linked, abs(step.step_index - own.step_index)

    return sorted(sorted(steps, key=distance)[:most], key=lambda step: step.step_index)


def outputs_view(
    steps: Sequence[PlanStep],
    outputs: JsonMapping,
    handoffs: Mapping[str, str] = MappingProxyType({}),
    drafts: Collection[str] = (),
) -> list[JsonObject]:
    """Return the outputs of steps, each with its hand-off and its step's state and users; those of
    `drafts` by name.

    Executed steps come first, by layer, so that earlier ones keep their place; outputs without a
    step come last.
    """
    known = by_id(steps)
    layer: dict[str, int] = {}
    for step in steps:
        layer[step.step_id] = 1 + max((layer.get(d, 0) for d in step.dependencies), default=0)

    # A prompt that only grows at its end is read from the provider's cache.
    def order(step: PlanStep) -> int:
        return layer[step.step_id] if _is_carried_out(step) else len(steps) + 1

    users = _users_by_step(steps)
    ids = [step.step_id for step in sorted(steps, key=order)]
    ids += (step_id for step_id in outputs if step_id not in known)
    return [
        {
            **_show_output(step_id, outputs[step_id], known.get(step_id), users.get(step_id, [])),
            "handoff": handoffs.get(step_id),
            "is_draft": step_id in drafts,
        }
        for step_id in ids
        if step_id in outputs
    ]


def find_drafts(steps: Sequence[PlanStep], issues: Sequence[ValidationIssue]) -> frozenset[str]:
    """Return the steps of a finished plan whose output another step used and that no issue of its
    review concerns; none while work is left, or if an issue concerns no step."""
    is_finished = all(_is_carried_out(step) for step in steps if is_live(step))
    about = {issue.step_id for issue in issues}
    if not is_finished or None in about:
        return frozenset()
    return frozenset(_users_by_step(steps)) - about


def _show_output(
    step_id: str, output: object, step: PlanStep | None, users: list[str]
) -> JsonObject:
    definition = _select_fields(_CARRIED_OUT, step) if step and _is_carried_out(step) else None
    if not isinstance(output, str):
        output = json.dumps(output, ensure_ascii=False, default=str)
    return {
        "step_id": step_id,
        "status": step.standing if step else None,
        "used_by": users if step else [],
        "definition": definition,
        "step_output": output,
    }


def _users_by_step(steps: Iterable[PlanStep]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for step in steps:
        dependencies = step.dependencies
        if dependencies and is_live(step):
            for dependency in dependencies:
                users.setdefault(dependency, []).append(step.step_id)
    return users


def step_key(step_id: str, part: str) -> str:
    """Return the memory key of a part of a step's result: its output or its handoff."""
    return f"{STEPS}{step_id}/{part}"


def answer_view(plan: Plan, outputs: JsonMapping) -> JsonObject:
    """Return the current answer: its steps, whether their outputs are shown elsewhere, and the
    pending and BLOCKED steps."""
    steps = [step.step_id for step in answer_steps(plan)]
    return {
        "text": answer_text(plan),
        "steps": steps,
        "is_shown": all(step_id in outputs for step_id in steps),
        "pending": [step.step_id for step in find_pending_steps(plan)],
        "blocked": [
            step.step_id for step in plan.steps if step.blocked and not step.manual_intervention
        ],
    }
