"""How a run's events are numbered and delivered, and the log of calls that is read from them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from aeon.domain.events import CallAnswered, Event, Recorded, RepairFinished, Subscriber, ToolCalled
from aeon.domain.history import LLMOutput
from aeon.domain.request import CallSite


class EventStream:
    """Numbers a run's events and hands each to its subscribers, one at a time, in the caller's thread.

    Subscribers must be quick; their exceptions end the run. Slow or unreliable observers belong behind
    `aeon.observability.observers.QueuedObserver`.
    """

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        self.subscribers = list(subscribers)
        self._lock = threading.RLock()
        self._sequence = 0
        self._parts: dict[int, int] = {}

    def reserve(self) -> int:
        """The next sequence number, for a dispatch whose events will follow."""
        with self._lock:
            self._sequence += 1
            return self._sequence

    def emit(self, event: Event, site: CallSite | None = None) -> None:
        """Deliver an event; with a `site`, as the next part of that dispatch."""
        with self._lock:
            sequence = site.sequence if site is not None and site.sequence else self.reserve()
            part = self._parts[sequence] = self._parts.get(sequence, -1) + 1
            recorded = Recorded(sequence, part, datetime.now(UTC).isoformat(), event)
            for subscriber in tuple(self.subscribers):
                subscriber(recorded)


class CallLog:
    """A subscriber that stores what model, supervisor and tools answered; may be read from any thread."""

    def __init__(self) -> None:
        self._recorded: list[Recorded] = []
        self.has_answers = False

    def __call__(self, recorded: Recorded) -> None:
        """Store the event of an answer, a repair or a tool call."""
        event = recorded.event
        if isinstance(event, CallAnswered | RepairFinished | ToolCalled):
            self._recorded.append(recorded)
        if isinstance(event, CallAnswered) or (isinstance(event, ToolCalled) and event.result.error is None):
            self.has_answers = True

    def fields(self) -> dict[str, Any]:
        """The stored events as fields of a RunState, in order of dispatch."""
        found = [r.event for r in sorted(self._recorded, key=lambda r: (r.sequence, r.part))]
        return {
            "llm_outputs": tuple(
                LLMOutput(call=event.call, cycle=event.site.cycle, step_id=event.site.step_id, text=event.text)
                for event in found
                if isinstance(event, CallAnswered)
            ),
            "supervisor_actions": tuple(event.record for event in found if isinstance(event, RepairFinished)),
            "tool_history": tuple(event.result for event in found if isinstance(event, ToolCalled)),
        }
