"""How a run is asked to stop from outside."""


class RunControl:
    """A switch that may be thrown from any thread or signal handler; the run ends at its next safe
    boundary."""

    stop_requested = False
    reason = ""
    """Why, where no person asked for it."""

    def request_stop(self, reason: str = "") -> None:
        """Ask the run to stop: it starts nothing new, and running work gets its grace."""
        if not self.stop_requested:
            self.reason = reason
        self.stop_requested = True
