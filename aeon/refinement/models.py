"""What a refinement is given, what it may spend, and what it comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aeon.plan.models import (
    DeclinedIssue,
    FollowUpQuestion,
    RefinementAction,
    RefusedAction,
    StepChange,
    SubplanOrigin,
)
from aeon.supervisor.models import SupervisorAssessment
from aeon.validation.models import SemanticValidationReport
from aeon.values import Value

if TYPE_CHECKING:
    pass


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
