"""How a run's events reach those who listen: numbered, one at a time.

An event is numbered when what it tells of is dispatched, not when it arrives: `sequence` counts the kernel's own
events and dispatches, `part` the events that follow a dispatch (a step's call, its repairs, its end). So the numbers
of a run depend on its answers alone, whatever order parallel steps finish in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aeon.domain.request import CallSite


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its number and the time it happened (ISO 8601, UTC)."""

    sequence: int
    part: int
    time: str
    event: Event


Subscriber = Callable[[Recorded], None]
Emit = Callable[[Event, CallSite | None], None]


class EventStream:
    """Numbers a run's events and hands each to its subscribers, one at a time, in the caller's thread.

    Subscribers are journals and in-memory views that must see everything: they are quick and their errors are the
    run's. Slow or unreliable observers belong behind `aeon.observability.observers.detached`.
    """

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        self._subscribers = tuple(subscribers)
        self._lock = threading.RLock()
        self._sequence = 0
        self._parts: dict[int, int] = {}

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have a subscriber told of everything from now on."""
        with self._lock:
            self._subscribers = (*self._subscribers, subscriber)

    def reserve(self) -> int:
        """The next sequence number, for a dispatch whose events will follow."""
        with self._lock:
            self._sequence += 1
            return self._sequence

    def emit(self, event: Event, site: CallSite | None = None) -> None:
        """Tell what happened; with a `site`, as the next part of that dispatch."""
        with self._lock:
            sequence = site.sequence if site is not None and site.sequence else self.reserve()
            part = self._parts.get(sequence, -1) + 1
            self._parts[sequence] = part
            recorded = Recorded(sequence, part, datetime.now(UTC).isoformat(), event)
            for subscriber in self._subscribers:
                subscriber(recorded)


def ignore(event: Event, site: CallSite | None = None) -> Any:
    """An `Emit` for components used on their own."""
