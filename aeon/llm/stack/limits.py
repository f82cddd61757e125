"""The cost of model calls, and the caps on a run: `limits.max_llm_calls`, `limits.max_tokens`,
`limits.max_cost`."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pydantic import PositiveFloat, PositiveInt

from aeon.domain.errors import AeonError, LimitReached, LLMError, ProviderError
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, Usage
from aeon.domain.values import LowerOfRow, Value
from aeon.llm.prices import PriceBook, check_prices


class LimitSettings(Value):
    """`limits`: the caps on one run; None means no cap. Seconds are wall time; cost is in the
    currency of the prices."""

    max_seconds: LowerOfRow[PositiveFloat | None] = None
    max_tokens: LowerOfRow[PositiveInt | None] = None
    max_cost: LowerOfRow[PositiveFloat | None] = None
    max_llm_calls: LowerOfRow[PositiveInt | None] = None
    max_passes: LowerOfRow[PositiveInt | None] = 20


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls started, the tokens of finished calls, and their cost, which is None as soon as one
    call's is unknown. `unmetered` counts calls answered without usage, which tokens and cost do not
    include."""

    calls: int = 0
    usage: Usage = field(default_factory=Usage)
    cost: float | None = 0.0
    unmetered: int = 0


class Meter:
    """Totals the spending; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.spent = Spent()

    def start(self, limits: LimitSettings) -> None:
        """Count one more call. Raises LimitReached if the limits allow none."""
        with self._lock:
            check(limits, self.spent)
            self.spent = Spent(
                self.spent.calls + 1, self.spent.usage, self.spent.cost, self.spent.unmetered
            )

    def pay(self, usage: Usage, cost: float | None, *, metered: bool = True) -> None:
        """Add the usage of a finished call and its cost, None if unknown."""
        with self._lock:
            spent = self.spent
            total = None
            if metered and spent.cost is not None and cost is not None:
                total = spent.cost + cost
            self.spent = Spent(
                spent.calls, spent.usage + usage, total, spent.unmetered + (not metered)
            )


class Spend:
    """Meters all calls, failed ones too, and enforces the limits on what is requested. A call counts
    when it is sent, its tokens and cost when it ends, so a run exceeds its caps by at most the calls
    then under way. A cap on something that cannot be known counts as reached."""

    def __init__(
        self,
        inner: LLMAdapter,
        limits: LimitSettings,
        prices: PriceBook,
        meter: Meter | None = None,
    ) -> None:
        self._inner = inner
        self._limits = limits
        self._prices = prices
        self._meter = meter or Meter()

    @property
    def spent(self) -> Spent:
        """The total so far."""
        return self._meter.spent

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises `LimitReached` before sending it if a cap is reached, and
        ConfigError under `max_cost` for a model without a price."""
        asked = request.parameters.model or ""
        check_prices(self._prices, self._limits.max_cost, [asked] if asked else [])
        self._meter.start(self._limits)
        try:
            response = self._inner.complete(request)
        except LLMError as error:
            metered = isinstance(error, ProviderError) or _is_metered(error)
            self._meter.pay(error.usage, self._prices.cost_of(error, request), metered=metered)
            raise
        except AeonError as error:
            self._meter.pay(error.usage, self._prices.cost(error.usage, asked=asked))
            raise
        self._meter.pay(
            response.usage, self._prices.cost_of(response, request), metered=_is_metered(response)
        )
        return response


def _is_metered(outcome: LLMResponse | LLMError) -> bool:
    return outcome.usage_reported or (
        outcome.usage.input_tokens > 0 and outcome.usage.output_tokens > 0
    )


def check(limits: LimitSettings, spent: Spent) -> None:
    """Raise `LimitReached`, naming the cap, if no further call may start."""
    caps: dict[str, tuple[float | None, float | None]] = {
        "max_llm_calls": (limits.max_llm_calls, spent.calls),
        "max_tokens": (limits.max_tokens, None if spent.unmetered else spent.usage.total_tokens),
        "max_cost": (limits.max_cost, None if spent.unmetered else spent.cost),
    }
    for name, (cap, used) in caps.items():
        if cap is None or (used is not None and used < cap):
            continue
        what = f" is reached ({used:.12g} used)" if used is not None else ""
        hint = f"Raise limits.{name}"
        if used is None:
            missing = "usage" if spent.unmetered else "price"
            what = f": how much is used cannot be known, as an answer came without its {missing}"
            hint = "Use a provider that reports usage, and models with a price"
        raise LimitReached(
            f"limits.{name}={cap:.12g}{what}",
            limit=name,
            hint=f"{hint}; or set limits.{name} to null.",
        )
