"""Asking again after a failure: the same endpoint after a wait, and then the next one."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from aeon.domain.errors import LLMError, ProviderError, StopRequested
from aeon.domain.events import Emit, FallbackUsed, RetryScheduled, ignore
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.llm.prices import PriceList
from aeon.llm.protocols import SECONDS_BEFORE
from aeon.llm.settings import RetrySettings
from aeon.llm.stack.endpoint_state import EndpointState

STOP_POLL_SECONDS = 0.05
LEAST_WAIT_SECONDS = (
    1.0  # what a wait that the server asks for counts at least, or it might ask without end
)


class Retry:
    """Repeats a request whose failure may pass (`error.retryable`), 429 too, in `settings.attempts` attempts.

    An attempt after which the server asks for a wait is not counted, as long as such waits take `max_wait_seconds`
    together and there is no other endpoint (`has_next`). No attempt is made after a longer wait, or while the endpoint
    cools down (`state`). A yes of `stop` ends a wait and raises `StopRequested`.
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
    ) -> None:
        self._inner, self._settings, self._state, self._has_next = inner, settings, state, has_next
        self._emit, self._stop, self._sleep = (
            emit,
            stop,
            sleep or partial(sleep_until_stopped, stop=stop),
        )

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last failure, with the number of attempts and the usage of them all."""
        settings, failed, attempts = self._settings, list[LLMError](), 0
        server_seconds_left = 0.0 if self._has_next else settings.max_wait_seconds
        while True:
            before = SECONDS_BEFORE.set(
                sum(error.seconds for error in failed if isinstance(error, ProviderError))
            )
            try:
                return with_usage_of(failed, self._inner.complete(request))
            except LLMError as error:
                failed.append(error)
                if not error.retryable:
                    error.usage, error.usage_reported = usage_of(failed)
                    raise
                asked = (isinstance(error, ProviderError) and error.retry_after) or 0.0
                # Jitter on both: everyone that the server sent away at once would be back at once.
                jitter = random.uniform(0, settings.jitter_seconds)
                seconds = max(settings.backoff(attempts, jitter), asked + jitter if asked else 0.0)
                if 0 < asked <= server_seconds_left:
                    server_seconds_left -= max(asked, LEAST_WAIT_SECONDS)
                else:
                    attempts += 1
                is_cooling = self._state is not None and self._state.is_cooling
                if asked > settings.max_wait_seconds or attempts == settings.attempts or is_cooling:
                    raise self._given_up(failed, asked) from error
            finally:
                SECONDS_BEFORE.reset(before)
            self._wait(seconds, request, failed)

    def _wait(self, seconds: float, request: LLMRequest, failed: Sequence[LLMError]) -> None:
        site, call, number = request.site, request.call, len(failed)
        if not self._stop():
            told = f"{type(failed[-1]).__name__}: {failed[-1].message}"
            self._emit(
                RetryScheduled(
                    site=site, call=call, attempt=number, seconds=round(seconds, 3), error=told
                ),
                site,
            )
            self._sleep(seconds)
        if self._stop():
            raise StopRequested(
                f"stopped before attempt {number + 1} of a {call} call", usage=usage_of(failed)[0]
            )

    def _given_up(self, failed: Sequence[LLMError], asked: float) -> LLMError:
        why, most = "no more are made", self._settings.max_wait_seconds
        if asked > most:
            why = f"the server asks to wait {asked:g} s, more than provider.retry.max_wait_seconds={most:g}"
        attempts = "1 attempt" if len(failed) == 1 else f"{len(failed)} attempts"
        return in_other_words(failed, f"{failed[-1].message} ({attempts} made; {why})")


def sleep_until_stopped(seconds: float, stop: Callable[[], bool]) -> None:
    """Wait, until `stop` says yes at the longest."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not stop():
        time.sleep(min(left, STOP_POLL_SECONDS))


def in_other_words(failed: Sequence[LLMError], message: str) -> LLMError:
    """A copy of the last failure with another message, and the usage of all; the adapter's own stays as it was."""
    last = copy.copy(failed[-1])
    last.message, last.args = message, (message,)
    last.usage, last.usage_reported = usage_of(failed)
    return last


def with_usage_of(failed: Sequence[LLMError], response: LLMResponse) -> LLMResponse:
    """The response, its usage that of the failed attempts before it too."""
    if not failed:
        return response
    usage, reported = usage_of(failed)
    return replace(
        response, usage=usage + response.usage, usage_reported=response.usage_reported and reported
    )


def usage_of(failed: Sequence[LLMError]) -> tuple[Usage, bool]:
    """What failed attempts used together, and whether all of it is known."""
    return sum((error.usage for error in failed), start=Usage()), all(
        error.usage_reported for error in failed
    )


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server or model, for the life of the process; without a `state` nothing is held back. `has_next` says that
    another endpoint is asked when this one cannot answer."""

    name: str
    adapter: LLMAdapter
    retry: RetrySettings = field(default_factory=RetrySettings)
    prices: PriceList = field(default_factory=PriceList)
    state: EndpointState | None = None
    has_next: bool = False


class Fallback:
    """Asks endpoints in order until one answers; the next after an error that says that the endpoint is of no use
    (`falls_back`), for its own model. The first time that one stands in for another is reported as `FallbackUsed`."""

    def __init__(self, endpoints: Sequence[Endpoint], *, emit: Emit = ignore) -> None:
        self._endpoints, self._emit = tuple(endpoints), emit
        self._reported: set[tuple[str, str]] = set()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises the last endpoint's error, which quotes the errors of those before it."""
        failed: list[LLMError] = []
        for endpoint in self._in_order():
            is_first = endpoint is self._endpoints[0]
            # Another than the first answers with its own model.
            asked = (
                request
                if is_first
                else replace(request, parameters=replace(request.parameters, model=None))
            )
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
            named = (
                response
                if response.endpoint == endpoint.name
                else replace(response, endpoint=endpoint.name)
            )
            return with_usage_of(failed, named)
        if len(failed) == 1:
            raise failed[0]
        before = "; ".join(
            f"{error.endpoint}: {type(error).__name__}: {error.message}" for error in failed[:-1]
        )
        last = failed[-1]
        raise in_other_words(
            failed, f"{last.endpoint}: {last.message} (asked before it: {before})"
        ) from last

    def _in_order(self) -> Iterator[Endpoint]:
        last: list[Endpoint] = []
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
        error = (
            failed[-1]
            if failed
            else first.state.refusal()
            if first.state
            else LLMError("not asked")
        )
        told, site = f"{type(error).__name__}: {error.message}", request.site
        self._emit(
            FallbackUsed(site=site, call=request.call, failed=before, endpoint=name, error=told),
            site,
        )
