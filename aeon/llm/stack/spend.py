"""What has really been spent: answers that come from a store never arrive here."""

from __future__ import annotations

import threading
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

    def started(self) -> Spent:
        """With one more call under way."""
        return Spent(self.calls + 1, self.usage, self.cost, self.unmetered)

    def paid(self, usage: Usage, cost: float | None, *, metered: bool = True) -> Spent:
        """With the usage of a call that has ended, and what it cost; None if that is not known."""
        total = self.cost + cost if self.cost is not None and cost is not None else None
        return Spent(self.calls, self.usage + usage, total, self.unmetered + (not metered))


class Meter:
    """Adds up what is spent; may be asked at any time, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent = Spent()

    @property
    def spent(self) -> Spent:
        """What has been spent up to now."""
        with self._lock:
            return self._spent

    def add(self, usage: Usage, cost: float | None) -> None:
        """Add one call; `cost` is None if it is not known."""
        with self._lock:
            self._spent = self._spent.started().paid(usage, cost)


class Spend:
    """Adds what passes through to a meter, failed calls too."""

    def __init__(self, inner: LLMAdapter, prices: PriceBook, meter: Meter) -> None:
        self._inner, self._prices, self._meter = inner, prices, meter

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        try:
            response = self._inner.complete(request)
        except LLMError as error:
            self._add(error, request)
            raise
        self._add(response, request)
        return response

    def _add(self, outcome: LLMResponse | LLMError, request: LLMRequest) -> None:
        self._meter.add(outcome.usage, self._prices.cost_of(outcome, request) if outcome.usage_reported else None)
