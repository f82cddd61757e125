"""When the process of a command line looks for garbage. What it makes until the first answer is
modules and classes, which are none: to look through them takes a tenth of a start."""

from __future__ import annotations

import gc

from aeon.domain.events import CallAnswered, Recorded
from aeon.execution.event_stream import EventStream

_AT_START = 200_000
_AFTERWARDS = 50_000


def put_off_collection() -> None:
    """Look for garbage only once there is more than a start makes."""
    gc.set_threshold(_AT_START)


def resume_collection() -> None:
    """Look for garbage from now on, and among what a process has made by the first time not at
    all."""
    gc.set_threshold(_AFTERWARDS)
    if not gc.get_freeze_count():
        gc.freeze()


def resume_at_first_answer(stream: EventStream) -> None:
    """Resume the collection of garbage with a run's first answer."""

    def resume(recorded: Recorded) -> None:
        if isinstance(recorded.event, CallAnswered):
            stream.subscribers.remove(resume)
            resume_collection()

    stream.subscribers.append(resume)
