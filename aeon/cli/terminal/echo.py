"""The terminal's echo, switched off while a picture is drawn: typed characters, `^C` too, would break the picture."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

_unquiet: list[Callable[[], None]] = []


class HasDescriptor(Protocol):
    """A stream that may be connected to a terminal."""

    def fileno(self) -> int:
        """The stream's descriptor; raises OSError when there is none."""


@contextmanager
def echo_off(stream: HasDescriptor) -> Iterator[None]:
    """Switch the echo off while the block lasts; nothing changes where there is none to switch (no terminal, in the
    background, Windows)."""
    restore = _silenced(stream)
    if restore is None:
        yield
        return
    _unquiet.append(restore)
    try:
        yield
    finally:
        _unquiet.remove(restore)
        restore()


def restore_echo() -> None:
    """Switch the echo on again, for a program that ends inside `echo_off`."""
    for restore in _unquiet:
        restore()


def _silenced(stream: HasDescriptor) -> Callable[[], None] | None:
    try:
        import termios  # not on every system

        number = stream.fileno()
        before = termios.tcgetattr(number)
    except (ImportError, OSError, ValueError, termios.error):
        return None

    def put(flags: int) -> None:
        # A process in the background that changes a terminal is stopped.
        with suppress(OSError, termios.error):
            if os.tcgetpgrp(number) == os.getpgrp():
                attributes = termios.tcgetattr(number)
                attributes[3] = flags
                termios.tcsetattr(number, termios.TCSANOW, attributes)

    put(before[3] & ~termios.ECHO)
    return lambda: put(before[3])
