"""The input, budget and outcome of a refinement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import AeonError
from aeon.domain.plan import FollowUpQuestion, Plan
from aeon.domain.refinement import Refinement, RefinementRecord
from aeon.domain.report import ValidationIssue
from aeon.domain.values import JsonObject
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.triggers import Trigger, fragment_of

if TYPE_CHECKING:
    from aeon.domain.history import AdvisoryKind, RunState


Ask = Callable[[FollowUpQuestion], str | None]


@dataclass(frozen=True, slots=True)
class Occasion:
    """The reasons to refine a plan. `closed` are the fragments left to a person; `is_clean`: a
    review found nothing."""

    issues: Sequence[ValidationIssue] = ()
    triggers: Sequence[Trigger] = ()
    closed: Sequence[str] = ()
    assessment: ConvergenceAssessment | None = None
    is_clean: bool = False


@dataclass(frozen=True, slots=True)
class Remark:
    """A message to the user about a refinement; becomes an advisory."""

    kind: AdvisoryKind
    message: str
    step_id: str | None = None


@dataclass(frozen=True, slots=True)
class RefinementOutcome:
    """The result of a refinement. `record` is None if the planner returned nothing usable (FR-067).
    `handed_over` are the fragments that need a person from now on, `conflicts` the contradictions;
    `error` is why there was no usable answer: the model's failure, not a judgement of its
    proposals."""

    plan: Plan
    attempts: RefinementAttempts
    record: RefinementRecord | None = None
    remarks: tuple[Remark, ...] = ()
    handed_over: tuple[str, ...] = ()
    conflicts: tuple[ValidationIssue, ...] = ()
    error: AeonError | None = None

    def changes_of(self, state: RunState) -> JsonObject:
        """Return the fields of a run's state that this refinement changes."""
        return {
            "plan": self.plan,
            "refused": (*state.refused, *(self.record.refused if self.record else ())),
            "attempts": dict(self.attempts.by_fragment),
            "refinements": self.attempts.total,
            "conflicts": (*state.conflicts, *self.conflicts),
        }

    def list_fragments_for_person(self) -> Iterator[tuple[str, str]]:
        """Yield the fragments that a person must look at, each with its message."""
        for step_id in self.handed_over:
            yield step_id, f"Step {step_id} needs a person's attention."
        for issue in self.conflicts:
            where = fragment_of(issue)
            message = (
                "A contradiction that refinement leaves alone needs a person's "
                f"attention, at {where}: "
            )
            yield where, message + issue.description


@runtime_checkable
class Proposer(Protocol):
    """A planner that proposes more than actions: questions, and reasons to change nothing."""

    def refine(
        self,
        current_plan: Plan,
        validation_issues: Sequence[ValidationIssue],
        triggers: Sequence[Trigger],
        executed_step_ids: Sequence[str] = (),
        closed_steps: Sequence[str] = (),
        *,
        assessment: ConvergenceAssessment | None = None,
    ) -> Refinement:
        """Propose changes and questions."""
