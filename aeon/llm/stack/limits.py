"""The caps on a run's model calls: `limits.max_llm_calls`, `limits.max_tokens`, `limits.max_cost`.

`limits.max_seconds` and `limits.max_passes` are the kernel's.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pydantic import Field

from aeon.domain.errors import AeonError, LimitReached, LLMError, ProviderError
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.domain.values import Value
from aeon.llm.prices import PriceBook, PriceList, check_prices
from aeon.llm.settings import Price


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used: calls started, tokens of calls that have ended, their cost in the price table's currency.

    `cost` is None once a call had no price. `unmetered` calls were answered without a word on their usage, so that
    neither tokens nor cost tell the whole.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    unmetered: int = 0

    def started(self) -> Spent:
        """With one more call under way."""
        return replace(self, calls=self.calls + 1)

    def paid(self, usage: Usage, cost: float | None, *, metered: bool = True) -> Spent:
        """With the usage of a call that has ended, and what it cost; None if that is not known."""
        total = self.cost + cost if self.cost is not None and cost is not None else None
        return replace(self, usage=self.usage + usage, cost=total, unmetered=self.unmetered + (not metered))


class RunLimits:
    """Holds one run to its caps; the outermost wrapper, so that it counts what the run asks for (logical usage).

    A call is counted before it goes out, so that exactly `max_llm_calls` go out however many threads ask. Its tokens
    and cost are known when it has ended: a call may start while what is recorded is below the cap, so a run can exceed
    `max_tokens` and `max_cost` by no more than the calls then under way. What a failed call has paid is recorded too.
    A cap on what cannot be known is reached: after an answer that has no price, or whose usage was not told, no call
    starts under `max_cost` (or `max_tokens`). `prices` are a book, or by model; `model` is the one of calls that name
    none.
    """

    def __init__(
        self,
        inner: LLMAdapter,
        limits: LimitSettings,
        prices: PriceBook | Mapping[str, Price] | None = None,
        *,
        model: str = "",
    ) -> None:
        self._inner = inner
        self._limits = limits
        book = prices if isinstance(prices, PriceBook) else PriceBook({"": PriceList(prices, model=model)})
        self._prices = book
        self._lock = threading.Lock()
        self._spent = Spent()

    @property
    def spent(self) -> Spent:
        """What the run has used up to now."""
        with self._lock:
            return self._spent

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises `LimitReached` before it goes out, if a cap is reached, and ConfigError under
        `max_cost` for a model without a price."""
        asked = request.parameters.model or ""
        check_prices(self._prices, self._limits.max_cost, [asked] if asked else [])
        with self._lock:
            check(self._limits, self._spent)
            self._spent = self._spent.started()
        try:
            response = self._inner.complete(request)
        except AeonError as error:
            endpoint = error.endpoint if isinstance(error, LLMError) else ""
            answered = getattr(error, "model", "")
            cost = self._prices.cost(error.usage, endpoint=endpoint, answered=answered, asked=asked)
            # What was never answered is counted as the estimate that it carries.
            metered = isinstance(error, ProviderError) or _is_metered(
                error.usage, getattr(error, "usage_reported", True)
            )
            self._record(error.usage, cost, metered=metered)
            raise
        cost = self._prices.cost(response.usage, endpoint=response.endpoint, answered=response.model, asked=asked)
        self._record(response.usage, cost, metered=_is_metered(response.usage, response.usage_reported))
        return response

    def _record(self, usage: Usage, cost: float | None, *, metered: bool = True) -> None:
        with self._lock:
            self._spent = self._spent.paid(usage, cost, metered=metered)


def _is_metered(usage: Usage, reported: bool) -> bool:
    """Whether usage can be counted: told, or an estimate of both its sides."""
    return reported or (usage.input_tokens > 0 and usage.output_tokens > 0)


def check(limits: LimitSettings, spent: Spent) -> None:
    """Raise `LimitReached`, naming the cap, if another call may not start."""
    caps: tuple[tuple[str, float | None, float | None], ...] = (
        ("max_llm_calls", limits.max_llm_calls, spent.calls),
        ("max_tokens", limits.max_tokens, None if spent.unmetered else spent.usage.total_tokens),
        ("max_cost", limits.max_cost, None if spent.unmetered else spent.cost),
    )
    for name, cap, used in caps:
        if cap is not None and used is None:
            raise LimitReached(
                name,
                f"limits.{name}={cap:.12g}: how much is used cannot be known, as an answer came without its "
                f"{'usage' if spent.unmetered else 'price'}",
                hint=f"Use a provider that reports usage, and models with a price; or set limits.{name} to null.",
            )
        if cap is not None and used is not None and used >= cap:
            raise LimitReached(
                name,
                f"limits.{name}={cap:.12g} is reached ({used:.12g} used)",
                hint=f"Raise limits.{name}, or set it to null.",
            )


class LimitSettings(Value):
    """`limits`: the global resource caps; None is no cap. Seconds of wall time, tokens and calls of one run, cost in
    the
    currency of the price table."""

    max_seconds: float | None = Field(default=None, gt=0)
    max_tokens: int | None = Field(default=None, gt=0)
    max_cost: float | None = Field(default=None, gt=0)
    max_llm_calls: int | None = Field(default=None, gt=0)
    max_passes: int | None = Field(default=20, gt=0)
