"""Numbers and delivers a run's events."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime

from aeon.domain.events import Event, Recorded, Subscriber
from aeon.domain.request import CallSite


class EventStream:
    """Numbers a run's events and passes each to its subscribers, one at a time, in the caller's
    thread. Subscribers must be quick, and their exceptions end the run: put others behind
    `aeon.observability.sinks.QueuedObserver`."""

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        self.subscribers = list(subscribers)
        self._lock = threading.RLock()
        self._sequence = 0
        self._parts: dict[int, int] = {}

    def reserve(self) -> int:
        """Return the next sequence number, for a dispatch whose events will follow."""
        with self._lock:
            self._sequence += 1
            return self._sequence

    def reserve_parts(self, site: CallSite, count: int) -> int:
        """Reserve the next `count` parts of a dispatch and return the first."""
        with self._lock:
            first = self._parts.get(site.sequence, -1) + 1
            self._parts[site.sequence] = first + count - 1
            return first

    def emit(self, event: Event, site: CallSite | None = None, part: int | None = None) -> None:
        """Deliver an event; with a `site`, as the next part of that dispatch, or as the reserved
        `part`."""
        with self._lock:
            sequence = site.sequence if site is not None and site.sequence else self.reserve()
            if part is None:
                part = self._parts[sequence] = self._parts.get(sequence, -1) + 1
            recorded = Recorded(sequence, part, datetime.now(UTC).isoformat(), event)
            # A copy: a subscriber may end its own subscription.
            for subscriber in tuple(self.subscribers):
                subscriber(recorded)
