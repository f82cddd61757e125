"""What has really been spent: answers that come from a store never arrive here."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from aeon.domain.errors import LLMError
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.llm.prices import PriceBook


@dataclass(frozen=True, slots=True)
class Bill:
    """Calls made, their tokens, and what they cost: None as soon as one of them has no price or told no usage."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0

    def with_call(self, usage: Usage, cost: float | None) -> Bill:
        """With one more call."""
        known = self.cost is not None and cost is not None
        return Bill(self.calls + 1, self.usage + usage, (self.cost or 0.0) + (cost or 0.0) if known else None)


class Meter:
    """Adds up bills; may be asked at any time, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bill = Bill()

    @property
    def bill(self) -> Bill:
        """What has been spent up to now."""
        with self._lock:
            return self._bill

    def add(self, usage: Usage, cost: float | None) -> None:
        """Book one call."""
        with self._lock:
            self._bill = self._bill.with_call(usage, cost)


class Spend:
    """Books what passes through on a meter, failed calls too."""

    def __init__(self, inner: LLMAdapter, prices: PriceBook, meter: Meter) -> None:
        self._inner = inner
        self._prices = prices
        self._meter = meter

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        asked = request.parameters.model or ""
        try:
            response = self._inner.complete(request)
        except LLMError as error:
            answered = getattr(error, "model", "")
            cost = self._prices.cost(error.usage, endpoint=error.endpoint, answered=answered, asked=asked)
            self._meter.add(error.usage, cost if getattr(error, "usage_reported", True) else None)
            raise
        cost = self._prices.cost(response.usage, endpoint=response.endpoint, answered=response.model, asked=asked)
        self._meter.add(response.usage, cost if response.usage_reported else None)
        return response
