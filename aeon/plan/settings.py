"""What configures refinement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aeon.domain.report import Severity
from aeon.domain.values import Value


class RefinementSettings(Value):
    """`refinement`: how often and how far a plan may be changed (FR-003, FR-065, FR-066, FR-083).
    `reject_severity`: an issue of it at a changed step, or at a dependent, refuses the change.
    `binding_severity`: an issue of it must be answered, by a change or by a reason (FR-086).
    `accept`: with `not_worse` an answer that a blind comparison finds worse than the one before it
    is set back. `review`: every change is reviewed before it is applied, or those alone that touch
    an executed step."""

    when: Literal["triggered", "always"] = "triggered"
    max_attempts_per_fragment: int = Field(default=3, ge=1)
    max_attempts_total: int = Field(default=10, ge=0)
    max_nesting_depth: int = Field(default=5, ge=0, le=5)
    reject_severity: Severity = "CRITICAL"
    binding_severity: Severity = "HIGH"
    accept: Literal["always", "not_worse"] = "always"
    review: Literal["always", "executed"] = "always"
