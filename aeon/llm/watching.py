"""What may be seen of a request while it is under way. It is for a person who looks on: no event tells it, nothing of
it is stored, and no result depends on it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass

from aeon.domain.request import CallSite, LLMAdapter, LLMRequest, LLMResponse


@dataclass(frozen=True, slots=True)
class Waiting:
    """A request waits for its turn at an endpoint, about so many seconds yet; 0.0: it does not, or not any more."""

    site: CallSite
    call: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Piece:
    """The next piece of an answer. The first of an attempt says so (`begins`): all before it is void."""

    site: CallSite
    call: str
    text: str
    begins: bool = False


@dataclass(frozen=True, slots=True)
class Watcher:
    """Who looks on: `tell` is called in the thread of the request and must return at once; `stream` asks for the text
    of answers as it comes, where a provider streams."""

    tell: Callable[[Waiting | Piece], None]
    stream: bool = False


WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
"""Who looks on at the call that is being made."""


class Watched:
    """Makes requests while a watcher looks on."""

    def __init__(self, inner: LLMAdapter, watcher: Watcher) -> None:
        self._inner, self._watcher = inner, watcher

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request."""
        self._watcher.tell(Waiting(request.site, request.call, 0.0))
        token = WATCHER.set(self._watcher)
        try:
            return self._inner.complete(request)
        finally:
            WATCHER.reset(token)


def piece_teller(request: LLMRequest) -> Callable[[str], None] | None:
    """What is to be called with each piece of an answer to a request that is now sent; None where nobody looks on."""
    watcher = WATCHER.get()
    if watcher is None or not watcher.stream:
        return None
    tell, site, call = watcher.tell, request.site, request.call
    tell(Piece(site, call, "", begins=True))
    return lambda text: tell(Piece(site, call, text))


def tell_waiting(request: LLMRequest, seconds: float) -> None:
    """Say that a request waits for its turn."""
    if (watcher := WATCHER.get()) is not None:
        watcher.tell(Waiting(request.site, request.call, seconds))
