"""TTL: the budget of a run in LLM cycles, as a value."""

from __future__ import annotations

from aeon.domain.values import Value


class TTLExpired(Exception):
    """A call is not made, since the budget is spent."""


class TTL(Value):
    """What was allocated and what was used; one unit is one structured call with its retries and repairs."""

    allocated: int
    used: int = 0

    @property
    def remaining(self) -> int:
        """Cycles left; never negative."""
        return max(0, self.allocated - self.used)

    def charged(self) -> TTL:
        """This budget after one more cycle. Raises TTLExpired when nothing is left."""
        if self.remaining == 0:
            raise TTLExpired
        return self.model_copy(update={"used": self.used + 1})

    def reallocated(self, allocated: int) -> TTL:
        """This budget with another allocation."""
        return self.model_copy(update={"allocated": allocated})

    @property
    def batch_size(self) -> int:
        """How many LLM steps a batch may start, so that two cycles are left to evaluate it."""
        return max(1, self.remaining - 2)
