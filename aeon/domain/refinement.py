"""Records of refinements and repairs, as the history keeps them."""

from __future__ import annotations

from typing import Literal

from aeon.domain.plan import DeclinedIssue, FollowUpQuestion, RefinementAction, RefusedAction, StepChange, SubplanOrigin
from aeon.domain.report import SemanticValidationReport
from aeon.domain.values import Value


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


class RefinementRecord(Value):
    """One refinement of a pass: what was proposed, refused and applied (FR-073).

    `triggers` are the reasons it was called for; `fragment_report` is the validation of the changed steps; `subplans`
    are those that it made. `declined` are the issues that need no change, by the planner's reason, `unanswered` the ids
    of the grave ones that it passed over. `model_asked` is false for the clean plan of one step, for which no model was
    asked.
    """

    triggers: tuple[str, ...] = ()
    accepted: tuple[RefinementAction, ...] = ()
    refused: tuple[RefusedAction, ...] = ()
    changes: tuple[StepChange, ...] = ()
    questions: tuple[FollowUpQuestion, ...] = ()
    subplans: tuple[SubplanOrigin, ...] = ()
    declined: tuple[DeclinedIssue, ...] = ()
    unanswered: tuple[str, ...] = ()
    fragment_report: SemanticValidationReport | None = None
    supervisor: SupervisorAssessment | None = None
    model_asked: bool = True
