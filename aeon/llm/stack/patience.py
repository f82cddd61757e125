"""Waiting for endpoints that are down or busy: a call with no attempts left waits for them and is
sent again."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from aeon.domain.errors import (
    AeonError,
    BatchesUnreachable,
    CircuitOpen,
    ConnectionFailed,
    LLMError,
    ProviderError,
    RateLimited,
    ServerFailed,
    StopRequested,
)
from aeon.domain.events import Emit, RetryScheduled, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.retry import EndpointAdapter, in_other_words, usage_of, with_usage_of
from aeon.llm.watching import WAITS

_PASSING = (ConnectionFailed, ServerFailed, RateLimited)  # an outage, or too many requests
_log = logging.getLogger(WAITS)
_MOST_TIMES_ALONE = 2
"""How often a request may finally fail while others are answered; one such failure may fall between
two outages."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long calls wait for a provider: at most `seconds` after it began to fail, set by the
    configuration key `key`. `for_unreached`: also for a provider that no request has ever reached,
    whose address may be wrong. `give_up`, if given, is called with the reason when the time is
    over, and the call is stopped instead of failing."""

    seconds: float = 0.0
    key: str = "provider.patience_seconds"
    for_unreached: bool = False
    give_up: Callable[[str], None] | None = None


@dataclass(slots=True)
class _Wait:
    """The wait of one call: its start, its failures, and the number of other calls that the
    endpoint had answered at the last of them."""

    since: float
    answers: int
    failed: list[LLMError] = field(default_factory=list)
    times_alone: int = 0

    @property
    def cause(self) -> LLMError:
        """The last failure that explains what is wrong."""
        found = [error for error in self.failed if not isinstance(error, CircuitOpen)]
        return (found or self.failed)[-1]

    def note(self, error: LLMError, answers: int) -> None:
        """Record one more failure and the number of answers of the endpoint by then."""
        self.failed.append(error)
        is_of_request = not isinstance(error, CircuitOpen | RateLimited)
        self.times_alone += is_of_request and answers > self.answers
        self.answers = answers


class Patient:
    """Sends a call again after the endpoints failed to answer it, for as long as `patience` lasts.
    Does not wait for failures of the request itself: those that cannot pass, and those at an
    endpoint that answers other requests meanwhile."""

    def __init__(
        self,
        inner: LLMAdapter,
        endpoints: Sequence[EndpointAdapter],
        patience: Patience,
        *,
        emit: Emit = ignore,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._inner = inner
        self._patience = patience
        self._has_several = len(endpoints) > 1
        # Calls reach the last endpoint when the ones before it cannot answer.
        self._state = endpoints[-1].state if endpoints else None
        self._emit = emit
        self._stop = stop

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the endpoints' failure, with the usage of all attempts, and
        StopRequested."""
        state = self._state
        patience = self._patience
        if state is None or (patience.seconds <= 0 and patience.give_up is None):
            return self._of_batches(request)
        wait: _Wait | None = None
        while True:
            try:
                response = self._inner.complete(request)
                if wait is not None and state.end_waiting():
                    seconds = _seconds_waited(wait, state)
                    _log.info("%s answers again, after %.3g s", state.name, seconds)
                return with_usage_of(wait.failed if wait else (), response)
            except ProviderError as error:
                wait = wait or _Wait(state.now(), state.answers)
                wait.note(error, state.answers)
                seconds = self._find_pause(error, wait, state)
            self._wait(seconds, request, wait, state)

    def _find_pause(self, error: ProviderError, wait: _Wait, state: EndpointState) -> float:
        """Return the seconds until the request is sent again. Raises the call's final error if it
        is not."""
        left = self._patience.seconds - _seconds_waited(wait, state)
        seconds = None
        if self._is_passing(error, wait, state):
            seconds = state.cool_down(error, len(wait.failed), max(left, 0.0))
        if seconds is None:
            if len(wait.failed) == 1:
                raise error
            raise in_other_words(wait.failed, error.message) from error
        if left <= 0 or seconds > left:
            raise self._end_waiting(wait, state) from error
        return seconds

    def _of_batches(self, request: LLMRequest) -> LLMResponse:
        """Answer through an endpoint without a state: its requests are sent in batches and have
        waited already."""
        try:
            return self._inner.complete(request)
        except BatchesUnreachable as error:
            if self._patience.give_up is None:
                raise
            self._patience.give_up(error.message)
            raise StopRequested(error.message, usage=error.usage) from error

    def _is_passing(self, error: ProviderError, wait: _Wait, state: EndpointState) -> bool:
        """Whether the endpoint is down or busy, rather than the request or the address wrong."""
        cause = (state.cause or error) if isinstance(error, CircuitOpen) else error
        if isinstance(cause, ConnectionFailed) and not state.was_reached:
            return self._patience.for_unreached
        return isinstance(cause, _PASSING) and wait.times_alone < _MOST_TIMES_ALONE

    def _wait(self, seconds: float, request: LLMRequest, wait: _Wait, state: EndpointState) -> None:
        error = wait.cause
        site = request.site
        if not self._stop():
            event = RetryScheduled(
                site=site,
                call=request.call,
                attempt=len(wait.failed),
                seconds=round(seconds, 3),
                error=f"{type(error).__name__}: {error.message}",
            )
            self._emit(event, site)
            if state.begin_waiting():
                most = f"at most {self._patience.seconds:g} s ({self._patience.key})"
                _log.info("%s: calls wait for %s, %s", event.error, state.name, most)
            state.wait_until_up(seconds, self._stop)
        if self._stop():
            message = f"stopped while a {request.call} call waited for its provider"
            raise StopRequested(message, usage=usage_of(wait.failed)[0])

    def _last_met(self, cause: LLMError) -> LLMError:
        """Return the last attempt's error without the count of attempts; with several endpoints,
        the error that names each of them."""
        # `Retry` raises its copy, with the count, from the error itself.
        met = cause.__cause__
        return met if isinstance(met, LLMError) and not self._has_several else cause

    def _end_waiting(self, wait: _Wait, state: EndpointState) -> AeonError:
        """Return the error of a call that has waited long enough."""
        key = f"{self._patience.key}={self._patience.seconds:g}"
        last = self._last_met(wait.cause)
        seconds = f"{_seconds_waited(wait, state):.3g} s"
        message = f"{last.message} (waited {seconds} for it; {key})"
        if len(wait.failed) == 1:  # there was no wait: the failure itself says why
            message = f"{wait.cause.message}; {key}"
        if self._patience.give_up is not None:
            self._patience.give_up(message)
            return StopRequested(message, usage=usage_of(wait.failed)[0])
        end = copy.copy(wait.cause)
        end.message = message
        end.args = (message,)
        end.usage, end.usage_reported = usage_of(wait.failed)
        return end


def _seconds_waited(wait: _Wait, state: EndpointState) -> float:
    since = wait.since if state.failing_since is None else min(wait.since, state.failing_since)
    return state.now() - since
