"""Changes to plans, and the records of refinements and repairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, model_validator

from aeon.domain.plan import FollowUpQuestion, PlanStep, Standing, SubplanOrigin
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.values import Value

ActionType = Literal["ADD", "MODIFY", "REMOVE", "REPLACE", "SUBPLAN_CREATE", "STEP_MARK_INVALID"]


@dataclass(frozen=True, slots=True)
class ActionRule:
    """The requirements of one type of refinement action, and the standings of steps it may target;
    `refusal` is the reason for refusing others. `retires`: a pending target leaves the plan.
    `adds`: its new step has a new id. `decomposes`: into a subplan."""

    needs_target: bool = True
    needs_new_step: bool = False
    targets: frozenset[Standing] = frozenset({"pending", "BLOCKED"})
    refusal: str = "what was executed is never changed; REPLACE it under a new id"
    retires: bool = False
    adds: bool = False
    decomposes: bool = False


_REMOVAL = "only a pending step can be removed; what was executed is kept"
_MARKING = "only a complete or failed step can be marked invalid"
_REPLACEABLE: frozenset[Standing] = frozenset(
    {"pending", "BLOCKED", "complete", "failed", "invalid"}
)
ACTIONS: Mapping[ActionType, ActionRule] = {
    "ADD": ActionRule(needs_target=False, needs_new_step=True, adds=True),
    "MODIFY": ActionRule(needs_new_step=True),
    "REMOVE": ActionRule(targets=frozenset({"pending"}), refusal=_REMOVAL, retires=True),
    "REPLACE": ActionRule(needs_new_step=True, targets=_REPLACEABLE, retires=True, adds=True),
    "SUBPLAN_CREATE": ActionRule(decomposes=True),
    "STEP_MARK_INVALID": ActionRule(targets=frozenset({"complete", "failed"}), refusal=_MARKING),
}
"""A REPLACE under the target's own id has the same limits as a MODIFY."""


class RefinementAction(Value):
    """One change to a plan, proposed by the planner. `addresses_issues` are the ids of the issues
    it answers, `overrides_issues` those whose proposed repair it deliberately ignores (FR-079)."""

    action_type: ActionType
    target_step_id: str | None = None
    new_step: PlanStep | None = None
    justification: str = Field(min_length=1)
    semantic_validation_input: tuple[ValidationIssue, ...] = ()
    inconsistency_detected: bool = False
    addresses_issues: tuple[str, ...] = ()
    overrides_issues: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _has_what_its_type_needs(self) -> RefinementAction:
        if self.rule.needs_target and not self.target_step_id:
            raise ValueError(f"{self.action_type} needs target_step_id")
        if self.rule.needs_new_step and not self.new_step:
            raise ValueError(f"{self.action_type} needs new_step")
        return self

    @property
    def rule(self) -> ActionRule:
        """The rule of its type."""
        return ACTIONS[self.action_type]

    @property
    def new_steps(self) -> tuple[PlanStep, ...]:
        """The steps that it adds, if its type adds any."""
        return (self.new_step,) if self.new_step and self.rule.needs_new_step else ()

    @property
    def fragment(self) -> str:
        """The id of the step it concerns: its target, or the step that it adds."""
        added = self.new_step.step_id if self.new_step else ""
        return self.target_step_id or "" if self.rule.needs_target else added

    @property
    def answers(self) -> frozenset[str]:
        """The ids of the issues it answers, named in either of its two fields for them."""
        return frozenset(
            {*self.addresses_issues, *(issue.issue_id for issue in self.semantic_validation_input)}
        )


class DeclinedIssue(Value):
    """A validation issue that a refinement leaves unchanged, and why no change is needed
    (FR-086)."""

    issue_id: str
    reason: str = Field(min_length=1)


class Refinement(Value):
    """The proposals of one refinement; `declined` issues need no change, `unanswered` grave ones
    are ignored."""

    actions: tuple[RefinementAction, ...] = ()
    questions: tuple[FollowUpQuestion, ...] = ()
    declined: tuple[DeclinedIssue, ...] = ()
    unanswered: tuple[str, ...] = ()


class RefusedAction(Value):
    """An action that was not applied, and a reason that a person can act on. `for_budget`: the TTL
    left no room for a call that it needs."""

    action: RefinementAction
    reason: str
    for_budget: bool = False


class StepChange(Value):
    """One step before and after an accepted action (FR-073); None if the step did not exist."""

    step_id: str
    before: PlanStep | None
    after: PlanStep | None


class RepairRecord(Value):
    """One answer that did not match its schema, and its repair calls (FR-029, FR-033, FR-050)."""

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
    """What the supervisor lets a refinement change: `repairs` are the actions that are safe to
    apply, `issues` the reasons against the others. `blocking`: nothing can run and no repair is
    safe (FR-004)."""

    blocking: bool
    issues: tuple[str, ...] = ()
    repairs: tuple[RefinementAction, ...] = ()


class RefinementRecord(Value):
    """One refinement of a pass, and the reasons for it (FR-073); `model_asked` is false for the
    clean plan of one step."""

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
