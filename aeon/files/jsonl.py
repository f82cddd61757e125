"""JSON Lines: a file with one JSON object per line, and a journal that writes each line to disk
before the program continues."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.secret_forms import mask
from aeon.files.text import (
    IN_RUN,
    create_like_folder,
    encode_json,
    load_json,
    lock_file,
    read_linked_file,
    unwritable_error,
)


def encode_line(value: JsonMapping) -> bytes:
    """Encode an object as a line. Raises ValueError for a number that JSON does not have."""
    return encode_json(value) + b"\n"


class JsonLines:
    """Appends JSON objects to a file, one per line, written through at once, from any thread; after
    `close` they are dropped. Raises ArtefactError if the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._file = open(self.path, "ab", buffering=0, opener=create_like_folder)  # noqa: SIM115
            self._size = self._file.tell()
        except OSError as error:
            raise unwritable_error(self.path, error, IN_RUN) from error
        lock_file(self._file)  # shows other processes that it is being written

    def write(self, value: JsonObject) -> None:
        """Append one line. Raises ArtefactError if it cannot be written completely; then none of it
        is in the file."""
        line = mask(encode_json(value, compact=True)) + b"\n"
        with self._lock:
            if self._file.closed:
                return
            size = self._size + len(line)
            rest = line
            # Unbuffered files write as much as there is room for.
            try:
                while rest:
                    rest = rest[self._file.write(rest) :]
            except OSError as error:
                with suppress(OSError):
                    self._file.truncate(self._size)
                raise unwritable_error(self.path, error, IN_RUN) from error
            self._size = size

    def close(self) -> None:
        """Close the file; may be called twice."""
        with self._lock:
            self._file.close()


def read_lines(path: Path) -> Iterator[JsonObject]:
    """Yield the objects of a journal, in the order written; a last line cut off by a crash is left
    out. Raises OSError for an unreadable file, ValueError for any other line that is not JSON."""
    lines = read_linked_file(path).split(b"\n")
    yield from map(decode_line, lines[:-1])


def decode_line(line: bytes) -> Any:
    """Decode a line with a decoder three times as fast as the standard one, which remains the
    fallback for lone surrogates. Raises ValueError for invalid JSON."""
    from pydantic_core import from_json  # not for the files that a start reads

    try:
        return from_json(line)
    except ValueError:
        return load_json(line)
