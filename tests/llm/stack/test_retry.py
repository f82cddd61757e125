"""Retrying: which failures, how often, how long to wait, and what is told of it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from aeon.domain.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    LLMError,
    NotAnAPI,
    ProviderError,
    RateLimited,
    RequestRefused,
    ServerFailed,
    StopRequested,
    Truncated,
)
from aeon.domain.events import Event, RetryScheduled
from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Usage
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.protocols import SECONDS_BEFORE
from aeon.llm.settings import OpenAIProvider, RetrySettings
from aeon.llm.stack.retry import Retry
from tests.support.openai_server import Failure, OpenAIServer
from tests.support.requests import request
from tests.support.timing import SOON

PLAIN = RetrySettings(jitter_seconds=0.0)


class Scripted:
    """Answers or raises what it is given, in order; the last one for ever."""

    def __init__(self, *answers: LLMResponse | Exception) -> None:
        self.answers = list(answers)
        self.calls = 0

    def complete(self, request: LLMRequest) -> LLMResponse:
        answer = self.answers[min(self.calls, len(self.answers) - 1)]
        self.calls += 1
        if isinstance(answer, Exception):
            raise answer
        return answer


class Watched:
    """A `Retry` with everything it does on record: waits and events."""

    def __init__(
        self, inner: Any, settings: RetrySettings = PLAIN, stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.waits: list[float] = []
        self.events: list[Event] = []
        self.sites: list[CallSite | None] = []
        self.complete = Retry(
            inner, settings, emit=self.emit, stop=stop, sleep=self.waits.append
        ).complete

    def emit(self, event: Event, site: CallSite | None = None) -> None:
        self.events.append(event)
        self.sites.append(site)


ANSWER = LLMResponse("{}", Usage(10, 5, requests=1))


def test_a_failure_that_may_pass_is_tried_again_after_a_growing_wait() -> None:
    inner = Scripted(ServerFailed("500"), ConnectionFailed("reset"), ANSWER)
    watched = Watched(inner)
    assert watched.complete(request()).text == "{}"
    assert inner.calls == 3
    assert watched.waits == [1.0, 2.0]


def test_a_failure_for_ever_ends_after_the_attempts_saying_how_many() -> None:
    inner = Scripted(ServerFailed("the server answered 500", status=500, hint="look at its log"))
    watched = Watched(inner)
    with pytest.raises(ServerFailed, match=r"the server answered 500 \(3 attempts made") as raised:
        watched.complete(request())
    assert inner.calls == 3
    assert (raised.value.status, raised.value.hint) == (500, "look at its log")
    assert raised.value.message == str(raised.value)
    assert raised.value.__cause__ is inner.answers[0]


def test_the_adapters_own_error_stays_as_it_was() -> None:
    error = ServerFailed("500")
    for _ in range(2):
        with pytest.raises(ServerFailed, match=r"^500 \(3 attempts made; no more are made\)$"):
            Watched(Scripted(error)).complete(request())
    assert error.message == "500"


@pytest.mark.parametrize("attempts", [1, 2, 7])
def test_the_number_of_attempts_is_the_persons(attempts: int) -> None:
    inner = Scripted(ServerFailed("500"))
    watched = Watched(inner, RetrySettings(attempts=attempts, jitter_seconds=0))
    with pytest.raises(ServerFailed):
        watched.complete(request())
    assert (inner.calls, len(watched.waits), len(watched.events)) == (
        attempts,
        attempts - 1,
        attempts - 1,
    )


def test_the_wait_grows_by_the_factor_up_to_the_longest() -> None:
    settings = RetrySettings(
        attempts=5, initial_seconds=0.5, factor=3, max_seconds=10, jitter_seconds=0
    )
    watched = Watched(Scripted(ServerFailed("500")), settings)
    with pytest.raises(ServerFailed):
        watched.complete(request())
    assert watched.waits == [0.5, 1.5, 4.5, 10.0]


def test_jitter_adds_no_more_than_its_seconds() -> None:
    settings = RetrySettings(attempts=10, factor=1, jitter_seconds=0.5)
    watched = Watched(Scripted(ServerFailed("500")), settings)
    with pytest.raises(ServerFailed):
        watched.complete(request())
    assert all(1.0 <= wait <= 1.5 for wait in watched.waits)
    assert len(set(watched.waits)) > 1


@pytest.mark.parametrize(
    "kind", [AuthenticationFailed, RequestRefused, NotAnAPI, Truncated, ProviderError]
)
def test_a_failure_that_will_not_pass_is_raised_at_once_and_as_it_is(kind: type[LLMError]) -> None:
    error = kind("no")
    inner = Scripted(error)
    watched = Watched(inner)
    with pytest.raises(kind) as raised:
        watched.complete(request())
    assert raised.value is error
    assert (inner.calls, watched.events) == (1, [])


def test_a_programming_error_passes_through() -> None:
    inner = Scripted(KeyError("x"))
    with pytest.raises(KeyError):
        Watched(inner).complete(request())
    assert inner.calls == 1


@pytest.mark.parametrize("kind", [RateLimited, ServerFailed])
@pytest.mark.parametrize(
    ("asked", "waited"), [(7.0, 7.0), (0.2, 1.0), (0.0, 1.0), (None, 1.0), (60.0, 60.0)]
)
def test_the_servers_wait_is_honoured_if_it_is_longer(
    kind: type[ProviderError], asked: float | None, waited: float
) -> None:
    watched = Watched(Scripted(kind("later", retry_after=asked), ANSWER))
    watched.complete(request())
    assert watched.waits == [waited]


def test_a_longer_wait_than_allowed_ends_it_saying_so() -> None:
    inner = Scripted(RateLimited("slow down", retry_after=3600.0))
    watched = Watched(inner)
    with pytest.raises(
        RateLimited, match=r"1 attempt made; the server asks to wait 3600 s.*max_wait_seconds=120"
    ) as raised:
        watched.complete(request())
    assert raised.value.retry_after == 3600.0
    assert (inner.calls, watched.waits, watched.events) == (1, [], [])


def test_a_wait_that_the_server_asks_for_is_no_attempt() -> None:
    busy = RateLimited("slow down", retry_after=20.0)
    watched = Watched(
        Scripted(busy, busy, busy, busy, ServerFailed("500"), ServerFailed("500"), ANSWER)
    )
    assert watched.complete(request()).text == "{}"
    assert watched.waits == [20.0] * 4 + [1.0, 2.0]


def test_waits_that_the_server_asks_for_count_in_the_patience_of_a_call() -> None:
    busy = RateLimited("busy", retry_after=4.0)
    waits: list[float] = []
    with pytest.raises(RateLimited, match="asks to wait 4 s, more than is left of") as raised:
        Retry(Scripted(busy), PLAIN, sleep=waits.append, call_seconds=10.0).complete(request())
    assert waits == [4.0, 4.0]
    assert "provider.timeout_seconds=10" in raised.value.message


def test_a_wait_leaves_less_of_the_patience_to_the_next_attempt() -> None:
    left: list[float] = []

    class Busy(Scripted):
        def complete(self, request: LLMRequest) -> LLMResponse:
            left.append(SECONDS_BEFORE.get())
            return super().complete(request)

    busy = Busy(RateLimited("busy", retry_after=4.0), LLMResponse("done"))
    Retry(busy, PLAIN, sleep=lambda _: None, call_seconds=10.0).complete(request())
    assert left == [0.0, 4.0]


def test_waits_that_the_server_asks_for_without_end_come_to_one() -> None:
    inner = Scripted(RateLimited("slow down", retry_after=50.0))
    watched = Watched(inner)
    with pytest.raises(RateLimited, match="5 attempts made"):
        watched.complete(request())
    assert watched.waits == [50.0] * 4
    moments = Watched(
        Scripted(RateLimited("slow down", retry_after=0.001)),
        RetrySettings(max_wait_seconds=4, factor=1),
    )
    with pytest.raises(RateLimited, match="7 attempts made"):
        moments.complete(request())


def test_where_another_endpoint_can_answer_a_wait_is_an_attempt() -> None:
    inner = Scripted(RateLimited("slow down", retry_after=1.0))
    with pytest.raises(RateLimited, match="3 attempts made"):
        Retry(inner, PLAIN, sleep=lambda _: None, has_next=True).complete(request())


def test_each_wait_is_told_with_the_calls_site() -> None:
    site = CallSite(pass_number=2, cycle=9, sequence=41, step_id="s1")
    watched = Watched(Scripted(RateLimited("slow down"), ConnectionFailed("reset"), ANSWER))
    watched.complete(request("step", site=site))
    assert watched.events == [
        RetryScheduled(
            site=site, call="step", attempt=1, seconds=1.0, error="RateLimited: slow down"
        ),
        RetryScheduled(
            site=site, call="step", attempt=2, seconds=2.0, error="ConnectionFailed: reset"
        ),
    ]
    assert watched.sites == [site, site]


def test_what_failed_attempts_paid_is_added_to_the_answers_usage() -> None:
    watched = Watched(Scripted(ServerFailed("500", usage=Usage(7, 1, requests=1)), ANSWER))
    assert watched.complete(request()).usage == Usage(17, 6, requests=2)


def test_what_failed_attempts_paid_is_added_to_the_errors_usage() -> None:
    with pytest.raises(ServerFailed) as raised:
        Watched(Scripted(ServerFailed("500", usage=Usage(7, 1, requests=1)))).complete(request())
    assert raised.value.usage == Usage(21, 3, requests=3)


def unanswered() -> ConnectionFailed:
    error = ConnectionFailed("no answer in time", usage=Usage(7, requests=1))
    error.usage_reported = False
    return error


def test_an_attempt_that_was_never_answered_leaves_the_cost_unknown() -> None:
    answer = Watched(Scripted(unanswered(), ANSWER)).complete(request())
    assert (answer.usage, answer.usage_reported) == (Usage(17, 5, requests=2), False)
    for last in (ServerFailed("500"), RequestRefused("no")):
        with pytest.raises(LLMError) as raised:
            Watched(Scripted(unanswered(), last)).complete(request())
        assert (raised.value.usage, raised.value.usage_reported) == (Usage(7, requests=1), False)


def test_no_retry_starts_after_a_stop_was_asked_for() -> None:
    inner = Scripted(ServerFailed("500", usage=Usage(7)))
    watched = Watched(inner, stop=lambda: True)
    with pytest.raises(StopRequested) as raised:
        watched.complete(request())
    assert raised.value.usage == Usage(7)
    assert (inner.calls, watched.waits, watched.events) == (1, [], [])


def test_a_stop_does_not_keep_a_first_attempt_from_being_made() -> None:
    assert Watched(Scripted(ANSWER), stop=lambda: True).complete(request()) == ANSWER


def test_a_stop_ends_a_wait() -> None:
    asked = threading.Event()
    inner = Scripted(RateLimited("later", retry_after=59.0))
    retry = Retry(inner, PLAIN, stop=asked.is_set)
    threading.Timer(0.05, asked.set).start()
    begin = time.monotonic()
    with pytest.raises(StopRequested):
        retry.complete(request())
    assert time.monotonic() - begin < SOON
    assert inner.calls == 1


def test_the_wait_is_real() -> None:
    retry = Retry(
        Scripted(ServerFailed("500"), ANSWER), RetrySettings(initial_seconds=0.05, jitter_seconds=0)
    )
    begin = time.monotonic()
    retry.complete(request())
    assert time.monotonic() - begin >= 0.05


@pytest.mark.parametrize(
    ("failure", "kind", "attempts"),
    [
        (Failure(500), ServerFailed, 3),
        (Failure(409), ServerFailed, 3),
        (Failure(408), ServerFailed, 3),
        (Failure(429), RateLimited, 3),
        (Failure(reset=True), ConnectionFailed, 3),
        (Failure(400), RequestRefused, 1),
        (Failure(401), AuthenticationFailed, 1),
        (Failure(200, html=True), NotAnAPI, 1),
    ],
)
def test_a_real_server_that_fails_for_ever_sees_exactly_these_attempts(
    failure: Failure, kind: type[LLMError], attempts: int, openai_server: OpenAIServer
) -> None:
    openai_server.script["plan"] = failure
    adapter = OpenAIAdapter(OpenAIProvider(base_url=openai_server.url), "k")
    with pytest.raises(kind):
        Watched(adapter).complete(request())
    adapter.close()
    assert len(openai_server.requests) == attempts


def test_a_real_server_that_recovers_is_waited_for_as_it_asks(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = [Failure(429, headers={"retry-after": "5"}), {"answer": "x"}]
    adapter = OpenAIAdapter(OpenAIProvider(base_url=openai_server.url), "k")
    watched = Watched(adapter)
    assert watched.complete(request()).text == '{"answer": "x"}'
    adapter.close()
    assert watched.waits == [5.0]
