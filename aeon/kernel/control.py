"""How a run is asked to stop from outside."""


class RunControl:
    """A switch that may be thrown from any thread or signal handler; the run ends at its next safe boundary."""

    stop_requested = False

    def request_stop(self) -> None:
        """Ask the run to stop: it starts nothing new, and running work gets its grace."""
        self.stop_requested = True
