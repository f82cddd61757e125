"""Cooling down: what begins it, which call is let through, what ends it; with and without another endpoint behind."""

import pytest

from aeon.domain.errors import (
    AuthenticationFailed,
    CircuitOpen,
    ConnectionFailed,
    LLMError,
    NotAnAPI,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServerFailed,
    Truncated,
)
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack.endpoint_state import LONGEST_COOLDOWN_SECONDS, EndpointState, Gate
from aeon.llm.stack.limiter import Limiter
from aeon.llm.stack.retry import EndpointAdapter, Fallback, Retry
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


def gate(patience: float = 0.0) -> tuple[Server, Gate, EndpointState, Clock]:
    """An endpoint that has another one behind it, unless it is given time."""
    server, clock = Server(), Clock()
    waits = RetrySettings(
        attempts=2 if patience else 10, initial_seconds=patience, jitter_seconds=0
    )
    limiter = Limiter(8, clock=clock)
    state = EndpointState("there", limiter, SETTINGS, waits, has_next=not patience, clock=clock)
    return server, Gate(server, state), state, clock


def fail(server: Server, through: Gate, failure: BaseException, times: int = 1) -> None:
    server.failure = failure
    for _ in range(times):
        with pytest.raises(type(failure)):
            through.complete(request())
    server.failure = None


@pytest.mark.parametrize(
    "kind", [ConnectionFailed, ServerFailed, AuthenticationFailed, QuotaExhausted, NotAnAPI]
)
def test_failures_in_a_row_open_it_and_then_nobody_asks(kind: type[ProviderError]) -> None:
    server, through, state, _ = gate()
    fail(server, through, kind("gone", hint="Look there."), 3)
    assert state.is_cooling
    with pytest.raises(
        CircuitOpen, match=r"there has failed 3 times in a row and is not asked .* gone"
    ) as raised:
        through.complete(request())
    assert server.asked == 3
    assert (raised.value.retry_after, raised.value.retryable, raised.value.hint) == (
        30.0,
        False,
        "Look there.",
    )


@pytest.mark.parametrize("error", [RateLimited("429"), RequestRefused("400"), Truncated("cut off")])
def test_whatever_else_a_server_says_shows_that_it_is_alive(error: LLMError) -> None:
    server, through, state, _ = gate()
    for _ in range(3):
        fail(server, through, ServerFailed("500"), 2)
        fail(server, through, error)
    assert not state.is_cooling


def test_an_answer_between_failures_begins_the_count_anew() -> None:
    server, through, state, _ = gate()
    for _ in range(3):
        fail(server, through, ServerFailed("500"), 2)
        through.complete(request())
    assert not state.is_cooling


def test_after_a_while_one_request_tries_it_and_an_answer_closes_it() -> None:
    server, through, state, clock = gate()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 29
    fail(server, through, CircuitOpen("still open"))
    clock.now += 1
    assert through.complete(request()).text == "{}"
    assert not state.is_cooling
    assert server.asked == 4


def test_a_failed_trial_opens_it_for_another_while() -> None:
    server, through, _, clock = gate()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 30
    fail(server, through, ServerFailed("500"))
    clock.now += 29
    fail(server, through, CircuitOpen("open again"))
    assert server.asked == 4


def test_while_one_request_tries_it_the_others_are_turned_away() -> None:
    server, through, state, clock = gate()
    fail(server, through, ServerFailed("500"), 3)
    clock.now += 30
    assert state.admit()
    with pytest.raises(CircuitOpen):
        through.complete(request())
    state.note_answer(is_trial=True)
    assert not state.is_cooling


def test_an_answer_to_a_request_of_before_proves_nothing() -> None:
    server, through, state, _ = gate()
    fail(server, through, ServerFailed("500"), 3)
    state.note_answer()
    assert state.is_cooling


def test_an_endpoint_with_nothing_behind_it_is_given_time() -> None:
    server, through, state, clock = gate(patience=4.0)
    fail(server, through, ServerFailed("500"), 10)
    assert not state.is_cooling
    clock.now += 4
    fail(server, through, ServerFailed("500"))
    assert state.is_cooling


class Named:
    """Answers with its name, or raises what it is told to."""

    def __init__(self, name: str, failure: LLMError | None = None) -> None:
        self.name, self.failure, self.asked = name, failure, 0

    def complete(self, request: LLMRequest) -> LLMResponse:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return LLMResponse(self.name)


class Chain:
    """A busy endpoint that tries three times, and a spare one that does not."""

    def __init__(self, retry_after: float | None = None) -> None:
        self.clock = Clock()
        self.busy = Named("busy", RateLimited("429", retry_after=retry_after))
        self.spare = Named("spare")
        settings = RetrySettings(attempts=3)
        limiter = Limiter(8, longest_pause=0, clock=self.clock)
        self.state = EndpointState(
            "busy", limiter, SETTINGS, settings, has_next=True, clock=self.clock
        )
        gate = Gate(self.busy, self.state)
        tries = Retry(gate, settings, sleep=lambda _: None, has_next=True, state=self.state)
        self.chain = Fallback(
            [EndpointAdapter("busy", tries, state=self.state), EndpointAdapter("spare", self.spare)]
        )

    def ask(self, times: int = 1) -> list[str]:
        return [self.chain.complete(request()).text for _ in range(times)]


@pytest.fixture
def chain() -> Chain:
    return Chain()


def test_a_busy_endpoint_is_asked_by_one_call_and_then_not_asked(chain: Chain) -> None:
    assert chain.ask(18) == ["spare"] * 18
    assert chain.busy.asked == 3
    chain.clock.now += 29
    chain.ask()
    assert chain.busy.asked == 3


def test_one_request_tries_it_after_each_cooldown_and_an_answer_ends_it(chain: Chain) -> None:
    chain.ask()
    for tried in (4, 5):
        chain.clock.now += 30
        assert chain.ask(3) == ["spare"] * 3
        assert chain.busy.asked == tried
    chain.busy.failure = None
    assert chain.ask() == ["spare"]
    chain.clock.now += 30
    assert chain.ask(3) == ["busy"] * 3


@pytest.mark.parametrize(("asked", "cools"), [(2.0, 2.0), (86400.0, LONGEST_COOLDOWN_SECONDS)])
def test_it_cools_down_as_long_as_the_server_asks_but_not_for_ever(
    asked: float, cools: float
) -> None:
    chain = Chain(retry_after=asked)
    chain.ask()
    made = chain.busy.asked
    chain.clock.now += cools - 0.1
    chain.ask()
    assert chain.busy.asked == made
    chain.clock.now += 0.2
    chain.ask()
    assert chain.busy.asked == made + 1


def test_when_nobody_else_can_answer_it_is_asked_after_all(chain: Chain) -> None:
    chain.ask()
    chain.busy.failure = None
    chain.spare.failure = ConnectionFailed("down")
    assert chain.ask() == ["busy"]
    assert not chain.state.is_cooling
    chain.busy.failure = RateLimited("429")
    with pytest.raises(ConnectionFailed, match="busy: RateLimited"):
        chain.ask()


def test_while_it_is_busy_it_says_for_how_long_and_one_call_tries_it(chain: Chain) -> None:
    state = chain.state
    assert not state.admit()
    chain.ask()
    with pytest.raises(
        CircuitOpen, match=r"busy is busy \(429\) and is not asked for 30 s"
    ) as raised:
        state.admit()
    assert raised.value.falls_back
    chain.clock.now += 30
    assert state.admit()
    with pytest.raises(CircuitOpen):
        state.admit()
