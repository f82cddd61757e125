"""How plans, steps and outputs are shown in prompts: plain data without what a model need not see. A leaf."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aeon.plan.graph import answer_steps, answer_text
from aeon.plan.models import FollowUpQuestion, Plan, PlanStep

_SHOWN = (
    "step_id",
    "step_index",
    "description",
    "dependencies",
    "provides",
    "handoff_to_next",
    "tool",
    "arguments",
    "status",
    "clarity_state",
    "clarity_reason",
    "errors",
    "parent_step_id",
    "replaced_by",
)


def step_view(step: PlanStep) -> dict[str, Any]:
    """A step without its output and without fields that say nothing."""
    shown = {name: getattr(step, name) for name in _SHOWN}
    return {name: value for name, value in shown.items() if value is not None and value != ()} | {
        "dependencies": list(step.dependencies)
    }


def question_view(question: FollowUpQuestion) -> dict[str, Any]:
    """A question with the person's answer if there is one, else with the assumption."""
    if question.answer is not None:
        return {"question": question.question, "answer": question.answer}
    return {"question": question.question, "assumption": question.assumption}


def plan_view(plan: Plan) -> dict[str, Any]:
    """A plan as prompts show it."""
    return {
        "goal": plan.goal,
        "steps": [step_view(step) for step in plan.steps],
        "questions": [question_view(question) for question in plan.questions],
    }


def outline(plan: Plan) -> list[dict[str, Any]]:
    """What each step of the plan does, for a worker who does one of them."""
    live = (step for step in plan.steps if step.replaced_by is None)
    return [{"step_id": step.step_id, "description": step.description} for step in live]


def outputs_view(steps: Iterable[PlanStep], outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The outputs of steps, in plan order, each with its step's state."""
    return [
        {
            "step_id": step.step_id,
            "status": step.status,
            "clarity_state": step.clarity_state,
            "step_output": str(outputs[step.step_id]),
        }
        for step in steps
        if step.step_id in outputs
    ]


def memory_view(memory: Mapping[str, Any] | None, outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What memory holds beyond the outputs that are shown anyway."""
    known = {str(output) for output in outputs.values()}
    return [{"key": key, "value": value} for key, value in (memory or {}).items() if str(value) not in known]


def current_outputs(steps: Sequence[PlanStep]) -> dict[str, str]:
    """The output of every step that has one and whose place no other step has taken."""
    return {
        step.step_id: step.step_output for step in steps if step.step_output is not None and step.replaced_by is None
    }


def answer_view(plan: Plan, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as it stands; `is_one_output` when it is one of the outputs that are shown anyway."""
    steps = [step.step_id for step in answer_steps(plan)]
    return {
        "text": answer_text(plan),
        "steps": steps,
        "is_one_output": len(steps) == 1 and steps[0] in outputs,
    }
