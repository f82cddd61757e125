"""How a run is asked to stop from outside."""


class RunControl:
    """A switch that may be thrown from any thread or signal handler; the run ends at its next safe boundary."""

    stop_requested = False
    reason = ""
    """Why, where no person asked for it."""

    def request_stop(self, reason: str = "") -> None:
        """Ask the run to stop: it starts nothing new, and running work gets its grace."""
        if not self.stop_requested:
            self.reason = reason
        self.stop_requested = True


class Either(RunControl):
    """Stops when one of two is stopped."""

    def __init__(self, one: RunControl, other: RunControl) -> None:
        self._both = one, other

    @property
    def stop_requested(self) -> bool:  # type: ignore[override]
        """Whether one of them is stopped."""
        return any(control.stop_requested for control in self._both)
