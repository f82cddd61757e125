"""The five components as the interfaces specify them, and one call of each method with the specified arguments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.profile import TaskProfile
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.plan.recursive import RecursivePlanner
from aeon.validation.semantic import SemanticValidator
from tests.support.scripted_model import (
    ScriptedModel,
    assessment,
    issue,
    modify,
    plan,
    planned,
    profile,
    refinement,
    report,
)


def a_plan() -> Plan:
    """One step done, one to come."""
    done = PlanStep(
        step_id="a",
        description="do a",
        step_index=1,
        total_steps=2,
        status="complete",
        step_output="output of a",
        clarity_state="CLEAR",
    )
    waiting = PlanStep(
        step_id="b", description="do b", step_index=2, total_steps=2, dependencies=("a",)
    )
    return Plan(goal="the goal", task="make tea", steps=(done, waiting))


def an_issue() -> ValidationIssue:
    return ValidationIssue(
        issue_id="i1", type="specificity", severity="HIGH", description="b is vague"
    )


def a_report() -> SemanticValidationReport:
    return SemanticValidationReport(
        validation_id="v1", artifact_type="cross_phase", issues=(an_issue(),)
    )


def a_profile() -> TaskProfile:
    return TaskProfile(profile_version=1, **profile(2))


ANSWERS: dict[str, Any] = {
    "plan": plan("a", planned("b", "a")),
    "subplan": {
        "subplan_goal": "b in detail",
        "substeps": [planned("first"), planned("second", "first")],
    },
    "refinement": refinement(modify("b", "a", addresses_issues=["i1"])),
    "semantic_validation": report(issue("i1", "b", "HIGH")),
    "convergence": assessment(0.4),
    "task_profile": profile(4),
}
"""An answer to the call of every method below."""


def script(**answers: Any) -> ScriptedModel:
    return ScriptedModel(**{**ANSWERS, **answers})


@dataclass(frozen=True)
class Method:
    """A method of an interface: the call it makes, its arguments, what it returns, and how a component is made."""

    name: str
    call: str
    make: Callable[[ScriptedModel], Any]
    arguments: Callable[[], dict[str, Any]]
    returns: type

    def __call__(self, model: ScriptedModel) -> Any:
        return getattr(self.make(model), self.name)(**self.arguments())

    def __str__(self) -> str:
        return self.name


METHODS = (
    Method(
        "assess",
        "convergence",
        ConvergenceEngine,
        lambda: {
            "validation_report": a_report(),
            "plan": a_plan(),
            "steps": list(a_plan().steps),
            "outputs": {"a": "output of a"},
        },
        ConvergenceAssessment,
    ),
    Method(
        "infer_task_profile",
        "task_profile",
        AdaptiveDepth,
        lambda: {"task_description": "make tea", "context": {"kettle": ["full", {"hot": True}]}},
        TaskProfile,
    ),
    Method(
        "update_task_profile",
        "task_profile",
        AdaptiveDepth,
        lambda: {
            "current_profile": a_profile(),
            "convergence_failure": True,
            "validation_issues": [an_issue()],
            "clarity_states": ["CLEAR", "BLOCKED"],
            "task_description": "make tea",
        },
        TaskProfile,
    ),
    Method(
        "validate",
        "semantic_validation",
        SemanticValidator,
        lambda: {
            "artifact_type": "cross_phase",
            "plan": a_plan(),
            "steps": list(a_plan().steps),
            "outputs": {"a": "output of a"},
            "memory_artifacts": {"note": {"cups": [1, 2]}},
        },
        SemanticValidationReport,
    ),
    Method(
        "generate_plan",
        "plan",
        RecursivePlanner,
        lambda: {"task_description": "make tea", "context": {"previous": ["spilled"]}},
        Plan,
    ),
    Method(
        "refine_plan",
        "refinement",
        RecursivePlanner,
        lambda: {
            "current_plan": a_plan(),
            "validation_issues": [an_issue()],
            "convergence_reason_codes": ["incomplete", "own_criterion"],
            "blocked_steps": ["b"],
            "executed_step_ids": ["a"],
        },
        list,
    ),
    Method(
        "create_subplan",
        "subplan",
        RecursivePlanner,
        lambda: {"parent_step": a_plan().step("b"), "parent_plan": a_plan(), "current_depth": 1},
        Subplan,
    ),
)
