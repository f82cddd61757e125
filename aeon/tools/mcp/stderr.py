"""What a server writes on its standard error: read and thrown away, but for its last words.

Not passed on to our own standard error, where it would run through the progress display; never to standard output,
which is the answer's alone.
"""

from __future__ import annotations

import asyncio
import os
import threading
from types import TracebackType
from typing import Self, TextIO

_KEPT_BYTES = 8192
_POLL_SECONDS = 0.02


class LastWords:
    """A pipe for a child's standard error: hand `write_end` to the child, `close` ours once it has started."""

    def __init__(self) -> None:
        self._tail = b""
        self._write_end: TextIO | None = None

    def __enter__(self) -> Self:
        read_end, write_end = os.pipe()
        self._write_end = os.fdopen(write_end, "w")
        self._reader = threading.Thread(target=self._drain, args=(read_end,), name="aeon-mcp-stderr", daemon=True)
        self._reader.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    @property
    def write_end(self) -> TextIO:
        """What the child gets as its standard error."""
        assert self._write_end is not None, "entered"
        return self._write_end

    def close(self) -> None:
        """Let go of our end: the reading stops when the last child holding the other has gone."""
        if self._write_end is not None:
            self._write_end.close()

    async def text(self, *, lines: int = 5, wait_seconds: float = 0.5) -> str:
        """The last lines written; waits a moment for a child that has just died to be read to its end."""
        self.close()
        for _ in range(int(wait_seconds / _POLL_SECONDS)):
            if not self._reader.is_alive():
                break
            await asyncio.sleep(_POLL_SECONDS)
        written = self._tail.decode("utf-8", "replace")
        return "\n".join([line for line in written.splitlines() if line.strip()][-lines:])

    def _drain(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as stream:
            while chunk := stream.read(65536):
                self._tail = (self._tail + chunk)[-_KEPT_BYTES:]
