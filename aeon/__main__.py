"""`python -m aeon` and the console script `aeon`: the same program."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    # `python -m` puts the working directory first: a stranger's modules would take the place of libraries. A person's
    # own, which their configuration names, are found there all the same (`aeon.files.reference`).
    _program = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    if sys.path[0] != _program:
        del sys.path[0]

import signal
import threading
from collections.abc import Sequence
from types import FrameType


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status (`aeon.cli.main.main`).

    Ctrl-C while it is being loaded ends it as Ctrl-C at any other time: with 130 and no traceback. SIGTERM is Ctrl-C,
    and so is SIGHUP, a terminal that was closed, unless it is to be ignored (`nohup`).
    """
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):  # there is no SIGHUP on Windows
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _terminate)
    try:
        from aeon.cli.main import main as program

        return program(arguments)
    except KeyboardInterrupt:
        os.write(2, b"Interrupted.\n")
        return 130


def _terminate(number: int, frame: FrameType | None) -> None:
    """Whatever Ctrl-C does now; where that is ignored, the program ends all the same."""
    if number != signal.SIGTERM:
        signal.signal(
            number, signal.SIG_IGN
        )  # both the terminal and the shell hang up: that is no second Ctrl-C
    on_interrupt = signal.getsignal(signal.SIGINT)
    if not callable(on_interrupt):
        raise KeyboardInterrupt
    on_interrupt(number, frame)


if __name__ == "__main__":
    sys.exit(main())
