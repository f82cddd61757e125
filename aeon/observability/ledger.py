"""What a run cost: tokens, money, seconds and repairs, folded from its events."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple, TypeVar

from aeon.events import CallAnswered, CallFailed, PhaseFinished, PhaseStarted, Recorded, RepairFinished
from aeon.llm.interface import Usage
from aeon.llm.settings import Price
from aeon.result import TokenUsage, UsageReport
from aeon.supervisor.models import RepairRecord

UNKNOWN_MODEL = "unknown"
Key = TypeVar("Key")


class Account(NamedTuple):
    """What usage is booked on. `model` is `unknown` for a request that failed before anyone answered."""

    call: str
    role: str
    model: str
    pass_number: int


class Ledger:
    """A subscriber that keeps a run's books; may be asked at any time, from any thread.

    `prices` maps a model's name, or the start of it, to its price: the exact name wins, then the longest start. Sums do
    not depend on the order in which parallel calls end.
    """

    def __init__(self, prices: Mapping[str, Price] | None = None) -> None:
        self._prices = dict(prices or {})
        self._lock = threading.Lock()
        self._booked: defaultdict[Account, Usage] = defaultdict(Usage)
        self._seconds_by_call: defaultdict[str, float] = defaultdict(float)
        self._seconds_by_phase: defaultdict[str, float] = defaultdict(float)
        self._phases: dict[tuple[str, str, int], datetime] = {}
        self._repairs: list[RepairRecord] = []
        self._models: defaultdict[str, set[str]] = defaultdict(set)

    def __call__(self, recorded: Recorded) -> None:
        """Book one event; those that cost nothing are ignored."""
        with self._lock:
            match recorded.event:
                case CallAnswered() as event:
                    self._models[event.role].add(event.model)
                    self._book(event, event.model)
                case CallFailed() as event:
                    self._book(event, event.model or UNKNOWN_MODEL)
                case RepairFinished(record=record):
                    self._repairs.append(record)
                case PhaseStarted() as event:
                    self._phases[_phase(event)] = datetime.fromisoformat(recorded.time)
                case PhaseFinished() as event:
                    self._finish_phase(event, recorded.time)

    def usage(self) -> UsageReport:
        """Tokens, requests and cost so far. A cost is None, never zero, where a model that used tokens has no price."""
        with self._lock:
            booked = dict(sorted(self._booked.items()))
        return UsageReport(
            total=self._sum(booked.items()),
            by_call=self._grouped(booked, attrgetter("call")),
            by_role=self._grouped(booked, attrgetter("role")),
            by_model=self._grouped(booked, attrgetter("model")),
            by_pass=dict(sorted(self._grouped(booked, attrgetter("pass_number")).items())),
        )

    def repairs(self) -> tuple[RepairRecord, ...]:
        """Every repair, in the order its cycle was dispatched (FR-029, FR-033)."""
        with self._lock:
            return tuple(sorted(self._repairs, key=attrgetter("cycle")))

    def seconds_by_call(self) -> dict[str, float]:
        """Seconds spent waiting for answers, by call name; calls that ran side by side each count in full."""
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

    def price(self, model: str) -> Price | None:
        """The price of a model: by its exact name, else by the longest start of it that has one."""
        starts = [name for name in self._prices if model.startswith(name)]
        return self._prices[max(starts, key=len)] if starts else None

    def _book(self, event: CallAnswered | CallFailed, model: str) -> None:
        self._booked[Account(event.call, event.role, model, event.site.pass_number)] += event.usage
        self._seconds_by_call[event.call] += event.seconds

    def _finish_phase(self, event: PhaseFinished, time: str) -> None:
        started = self._phases.pop(_phase(event), None)
        if started is not None:
            self._seconds_by_phase[event.phase] += (datetime.fromisoformat(time) - started).total_seconds()

    def _grouped(self, booked: Mapping[Account, Usage], key: Callable[[Account], Key]) -> dict[Key, TokenUsage]:
        groups: dict[Key, list[tuple[Account, Usage]]] = {}
        for account, usage in booked.items():
            groups.setdefault(key(account), []).append((account, usage))
        return {name: self._sum(items) for name, items in groups.items()}

    def _sum(self, items: Iterable[tuple[Account, Usage]]) -> TokenUsage:
        by_model: defaultdict[str, Usage] = defaultdict(Usage)
        for account, usage in items:
            by_model[account.model] += usage
        total = sum(by_model.values(), Usage())
        costs = [cost(usage, self.price(model)) for model, usage in sorted(by_model.items())]
        return TokenUsage(
            requests=total.requests,
            input_tokens=total.input_tokens,
            output_tokens=total.output_tokens,
            cached_tokens=total.cached_tokens,
            reasoning_tokens=total.reasoning_tokens,
            total_tokens=total.total_tokens,
            cost=None if not self._prices or None in costs else sum(c for c in costs if c is not None),
        )


def cost(usage: Usage, price: Price | None) -> float | None:
    """What tokens cost at a price, in its currency; None without a price, unless there are no tokens to pay for."""
    if price is None:
        return None if usage.total_tokens else 0.0
    cached = price.input if price.cached is None else price.cached
    fresh = usage.input_tokens - usage.cached_tokens
    return (fresh * price.input + usage.cached_tokens * cached + usage.output_tokens * price.output) / 1_000_000


def _phase(event: PhaseStarted | PhaseFinished) -> tuple[str, str, int]:
    return event.stage, event.phase, event.pass_number
