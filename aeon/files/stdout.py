"""Sends the prints of tools to standard error: standard output belongs to the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO, cast

_in_tool: ContextVar[bool] = ContextVar("in_tool", default=False)


class _Fork:
    """`sys.stdout` from the first tool on: standard error for tools, the original for everything
    else."""

    def __init__(self, usual: TextIO) -> None:
        self.usual = usual

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.stderr if _in_tool.get() else self.usual, name)


@contextmanager
def redirect_prints_to_stderr() -> Iterator[None]:
    """Redirect this context's writes to `sys.stdout` to `sys.stderr`, including its coroutines and
    `asyncio.to_thread`. Threads and processes that a tool starts itself are not covered."""
    # Put in place at the first tool, and left there: other threads may be printing.
    if not isinstance(sys.stdout, _Fork):
        sys.stdout = cast(TextIO, _Fork(sys.stdout))
    token = _in_tool.set(True)
    try:
        yield
    finally:
        _in_tool.reset(token)
