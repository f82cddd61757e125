"""The answers of one structured call, including its repairs: only the end of the call shows whether
they are usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aeon.domain.errors import AnswerError, ValidationError

_notes: ContextVar[dict[object, list[Any]] | None] = ContextVar("notes_of_call", default=None)
_undo: ContextVar[list[Callable[[], object]] | None] = ContextVar("answers_of_call", default=None)


@contextmanager
def one_call() -> Iterator[None]:
    """Treat the answers given to this thread in the block as one structured call. If it ends
    without a usable answer (AnswerError, ValidationError), all of them are taken back; if the
    provider fails, they stay. A nested block belongs to the same call."""
    undo: list[Callable[[], object]] = []
    token = _undo.set(undo)
    before = _notes.get()
    noted = _notes.set({} if before is None else before)
    try:
        yield
    except (AnswerError, ValidationError) as error:
        is_answered = isinstance(error, ValidationError) and error.is_answered
        for take_back in () if is_answered else undo:
            take_back()
        raise
    finally:
        _undo.reset(token)
        _notes.reset(noted)


def when_unusable(take_back: Callable[[], object]) -> None:
    """Call `take_back` if the current call ends without a usable answer."""
    undo = _undo.get()
    if undo is not None:
        undo.append(take_back)


def notes_of_call(owner: object) -> list[Any]:
    """Return the list of `owner`'s notes during the current structured call, to append to; outside
    a call it is discarded."""
    notes = _notes.get()
    return [] if notes is None else notes.setdefault(owner, [])
