"""Standard output by a descriptor of the program's own: what is said there arrives, whatever tools do to it."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from aeon.domain.errors import ArtefactError

_UNWRITABLE = (errno.EPIPE, errno.ENOSPC, errno.EIO)
_own: list[TextIO | None] = []


@contextlib.contextmanager
def own_stdout() -> Iterator[None]:
    """A tool that redirects `sys.stdout`, closes it, or closes file descriptor 1, takes nothing but its own output.

    `put` writes to the program's own descriptor while the block lasts; afterwards all are as they were. Inside another
    such block it is that block's.
    """
    if _own:
        yield
        return
    usual = sys.stdout
    own = duplicate(usual) if usual is not None else None
    _own.append(own or usual)
    try:
        yield
    finally:
        _own.clear()
        sys.stdout = usual
        if own is not None:
            sys.stdout = restored(usual, own, 1)


@contextlib.contextmanager
def answer_alone_on_stdout() -> Iterator[None]:
    """What anything in this process, or a process of its own, writes to file descriptor 1 goes to standard error; what
    `put` is given goes to standard output all the same.

    Standard output is back afterwards. Without one of the two there is nothing to do.
    """
    with own_stdout():
        usual = sys.stdout
        try:
            kept = _put_aside()
        except (AttributeError, OSError, ValueError):
            kept = None
        try:
            yield
        finally:
            with contextlib.suppress(AttributeError, OSError, ValueError):
                sys.stdout.flush()
            with contextlib.suppress(AttributeError, OSError, ValueError):
                usual.flush()
            sys.stdout = usual
            if kept is not None:
                os.dup2(kept, 1)
                os.close(kept)


def _put_aside() -> int:
    """A new number for what file descriptor 1 was, which is standard error from now on."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    return kept


def stdout() -> TextIO | None:
    """Where `put` writes; None when standard output is closed."""
    return _own[-1] if _own else sys.stdout


def put(text: str) -> None:
    """Text on standard output, at once, with a newline at its end.

    Raises ArtefactError when standard output is closed, OSError when it cannot be written.
    """
    stream = stdout()
    if stream is None:
        raise ArtefactError("standard output is closed")
    stream.write(text if text.endswith("\n") else f"{text}\n")
    stream.flush()


def undelivered(raised: OSError | None = None) -> OSError | None:
    """Why what was printed could not be written, if that is so; then no more is tried when the process ends.

    `raised` is what printing may have raised: a file would be named in it, and an unbuffered stream has forgotten.
    """
    printing = raised is not None and raised.filename is None and raised.errno in _UNWRITABLE
    for stream in (sys.stdout, stdout()):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            raised, printing = error, True
        except ValueError:
            continue  # somebody has closed it
    if printing:
        discard()
    return raised if printing else None


def discard() -> None:
    """Point standard output at nothing, so that flushing it when the process ends does not fail again."""
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        for stream in (sys.stdout, stdout()):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                os.dup2(nothing.fileno(), stream.fileno())  # type: ignore[union-attr]


def duplicate(usual: TextIO) -> TextIO | None:
    """The same stream by a descriptor of its own; None for one that has no descriptor."""
    try:
        usual.flush()
        number = os.dup(usual.fileno())
    except (AttributeError, OSError, ValueError):
        return None
    return os.fdopen(number, "w", buffering=1, encoding=usual.encoding, errors=usual.errors)


def restored(usual: TextIO, own: TextIO, number: int) -> TextIO:
    """What `duplicate` was made of, on file descriptor `number` again and open again; its duplicate is closed."""
    with contextlib.suppress(OSError, ValueError):
        own.flush()
    os.dup2(own.fileno(), number)
    with contextlib.suppress(OSError):
        own.close()
    if not usual.closed:
        return usual
    return open(number, "w", buffering=1, encoding=own.encoding, errors="backslashreplace", closefd=False)
