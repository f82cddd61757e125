"""What a test may say of time on a machine that does other work too."""

import time
from collections.abc import Callable

SOON = 30.0
"""Seconds: far above what a busy machine takes, far below what the failure would take."""


def growth(work: Callable[[int], Callable[[], object]], small: int, large: int) -> float:
    """How many times the CPU seconds of `work(small)` those of `work(large)` are; each made ready, then measured."""

    def measured(size: int) -> float:
        ready, seconds = work(size), []
        for _ in range(3):
            began = time.process_time()
            ready()
            seconds.append(time.process_time() - began)
        return max(min(seconds), 1e-6)

    return measured(large) / measured(small)
