"""The processes of servers: known by their ids, so that what a server leaves behind can be ended too.

The SDK starts each server in a process group of its own and ends the server; a child that outlives a server which went
by itself is nobody's then.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

_spawned: ContextVar[list[int] | None] = ContextVar("spawned", default=None)

_TERM_SECONDS = 1.0
_POLL_SECONDS = 0.02


class ProcessLoop(asyncio.SelectorEventLoop if sys.platform != "win32" else asyncio.ProactorEventLoop):  # type: ignore[misc] # one of two classes
    """An event loop that notes which processes a task starts, see `noted_processes`."""

    async def subprocess_exec(self, *args: Any, **kwargs: Any) -> Any:
        """As the loop's own."""
        transport, protocol = await super().subprocess_exec(*args, **kwargs)
        noted = _spawned.get()
        if noted is not None:
            noted.append(transport.get_pid())
        return transport, protocol


@contextmanager
def noted_processes() -> Iterator[list[int]]:
    """The ids of the processes that this task starts meanwhile, on a ProcessLoop."""
    noted: list[int] = []
    token = _spawned.set(noted)
    try:
        yield noted
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
