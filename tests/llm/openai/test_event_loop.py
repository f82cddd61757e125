"""The process's one event loop."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from aeon.llm.openai import event_loop


async def where() -> tuple[asyncio.AbstractEventLoop, threading.Thread]:
    return asyncio.get_running_loop(), threading.current_thread()


def test_every_thread_is_served_by_the_same_loop_on_one_daemon_thread() -> None:
    with ThreadPoolExecutor(16) as pool:
        seen = {future.result() for future in [pool.submit(event_loop.run, where()) for _ in range(16)]}
    [(loop, thread)] = seen
    assert loop is event_loop.event_loop()
    assert thread.daemon


def test_what_the_coroutine_raises_reaches_the_caller() -> None:
    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        event_loop.run(fail())


def test_a_wait_that_ends_early_cancels_the_coroutine() -> None:
    cancelled = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    with pytest.raises(TimeoutError):
        event_loop.run(forever(), timeout=0.02)
    assert cancelled.wait(5)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_starts_a_loop_of_its_own() -> None:
    event_loop.run(where())
    child = os.fork()
    if child == 0:
        loop, _ = event_loop.run(where(), timeout=5)
        os._exit(0 if loop.is_running() else 1)
    assert os.waitpid(child, 0)[1] == 0
