"""Messages for the user on standard error, written to a descriptor that no tool can close.

Imports nothing that is slow to load, for `--version` and `help`.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from aeon.cli.terminal.streams import duplicate, restore
from aeon.domain.errors import AeonError

_ERASED = "\r\x1b[2K"
DUMB = ("", "dumb", "unknown")

_own: list[TextIO] = []
_passing: list[TextIO] = []


def tolerate_encoding(*streams: TextIO) -> None:
    """Make the streams write characters that their encoding lacks as backslash escapes."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


@contextlib.contextmanager
def own_stderr() -> Iterator[TextIO]:
    """Duplicate standard error while the block lasts, for `say`: a tool that closes `sys.stderr`, or file descriptor 2,
    silences only itself. Both are restore afterwards. A block inside another one uses the outer stream."""
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
        sys.stderr = restore(usual, own, number)


def say(text: str) -> None:
    """Write a line on standard error; errors of writing are suppressed."""
    clear_passing()
    stream = _own[-1] if _own else sys.stderr
    with contextlib.suppress(OSError, ValueError):
        # One write, so that lines of threads do not mix.
        stream.write(f"{text}\n")
        stream.flush()


def say_in_passing(text: str) -> None:
    """Show a line on a terminal until the next message or `clear_passing`; nothing elsewhere."""
    stream = _own[-1] if _own else sys.stderr
    with contextlib.suppress(OSError, ValueError):
        if stream.isatty() and os.environ.get("TERM", "").lower() not in DUMB:
            stream.write(text)
            stream.flush()
            _passing.append(stream)


def clear_passing() -> None:
    """Erase the line that `say_in_passing` wrote."""
    while _passing:
        with contextlib.suppress(OSError, ValueError):
            stream = _passing.pop()
            stream.write(_ERASED)
            stream.flush()


def report(error: AeonError) -> None:
    """Write an error and its hint on standard error."""
    say(f"Error: {error.message}")
    if error.hint:
        say(error.hint)


def occupy_streams() -> None:
    """Open the null device for each closed standard stream: otherwise the next opened file, a journal or a database,
    would get its number, and its output."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
