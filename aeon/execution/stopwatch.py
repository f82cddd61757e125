"""Times a run, its passes and phases."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from aeon.domain.history import Timing


class Stopwatch:
    """Times something from its making on: the start by the clock, the length by the monotonic
    one."""

    def __init__(self) -> None:
        self._start = datetime.now(UTC)
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds up to now; at least a microsecond, the finest that is written."""
        return max(1e-6, time.monotonic() - self._began)

    def read(self) -> Timing:
        """Start, this moment, and the seconds between them."""
        seconds = self.seconds
        end = self._start + timedelta(seconds=seconds)
        return Timing(
            start_time=self._start.isoformat(), end_time=end.isoformat(), duration_seconds=seconds
        )
