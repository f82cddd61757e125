"""A refiner on a scripted model, with a budget of so many calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import Plan
from aeon.domain.report import ValidationIssue
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.settings import RefinementSettings
from aeon.plan.triggers import Trigger
from aeon.refinement.models import Occasion, RefinementOutcome
from aeon.refinement.refiner import Refiner
from aeon.validation.semantic import SemanticValidator
from tests.support.scripted_model import ScriptedModel


class Calls:
    """A budget of so many calls, and the names of those made."""

    def __init__(self, most: int = 100) -> None:
        self._left = most
        self.made: list[str] = []

    def affordable(self) -> bool:
        return self._left > 0

    def call(self, name: str, ask: Callable[[], Any]) -> Any:
        assert self._left > 0, "a call was made that the budget does not allow"
        self._left -= 1
        self.made.append(name)
        return ask()


def refine(
    model: ScriptedModel,
    plan: Plan,
    *,
    issues: Sequence[ValidationIssue] = (),
    triggers: Sequence[Trigger] = (),
    attempts: RefinementAttempts | None = None,
    closed: Sequence[str] = (),
    budget: Calls | None = None,
    settings: RefinementSettings | None = None,
    assessment: ConvergenceAssessment | None = None,
    is_clean: bool = False,
    planner: Any = None,
    validator: Any = None,
    **options: Any,
) -> RefinementOutcome:
    refiner = Refiner(
        planner or RecursivePlanner(model),
        validator or SemanticValidator(model),
        settings,
        **options,
    )
    occasion = Occasion(issues, triggers, closed, assessment, is_clean)
    return refiner.refine(plan, occasion, attempts or RefinementAttempts(), budget or Calls())


def refusals(refined: RefinementOutcome) -> dict[str, str]:
    """The reason of each refused action, by kind and fragment."""
    assert refined.record is not None
    return {f"{r.action.action_type} {r.action.fragment}": r.reason for r in refined.record.refused}


def accepted(refined: RefinementOutcome) -> list[str]:
    assert refined.record is not None
    return [f"{a.action_type} {a.fragment}" for a in refined.record.accepted]
