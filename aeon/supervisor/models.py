"""What the supervisor records: repairs of malformed answers, and what it holds safe to apply."""

from __future__ import annotations

from typing import Literal

from aeon.plan.models import RefinementAction
from aeon.values import Value


class RepairRecord(Value):
    """One answer that did not match its schema, and what it took to repair it (FR-029, FR-033, FR-050).

    `errors` are those of the original answer, each with its JSON pointer; `attempts` counts the repair calls made (at
    most two by default); tokens are those of the repair calls alone.
    """

    call: str
    cycle: int
    pass_number: int
    step_id: str | None = None
    errors: tuple[str, ...]
    attempts: int
    input_tokens: int = 0
    output_tokens: int = 0
    outcome: Literal["repaired", "unrecoverable"]


class SupervisorAssessment(Value):
    """What the supervisor lets a refinement change, and whether the run may go on with it (FR-004).

    `repairs` are the actions that are structurally sound and passed fragment validation, so safe to apply; `issues` say
    why others are not; `blocking` is true when nothing can run and no repair is safe to apply: the kernel then ends the
    run as stalled.
    """

    blocking: bool
    issues: tuple[str, ...] = ()
    repairs: tuple[RefinementAction, ...] = ()
