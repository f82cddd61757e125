"""Settings of refinement."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aeon.domain.report import Severity
from aeon.domain.values import Value


class RefinementSettings(Value):
    """`refinement`: how often and how far a plan may be changed (FR-003, FR-065, FR-066, FR-083).

    `reject_severity`: an issue of this severity at a changed step, or at a dependent, refuses the
    change. `binding_severity`: an issue of this severity must be answered by a change or a reason
    (FR-086). `accept`: with `not_worse`, an answer that a blind comparison finds worse than the
    previous one is set back. `review`: every change is reviewed before it is applied, or only
    changes of executed steps.
    """

    when: Literal["triggered", "always"] = "triggered"
    max_attempts_per_fragment: int = Field(default=3, ge=1)
    max_attempts_total: int = Field(default=10, ge=0)
    max_nesting_depth: int = Field(default=5, ge=0, le=5)
    reject_severity: Severity = "CRITICAL"
    binding_severity: Severity = "HIGH"
    accept: Literal["always", "not_worse"] = "always"
    review: Literal["always", "executed"] = "always"
