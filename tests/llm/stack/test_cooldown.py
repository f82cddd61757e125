"""An endpoint that is busy for ever, with another behind it."""

import threading

import pytest

from aeon.domain.errors import CircuitOpen, ConnectionFailed, LLMError, RateLimited
from aeon.domain.request import LLMRequest, LLMResponse
from aeon.llm.settings import RetrySettings
from aeon.llm.stack.cooldown import LONGEST_SECONDS, Rest
from aeon.llm.stack.fallback import Fallback
from aeon.llm.stack.retry import Retry
from tests.support.requests import request


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
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
        self.busy = Server("busy", RateLimited("429", retry_after=retry_after))
        self.spare = Server("spare")
        self.rest = Rest("busy", 30, clock=self.clock)
        settings = RetrySettings(attempts=3)
        tries = Retry(self.busy, settings, sleep=lambda _: None, has_next=True, rests=lambda: self.rest.is_on)
        self.chain = Fallback([("busy", tries), ("spare", self.spare)], rests={"busy": self.rest})

    def ask(self, times: int = 1) -> list[str]:
        return [self.chain.complete(request()).text for _ in range(times)]


@pytest.fixture
def chain() -> Chain:
    return Chain()


def test_a_busy_endpoint_is_asked_by_one_call_and_then_left_in_peace(chain: Chain) -> None:
    assert chain.ask(18) == ["spare"] * 18
    assert chain.busy.asked == 3
    chain.clock.now += 29
    chain.ask()
    assert chain.busy.asked == 3


def test_one_request_tries_it_after_each_rest_and_an_answer_ends_it(chain: Chain) -> None:
    chain.ask()
    for tried in (4, 5):
        chain.clock.now += 30
        assert chain.ask(3) == ["spare"] * 3
        assert chain.busy.asked == tried
    chain.busy.failure = None
    assert chain.ask() == ["spare"]
    chain.clock.now += 30
    assert chain.ask(3) == ["busy"] * 3


@pytest.mark.parametrize(("asked", "rests"), [(2.0, 2.0), (86400.0, LONGEST_SECONDS)])
def test_it_rests_as_long_as_the_server_asks_but_not_for_ever(asked: float, rests: float) -> None:
    chain = Chain(retry_after=asked)
    chain.ask()
    made = chain.busy.asked
    chain.clock.now += rests - 0.1
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
    assert not chain.rest.is_on
    chain.busy.failure = RateLimited("429")
    with pytest.raises(ConnectionFailed, match="busy: RateLimited"):
        chain.ask()


def test_who_waits_for_its_turn_meanwhile_leaves_and_who_tries_it_does_not() -> None:
    clock = Clock()
    rest = Rest("busy", 30, clock=clock)
    rest.check()
    rest.begin(RateLimited("429"))
    with pytest.raises(CircuitOpen, match=r"busy has answered 429 to every attempt of a call .* for 30 s") as raised:
        rest.check()
    assert raised.value.falls_back
    clock.now += 30
    assert rest.admits()
    rest.check()
    others: list[bool] = []
    other = threading.Thread(target=lambda: others.append(rest.admits()))
    other.start()
    other.join()
    assert others == [False]
