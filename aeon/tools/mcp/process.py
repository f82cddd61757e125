"""The processes of servers: their end is noticed, what they leave behind is ended, and their standard error is read.

The SDK starts each server in a process group of its own and ends the server; a child that outlives a server which ended
by itself would stay.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, Self, TextIO

_TERM_SECONDS = 1.0
_POLL_SECONDS = 0.02
_TAIL_BYTES = 8192


class GuardedProcess:
    """A started process, with a guard that ends its group when this program dies, even by SIGKILL.

    The guard waits for the end of a pipe that only this program holds open.
    """

    # Not TERM alone: a server may ignore it.
    _SCRIPT = 'read -r _; kill -s TERM -- "-$1"; sleep 1; kill -s KILL -- "-$1"'

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._guard: subprocess.Popen[bytes] | None = None
        if sys.platform != "win32":  # there the SDK's job object ends the group
            with suppress(OSError):
                self._guard = subprocess.Popen(
                    ["/bin/sh", "-c", self._SCRIPT, "aeon-mcp-guard", str(pid)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    async def end_group(self) -> None:
        """End what is left of the process group: asked at first, killed after a second; then end the guard."""
        if sys.platform != "win32" and self._signal(signal.SIGTERM):
            for _ in range(int(_TERM_SECONDS / _POLL_SECONDS)):
                if not self._signal(0):
                    break
                await asyncio.sleep(_POLL_SECONDS)
            else:
                self._signal(signal.SIGKILL)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None

    def _signal(self, number: int) -> bool:
        """Send a signal to the group. Returns whether there was any process in it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)
            return True
        return False


class _Watch(NamedTuple):
    """The processes that a task has started, and what to call when one of them has ended."""

    started: list[GuardedProcess]
    on_exit: Callable[[], None]


_watch: ContextVar[_Watch | None] = ContextVar("watch", default=None)


class ProcessLoop(asyncio.SelectorEventLoop if sys.platform != "win32" else asyncio.ProactorEventLoop):  # type: ignore[misc] # one of two classes
    """An event loop that reports which processes a task starts, see `watch_processes`."""

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        """As the loop's own."""
        transport, protocol = await super().subprocess_exec(*args, **kwargs)
        watch = _watch.get()
        if watch is not None:
            watch.started.append(GuardedProcess(transport.get_pid()))
            _call_on_exit(transport, protocol, watch.on_exit)
        return transport, protocol


def _call_on_exit(transport: Any, protocol: Any, on_exit: Callable[[], None]) -> None:
    """A pipe may stay open long after its process has ended, in the hands of a child."""
    before = protocol.process_exited

    def process_exited() -> None:
        before()
        on_exit()

    protocol.process_exited = process_exited
    if transport.get_returncode() is not None:
        on_exit()


@contextmanager
def watch_processes(on_exit: Callable[[], None]) -> Iterator[list[GuardedProcess]]:
    """Collect the processes that this task starts in the block, on a ProcessLoop; call `on_exit` when one has ended."""
    watch = _Watch([], on_exit)
    token = _watch.set(watch)
    try:
        yield watch.started
    finally:
        _watch.reset(token)


class StderrTail:
    """A pipe for a child's standard error, of which the end is remembered; entered before use.

    Hand `write_end` to the child, and `close` it once the child has started. The text is not passed on to our own
    standard error, where it would run through the progress display.
    """

    write_end: TextIO

    def __init__(self) -> None:
        self._tail = b""

    def __enter__(self) -> Self:
        read_end, write_end = os.pipe()
        self.write_end = os.fdopen(write_end, "w")
        self._reader = threading.Thread(target=self._read, args=(read_end,), name="aeon-mcp-stderr", daemon=True)
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close our end: the reading stops when the last child that holds the other has ended."""
        self.write_end.close()

    async def text(self, *, lines: int = 5, wait_seconds: float = 0.5) -> str:
        """The last lines written; waits a moment for the output of a child that has just died."""
        self.close()
        for _ in range(int(wait_seconds / _POLL_SECONDS)):
            if not self._reader.is_alive():
                break
            await asyncio.sleep(_POLL_SECONDS)
        written = self._tail.decode("utf-8", "replace")
        return "\n".join([line for line in written.splitlines() if line.strip()][-lines:])

    def _read(self, read_end: int) -> None:
        with os.fdopen(read_end, "rb", buffering=0) as stream:
            while chunk := stream.read(65536):
                self._tail = (self._tail + chunk)[-_TAIL_BYTES:]
