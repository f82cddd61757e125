"""What a run may spend in LLM cycles."""

from __future__ import annotations

from aeon.domain.graph import EVALUATION_CYCLES


class TTLExpired(Exception):
    """A call is not made, since the budget is spent."""


def batch_size(remaining: int, assessment_cycles: int = 1) -> int:
    """How many LLM steps a batch may start, so that its evaluation can still be paid out of the
    `remaining` cycles."""
    return max(1, remaining - EVALUATION_CYCLES - (assessment_cycles - 1))
