"""Many runs at the same time in one process, and an awaited run: threads around the same
synchronous kernel."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

from aeon.domain.result import RunResult
from aeon.domain.values import JsonMapping
from aeon.kernel.control import RunControl

Task = str | JsonMapping
T = TypeVar("T")
Given = TypeVar("Given")


def run_all(
    work: Callable[[Given], T], items: Iterable[Given], max_concurrency: int, control: RunControl
) -> Generator[T, None, None]:
    """Run `work` on at most `max_concurrency` items at once, and yield each result as it is ready.

    An item is taken when there is room for it. `control`, which all runs share, is stopped when the
    caller stops iterating, or when one raises.
    """
    if max_concurrency < 1:
        raise ValueError(f"max_concurrency is {max_concurrency}: at least 1 run must be under way")
    ended = SimpleQueue[Future[T]]()
    running = 0
    pool = ThreadPoolExecutor(max_concurrency, thread_name_prefix="aeon-run")
    try:
        for item in items:
            pool.submit(work, item).add_done_callback(ended.put)
            running += 1
            # What is ready goes out before the next item is taken: taking one may wait.
            while running >= max_concurrency or not ended.empty():
                running -= 1
                yield ended.get().result()
        for _ in range(running):
            yield ended.get().result()
    except BaseException:  # GeneratorExit too: the caller stopped iterating
        control.request_stop()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


async def run_awaited(
    run: Callable[..., RunResult], control: RunControl, **arguments: Any
) -> RunResult:
    """Await a run in its own thread; when the caller is cancelled, the run is asked to stop."""
    import asyncio  # slow to load, and only who awaits has it

    future: Future[RunResult] = Future()

    def serve() -> None:
        try:
            future.set_result(run(control=control, **arguments))
        except BaseException as error:
            future.set_exception(error)

    # A daemon, unlike the threads of `asyncio.to_thread`, which an ending program waits for.
    threading.Thread(target=copy_context().run, args=(serve,), daemon=True, name="aeon-run").start()
    try:
        # Shielded: a cancelled future would accept no result from a run that ends a little later.
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        control.request_stop()
        raise
