"""What tokens cost."""

import subprocess
import sys

import pytest

from aeon.domain.errors import ConfigError
from aeon.domain.request import Usage
from aeon.llm.prices import (
    PriceBook,
    PriceList,
    check_prices,
    cost,
    name_endpoints,
    price_book,
    price_list,
    price_of,
)
from aeon.llm.settings import (
    LocalProvider,
    OpenAIFallback,
    OpenAIProvider,
    Price,
    SimulatedProvider,
)

OPENAI = "https://api.openai.com/v1"
MILLION = Usage(
    input_tokens=1_000_000, output_tokens=1_000_000, cached_tokens=400_000, reasoning_tokens=900_000
)


@pytest.mark.parametrize(
    ("price", "money"),
    [
        (Price(input=2, output=8), 2 * 1.0 + 8 * 0.5),
        (Price(input=2, output=8, cached=0.5), 2 * 0.6 + 0.5 * 0.4 + 8 * 0.5),
        (Price(input=2, output=8, cached=0), 2 * 0.6 + 8 * 0.5),
        (Price(input=0, output=0), 0.0),
    ],
)
def test_cost_is_per_million_tokens_and_cached_input_has_its_own_price(
    price: Price, money: float
) -> None:
    usage = Usage(
        input_tokens=1_000_000,
        output_tokens=500_000,
        cached_tokens=400_000,
        reasoning_tokens=100_000,
    )
    assert cost(usage, price) == pytest.approx(money)


def test_what_is_written_to_a_cache_has_its_own_price() -> None:
    written = Usage(input_tokens=10_000, cache_write_tokens=10_000)
    assert cost(written, Price(input=4, output=8)) == pytest.approx(0.04)
    assert cost(written, Price(input=4, output=8, cache_write=5)) == pytest.approx(0.05)
    mixed = Usage(input_tokens=10_000, cached_tokens=6_000, cache_write_tokens=9_000)
    price = Price(input=4, output=8, cached=1, cache_write=5)
    assert cost(mixed, price) == pytest.approx(0.006 + 0.02)


def test_what_is_written_to_a_cache_has_its_published_price() -> None:
    prices = PriceList(address="https://api.anthropic.com")
    fresh = prices.cost(Usage(input_tokens=10_000), "claude-sonnet-4-5")
    written = prices.cost(
        Usage(input_tokens=10_000, cache_write_tokens=10_000), "claude-sonnet-4-5"
    )
    assert fresh == pytest.approx(0.03)
    assert written == pytest.approx(0.0375)


def test_a_dated_version_has_the_price_of_its_own_model() -> None:
    small, large = Price(input=1, output=1), Price(input=9, output=9)
    prices = {"gpt-5": large, "gpt-5-mini": small}
    assert price_of("gpt-5-mini-2025-08-07", prices) is small
    assert price_of("gpt-5", prices) is large
    assert price_of("o5", prices) is None


@pytest.mark.parametrize(
    "end", ["", "-2025-08-07", "-0613", "-20251022", "-001", "@20240229", "-latest", ":latest"]
)
def test_a_version_of_a_model_costs_what_the_model_costs(end: str) -> None:
    price = Price(input=1, output=1)
    assert price_of(f"gpt-5{end}", {"gpt-5": price}) is price


@pytest.mark.parametrize(
    "end", ["-pro", "-mini", ".1", "-32k", "-128k", "o", ":free", "-pro-2025-10-06"]
)
def test_another_model_whose_name_begins_the_same_has_not_its_price_unless_a_star_says_so(
    end: str,
) -> None:
    price, free = Price(input=1, output=1), Price(input=0, output=0)
    assert price_of(f"gpt-5{end}", {"gpt-5": price}) is None
    assert price_of(f"gpt-5{end}", {"gpt-5*": price, "*": free}) is price


def test_a_configured_price_wins_over_the_published_one() -> None:
    prices = PriceList({"gpt-5-mini": Price(input=1, output=1)}, OPENAI)
    assert prices.cost(MILLION, "gpt-5-mini") == pytest.approx(2.0)


def test_a_model_of_a_known_address_has_its_published_price_with_cached_tokens_cheaper() -> None:
    prices = PriceList(address=OPENAI)
    fresh = prices.cost(Usage(input_tokens=1_000_000), "gpt-5-mini")
    cached = prices.cost(
        Usage(input_tokens=1_000_000, cached_tokens=1_000_000), "gpt-5-mini-2025-08-07"
    )
    assert fresh == pytest.approx(0.25)
    assert cached is not None
    assert 0 < cached < fresh
    assert prices.cost(
        Usage(output_tokens=1_000_000, reasoning_tokens=900_000), "gpt-5-mini"
    ) == pytest.approx(2.0)


def test_tokens_written_to_a_cache_have_their_published_price() -> None:
    usage = Usage(input_tokens=10_000, cached_tokens=6_000, cache_write_tokens=3_000)
    plain = PriceList(address=OPENAI).cost(Usage(input_tokens=10_000), "gpt-5.6-sol")
    mixed = PriceList(address=OPENAI).cost(usage, "gpt-5.6-sol")
    assert plain is not None
    assert mixed == pytest.approx(plain * (1_000 + 0.1 * 6_000 + 1.25 * 3_000) / 10_000)


@pytest.mark.parametrize(
    ("address", "model"),
    [
        (OPENAI, "a-model-of-my-own"),
        ("http://127.0.0.1:8000/v1", "gpt-5-mini"),
        ("https://example.org/v1", "gpt-5"),
    ],
)
def test_what_is_not_published_is_unpriced_and_not_free(address: str, model: str) -> None:
    prices = PriceList(address=address)
    assert prices.cost(MILLION, model) is None
    assert not prices.knows(model)
    assert prices.cost(Usage(requests=1), model) == 0.0


def test_a_price_for_a_star_is_for_every_model_without_one() -> None:
    free = PriceList(
        {"*": Price(input=0, output=0), "dear": Price(input=1, output=1)},
        "http://localhost:11434/v1",
    )
    assert free.knows("llama3.1")
    assert free.cost(MILLION, "llama3.1") == 0.0
    assert free.cost(MILLION, "dear") == 2.0


def test_who_answered_is_priced_before_who_was_asked() -> None:
    prices = PriceList({"a": Price(input=1, output=0), "b": Price(input=2, output=0)})
    million = Usage(input_tokens=1_000_000)
    assert prices.cost(million, "b", "a") == 2.0
    assert prices.cost(million, "cheap", "a") == 1.0
    assert prices.cost(million, "", "a") == 1.0


def test_only_an_endpoint_with_an_address_has_published_prices() -> None:
    assert price_list(OpenAIProvider(model="gpt-5-mini")).knows("gpt-5-mini")
    assert price_list(SimulatedProvider(model="gpt-5-mini")).cost(MILLION, "gpt-5-mini") == 0.0
    assert price_list(LocalProvider(model="gpt-5-mini")).cost(MILLION, "gpt-5-mini") == 0.0


def test_each_endpoint_has_its_own_prices_and_its_own_model() -> None:
    million = Usage(input_tokens=1_000_000)
    first = PriceList({"big": Price(input=9, output=9), "m": Price(input=1, output=1)}, model="m")
    second = PriceList({"n": Price(input=3, output=3)}, model="n")
    book = PriceBook({"a": first, "b": second})
    assert book.cost(million, endpoint="a", asked="big") == 9.0
    assert book.cost(million, endpoint="b", asked="big") == 3.0
    assert book.cost(million) == 1.0
    assert book.cost(million, endpoint="b", answered="something-else") == 3.0


def test_endpoints_of_one_name_are_told_apart() -> None:
    fallbacks = (OpenAIFallback(), OpenAIFallback(name="groq"), OpenAIFallback(), LocalProvider())
    named = name_endpoints(OpenAIProvider(fallbacks=fallbacks))
    assert [name for name, _ in named] == ["openai", "openai-2", "groq", "openai-3", "local"]
    assert [name for name, _ in name_endpoints(SimulatedProvider())] == ["simulated"]


def test_a_cap_on_cost_needs_a_price_for_every_model_that_may_be_called() -> None:
    settings = OpenAIProvider(
        model="a",
        prices={"a": Price(input=1, output=1)},
        fallbacks=(OpenAIFallback(name="b", model="own"),),
    )
    book = price_book(settings)
    check_prices(book, None, ["x"])
    with pytest.raises(
        ConfigError, match="configured for judge, own, and none is published"
    ) as raised:
        check_prices(book, 1.0, ["a", "judge"])
    assert "provider.prices" in raised.value.hint


def test_the_price_list_is_imported_when_it_is_needed() -> None:
    code = "import sys, aeon, aeon.llm.stack.build; assert 'genai_prices' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_cached_tokens_never_lower_a_cost_below_that_of_the_whole_input_cached() -> None:
    assert cost(
        Usage(100, 0, cached_tokens=5000), Price(input=2, cached=1, output=1)
    ) == pytest.approx(100 / 1e6)
