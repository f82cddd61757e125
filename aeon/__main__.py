"""`python -m aeon` and the console script `aeon`: the same program."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status (`aeon.cli.main.main`).

    Ctrl-C while it is being loaded ends it as Ctrl-C at any other time: with 130 and no traceback. SIGTERM is Ctrl-C.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if in_main_thread and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    before = signal.getsignal(signal.SIGINT)
    waiting = in_main_thread and before is signal.default_int_handler
    if waiting:
        signal.signal(signal.SIGINT, _leave)
    from aeon.cli.main import main as program

    if waiting:
        signal.signal(signal.SIGINT, before)
    return program(arguments)


def _terminate(_signal: int, _frame: FrameType | None) -> None:
    """Whatever Ctrl-C does now; where nothing listens to it, nothing has to be brought to an end."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        _leave(_signal, _frame)
    signal.raise_signal(signal.SIGINT)


def _leave(_signal: int, _frame: FrameType | None) -> None:
    """Nothing has begun that would have to be brought to an end."""
    os.write(2, b"Interrupted.\n")
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
