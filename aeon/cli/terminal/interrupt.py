"""Ctrl-C: the first ends the run at a safe boundary, the second ends the program at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType

from aeon.cli.terminal.echo import restore_echo
from aeon.cli.terminal.status import INTERRUPTED
from aeon.kernel.control import RunControl

_SHOW_CURSOR = "\x1b[?25h\x1b[0m"


_STOPPING = "Stopping at the next safe boundary; what there is will be written. Ctrl-C again ends at once."


@dataclass
class Interruption:
    """The control that Ctrl-C stops, and the messages for it.

    `first` returns the message for the first Ctrl-C, empty where the screen shows it; `last` the one before the second
    ends the program. Both are called in a signal handler: they take no lock and write nothing.
    """

    control: RunControl = field(default_factory=RunControl)
    first: Callable[[], str] = lambda: _STOPPING
    last: Callable[[], str] = str


@contextmanager
def handle_interrupts() -> Iterator[Interruption]:
    """Ctrl-C requests a stop of the control while the block lasts; outside the main thread Ctrl-C is not handled."""
    interruption = Interruption()
    if threading.current_thread() is not threading.main_thread():
        yield interruption
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if interruption.control.stop_requested:
            end_at_once(interruption.last)
        interruption.control.request_stop()
        _write(_message(interruption.first, _STOPPING))

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield interruption
    finally:
        signal.signal(signal.SIGINT, before)


def end_at_once(last: Callable[[], str] = str) -> None:
    """Leave without waiting for anything, the terminal restored; `last` returns the message before."""
    message = _message(last, "")
    restore_echo()
    with suppress(Exception):
        if sys.stderr.isatty():
            message = f"{_SHOW_CURSOR}\n{message}"
    _write(message)
    os._exit(INTERRUPTED)


def _message(text: Callable[[], str], otherwise: str) -> str:
    """The text; `otherwise` when it cannot be made in the state that the signal found the program in."""
    with suppress(Exception):
        return text()
    return otherwise


def _write(text: str) -> None:
    """Straight to standard error: the signal may have come in the middle of a write to the stream."""
    if text:
        with suppress(OSError):
            os.write(2, f"\n{text}\n".encode(errors="replace"))
