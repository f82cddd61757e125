"""What tokens cost: the one place that turns usage into money.

`provider.prices` comes first; for a model that it does not name, the prices that genai-prices has
for an endpoint's address (in US dollars; nothing is downloaded). A model with neither is unpriced:
its cost is None, which is not zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from aeon.domain.errors import ConfigError, LLMError
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.domain.values import is_loopback
from aeon.llm.settings import (
    ChainSettings,
    EndpointSettings,
    FallbackSettings,
    Price,
    ProviderSettings,
)

PER = 1_000_000
EVERY = "*"
OPENAI = "https://api.openai.com/v1"
# What may follow a model's name; with `-pro` it is another model.
_VERSION = re.compile(r"([-@:](latest|\d{3,}(-\d\d){0,2}))?")
AnyEndpoint = ProviderSettings | FallbackSettings


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices at one endpoint: `configured` ones (see `price_of`), else those published for the
    base URL `address`. `model` is used by calls that name none; `factor` multiplies prices in a
    batch."""

    configured: Mapping[str, Price] | None = None
    address: str | None = None
    model: str = ""
    factor: float = 1.0

    def knows(self, model: str) -> bool:
        """Whether a model has a price."""
        return self.cost(Usage(input_tokens=1), model) is not None

    def cost(self, usage: Usage, *models: str) -> float | None:
        """Return the cost of `usage` at the price of the first of `models` that has one; None if
        none has, unless nothing was used."""
        if not usage.total_tokens:
            return 0.0
        for model in filter(None, models):
            price = price_of(model, self.configured or {})
            if price is not None:
                return cost(usage, price) * self.factor
            if self.address:
                money = compute_published_cost(usage, model, self.address)
                if money is not None:
                    return money * self.factor
        return None


class PriceBook:
    """The prices of a provider's endpoints by name, in the order of use; at least one."""

    def __init__(self, lists: Mapping[str, PriceList]) -> None:
        self._lists = dict(lists)
        self.first = next(iter(self._lists.values()))

    def cost(
        self, usage: Usage, *, endpoint: str = "", answered: str = "", asked: str = ""
    ) -> float | None:
        """Return the cost of one request's usage; None if neither the answering nor the requested
        model has a price. `asked`, the model that the call names, counts at the first endpoint
        only: the others use their own models."""
        prices = self._lists.get(endpoint, self.first)
        is_asked = asked and prices is self.first
        return prices.cost(usage, answered, asked if is_asked else prices.model)

    def cost_of(self, outcome: LLMResponse | LLMError, request: LLMRequest) -> float | None:
        """Return the cost of a request from its answer or failure; None without a price."""
        asked = request.parameters.model or ""
        return self.cost(
            outcome.usage, endpoint=outcome.endpoint, answered=outcome.model, asked=asked
        )

    def find_missing(self, models: Iterable[str]) -> list[str]:
        """Return the models without a price: of `models`, and of each endpoint's own."""
        missing = {model for model in models if not self.first.knows(model)}
        own = {prices.model for prices in self._lists.values() if not prices.knows(prices.model)}
        return sorted(missing | own)


def price_list(settings: AnyEndpoint) -> PriceList:
    """Return the prices of one endpoint; published prices exist only for addresses outside this
    machine."""
    if settings.kind == "simulated":  # nothing is paid, except prices set to try something out
        return PriceList({EVERY: Price(input=0, output=0), **settings.prices}, None, settings.model)
    if not isinstance(settings, EndpointSettings):
        return PriceList(settings.prices, model=settings.model)
    address = settings.base_url or OPENAI
    published = None if is_loopback(address) else address
    factor = settings.batch_price_factor if settings.batch else 1.0
    return PriceList(settings.prices, published, settings.model, factor)


def price_book(settings: ProviderSettings) -> PriceBook:
    """Return the prices of a provider and its fallbacks."""
    return PriceBook({name: price_list(endpoint) for name, endpoint in name_endpoints(settings)})


def name_endpoints(settings: ProviderSettings) -> list[tuple[str, AnyEndpoint]]:
    """Return a provider and its fallbacks by name, in the order of use; the second one of a name is
    `NAME-2`."""
    found: dict[str, AnyEndpoint] = {}
    fallbacks = settings.fallbacks if isinstance(settings, ChainSettings) else ()
    for endpoint in (settings, *fallbacks):
        name = endpoint.display_name
        number = 2
        while name in found:
            name = f"{endpoint.display_name}-{number}"
            number += 1
        found[name] = endpoint
    return list(found.items())


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """Return the configured price of a model: of its own name, of the name it is a dated version
    of, or of the longest matching `START*`."""
    own = [
        name for name in prices if model.startswith(name) and _VERSION.fullmatch(model[len(name) :])
    ]
    starts = [name for name in prices if name.endswith(EVERY) and model.startswith(name[:-1])]
    named = max(own or starts, key=len, default="")
    return prices.get(named)


def cost(usage: Usage, price: Price) -> float:
    """Compute the cost of usage at a configured price. Reasoning tokens are part of the output."""
    read_price = price.input if price.cached is None else price.cached
    write_price = price.input if price.cache_write is None else price.cache_write
    read, written = _cache_tokens(usage)
    fresh = usage.input_tokens - read - written
    input_money = fresh * price.input + read * read_price + written * write_price
    return (input_money + usage.output_tokens * price.output) / PER


def _cache_tokens(usage: Usage) -> tuple[int, int]:
    """Return the input tokens read from a cache and those written to one; together at most the
    input."""
    read = min(usage.cached_tokens, usage.input_tokens)
    return read, min(usage.cache_write_tokens, usage.input_tokens - read)


@lru_cache(maxsize=1024)
def compute_published_cost(usage: Usage, model: str, address: str) -> float | None:
    """Compute the cost of one request's usage at an address's published prices, in US dollars; None
    if it has none."""
    import genai_prices  # takes 150 ms, which a run without prices does not pay

    read, written = _cache_tokens(usage)
    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=usage.output_tokens,
    )
    try:
        return float(genai_prices.calc_price(counted, model, provider_api_url=address).total_price)
    except LookupError:
        return None


def check_prices(
    prices: PriceBook, max_cost: float | None, models: Iterable[str] = (), of: str = "limits"
) -> None:
    """Raise ConfigError if a cap on cost could be exceeded unnoticed, because one of `models` or an
    endpoint's own has no price; `of` is the cap's configuration group."""
    if max_cost is not None and (names := prices.find_missing(models)):
        raise ConfigError(
            f"{of}.max_cost={max_cost:g}: no price is configured for {', '.join(names)}, "
            "and none is published",
            hint="Set provider.prices, in money per million tokens, for example "
            f"{{{names[0]}: {{input: 0.25, output: 2.0}}}}, or {{*: {{input: 0, output: "
            f"0}}}} for your own server; "
            f"or set {of}.max_cost to null.",
        )
