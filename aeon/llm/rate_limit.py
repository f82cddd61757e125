"""Keeping to what an endpoint allows: requests at once, requests a minute, tokens a minute.

One `RateLimiter` for each endpoint, for the life of the process; each run's requests go through a `RateLimit` on it.
The counting of a minute is pyrate-limiter's, imported with the first limiter that has something to count; the waiting
is done here, since the library's own wait cannot be interrupted and is not fair.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aeon.errors import AeonError, RateLimited, StopRequested
from aeon.llm.attempts import counted_by
from aeon.llm.concurrency import Window
from aeon.llm.interface import LLMAdapter, LLMRequest, LLMResponse

if TYPE_CHECKING:
    from pyrate_limiter import RateItem

MINUTE_SECONDS = 60.0
MARGIN_SECONDS = 1.0
"""What a minute is longer here: requests that were sent on time may arrive late, and nearer to those that follow."""
FRESH_SECONDS = 0.1
POLL_SECONDS = 0.1
BYTES_PER_TOKEN = 4
EXPECTED_OUTPUT = 500
GRAINS = 1000
"""A minute's tokens are counted in so many grains: the library keeps an entry for each."""


@dataclass(frozen=True, eq=False, slots=True)
class Taken:
    """Units that were counted at `at`; `item` is their entry in the library's log."""

    units: int
    at: float
    item: RateItem


class PerMinute:
    """At most `limit` units in any minute. Not thread-safe: the limiter's lock is held.

    `take` counts what a request is expected to use, `settle` what it used in truth: what it did not use is taken out of
    its own minute, and what it used beyond is counted with the requests that follow. More than the limit counts as the
    limit, and the rest is owed. `clock` gives seconds.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        from pyrate_limiter import InMemoryBucket, Rate, RateItem

        self._grain = max(1, limit // GRAINS)
        self._most = limit // self._grain
        self._seconds = MINUTE_SECONDS + MARGIN_SECONDS
        self._bucket = InMemoryBucket([Rate(self._most, int(self._seconds * 1000))])
        self._item = RateItem
        self._clock = clock
        self._owed = 0  # below 0, and above -grain: the rest of a grain that is counted and not used

    def wait(self, units: int) -> float:
        """The seconds until so many units may be possible, 0.0 for now; nothing is counted."""
        now = int(self._clock() * 1000)
        grains = self._grains(units + self._owed)
        self._bucket.leak(now)
        if self._bucket.count() + grains <= self._most:
            return 0.0
        item = self._item("", now, grains)
        self._bucket.put(item)  # refused, and so the bucket knows what it lacks
        return max(0.001, float(self._bucket.waiting(item)) / 1000)  # type: ignore[arg-type]

    def take(self, units: int) -> Taken:
        """Count so many units now, after a `wait` of 0.0."""
        now = self._clock()
        wanted = units + self._owed
        grains = self._grains(wanted)
        item = self._item("", int(now * 1000), grains)
        if grains:
            self._bucket.put(item)
        self._owed = wanted - grains * self._grain
        return Taken(units, now, item)

    def settle(self, taken: Taken, used: int) -> None:
        """What was taken has used so much."""
        if used >= taken.units:
            self._owed += used - taken.units
        elif self._clock() - taken.at < self._seconds:
            unused, rest = divmod(taken.units - used, self._grain)
            self._owed -= rest
            if self._owed <= -self._grain:
                unused, self._owed = unused + 1, self._owed + self._grain
            self._take_out(taken.item, unused)

    def _take_out(self, item: RateItem, grains: int) -> None:
        """So many of an item's entries, or all that there are."""
        if not grains:
            return
        own = [index for index, entry in enumerate(self._bucket.items) if entry is item]
        for index in reversed(own[-grains:]):
            del self._bucket.items[index]

    def _grains(self, units: int) -> int:
        return min(self._most, max(0, -(-units // self._grain)))


@dataclass(eq=False, slots=True)
class Turn:
    """A request's place: its number, when it was counted, what as, and whether that has gone out."""

    tokens: int
    changed: threading.Event
    number: int = 0
    counted_at: float = 0.0
    requests_taken: Taken | None = None
    tokens_taken: Taken | None = None
    gone_out: bool = False


class RateLimiter:
    """Who may send a request to one endpoint, and when: first come, first served.

    `max_concurrency` bounds a `Window`; a 429 that says how long to wait keeps everyone from sending for so long, at
    most `longest_pause` seconds. `clock` gives seconds.
    """

    def __init__(
        self,
        max_concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        longest_pause: float = MINUTE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._window = Window.open(max_concurrency)
        self._requests = PerMinute(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = PerMinute(tokens_per_minute, clock) if tokens_per_minute else None
        self._longest_pause = longest_pause
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[Turn] = deque()
        self._under_way = 0
        self._sent = 0
        self._resume_at = 0.0
        self._output = EXPECTED_OUTPUT

    @property
    def slots(self) -> int:
        """How many requests may be under way now."""
        return self._window.slots

    def enter(self, request: LLMRequest, stopped: Callable[[], None]) -> Turn:
        """Wait for the request's turn. `stopped` is asked while waiting, and raises to leave."""
        turn = Turn(self._estimate(request) if self._tokens else 0, threading.Event())
        with self._lock:
            self._waiting.append(turn)
        try:
            while (seconds := self._missing(turn)) > 0:
                stopped()
                turn.changed.wait(min(seconds, POLL_SECONDS))
                turn.changed.clear()
        except BaseException:
            with self._lock:
                self._waiting.remove(turn)
                self._call_next()
            raise
        return turn

    def leave(self, turn: Turn, used: int, error: AeonError | None, output: int = 0) -> None:
        """A request has ended, having used so many tokens, `output` of them in its answer."""
        with self._lock:
            self._under_way -= 1
            if self._tokens and turn.tokens_taken:
                self._tokens.settle(turn.tokens_taken, used)
            if isinstance(error, RateLimited):
                self._throttled(turn, error.retry_after)
            elif error is None:
                self._window = self._window.answered()
                self._output += (output - self._output) // 8 if output else 0
            self._call_next()

    def go_out(self, turn: Turn) -> float:
        """Count the request as one that goes out now: 0.0, or the seconds after which to ask again.

        The first time, that moves what was counted when its turn came. Every other time, it is one more request in the
        same turn: what was sent before it is counted by the usage of the last.
        """
        with self._lock:
            now = self._clock()
            if turn.counted_at and not turn.gone_out and now - turn.counted_at < FRESH_SECONDS:
                turn.gone_out = True
                return 0.0
            self._uncount(turn)
            wait = self._resume_at - now
            if wait <= 0:
                wait = self._take(turn)
            if wait <= 0:
                turn.gone_out = True
            return max(0.0, wait)

    def _uncount(self, turn: Turn) -> None:
        """Give back the tokens, and the request too, if it has not gone out."""
        if self._requests and turn.requests_taken and not turn.gone_out:
            self._requests.settle(turn.requests_taken, 0)
        if self._tokens and turn.tokens_taken:
            self._tokens.settle(turn.tokens_taken, 0)
        turn.requests_taken = turn.tokens_taken = None
        turn.counted_at, turn.gone_out = 0.0, False

    def _missing(self, turn: Turn) -> float:
        """0.0 when the turn has come, which takes what it needs; else the seconds after which to look again."""
        with self._lock:
            if self._waiting[0] is not turn or self._under_way >= self._window.slots:
                return POLL_SECONDS
            wait = self._resume_at - self._clock()
            if wait <= 0:
                wait = self._take(turn)
            if wait > 0:
                return wait
            self._waiting.popleft()
            self._sent += 1
            self._under_way += 1
            turn.number = self._sent
            self._call_next()
            return 0.0

    def _take(self, turn: Turn) -> float:
        """Count the request and its tokens, both or none; the seconds to wait for the one that there is no room for."""
        counted = [(self._requests, 1), (self._tokens, turn.tokens)]
        wait = max((counter.wait(units) for counter, units in counted if counter), default=0.0)
        if not wait:
            turn.requests_taken = self._requests.take(1) if self._requests else None
            turn.tokens_taken = self._tokens.take(turn.tokens) if self._tokens else None
            turn.counted_at = self._clock()
        return wait

    def _throttled(self, turn: Turn, retry_after: float | None) -> None:
        self._window = self._window.throttled(turn.number, self._under_way + 1, self._sent)
        if retry_after and retry_after <= self._longest_pause:
            self._resume_at = max(self._resume_at, self._clock() + retry_after)

    def _call_next(self) -> None:
        if self._waiting:
            self._waiting[0].changed.set()

    def _estimate(self, request: LLMRequest) -> int:
        """About what a request will use: its texts, and what answers have had so far on average."""
        size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
        return size // BYTES_PER_TOKEN + self._output


class RateLimit:
    """Sends requests when an endpoint's limiter allows it; holds no slot while no request is under way.

    `stop` is asked while a request waits: a yes raises `StopRequested`. `check` is asked too, and when the turn has
    come; it raises what keeps the request from being sent (an open circuit). An adapter that sends several requests for
    one, or sends it later, has each of them counted as it goes out (`aeon.llm.attempts`).
    """

    def __init__(
        self,
        inner: LLMAdapter,
        limiter: RateLimiter,
        *,
        stop: Callable[[], bool] = lambda: False,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._inner = inner
        self._limiter = limiter
        self._stop = stop
        self._check = check or (lambda: None)

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""

        def stopped() -> None:
            self._leave_if_stopped(request)
            self._check()

        def go_out() -> float:
            if wait := self._limiter.go_out(turn):
                self._leave_if_stopped(request)
            return wait

        turn = self._limiter.enter(request, stopped)
        try:
            self._check()
            with counted_by(go_out):
                response = self._inner.complete(request)
        except AeonError as error:
            told = getattr(error, "usage_reported", True)
            self._limiter.leave(turn, error.usage.total_tokens if told else turn.tokens, error)
            raise
        except BaseException as error:
            self._limiter.leave(turn, 0, AeonError(str(error)))
            raise
        used = response.usage.total_tokens if response.usage_reported else turn.tokens
        self._limiter.leave(turn, used, None, response.usage.output_tokens)
        return response

    def _leave_if_stopped(self, request: LLMRequest) -> None:
        if self._stop():
            raise StopRequested(f"stopped before a {request.call} call was sent: it waited for its turn")
