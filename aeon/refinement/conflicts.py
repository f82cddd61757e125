"""Conflicts between a review's proposals and a refinement's actions (FR-079), found by comparing
both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aeon.domain.refinement import ACTIONS, RefinementAction, RefinementRecord, StepChange
from aeon.domain.report import ProposedRepair, ValidationIssue
from aeon.domain.values import JsonMapping
from aeon.plan.draft import kind_of

_EXACT = ("tool", "agent", "arguments", "dependencies", "provides")
# Different wording may mean the same, which the program does not judge.
_WORDED = ("description", "handoff_to_next")
_NO_CHANGE = StepChange(step_id="", before=None, after=None)


def find_conflicts(
    record: RefinementRecord, issues: Sequence[ValidationIssue]
) -> Iterator[tuple[RefinementAction, ValidationIssue]]:
    """Yield the accepted actions that differ from the proposed repair of an issue: the planner
    declares it, or both concern one step and differ."""
    repairs = [(issue, issue.proposed_repair) for issue in issues if issue.proposed_repair]
    changed = {change.step_id: change for change in record.changes}
    for action in record.accepted:
        change = changed.get(action.fragment, _NO_CHANGE)
        for issue, repair in repairs:
            is_declared = issue.issue_id in action.overrides_issues
            is_same_target = repair.target == action.fragment
            if is_declared or (is_same_target and _differs(repair, action, change)):
                yield action, issue


def _differs(repair: ProposedRepair, action: RefinementAction, change: StepChange) -> bool:
    """Whether a step's proposed repair names another action than the one taken, or other values of
    its fields."""
    named = repair.action.strip().upper()
    if named in ACTIONS and named not in (action.action_type, kind_of(action)):
        return True
    if action.rule.decomposes or not repair.changes:
        return False
    if action.new_step is None:
        return any(name in repair.changes for name in (*_EXACT, *_WORDED))
    then = change.before.model_dump(mode="json") if change.before else {}
    now = (change.after or action.new_step).model_dump(mode="json")
    return _has_other_values(repair.changes, then, now)


def _has_other_values(proposed: JsonMapping, then: JsonMapping, now: JsonMapping) -> bool:
    for name in _EXACT:
        if name in proposed and proposed[name] != now[name]:
            return True
    return any(
        name in proposed and proposed[name] != now[name] and now[name] == then.get(name)
        for name in _WORDED
    )
