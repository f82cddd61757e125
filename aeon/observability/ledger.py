"""Accounts for the tokens, cost, seconds and repairs of a run, from its events."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple, TypeVar

from aeon.domain.events import CallAnswered, CallFailed, PhaseFinished, PhaseStarted, Recorded, RepairFinished
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import Usage
from aeon.domain.result import TokenUsage, UsageReport
from aeon.llm.prices import PriceBook, PriceList
from aeon.llm.settings import Price

UNKNOWN_MODEL = "unknown"
Key = TypeVar("Key")


class Account(NamedTuple):
    """The key of an account. `model` is `unknown` for a request that failed without an answer."""

    call: str
    role: str
    model: str
    pass_number: int


@dataclass
class Booked:
    """The usage of one account, and the cost of each of its requests; None where it is not known."""

    usage: Usage = field(default_factory=Usage)
    costs: list[float | None] = field(default_factory=list)


class Ledger:
    """A subscriber that totals the usage of a run; thread-safe.

    `prices` are a book, or prices by model. Sums do not depend on the order in which parallel calls end.
    """

    def __init__(self, prices: PriceBook | Mapping[str, Price] | None = None) -> None:
        self._prices = prices if isinstance(prices, PriceBook) else PriceBook({"": PriceList(prices)})
        self._lock = threading.Lock()
        self._booked: defaultdict[Account, Booked] = defaultdict(Booked)
        self._seconds_by_call: defaultdict[str, float] = defaultdict(float)
        self._seconds_by_phase: defaultdict[str, float] = defaultdict(float)
        self._phases: dict[tuple[str, str, int], datetime] = {}
        self._repairs: list[RepairRecord] = []
        self._models: defaultdict[str, set[str]] = defaultdict(set)
        self._endpoints: Counter[str] = Counter()
        self._unpriced: set[str] = set()
        self._unreported: set[str] = set()

    def __call__(self, recorded: Recorded) -> None:
        """Book one event; events without usage are ignored."""
        with self._lock:
            match recorded.event:
                case CallAnswered() as event:
                    self._book_answer(event)
                case CallFailed() as event:
                    self._book_failure(event)
                case RepairFinished(record=record):
                    self._repairs.append(record)
                case PhaseStarted() as event:
                    self._phases[_phase(event)] = datetime.fromisoformat(recorded.time)
                case PhaseFinished() as event:
                    self._finish_phase(event, recorded.time)

    def usage(self) -> UsageReport:
        """Tokens, requests and cost so far. A cost is None, never zero, where a model that used tokens has no price, or
        its usage was not reported."""
        with self._lock:
            booked = {account: Booked(b.usage, list(b.costs)) for account, b in sorted(self._booked.items())}
            unpriced, unreported = tuple(sorted(self._unpriced)), tuple(sorted(self._unreported))
        return UsageReport(
            total=_total(booked.values()),
            by_call=_group(booked, attrgetter("call")),
            by_role=_group(booked, attrgetter("role")),
            by_model=_group(booked, attrgetter("model")),
            by_pass=dict(sorted(_group(booked, attrgetter("pass_number")).items())),
            unpriced=unpriced,
            unreported=unreported,
        )

    def cost(self) -> float | None:
        """The cost so far; None where that of one call is not known."""
        with self._lock:
            return _total_cost([cost for booked in self._booked.values() for cost in booked.costs])

    def repairs(self) -> tuple[RepairRecord, ...]:
        """Every repair, in the order in which the cycles were dispatched (FR-029, FR-033)."""
        with self._lock:
            return tuple(sorted(self._repairs, key=attrgetter("cycle")))

    def seconds_by_call(self) -> dict[str, float]:
        """Seconds spent waiting for answers, by call name; parallel calls each count in full."""
        with self._lock:
            return dict(sorted(self._seconds_by_call.items()))

    def seconds_by_phase(self) -> dict[str, float]:
        """Seconds of wall time by phase name, over all passes; a phase counts when it ends."""
        with self._lock:
            return dict(self._seconds_by_phase)

    def models(self) -> dict[str, list[str]]:
        """The models that answered, by role."""
        with self._lock:
            return {role: sorted(names) for role, names in sorted(self._models.items())}

    def endpoints(self) -> dict[str, int]:
        """How many requests each endpoint of the provider answered."""
        with self._lock:
            return dict(sorted(self._endpoints.items()))

    def totals(self, by_model: Mapping[str, Usage]) -> TokenUsage:
        """Usage by model as one sum, with its cost at the provider's own endpoint."""
        return _total(Booked(usage, [self._prices.cost(usage, answered=model)]) for model, usage in by_model.items())

    def _book_answer(self, event: CallAnswered) -> None:
        self._models[event.role].add(event.model)
        if event.endpoint:
            self._endpoints[event.endpoint] += 1
        asked = event.request.parameters.model or ""
        cost = self._prices.cost(event.usage, endpoint=event.endpoint, answered=event.model, asked=asked)
        if not event.usage_reported:
            self._unreported.add(event.model)
            cost = None
        elif cost is None and not event.synthetic:
            self._unpriced.add(event.model)
        self._book(event, event.model, cost)

    def _book_failure(self, event: CallFailed) -> None:
        cost = self._prices.cost(event.usage, endpoint=event.endpoint, answered=event.model, asked=event.asked)
        named = event.model or event.asked or event.endpoint or UNKNOWN_MODEL
        if not event.usage_reported:
            self._unreported.add(named)
            cost = None
        elif cost is None:
            self._unpriced.add(named)
        self._book(event, event.model or UNKNOWN_MODEL, cost)

    def _book(self, event: CallAnswered | CallFailed, model: str, cost: float | None) -> None:
        booked = self._booked[Account(event.call, event.role, model, event.site.pass_number)]
        booked.usage += event.usage
        booked.costs.append(cost)
        self._seconds_by_call[event.call] += event.seconds

    def _finish_phase(self, event: PhaseFinished, time: str) -> None:
        started = self._phases.pop(_phase(event), None)
        if started is not None:
            self._seconds_by_phase[event.phase] += (datetime.fromisoformat(time) - started).total_seconds()


def _group(booked: Mapping[Account, Booked], key: Callable[[Account], Key]) -> dict[Key, TokenUsage]:
    groups: dict[Key, list[Booked]] = {}
    for account, of_account in booked.items():
        groups.setdefault(key(account), []).append(of_account)
    return {name: _total(items) for name, items in groups.items()}


def _total(items: Iterable[Booked]) -> TokenUsage:
    items = list(items)
    total = sum((booked.usage for booked in items), Usage())
    return TokenUsage(
        requests=total.requests,
        input_tokens=total.input_tokens,
        output_tokens=total.output_tokens,
        cached_tokens=total.cached_tokens,
        reasoning_tokens=total.reasoning_tokens,
        total_tokens=total.total_tokens,
        cost=_total_cost([cost for booked in items for cost in booked.costs]),
    )


def _total_cost(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return math.fsum(known) if len(known) == len(costs) else None


def _phase(event: PhaseStarted | PhaseFinished) -> tuple[str, str, int]:
    return event.stage, event.phase, event.pass_number
