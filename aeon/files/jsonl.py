"""A journal: a file of one JSON object a line, each line on disk before the next thing happens."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from aeon.files.writing import encode_json, unwritable_error


class JsonLines:
    """Appends JSON objects to a file, a line each, written through at once; may be used from many threads.

    A line that cannot be written whole is taken back, so the file never holds half a line. Lines given after `close`
    are dropped: work that outlived its run has nothing to add to it.

    Raises:
        ArtefactError: the file cannot be opened or written (no such folder, no permission, disk full).
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self._file: FileIO | None = self.path.open("ab", buffering=0)
        except OSError as error:
            raise unwritable_error(self.path, error) from error

    def write(self, value: dict[str, Any]) -> None:
        """Append one line. Raises ArtefactError when it cannot be written whole."""
        line = encode_json(value) + b"\n"
        with self._lock:
            if self._file is None:
                return
            start = self._file.tell()
            try:
                _write_all(self._file, line)
            except OSError as error:
                with contextlib.suppress(OSError):
                    self._file.truncate(start)
                raise unwritable_error(self.path, error) from error

    def close(self) -> None:
        """Close the file; may be called twice."""
        with self._lock:
            if self._file is not None:
                self._file.close()
            self._file = None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a journal, in the order they were written; a last line cut off by a crash is left out.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line that is not the last one is not JSON.
    """
    lines = Path(path).read_bytes().split(b"\n")
    yield from (json.loads(line) for line in lines[:-1])


def _write_all(file: FileIO, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[file.write(remaining) :]
