"""What a process knows of one endpoint: whether it may be called now, and how many requests it
accepts."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from functools import partial
from math import inf

from aeon.domain import errors
from aeon.domain.errors import CircuitOpen, LLMError, ProviderError, RateLimited, StopRequested
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack.limiter import Clock, Limiter
from aeon.llm.watching import tell_waiting

# Every other error shows that the server is reachable.
DOWN = (
    errors.ConnectionFailed,
    errors.ServerFailed,
    errors.NotAnAPI,
    errors.AuthenticationFailed,
    errors.QuotaExhausted,
)
_UNAVAILABLE = {408, 502, 503, 504, 529}
"""Statuses by which a server, or a gateway before it, says that it cannot answer any request now.
"""
LEAST_FAILING_SECONDS = 1.0
LONGEST_COOLDOWN_SECONDS = 3600.0
_LEAST_COOLDOWN_SECONDS = 0.05
_MOST_DOUBLINGS = 20  # without a bound, the power overflows in a long outage
_POLL_SECONDS = 0.25  # how often a wait looks whether its run is to stop


class EndpointState:
    """The state of one endpoint, for the life of the process; thread-safe.

    A cooldown begins after `breaker.failures` failures in a row, and when a call that waits for the
    endpoint requests it (`cool_down`). If no other endpoint can answer (`has_next` is False), it
    begins no sooner than a call needs to use up its attempts. If one can, it also begins after
    `retry.attempts` 429s in a row, or one that asks for more than `retry.max_wait_seconds`. After a
    cooldown, one call tests the endpoint. If no other can answer, the first cooldowns are short:
    each is as long as a further backoff.

    `answers` counts the answered requests; `was_reached` says whether any request ever arrived;
    `cause` is the error that caused the cooldown.
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
        self.name = name
        self._breaker = breaker
        self._retry = retry
        self._has_next = has_next
        self._clock = clock
        self._least_failing_seconds = 0.0
        if not has_next:
            self._least_failing_seconds = max(LEAST_FAILING_SECONDS, retry.seconds_of_attempts)
        self.answers = 0
        self.was_reached = False
        self._is_awaited = False
        self._lock = threading.Lock()
        self._is_up = threading.Condition(self._lock)
        self._failures = self._cooldowns = 0
        self._failing_since = self._failed_at = 0.0
        self._answered_at = clock()
        self._cooling_until: float | None = None
        self._cooldown_seconds = 0.0
        self.cause: LLMError | None = None

    @property
    def is_cooling(self) -> bool:
        """Whether the endpoint must not be called now."""
        return self._cooling_until is not None and self._clock() < self._cooling_until

    @property
    def failing_since(self) -> float | None:
        """When the endpoint began to fail, on the clock of `now`; None while it does not."""
        return self._failing_since if self._failures else None

    def now(self) -> float:
        """Return the seconds on the endpoint's clock."""
        return self._clock()

    def cool_down(self, error: ProviderError, times: int, most: float) -> float | None:
        """Start a cooldown for a waiting call that has used up its attempts for the `times`-th
        time; it lasts at most `most` seconds, or as long as the server asks for.

        Returns the seconds until the call may be sent again; None if the endpoint answers other
        calls and this one has not waited for it.
        """
        with self._lock:
            now = self._clock()
            asked = error.retry_after or 0.0
            if self._cooling_until is not None and now < self._cooling_until:
                self._cooling_until = min(self._cooling_until, now + most)
                return self._cooling_until - now
            if isinstance(error, CircuitOpen):  # from a cooldown that is over now
                return 0.0
            seconds = max(asked, min(most, self._further_backoff(times)))
            if self._answers_nobody(error, now) or asked > self._retry.max_wait_seconds:
                self._begin_cooldown(seconds, error)
                return seconds
            # A busy endpoint answers other calls, and one that has just come up may have answered
            # another before this call's last failure arrived: this call comes back later, at a time
            # of its own.
            comes_again = isinstance(error, RateLimited) or times > 1
            return seconds * random.uniform(0.5, 1.0) if comes_again else None

    def begin_waiting(self) -> bool:
        """Note that a call waits for the endpoint to come up; True for the first such call."""
        with self._lock:
            is_first = self._cooling_until is not None and not self._is_awaited
            self._is_awaited = self._is_awaited or is_first
            return is_first

    def end_waiting(self) -> bool:
        """Note that a waiting call was answered; True for the first such call."""
        with self._lock:
            was_awaited = self._is_awaited
            self._is_awaited = False
            return was_awaited

    def _answers_nobody(self, error: ProviderError, now: float) -> bool:
        if not isinstance(error, RateLimited):
            is_told = isinstance(error, errors.ConnectionFailed) or error.status in _UNAVAILABLE
            # A server error of another kind may be specific to one request.
            return self._failures >= (self._retry.attempts if is_told else self._breaker.failures)
        is_long = now - self._answered_at >= self._least_failing_seconds
        return is_long and self.limiter.refusals >= self._retry.attempts

    def wait_until_up(self, seconds: float, stop: Callable[[], bool]) -> None:
        """Wait for `seconds`, or during a cooldown only until the endpoint answers. Ends early when
        `stop` returns True."""
        end = self._clock() + seconds
        answers = self.answers
        with self._is_up:
            ends_early = self.is_cooling
            while (left := end - self._clock()) > 0 and not stop():
                if ends_early and self.answers > answers and not self.is_cooling:
                    return
                self._is_up.wait(min(left, _POLL_SECONDS))

    def admit(self) -> bool:
        """Let a call use the endpoint; True if the call tests it after a cooldown. Raises
        `CircuitOpen` during a cooldown."""
        with self._lock:
            if self._cooling_until is None:
                return False
            if self.is_cooling:
                raise self.refusal()
            # If the test never ends, another call tests the endpoint after another cooldown.
            self._cooling_until = self._clock() + self._cooldown_seconds
            return True

    def refusal(self) -> CircuitOpen:
        """Return the error that says why the endpoint is not called, and for how long."""
        seconds = max(0.0, (self._cooling_until or 0.0) - self._clock())
        cause = self.cause
        what = "is busy (429)"
        why = ""
        hint = (
            "Lower execution.max_parallel, or set provider.requests_per_minute to "
            "what the account allows."
        )
        if cause is not None and not isinstance(cause, RateLimited):
            what = f"has failed {self._failures} times in a row"
            why = f"; {type(cause).__name__}: {cause.message}"
            hint = cause.hint
        message = f"{self.name} {what} and is not asked for {seconds:.3g} s{why}"
        return CircuitOpen(message, retry_after=seconds, hint=hint)

    def end_busy_cooldown(self) -> None:
        """End the cooldown of a busy endpoint, because no other endpoint can answer either; one
        that is down continues to cool down."""
        with self._lock:
            if self._has_next and isinstance(self.cause, RateLimited):
                self._make_available()

    def note_answer(self, *, sent_at: float = inf, is_trial: bool = False) -> None:
        """Note that the endpoint is up. An answer to a request sent before the failures began does
        not prove that."""
        with self._lock:
            self.was_reached = True
            is_new = self._cooling_until is None and sent_at >= self._failing_since
            if is_trial or is_new:
                self._count_answer()
                self._make_available()

    def note_failure(self, error: LLMError, *, is_trial: bool = False) -> None:
        """Note the error of a request to the endpoint."""
        with self._lock:
            if not isinstance(error, errors.ConnectionFailed) or error.sent:
                self.was_reached = True
            # Requests that were under way when the cooldown began tell nothing new.
            if self._cooling_until is not None and not is_trial:
                return
            if isinstance(error, DOWN):
                self._count_failure()
                if is_trial or self._is_down:
                    self._begin_cooldown(self._cooldown_of_failing(), error)
                return
            seconds = None
            if isinstance(error, RateLimited):
                seconds = self._cooldown_of_busy(error, is_trial=is_trial)
            else:
                self._count_answer()
            if seconds is None:
                self._make_available()
            else:
                self._begin_cooldown(seconds, error)

    def _cooldown_of_failing(self) -> float:
        if self._has_next:
            return self._breaker.open_seconds
        return self._further_backoff(self._cooldowns + 1)

    def _cooldown_of_busy(self, error: RateLimited, *, is_trial: bool) -> float | None:
        asked = error.retry_after or 0.0
        if not self._has_next:
            is_still_busy = is_trial and isinstance(self.cause, RateLimited)
            return max(asked, self._further_backoff(self._cooldowns + 1)) if is_still_busy else None
        is_too_busy = (
            self.limiter.refusals >= self._retry.attempts or asked > self._retry.max_wait_seconds
        )
        if not (is_trial or is_too_busy):
            return None
        return min(LONGEST_COOLDOWN_SECONDS, asked or self._breaker.open_seconds)

    def _count_answer(self) -> None:
        self.answers += 1
        self._answered_at = self._clock()

    def _count_failure(self) -> None:
        now = self._clock()
        longest_wait = self._retry.max_wait_seconds + self._breaker.open_seconds
        is_first = not self._failures or now - self._failed_at > longest_wait
        self._failing_since = now if is_first else self._failing_since
        self._failures += 1
        self._failed_at = now

    @property
    def _is_down(self) -> bool:
        is_long = self._failed_at - self._failing_since >= self._least_failing_seconds
        return self._failures >= self._breaker.failures and is_long

    def _further_backoff(self, times: int) -> float:
        """Return the seconds of the backoff `times` after a call's last one, doubling each time."""
        first = max(_LEAST_COOLDOWN_SECONDS, self._retry.backoff(self._retry.attempts - 1, 0.0))
        return min(self._breaker.open_seconds, first * 2.0 ** min(times - 1, _MOST_DOUBLINGS))

    def _begin_cooldown(self, seconds: float, error: LLMError) -> None:
        self._cooldown_seconds = seconds
        self.cause = error
        self._cooling_until = self._clock() + seconds
        self._cooldowns += 1

    def _make_available(self) -> None:
        self._failures = self._cooldowns = 0
        self._failing_since = 0.0
        self._cooling_until = None
        self.cause = None
        self._is_up.notify_all()


class Gate:
    """Sends one run's requests to an endpoint as its state allows, and reports their outcomes to
    it. Raises `CircuitOpen` during a cooldown, and `StopRequested` when `stop` returns True during
    a wait."""

    def __init__(
        self, inner: LLMAdapter, state: EndpointState, *, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self._inner = inner
        self._state = state
        self._stop = stop

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        state = self._state
        limiter = state.limiter
        is_trial = state.admit()

        def check() -> None:
            if self._stop():
                raise StopRequested(
                    f"stopped before a {request.call} call was sent: it waited for its turn"
                )
            if state.is_cooling and not is_trial:
                raise state.refusal()

        turn = limiter.enter(request, check, partial(tell_waiting, request))
        sent_at = state.now()
        try:
            response = self._inner.complete(request)
        except LLMError as error:
            used = error.usage.total_tokens if error.usage_reported else turn.tokens
            limiter.leave(turn, used, error)
            state.note_failure(error, is_trial=is_trial)
            raise
        except BaseException:
            limiter.leave(turn, 0)
            raise
        used = response.usage.total_tokens if response.usage_reported else turn.tokens
        limiter.leave(turn, used, response)
        state.note_answer(sent_at=sent_at, is_trial=is_trial)
        return response
