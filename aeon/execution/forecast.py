"""The cost of executing a step, and the estimated cost of a plan."""

from __future__ import annotations

from collections.abc import Callable

from aeon.domain.errors import PlanError
from aeon.domain.graph import EVALUATION_CYCLES, count_expected_calls
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.values import JsonMapping
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry


def batch_size(remaining: int, assessment_cycles: int = 1) -> int:
    """Return how many LLM steps a batch may start, so that the `remaining` cycles still pay for its
    evaluation."""
    return max(1, spare_cycles(remaining, 0, assessment_cycles))


def spare_cycles(remaining: int, pending: int, assessment_cycles: int) -> int:
    """Return the cycles that neither a batch's evaluation nor the pending steps need; without an
    assessment (0) there is no evaluation."""
    evaluation = EVALUATION_CYCLES - 1 + assessment_cycles if assessment_cycles else 0
    return remaining - evaluation - pending


def cycles(
    step: PlanStep,
    registry: ToolRegistry,
    invoker: ToolInvoker,
    arguments: Callable[[], JsonMapping],
) -> int:
    """Return the TTL cycles of a step: 0 for a step that a person does and for a tool with valid
    given arguments, else 1. `arguments` returns them with their references resolved; if it raises
    PlanError, the cost is 0, because no model is called."""
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
    """Estimate the LLM cycles of a plan from the `cost` of each step; in core mode nothing is
    added. Repairs and steps of a refined plan are not included. Raises PlanError if the
    dependencies form a cycle."""
    by_model = sum(cost(step) for step in plan.steps)
    return by_model if core else count_expected_calls(plan) - len(plan.steps) + by_model
