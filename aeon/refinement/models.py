"""What a refinement is given, what it may spend, what it comes to, and the validator as it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.plan import FollowUpQuestion, Plan
from aeon.domain.refinement import RefinementRecord
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.request import CallName
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.triggers import Trigger
from aeon.validation.semantic import SemanticValidator

if TYPE_CHECKING:
    from aeon.domain.history import AdvisoryKind


T = TypeVar("T")
Ask = Callable[[FollowUpQuestion], str | None]


class Budget(Protocol):
    """What a refinement may spend: the kernel's TTL, one cycle a call."""

    def affordable(self) -> bool:
        """Whether one more call may be made."""
        ...

    def call(self, name: CallName, ask: Callable[[], Any]) -> Any:
        """Make one structured call, charged."""
        ...


@dataclass(frozen=True, slots=True)
class Occasion:
    """Why a plan is refined. `closed` are the fragments left to a person; `is_clean`: a review found nothing."""

    issues: Sequence[ValidationIssue] = ()
    triggers: Sequence[Trigger] = ()
    closed: Sequence[str] = ()
    assessment: ConvergenceAssessment | None = None
    is_clean: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """Something a person should know of a refinement; becomes an advisory."""

    kind: AdvisoryKind
    message: str
    step_id: str | None = None


@dataclass(frozen=True, slots=True)
class Refined:
    """What a refinement came to. `record` is None when the planner gave nothing usable (FR-067). `handed_over` are the
    fragments that a person must look at from now on, `conflicts` the contradictions."""

    plan: Plan
    attempts: RefinementAttempts
    record: RefinementRecord | None = None
    remarks: tuple[Remark, ...] = ()
    handed_over: tuple[str, ...] = ()
    conflicts: tuple[ValidationIssue, ...] = ()


Validate = Callable[..., SemanticValidationReport]
"""A validator's `validate`, its arguments by position; `delta=` is the refinement under review."""


def adapt_method(method: Callable[..., T], own: Callable[..., T]) -> Callable[..., T]:
    """`method` when it is `own`, the one of Aeon's class; else `method` without the keyword arguments."""
    if getattr(method, "__func__", None) is own:
        return method
    return lambda *arguments, **_: method(*arguments)


def validate_method(validator: SemanticValidator) -> Validate:
    """A validator's `validate`."""
    return adapt_method(validator.validate, SemanticValidator.validate)
