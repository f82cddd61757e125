"""The store around a person: a question that was answered is not put again when the run is resumed or replayed."""

from __future__ import annotations

from collections.abc import Callable

from aeon.domain.plan import FollowUpQuestion
from aeon.store.models import Asked, CallPath
from aeon.store.session.session import Session

Ask = Callable[[FollowUpQuestion], str | None]


def stored_ask(ask: Ask, session: Session, stop: Callable[[], bool] = lambda: False) -> Ask:
    """`ask`, its answers kept in a run's session and given again from there; no answer is kept as one, too.

    Unless `stop` says that the run is asked to stop: then nobody has answered yet. The questions of a run differ, so
    that no more than the question says which it is. Raises StoreMiss and StoreFailed.
    """

    def asked(question: FollowUpQuestion) -> str | None:
        put = Asked(
            kind="person",
            path=CallPath(pass_number=0, phase="REFINE", call="question"),
            request=question.model_dump(mode="json", exclude={"answer"}),
        )
        try:
            said = session.answer(put, lambda: {"answer": _answered(ask(question), stop)})["answer"]
        except _Unanswered:
            return None
        return None if said is None else str(said)

    return asked


class _Unanswered(Exception):
    """The run is asked to stop while a question is open."""


def _answered(said: str | None, stop: Callable[[], bool]) -> str | None:
    if said is None and stop():
        raise _Unanswered
    return said
