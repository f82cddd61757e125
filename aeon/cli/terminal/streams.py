"""Standard output through a descriptor of its own, so that no tool can redirect or close the program's output."""

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
    """Duplicate standard output while the block lasts, for `put`: a tool that redirects or closes `sys.stdout`, or file
    descriptor 1, loses only its own output. Both are restored afterwards. A block inside another one uses the outer
    stream."""
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
            sys.stdout = restore(usual, own, 1)


@contextlib.contextmanager
def answer_alone_on_stdout() -> Iterator[None]:
    """Redirect file descriptor 1 of this process and its children to standard error while the block lasts; `put` still
    writes to standard output. Nothing is redirected when one of the two is closed."""
    with own_stdout():
        usual = sys.stdout
        try:
            saved = _redirect()
        except (AttributeError, OSError, ValueError):
            saved = None
        try:
            yield
        finally:
            with contextlib.suppress(AttributeError, OSError, ValueError):
                sys.stdout.flush()
            with contextlib.suppress(AttributeError, OSError, ValueError):
                usual.flush()
            sys.stdout = usual
            if saved is not None:
                os.dup2(saved, 1)
                os.close(saved)


def _redirect() -> int:
    """Point file descriptor 1 at standard error; a duplicate of what it was."""
    sys.stdout.flush()
    saved = os.dup(1)
    os.dup2(2, 1)
    return saved


def stdout() -> TextIO | None:
    """Where `put` writes; None when standard output is closed."""
    return _own[-1] if _own else sys.stdout


def put(text: str) -> None:
    """Write text to standard output at once, with a newline at its end.

    Raises ArtefactError when standard output is closed, OSError when it cannot be written.
    """
    stream = stdout()
    if stream is None:
        raise ArtefactError("standard output is closed")
    stream.write(text if text.endswith("\n") else f"{text}\n")
    stream.flush()


def undelivered(raised: OSError | None = None) -> OSError | None:
    """The error for which printed text could not be written, if any; nothing more is written when the process ends.

    `raised` is an error that printing may have raised: one of a file would name the file.
    """
    printing = raised is not None and raised.filename is None and raised.errno in _UNWRITABLE
    for stream in (sys.stdout, stdout()):
        try:
            if stream is not None:
                stream.flush()
        except OSError as error:
            raised, printing = error, True
        except ValueError:
            continue  # the stream is closed
    if printing:
        discard()
    return raised if printing else None


def discard() -> None:
    """Point standard output at the null device, so that flushing it at exit does not fail again."""
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        for stream in (sys.stdout, stdout()):
            with contextlib.suppress(AttributeError, OSError, ValueError):
                os.dup2(nothing.fileno(), stream.fileno())  # type: ignore[union-attr]


def duplicate(usual: TextIO) -> TextIO | None:
    """The same stream through a new descriptor; None for a stream without a descriptor."""
    try:
        usual.flush()
        number = os.dup(usual.fileno())
    except (AttributeError, OSError, ValueError):
        return None
    return os.fdopen(number, "w", buffering=1, encoding=usual.encoding, errors=usual.errors)


def restore(usual: TextIO, own: TextIO, number: int) -> TextIO:
    """The duplicated stream, open on file descriptor `number` again; its duplicate is closed."""
    with contextlib.suppress(OSError, ValueError):
        own.flush()
    os.dup2(own.fileno(), number)
    with contextlib.suppress(OSError):
        own.close()
    if not usual.closed:
        return usual
    return open(number, "w", buffering=1, encoding=own.encoding, errors="backslashreplace", closefd=False)
