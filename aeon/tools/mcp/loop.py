"""An asyncio loop in a thread of its own, for sessions that outlive the calls made over them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from aeon.tools.mcp.process import ProcessLoop

T = TypeVar("T")


class LoopStopped(Exception):
    """The loop has stopped, before or during the wait."""


class LoopThread:
    """A loop that runs from construction to `stop`."""

    def __init__(self, name: str) -> None:
        self._loop = ProcessLoop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T], *, timeout: float | None = None) -> T:
        """Run a coroutine on the loop and wait for its value; from any thread but the loop's own.

        Raises what it raises, LoopStopped, TimeoutError when `timeout` seconds are up. A
        wait that ends early (time up, Ctrl-C) cancels the coroutine.
        """
        try:
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        except RuntimeError as error:
            coroutine.close()
            raise LoopStopped from error
        try:
            return future.result(timeout)
        except CancelledError as error:
            raise LoopStopped from error
        finally:
            future.cancel()

    def stop(self) -> None:
        """Cancel what is left and end the thread. Harmless when done twice."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()
