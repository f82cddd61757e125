"""The answers of one structured call, the original's and its repairs': whether they came to
something is only known when the call ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from aeon.domain.errors import AnswerError, ValidationError

_undo: ContextVar[list[Callable[[], None]] | None] = ContextVar("answers_of_call", default=None)


@contextmanager
def one_call() -> Iterator[None]:
    """The answers that are given to this thread in the block are of one structured call. When it
    ends without a usable answer (AnswerError, ValidationError), all of them are taken back; when
    the provider fails, they stay."""
    undo: list[Callable[[], None]] = []
    token = _undo.set(undo)
    try:
        yield
    except (AnswerError, ValidationError) as error:
        is_answered = isinstance(error, ValidationError) and error.is_answered
        for take_back in () if is_answered else undo:
            take_back()
        raise
    finally:
        _undo.reset(token)


def when_unusable(take_back: Callable[[], None]) -> None:
    """Call `take_back` if the call that is being made ends without a usable answer."""
    undo = _undo.get()
    if undo is not None:
        undo.append(take_back)
