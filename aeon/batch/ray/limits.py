"""The caps of a batch and the limits a minute, held for a whole cluster by one actor and lent to
workers in shares."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aeon.batch.endpoints import CappedMeter, SharedEndpoints
from aeon.domain.errors import LimitReached
from aeon.domain.request import LLMAdapter
from aeon.domain.values import JsonObject
from aeon.llm.settings import ProviderSettings
from aeon.llm.stack.build import Endpoints
from aeon.llm.stack.limiter import POLL_SECONDS, Clock, Counted, PerMinute
from aeon.llm.stack.limits import LimitSettings, Meter
from aeon.llm.stack.patience import Patience

LEASE_SECONDS = 2.0
# The most that one worker borrows at a time, and loses when it dies.
_CALLS_AT_ONCE = 16
_SHARE_OF_COST = 0.02


class Limits:
    """The rest of the caps, and of this minute's limits. Workers call `lend` and `lend_minute`."""

    def __init__(self, caps: LimitSettings, clock: Clock = time.monotonic) -> None:
        self._reached = self._failure = ""
        self._caps = caps
        self._clock = clock
        self._spent = defaultdict[str, dict[str, float]](
            dict
        )  # by cap and worker, the lent share included
        self._minutes: dict[str, PerMinute] = {}
        self._lent: dict[tuple[str, str], Counted] = {}

    def lend(self, worker: str, **spent: float) -> LimitSettings:
        """Return the total that a worker may spend, given that it has `spent` this much."""
        for name, used in spent.items():
            most = getattr(self._caps, name)
            by_worker = self._spent[name]
            if most is not None and used >= by_worker.get(worker, 0):
                by_worker[worker] = used
                at_once = _CALLS_AT_ONCE if name == "max_llm_calls" else _SHARE_OF_COST * most
                by_worker[worker] += max(0, min(at_once, most - sum(by_worker.values())))
        lent: JsonObject = {name: self._spent[name].get(worker) for name in spent}
        # Not validated: a share may be 0, which no configured limit is.
        return LimitSettings.model_construct(**lent)

    def end(self, reached: str = "") -> str:
        """Record that a cap is reached. Returns the reached cap; empty for none."""
        self._reached = self._reached or reached
        return self._reached

    def fail(self, reason: str = "") -> str:
        """Record why no row can continue. Returns the reason; empty where rows can."""
        self._failure = self._failure or reason
        return self._failure

    def lend_minute(
        self, name: str, limit: int, needed: int, more: int, back: int, *, worker: str
    ) -> tuple[int, float]:
        """Lend units of a minute, `needed` or up to `more`, for `LEASE_SECONDS`; `back` are the
        unused units of the last loan, below 0 when it was exceeded. Returns how many, and the
        seconds until asking again makes sense."""
        minute = self._minutes.setdefault(name, PerMinute(limit, self._clock))
        if (before := self._lent.get((worker, name))) is not None:
            minute.correct(before, before.units - back)
        for units in (more, needed):
            if (seconds := minute.seconds_until(units)) <= 0:
                counted = self._lent[worker, name] = minute.count(units)
                counted.at += LEASE_SECONDS  # when the last of them may be used
                return units, 0.0
        self._lent.pop((worker, name), None)
        return 0, seconds


class WorkerMeter(CappedMeter):
    """The meter of one worker, which borrows more when its share is spent. `ask` calls a method of
    `Limits` by its name; `stop` gets the cap that is reached."""

    def __init__(self, worker: str, ask: Callable[..., Any], stop: Callable[[str], None]) -> None:
        super().__init__(LimitSettings.model_construct(max_llm_calls=0, max_cost=None), stop)
        self._worker = worker
        self._ask = ask
        self._asking = threading.Lock()

    def start(self, limits: LimitSettings) -> None:
        """Count one more call under way. Raises StopRequested when nothing more may be spent."""
        with self._asking:
            try:
                return Meter.start(self, self._caps)
            except LimitReached:
                spent = {"max_llm_calls": self.spent.calls, "max_cost": self.spent.cost or 0.0}
                self._caps = self._ask("lend", self._worker, **spent)
            return super().start(limits)

    def _describe(self, end: LimitReached) -> str:
        # The message's numbers are those of this worker's share.
        is_known = self.spent.cost is not None or end.limit != "max_cost"
        problem = "is reached" if is_known else end.message.partition(": ")[2]
        return f"batch.{end.limit}: {problem}"


class WorkerMinute(PerMinute):
    """The units of a minute that one worker has borrowed; it borrows more when they are used up or
    expired."""

    def __init__(
        self, name: str, limit: int, ask: Callable[..., Any], clock: Clock = time.monotonic
    ) -> None:
        super().__init__(limit, clock)
        self._ask = ask
        self._name = name
        self._left = self._used = 0
        self._until = self._ask_at = 0.0

    def seconds_until(self, units: int) -> float:
        """Return the seconds until there is room for `units`, or until asking again makes sense."""
        now = self._clock()
        units = min(units, self.limit)
        if self._left >= units and now < self._until:
            return 0.0
        if now < self._ask_at:
            return self._ask_at - now
        more = min(self.limit, max(units, self._used * (2 if now < self._until else 1)))
        self._left, seconds = self._ask(
            "lend_minute", self._name, self.limit, units, more, self._left
        )
        self._used = 0
        self._until = now + LEASE_SECONDS
        self._ask_at = now + min(seconds, LEASE_SECONDS)
        return 0.0 if self._left >= units else max(POLL_SECONDS, self._ask_at - now)

    def count(self, units: int) -> Counted:
        """Count `units` as used now."""
        self._left -= min(units, self.limit)
        self._used += units
        return Counted(units, self._clock())

    def correct(self, counted: Counted, used: int) -> None:
        """Correct a count to the units really used."""
        self._left -= used - counted.units
        counted.units = used


class WorkerEndpoints(SharedEndpoints):
    """The endpoints of one worker, whose units a minute are borrowed."""

    def __init__(
        self,
        worker: str,
        ask: Callable[..., Any],
        stop: Callable[[str], None],
        patience: Patience | None = None,
    ) -> None:
        super().__init__(WorkerMeter(worker, ask, stop), patience)
        self._ask = partial(ask, worker=worker)
        self._lent = set[str]()

    def open(
        self, provider: ProviderSettings, environ: Mapping[str, str], own: LLMAdapter | None = None
    ) -> Endpoints:
        """See `SharedEndpoints`."""
        made = super().open(provider, environ, own)
        with self._lock:
            for server, state in self._states.items():
                if state is not None and server not in self._lent:
                    self._lent.add(server)
                    state.limiter.replace_minutes(partial(self._lend, server))
        return made

    def _lend(self, server: str, unit: str, limit: int) -> PerMinute:
        return WorkerMinute(f"{unit} {server}", limit, self._ask)
