"""What an adapter may know of the attempt it makes: when a request may go out, and what earlier attempts have taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a call; `seconds_before` is what earlier attempts of the call have taken.

    `go_out` counts a request that goes out now: 0.0, or the seconds after which to ask again; it may raise
    `StopRequested`. One `complete` may take several requests.
    """

    seconds_before: float = 0.0
    go_out: Callable[[], float] = lambda: 0.0


_attempt: ContextVar[Attempt] = ContextVar("attempt", default=Attempt())  # noqa: B039 - frozen


@contextmanager
def attempting(**values: Any) -> Iterator[None]:
    """Make the attempt in this block with these values of an `Attempt`, the others as they are outside of it."""
    token = _attempt.set(replace(_attempt.get(), **values))
    try:
        yield
    finally:
        _attempt.reset(token)


def seconds_before() -> float:
    """The seconds that earlier attempts of the call that is being made have taken."""
    return _attempt.get().seconds_before


def wait_to_go_out() -> None:
    """Wait until a request may go out, and count it; to be called right before it is sent."""
    while (seconds := _attempt.get().go_out()) > 0:
        time.sleep(min(seconds, POLL_SECONDS))
