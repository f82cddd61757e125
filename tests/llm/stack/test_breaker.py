"""The circuit breaker: what opens it, who is let through, what closes it."""

import threading

import pytest

from aeon.domain.errors import (
    AeonError,
    AuthenticationFailed,
    CircuitOpen,
    ConnectionFailed,
    NotAnAPI,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
    StopRequested,
    Truncated,
)
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.settings import BreakerSettings
from aeon.llm.stack.breaker import Breaker, Circuit
from tests.support.requests import request

SETTINGS = BreakerSettings(failures=3, open_seconds=30)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers, or raises what it is told to."""

    def __init__(self) -> None:
        self.failure: BaseException | None = None
        self.asked = 0

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return LLMResponse("{}")


def breaker(patience: float = 0.0) -> tuple[Server, Breaker, Circuit, Clock]:
    server, clock = Server(), Clock()
    circuit = Circuit("there", SETTINGS, patience_seconds=patience, clock=clock)
    return server, Breaker(server, circuit), circuit, clock


def fail(server: Server, through: Breaker, failure: BaseException, times: int = 1) -> None:
    server.failure = failure
    for _ in range(times):
        with pytest.raises(type(failure)):
            through.complete(request())
    server.failure = None


@pytest.mark.parametrize("kind", [ConnectionFailed, ServerFailed, AuthenticationFailed, QuotaExhausted, NotAnAPI])
def test_failures_in_a_row_open_it_and_then_nobody_asks(kind: type[ProviderError]) -> None:
    server, through, circuit, _ = breaker()
    fail(server, through, kind("gone", hint="Look there."), 3)
    assert circuit.is_open
    with pytest.raises(CircuitOpen, match=r"there has failed 3 times in a row .* gone") as raised:
        through.complete(request())
    assert server.asked == 3
    assert (raised.value.retry_after, raised.value.retryable, raised.value.hint) == (30.0, False, "Look there.")


@pytest.mark.parametrize("error", [RateLimited("429"), RequestRefused("400"), Truncated("cut off")])
def test_whatever_else_a_server_says_shows_that_it_is_alive(error: AeonError) -> None:
    server, through, circuit, _ = breaker()
    for _ in range(3):
        fail(server, through, ServerFailed("500"), 2)
        fail(server, through, error)
    assert not circuit.is_open


def test_an_answer_between_failures_begins_the_count_anew() -> None:
    server, through, circuit, _ = breaker()
    for _ in range(3):
        fail(server, through, ServerFailed("500"), 2)
        through.complete(request())
    assert not circuit.is_open


def test_after_a_while_one_request_tries_it_and_an_answer_closes_it() -> None:
    server, through, circuit, clock = breaker()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 29
    fail(server, through, CircuitOpen("still open"))
    clock.now += 1
    assert through.complete(request()).text == "{}"
    assert not circuit.is_open
    assert server.asked == 4


def test_a_failed_trial_opens_it_for_another_while() -> None:
    server, through, _, clock = breaker()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 30
    fail(server, through, ServerFailed("500"))
    clock.now += 29
    fail(server, through, CircuitOpen("open again"))
    assert server.asked == 4


def test_while_one_request_tries_it_the_others_are_turned_away() -> None:
    server, through, circuit, clock = breaker()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 30
    circuit.admit()
    turned_away: list[bool] = []

    def another() -> None:
        with pytest.raises(CircuitOpen):
            through.complete(request())
        turned_away.append(True)

    thread = threading.Thread(target=another)
    thread.start()
    thread.join()
    assert turned_away == [True]
    circuit.alive()
    assert not circuit.is_open


def test_a_trial_that_is_broken_off_leaves_the_next_one_to_try() -> None:
    server, through, circuit, clock = breaker()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 30
    fail(server, through, StopRequested("the run was stopped"))
    assert circuit.is_open
    assert through.complete(request()).text == "{}"


def test_an_answer_to_a_request_of_before_proves_nothing() -> None:
    server, through, circuit, _ = breaker()
    fail(server, through, ServerFailed("500"), 3)
    circuit.alive()
    assert circuit.is_open


def test_an_endpoint_with_nothing_behind_it_is_given_time() -> None:
    server, through, circuit, clock = breaker(patience=4.0)
    fail(server, through, ServerFailed("500"), 10)
    assert not circuit.is_open
    clock.now += 4
    fail(server, through, ServerFailed("500"))
    assert circuit.is_open


def test_a_request_that_waited_for_its_turn_is_not_sent_once_it_is_open() -> None:
    server, through, circuit, _ = breaker()
    circuit.admit()
    circuit.check()
    fail(server, through, ServerFailed("500"), 3)
    with pytest.raises(CircuitOpen):
        circuit.check()
