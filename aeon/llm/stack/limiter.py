"""How many requests an endpoint takes: at once, and in a minute; first come, first served."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from aeon.domain.errors import LLMError, RateLimited
from aeon.domain.request import LLMRequest, LLMResponse, estimated_tokens

MINUTE_SECONDS = 60.0
MARGIN_SECONDS = 1.0
"""A minute is longer by this here: requests that were sent on time may arrive late, and nearer to those that follow."""
POLL_SECONDS = 0.1
EXPECTED_OUTPUT = 500

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Window:
    """How many requests may be under way at once: additive increase, multiplicative decrease.

    It begins at `most`, the configured bound. A 429 halves the number that was under way; requests that were sent
    together are one signal, however many of them are refused. Each answer widens it by a fraction, so that a whole
    window of answers makes room for one more. A server that fails leaves it alone. `cut_at` is the number of the
    request that was sent last when the window was cut, `cuts` how often it was cut since the last answer.
    """

    most: int
    width: float
    cut_at: int = 0
    cuts: int = 0

    @classmethod
    def open(cls, most: int) -> Window:
        """A window as wide as it may be."""
        return cls(most, float(most))

    @property
    def slots(self) -> int:
        """How many requests may be under way, at least one."""
        return max(1, int(self.width))

    def answered(self) -> Window:
        """After an answer."""
        if self.width >= self.most and not self.cuts:
            return self
        return replace(self, width=min(self.most, self.width + 1 / self.width), cuts=0)

    def throttled(self, number: int, under_way: int, newest: int) -> Window:
        """After a 429 to request `number`, when `under_way` were under way and `newest` was the last one sent."""
        if number <= self.cut_at:
            return self
        return replace(self, width=max(1.0, min(self.width, under_way) / 2), cut_at=newest, cuts=self.cuts + 1)


@dataclass(eq=False, slots=True)
class Counted:
    """Units that were counted at `at`, in seconds of the clock."""

    units: int
    at: float


class PerMinute:
    """At most `limit` units in any minute. Not thread-safe: the limiter's lock is held.

    A request of more than `limit` waits for an empty minute; what it has beyond is counted in the next ones.
    """

    def __init__(self, limit: int, clock: Clock = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._counted: deque[Counted] = deque()
        self._total = 0

    def seconds_until(self, units: int) -> float:
        """The seconds until there is room for so many units, 0.0 for now; counts nothing."""
        now = self._clock()
        self._forget(now)
        missing = min(units, self._limit) + self._total - self._limit
        room_at = now
        for counted in self._counted:
            if missing <= 0:
                break
            missing -= counted.units
            room_at = counted.at + MINUTE_SECONDS + MARGIN_SECONDS
        return room_at - now

    def count(self, units: int) -> Counted:
        """Count so many units now."""
        counted = Counted(units, self._clock())
        self._counted.append(counted)
        self._total += units
        return counted

    def correct(self, counted: Counted, used: int) -> None:
        """Say how many units were really used; what a minute that is over did not use is not given back."""
        now = self._clock()
        self._forget(now)
        if not self._is_over(counted, now):
            self._total += used - counted.units
            counted.units = used
        elif used > counted.units:
            self.count(used - counted.units)

    def _forget(self, now: float) -> None:
        while self._counted and self._is_over(self._counted[0], now):
            oldest = self._counted.popleft()
            self._total -= oldest.units
            if oldest.units > self._limit:
                self.count(oldest.units - self._limit)

    @staticmethod
    def _is_over(counted: Counted, now: float) -> bool:
        return now - counted.at >= MINUTE_SECONDS + MARGIN_SECONDS


@dataclass(eq=False, slots=True)
class Turn:
    """A request's place: its number, the tokens it is expected to use, and what it is counted as."""

    tokens: int
    number: int = 0
    has_gone_out: bool = False
    counted_request: Counted | None = None
    counted_tokens: Counted | None = None
    called: threading.Event = field(default_factory=threading.Event)


class Limiter:
    """Who may send a request to one endpoint, and when; for the life of the process, thread-safe.

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
        clock: Clock = time.monotonic,
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
        self._average_output = EXPECTED_OUTPUT

    @property
    def slots(self) -> int:
        """How many requests may be under way now."""
        return self._window.slots

    @property
    def refusals(self) -> int:
        """How often in a row the server has answered 429 since its last answer; requests sent together count once."""
        return self._window.cuts

    def enter(self, request: LLMRequest, check: Callable[[], None]) -> Turn:
        """Wait for the request's turn. `check` is called after each moment of waiting, and raises to leave."""
        turn = Turn(estimated_tokens(request) + self._average_output if self._tokens else 0)
        with self._lock:
            self._waiting.append(turn)
        try:
            while (seconds := self._take_turn(turn)) > 0:
                turn.called.wait(min(seconds, POLL_SECONDS))
                turn.called.clear()
                check()
        except BaseException:
            with self._lock:
                self._waiting.remove(turn)
                self._call_next()
            raise
        return turn

    def go_out(self, turn: Turn) -> float:
        """Count the request as one that goes out now: 0.0, or the seconds after which to ask again.

        What was counted when the turn came moves to now. Every later request in the same turn is counted too; the
        tokens are those of the last.
        """
        with self._lock:
            if self._requests and turn.counted_request and not turn.has_gone_out:
                self._requests.correct(turn.counted_request, 0)
            if self._tokens and turn.counted_tokens:
                self._tokens.correct(turn.counted_tokens, 0)
            turn.counted_request = turn.counted_tokens = None
            seconds = self._count(turn)
            turn.has_gone_out = seconds == 0
            return seconds

    def leave(self, turn: Turn, used_tokens: int, outcome: LLMResponse | LLMError | None = None) -> None:
        """End a turn, with what was answered or raised; `outcome` None says nothing about the endpoint."""
        with self._lock:
            self._under_way -= 1
            if self._tokens and turn.counted_tokens:
                self._tokens.correct(turn.counted_tokens, used_tokens)
            if isinstance(outcome, RateLimited):
                self._window = self._window.throttled(turn.number, self._under_way + 1, self._sent)
                pause = outcome.retry_after or 0.0
                if pause <= self._longest_pause:
                    self._resume_at = max(self._resume_at, self._clock() + pause)
            elif isinstance(outcome, LLMResponse):
                self._window = self._window.answered()
                if output := outcome.usage.output_tokens:
                    self._average_output += (output - self._average_output) // 8
            self._call_next()

    def _take_turn(self, turn: Turn) -> float:
        """0.0 when the turn has come; else the seconds after which to look again."""
        with self._lock:
            if self._waiting[0] is not turn or self._under_way >= self._window.slots:
                return POLL_SECONDS
            if seconds := self._count(turn):
                return seconds
            self._waiting.popleft()
            self._sent += 1
            self._under_way += 1
            turn.number = self._sent
            self._call_next()
            return 0.0

    def _count(self, turn: Turn) -> float:
        """Count a request and its tokens, both or none: 0.0, or the seconds until both are possible."""
        seconds = self._resume_at - self._clock()
        if self._requests:
            seconds = max(seconds, self._requests.seconds_until(1))
        if self._tokens:
            seconds = max(seconds, self._tokens.seconds_until(turn.tokens))
        if seconds > 0:
            return seconds
        turn.counted_request = self._requests.count(1) if self._requests else None
        turn.counted_tokens = self._tokens.count(turn.tokens) if self._tokens else None
        return 0.0

    def _call_next(self) -> None:
        if self._waiting:
            self._waiting[0].called.set()
