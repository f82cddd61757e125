"""How many requests an endpoint takes: at once, and in a minute; first come, first served."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from aeon.domain.errors import LLMError, RateLimited
from aeon.domain.request import LLMRequest, LLMResponse, estimate_tokens

PERIOD_SECONDS = (
    61.0  # a minute, and a second, since requests that were sent on time may arrive late
)
POLL_SECONDS = 0.1
_QUEUED_SECONDS = 0.5
"""How often the first request of a queue looks up, and the others, which are called when they are
first."""
EXPECTED_OUTPUT = 500

Clock = Callable[[], float]


@dataclass(eq=False, slots=True)
class Counted:
    """Units, and when they were counted."""

    units: int
    at: float


class PerMinute:
    """At most `limit` units in any minute; more than that at once waits for an empty one. Not
    thread-safe."""

    def __init__(self, limit: int, clock: Clock = time.monotonic) -> None:
        self.limit = limit
        self._clock = clock
        self._counted: deque[Counted] = deque()
        self._total = 0

    def seconds_until(self, units: int) -> float:
        """The seconds until there is room for so many units, 0.0 for now; counts nothing."""
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
        """Count so many units now."""
        self._counted.append(Counted(units, self._clock()))
        self._total += units
        return self._counted[-1]

    def correct(self, counted: Counted, used: int) -> None:
        """Say how many units were really used, as long as they count."""
        if self._counted and self._counted[0].at <= counted.at:
            self._total += used - counted.units
            counted.units = used


@dataclass(eq=False, slots=True)
class Turn:
    """A request's place: its number, the tokens it is expected to use, and what they are counted
    as."""

    tokens: int
    number: int = 0
    counted: Counted | None = None
    called: threading.Event = field(default_factory=threading.Event)


class Limiter:
    """Who may send a request to one endpoint, and when; for the life of the process, thread-safe.

    A 429 halves the number of requests under way (those sent together are one signal), and stops
    everyone for as long as it says, unless that is more than `longest_pause`. Each round of answers
    makes room for one more.
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
        self.refusals = 0  # how often in a row the server has answered 429
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
        """How many requests may be under way now."""
        return max(1, int(self._width))

    def replace_minutes(self, replace: Callable[[str, int], PerMinute]) -> None:
        """Count what is limited in a minute elsewhere: `replace` is told what, and the limit."""
        self._requests = self._requests and replace("requests", self._requests.limit)
        self._tokens = self._tokens and replace("tokens", self._tokens.limit)

    def enter(
        self,
        request: LLMRequest,
        check: Callable[[], None],
        tell: Callable[[float], None] = lambda _: None,
    ) -> Turn:
        """Wait for the request's turn. `check` is called after each moment of waiting, and raises
        to leave; `tell` is told before it how many seconds the wait takes yet, `POLL_SECONDS` where
        that depends on others, and 0.0 when it is over."""
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
        except BaseException:
            with self._lock:
                self._waiting.remove(turn)
                self._call_next()
            raise
        return turn

    def leave(
        self, turn: Turn, used_tokens: int, outcome: LLMResponse | LLMError | None = None
    ) -> None:
        """End a turn, with what was answered or raised; `outcome` None says nothing about the
        endpoint."""
        with self._lock:
            self._under_way -= 1
            if self._tokens and turn.counted:
                self._tokens.correct(turn.counted, used_tokens)
            if isinstance(outcome, RateLimited):
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
                    self._average_output += (output - self._average_output) // 8
            self._call_next()

    def _take_turn(self, turn: Turn) -> float:
        """0.0 when the turn has come; else the seconds after which to look again."""
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
