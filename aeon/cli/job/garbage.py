"""When the process of a command line collects garbage. Until the first answer it makes modules and
classes, which are not garbage: scanning them takes a tenth of a start."""

from __future__ import annotations

import gc

from aeon.domain.events import CallAnswered, Recorded
from aeon.execution.event_stream import EventStream

_AT_START = 200_000
_AFTERWARDS = 50_000


def put_off_collection() -> None:
    """Collect garbage only once there are more objects than a start makes."""
    gc.set_threshold(_AT_START)


def resume_collection() -> None:
    """Collect garbage from now on, and on the first call exempt all present objects."""
    gc.set_threshold(_AFTERWARDS)
    # Only once: what a run has under way would never be collected.
    if not gc.get_freeze_count():
        gc.freeze()


def resume_at_first_answer(stream: EventStream) -> None:
    """Resume the collection of garbage with a run's first answer."""

    def resume(recorded: Recorded) -> None:
        if isinstance(recorded.event, CallAnswered):
            stream.subscribers.remove(resume)
            resume_collection()

    stream.subscribers.append(resume)
