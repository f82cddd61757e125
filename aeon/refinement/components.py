"""The planner and the validator as refinement calls them.

Aeon's own methods take keyword arguments beyond the published interface. A method that a person wrote, or overrode, is
called with the published arguments alone. Adapted once, when the components are put together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, TypeVar

from aeon.domain.plan import EXECUTED, Plan, PlanStep
from aeon.domain.refinement import Refinement
from aeon.domain.report import SemanticValidationReport
from aeon.plan.deltas import DeltaResult
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.triggers import open_issues, unanswered
from aeon.refinement.models import Occasion
from aeon.validation.semantic import SemanticValidator

T = TypeVar("T")
Propose = Callable[[Plan, Occasion], Refinement]


class Validate(Protocol):
    """Reviews artefacts; `delta` is the refinement under review."""

    def __call__(
        self,
        artifact_type: str,
        plan: Plan,
        steps: list[PlanStep] | None = None,
        outputs: dict[str, Any] | None = None,
        memory_artifacts: dict[str, Any] | None = None,
        /,
        *,
        delta: DeltaResult | None = None,
    ) -> SemanticValidationReport:
        """The report on the artefacts."""
        ...


def adapt_method(method: Callable[..., T], own: Callable[..., T]) -> Callable[..., T]:
    """`method` when it is `own`, the one of Aeon's class; else `method` without the keyword arguments."""
    if getattr(method, "__func__", None) is own:
        return method
    return lambda *arguments, **_: method(*arguments)


def validate_method(validator: SemanticValidator) -> Validate:
    """A validator's `validate`."""
    return adapt_method(validator.validate, SemanticValidator.validate)


def has_own_refine_plan(planner: RecursivePlanner) -> bool:
    """Whether a person wrote the planner's `refine_plan`: it proposes actions, and no questions."""
    return type(planner).refine_plan is not RecursivePlanner.refine_plan


def propose_method(planner: RecursivePlanner) -> Propose:
    """What makes a planner propose a refinement."""
    return partial(_propose_published if has_own_refine_plan(planner) else _propose, planner)


def _propose(planner: RecursivePlanner, plan: Plan, occasion: Occasion) -> Refinement:
    return planner.refine(
        plan,
        list(open_issues(occasion.issues, occasion.closed)),
        occasion.triggers,
        _executed(plan),
        occasion.closed,
        assessment=occasion.assessment,
    )


def _propose_published(planner: RecursivePlanner, plan: Plan, occasion: Occasion) -> Refinement:
    issues = list(open_issues(occasion.issues, occasion.closed))
    blocked = [step.step_id for step in plan.steps if step.blocked]
    codes = list(occasion.assessment.reason_codes) if occasion.assessment else []
    actions = tuple(planner.refine_plan(plan, issues, codes, blocked, _executed(plan)))
    return Refinement(actions=actions, unanswered=unanswered(issues, actions))


def _executed(plan: Plan) -> list[str]:
    return [step.step_id for step in plan.steps if step.status in EXECUTED]
