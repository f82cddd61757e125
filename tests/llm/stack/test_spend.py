"""What has really been spent."""

import pytest

from aeon.domain.errors import Truncated
from aeon.domain.request import LLMResponse, Usage
from aeon.llm.prices import PriceBook, PriceList
from aeon.llm.settings import Price
from aeon.llm.stack.limits import LimitSettings, Meter, Spend, Spent
from tests.llm.scripted import Scripted
from tests.support.requests import request

PRICES = PriceBook({"e": PriceList({"m": Price(input=1, output=1)}, model="m")})
MILLION = Usage(input_tokens=1_000_000, requests=1)


def test_calls_tokens_and_money_add_up_and_failed_calls_count() -> None:
    meter = Meter()
    cut_off = Truncated("cut off", usage=MILLION, model="m")
    spend = Spend(Scripted(LLMResponse("a", MILLION, "m"), cut_off), LimitSettings(), PRICES, meter)
    spend.complete(request())
    with pytest.raises(Truncated):
        spend.complete(request())
    assert meter.spent == Spent(2, MILLION + MILLION, 2.0)


@pytest.mark.parametrize(
    "answer",
    [
        LLMResponse("a", Usage(requests=1), "m", usage_reported=False),
        LLMResponse("a", MILLION, "x", endpoint="other"),
    ],
)
def test_one_answer_of_unknown_cost_makes_the_whole_unknown_for_good(answer: LLMResponse) -> None:
    meter = Meter()
    prices = PriceBook({"e": PriceList(), "other": PriceList()})
    known = PriceBook(
        {"e": PriceList({"m": Price(input=1, output=1)}, model="m"), "other": PriceList(model="x")}
    )
    Spend(
        Scripted(answer), LimitSettings(), prices if answer.usage_reported else known, meter
    ).complete(request())
    Spend(Scripted(LLMResponse("a", MILLION, "m")), LimitSettings(), known, meter).complete(
        request()
    )
    assert meter.spent.cost is None
    assert meter.spent.calls == 2


def test_an_answer_that_is_none_and_tells_no_usage_makes_the_cost_unknown() -> None:
    meter = Meter()
    spend = Spend(
        Scripted(Truncated("cut off", model="m", usage_reported=False)),
        LimitSettings(),
        PRICES,
        meter,
    )
    with pytest.raises(Truncated):
        spend.complete(request())
    assert meter.spent.cost is None
