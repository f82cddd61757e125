"""What is noted of a request while its answer is waited for, so that a run that goes on after a kill
finds it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from aeon.domain.values import JsonMapping, JsonObject
from aeon.store.models import StoreRequest


class NotedSession(Protocol):
    """The use of the store in which notes are found and written, each by its mark. All raise
    StoreFailed."""

    def find_begun(self, request: StoreRequest) -> JsonObject | None:
        """The note of an earlier run."""

    def begin(self, request: StoreRequest, note: JsonObject) -> None:
        """Write a note."""

    def take_back(self, request: StoreRequest, note: JsonObject) -> None:
        """Take a note back."""


class RequestNotes:
    """The notes on one request of a session, each about something, such as a server that is
    asked."""

    def __init__(self, session: NotedSession, request: StoreRequest) -> None:
        self._session = session
        self._request = request
        self._written: list[tuple[StoreRequest, JsonObject]] = []

    def find(self, about: JsonMapping) -> JsonObject | None:
        """The note that a run has left which this one goes on with. Raises StoreFailed."""
        return self._session.find_begun(self._make_mark(about))

    def write(self, about: JsonMapping, note: JsonObject) -> None:
        """Note something, in place of what was noted before. Raises StoreFailed."""
        self.clear()
        mark = self._make_mark(about)
        self._written.append((mark, note))
        self._session.begin(mark, note)

    def clear(self) -> None:
        """Leave no note: the answer is there. Raises StoreFailed."""
        for mark, note in self._written:
            self._session.take_back(mark, note)
        self._written.clear()

    def _make_mark(self, about: JsonMapping) -> StoreRequest:
        body = {"request": self._request.content, **about}
        return StoreRequest(kind="begun", path=self._request.path, body=body)


NOTES: ContextVar[RequestNotes | None] = ContextVar("notes_on_request", default=None)
"""The notes on the request that is being made; None where nothing is stored."""


@contextmanager
def take_notes(notes: RequestNotes) -> Iterator[RequestNotes]:
    """While the block lasts, notes are taken on a request."""
    before = NOTES.set(notes)
    try:
        yield notes
    finally:
        NOTES.reset(before)
