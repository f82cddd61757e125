"""What a process knows of one endpoint: whether it may be asked now, and how many requests it takes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from aeon.domain import errors
from aeon.domain.errors import CircuitOpen, LLMError, RateLimited, StopRequested
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack.limiter import Clock, Limiter
from aeon.llm.watching import tell_waiting

_SERVER = (errors.ConnectionFailed, errors.ServerFailed, errors.NotAnAPI)
DOWN = (
    *_SERVER,
    errors.AuthenticationFailed,
    errors.QuotaExhausted,
)  # all else that a server says shows that it is up
LEAST_FAILING_SECONDS = 1.0
LONGEST_COOLDOWN_SECONDS = 3600.0


class EndpointState:
    """The state of one endpoint, for the life of the process; thread-safe.

    A cooldown begins after `breaker.failures` failures in a row, where no other endpoint can answer (`has_next`) no
    sooner than a call needs to use up its attempts. Where one can, it also begins after `retry.attempts` 429s in a row,
    or one that asks for more than `retry.max_wait_seconds`. After a cooldown one call tries the endpoint.
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
        self._name, self._breaker, self._retry, self._has_next, self._clock = (
            name,
            breaker,
            retry,
            has_next,
            clock,
        )
        self._least_failing_seconds = (
            0.0 if has_next else max(LEAST_FAILING_SECONDS, retry.seconds_of_attempts)
        )
        self._lock = threading.Lock()
        self._failures = 0
        self._failing_since = 0.0
        self._cooling_until: float | None = None
        self._cooldown_seconds = 0.0
        self._cause: LLMError | None = None

    @property
    def is_cooling(self) -> bool:
        """Whether the endpoint is not to be asked now."""
        return self._cooling_until is not None and self._clock() < self._cooling_until

    def admit(self) -> bool:
        """Let a call ask the endpoint; True if it is the one that tries it. Raises `CircuitOpen` during a cooldown."""
        with self._lock:
            if self._cooling_until is None:
                return False
            if self.is_cooling:
                raise self.refusal()
            # If the trial never ends, another call tries the endpoint after another cooldown.
            self._cooling_until = self._clock() + self._cooldown_seconds
            return True

    def refusal(self) -> CircuitOpen:
        """The error that says why the endpoint is not asked, and for how long."""
        seconds, cause = max(0.0, (self._cooling_until or 0.0) - self._clock()), self._cause
        what, why = "is busy (429)", ""
        hint = "Lower execution.max_parallel, or set provider.requests_per_minute to what the account allows."
        if cause is not None and not isinstance(cause, RateLimited):
            what, why = (
                f"has failed {self._failures} times in a row",
                f"; {type(cause).__name__}: {cause.message}",
            )
            hint = cause.hint
        message = f"{self._name} {what} and is not asked for {seconds:.3g} s{why}"
        return CircuitOpen(message, retry_after=seconds, hint=hint)

    def end_busy_cooldown(self) -> None:
        """Make a busy endpoint available, as no other can answer; one that is down goes on cooling down."""
        with self._lock:
            if isinstance(self._cause, RateLimited):
                self._make_available()

    def note_answer(self, *, is_trial: bool = False) -> None:
        """Note that the endpoint is up; an answer to what was asked before a cooldown does not show it."""
        with self._lock:
            if is_trial or self._cooling_until is None:
                self._make_available()

    def note_failure(self, error: LLMError, *, is_trial: bool = False) -> None:
        """Note the error of a request to the endpoint."""
        with self._lock:
            if self._cooling_until is not None and not is_trial:
                return
            seconds = None
            if isinstance(error, RateLimited):
                asked = error.retry_after or 0.0
                is_too_busy = (
                    self.limiter.refusals >= self._retry.attempts
                    or asked > self._retry.max_wait_seconds
                )
                if self._has_next and (is_trial or is_too_busy):
                    seconds = min(LONGEST_COOLDOWN_SECONDS, asked or self._breaker.open_seconds)
            elif isinstance(error, DOWN):
                now = self._clock()
                self._failing_since = self._failing_since if self._failures else now
                self._failures += 1
                is_long = now - self._failing_since >= self._least_failing_seconds
                if not is_trial and not (self._failures >= self._breaker.failures and is_long):
                    return
                seconds = self._breaker.open_seconds
            if seconds is None:
                self._make_available()
            else:
                self._cooldown_seconds, self._cause = seconds, error
                self._cooling_until = self._clock() + seconds

    def _make_available(self) -> None:
        self._failures, self._cooling_until, self._cause = 0, None, None


class Gate:
    """Sends one run's requests to an endpoint as its state allows, and tells the state their outcomes. Raises
    `CircuitOpen` while the endpoint cools down, and `StopRequested` when `stop` says yes in a wait."""

    def __init__(
        self, inner: LLMAdapter, state: EndpointState, *, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._inner, self._state, self._stop = inner, state, stop

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        state, limiter = self._state, self._state.limiter
        is_trial = state.admit()

        def check() -> None:
            if self._stop():
                raise StopRequested(
                    f"stopped before a {request.call} call was sent: it waited for its turn"
                )
            if state.is_cooling and not is_trial:
                raise state.refusal()

        turn = limiter.enter(request, check, partial(tell_waiting, request))
        try:
            response = self._inner.complete(request)
        except LLMError as error:
            limiter.leave(
                turn, error.usage.total_tokens if error.usage_reported else turn.tokens, error
            )
            state.note_failure(error, is_trial=is_trial)
            raise
        except BaseException:
            limiter.leave(turn, 0)
            raise
        limiter.leave(
            turn, response.usage.total_tokens if response.usage_reported else turn.tokens, response
        )
        state.note_answer(is_trial=is_trial)
        return response
