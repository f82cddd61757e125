"""Notes on requests that wait for their answers, so that a run resumed after a kill finds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from aeon.domain.values import JsonMapping, JsonObject
from aeon.store.models import StoreRequest


class NotedSession(Protocol):
    """The use of the store that reads and writes notes, each under its mark. All methods raise
    StoreFailed."""

    def find_begun(self, request: StoreRequest) -> JsonObject | None:
        """Return the note that an earlier run left; None if it left none, or withdrew it."""

    def begin(self, request: StoreRequest, note: JsonObject) -> None:
        """Write a note."""

    def take_back(self, request: StoreRequest, note: JsonObject) -> None:
        """Withdraw a note."""


class RequestNotes:
    """The notes on one request of a session, each about something, such as the server that is
    called."""

    def __init__(self, session: NotedSession, request: StoreRequest) -> None:
        self._session = session
        self._request = request
        self._written: list[tuple[StoreRequest, JsonObject]] = []

    def find(self, about: JsonMapping) -> JsonObject | None:
        """Return the note that the resumed run left; None if it left none, or if this request has
        written one of its own. Raises StoreFailed."""
        mark = self._make_mark(about)
        is_replaced = any(mark.key == written.key for written, _ in self._written)
        return None if is_replaced else self._session.find_begun(mark)

    def write(self, about: JsonMapping, note: JsonObject) -> None:
        """Write a note, which replaces the earlier one. Raises StoreFailed."""
        self.clear()
        mark = self._make_mark(about)
        self._written.append((mark, note))
        self._session.begin(mark, note)

    def clear(self) -> None:
        """Withdraw the written notes, once the answer has arrived. Raises StoreFailed."""
        for mark, note in self._written:
            self._session.take_back(mark, note)
        self._written.clear()

    def _make_mark(self, about: JsonMapping) -> StoreRequest:
        body = {"request": self._request.content, **about}
        return StoreRequest(kind="begun", path=self._request.path, body=body)


NOTES: ContextVar[RequestNotes | None] = ContextVar("notes_on_request", default=None)
"""The notes on the current request to a model; None if nothing is stored."""


@contextmanager
def take_notes(notes: RequestNotes | None) -> Iterator[None]:
    """Make `notes` the notes on the current request during the block."""
    before = NOTES.set(notes)
    try:
        yield
    finally:
        NOTES.reset(before)
