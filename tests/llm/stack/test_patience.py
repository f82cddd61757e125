"""Waiting for an endpoint that is down or busy: what is waited for, how long, and what is not."""

from collections.abc import Callable

import pytest

from aeon.domain.errors import (
    AuthenticationFailed,
    CircuitOpen,
    ConnectionFailed,
    LLMError,
    RateLimited,
    RequestRefused,
    ServerFailed,
    StopRequested,
)
from aeon.domain.events import RetryScheduled
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack.endpoint_state import EndpointState, Gate
from aeon.llm.stack.limiter import Limiter
from aeon.llm.stack.patience import Patience, Patient
from aeon.llm.stack.retry import EndpointAdapter, Fallback, Retry
from tests.llm.scripted import Heard
from tests.support.requests import request

ATTEMPTS = RetrySettings(attempts=3, initial_seconds=1.0, jitter_seconds=0)
BREAKER = BreakerSettings(failures=5, open_seconds=30)


class Clock:
    """A clock that stands still but for what is waited."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waited: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float, _stop: Callable[[], bool]) -> None:
        self.now += seconds
        self.waited.append(seconds)


class Server:
    """Fails by `failure` until `up_at`, and answers from then on."""

    def __init__(self, clock: Clock, failure: LLMError, up_at: float = 10**9) -> None:
        self.clock, self.failure, self.up_at = clock, failure, up_at
        self.asked: list[float] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.asked.append(self.clock.now - 1000.0)
        if self.clock.now < self.up_at:
            raise self.failure
        return LLMResponse("{}", usage=Usage(requests=1))


class Stack:
    """One endpoint with its wrappers, on a clock of its own."""

    def __init__(self, failure: LLMError, seconds_down: float = 10**9, **patience: object) -> None:
        self.clock = clock = Clock()
        self.server = Server(clock, failure, clock.now + seconds_down)
        limiter = Limiter(8, clock=clock)
        self.state = EndpointState("there", limiter, BREAKER, ATTEMPTS, clock=clock)
        self.state.wait_until_up = clock.wait  # type: ignore[method-assign]
        self.heard, self.stopped = Heard(), False
        self.retry = Retry(
            Gate(self.server, self.state),
            ATTEMPTS,
            sleep=lambda seconds: self.clock.wait(seconds, lambda: False),
            state=self.state,
        )
        self.patient = self.patient_of(Patience(**{"seconds": 60.0, **patience}))  # type: ignore[arg-type]

    def patient_of(self, patience: Patience) -> Patient:
        """A run's wrappers around the endpoint."""
        endpoint = EndpointAdapter("there", self.retry, ATTEMPTS, state=self.state)
        return Patient(
            Fallback([endpoint]),
            [endpoint],
            patience,
            emit=self.heard,
            stop=lambda: self.stopped,
        )


@pytest.mark.parametrize("seconds", [4.0, 20.0, 50.0])
@pytest.mark.parametrize("failure", [ServerFailed("503", status=503), RateLimited("429")])
def test_an_outage_shorter_than_the_patience_costs_a_call_nothing(
    failure: LLMError, seconds: float
) -> None:
    stack = Stack(failure, seconds)
    assert stack.patient.complete(request()).text == "{}"
    assert not stack.state.is_cooling
    assert len(stack.server.asked) <= 10


def test_the_call_has_its_attempts_first_and_then_comes_ever_more_rarely() -> None:
    stack = Stack(ServerFailed("503", status=503), 50.0)
    stack.patient.complete(request())
    assert stack.server.asked == [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 60.0]


def test_a_call_ends_with_the_last_failure_when_the_time_is_over() -> None:
    stack = Stack(
        ServerFailed("503: overloaded", status=503, hint="Look there.", usage=Usage(requests=1))
    )
    with pytest.raises(ServerFailed) as raised:
        stack.patient.complete(request())
    assert raised.value.message == (
        "503: overloaded (waited 60 s for it; provider.patience_seconds=60)"
    )
    assert raised.value.hint == "Look there."
    assert raised.value.usage.requests == len(stack.server.asked)
    assert stack.clock.now == 1060.0


def test_of_several_endpoints_each_is_named_when_the_time_is_over() -> None:
    stack = Stack(ServerFailed("503: overloaded", status=503))

    class Other:
        def complete(self, request: LLMRequest) -> LLMResponse:
            raise ConnectionFailed("nobody is there")

    endpoints = [
        EndpointAdapter("first", Other()),
        EndpointAdapter("there", stack.retry, ATTEMPTS, state=stack.state),
    ]
    patient = Patient(Fallback(endpoints), endpoints, Patience(60.0))
    with pytest.raises(ServerFailed) as raised:
        patient.complete(request())
    told = raised.value.message
    assert told.startswith("there: 503: overloaded")
    assert "asked before it: first: ConnectionFailed: nobody is there" in told
    assert told.endswith("(waited 60 s for it; provider.patience_seconds=60)")


def test_without_patience_the_attempts_are_all() -> None:
    stack = Stack(ServerFailed("503", status=503), seconds=0.0)
    with pytest.raises(ServerFailed, match="3 attempts made"):
        stack.patient.complete(request())
    assert len(stack.server.asked) == 3


@pytest.mark.parametrize("failure", [AuthenticationFailed("401"), RequestRefused("400")])
def test_what_does_not_pass_is_not_waited_for(failure: LLMError) -> None:
    stack = Stack(failure)
    with pytest.raises(type(failure)) as raised:
        stack.patient.complete(request())
    assert len(stack.server.asked) == 1
    assert raised.value.__cause__ is not raised.value


def test_a_server_that_nobody_ever_reached_is_not_waited_for_by_a_run() -> None:
    stack = Stack(ConnectionFailed("no such host"))
    with pytest.raises(ConnectionFailed, match="3 attempts made"):
        stack.patient.complete(request())
    assert len(stack.server.asked) == 3


def test_a_batch_waits_for_a_server_that_nobody_has_reached_yet() -> None:
    stack = Stack(ConnectionFailed("refused"), 20.0, for_unreached=True)
    assert stack.patient.complete(request()).text == "{}"


def test_a_server_that_was_reached_before_is_waited_for() -> None:
    stack = Stack(ConnectionFailed("refused"), 0.0)
    stack.patient.complete(request())
    stack.server.up_at = stack.clock.now + 20.0
    assert stack.patient.complete(request()).text == "{}"


def test_a_server_that_asks_for_a_longer_wait_than_the_patience_is_not_waited_for() -> None:
    stack = Stack(ServerFailed("503", status=503, retry_after=300.0))
    told = "the server asks to wait 300 s.*; provider.patience_seconds=60"
    with pytest.raises(ServerFailed, match=told):
        stack.patient.complete(request())
    assert stack.clock.waited == []


def test_a_server_that_asks_for_a_wait_within_the_patience_gets_it() -> None:
    stack = Stack(ServerFailed("503", status=503, retry_after=300.0), 250.0, seconds=600.0)
    assert stack.patient.complete(request()).text == "{}"
    assert stack.clock.waited == [300.0]


class Others:
    """Beside each attempt of the one call, another call is answered by the server."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.stack.state.note_answer(sent_at=self.stack.clock.now)
        raise self.stack.server.failure


def test_a_request_that_fails_alone_while_others_are_answered_is_not_waited_for() -> None:
    stack = Stack(ServerFailed("500"))
    stack.server.complete = Others(stack).complete  # type: ignore[method-assign]
    with pytest.raises(ServerFailed, match="3 attempts made"):
        stack.patient.complete(request())
    assert not stack.state.is_cooling


def test_a_server_error_of_one_request_is_no_outage() -> None:
    stack = Stack(ServerFailed("500", status=500))
    with pytest.raises(ServerFailed, match="3 attempts made"):
        stack.patient.complete(request())
    assert not stack.state.is_cooling


def test_server_errors_of_several_requests_in_a_row_are_an_outage() -> None:
    stack = Stack(ServerFailed("500", status=500), 20.0)
    with pytest.raises(ServerFailed, match="3 attempts made"):
        stack.patient.complete(request())
    assert stack.patient.complete(request()).text == "{}"


def test_a_request_that_is_the_only_one_for_a_while_is_found_out_when_others_are_answered() -> None:
    stack = Stack(ServerFailed("503", status=503), seconds=600.0)

    def wait(seconds: float, stop: Callable[[], bool]) -> None:
        stack.clock.wait(seconds, stop)
        stack.state.note_answer(is_trial=True)

    stack.state.wait_until_up = wait  # type: ignore[method-assign]
    with pytest.raises(ServerFailed):
        stack.patient.complete(request())
    assert len(stack.server.asked) == 9
    assert stack.clock.now < 1060.0


def test_a_busy_server_that_answers_others_is_asked_again_later() -> None:
    stack = Stack(RateLimited("429"), 20.0)
    plain = stack.server.complete

    def answer(asked: LLMRequest) -> LLMResponse:
        stack.state.note_answer(sent_at=stack.clock.now)
        return plain(asked)

    stack.server.complete = answer  # type: ignore[method-assign]
    assert stack.patient.complete(request()).text == "{}"
    assert not stack.state.is_cooling


def test_calls_that_come_during_the_outage_wait_too_and_ask_nothing() -> None:
    stack = Stack(ServerFailed("503", status=503), 20.0)
    stack.state.cool_down(ServerFailed("503", status=503, retry_after=300.0), 1, 25.0)
    assert stack.patient.complete(request()).text == "{}"
    assert len(stack.server.asked) == 1


def test_each_wait_is_told() -> None:
    stack = Stack(ServerFailed("503", status=503), 20.0)
    stack.patient.complete(request())
    told = stack.heard.of(RetryScheduled)
    assert [event.seconds for event in told if isinstance(event, RetryScheduled)] == [4, 8, 16]


def test_a_stop_ends_the_wait() -> None:
    stack = Stack(ServerFailed("503", status=503))

    def wait(seconds: float, stop: Callable[[], bool]) -> None:
        stack.stopped = True
        assert stop()

    stack.state.wait_until_up = wait  # type: ignore[method-assign]
    with pytest.raises(StopRequested, match="waited for its provider"):
        stack.patient.complete(request())
    assert len(stack.server.asked) == 3


def test_who_gives_up_for_all_stops_the_call_instead_of_failing_it() -> None:
    reasons: list[str] = []
    stack = Stack(
        ServerFailed("503", status=503), key="batch.patience_seconds", give_up=reasons.append
    )
    with pytest.raises(StopRequested):
        stack.patient.complete(request())
    assert reasons == ["503 (waited 60 s for it; batch.patience_seconds=60)"]


def test_who_gives_up_for_all_does_so_at_once_without_patience() -> None:
    reasons: list[str] = []
    stack = Stack(ServerFailed("503", status=503), seconds=0.0, give_up=reasons.append)
    with pytest.raises(StopRequested):
        stack.patient.complete(request())
    assert len(stack.server.asked) == 3
    assert len(reasons) == 1


def test_a_key_that_is_refused_during_a_cooldown_is_not_waited_for() -> None:
    stack = Stack(AuthenticationFailed("401"))
    for _ in range(3):
        with pytest.raises(AuthenticationFailed):
            stack.patient.complete(request())
    stack.clock.now += 10.0
    for _ in range(2):
        with pytest.raises(AuthenticationFailed):
            stack.patient.complete(request())
    asked = len(stack.server.asked)
    with pytest.raises(CircuitOpen):
        stack.patient.complete(request())
    assert len(stack.server.asked) == asked


def test_a_call_that_has_waited_comes_again_where_another_was_answered_before_its_failure() -> None:
    stack = Stack(ServerFailed("500", status=500))
    stack.state.note_answer(is_trial=True)
    failure = ServerFailed("500", status=500)
    assert stack.state.cool_down(failure, 1, 60.0) is None
    pause = stack.state.cool_down(failure, 2, 60.0)
    assert pause is not None
    assert 0 < pause <= 60.0
    assert not stack.state.is_cooling
