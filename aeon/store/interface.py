"""What keeps answers: a SQLite file, or a cassette to read from. A leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, runtime_checkable

from aeon.store.models import Entry


@runtime_checkable
class AnswerSource(Protocol):
    """Where kept answers are read from; thread-safe. Every method raises `aeon.domain.errors.StoreFailed`."""

    def get(self, key: str) -> Entry | None:
        """The answer to exactly this request from exactly this place (`Asked.key`)."""
        ...

    def by_content(self, content: str) -> Entry | None:
        """The first answer to this request from whatever place (`Asked.content`)."""
        ...

    def entries(self) -> Iterator[Entry]:
        """Every answer, in the order of the run (pass, then as asked)."""
        ...

    def close(self) -> None:
        """Let go of what is held open."""
        ...


@runtime_checkable
class AnswerStore(AnswerSource, Protocol):
    """A source that keeps new answers too."""

    def put(self, entry: Entry) -> None:
        """Keep an answer; durable when this returns. The first answer under a key stays."""
        ...
