"""What carrying out a step costs, and about what a plan will."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aeon.domain.errors import PlanError
from aeon.domain.graph import EVALUATION_CYCLES, count_expected_calls
from aeon.domain.plan import Plan, PlanStep
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry


def batch_size(remaining: int, assessment_cycles: int = 1) -> int:
    """How many LLM steps a batch may start, so that its evaluation can still be paid out of the
    `remaining` cycles."""
    return max(1, spare_cycles(remaining, 0, assessment_cycles))


def spare_cycles(remaining: int, pending: int, assessment_cycles: int) -> int:
    """The cycles that neither the evaluation of a batch nor the steps that are still pending need;
    without an assessment (0) nothing is evaluated."""
    evaluation = EVALUATION_CYCLES - 1 + assessment_cycles if assessment_cycles else 0
    return remaining - evaluation - pending


def cycles(
    step: PlanStep,
    registry: ToolRegistry,
    invoker: ToolInvoker,
    arguments: Callable[[], Mapping[str, Any]],
) -> int:
    """The TTL cycles that carrying out a step takes: 0 for one that a person does and for a tool
    with arguments that are given and valid, else 1. `arguments` gives them with their references
    resolved; where it raises PlanError no model is asked about them."""
    if step.is_for_person:
        return 0
    if step.tool is None or step.arguments is None or registry.get(step.tool) is None:
        return 1
    try:
        found = invoker.check_arguments(step.tool, arguments())
    except PlanError:
        return 0
    return 1 if found else 0


def forecast(plan: Plan, cost: Callable[[PlanStep], int], *, core: bool) -> int:
    """About how many LLM cycles a plan takes, given what each step does; in core mode nothing comes
    on top. Repairs, and what a refined plan adds, are not foreseen. Raises PlanError when the
    dependencies form a cycle."""
    by_model = sum(cost(step) for step in plan.steps)
    return by_model if core else count_expected_calls(plan) - len(plan.steps) + by_model
