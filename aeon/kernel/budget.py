"""What a run may spend, LLM cycles and seconds."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from aeon.domain.graph import EVALUATION_CYCLES
from aeon.domain.history import Timing


class TTLExpired(Exception):
    """A call is not made, since the budget is spent."""


def batch_size(remaining: int, assessment_cycles: int = 1) -> int:
    """How many LLM steps a batch may start, so that its evaluation can still be paid out of the `remaining` cycles."""
    return max(1, remaining - EVALUATION_CYCLES - (assessment_cycles - 1))


class Stopwatch:
    """Times something from its making on: the start by the clock, the length by the monotonic one."""

    def __init__(self) -> None:
        self._start, self._began = datetime.now(UTC), time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds up to now; at least a microsecond, the finest that is written."""
        return max(1e-6, time.monotonic() - self._began)

    def read(self) -> Timing:
        """Start, this moment, and the seconds between them."""
        seconds = self.seconds
        end = self._start + timedelta(seconds=seconds)
        return Timing(start_time=self._start.isoformat(), end_time=end.isoformat(), duration_seconds=seconds)
