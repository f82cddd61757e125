"""The specified signatures, to the letter; what a component takes beyond them is keyword-only and has a default."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.profile import TaskProfile
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.request import LLMAdapter
from aeon.kernel.orchestrator import Orchestrator
from aeon.plan.recursive import RecursivePlanner
from aeon.refinement.components import Depth, Engine, Planner, Validator
from aeon.tools.registry import ToolRegistry
from aeon.validation.semantic import SemanticValidator

REQUIRED = inspect.Parameter.empty
Anything = dict[str, Any]

# method -> parameters in order: name, annotation, default; last the return annotation
SPECIFIED: dict[tuple[type, str], tuple[list[tuple[str, Any, Any]], Any]] = {
    (ConvergenceEngine, "__init__"): (
        [("llm", LLMAdapter, REQUIRED), ("default_thresholds", dict[str, float] | None, None)],
        type(None),
    ),
    (ConvergenceEngine, "assess"): (
        [
            ("validation_report", SemanticValidationReport, REQUIRED),
            ("plan", Plan, REQUIRED),
            ("steps", list[PlanStep], REQUIRED),
            ("outputs", Anything, REQUIRED),
            ("custom_criteria", Anything | None, None),
        ],
        ConvergenceAssessment,
    ),
    (AdaptiveDepth, "__init__"): (
        [
            ("llm", LLMAdapter, REQUIRED),
            ("global_ttl_limit", int, 100),
            ("global_resource_caps", Anything | None, None),
        ],
        type(None),
    ),
    (AdaptiveDepth, "infer_task_profile"): (
        [("task_description", str, REQUIRED), ("context", Anything | None, None)],
        TaskProfile,
    ),
    (AdaptiveDepth, "allocate_ttl"): (
        [("task_profile", TaskProfile, REQUIRED), ("base_ttl", int, 10)],
        int,
    ),
    (AdaptiveDepth, "update_task_profile"): (
        [
            ("current_profile", TaskProfile, REQUIRED),
            ("convergence_failure", bool, REQUIRED),
            ("validation_issues", list[ValidationIssue], REQUIRED),
            ("clarity_states", list[str], REQUIRED),
            ("task_description", str, REQUIRED),
        ],
        TaskProfile | None,
    ),
    (SemanticValidator, "__init__"): (
        [("llm", LLMAdapter, REQUIRED), ("tool_registry", ToolRegistry | None, None)],
        type(None),
    ),
    (SemanticValidator, "validate"): (
        [
            ("artifact_type", str, REQUIRED),
            ("plan", Plan | None, None),
            ("steps", list[PlanStep] | None, None),
            ("outputs", Anything | None, None),
            ("memory_artifacts", Anything | None, None),
        ],
        SemanticValidationReport,
    ),
    (RecursivePlanner, "__init__"): (
        [
            ("llm", LLMAdapter, REQUIRED),
            ("tool_registry", ToolRegistry | None, None),
            ("max_nesting_depth", int, 5),
        ],
        type(None),
    ),
    (RecursivePlanner, "generate_plan"): (
        [("task_description", str, REQUIRED), ("context", Anything | None, None)],
        Plan,
    ),
    (RecursivePlanner, "refine_plan"): (
        [
            ("current_plan", Plan, REQUIRED),
            ("validation_issues", list[ValidationIssue], REQUIRED),
            ("convergence_reason_codes", list[str], REQUIRED),
            ("blocked_steps", list[str], REQUIRED),
            ("executed_step_ids", list[str], REQUIRED),
        ],
        list[RefinementAction],
    ),
    (RecursivePlanner, "create_subplan"): (
        [
            ("parent_step", PlanStep, REQUIRED),
            ("parent_plan", Plan, REQUIRED),
            ("current_depth", int, REQUIRED),
        ],
        Subplan,
    ),
    (Orchestrator, "__init__"): (
        [
            ("llm", LLMAdapter, REQUIRED),
            ("convergence_engine", Engine, REQUIRED),
            ("semantic_validator", Validator, REQUIRED),
            ("recursive_planner", Planner, REQUIRED),
            ("adaptive_depth", Depth, REQUIRED),
        ],
        type(None),
    ),
}
PROTOCOLS = {
    ConvergenceEngine: Engine,
    SemanticValidator: Validator,
    RecursivePlanner: Planner,
    AdaptiveDepth: Depth,
}
SPECIFIED |= {
    (PROTOCOLS[component], method): specified
    for (component, method), specified in SPECIFIED.items()
    if component in PROTOCOLS and method != "__init__"
}
"""What the kernel asks of a component is what is specified, and no more."""
CASES = [pytest.param(*key, id=f"{key[0].__name__}.{key[1]}") for key in SPECIFIED]


@pytest.mark.parametrize(("component", "method"), CASES)
def test_the_specified_parameters_come_first_in_order_with_their_defaults(
    component: type, method: str
):
    parameters = list(inspect.signature(getattr(component, method)).parameters.values())[1:]
    specified, _ = SPECIFIED[component, method]
    positional = [p for p in parameters if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [(p.name, p.default) for p in positional] == [
        (name, default) for name, _, default in specified
    ]
    assert {p.kind for p in positional} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}


@pytest.mark.parametrize(("component", "method"), CASES)
def test_annotations_mean_what_is_specified(component: type, method: str):
    hints = get_type_hints(getattr(component, method))
    specified, returned = SPECIFIED[component, method]
    assert {name: hints[name] for name, _, _ in specified} == {
        name: kind for name, kind, _ in specified
    }
    assert hints["return"] == returned


@pytest.mark.parametrize(("component", "method"), CASES)
def test_whatever_else_is_taken_is_keyword_only_and_may_be_left_out(component: type, method: str):
    parameters = list(inspect.signature(getattr(component, method)).parameters.values())[1:]
    extra = parameters[len(SPECIFIED[component, method][0]) :]
    assert all(
        p.kind is inspect.Parameter.KEYWORD_ONLY and p.default is not REQUIRED for p in extra
    )


@pytest.mark.parametrize(
    ("component", "module"),
    [
        (ConvergenceEngine, "aeon.convergence.engine"),
        (AdaptiveDepth, "aeon.adaptive.heuristics"),
        (SemanticValidator, "aeon.validation.semantic"),
        (RecursivePlanner, "aeon.plan.recursive"),
    ],
)
def test_components_are_defined_where_it_is_specified(component: type, module: str):
    assert component.__module__ == module


def test_the_orchestrator_keeps_its_components_under_the_specified_names():
    given = {
        name: object()
        for name in (
            "convergence_engine",
            "semantic_validator",
            "recursive_planner",
            "adaptive_depth",
        )
    }
    kernel = Orchestrator(llm=None, **given)
    assert {name: getattr(kernel, name) for name in given} == given


def test_the_one_repair_of_json_is_where_it_is_specified():
    from aeon.supervisor.repair import Supervisor

    assert list(inspect.signature(Supervisor.repair_json).parameters)[1:3] == [
        "malformed",
        "schema",
    ]
