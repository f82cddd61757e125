"""The one asyncio loop of the process: a daemon thread, started by the first call that needs it.

Vendors' async clients run here; everything else in Aeon is synchronous and waits in `run`.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run(coroutine: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
    """Run a coroutine on the loop and wait for its value, at most `timeout` seconds.

    May be called from many threads at once, never from the loop's own thread. Raises what the coroutine raises, and
    `TimeoutError` when time is up. A wait that ends early (time up, Ctrl-C) cancels the coroutine.
    """
    future = asyncio.run_coroutine_threadsafe(coroutine, event_loop())
    try:
        return future.result(timeout)
    finally:
        future.cancel()


def event_loop() -> asyncio.AbstractEventLoop:
    """The process's loop, started if it is not running yet."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="aeon-event-loop", daemon=True).start()
        return _loop


def _forget() -> None:
    """A forked child has the loop's data but not its thread: it starts its own."""
    global _lock, _loop
    _lock = threading.Lock()
    _loop = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
