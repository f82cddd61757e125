"""Many runs at the same time in one process, and a run that is awaited: threads around a kernel that stays as it is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any

from aeon.domain.result import RunResult
from aeon.kernel.control import RunControl

Task = str | Mapping[str, Any]


def run_all(run: Callable[..., RunResult], tasks: Iterable[Task], max_concurrency: int) -> Iterator[RunResult]:
    """The results of tasks as their runs end, at most `max_concurrency` under way, as `Aeon.run_many` says."""
    if max_concurrency < 1:
        raise ValueError(f"max_concurrency is {max_concurrency}: at least 1 run must be under way")
    control, ended, running = RunControl(), SimpleQueue[Future[RunResult]](), 0
    pool = ThreadPoolExecutor(max_concurrency, thread_name_prefix="aeon-run")
    try:
        for task in tasks:
            arguments = dict(task) if isinstance(task, Mapping) else {"task": task}
            pool.submit(run, control=control, **arguments).add_done_callback(ended.put)
            running += 1
            while running >= max_concurrency or not ended.empty():
                running -= 1
                yield ended.get().result()
        for _ in range(running):
            yield ended.get().result()
    finally:
        control.request_stop()
        pool.shutdown(cancel_futures=True)


async def run_awaited(run: Callable[..., RunResult], control: RunControl, **arguments: Any) -> RunResult:
    """The result of a run in a thread of its own; when the caller is cancelled, the run is asked to stop."""
    future: Future[RunResult] = Future()

    def serve() -> None:
        try:
            future.set_result(run(control=control, **arguments))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=copy_context().run, args=(serve,), daemon=True, name="aeon-run").start()
    try:
        # Shielded: a cancelled future would take no result from a run that ends a little later.
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        control.request_stop()
        raise
