"""Observers that may be slow or fail: kept at the end of a queue, where neither can touch a run."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType

from aeon.domain.events import Recorded, Subscriber


class Detached:
    """A subscriber that is called in a thread of its own, through a bounded queue.

    Neither blocks nor raises. `dropped` counts the events that found the queue full or came after `close`, `failed` the
    calls that raised.
    """

    def __init__(self, subscriber: Subscriber, maxsize: int) -> None:
        self.dropped = 0
        self.failed = 0
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

    def __enter__(self) -> Detached:
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
            except Exception:
                self.failed += 1


def detached(subscriber: Subscriber, maxsize: int = 10_000) -> Detached:
    """`subscriber` behind a queue of at most `maxsize` events; close it when the run is over."""
    return Detached(subscriber, maxsize)
