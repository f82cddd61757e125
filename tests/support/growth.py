"""How the work of a parser grows with its input: the exponent of its CPU time over sizes, on a busy machine too."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from typing import Any

MOST = 1.7
"""The exponent that counts as near-linear: a square is 2; what caches and fresh memory cost has made a
linear reader 1.2 on one machine and 1.53 on another."""

_ENOUGH_SECONDS = 0.003
_LARGEST = 16_000
_TIMES = 10
_ATTEMPTS = 5


def growth(make: Callable[[int], Any], work: Callable[[Any], object], *, size: int = 250) -> float:
    """The least exponent e of CPU ~ size^e of some attempts, between a size and ten times that.

    The size is doubled until the work takes three milliseconds, less than which says nothing; 0 where even the
    largest takes less. Only the CPU of this thread is counted, its collector off: what else the machine does may slow
    an attempt, and an attempt that was slowed is made again.
    """
    while _seconds(make(size), work) < _ENOUGH_SECONDS:
        if size >= _LARGEST:
            return 0.0
        size *= 2
    small, large = make(size), make(size * _TIMES)
    least = math.inf
    for _ in range(_ATTEMPTS):
        least = min(least, math.log(_best(large, work, 2) / _best(small, work, 2), _TIMES))
        if least <= MOST:
            break
    return least


def _best(given: Any, work: Callable[[Any], object], times: int) -> float:
    return min(_seconds(given, work) for _ in range(times))


def _seconds(given: Any, work: Callable[[Any], object]) -> float:
    gc.disable()
    try:
        begin = time.thread_time()
        work(given)
        return time.thread_time() - begin
    finally:
        gc.enable()
