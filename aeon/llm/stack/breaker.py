"""Leaving a dead endpoint alone: a circuit breaker.

Closed, every request passes; `failures` failed attempts in a row open it. Open, none passes, for `open_seconds`. Then
it is half-open: one request passes and decides, the others are turned away until it has.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from aeon.domain.errors import (
    AeonError,
    AuthenticationFailed,
    CircuitOpen,
    ConnectionFailed,
    LLMError,
    NotAnAPI,
    QuotaExhausted,
    ServerFailed,
)
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.settings import BreakerSettings

DEAD = (ConnectionFailed, ServerFailed, AuthenticationFailed, QuotaExhausted, NotAnAPI)
"""What counts as a failure. Everything else that a server says, 429 and other 4xx too, shows that it is alive."""


class Circuit:
    """The state of one endpoint, for the life of the process; may be used from many threads.

    It opens no sooner than `patience_seconds` after the first of the failures in a row: an endpoint with nothing behind
    it is given as long as a request takes to use up its attempts. `clock` gives seconds.
    """

    def __init__(
        self,
        name: str,
        settings: BreakerSettings,
        *,
        patience_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._name = name
        self._settings = settings
        self._patience = patience_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._failing_since = 0.0
        self._opened_at: float | None = None
        self._prober: int | None = None
        self._last: AeonError | None = None

    @property
    def is_open(self) -> bool:
        """Whether requests are turned away, but for one that may be trying the endpoint."""
        with self._lock:
            return self._opened_at is not None

    def admit(self) -> None:
        """Let this thread's request pass, or raise `CircuitOpen`. One that passes must be followed by one of the
        three below, in the same thread."""
        with self._lock:
            if self._opened_at is None or self._prober == threading.get_ident():
                return
            if self._prober is not None or self._clock() - self._opened_at < self._settings.open_seconds:
                raise self._refusal(self._opened_at)
            self._prober = threading.get_ident()

    def check(self) -> None:
        """Raise `CircuitOpen` if the circuit has opened since this thread's request was let pass."""
        with self._lock:
            if self._opened_at is not None and self._prober != threading.get_ident():
                raise self._refusal(self._opened_at)

    def alive(self) -> None:
        """The endpoint answered."""
        with self._lock:
            # A success of before it opened proves nothing; only the one that was sent to find out does.
            if self._opened_at is None or self._prober == threading.get_ident():
                self._failures, self._opened_at, self._prober, self._last = 0, None, None, None

    def dead(self, error: AeonError) -> None:
        """The endpoint failed."""
        with self._lock:
            now = self._clock()
            self._failing_since = self._failing_since if self._failures else now
            self._failures += 1
            self._last = error
            if self._prober == threading.get_ident():
                self._opened_at, self._prober = now, None
            elif self._opened_at is None and self._is_enough(now):
                self._opened_at = now

    def unknown(self) -> None:
        """The request ended before the endpoint could show how it is."""
        with self._lock:
            if self._prober == threading.get_ident():
                self._prober = None

    def _is_enough(self, now: float) -> bool:
        return self._failures >= self._settings.failures and now - self._failing_since >= self._patience

    def _refusal(self, opened_at: float) -> CircuitOpen:
        left = max(0.0, opened_at + self._settings.open_seconds - self._clock())
        last = f"{type(self._last).__name__}: {self._last.message}" if self._last else "unknown"
        return CircuitOpen(
            f"{self._name} has failed {self._failures} times in a row and is left alone for {left:.3g} s; {last}",
            retry_after=left,
            hint=self._last.hint if self._last else "",
        )


class Breaker:
    """Sends requests through a circuit. Raises `CircuitOpen` without asking the endpoint while it is open."""

    def __init__(self, inner: LLMAdapter, circuit: Circuit) -> None:
        self._inner = inner
        self._circuit = circuit

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        self._circuit.admit()
        try:
            response = self._inner.complete(request)
        except CircuitOpen:  # it opened, or the endpoint began to rest, while the request waited for its turn
            self._circuit.unknown()
            raise
        except DEAD as error:
            self._circuit.dead(error)
            raise
        except LLMError:
            self._circuit.alive()
            raise
        except BaseException:
            self._circuit.unknown()
            raise
        self._circuit.alive()
        return response
