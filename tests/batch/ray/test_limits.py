"""What a cluster may spend and send, lent to its workers. Nothing here needs Ray."""

import random
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from aeon.batch.ray.limits import Limits, WorkerMeter, WorkerMinute
from aeon.domain.errors import StopRequested
from aeon.domain.request import Usage
from aeon.llm.stack.limits import LimitSettings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def asking(limits: Limits) -> Callable[..., Any]:
    return lambda method, *given, **named: getattr(limits, method)(*given, **named)


def caps(calls: int | None = None, cost: float | None = None) -> LimitSettings:
    return LimitSettings(max_llm_calls=calls, max_cost=cost)


def spend_all(meters: list[WorkerMeter], cost: float | None = 0.0) -> int:
    """The calls that workers make in turn until none may make another."""
    calls, going = 0, list(meters)
    while going:
        for meter in tuple(going):
            try:
                meter.start(LimitSettings())
            except StopRequested:
                going.remove(meter)
            else:
                meter.pay(Usage(requests=1), cost)
                calls += 1
    return calls


@pytest.mark.parametrize("workers", [1, 3, 40])
def test_all_workers_together_make_exactly_as_many_calls_as_they_may(workers: int) -> None:
    limits, told = Limits(caps(calls=100)), list[str]()
    meters = [WorkerMeter(str(number), asking(limits), told.append) for number in range(workers)]
    assert spend_all(meters) == 100
    assert set(told) == {"batch.max_llm_calls: is reached"}


def test_all_workers_together_spend_no_more_than_a_call_each_above_the_cap() -> None:
    limits = Limits(caps(cost=1.0))
    meters = [WorkerMeter(str(number), asking(limits), limits.end) for number in range(4)]
    spent = spend_all(meters, cost=0.03) * 0.03
    assert 1.0 <= spent <= 1.0 + 4 * 0.03
    assert limits.end() == "batch.max_cost: is reached"


def test_what_cannot_be_known_stops_a_batch_with_a_cap_on_its_cost() -> None:
    limits = Limits(caps(cost=1.0))
    meter = WorkerMeter("a", asking(limits), limits.end)
    assert spend_all([meter], cost=None) == 1
    assert limits.end().startswith("batch.max_cost: how much is used cannot be known")


def test_without_caps_a_worker_asks_once() -> None:
    asked: list[str] = []
    limits = Limits(caps())

    def ask(method: str, *given: Any, **named: Any) -> Any:
        asked.append(method)
        return getattr(limits, method)(*given, **named)

    meter = WorkerMeter("a", ask, limits.end)
    for _ in range(100):
        meter.start(LimitSettings())
    assert asked == ["lend"]


@pytest.mark.parametrize(
    ("limit", "workers", "a_second"), [(60, 3, 10), (600, 4, 50), (6000, 100, 300)]
)
def test_in_no_minute_are_more_requests_sent_than_the_limit_and_few_of_them_ask(
    limit: int, workers: int, a_second: int
) -> None:
    clock, asked, sent, chance = Clock(), [0], list[float](), random.Random(1)
    limits = Limits(caps(), clock)

    def ask(method: str, *given: Any, **named: Any) -> Any:
        asked[0] += 1
        return getattr(limits, method)(*given, **named)

    minutes = [
        WorkerMinute("requests", limit, partial(ask, worker=str(n)), clock) for n in range(workers)
    ]
    while clock.now < 200:
        for _ in range(a_second // 10):
            minute = chance.choice(minutes)
            if minute.seconds_until(1) <= 0:
                minute.count(1)
                sent.append(clock.now)
        clock.now += 0.1
    assert max(bisect_right(sent, at + 60) - place for place, at in enumerate(sent)) <= limit
    assert len(sent) >= 0.9 * limit * 200 / 64
    assert asked[0] < workers * 250  # about one a second


def test_what_was_not_used_of_a_minute_is_given_back_with_the_next_question() -> None:
    limits = Limits(caps(), Clock())
    assert limits.lend_minute("tokens", 1000, 800, 900, 0, worker="a") == (900, 0.0)
    assert limits.lend_minute("tokens", 1000, 800, 800, 0, worker="b")[0] == 0
    assert limits.lend_minute("tokens", 1000, 100, 100, 800, worker="a") == (100, 0.0)
    assert limits.lend_minute("tokens", 1000, 700, 800, 0, worker="b") == (800, 0.0)
    assert limits.lend_minute("tokens", 1000, 1, 1, 0, worker="c")[0] == 0


def test_a_worker_counts_what_its_calls_really_used() -> None:
    given: list[int] = []

    def ask(_: str, name: str, limit: int, needed: int, more: int, back: int) -> tuple[int, float]:
        given.append(back)
        return more, 0.0

    clock = Clock()
    minute = WorkerMinute("tokens", 1000, ask, clock)
    assert minute.seconds_until(400) == 0.0
    minute.correct(minute.count(400), 150)
    clock.now += 3.0
    assert minute.seconds_until(400) == 0.0
    assert given == [0, 250]
