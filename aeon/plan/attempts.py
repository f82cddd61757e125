"""Limits on how often a plan, and each fragment of it, is refined (FR-003, FR-065, FR-066). Pure
functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from aeon.domain.refinement import RefinementAction, RefusedAction
from aeon.domain.report import ValidationIssue
from aeon.domain.values import Value
from aeon.plan.settings import RefinementSettings
from aeon.plan.triggers import find_unanswered, fragment_of, is_contradiction

_RUN_LIMIT = (
    "the run has been refined as often as refinement.max_attempts_total allows: "
    "the plan stays as it is"
)


class RefinementAttempts(Value):
    """The number of refinements, per fragment and in total, and how often each contradiction was
    `left_alone`."""

    by_fragment: Mapping[str, int] = Field(default_factory=dict)
    total: int = Field(default=0, ge=0)
    left_alone: Mapping[str, int] = Field(default_factory=dict)


class Admission(Value):
    """The admitted actions, the refused ones, and the fragments whose limit refused one
    (FR-065)."""

    admitted: tuple[RefinementAction, ...] = ()
    refused: tuple[RefusedAction, ...] = ()
    attempts: RefinementAttempts
    exhausted_fragments: tuple[str, ...] = ()


def may_refine(attempts: RefinementAttempts, settings: RefinementSettings) -> bool:
    """Whether the run may be refined once more (FR-066)."""
    return attempts.total < settings.max_attempts_total


def count_failure(attempts: RefinementAttempts) -> RefinementAttempts:
    """Return the counts after a refinement without a usable answer (FR-067)."""
    return attempts.model_copy(update={"total": attempts.total + 1})


def admit(
    actions: Sequence[RefinementAction], attempts: RefinementAttempts, settings: RefinementSettings
) -> Admission:
    """Refuse actions beyond the limits (FR-065, FR-066); several actions on one fragment count as
    one attempt."""
    if not actions:
        return Admission(attempts=attempts)
    if not may_refine(attempts, settings):
        all_refused = tuple(RefusedAction(action=action, reason=_RUN_LIMIT) for action in actions)
        return Admission(refused=all_refused, attempts=attempts)
    counts = _count_fragments(actions, attempts)
    most = settings.max_attempts_per_fragment
    exhausted = tuple(fragment for fragment in counts if counts[fragment] > most)
    by_fragment = {**attempts.by_fragment, **counts}
    return Admission(
        admitted=tuple(action for action in actions if action.fragment not in exhausted),
        refused=tuple(_refuse(action) for action in actions if action.fragment in exhausted),
        attempts=attempts.model_copy(
            update={"by_fragment": by_fragment, "total": attempts.total + 1}
        ),
        exhausted_fragments=exhausted,
    )


def _count_fragments(
    actions: Sequence[RefinementAction], attempts: RefinementAttempts
) -> dict[str, int]:
    """Return the attempts on the fragments of these actions, this one included."""
    fragments = (action.fragment for action in actions)
    return {fragment: attempts.by_fragment.get(fragment, 0) + 1 for fragment in fragments}


def _refuse(action: RefinementAction) -> RefusedAction:
    allowed = "as often as refinement.max_attempts_per_fragment allows"
    reason = f"step '{action.fragment}' has been refined {allowed}: it needs manual intervention"
    return RefusedAction(action=action, reason=reason)


def leave_alone(
    attempts: RefinementAttempts,
    issues: Sequence[ValidationIssue],
    actions: Sequence[RefinementAction],
    settings: RefinementSettings,
    is_last: bool = False,
) -> tuple[RefinementAttempts, tuple[ValidationIssue, ...]]:
    """Return the counts after a refinement, and the contradictions left alone too often by now
    (FR-065). A contradiction that is gone, or acted upon, is counted from zero again. `is_last`:
    the run cannot continue, so once is enough."""
    alone = _find_left_alone(issues, actions)
    counts = {fragment: attempts.left_alone.get(fragment, 0) + 1 for fragment in alone}
    enough = 1 if is_last else settings.max_attempts_per_fragment
    going_on = {fragment: count for fragment, count in counts.items() if count < enough}
    given_up = tuple(issue for fragment, issue in alone.items() if fragment not in going_on)
    return attempts.model_copy(update={"left_alone": going_on}), given_up


def _find_left_alone(
    issues: Sequence[ValidationIssue], actions: Sequence[RefinementAction]
) -> dict[str, ValidationIssue]:
    unanswered = find_unanswered(issues, actions, binding="LOW")
    changed = {action.fragment for action in actions}
    return {
        fragment_of(issue): issue
        for issue in issues
        if is_contradiction(issue)
        and issue.issue_id in unanswered
        and fragment_of(issue) not in changed
    }
