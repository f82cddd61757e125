"""How a run's events are numbered and delivered, and the answers that are read from them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from aeon.domain.events import CallAnswered, Event, Recorded, RepairFinished, Subscriber, ToolCalled
from aeon.domain.history import LLMOutput
from aeon.domain.request import CallSite


class EventStream:
    """Numbers a run's events and hands each to its subscribers, one at a time, in the caller's thread. These must be
    quick, and their exceptions end the run: others belong behind `aeon.observability.sinks.QueuedObserver`."""

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


class Answers:
    """What model, supervisor and tools answered in a run."""

    def __init__(self) -> None:
        self._recorded: list[Recorded] = []

    def note(self, recorded: Recorded) -> None:
        """Keep an event that is an answer."""
        if isinstance(recorded.event, CallAnswered | RepairFinished | ToolCalled):
            self._recorded.append(recorded)

    @property
    def are_of_model(self) -> bool:
        """Whether the model has answered at all."""
        return any(isinstance(recorded.event, CallAnswered) for recorded in self._recorded)

    def by_kind(self) -> dict[str, tuple[Any, ...]]:
        """The answers by their field of `RunState`, in order of dispatch."""
        found = [each.event for each in sorted(self._recorded, key=attrgetter("sequence", "part"))]
        outputs = (event for event in found if isinstance(event, CallAnswered))
        return {
            "llm_outputs": tuple(
                LLMOutput(
                    call=event.call,
                    cycle=event.site.cycle,
                    step_id=event.site.step_id,
                    text=event.text,
                )
                for event in outputs
            ),
            "supervisor_actions": tuple(
                event.record for event in found if isinstance(event, RepairFinished)
            ),
            "tool_history": tuple(event.result for event in found if isinstance(event, ToolCalled)),
        }
