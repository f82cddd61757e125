"""Ctrl-C: the first ends the run at a safe boundary, the second ends the program at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from aeon.cli.status import INTERRUPTED
from aeon.kernel.control import RunControl

_STOPPING = b"\nStopping at the next safe boundary; what there is will be written. Ctrl-C again ends at once.\n"
_SHOW_CURSOR = b"\x1b[?25h\x1b[0m\n"


@contextmanager
def interruptible() -> Iterator[RunControl]:
    """A control that Ctrl-C throws while the block lasts; outside the main thread nothing throws it."""
    control = RunControl()
    if threading.current_thread() is not threading.main_thread():
        yield control
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if control.stop_requested:
            end_at_once()
        control.request_stop()
        _tell(_STOPPING)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield control
    finally:
        signal.signal(signal.SIGINT, before)


def end_at_once() -> None:
    """Leave without waiting for anything, the terminal as it was found."""
    if sys.stderr.isatty():
        _tell(_SHOW_CURSOR)
    os._exit(INTERRUPTED)


def _tell(text: bytes) -> None:
    """Straight to standard error: the signal may have come in the middle of a write to the stream."""
    with suppress(OSError):
        os.write(2, text)
