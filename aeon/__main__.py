"""`python -m aeon` and the console script `aeon`: the same program."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109
    # `python -m` puts the working directory first: a stranger's modules would take the place of
    # libraries. A person's own, which their configuration names, are found there all the same
    # (`aeon.files.reference`).
    _program = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    if sys.path[0] != _program:
        del sys.path[0]

_INTERRUPTED = 130

# Without memory a library in Rust panics, and waits for ever for the memory that a backtrace takes.
os.environ["RUST_BACKTRACE"] = "0"

try:
    import atexit
    import signal
    import threading
except KeyboardInterrupt:  # no handler is set yet
    os.write(2, b"Interrupted.\n")
    raise SystemExit(_INTERRUPTED) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status (`aeon.cli.main.main`).

    Ctrl-C while it is being loaded, or once it is done and Python takes itself down, ends it as
    Ctrl-C at any other time: with 130 and no traceback. SIGTERM is Ctrl-C, and so is SIGHUP, a
    terminal that was closed, unless it is to be ignored (`nohup`).
    """
    if threading.current_thread() is not threading.main_thread():
        return _run(arguments)
    # Registered first, so carried out last.
    atexit.register(_set_handlers, signal.SIG_IGN)
    _set_handlers(_terminate, "SIGTERM", "SIGHUP")
    try:
        return _run(arguments)
    finally:
        _set_handlers(_leave)
        # After a Ctrl-C within a text that is executed, as dataclasses are, Python would end itself
        # by SIGINT, though it was handled: until another text is executed.
        exec("")


def _run(arguments: Sequence[str] | None) -> int:
    try:
        from aeon.cli.main import main as program

        return program(arguments)
    except KeyboardInterrupt:
        os.write(2, b"Interrupted.\n")
        return _INTERRUPTED


def _set_handlers(
    handler: Callable[[int, FrameType | None], None] | signal.Handlers,
    *names: str,
) -> None:
    """Let signals that ask for an end be handled so, but for those that are ignored."""
    for name in names or ("SIGINT", "SIGTERM", "SIGHUP"):  # there is no SIGHUP on Windows
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


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


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Nothing is left that could be interrupted but Python's own end."""
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    sys.exit(main())
