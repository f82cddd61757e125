"""The interface of a store of answers, whatever it stores them in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from aeon.store.models import Entry


@runtime_checkable
class AnswerSource(Protocol):
    """A source of stored answers; thread-safe. Every method raises
    `aeon.domain.errors.StoreFailed`."""

    def get(self, key: str) -> Entry | None:
        """Return the answer to exactly this request from exactly this place
        (`StoreRequest.key`)."""
        ...

    def by_content(self, content: str) -> Entry | None:
        """Return the first usable answer to this request from any place, else the first
        (`StoreRequest.content`)."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Return every answer, in the order of the run: by pass, then as stored."""
        ...

    def close(self) -> None:
        """Release all resources. May be called twice."""
        ...


@runtime_checkable
class AnswerStore(AnswerSource, Protocol):
    """A source that also stores new answers; shared by threads, and by processes if its medium
    allows."""

    def put(self, entry: Entry) -> None:
        """Store an answer durably. The first under a key stays, but a usable answer replaces an
        unusable one, and an existing answer may be stored again as unusable. After `close`, nothing
        is stored or raised."""
        ...


class OpenStore(Protocol):
    """Opens stores of one kind; the setting `store.backend` names it and may add options."""

    def __call__(self, place: str, *, read_only: bool = False) -> AnswerStore:
        """Open the store at a place, creating it if it is missing, unless `read_only`. `place` is
        the exact value of `store.path`, or a path in a run's directory. Raises StoreFailed with a
        hint."""
        ...
