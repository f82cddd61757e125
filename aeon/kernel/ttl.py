"""TTL: the budget of a run in LLM cycles, as a value."""

from __future__ import annotations

from aeon.kernel.state import ExpirationPoint
from aeon.values import Value


class TTLExpired(Exception):
    """The budget ended. `point` is `mid_phase` when the pass was not yet assessed, else `phase_boundary` (FR-063)."""

    def __init__(self, point: ExpirationPoint) -> None:
        super().__init__(point)
        self.point = point


class TTL(Value):
    """What was allocated and what was used; one unit is one structured call with its retries and repairs."""

    allocated: int
    used: int = 0

    @property
    def remaining(self) -> int:
        """Cycles left; never negative."""
        return max(0, self.allocated - self.used)

    def charged(self) -> TTL:
        """This budget after one more cycle. Raises TTLExpired (`mid_phase`) when nothing is left."""
        if self.remaining == 0:
            raise TTLExpired("mid_phase")
        return self.model_copy(update={"used": self.used + 1})

    def reallocated(self, allocated: int) -> TTL:
        """This budget with another allocation."""
        return self.model_copy(update={"allocated": allocated})

    @property
    def batch_size(self) -> int:
        """How many LLM steps a batch may start, so that two cycles are left to evaluate it."""
        return max(1, self.remaining - 2)
