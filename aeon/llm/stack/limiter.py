"""Limits concurrent requests and requests and tokens per minute at an endpoint; first come, first
served."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from aeon.domain.errors import LLMError, RateLimited
from aeon.domain.request import LLMRequest, LLMResponse, estimate_tokens

# A minute, and a second, since requests that were sent on time may arrive late.
PERIOD_SECONDS = 61.0
POLL_SECONDS = 0.1
_QUEUED_SECONDS = 0.5
"""How often the requests behind the first one check; they are woken when they become the first."""
EXPECTED_OUTPUT = 500  # tokens of an answer, until some have been seen

Clock = Callable[[], float]


@dataclass(eq=False, slots=True)
class Counted:
    """Units, and the time when they were counted."""

    units: int
    at: float


class PerMinute:
    """At most `limit` units in any minute; a larger amount waits for an empty minute. Not
    thread-safe."""

    def __init__(self, limit: int, clock: Clock = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._counted: deque[Counted] = deque()
        self._total = 0

    def seconds_until(self, units: int) -> float:
        """Return the seconds until `units` fit, 0.0 if they fit now; counts nothing."""
        now = self._clock()
        seconds = 0.0
        while self._counted and now - self._counted[0].at >= PERIOD_SECONDS:
            self._total -= self._counted.popleft().units
        missing = min(units, self.limit) + self._total - self.limit
        for counted in self._counted:
            if missing <= 0:
                break
            missing -= counted.units
            seconds = counted.at + PERIOD_SECONDS - now
        return seconds

    def count(self, units: int) -> Counted:
        """Count `units` now."""
        self._counted.append(Counted(units, self._clock()))
        self._total += units
        return self._counted[-1]

    def correct(self, counted: Counted, used: int) -> None:
        """Replace a count by the units really used, while it still counts."""
        # An older count has left the total already.
        if self._counted and self._counted[0].at <= counted.at:
            self._total += used - counted.units
            counted.units = used


@dataclass(eq=False, slots=True)
class Turn:
    """A request's place in the queue: its number, its expected tokens, and how they were
    counted."""

    tokens: int
    number: int = 0
    counted: Counted | None = None
    called: threading.Event = field(default_factory=threading.Event)


class Limiter:
    """Decides when a request may be sent to one endpoint; for the life of the process, thread-safe.

    A 429 halves the number of concurrent requests (429s to requests sent together count once) and
    pauses all requests for as long as it asks, up to `longest_pause` seconds; a longer pause is
    ignored. Each round of answers allows one more.
    """

    def __init__(
        self,
        max_concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        *,
        longest_pause: float = 60.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self.refusals = 0  # number of 429 answers in a row
        self._requests = PerMinute(requests_per_minute, clock) if requests_per_minute else None
        self._tokens = PerMinute(tokens_per_minute, clock) if tokens_per_minute else None
        self._most = max_concurrency
        self._longest_pause = longest_pause
        self._clock = clock
        self._width = float(max_concurrency)
        self._lock = threading.Lock()
        self._waiting: deque[Turn] = deque()
        self._under_way = self._sent = self._narrowed_at = 0
        self._resume_at = 0.0
        self._average_output = EXPECTED_OUTPUT

    @property
    def slots(self) -> int:
        """Number of requests that may be under way now."""
        return max(1, int(self._width))

    def replace_minutes(self, replace: Callable[[str, int], PerMinute]) -> None:
        """Count the limits per minute elsewhere: `replace` is called with the name of the unit and
        the limit."""
        self._requests = self._requests and replace("requests", self._requests.limit)
        self._tokens = self._tokens and replace("tokens", self._tokens.limit)

    def enter(
        self,
        request: LLMRequest,
        check: Callable[[], None],
        tell: Callable[[float], None] = lambda _: None,
    ) -> Turn:
        """Wait for the request's turn. `check` is called after each interval of waiting and raises
        to leave. `tell` is called before it with the seconds left, with `POLL_SECONDS` if they
        depend on other requests, and with 0.0 at the end."""
        turn = Turn(estimate_tokens(request) + self._average_output if self._tokens else 0)
        with self._lock:
            self._waiting.append(turn)
        try:
            while (seconds := self._take_turn(turn)) > 0:
                tell(seconds)
                is_first = self._waiting[0] is turn
                turn.called.wait(min(seconds, POLL_SECONDS) if is_first else _QUEUED_SECONDS)
                turn.called.clear()
                check()
            tell(0.0)
        except BaseException:  # whoever leaves the queue lets the next one look
            with self._lock:
                self._waiting.remove(turn)
                self._call_next()
            raise
        return turn

    def leave(
        self, turn: Turn, used_tokens: int, outcome: LLMResponse | LLMError | None = None
    ) -> None:
        """End a turn with its answer or error; an `outcome` of None says nothing about the
        endpoint."""
        with self._lock:
            self._under_way -= 1
            if self._tokens and turn.counted:
                self._tokens.correct(turn.counted, used_tokens)
            if isinstance(outcome, RateLimited):
                # Requests sent before the last narrowing knew nothing of it.
                if turn.number > self._narrowed_at:
                    self._width = max(1.0, min(self._width, self._under_way + 1) / 2)
                    self._narrowed_at = self._sent
                    self.refusals += 1
                pause = outcome.retry_after or 0.0
                if pause <= self._longest_pause:
                    self._resume_at = max(self._resume_at, self._clock() + pause)
            elif isinstance(outcome, LLMResponse):
                self._width = min(self._most, self._width + 1 / self._width)
                self.refusals = 0
                if output := outcome.usage.output_tokens:
                    # A moving average of about the last eight answers.
                    self._average_output += (output - self._average_output) // 8
            self._call_next()

    def _take_turn(self, turn: Turn) -> float:
        """Take the turn and return 0.0, or return the seconds until the next check."""
        with self._lock:
            if self._waiting[0] is not turn or self._under_way >= self.slots:
                return POLL_SECONDS
            seconds = max(0.0, self._resume_at - self._clock())
            for minute, units in ((self._requests, 1), (self._tokens, turn.tokens)):
                seconds = max(seconds, minute.seconds_until(units) if minute else 0.0)
            if seconds > 0:
                return seconds
            if self._requests:
                self._requests.count(1)
            turn.counted = self._tokens.count(turn.tokens) if self._tokens else None
            self._waiting.popleft()
            self._sent += 1
            self._under_way += 1
            turn.number = self._sent
            self._call_next()
            return 0.0

    def _call_next(self) -> None:
        if self._waiting:
            self._waiting[0].called.set()
