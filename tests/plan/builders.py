"""Plans and actions in one line each."""

from typing import Any

from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import ValidationIssue
from aeon.plan.deltas import DeltaResult


def step(step_id: str, *dependencies: str, **fields: Any) -> PlanStep:
    return PlanStep(
        step_id=step_id, description=f"do {step_id}", dependencies=dependencies, **fields
    )


def done(step_id: str, *dependencies: str, **fields: Any) -> PlanStep:
    return step(
        step_id,
        *dependencies,
        status="complete",
        step_output=f"output of {step_id}",
        clarity_state="CLEAR",
        **fields,
    )


def failed(step_id: str, *dependencies: str, **fields: Any) -> PlanStep:
    return step(step_id, *dependencies, status="failed", errors=("it broke",), **fields)


def blocked(step_id: str, *dependencies: str, **fields: Any) -> PlanStep:
    return step(
        step_id,
        *dependencies,
        status="invalid",
        clarity_state="BLOCKED",
        clarity_reason="what is meant?",
        step_output=f"half of {step_id}",
        **fields,
    )


def plan_of(*steps: PlanStep) -> Plan:
    return Plan(goal="the goal", task="the task", steps=steps)


def add(step_id: str, *dependencies: str, **fields: Any) -> RefinementAction:
    return action("ADD", None, step(step_id, *dependencies, **fields))


def modify(step_id: str, *dependencies: str, **fields: Any) -> RefinementAction:
    new = PlanStep(
        **{"step_id": step_id, "description": "done better", "dependencies": dependencies, **fields}
    )
    return action("MODIFY", step_id, new)


def replace(step_id: str, new_id: str, *dependencies: str, **fields: Any) -> RefinementAction:
    return action("REPLACE", step_id, step(new_id, *dependencies, **fields))


def remove(step_id: str) -> RefinementAction:
    return action("REMOVE", step_id)


def mark_invalid(step_id: str) -> RefinementAction:
    return action("STEP_MARK_INVALID", step_id)


def decompose(step_id: str) -> RefinementAction:
    return action("SUBPLAN_CREATE", step_id)


def action(
    kind: Any, target: str | None, new_step: PlanStep | None = None, **fields: Any
) -> RefinementAction:
    return RefinementAction(
        action_type=kind, target_step_id=target, new_step=new_step, justification="why", **fields
    )


def subplan(parent: str, *substeps: PlanStep) -> dict[str, Subplan]:
    return {
        parent: Subplan(
            parent_step_id=parent, subplan_goal="in detail", substeps=substeps, depth_level=1
        )
    }


def shape(plan: Plan) -> dict[str, tuple[str, ...]]:
    """The dependencies of each step, in plan order."""
    return {one.step_id: one.dependencies for one in plan.steps}


def chain() -> Plan:
    """One complete step and two pending ones behind it."""
    return plan_of(done("a"), step("b", "a"), step("c", "b"))


def reasons(result: DeltaResult) -> list[str]:
    return [refused.reason for refused in result.refused]


def assert_refused_whole(plan: Plan, result: DeltaResult, *words: str) -> None:
    assert result.plan is plan
    assert result.accepted == ()
    assert result.changes == ()
    assert len(result.refused) == 1
    for word in words:
        assert word in result.refused[0].reason


def issue_at(step_id: str | None) -> ValidationIssue:
    """An issue of a review at a step, or at none."""
    return ValidationIssue.model_validate(
        {
            "issue_id": "i1",
            "type": "consistency",
            "severity": "MEDIUM",
            "description": "A sum is wrong.",
            "location": {"step_id": step_id, "artifact_reference": None},
        }
    )
