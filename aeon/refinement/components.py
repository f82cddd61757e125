"""A validator as refinement and the kernel call it.

Aeon's own methods take keyword arguments beyond the published interface. A method that a person wrote, or overrode, is
called with the published arguments alone. Adapted once, when the components are put together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from aeon.domain.plan import Plan, PlanStep
from aeon.domain.report import SemanticValidationReport
from aeon.plan.deltas import DeltaResult
from aeon.validation.semantic import SemanticValidator

T = TypeVar("T")


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
