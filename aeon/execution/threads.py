"""The threads that do the work, and waiting for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Workers:
    """At most `size` daemon threads, started when needed: abandoned work must not keep the process
    alive."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = threading.Semaphore(0)

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Run `work` in a thread of the pool; call it from one thread only."""
        future: Future[T] = Future()
        self._jobs.put((future, work))
        if not self._idle.acquire(blocking=False) and len(self._threads) < self._size:
            thread = threading.Thread(
                target=self._serve, daemon=True, name=f"aeon-step-{len(self._threads)}"
            )
            self._threads.append(thread)
            thread.start()
        return future

    def close(self) -> None:
        """Let the threads end when they are done; does not wait for them."""
        for _ in self._threads:
            self._jobs.put(None)

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            future, work = job
            if future.set_running_or_notify_cancel():
                # Whoever waits for the future gets it, even what would end a program.
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            self._idle.release()


def as_done(
    futures: Sequence[Future[T]],
    stopping: Callable[[], bool],
    grace_seconds: float,
    poll_seconds: float = 0.25,
) -> Iterator[Future[T]]:
    """Yield each future when it is done. Once `stopping` returns True, futures not started are
    cancelled, and those still running after `grace_seconds` are left out."""
    pending = set(futures)
    deadline = None
    done: SimpleQueue[Future[T]] = SimpleQueue()
    for future in futures:
        future.add_done_callback(done.put)
    wait = poll_seconds
    while pending:
        wait = min(wait * 1.1, 5 * poll_seconds)  # thousands may wait for hours
        left = wait if deadline is None else max(0.0, deadline - time.monotonic())
        with suppress(Empty):
            future = done.get(timeout=min(wait, left))
            pending.remove(future)
            if not future.cancelled():
                yield future
        if stopping():
            for future in pending:
                future.cancel()
            deadline = deadline or time.monotonic() + grace_seconds
            if time.monotonic() >= deadline:
                return
