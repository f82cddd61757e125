"""Waiting for endpoints that are down or busy: a call whose attempts are used up waits for them,
and is sent again."""

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
"""How often a request may fail for good while others are answered: once may be the end of one
outage and the next."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long calls wait for a provider: at most `seconds` from when it began to fail, which the
    setting `key` says. `for_unreached`: also one that no request has ever reached, whose address
    may be wrong. `give_up`, if given, is called with the reason when the time is over, and the call
    is stopped instead of failing."""

    seconds: float = 0.0
    key: str = "provider.patience_seconds"
    for_unreached: bool = False
    give_up: Callable[[str], None] | None = None


@dataclass(slots=True)
class _Wait:
    """What one call has waited for: when it gave up first, its failures, and how often the endpoint
    had answered others at the last of them."""

    since: float
    answers: int
    failed: list[LLMError] = field(default_factory=list)
    times_alone: int = 0

    @property
    def cause(self) -> LLMError:
        """The last failure that says what is wrong."""
        found = [error for error in self.failed if not isinstance(error, CircuitOpen)]
        return (found or self.failed)[-1]

    def note(self, error: LLMError, answers: int) -> None:
        """Note one more failure, when the endpoint had answered so many requests."""
        self.failed.append(error)
        is_of_request = not isinstance(error, CircuitOpen | RateLimited)
        self.times_alone += is_of_request and answers > self.answers
        self.answers = answers


class Patient:
    """Sends a call again that the endpoints could not answer, once they may be asked again, as long
    as `patience` lasts. What lies in the request itself is not waited for: neither a failure that
    cannot pass, nor one at an endpoint that answers other requests meanwhile."""

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
        # Calls arrive at the last endpoint when those before it cannot answer.
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
        """The seconds until the request is sent again. Raises what the call ends with when it is
        not."""
        left = self._patience.seconds - _seconds_waited(wait, state)
        seconds = None
        if self._is_passing(error, wait, state):
            seconds = state.cool_down(error, len(wait.failed), max(left, 0.0))
        if seconds is None and len(wait.failed) == 1:
            raise error
        if seconds is None:
            raise in_other_words(wait.failed, error.message) from error
        if left <= 0 or seconds > left:
            raise self._end_waiting(wait, state) from error
        return seconds

    def _of_batches(self, request: LLMRequest) -> LLMResponse:
        """The answer of an endpoint that has no state, since its requests go out in batches and
        were waited for."""
        try:
            return self._inner.complete(request)
        except BatchesUnreachable as error:
            if self._patience.give_up is None:
                raise
            self._patience.give_up(error.message)
            raise StopRequested(error.message, usage=error.usage) from error

    def _is_passing(self, error: ProviderError, wait: _Wait, state: EndpointState) -> bool:
        """Whether it is the endpoint that is down or busy, and not the request or the address that
        is wrong."""
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
        """What the last attempt met, without the count of attempts; of several endpoints, what
        names each of them."""
        met = cause.__cause__
        return met if isinstance(met, LLMError) and not self._has_several else cause

    def _end_waiting(self, wait: _Wait, state: EndpointState) -> AeonError:
        """The error of a call that has waited long enough."""
        key = f"{self._patience.key}={self._patience.seconds:g}"
        last = self._last_met(wait.cause)
        seconds = f"{_seconds_waited(wait, state):.3g} s"
        message = f"{last.message} (waited {seconds} for it; {key})"
        if len(wait.failed) == 1:  # it was not waited at all: the failure itself says why
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
