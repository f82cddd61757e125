"""What a test may say of time on a machine that does other work too."""

from __future__ import annotations

import time
from collections.abc import Callable

SOON = 30.0
"""Seconds: far above what a busy machine takes, far below what the failure would take."""


def wait_for(condition: Callable[[], object], seconds: float = SOON) -> None:
    """Wait until a condition holds; AssertionError when it does not in time."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.01)
