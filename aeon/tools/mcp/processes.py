"""The processes of servers: known by their ids, so that their end is seen and what one leaves behind is ended too.

The SDK starts each server in a process group of its own and ends the server; a child that outlives a server which went
by itself is nobody's then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple


class Guarded:
    """A started process, with a guard that ends its group when this program dies, however it dies.

    The guard waits for the end of a pipe that only this program holds open: nothing else sees a SIGKILL.
    """

    # Not TERM alone: a server may not heed it.
    _SCRIPT = 'read -r _; kill -s TERM -- "-$1"; sleep 1; kill -s KILL -- "-$1"'

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._guard: subprocess.Popen[bytes] | None = None
        if sys.platform != "win32":  # there the SDK's job object sees to that
            with suppress(OSError):
                self._guard = subprocess.Popen(
                    ["/bin/sh", "-c", self._SCRIPT, "aeon-mcp-guard", str(pid)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )

    def release(self) -> None:
        """End the guard, once nothing is left to be guarded."""
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
            self._guard = None


class _Noted(NamedTuple):
    """The processes that a task has started, and what is to be called when one of them has ended."""

    started: list[Guarded]
    on_exit: Callable[[], None]


_spawned: ContextVar[_Noted | None] = ContextVar("spawned", default=None)

_TERM_SECONDS = 1.0
_POLL_SECONDS = 0.02


class ProcessLoop(asyncio.SelectorEventLoop if sys.platform != "win32" else asyncio.ProactorEventLoop):  # type: ignore[misc] # one of two classes
    """An event loop that notes which processes a task starts, see `noted_processes`."""

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        """As the loop's own."""
        transport, protocol = await super().subprocess_exec(*args, **kwargs)
        noted = _spawned.get()
        if noted is not None:
            noted.started.append(Guarded(transport.get_pid()))
            _tell_of_exit(transport, protocol, noted.on_exit)
        return transport, protocol


def _tell_of_exit(transport: Any, protocol: Any, on_exit: Callable[[], None]) -> None:
    """A pipe may stay open long after its process, in the hands of a child; a process that has ended has ended."""
    heard = protocol.process_exited

    def process_exited() -> None:
        heard()
        on_exit()

    protocol.process_exited = process_exited
    if transport.get_returncode() is not None:
        on_exit()


@contextmanager
def noted_processes(on_exit: Callable[[], None]) -> Iterator[list[Guarded]]:
    """The processes that this task starts meanwhile, on a ProcessLoop; each is to be released.

    `on_exit` is called there whenever one of them has ended, whatever of theirs is still open.
    """
    noted = _Noted([], on_exit)
    token = _spawned.set(noted)
    try:
        yield noted.started
    finally:
        _spawned.reset(token)


async def end_group(leader: int) -> None:
    """End what is left of a process group: asked at first, killed after a second. On Windows the SDK sees to that."""
    if sys.platform == "win32" or not _signalled(leader, signal.SIGTERM):
        return
    for _ in range(int(_TERM_SECONDS / _POLL_SECONDS)):
        if not _signalled(leader, 0):
            return
        await asyncio.sleep(_POLL_SECONDS)
    _signalled(leader, signal.SIGKILL)


def _signalled(leader: int, number: int) -> bool:
    """Whether there was anybody in the group to be signalled."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, number)
        return True
    return False
