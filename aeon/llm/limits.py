"""The caps on a run's model calls: `limits.max_llm_calls`, `limits.max_tokens`, `limits.max_cost`.

`limits.max_seconds` and `limits.max_passes` are the kernel's.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from aeon.errors import AeonError, ConfigError, LimitReached
from aeon.kernel.settings import LimitSettings
from aeon.llm.interface import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.llm.settings import Price

PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used: calls started, tokens of calls that have ended, their cost in the price table's currency."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float = 0.0

    def started(self) -> Spent:
        """With one more call under way."""
        return Spent(self.calls + 1, self.usage, self.cost)

    def paid(self, usage: Usage, price: Price | None) -> Spent:
        """With the usage of a call that has ended; without a price it costs nothing."""
        return Spent(self.calls, self.usage + usage, self.cost + (cost(usage, price) if price else 0.0))


class RunLimits:
    """Holds one run to its caps; the outermost wrapper, so that it counts what the run asks for (logical usage).

    A call is counted before it goes out, so that exactly `max_llm_calls` go out however many threads ask. Its tokens
    and cost are known when it has ended: a call may start while what is recorded is below the cap, so a run can exceed
    `max_tokens` and `max_cost` by no more than the calls then under way. What a failed call has paid is recorded too.
    `prices` are by model; `model` is the one of calls that name none.
    """

    def __init__(
        self,
        inner: LLMAdapter,
        limits: LimitSettings,
        prices: Mapping[str, Price] | None = None,
        *,
        model: str = "",
    ) -> None:
        self._inner = inner
        self._limits = limits
        self._prices = dict(prices or {})
        self._model = model
        self._lock = threading.Lock()
        self._spent = Spent()

    @property
    def spent(self) -> Spent:
        """What the run has used up to now."""
        with self._lock:
            return self._spent

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises `LimitReached` before it goes out, if a cap is reached."""
        price = self._price(request)
        self._reserve()
        try:
            response = self._inner.complete(request)
        except AeonError as error:
            self._record(error.usage, price)
            raise
        self._record(response.usage, price)
        return response

    def _reserve(self) -> None:
        with self._lock:
            check(self._limits, self._spent)
            self._spent = self._spent.started()

    def _record(self, usage: Usage, price: Price | None) -> None:
        with self._lock:
            self._spent = self._spent.paid(usage, price)

    def _price(self, request: LLMRequest) -> Price | None:
        model = request.parameters.model or self._model
        check_prices(self._limits, self._prices, [model])
        return price_of(model, self._prices)


def check(limits: LimitSettings, spent: Spent) -> None:
    """Raise `LimitReached`, naming the cap, if another call may not start."""
    caps: tuple[tuple[str, float | None, float], ...] = (
        ("max_llm_calls", limits.max_llm_calls, spent.calls),
        ("max_tokens", limits.max_tokens, spent.usage.total_tokens),
        ("max_cost", limits.max_cost, spent.cost),
    )
    for name, cap, used in caps:
        if cap is not None and used >= cap:
            raise LimitReached(
                name,
                f"limits.{name}={cap:.12g} is reached ({used:.12g} used)",
                hint=f"Raise limits.{name}, or set it to null.",
            )


def cost(usage: Usage, price: Price) -> float:
    """What some usage costs; cached input at its own price, if it has one."""
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input_tokens - usage.cached_tokens
    return (fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / PER


def price_of(model: str, prices: Mapping[str, Price]) -> Price | None:
    """The price of a model: its own, else that of the longest name it begins with (a dated version of a model)."""
    names = [name for name in prices if model.startswith(name)]
    return prices[max(names, key=len)] if names else None


def check_prices(limits: LimitSettings, prices: Mapping[str, Price], models: Iterable[str]) -> None:
    """Raise `ConfigError` if `limits.max_cost` is set and a model has no price: the cap could be exceeded unseen."""
    missing = sorted({model for model in models if price_of(model, prices) is None})
    if limits.max_cost is not None and missing:
        raise ConfigError(
            f"limits.max_cost={limits.max_cost:g}: no price is configured for {', '.join(missing)}",
            hint="Set provider.prices, in money per million tokens, for example "
            f"{{{missing[0]}: {{input: 0.25, output: 2.0}}}}; or set limits.max_cost to null.",
        )
