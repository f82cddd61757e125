"""The steps of a pass as it carried them out."""

from __future__ import annotations

from collections.abc import Iterator

from aeon.domain.history import ExecutionPass
from aeon.domain.plan import PlanStep

COMPARED = (
    "description",
    "dependencies",
    "tool",
    "arguments",
    "handoff_to_next",
    "provides",
    "status",
    "replaced_by",
)
"""The fields of a step in which two passes are compared."""


def steps_carried_out(record: ExecutionPass) -> Iterator[PlanStep]:
    """The steps that a pass began with, as they were at its end, before its refinement changed
    them."""
    ended = {step.step_id: step for step in record.steps}
    for change in record.refinement.changes if record.refinement else ():
        if change.before is not None:
            ended[change.step_id] = change.before
    for step in record.plan_state.steps if record.plan_state else record.steps:
        yield ended.get(step.step_id, step)
