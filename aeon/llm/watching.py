"""What can be watched of a request while it is under way. It is for display only: it is in no
event, is not stored, and affects no result."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass

from aeon.domain.request import CallSite, LLMAdapter, LLMRequest, LLMResponse

WAITS = "aeon.waits"
"""The logger of what all runs of a process wait for, as it changes: batches under way, endpoints
that are down."""
_SECONDS_OF_A_PIECE = 0.05


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request that waits for its turn at an endpoint, about `seconds` more, or for what `text`
    says."""

    site: CallSite
    call: str
    seconds: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of an answer. `begins` marks the first of an attempt: all earlier pieces are
    void."""

    site: CallSite
    call: str
    text: str
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Watcher:
    """Receives what happens during requests. `tell` is called in the request's thread and must
    return at once; `stream` requests the text of answers as it arrives, if a provider streams."""

    tell: Callable[[Waiting | Piece], None]
    stream: bool = False

    def see(self, seen: Waiting | Piece) -> None:
        """Pass `seen` to `tell`. Its failures are ignored: they must not cost a paid call."""
        with suppress(Exception):
            self.tell(seen)


WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
"""The watcher of the current call."""


class Watched:
    """Makes requests under a watcher."""

    def __init__(self, inner: LLMAdapter, watcher: Watcher) -> None:
        self._inner = inner
        self._watcher = watcher

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        self._watcher.see(Waiting(request.site, request.call, 0.0))
        token = WATCHER.set(self._watcher)
        try:
            return self._inner.complete(request)
        finally:
            WATCHER.reset(token)


def piece_teller(request: LLMRequest) -> Callable[[str], None] | None:
    """Return the function to call with each piece of a request's answer; None if nobody is
    watching. Call it when the request is sent."""
    if (watcher := WATCHER.get()) is None or not watcher.stream:
        return None
    see = watcher.see
    site = request.site
    call = request.call
    see(Piece(site, call, "", begins=True))
    return lambda text: see(Piece(site, call, text))


def tell_waiting(request: LLMRequest, seconds: float, text: str = "") -> None:
    """Report that a request waits for its turn, or for what `text` says."""
    if (watcher := WATCHER.get()) is not None:
        watcher.see(Waiting(request.site, request.call, seconds, text))


def wants_stream() -> bool:
    """Whether a watcher requests the text of answers as it arrives."""
    return (watcher := WATCHER.get()) is not None and watcher.stream


def tell_slowly(request: LLMRequest, text: str, seconds: float) -> None:
    """Answer over `seconds`, piece by piece if somebody is watching."""
    tell = piece_teller(request)
    pieces = max(1, int(seconds / _SECONDS_OF_A_PIECE)) if tell else 1
    for number in range(pieces):
        if tell:
            tell(text[len(text) * number // pieces : len(text) * (number + 1) // pieces])
        if seconds > 0:
            time.sleep(seconds / pieces)
