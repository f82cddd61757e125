"""What an adapter may know of the attempt it makes: what earlier attempts of the call have taken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_seconds_before: ContextVar[float] = ContextVar("seconds_before", default=0.0)


@contextmanager
def attempting(*, seconds_before: float) -> Iterator[None]:
    """Make an attempt in this block, when earlier ones of the call have taken so many seconds."""
    token = _seconds_before.set(seconds_before)
    try:
        yield
    finally:
        _seconds_before.reset(token)


def seconds_before() -> float:
    """The seconds that earlier attempts of the call that is being made have taken."""
    return _seconds_before.get()
