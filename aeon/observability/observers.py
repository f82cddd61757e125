"""Subscribers that may be slow or fail, wrapped so that neither ends a run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from aeon.domain.errors import ArtefactError
from aeon.domain.events import Recorded, Subscriber
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog


class BestEffortJournal:
    """A journal that never fails a run: after the first error it writes no more, and `warn` is called once.

    What the file holds by then stays.
    """

    def __init__(self, journal: EventLog | CycleLog, warn: Callable[[str], None]) -> None:
        self._journal, self._warn, self._failed = journal, warn, False

    def __call__(self, recorded: Recorded) -> None:
        """Write one event, unless an earlier one could not be written."""
        if not self._failed:
            self._attempt(lambda: self._journal(recorded))

    def close(self) -> None:
        """Close the file."""
        self._attempt(self._journal.close)

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except ArtefactError as error:
            if not self._failed:
                self._warn(f"{error.message}; this journal ends here, the run does not")
            self._failed = True


class QueuedObserver:
    """A subscriber that is called in a thread of its own, through a queue of at most `maxsize` events.

    Neither blocks nor raises. `dropped` counts the events that found the queue full, `failed` the calls that raised, of
    which `error` is the first exception. Close it when the run is over.
    """

    def __init__(self, subscriber: Subscriber, maxsize: int = 10_000) -> None:
        self.dropped = self.failed = 0
        self.error: Exception | None = None
        self._subscriber, self._maxsize = subscriber, maxsize
        self._waiting: SimpleQueue[Recorded | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="aeon-observer", daemon=True)
        self._thread.start()

    def __call__(self, recorded: Recorded) -> None:
        """Queue an event, or count it as dropped."""
        if self._waiting.qsize() >= self._maxsize:
            self.dropped += 1
        else:
            self._waiting.put(recorded)

    def close(self, timeout: float = 2.0) -> None:
        """Give the observer `timeout` seconds for the events that wait; those that are left count as dropped."""
        self._waiting.put(None)
        self._thread.join(timeout)
        self.dropped += max(0, self._waiting.qsize() - 1)

    def _serve(self) -> None:
        while (recorded := self._waiting.get()) is not None:
            try:
                self._subscriber(recorded)
            except Exception as error:
                self.error = self.error or error
                self.failed += 1
