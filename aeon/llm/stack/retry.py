"""Trying a failed request again: exponential backoff with jitter, and the wait that a server asks for."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

from tenacity import RetryCallState, Retrying, retry_if_exception

from aeon.domain.errors import AeonError, LLMError, RateLimited, StopRequested
from aeon.domain.events import Emit, RetryScheduled, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.llm.attempts import after_seconds
from aeon.llm.settings import RetrySettings

STOP_POLL_SECONDS = 0.1
LEAST_WAIT_SECONDS = 1.0
"""What a wait that the server asks for counts at least, so that one of a moment is not asked for without end."""


class Retry:
    """Repeats a request whose failure may pass (`error.retryable`), 429 too: at most `settings.attempts` attempts.

    The wait after attempt n is `initial_seconds * factor ** (n - 1)` plus up to `jitter_seconds`, and at most
    `max_seconds`. It is longer if the server asks for it (`retry_after`); an attempt that ends so is not counted, as
    long as such waits take no more than `max_wait_seconds` together and no other endpoint `has_next` to answer. No
    further attempt is made if the server asks for more than `max_wait_seconds` at once, nor while `rests` says that
    the endpoint is to be left in peace. Each wait is reported as a `RetryScheduled`, whose `attempt` is the one that
    failed, from 1. `stop` is asked before and during a wait; a yes raises `StopRequested`. `sleep` takes seconds and
    replaces the wait.
    """

    def __init__(
        self,
        inner: LLMAdapter,
        settings: RetrySettings,
        *,
        emit: Emit = ignore,
        stop: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] | None = None,
        has_next: bool = False,
        rests: Callable[[], bool] = lambda: False,
    ) -> None:
        self._inner = inner
        self._settings = settings
        self._emit = emit
        self._stop = stop
        self._sleep = sleep or self._sleep_until_stopped
        self._rests, self._has_next = rests, has_next

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last failure, with the number of attempts and the usage of them all."""
        failed: list[AeonError] = []
        patience = _Patience(self._settings, self._has_next, self._rests)

        def before_attempt(state: RetryCallState) -> None:
            if state.attempt_number > 1 and self._stop():
                asked = f"stopped before attempt {state.attempt_number} of a {request.call} call"
                raise StopRequested(asked, usage=paid(failed))

        def before_wait(state: RetryCallState) -> None:
            failed.append(_failure(state))
            if not self._stop():
                self._announce(request, state)

        def give_up(state: RetryCallState) -> NoReturn:
            self._give_up(state, failed)

        retrying = Retrying(
            retry=retry_if_exception(_is_retryable),
            wait=patience.wait,
            stop=patience.is_over,
            before=before_attempt,
            before_sleep=before_wait,
            sleep=self._sleep_unless_stopped,
            retry_error_callback=give_up,
        )
        try:
            response: LLMResponse = retrying(self._attempt, request, failed)
        except LLMError as error:
            if failed and not error.retryable:
                error.usage, error.usage_reported = paid([*failed, error]), all_reported([*failed, error])
            raise
        reported = response.usage_reported and all_reported(failed)
        return replace(response, usage=paid(failed) + response.usage, usage_reported=reported)

    def _attempt(self, request: LLMRequest, failed: Sequence[AeonError]) -> LLMResponse:
        with after_seconds(sum(getattr(error, "seconds", 0.0) for error in failed)):
            return self._inner.complete(request)

    def _announce(self, request: LLMRequest, state: RetryCallState) -> None:
        error = _failure(state)
        event = RetryScheduled(
            site=request.site,
            call=request.call,
            attempt=state.attempt_number,
            seconds=round(state.upcoming_sleep, 3),
            error=f"{type(error).__name__}: {error.message}",
        )
        self._emit(event, request.site)

    def _give_up(self, state: RetryCallState, failed: Sequence[AeonError]) -> NoReturn:
        """Raise the last failure again as a copy: the adapter's own error stays as it was, and is its cause."""
        error, made = _failure(state), state.attempt_number
        asked, most = _asked(error), self._settings.max_wait_seconds
        if asked > most:
            why = f"the server asks to wait {asked:g} s, more than provider.retry.max_wait_seconds={most:g}"
        else:
            why = "no more are made"
        last = copy.copy(error)
        last.message = f"{error.message} ({made} {'attempt' if made == 1 else 'attempts'} made; {why})"
        last.args = (last.message,)
        last.usage = paid([*failed, error])
        if isinstance(last, LLMError):
            last.usage_reported = all_reported([*failed, error])
        raise last from error

    def _sleep_unless_stopped(self, seconds: float) -> None:
        if not self._stop():
            self._sleep(seconds)

    def _sleep_until_stopped(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not self._stop():
            time.sleep(min(left, STOP_POLL_SECONDS))


class _Patience:
    """How long one call waits, and when it has been tried enough."""

    def __init__(self, settings: RetrySettings, has_next: bool, rests: Callable[[], bool]) -> None:
        self._settings, self._rests = settings, rests
        self._failed_attempts = 0
        self._seconds_left = 0.0 if has_next else settings.max_wait_seconds

    def wait(self, state: RetryCallState) -> float:
        """Seconds to wait: the backoff, or what the server asks for if that is longer."""
        asked, jitter = _asked(_failure(state)), random.uniform(0, self._settings.jitter_seconds)
        backoff = self._settings.initial_seconds * self._settings.factor**self._failed_attempts
        # Jitter on both: everyone that the server sent away at once would be back at once.
        return max(min(backoff + jitter, self._settings.max_seconds), asked + jitter if asked else 0.0)

    def is_over(self, state: RetryCallState) -> bool:
        """Whether the attempts are used up, or the server asks for a longer wait than allowed."""
        error = _failure(state)
        asked = _asked(error)
        if asked > self._settings.max_wait_seconds or (isinstance(error, RateLimited) and self._rests()):
            return True
        if 0 < asked <= self._seconds_left:
            self._seconds_left -= max(asked, LEAST_WAIT_SECONDS)
            return False
        self._failed_attempts += 1
        return self._failed_attempts >= self._settings.attempts


def patience(settings: RetrySettings) -> float:
    """The seconds that a request takes to use up its attempts at a server that fails at once."""
    backoffs = (settings.initial_seconds * settings.factor**n for n in range(settings.attempts - 1))
    return sum(min(backoff + settings.jitter_seconds, settings.max_seconds) for backoff in backoffs)


def paid(failed: Sequence[AeonError]) -> Usage:
    """What failed attempts used together."""
    return sum((error.usage for error in failed), start=Usage())


def all_reported(failed: Sequence[AeonError]) -> bool:
    """Whether it is known what each of them cost."""
    return all(getattr(error, "usage_reported", True) for error in failed)


def _is_retryable(error: BaseException) -> bool:
    return isinstance(error, AeonError) and error.retryable


def _failure(state: RetryCallState) -> AeonError:
    """The error of the attempt that has just failed: `_is_retryable` lets no other kind come this far."""
    error = state.outcome.exception() if state.outcome is not None else None
    if not isinstance(error, AeonError):
        raise TypeError(f"not a failed attempt: {state}")
    return error


def _asked(error: AeonError) -> float:
    """The seconds that the server asks to wait, 0 if it does not."""
    return getattr(error, "retry_after", None) or 0.0
