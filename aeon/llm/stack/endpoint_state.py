"""What a process knows of one endpoint: whether it may be asked now, and how many requests it takes.

An endpoint is available, or cooling down until a moment. After that moment one call tries it, and its outcome decides:
an answer makes the endpoint available, another failure begins the next cooldown.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from aeon.domain.errors import (
    AuthenticationFailed,
    CircuitOpen,
    ConnectionFailed,
    LLMError,
    NotAnAPI,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    StopRequested,
)
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.attempts import attempting
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack.limiter import Clock, Limiter

DOWN = (ConnectionFailed, ServerFailed, AuthenticationFailed, QuotaExhausted, NotAnAPI)
"""Errors that count as failures. All else that a server says, 429 and other 4xx too, shows that it is up."""
LEAST_FAILING_SECONDS = 1.0
LONGEST_COOLDOWN_SECONDS = 3600.0


class EndpointState:
    """The state of one endpoint, for the life of the process; consulted by all runs, thread-safe.

    A cooldown begins after `breaker.failures` failures in a row, and lasts `breaker.open_seconds`. It begins no
    sooner, where no other endpoint can answer, than a call needs to use up its attempts (`retry`), a second at least.
    Where another endpoint can answer (`has_next`), a cooldown also begins after `retry.attempts` 429s in a row, those
    to requests sent together counting once, and after one that asks for more than `retry.max_wait_seconds`: it lasts as
    long as the server asks, an hour at most, else `breaker.open_seconds`. `clock` gives seconds.
    """

    def __init__(
        self,
        name: str,
        limiter: Limiter,
        breaker: BreakerSettings,
        retry: RetrySettings,
        *,
        has_next: bool = False,
        clock: Clock = time.monotonic,
    ) -> None:
        self.limiter = limiter
        self._name, self._breaker, self._retry, self._has_next, self._clock = name, breaker, retry, has_next, clock
        self._least_failing_seconds = 0.0 if has_next else max(LEAST_FAILING_SECONDS, retry.seconds_of_attempts)
        self._lock = threading.Lock()
        self._failures = 0
        self._failing_since = 0.0
        self._cooling_until: float | None = None
        self._cooldown_seconds = 0.0
        self._cause: LLMError | None = None
        self._trying: int | None = None  # the thread whose call tries the endpoint

    @property
    def is_available(self) -> bool:
        """Whether this thread's call may ask the endpoint: it is not cooling down, or this call is its trial."""
        with self._lock:
            return self._is_available()

    def admits(self) -> bool:
        """Whether this thread's call may ask the endpoint; the first one after a cooldown becomes its trial."""
        with self._lock:
            now = self._clock()
            if not self._is_available() and self._cooling_until is not None and now >= self._cooling_until:
                # If the trial never ends, another call tries the endpoint after another cooldown.
                self._cooling_until, self._trying = now + self._cooldown_seconds, threading.get_ident()
            return self._is_available()

    def check(self) -> None:
        """Raise `CircuitOpen` unless the endpoint is available."""
        if not self.is_available:
            raise self.refusal()

    def refusal(self) -> CircuitOpen:
        """The error that says why the endpoint is not asked, and for how long."""
        with self._lock:
            seconds = max(0.0, (self._cooling_until or 0.0) - self._clock())
            cause = self._cause
            if cause is None or isinstance(cause, RateLimited):
                return CircuitOpen(
                    f"{self._name} is busy (429) and is not asked for {seconds:.3g} s",
                    retry_after=seconds,
                    hint="Lower execution.max_parallel, or set provider.requests_per_minute to what the account "
                    "allows.",
                )
            return CircuitOpen(
                f"{self._name} has failed {self._failures} times in a row and is not asked for {seconds:.3g} s; "
                f"{type(cause).__name__}: {cause.message}",
                retry_after=seconds,
                hint=cause.hint,
            )

    def end_busy_cooldown(self) -> None:
        """Make a busy endpoint available, as no other can answer; one that is down goes on cooling down."""
        with self._lock:
            if isinstance(self._cause, RateLimited):
                self._make_available()

    def answered(self) -> None:
        """The endpoint is up."""
        with self._lock:
            # An answer to a request of before the cooldown proves nothing; only that of the trial does.
            if self._is_available():
                self._make_available()

    def failed(self, error: LLMError) -> None:
        """A request to the endpoint raised this error."""
        if isinstance(error, RateLimited):
            self._refused(error)
        elif isinstance(error, DOWN):
            self._count_failure(error)
        else:
            self.answered()

    def broken_off(self) -> None:
        """A request ended before the endpoint could show how it is; if it was the trial, the next call tries it."""
        with self._lock:
            if self._trying == threading.get_ident():
                self._cooling_until, self._trying = self._clock(), None

    def _refused(self, error: RateLimited) -> None:
        asked = error.retry_after or 0.0
        with self._lock:
            is_too_often = self.limiter.refusals >= self._retry.attempts or asked > self._retry.max_wait_seconds
            if self._has_next and (self._is_trial() or (is_too_often and self._cooling_until is None)):
                self._cool_down(error, min(LONGEST_COOLDOWN_SECONDS, asked or self._breaker.open_seconds))
            elif self._is_available():
                self._make_available()

    def _count_failure(self, error: LLMError) -> None:
        with self._lock:
            now = self._clock()
            self._failing_since = self._failing_since if self._failures else now
            self._failures += 1
            is_enough = (
                self._failures >= self._breaker.failures and now - self._failing_since >= self._least_failing_seconds
            )
            if self._is_trial() or (is_enough and self._cooling_until is None):
                self._cool_down(error, self._breaker.open_seconds)

    def _is_trial(self) -> bool:
        return self._trying == threading.get_ident()

    def _is_available(self) -> bool:
        return self._cooling_until is None or self._is_trial()

    def _make_available(self) -> None:
        self._failures, self._cooling_until, self._cause, self._trying = 0, None, None, None

    def _cool_down(self, error: LLMError, seconds: float) -> None:
        self._cooldown_seconds, self._cause, self._trying = seconds, error, None
        self._cooling_until = self._clock() + seconds


class Gate:
    """Sends one run's requests to an endpoint as its state allows, and reports their outcomes to the state.

    Holds no slot of the limiter while no request is under way. Raises `CircuitOpen` without asking the endpoint while
    it cools down, and `StopRequested` when `stop` says yes during a wait. An adapter that sends several requests for
    one, or sends it later, has each of them counted as it goes out (`aeon.llm.attempts`).
    """

    def __init__(self, inner: LLMAdapter, state: EndpointState, *, stop: Callable[[], bool] = lambda: False) -> None:
        self._inner, self._state, self._stop = inner, state, stop

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        state, limiter = self._state, self._state.limiter

        def check_wait() -> None:
            self._check_stop(request)
            state.check()

        def go_out() -> float:
            if seconds := limiter.go_out(turn):
                self._check_stop(request)
            return seconds

        state.check()
        try:
            turn = limiter.enter(request, check_wait)
        except BaseException:
            state.broken_off()
            raise
        try:
            with attempting(go_out=go_out):
                response = self._inner.complete(request)
        except LLMError as error:
            limiter.leave(turn, error.usage.total_tokens if error.usage_reported else turn.tokens, error)
            state.failed(error)
            raise
        except BaseException:
            limiter.leave(turn, 0)
            state.broken_off()
            raise
        limiter.leave(turn, response.usage.total_tokens if response.usage_reported else turn.tokens, response)
        state.answered()
        return response

    def _check_stop(self, request: LLMRequest) -> None:
        if self._stop():
            raise StopRequested(f"stopped before a {request.call} call was sent: it waited for its turn")
