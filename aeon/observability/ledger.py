"""Totals the tokens, cost, seconds and repairs of a run from its events."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from aeon.domain.events import (
    CallAnswered,
    CallFailed,
    PhaseFinished,
    PhaseStarted,
    Recorded,
    RepairFinished,
)
from aeon.domain.refinement import RepairRecord
from aeon.domain.request import Usage
from aeon.domain.result import TokenUsage, UsageReport
from aeon.llm.prices import PriceBook, PriceList
from aeon.llm.settings import Price

_AFTER_EVALUATION = ("REFINE", "PROFILE")


class Booked(NamedTuple):
    """The usage of a request, without its prompt and answer: together, a run's prompts grow faster
    than the run."""

    call: str
    role: str
    model: str
    endpoint: str
    pass_number: int
    phase: str
    seconds: float
    usage: Usage
    cost: float | None
    is_answered: bool


class Ledger:
    """A subscriber that totals a run's usage, in whatever order concurrent calls end. `prices` are
    a price book, or prices by model; `seconds_by_phase` is measured with `clock` (monotonic) over
    all passes."""

    def __init__(
        self,
        prices: PriceBook | Mapping[str, Price] | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._prices = (
            prices if isinstance(prices, PriceBook) else PriceBook({"": PriceList(prices)})
        )
        self._requests: list[Booked] = []
        self.seconds_by_phase: defaultdict[str, float] = defaultdict(float)
        self._phases: dict[tuple[str, str, int], float] = {}
        self._repairs: list[RepairRecord] = []
        self._unpriced: set[str] = set()
        self._unreported: set[str] = set()

    def __call__(self, recorded: Recorded) -> None:
        """Record one event; events without usage are ignored."""
        match recorded.event:
            case CallAnswered() as event:
                self._book(event, event.request.parameters.model or "", free=event.synthetic)
            case CallFailed() as event:
                self._book(event, event.asked)
            case RepairFinished(record=record):
                self._repairs.append(record)
            case PhaseStarted() as event:
                self._phases[event.stage, event.phase, event.pass_number] = self._clock()
            case PhaseFinished() as event:
                started = self._phases.pop((event.stage, event.phase, event.pass_number), None)
                if started is not None:
                    self.seconds_by_phase[event.phase] += self._clock() - started

    def _book(self, event: CallAnswered | CallFailed, asked: str, *, free: bool = False) -> None:
        cost = self._prices.cost(
            event.usage, endpoint=event.endpoint, answered=event.model, asked=asked
        )
        named = event.model or asked or event.endpoint or "unknown"
        if not event.usage_reported:
            self._unreported.add(named)
            cost = None
        elif cost is None and not free:
            self._unpriced.add(named)
        self._requests.append(
            Booked(
                call=event.call,
                role=event.role,
                model=event.model,
                endpoint=event.endpoint,
                pass_number=event.site.pass_number,
                phase=event.site.phase,
                seconds=event.seconds,
                usage=event.usage,
                cost=cost,
                is_answered=isinstance(event, CallAnswered),
            )
        )

    def usage(self) -> UsageReport:
        """Return tokens, requests and cost so far. A cost is None, never zero, if a model that used
        tokens has no price or its usage was not reported; the model of a request that failed
        without an answer is `unknown`."""
        return UsageReport(
            total=_total(self._requests),
            by_call=self._group(attrgetter("call")),
            by_role=self._group(attrgetter("role")),
            by_model=self._group(lambda booked: booked.model or "unknown"),
            by_pass=self._group(attrgetter("pass_number")),
            unpriced=tuple(sorted(self._unpriced)),
            unreported=tuple(sorted(self._unreported)),
        )

    def usage_up_to(self, pass_number: int) -> TokenUsage:
        """Return tokens, requests and cost up to the end of a pass's evaluation; later requests of
        that pass prepare the next one."""
        return _total(
            [
                booked
                for booked in self._requests
                if booked.pass_number < pass_number
                or (booked.pass_number == pass_number and booked.phase not in _AFTER_EVALUATION)
            ]
        )

    def _group(self, key: Callable[[Booked], Any]) -> dict[Any, TokenUsage]:
        groups: defaultdict[Any, list[Booked]] = defaultdict(list)
        for booked in self._requests:
            groups[key(booked)].append(booked)
        return {name: _total(groups[name]) for name in sorted(groups)}

    def cost(self) -> float | None:
        """Return the cost so far; None if that of one call is unknown."""
        return _total(self._requests).cost

    def repairs(self) -> tuple[RepairRecord, ...]:
        """Return every repair, in the order in which the cycles were dispatched (FR-029,
        FR-033)."""
        return tuple(sorted(self._repairs, key=attrgetter("cycle")))

    def seconds_by_call(self) -> dict[str, float]:
        """Return the seconds spent waiting for answers, by call name; concurrent calls each count
        in full."""
        seconds: Counter[str] = Counter()
        for booked in sorted(self._requests, key=attrgetter("call")):
            seconds[booked.call] += booked.seconds  # type: ignore[assignment]
        return dict(seconds)

    def models(self) -> dict[str, list[str]]:
        """Return the models that answered, by role."""
        answered = sorted(
            {(booked.role, booked.model) for booked in self._requests if booked.is_answered}
        )
        return {role: [model for one, model in answered if one == role] for role, _ in answered}

    def endpoints(self) -> dict[str, int]:
        """Return how many requests each endpoint of the provider answered."""
        answers = [booked.endpoint for booked in self._requests if booked.is_answered]
        return dict(sorted(Counter(filter(None, answers)).items()))


def _total(requests: Sequence[Booked]) -> TokenUsage:
    return TokenUsage.add_up((booked.usage, booked.cost) for booked in requests)
