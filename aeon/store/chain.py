"""The answers of one structured call, the original's and its repairs': whether they came to
something is only known when the call ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aeon.domain.errors import AnswerError, ValidationError

_notes: ContextVar[dict[object, list[Any]] | None] = ContextVar("notes_of_call", default=None)
_undo: ContextVar[list[Callable[[], None]] | None] = ContextVar("answers_of_call", default=None)


@contextmanager
def one_call() -> Iterator[None]:
    """The answers that are given to this thread in the block are of one structured call. When it
    ends without a usable answer (AnswerError, ValidationError), all of them are taken back; when
    the provider fails, they stay. A block within another is of the same call."""
    undo: list[Callable[[], None]] = []
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


def when_unusable(take_back: Callable[[], None]) -> None:
    """Call `take_back` if the call that is being made ends without a usable answer."""
    undo = _undo.get()
    if undo is not None:
        undo.append(take_back)


def notes_of_call(owner: object) -> list[Any]:
    """What `owner` has noted during the structured call that is being made, to be added to; of no
    use outside one."""
    notes = _notes.get()
    return [] if notes is None else notes.setdefault(owner, [])
