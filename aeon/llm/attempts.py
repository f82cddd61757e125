"""How an adapter has each request counted when it really goes out.

One `complete` may take several requests: a server's refusal is answered by another way of saying it. And between a
request's turn and its sending may lie the import of an SDK. The limiter sets what counts, and the adapter asks it right
before it sends. Coroutines that are started in the block see it too: asyncio hands them the context they come from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

POLL_SECONDS = 0.1
Count = Callable[[], float]
"""Counts a request that goes out now: 0.0, or the seconds after which to ask again. It may raise `StopRequested`."""

_count: ContextVar[Count] = ContextVar("count", default=lambda: 0.0)


_seconds: ContextVar[float] = ContextVar("seconds", default=0.0)


def seconds_spent() -> float:
    """The seconds that earlier attempts of the call that is being made have taken."""
    return _seconds.get()


@contextmanager
def after_seconds(seconds: float) -> Iterator[None]:
    """Make an attempt in this block after earlier ones that took so many seconds."""
    token = _seconds.set(seconds)
    try:
        yield
    finally:
        _seconds.reset(token)


@contextmanager
def counted_by(count: Count) -> Iterator[None]:
    """Have the requests that go out in this block counted."""
    token = _count.set(count)
    try:
        yield
    finally:
        _count.reset(token)


async def may_go_out() -> None:
    """Wait until a request may go out, and count it; to be awaited right before it is sent."""
    count = _count.get()
    while (seconds := count()) > 0:
        await asyncio.sleep(min(seconds, POLL_SECONDS))
