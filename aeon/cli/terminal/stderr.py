"""Standard error by a descriptor of the program's own, and the lines that are written there for the person.

Imports nothing that takes time to load: it serves `--version` and `help` too.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from aeon.cli.terminal.streams import duplicate, restored
from aeon.domain.errors import AeonError

_ERASED = "\r\x1b[2K"
DUMB = ("", "dumb", "unknown")

_own: list[TextIO] = []
_passing: list[TextIO] = []


def tolerate_encoding(*streams: TextIO) -> None:
    """Make the streams write what their encoding does not have as backslash escapes, instead of failing."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def own_stderr() -> Iterator[TextIO]:
    """Standard error by a descriptor of the program's own: a tool that closes `sys.stderr`, or file descriptor 2,
    silences itself only. `say` writes there while the block lasts; afterwards both are as they were. Inside another
    such block it is that block's."""
    if _own:
        yield _own[-1]
        return
    usual = sys.stderr
    own = duplicate(usual)
    if own is None:
        yield usual
        return
    number = usual.fileno()
    _own.append(own)
    try:
        yield own
    finally:
        _own.remove(own)
        sys.stderr = restored(usual, own, number)


def say(text: str) -> None:
    """A line for the person, on standard error; nobody there to read it is no error."""
    clear_passing()
    stream = _own[-1] if _own else sys.stderr
    with contextlib.suppress(OSError, ValueError):
        # One write, so that no other thread's lines come in between.
        stream.write(f"{text}\n")
        stream.flush()


def say_in_passing(text: str) -> None:
    """A line on a terminal that gives way to what is said next, or to `clear_passing`; nothing elsewhere."""
    stream = _own[-1] if _own else sys.stderr
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty() and os.environ.get("TERM", "").lower() not in DUMB:
            stream.write(text)
            stream.flush()
            _passing.append(stream)


def clear_passing() -> None:
    """Take the line away that `say_in_passing` left."""
    while _passing:
        with contextlib.suppress(OSError, ValueError):
            stream = _passing.pop()
            stream.write(_ERASED)
            stream.flush()


def report(error: AeonError) -> None:
    """What went wrong, and what can be done."""
    say(f"Error: {error.message}")
    if error.hint:
        say(error.hint)


def occupy_streams() -> None:
    """Put nothing in the place of standard streams that are closed: else the next file that is opened, a journal or a
    database, gets their number and what is meant for them."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
