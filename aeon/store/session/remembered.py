"""The store around a memory that outlasts its run: a run that is resumed or replayed begins with what there was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aeon.domain.errors import StoreMiss
from aeon.store.models import Asked, CallPath
from aeon.store.session.session import Session


def stored_memory(read: Callable[[], Mapping[str, Any]] | None, session: Session) -> dict[str, Any]:
    """What memory holds at the beginning of a run, kept in its session, and given again from there.

    Without `read` nothing is kept: the memory begins with the run. Raises StoreFailed.
    """

    def held() -> dict[str, Any]:
        if read is None:
            raise _Nothing
        return {"entries": dict(read())}

    path = CallPath(pass_number=0, phase="PLAN", call="memory")
    try:
        return dict(session.answer(Asked(kind="memory", path=path, request={}), held)["entries"])
    except (_Nothing, StoreMiss):
        return dict(read()) if read else {}


class _Nothing(Exception):
    """There is nothing to keep."""
