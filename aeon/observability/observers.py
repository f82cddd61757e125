"""Subscribers that may be slow or fail, wrapped so that neither ends a run."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Protocol

from aeon.domain.errors import ArtefactError
from aeon.domain.events import Recorded, Subscriber


class Journal(Protocol):
    """A subscriber that writes a file. Both methods raise ArtefactError when the file cannot be written."""

    def __call__(self, recorded: Recorded) -> None:
        """Write one event."""

    def close(self) -> None:
        """Close the file."""


class BestEffortJournal:
    """A journal that never fails a run: after the first error it writes no more, and `warn` is called once.

    What the file holds by then stays.
    """

    def __init__(self, journal: Journal, warn: Callable[[str], None]) -> None:
        self._journal = journal
        self._warn = warn
        self._lock = threading.Lock()
        self._failed = False

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
            with self._lock:
                first, self._failed = not self._failed, True
            if first:
                self._warn(f"{error.message}; this journal ends here, the run does not")


class QueuedObserver:
    """A subscriber that is called in a thread of its own, through a queue of at most `maxsize` events.

    Neither blocks nor raises. `dropped` counts the events that found the queue full or came after `close`, `failed` the
    calls that raised, of which `error` is the first exception. Close it when the run is over.
    """

    def __init__(self, subscriber: Subscriber, maxsize: int = 10_000) -> None:
        self.dropped = 0
        self.failed = 0
        self.error: Exception | None = None
        self._subscriber = subscriber
        self._maxsize = maxsize
        self._waiting: deque[Recorded] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._serve, name="aeon-observer", daemon=True)
        self._thread.start()

    def __call__(self, recorded: Recorded) -> None:
        """Queue an event, or count it as dropped."""
        with self._changed:
            if self._closed or len(self._waiting) >= self._maxsize:
                self.dropped += 1
                return
            self._waiting.append(recorded)
            self._changed.notify()

    def close(self, timeout: float = 2.0) -> None:
        """Take no more events and give the observer `timeout` seconds for those that wait; what is left is dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout)
        with self._changed:
            self.dropped += len(self._waiting)
            self._waiting.clear()

    def __enter__(self) -> QueuedObserver:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _next(self) -> Recorded | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closed)
            return self._waiting.popleft() if self._waiting else None

    def _serve(self) -> None:
        while (recorded := self._next()) is not None:
            try:
                self._subscriber(recorded)
            except Exception as error:
                self.error = self.error or error
                self.failed += 1
