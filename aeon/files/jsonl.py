"""JSON Lines: a file of one JSON object a line, as a journal with each line on disk before the next
thing happens."""

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
    """An object as a line. Raises ValueError for a number that JSON does not have."""
    return encode_json(value) + b"\n"


class JsonLines:
    """Appends JSON objects to a file, a line each, written through at once, from any thread; after
    `close` they are dropped. Raises ArtefactError when the file cannot be opened."""

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._file = open(self.path, "ab", buffering=0, opener=create_like_folder)  # noqa: SIM115
            self._size = self._file.tell()
        except OSError as error:
            raise unwritable_error(self.path, error, IN_RUN) from error
        lock_file(self._file)  # so that others see that it is written

    def write(self, value: JsonObject) -> None:
        """Append one line. Raises ArtefactError when it cannot be written whole; then none of it is
        in the file."""
        line = mask(encode_json(value, compact=True)) + b"\n"
        with self._lock:
            if self._file.closed:
                return
            size = self._size + len(line)
            rest = line
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
    """The objects of a journal, in the order they were written; a last line cut off by a crash is
    left out. Raises OSError for a file that cannot be read, ValueError for another line that is not
    JSON."""
    lines = read_linked_file(path).split(b"\n")
    yield from map(decode_line, lines[:-1])


def decode_line(line: bytes) -> Any:
    """The value of a line, by a decoder that is three times as fast as the standard one, which has
    lone surrogates left to read. Raises ValueError for what is not JSON."""
    from pydantic_core import from_json  # not for the files that a start reads

    try:
        return from_json(line)
    except ValueError:
        return load_json(line)
