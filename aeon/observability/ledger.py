"""Accounts for the tokens, cost, seconds and repairs of a run, from its events."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any

from aeon.domain.events import CallAnswered, CallFailed, PhaseFinished, PhaseStarted, Recorded, RepairFinished
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import Usage
from aeon.domain.result import TokenUsage, UsageReport
from aeon.llm.prices import PriceBook, PriceList
from aeon.llm.settings import Price


@dataclass(frozen=True, slots=True)
class _Request:
    """A request and what it used. `model` is `unknown` for one that failed without an answer; `cost` is None where it
    is not known."""

    call: str
    role: str
    model: str
    pass_number: int
    usage: Usage
    cost: float | None
    seconds: float


class Ledger:
    """A subscriber that totals the usage of a run.

    `prices` are a book, or prices by model. Sums do not depend on the order in which parallel calls end.
    `seconds_by_phase` is wall time over all passes, `endpoints` how many requests each of the provider's answered.
    """

    def __init__(self, prices: PriceBook | Mapping[str, Price] | None = None) -> None:
        self._prices = prices if isinstance(prices, PriceBook) else PriceBook({"": PriceList(prices)})
        self._requests: list[_Request] = []
        self.seconds_by_phase: defaultdict[str, float] = defaultdict(float)
        self._phases: dict[tuple[str, str, int], datetime] = {}
        self._repairs: list[RepairRecord] = []
        self._answered_by: set[tuple[str, str]] = set()
        self.endpoints: Counter[str] = Counter()
        self._unpriced: set[str] = set()
        self._unreported: set[str] = set()

    def __call__(self, recorded: Recorded) -> None:
        """Book one event; events without usage are ignored."""
        match recorded.event:
            case CallAnswered() as event:
                self._answered_by.add((event.role, event.model))
                self.endpoints.update([event.endpoint] if event.endpoint else [])
                self._book(event, event.request.parameters.model or "", free=event.synthetic)
            case CallFailed() as event:
                self._book(event, event.asked)
            case RepairFinished(record=record):
                self._repairs.append(record)
            case PhaseStarted() as event:
                self._phases[event.stage, event.phase, event.pass_number] = datetime.fromisoformat(recorded.time)
            case PhaseFinished() as event:
                started = self._phases.pop((event.stage, event.phase, event.pass_number), None)
                if started is not None:
                    took = datetime.fromisoformat(recorded.time) - started
                    self.seconds_by_phase[event.phase] += took.total_seconds()

    def _book(self, event: CallAnswered | CallFailed, asked: str, *, free: bool = False) -> None:
        cost = self._prices.cost(event.usage, endpoint=event.endpoint, answered=event.model, asked=asked)
        named = event.model or asked or event.endpoint or "unknown"
        if not event.usage_reported:
            self._unreported.add(named)
            cost = None
        elif cost is None and not free:
            self._unpriced.add(named)
        model, number = event.model or "unknown", event.site.pass_number
        self._requests.append(_Request(event.call, event.role, model, number, event.usage, cost, event.seconds))

    def usage(self) -> UsageReport:
        """Tokens, requests and cost so far. A cost is None, never zero, where a model that used tokens has no price, or
        its usage was not reported."""
        requests = list(self._requests)
        return UsageReport(
            total=_total(requests),
            by_call=_group(requests, "call"),
            by_role=_group(requests, "role"),
            by_model=_group(requests, "model"),
            by_pass=_group(requests, "pass_number"),
            unpriced=tuple(sorted(self._unpriced)),
            unreported=tuple(sorted(self._unreported)),
        )

    def cost(self) -> float | None:
        """The cost so far; None where that of one call is not known."""
        return _cost(self._requests)

    def repairs(self) -> tuple[RepairRecord, ...]:
        """Every repair, in the order in which the cycles were dispatched (FR-029, FR-033)."""
        return tuple(sorted(self._repairs, key=attrgetter("cycle")))

    def seconds_by_call(self) -> dict[str, float]:
        """Seconds spent waiting for answers, by call name; parallel calls each count in full."""
        names = sorted({one.call for one in self._requests})
        return {name: math.fsum(one.seconds for one in self._requests if one.call == name) for name in names}

    def models(self) -> dict[str, list[str]]:
        """The models that answered, by role."""
        models: dict[str, list[str]] = {}
        for role, model in sorted(self._answered_by):
            models.setdefault(role, []).append(model)
        return models


def _group(requests: Iterable[_Request], field: str) -> dict[Any, TokenUsage]:
    groups: dict[Any, list[_Request]] = {}
    for request in requests:
        groups.setdefault(getattr(request, field), []).append(request)
    return {name: _total(of_name) for name, of_name in sorted(groups.items())}


def _total(requests: list[_Request]) -> TokenUsage:
    total = sum((request.usage for request in requests), Usage())
    return TokenUsage(**asdict(total), total_tokens=total.total_tokens, cost=_cost(requests))


def _cost(requests: Iterable[_Request]) -> float | None:
    costs = [request.cost for request in requests]
    return None if None in costs else math.fsum(cost for cost in costs if cost is not None)
