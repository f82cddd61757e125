"""Leaving an endpoint that has answered 429 to a whole call in peace, where another one can answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from aeon.domain.errors import CircuitOpen, RateLimited

LONGEST_SECONDS = 3600.0


class Rest:
    """The rest of one endpoint, for the life of the process; may be used from many threads.

    It begins when a call has used up its attempts, or calls side by side have been refused as often. It lasts as long
    as the server asked to wait, else `seconds`; an hour at most. Then one call asks the endpoint again, and after each
    such time another one; an answer ends it. `clock` gives seconds.
    """

    def __init__(self, name: str, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._until: float | None = None
        self._length = seconds
        self._trying: int | None = None

    @property
    def is_on(self) -> bool:
        """Whether the endpoint is left in peace, but for the call that may be trying it."""
        with self._lock:
            return self._until is not None

    def admits(self) -> bool:
        """Whether this thread's call may ask the endpoint in its turn: always, but for a rest, in which one call may
        when the time is over."""
        with self._lock:
            if self._until is None:
                return True
            now = self._clock()
            if now < self._until:
                return False
            self._until, self._trying = now + self._length, threading.get_ident()
            return True

    def check(self) -> None:
        """Raise `CircuitOpen` if the endpoint rests and this thread's call is not the one that tries it."""
        with self._lock:
            if self._until is None or self._trying == threading.get_ident():
                return
        raise self.refusal()

    def refusal(self) -> CircuitOpen:
        """Why the endpoint is not asked."""
        with self._lock:
            left = max(0.0, (self._until or 0.0) - self._clock())
        return CircuitOpen(
            f"{self._name} has answered 429 to every attempt of a call and is left in peace for {left:.3g} s",
            retry_after=left,
            hint="Lower execution.max_parallel, or set provider.requests_per_minute to what the account allows.",
        )

    def begin(self, error: RateLimited) -> None:
        """A call has used up its attempts, or several have together."""
        with self._lock:
            self._length = min(LONGEST_SECONDS, error.retry_after or self._seconds)
            self._until, self._trying = self._clock() + self._length, None

    def end(self) -> None:
        """The endpoint answered, or nobody else can."""
        with self._lock:
            self._until = self._trying = None
