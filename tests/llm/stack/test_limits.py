"""The caps on a run's model calls."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aeon.domain.errors import ConfigError, ConnectionFailed, LimitReached, ServerFailed, Truncated
from aeon.domain.request import LLMRequest, LLMResponse, Parameters, Usage
from aeon.llm.prices import PriceBook, PriceList
from aeon.llm.settings import Price
from aeon.llm.stack.limits import LimitSettings, Spend, Spent
from tests.support.requests import request

PRICE = Price(input=1.0, output=10.0)


class Model:
    """Answers with the same usage every time, or fails having paid it."""

    def __init__(
        self,
        usage: Usage,
        fails: bool = False,
        barrier: threading.Barrier | None = None,
        reported: bool = True,
        endpoint: str = "",
        name: str = "m",
    ) -> None:
        self.usage, self.fails, self.barrier = usage, fails, barrier
        self.reported, self.endpoint, self.name = reported, endpoint, name
        self.calls = 0
        self.lock = threading.Lock()

    def complete(self, request: LLMRequest) -> LLMResponse:
        with self.lock:
            self.calls += 1
        if self.barrier is not None:
            self.barrier.wait()
        if self.fails:
            raise Truncated("cut off", usage=self.usage, usage_reported=self.reported)
        return LLMResponse(
            "{}", self.usage, self.name, endpoint=self.endpoint, usage_reported=self.reported
        )


def limited(model: Model, prices: dict[str, Price] | None = None, **caps: Any) -> Spend:
    return Spend(model, LimitSettings(**caps), book(prices))


def book(prices: dict[str, Price] | None = None) -> PriceBook:
    return PriceBook({"": PriceList(prices, model="m")})


def outcome(limits: Spend) -> str:
    try:
        limits.complete(request())
    except LimitReached as error:
        return error.limit
    return "answered"


def test_without_caps_nothing_is_refused_and_everything_is_counted() -> None:
    limits = limited(Model(Usage(100, 20, requests=1)))
    for _ in range(3):
        assert outcome(limits) == "answered"
    assert limits.spent == Spent(3, Usage(300, 60, requests=3), None)


def test_exactly_as_many_calls_go_out_as_allowed_however_many_threads_ask() -> None:
    model = Model(Usage(1), barrier=threading.Barrier(5, timeout=60))
    limits = limited(model, max_llm_calls=5)
    with ThreadPoolExecutor(8) as pool:
        outcomes = [future.result() for future in [pool.submit(outcome, limits) for _ in range(8)]]
    assert sorted(outcomes) == ["answered"] * 5 + ["max_llm_calls"] * 3
    assert model.calls == 5


def test_a_call_may_start_while_the_recorded_tokens_are_below_the_cap() -> None:
    model = Model(Usage(60, 40))
    limits = limited(model, max_tokens=150)
    assert [outcome(limits) for _ in range(3)] == ["answered", "answered", "max_tokens"]
    assert limits.spent.usage.total_tokens == 200


def test_the_token_cap_is_exceeded_by_no_more_than_what_is_in_flight() -> None:
    model = Model(Usage(100), barrier=threading.Barrier(4, timeout=60))
    limits = limited(model, max_tokens=100)
    with ThreadPoolExecutor(4) as pool:
        outcomes = [future.result() for future in [pool.submit(outcome, limits) for _ in range(4)]]
    assert outcomes == ["answered"] * 4
    assert outcome(limits) == "max_tokens"
    assert limits.spent.usage.total_tokens == 400


def test_the_cost_cap_counts_money() -> None:
    model = Model(Usage(500_000, 100_000))
    limits = limited(model, {"m": PRICE}, max_cost=2.0)
    assert [outcome(limits) for _ in range(3)] == ["answered", "answered", "max_cost"]
    assert limits.spent.cost == pytest.approx(3.0)


def test_the_model_of_the_request_is_the_one_that_is_paid() -> None:
    limits = limited(
        Model(Usage(1_000_000), name="dear"), {"m": PRICE, "dear": Price(input=50, output=50)}
    )
    limits.complete(request(parameters=Parameters(model="dear")))
    assert limits.spent.cost == pytest.approx(50.0)


def test_what_a_failed_call_paid_is_recorded_and_its_call_counted() -> None:
    limits = limited(Model(Usage(600, 400), fails=True), max_tokens=1000)
    with pytest.raises(Truncated):
        limits.complete(request())
    assert limits.spent == Spent(1, Usage(600, 400), None)
    assert outcome(limits) == "max_tokens"


def test_reaching_a_cap_says_which_and_how_to_raise_it() -> None:
    limits = limited(Model(Usage(1_500_000)), max_tokens=1_000_000)
    outcome(limits)
    with pytest.raises(LimitReached) as raised:
        limits.complete(request())
    assert raised.value.message == "limits.max_tokens=1000000 is reached (1500000 used)"
    assert "limits.max_tokens" in raised.value.hint


def test_a_refused_call_costs_nothing() -> None:
    limits = limited(Model(Usage(10)), max_llm_calls=1)
    outcome(limits)
    spent = limits.spent
    assert outcome(limits) == "max_llm_calls"
    assert limits.spent == spent


def test_a_model_without_a_price_is_never_called_under_a_cost_cap() -> None:
    model = Model(Usage(1))
    limits = limited(model, {"m": PRICE}, max_cost=1.0)
    with pytest.raises(ConfigError, match="other"):
        limits.complete(request(parameters=Parameters(model="other")))
    assert model.calls == 0


def test_another_error_than_aeons_passes_through() -> None:
    class Broken:
        def complete(self, request: LLMRequest) -> LLMResponse:
            raise KeyError("x")

    with pytest.raises(KeyError):
        Spend(Broken(), LimitSettings(), book()).complete(request())


def test_a_provider_that_fails_without_usage_leaves_only_the_call_counted() -> None:
    class Down:
        def complete(self, request: LLMRequest) -> LLMResponse:
            raise ServerFailed("500")

    limits = Spend(Down(), LimitSettings(), book())
    with pytest.raises(ServerFailed):
        limits.complete(request())
    assert limits.spent == Spent(1, Usage(), 0.0)


def test_calls_that_were_never_answered_count_against_the_caps_as_their_estimate() -> None:
    class Silent:
        model = "m"

        def complete(self, request: LLMRequest) -> LLMResponse:
            error = ConnectionFailed("no answer", usage=Usage(400, requests=1))
            error.usage_reported = False
            raise error

    limits = Spend(Silent(), LimitSettings(max_tokens=1000, max_cost=1000), book({"m": PRICE}))
    for _ in range(3):
        with pytest.raises(ConnectionFailed):
            limits.complete(request())
    with pytest.raises(LimitReached, match="max_tokens=1000 is reached"):
        limits.complete(request())
    assert limits.spent.usage.requests == 3
    assert limits.spent.cost


@pytest.mark.parametrize("cap", ["max_cost", "max_tokens"])
def test_an_answer_that_tells_no_usage_ends_a_run_with_a_cap_on_it(cap: str) -> None:
    model = Model(Usage(requests=1), reported=False)
    limits = limited(model, {"m": PRICE}, **{cap: 1000})
    assert [outcome(limits) for _ in range(3)] == ["answered", cap, cap]
    assert model.calls == 1
    with pytest.raises(LimitReached, match="cannot be known, as an answer came without its usage"):
        limits.complete(request())


@pytest.mark.parametrize("cap", ["max_cost", "max_tokens"])
@pytest.mark.parametrize("told", [Usage(requests=1), Usage(100, 0, requests=1)])
def test_a_call_that_was_answered_with_nothing_and_tells_no_usage_ends_a_run_with_a_cap_on_it(
    cap: str, told: Usage
) -> None:
    model = Model(told, fails=True, reported=False)
    limits = limited(model, {"m": PRICE}, **{cap: 1000})
    with pytest.raises(Truncated):
        limits.complete(request())
    assert [outcome(limits) for _ in range(2)] == [cap, cap]
    assert model.calls == 1


def test_half_a_usage_is_none() -> None:
    limits = limited(Model(Usage(100, 0), reported=False), max_tokens=1000)
    assert [outcome(limits) for _ in range(2)] == ["answered", "max_tokens"]


def test_an_estimated_usage_is_counted_by_its_estimate() -> None:
    limits = limited(Model(Usage(60, 40), reported=False), max_tokens=150)
    assert [outcome(limits) for _ in range(3)] == ["answered", "answered", "max_tokens"]


def test_an_answer_of_an_unnamed_model_is_priced_as_the_one_that_was_asked() -> None:
    prices = PriceBook(
        {"a": PriceList({"m": PRICE}, model="m"), "b": PriceList({"n": PRICE}, model="n")}
    )
    limits = Spend(Model(Usage(1), endpoint="b", name="other"), LimitSettings(max_cost=1), prices)
    assert [outcome(limits) for _ in range(2)] == ["answered", "answered"]
    assert limits.spent.cost == pytest.approx(2e-6)


def test_a_fallback_without_a_price_is_refused_under_a_cap_on_cost() -> None:
    prices = PriceBook({"a": PriceList({"m": PRICE}, model="m"), "b": PriceList(model="n")})
    model = Model(Usage(1))
    with pytest.raises(ConfigError, match="configured for n,"):
        Spend(model, LimitSettings(max_cost=1), prices).complete(request())
    assert model.calls == 0
