"""The terminal's own echo: what is typed while a picture is drawn, `^C` too, must not be written into it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

_unquiet: list[Callable[[], None]] = []


class HasDescriptor(Protocol):
    """What is connected to a terminal, perhaps."""

    def fileno(self) -> int:
        """Its descriptor; raises OSError when it has none."""


@contextmanager
def quiet(stream: HasDescriptor) -> Iterator[None]:
    """Nothing that is typed is shown while the block lasts. Where that cannot be had (no terminal, in the background,
    Windows) nothing changes."""
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
    """Undo every `quiet` in force, for a program that ends inside one."""
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
