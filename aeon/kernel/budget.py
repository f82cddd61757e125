"""What a run may spend: LLM cycles and seconds, unless it is asked to stop."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from aeon.domain.errors import AeonError, LimitReached, StopRequested
from aeon.domain.graph import EVALUATION_CYCLES
from aeon.domain.history import Timing
from aeon.kernel.control import RunControl


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


class Boundary:
    """Where a run stops: when `control` was asked to stop it, or after `max_seconds`."""

    def __init__(self, control: RunControl, max_seconds: float | None) -> None:
        self.watch = Stopwatch()
        self._control, self._max_seconds = control, max_seconds

    def is_reached(self) -> bool:
        """Whether nothing new may start."""
        return self._end() is not None

    def check(self) -> None:
        """Raise StopRequested or LimitReached when nothing new may start."""
        if end := self._end():
            raise end

    def _end(self) -> AeonError | None:
        if self._control.stop_requested:
            return StopRequested("the run was asked to stop")
        if self._max_seconds is not None and self.watch.seconds >= self._max_seconds:
            return LimitReached("max_seconds", f"the run has taken {self._max_seconds:g} seconds")
        return None
