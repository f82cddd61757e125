"""What has really been spent: answers that come from a store never arrive here."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from aeon.domain.errors import LLMError
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.llm.prices import PriceBook


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls started, tokens of calls that have ended, and their cost in the price table's currency.

    `cost` is None as soon as that of one call is not known. `unmetered` calls were answered without their usage, so
    that neither tokens nor cost are the whole.
    """

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    unmetered: int = 0


class Meter:
    """Adds up what is spent; may be asked at any time, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spent = Spent()

    def start(self, allow: Callable[[Spent], None] = lambda _: None) -> None:
        """Count one more call under way, unless `allow` raises for what is spent up to now."""
        with self._lock:
            allow(self.spent)
            self.spent = Spent(self.spent.calls + 1, self.spent.usage, self.spent.cost, self.spent.unmetered)

    def pay(self, usage: Usage, cost: float | None, *, metered: bool = True) -> None:
        """Add the usage of a call that has ended, and what it cost; None if that is not known."""
        with self._lock:
            spent = self.spent
            total = spent.cost + cost if spent.cost is not None and cost is not None else None
            self.spent = Spent(spent.calls, spent.usage + usage, total, spent.unmetered + (not metered))


class Spend:
    """Adds what passes through to a meter, failed calls too."""

    def __init__(self, inner: LLMAdapter, prices: PriceBook, meter: Meter) -> None:
        self._inner, self._prices, self._meter = inner, prices, meter

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        self._meter.start()
        try:
            response = self._inner.complete(request)
        except LLMError as error:
            self._pay(error, request)
            raise
        self._pay(response, request)
        return response

    def _pay(self, outcome: LLMResponse | LLMError, request: LLMRequest) -> None:
        self._meter.pay(outcome.usage, self._prices.cost_of(outcome, request) if outcome.usage_reported else None)
