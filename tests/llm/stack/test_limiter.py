"""What a limiter allows: at once, a minute, in which order, and who may leave."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aeon.domain.errors import CircuitOpen, RateLimited, ServerFailed, StopRequested
from aeon.domain.request import LLMRequest, LLMResponse, Message, Usage
from aeon.llm.settings import BreakerSettings, RetrySettings
from aeon.llm.stack.endpoint_state import EndpointState, Gate
from aeon.llm.stack.limiter import EXPECTED_OUTPUT, POLL_SECONDS, Limiter, PerMinute, Turn
from aeon.llm.watching import WATCHER, Piece, Waiting, Watched, Watcher
from tests.support.requests import request
from tests.support.timing import SOON, wait_for


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Server:
    """Answers when it is told to, and counts what is under way."""

    def __init__(self, usage: Usage | None = None) -> None:
        self.usage = usage or Usage(10, 10, requests=1)
        self.go = threading.Event()
        self.go.set()
        self.lock = threading.Lock()
        self.under_way = self.most = 0
        self.order: list[str] = []
        self.failure: Exception | None = None

    def complete(self, request: LLMRequest) -> LLMResponse:
        with self.lock:
            self.order.append(request.call)
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        self.go.wait(90)
        with self.lock:
            self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        return LLMResponse("{}", self.usage)


def gate(server: Any, limiter: Limiter, stop: Callable[[], bool] = lambda: False) -> Gate:
    patient = BreakerSettings(failures=1000)
    return Gate(server, EndpointState("there", limiter, patient, RetrySettings()), stop=stop)


def test_no_more_than_the_limit_fits_into_any_minute() -> None:
    clock = Clock()
    minute = PerMinute(3, clock)
    for _ in range(3):
        assert minute.seconds_until(1) == 0.0
        minute.count(1)
        clock.now += 10
    assert minute.seconds_until(1) == pytest.approx(31.0, abs=0.01)
    clock.now += 31.01
    assert minute.seconds_until(1) == 0.0
    minute.count(1)
    assert minute.seconds_until(1) == pytest.approx(10.0, abs=0.02)


@given(
    st.lists(
        st.tuples(st.integers(1, 400), st.integers(0, 400), st.floats(0.01, 40)),
        min_size=1,
        max_size=40,
    ),
    st.integers(400, 5000),
)
def test_whatever_comes_the_tokens_of_a_minute_stay_within_the_limit(
    asked: list[tuple[int, int, float]], limit: int
) -> None:
    clock = Clock()
    minute = PerMinute(limit, clock)
    used_at: list[tuple[float, int]] = []
    for units, unused, later in asked:
        clock.now += later
        while (wait := minute.seconds_until(units)) > 0:
            clock.now += wait
        taken = minute.count(units)
        used_at.append((clock.now, max(0, units - unused)))
        minute.correct(taken, max(0, units - unused))
    grain = max(1, limit // 1000)
    for start, _ in used_at:
        assert sum(units for at, units in used_at if start <= at < start + 59.99) <= limit + grain


def test_tokens_that_were_not_used_are_given_back_within_their_minute_only() -> None:
    clock = Clock()
    minute = PerMinute(1000, clock)
    taken = minute.count(1000)
    assert minute.seconds_until(400) > 0
    minute.correct(taken, 100)
    assert minute.seconds_until(400) == 0.0
    minute.count(400)
    assert minute.seconds_until(600) > 0
    clock.now += 62
    assert minute.seconds_until(1000) == 0.0
    minute.count(1000)
    assert minute.seconds_until(1) > 0
    minute.correct(taken, 0)
    assert minute.seconds_until(1) > 0


def test_what_is_given_back_makes_no_room_in_the_next_minute() -> None:
    clock = Clock()
    minute = PerMinute(10_000, clock)
    minute.correct(minute.count(9_500), 100)
    clock.now += 57
    minute.count(600)
    clock.now += 5
    assert minute.seconds_until(9_500) > 0
    assert minute.seconds_until(9_400) == 0.0


def test_many_small_requests_fill_a_minute_though_its_grain_is_larger_than_they_are() -> None:
    minute = PerMinute(1_000_000, Clock())
    sent = 0
    while minute.seconds_until(600) == 0.0:
        minute.correct(minute.count(600), 500)
        sent += 1
    assert 1_990 <= sent <= 2_000


def test_tokens_that_were_used_beyond_the_estimate_are_paid_by_those_that_follow() -> None:
    clock = Clock()
    minute = PerMinute(1000, clock)
    minute.correct(minute.count(100), 900)
    assert minute.seconds_until(300) > 0
    assert minute.seconds_until(100) == 0.0


def test_more_than_a_minute_allows_waits_for_an_empty_minute() -> None:
    clock = Clock()
    minute = PerMinute(1000, clock)
    minute.count(1)
    assert minute.seconds_until(2500) > 0
    clock.now += 62
    assert minute.seconds_until(2500) == 0.0
    minute.count(2500)
    assert minute.seconds_until(1) > 0


def test_no_more_are_under_way_than_may_be() -> None:
    server, limiter = Server(), Limiter(3)
    server.go.clear()
    with ThreadPoolExecutor(10) as pool:
        asked = [pool.submit(gate(server, limiter).complete, request()) for _ in range(10)]
        wait_for(lambda: server.under_way == 3)
        time.sleep(0.02)
        server.go.set()
        assert [future.result().text for future in asked] == ["{}"] * 10
    assert server.most == 3


def test_who_comes_first_is_served_first() -> None:
    server, limiter = Server(), Limiter(1)
    server.go.clear()
    names = ["plan", "step", "refinement", "convergence", "subplan"]
    with ThreadPoolExecutor(5) as pool:
        asked = []
        for number, name in enumerate(names):
            asked.append(pool.submit(gate(server, limiter).complete, request(name)))
            wait_for(lambda number=number: server.under_way + len(limiter._waiting) == number + 1)
        server.go.set()
        for future in asked:
            future.result()
    assert server.order == names


def test_a_run_that_is_stopped_leaves_the_queue_and_the_others_go_on() -> None:
    server, limiter = Server(), Limiter(1)
    server.go.clear()
    stopped = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(gate(server, limiter).complete, request("plan"))
        wait_for(lambda: server.under_way == 1)
        leaving = pool.submit(gate(server, limiter, stop=stopped.is_set).complete, request("step"))
        wait_for(lambda: len(limiter._waiting) == 1)
        last = pool.submit(gate(server, limiter).complete, request("subplan"))
        stopped.set()
        with pytest.raises(StopRequested, match="before a step call was sent"):
            leaving.result(SOON)
        server.go.set()
        assert (first.result().text, last.result().text) == ("{}", "{}")
    assert server.order == ["plan", "subplan"]


def test_a_wait_for_the_next_minute_can_be_left_at_once() -> None:
    server, limiter = Server(), Limiter(8, requests_per_minute=1)
    stopped = threading.Event()
    through = gate(server, limiter, stop=stopped.is_set)
    through.complete(request())
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(through.complete, request())
        time.sleep(0.05)
        stopped.set()
        with pytest.raises(StopRequested):
            waiting.result(SOON)
    assert len(server.order) == 1


def test_an_endpoint_that_cools_down_meanwhile_is_not_asked() -> None:
    server, limiter = Server(), Limiter(1)
    state = EndpointState(
        "there", limiter, BreakerSettings(failures=1), RetrySettings(), has_next=True
    )
    server.go.clear()
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(Gate(server, state).complete, request("plan"))
        wait_for(lambda: server.under_way == 1)
        waiting = pool.submit(Gate(server, state).complete, request("step"))
        wait_for(lambda: len(limiter._waiting) == 1)
        server.failure = ServerFailed("500")
        server.go.set()
        assert isinstance(first.exception(SOON), ServerFailed)
        assert isinstance(waiting.exception(SOON), CircuitOpen)
    assert server.order == ["plan"]


def test_429_narrows_the_window_and_a_failing_server_does_not() -> None:
    server, limiter = Server(), Limiter(8)
    through = gate(server, limiter)
    server.failure = ServerFailed("500")
    with pytest.raises(ServerFailed):
        through.complete(request())
    assert limiter.slots == 8
    server.failure = RateLimited("429")
    with pytest.raises(RateLimited):
        through.complete(request())
    assert limiter.slots == 1
    server.failure = None
    for _ in range(50):
        through.complete(request())
    assert limiter.slots == 8


@pytest.mark.parametrize(("asked", "paused"), [(20.0, True), (600.0, False), (None, False)])
def test_a_server_that_asks_to_wait_is_left_alone_by_all_but_not_for_ever(
    asked: float | None, paused: bool
) -> None:
    clock = Clock()
    server, limiter = Server(), Limiter(8, clock=clock)
    server.failure = RateLimited("429", retry_after=asked)
    with pytest.raises(RateLimited):
        gate(server, limiter).complete(request())
    server.failure = None
    impatient = gate(server, limiter, stop=lambda: True)
    if paused:
        with pytest.raises(StopRequested):
            impatient.complete(request())
        clock.now += 20
    assert impatient.complete(request()).text == "{}"


def test_tokens_are_counted_by_estimate_then_by_what_was_used() -> None:
    clock = Clock()
    text = "x" * 4000
    asked = request(messages=(Message("user", text),))
    estimate = 1000 + EXPECTED_OUTPUT
    limiter = Limiter(8, tokens_per_minute=2 * estimate, clock=clock)
    cheap = gate(Server(Usage(100, 0, requests=1)), limiter, stop=lambda: True)
    for _ in range(15):
        cheap.complete(asked)
    dear = gate(Server(Usage(3000, 0, requests=1)), limiter, stop=lambda: True)
    answered = 0
    with pytest.raises(StopRequested):  # noqa: PT012
        for _ in range(5):
            dear.complete(asked)
            answered += 1
    assert answered == 1


def send(limiter: Limiter, times: int) -> list[Turn]:
    return [limiter.enter(request(), lambda: None) for _ in range(times)]


def test_it_begins_as_wide_as_it_may_be_and_a_refusal_halves_what_was_under_way() -> None:
    limiter = Limiter(64)
    assert limiter.slots == 64
    turns = send(limiter, 20)
    limiter.leave(turns[2], 0, RateLimited("429"))
    assert limiter.slots == 10


def test_requests_that_were_sent_together_are_one_signal_until_the_next_answer() -> None:
    limiter = Limiter(64)
    for turn in send(limiter, 20):
        limiter.leave(turn, 0, RateLimited("429"))
    assert (limiter.slots, limiter.refusals) == (10, 1)
    for turn in send(limiter, 10):
        limiter.leave(turn, 0, RateLimited("429"))
    assert (limiter.slots, limiter.refusals) == (5, 2)
    limiter.leave(send(limiter, 1)[0], 0, LLMResponse("{}"))
    assert limiter.refusals == 0


@given(st.lists(st.booleans(), max_size=100), st.integers(1, 64))
def test_it_never_leaves_its_bounds(answers: list[bool], most: int) -> None:
    limiter = Limiter(most)
    for answered in answers:
        outcome = LLMResponse("{}") if answered else RateLimited("429")
        limiter.leave(limiter.enter(request(), lambda: None), 0, outcome)
        assert 1 <= limiter.slots <= most


def test_how_long_a_request_waits_is_told_until_it_does_not() -> None:
    clock = Clock()
    limiter = Limiter(1, requests_per_minute=2, clock=clock)
    told: list[float] = []

    def answer_the_first() -> None:
        limiter.leave(first, 0, LLMResponse("{}"))

    def wait_a_minute() -> None:
        clock.now += 61

    first = limiter.enter(request(), lambda: None, told.append)
    assert told == [0.0]
    told.clear()
    second = limiter.enter(request(), answer_the_first, told.append)
    assert told == [POLL_SECONDS, 0.0]
    limiter.leave(second, 0, LLMResponse("{}"))
    told.clear()
    limiter.enter(request(), wait_a_minute, told.append)
    assert told == [61.0, 0.0]


def test_who_looks_on_is_told_of_the_wait_for_a_turn_and_nobody_else() -> None:
    seen: list[Waiting | Piece] = []
    clock = Clock()
    gated = gate(
        Server(Usage(1, 1, requests=1)),
        Limiter(1, requests_per_minute=1, clock=clock),
        stop=lambda: False,
    )
    gated.complete(request())

    def let_a_minute_pass() -> None:
        wait_for(lambda: 61.0 in [one.seconds for one in seen if isinstance(one, Waiting)])
        clock.now += 61

    tick = threading.Thread(target=let_a_minute_pass)
    tick.start()
    Watched(gated, Watcher(seen.append)).complete(request())
    tick.join()
    waits = [one.seconds for one in seen if isinstance(one, Waiting)]
    assert (waits[0], waits[-1]) == (0.0, 0.0)
    assert waits[1] == 61.0
    assert not [one for one in seen if isinstance(one, Piece)]
    assert WATCHER.get() is None
