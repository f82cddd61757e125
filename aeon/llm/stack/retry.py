"""Tries again after a failure: the same endpoint after a wait, then the next one."""

from __future__ import annotations

import copy
import math
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tenacity import RetryCallState, Retrying, retry_if_exception

from aeon.domain.errors import LLMError, ProviderError, StopRequested
from aeon.domain.events import Emit, FallbackUsed, RetryScheduled, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.llm.prices import PriceList
from aeon.llm.protocols import SECONDS_BEFORE
from aeon.llm.settings import RetrySettings
from aeon.llm.stack.endpoint_state import EndpointState

STOP_POLL_SECONDS = 0.05
LEAST_WAIT_SECONDS = 1.0
"""The least that a wait requested by the server counts, so that it cannot ask without end."""


class Retry:
    """Repeats a request whose failure may pass (`error.retryable`, 429 too), in at most
    `settings.attempts` attempts.

    Waits that the server requests count towards `call_seconds`, the time of a call with its
    attempts. An attempt followed by such a wait does not count, while these waits total at most
    `max_wait_seconds` and there is no other endpoint (`has_next`). There is no further attempt
    after a longer wait, or while the endpoint cools down (`state`). When `stop` returns True, a
    wait ends and `StopRequested` is raised.
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
        state: EndpointState | None = None,
        call_seconds: float = math.inf,
    ) -> None:
        self._inner = inner
        self._settings = settings
        self._call_seconds = call_seconds
        self._emit = emit
        self._stop = stop
        self._has_next = has_next
        self._state = state
        self._retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            wait=self._seconds_before_next,
            stop=self._is_last,
            before_sleep=self._announce_wait,
            sleep=sleep or partial(sleep_until_stopped, stop=stop),
            retry_error_callback=self._give_up,
        )

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last failure, with the number of attempts and their total
        usage."""
        failed: list[LLMError] = []
        return self._retrying(self._attempt, request, failed)

    def _attempt(self, request: LLMRequest, failed: list[LLMError]) -> LLMResponse:
        if failed:
            self._check_stop(request, failed)
        # A time-out is for the whole call, waits that the server asked for included.
        taken = sum(error.seconds for error in failed if isinstance(error, ProviderError))
        before = SECONDS_BEFORE.set(taken + sum(map(_read_retry_after, failed)))
        try:
            return with_usage_of(failed, self._inner.complete(request))
        except LLMError as error:
            failed.append(error)
            if not error.retryable:
                error.usage, error.usage_reported = usage_of(failed)
            raise
        finally:
            SECONDS_BEFORE.reset(before)

    def _seconds_before_next(self, state: RetryCallState) -> float:
        _, failed = state.args
        asked = _read_retry_after(failed[-1])
        # Jitter on both, or all requests that the server turned away would return at the same
        # moment.
        jitter = random.uniform(0, self._settings.jitter_seconds)
        backoff = self._settings.backoff(self._count_attempts(failed[:-1]), jitter)
        return max(backoff, asked + jitter if asked else 0.0)

    def _is_last(self, state: RetryCallState) -> bool:
        _, failed = state.args
        asked = _read_retry_after(failed[-1])
        return (
            asked > self._settings.max_wait_seconds
            or asked > self._seconds_left(failed)
            or self._count_attempts(failed) == self._settings.attempts
            or (self._state is not None and self._state.is_cooling)
        )

    def _seconds_left(self, failed: Sequence[LLMError]) -> float:
        """Return the rest of a call's seconds after the waits that its server requested, not
        counting the last."""
        return self._call_seconds - sum(map(_read_retry_after, failed[:-1]))

    def _count_attempts(self, failed: Sequence[LLMError]) -> int:
        attempts = 0
        server_seconds_left = 0.0 if self._has_next else self._settings.max_wait_seconds
        for error in failed:
            asked = _read_retry_after(error)
            if 0 < asked <= server_seconds_left:
                server_seconds_left -= max(asked, LEAST_WAIT_SECONDS)
            else:
                attempts += 1
        return attempts

    def _announce_wait(self, state: RetryCallState) -> None:
        request, failed = state.args
        self._check_stop(request, failed)
        scheduled = RetryScheduled(
            site=request.site,
            call=request.call,
            attempt=len(failed),
            seconds=round(state.upcoming_sleep, 3),
            error=f"{type(failed[-1]).__name__}: {failed[-1].message}",
        )
        self._emit(scheduled, request.site)

    def _check_stop(self, request: LLMRequest, failed: Sequence[LLMError]) -> None:
        if self._stop():
            message = f"stopped before attempt {len(failed) + 1} of a {request.call} call"
            raise StopRequested(message, usage=usage_of(failed)[0])

    def _give_up(self, state: RetryCallState) -> LLMResponse:
        _, failed = state.args
        asked = _read_retry_after(failed[-1])
        why = "no more are made"
        most = self._settings.max_wait_seconds
        if asked > most:
            why = (
                f"the server asks to wait {asked:g} s, more than "
                f"provider.retry.max_wait_seconds={most:g}"
            )
        elif asked > self._seconds_left(failed):
            why = (
                f"the server asks to wait {asked:g} s, more than is left of "
                f"provider.timeout_seconds={self._call_seconds:g}"
            )
        attempts = "1 attempt" if len(failed) == 1 else f"{len(failed)} attempts"
        message = f"{failed[-1].message} ({attempts} made; {why})"
        raise in_other_words(failed, message) from failed[-1]


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, LLMError) and error.retryable


def _read_retry_after(error: LLMError) -> float:
    return (isinstance(error, ProviderError) and error.retry_after) or 0.0


def sleep_until_stopped(seconds: float, stop: Callable[[], bool]) -> None:
    """Sleep for `seconds`, or until `stop` returns True."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, STOP_POLL_SECONDS))


def in_other_words(failed: Sequence[LLMError], message: str) -> LLMError:
    """Return a copy of the last failure with another message and the usage of all; the original is
    unchanged."""
    # It stays the cause of the copy, in its own words.
    last = copy.copy(failed[-1])
    last.message = message
    last.args = (message,)
    last.usage, last.usage_reported = usage_of(failed)
    return last


def with_usage_of(failed: Sequence[LLMError], response: LLMResponse) -> LLMResponse:
    """Return the response with the usage of the failed attempts added."""
    if not failed:
        return response
    usage, reported = usage_of(failed)
    return replace(
        response, usage=usage + response.usage, usage_reported=response.usage_reported and reported
    )


def usage_of(failed: Sequence[LLMError]) -> tuple[Usage, bool]:
    """Return the total usage of failed attempts, and whether all of it is known."""
    usage = sum((error.usage for error in failed), start=Usage())
    return usage, all(error.usage_reported for error in failed)


@dataclass(frozen=True, slots=True)
class EndpointAdapter:
    """One server or model, for the life of the process; without a `state`, requests are not
    limited. `has_next`: another endpoint is tried if this one cannot answer; `seconds_of_call`: the
    most seconds a call may take in all."""

    name: str
    adapter: LLMAdapter
    retry: RetrySettings = field(default_factory=RetrySettings)
    prices: PriceList = field(default_factory=PriceList)
    state: EndpointState | None = None
    has_next: bool = False
    seconds_of_call: float = math.inf


class Fallback:
    """Tries endpoints in order until one answers: after an error that rules the endpoint out
    (`falls_back`), the next one, with its own model. The first time that one endpoint replaces
    another is reported as `FallbackUsed`."""

    def __init__(self, endpoints: Sequence[EndpointAdapter], *, emit: Emit = ignore) -> None:
        self._endpoints = tuple(endpoints)
        self._emit = emit
        self._reported: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last endpoint's error, which quotes the errors of the
        endpoints before it."""
        failed: list[LLMError] = []
        for endpoint in self._in_order():
            is_first = endpoint is self._endpoints[0]
            asked = request
            if not is_first:  # it uses its own model
                asked = replace(request, parameters=replace(request.parameters, model=None))
            try:
                response = endpoint.adapter.complete(asked)
            except LLMError as error:
                error.endpoint = endpoint.name
                failed.append(error)
                if not error.falls_back:
                    break
                continue
            if not is_first:
                self._report(request, failed, endpoint.name)
            if response.endpoint != endpoint.name:
                response = replace(response, endpoint=endpoint.name)
            return with_usage_of(failed, response)
        if len(failed) == 1:
            raise failed[0]
        before = "; ".join(
            f"{error.endpoint}: {type(error).__name__}: {error.message}" for error in failed[:-1]
        )
        last = failed[-1]
        message = f"{last.endpoint}: {last.message} (asked before it: {before})"
        raise in_other_words(failed, message) from last

    def _in_order(self) -> Iterator[EndpointAdapter]:
        last: list[EndpointAdapter] = []
        for endpoint in self._endpoints:
            if endpoint.state is not None and endpoint.state.is_cooling:
                last.append(endpoint)
            else:
                yield endpoint
        if last and last[-1].state is not None:
            last[-1].state.end_busy_cooldown()
        yield from last

    def _report(self, request: LLMRequest, failed: Sequence[LLMError], name: str) -> None:
        first = self._endpoints[0]
        before = failed[-1].endpoint if failed else first.name
        if (before, name) in self._reported:
            return
        self._reported.add((before, name))
        error = LLMError("not asked")
        if failed:
            error = failed[-1]
        elif first.state is not None:  # it cools down, and comes last in the order
            error = first.state.refusal()
        event = FallbackUsed(
            site=request.site,
            call=request.call,
            failed=before,
            endpoint=name,
            error=f"{type(error).__name__}: {error.message}",
        )
        self._emit(event, request.site)
