"""The program's standard streams, protected from tools, libraries and their processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO, cast

from aeon.domain.errors import AeonError, ArtefactError
from aeon.files.secret_forms import mask_text
from aeon.report.words import as_typed_here

DUMB = ("", "dumb", "unknown")
"""The values of TERM, in lower case, of terminals that show only plain lines."""
_UNUSABLE = (AttributeError, OSError, ValueError)

_own: dict[str, TextIO | None] = {}


@contextmanager
def own_streams() -> Iterator[None]:
    """Reserve both streams for `put` and `say` while the block lasts: all other prints go to
    standard error. A block inside another one uses the outer streams."""
    if _own:
        yield
        return
    if sys.stderr is None:  # closed by whoever started the program
        sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115
    with _duplicate_stream(sys.stdout, 1) as out, _duplicate_stream(sys.stderr, 2) as err:
        _own.update(out=out, err=cast(TextIO, _MaskedStream(err)))
        if out is not sys.stdout:
            os.dup2(2, 1)  # programs that tools start write to the descriptor
        try:
            with redirect_stdout(sys.stderr):
                yield
        finally:
            _own.clear()


class _MaskedStream:
    """A stream that masks the same values as files do: lines of progress may be logged."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(mask_text(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def _duplicate_stream(stream: Any, number: int) -> Iterator[Any]:
    """Yield the stream through a descriptor of its own while the block lasts; the stream itself
    where it has none."""
    own = stream
    with suppress(*_UNUSABLE):
        stream.flush()
        own = os.fdopen(
            os.dup(stream.fileno()), "w", encoding=stream.encoding, errors="backslashreplace"
        )
    try:
        yield own
    finally:
        if own is not stream:
            os.dup2(own.fileno(), number)
            with suppress(OSError):
                own.close()
        with suppress(*_UNUSABLE):
            _drop_unread(stream)


def _drop_unread(stream: TextIO) -> None:
    """Drop text without a reader: written again at the end, it would change the exit status."""
    try:
        stream.flush()
    except BrokenPipeError:
        _write_to_nothing(stream)


def _write_to_nothing(stream: TextIO) -> None:
    with open(os.devnull, "w") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), stream.fileno())


def stdout() -> TextIO | None:
    """Return the stream of `put`; None when standard output is closed."""
    return _own["out"] if _own else sys.stdout


def stderr() -> TextIO:
    """Return the stream of `say`."""
    return _own.get("err") or sys.stderr


def put(text: str) -> bool:
    """Write text with a newline at its end on standard output. Returns False when its reader has
    gone away (`| head`), which is not an error. Raises ArtefactError when standard output is closed
    or full."""
    stream = stdout()
    if stream is None:
        raise ArtefactError("standard output is closed")
    try:
        stream.write(text if text.endswith("\n") else f"{text}\n")
        stream.flush()
        return True
    except OSError as error:
        # The rest of the buffer would be written, and fail, again at the end.
        _write_to_nothing(stream)
        if isinstance(error, BrokenPipeError):
            return False
        reason = error.strerror
    # Raised here, or it would count as a full disk: another folder would not help.
    raise ArtefactError(f"standard output cannot be written: {reason}")


def say(text: str) -> None:
    """Write a line on standard error, ignoring write errors. Commands written `` `aeon ...` `` are
    printed as they can be typed here."""
    with suppress(*_UNUSABLE):
        # One write, so that lines of threads do not mix.
        stderr().write(f"{as_typed_here(text)}\n")
        stderr().flush()


def warn(*texts: str) -> None:
    """Write warnings on standard error."""
    for text in texts:
        say(f"Warning: {text}")


def report(*errors: AeonError) -> None:
    """Write errors, each with its hint, on standard error."""
    for error in errors:
        say(hide_keys(f"Error: {error.message}\n{error.hint}".rstrip("\n")))


def hide_keys(text: str) -> str:
    """Replace the values of secret variables in a text by their names: a person may have typed one
    in the wrong place, and messages quote typed text."""
    from aeon.store.cassette_export import Scrubber, secret_names

    return Scrubber(secret_names({}, os.environ), os.environ).text(text)
