"""How plans, steps and outputs are shown in prompts: plain data without what a model need not see. A leaf."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.graph import answer_steps, answer_text, by_id, is_live, pending_steps
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, RefinementAction, step_view
from aeon.memory.interface import STEPS
from aeon.plan.deltas import DeltaResult


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
        "subplans": [subplan.model_dump() for subplan in plan.subplans],
    }


def subplan_view(plan: Plan, step: PlanStep) -> dict[str, Any] | None:
    """The subplan that a step belongs to, as its prompt shows it; None for a step of the plan's own."""
    subplan = plan.subplan_of(step)
    return subplan.model_dump() if subplan else None


def changes_view(delta: DeltaResult) -> list[dict[str, Any]]:
    """The changed steps, each before and after, with the actions that are about it; none for a step that only loses or
    gains a dependency."""
    return [
        {
            "step_id": change.step_id,
            "actions": [_reason_view(a) for a in delta.accepted if change.step_id in delta.changed_by(a)],
            "before": step_view(change.before) if change.before else None,
            "after": step_view(change.after) if change.after else None,
        }
        for change in delta.changes
    ]


def _reason_view(action: RefinementAction) -> dict[str, Any]:
    """What an action is and why, with the issues that it answers, and whether an executed step contradicts the rest by
    it; the step itself is shown beside it."""
    detected = {"inconsistency_detected": True} if action.inconsistency_detected else {}
    return {
        "action_type": action.action_type,
        "justification": action.justification,
        **detected,
        "answers": [issue.model_dump(exclude_none=True) for issue in action.semantic_validation_input],
    }


def assessment_view(assessment: ConvergenceAssessment) -> dict[str, Any]:
    """What an assessment says in words and codes, for those who are given no score."""
    return {"reason_codes": list(assessment.reason_codes), "explanation": assessment.explanation}


def outline(plan: Plan, own_id: str) -> list[dict[str, Any]]:
    """What each live step of the plan does, for the worker who does one of them and is told of it elsewhere."""
    return [
        {"step_id": step.step_id}
        | ({"this_step": True} if step.step_id == own_id else {"description": step.description})
        for step in plan.steps
        if is_live(step)
    ]


def outputs_view(steps: Sequence[PlanStep], outputs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The outputs of steps, in plan order, each with its step's state and the live steps that use it.

    Outputs that belong to none of the steps come last, as they are.
    """
    users, known = _users(steps), by_id(steps)
    of_steps = [
        {
            "step_id": step.step_id,
            "status": "BLOCKED" if step.blocked else step.status,
            "used_by": users.get(step.step_id, []),
            "step_output": _text(outputs[step.step_id]),
        }
        for step in steps
        if step.step_id in outputs
    ]
    others: list[dict[str, Any]] = [
        {"step_id": step_id, "status": None, "used_by": [], "step_output": _text(output)}
        for step_id, output in outputs.items()
        if step_id not in known
    ]
    return [*of_steps, *others]


def _text(output: Any) -> str:
    """An output as prompts show it: text as it is, anything else as JSON."""
    return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)


def _users(steps: Iterable[PlanStep]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for step in filter(is_live, steps):
        for dependency in step.dependencies:
            users.setdefault(dependency, []).append(step.step_id)
    return users


def step_key(step_id: str, part: str) -> str:
    """The key under which memory holds a part of a step's result: its output, its handoff."""
    return f"{STEPS}{step_id}/{part}"


def answer_view(plan: Plan, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """The answer as it stands: the steps it is made of, whether their outputs are shown anyway, and what is to come."""
    steps = [step.step_id for step in answer_steps(plan)]
    return {
        "text": answer_text(plan),
        "steps": steps,
        "is_shown": all(step_id in outputs for step_id in steps),
        "pending": [step.step_id for step in pending_steps(plan)],
        "blocked": [step.step_id for step in plan.steps if step.blocked and not step.manual_intervention],
    }
