"""How the program ends: its exit statuses for every outcome, and Ctrl-C, with the terminal's echo
of it. The first Ctrl-C ends a run at a safe boundary, the second the program at once."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TextIO

from aeon.cli.terminal.streams import hide_keys, say
from aeon.domain.errors import AeonError, ConfigError, list_causes
from aeon.files.shortage import find_shortage

if TYPE_CHECKING:
    from aeon.batch.runner import GroupControl
    from aeon.kernel.control import RunControl

DONE = 0
FAILED = 1
USAGE = 2
NOT_CONVERGED = 3
INTERRUPTED = 130
BELOW = 4
NOT_MEASURED = 5
"""The exit statuses of a measurement that missed its threshold, or is incomplete."""
WAITING = 6
"""The exit status of a run that waits for a person (`interaction=defer`)."""
_SHOW_CURSOR = "\x1b[?25h\x1b[0m"
_silenced: dict[int, list[Any]] = {}
"""The attributes of terminals as they were before, by descriptor."""


def status_of_all(control: GroupControl, statuses: Collection[int]) -> int:
    """Return the exit status of several rows or jobs: the worst of theirs; 130 where a person
    stopped them. Where they were stopped for another reason it is 3 at best, or 1 if none could
    continue."""
    if control.is_interrupted:
        return INTERRUPTED
    ranked = (INTERRUPTED, FAILED, USAGE, WAITING, NOT_CONVERGED)
    worst = next((status for status in ranked if status in statuses), DONE)
    if control.stop_requested and worst in (DONE, NOT_CONVERGED):
        return FAILED if control.has_failed else NOT_CONVERGED
    return worst


def run_guarded(program: Callable[[], int], say: Callable[[str], None] = say) -> int:
    """Run a program and return its exit status, however it ends. AeonError is reported with its
    hint: 2 when it is a ConfigError, else 1; any other exception is 1. A traceback is shown only
    when HYDRA_FULL_ERROR is set. `say` writes the report."""
    try:
        return program()
    except SystemExit as end:
        return int(end.code or DONE) if isinstance(end.code, int | None) else FAILED
    except (Exception, KeyboardInterrupt) as error:
        if _is_interruption(error):
            say("Interrupted.")
            return INTERRUPTED
        if os.environ.get("HYDRA_FULL_ERROR", "0") not in ("", "0"):
            traceback.print_exc()
        say(hide_keys(f"Error: {_explain(error)}"))
        return USAGE if isinstance(error, ConfigError) else FAILED


def _explain(error: BaseException) -> str:
    """Describe the error, and below it a remedy."""
    shortage = None if isinstance(error, ConfigError) else find_shortage(error)
    if shortage is not None:
        message = error.message if isinstance(error, AeonError) else shortage.message
        cause = "" if shortage.message in message else f" ({shortage.message})"
        return f"{message}{cause}\n{shortage.hint}"
    if isinstance(error, AeonError):
        return f"{error.message}\n{error.hint}".rstrip("\n")
    problem = f"Aeon failed unexpectedly: {type(error).__name__}: {error}"
    return f"{problem}\nHYDRA_FULL_ERROR=1 in the environment shows where."


def _is_interruption(error: BaseException | None) -> bool:
    """Check whether it is a Ctrl-C, or an exception that a library made of one, as OmegaConf
    does."""
    return any(isinstance(each, KeyboardInterrupt) for each in list_causes(error))


@contextmanager
def handle_interrupts(
    control: RunControl, first: Callable[[], str], last: Callable[[], str]
) -> Iterator[None]:
    """While the block lasts, the first Ctrl-C stops the control and shows `first()`, the second
    shows `last()` and ends the program at once; outside the main thread Ctrl-C is not handled. Both
    are called in a signal handler: they take no lock and write nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        if control.stop_requested:
            _restore_echo()
            _write(last, _SHOW_CURSOR if os.isatty(2) else "")
            # At once: a normal exit waits for threads, and these for a provider.
            os._exit(INTERRUPTED)
        control.request_stop()
        _write(first)

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _write(message: Callable[[], str], before: str = "") -> None:
    """Write straight to standard error: the signal may have interrupted a write to the stream."""
    with suppress(Exception):  # the signal may have come in any state of the program
        if text := message():
            os.write(2, f"{before}\n{text}\n".encode(errors="replace"))


@contextmanager
def echo_off(stream: TextIO) -> Iterator[None]:
    """Switch the terminal's echo off while the block lasts: typed characters, `^C` too, would break
    a picture."""
    with suppress(ImportError, OSError, ValueError):
        import termios  # not on every system

        number = stream.fileno()
        # The system stops a background process that changes a terminal.
        if os.isatty(number) and os.tcgetpgrp(number) == os.getpgrp():
            _silenced[number] = termios.tcgetattr(number)
            quiet = termios.tcgetattr(number)
            quiet[3] &= ~termios.ECHO
            termios.tcsetattr(number, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        _restore_echo()


def _restore_echo() -> None:
    while _silenced:
        import termios

        number, before = _silenced.popitem()
        with suppress(OSError, termios.error):
            termios.tcsetattr(number, termios.TCSANOW, before)
