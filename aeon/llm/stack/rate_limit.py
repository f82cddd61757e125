"""Keeping to what an endpoint allows: requests at once, requests a minute, tokens a minute.

One `RateLimiter` for each endpoint, for the life of the process; each run's requests go through a `RateLimit` on it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from aeon.domain.errors import AeonError, RateLimited, StopRequested
from aeon.domain.request import LLMAdapter, LLMRequest, LLMResponse, estimated_tokens
from aeon.llm.attempts import counted_by
from aeon.llm.stack.concurrency import Window
from aeon.llm.stack.per_minute import MINUTE_SECONDS, PerMinute, Taken

FRESH_SECONDS = 0.1
POLL_SECONDS = 0.1
EXPECTED_OUTPUT = 500


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

    @property
    def refusals(self) -> int:
        """How often in a row the server has answered 429 since its last answer; requests sent together count once."""
        return self._window.cuts

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
        return estimated_tokens(request) + self._output


class RateLimit:
    """Sends requests when an endpoint's limiter allows it; holds no slot while no request is under way.

    `stop` is asked while a request waits: a yes raises `StopRequested`. `check` is asked too, and when the turn has
    come; it raises what keeps the request from being sent (an open circuit). `busy` is told of each 429, and how many
    there were in a row, those to requests sent together being one. An adapter that sends several requests for
    one, or sends it later, has each of them counted as it goes out (`aeon.llm.attempts`).
    """

    def __init__(
        self,
        inner: LLMAdapter,
        limiter: RateLimiter,
        *,
        stop: Callable[[], bool] = lambda: False,
        check: Callable[[], None] | None = None,
        busy: Callable[[RateLimited, int], None] = lambda _error, _times: None,
    ) -> None:
        self._busy = busy
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
            if isinstance(error, RateLimited):
                self._busy(error, self._limiter.refusals)
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
