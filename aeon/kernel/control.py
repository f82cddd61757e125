"""Stopping a run from outside."""


class RunControl:
    """A stop switch for any thread or signal handler; the run ends at its next safe boundary."""

    stop_requested = False
    reason = ""
    """The reason, if no person asked for it."""

    def request_stop(self, reason: str = "") -> None:
        """Ask the run to stop: it starts nothing new, and running work gets its grace period."""
        if not self.stop_requested:
            self.reason = reason
        self.stop_requested = True
