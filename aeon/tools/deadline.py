"""Calling something that may never return."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")


class TookTooLong(Exception):
    """The work was not done in time; its thread is left to itself and does not keep the program from ending."""


def call_within(seconds: float, work: Callable[[], T], name: str) -> T:
    """The result of `work`, carried out in a daemon thread of that name with this thread's context variables.

    Raises TookTooLong after `seconds`, whatever `work` raises, and RuntimeError when no thread can be started. A
    SystemExit or KeyboardInterrupt of `work` is raised here like any other.
    """
    done: queue.SimpleQueue[tuple[T, None] | tuple[None, BaseException]] = queue.SimpleQueue()
    context = copy_context()

    def carry_out() -> None:
        try:
            done.put((context.run(work), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=carry_out, name=name, daemon=True).start()
    try:
        result, error = done.get(timeout=seconds)
    except queue.Empty:
        raise TookTooLong from None
    if error is not None:
        raise error
    return result  # type: ignore[return-value] # without an error it is a T
