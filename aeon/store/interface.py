"""What a store of answers does, whatever it stores them in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from aeon.store.models import Entry


@runtime_checkable
class AnswerSource(Protocol):
    """Where stored answers are read from; thread-safe. Every method raises
    `aeon.domain.errors.StoreFailed`."""

    def get(self, key: str) -> Entry | None:
        """The answer to exactly this request from exactly this place (`StoreRequest.key`)."""
        ...

    def by_content(self, content: str) -> Entry | None:
        """The first usable answer to this request from whatever place, else the first
        (`StoreRequest.content`)."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Every answer, in the order of the run: by pass, then as stored."""
        ...

    def close(self) -> None:
        """Release what is held open. May be called twice."""
        ...


@runtime_checkable
class AnswerStore(AnswerSource, Protocol):
    """A source that stores new answers, too; shared by threads, and where its medium allows by
    processes."""

    def put(self, entry: Entry) -> None:
        """Store an answer, durably; the first under a key stays, but a usable one replaces one that
        is not, and an answer that is there already may be put again as not usable. After `close`
        nothing is stored or raised."""
        ...


class OpenStore(Protocol):
    """Opens stores of one kind; the setting `store.backend` names it, and may give it further
    options."""

    def __call__(self, place: str, *, read_only: bool = False) -> AnswerStore:
        """Open the store at a place, which is made when it is missing unless `read_only`: what
        `store.path` says, word for word, or a path in the directory of a run. Raises StoreFailed
        with a hint."""
        ...
