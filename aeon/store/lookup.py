"""How a stored answer is found, and for which requests it may be used again."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal

from aeon.domain.errors import StoreFailed
from aeon.store.interface import AnswerSource
from aeon.store.models import Entry, StoreRequest

ReuseScope = Literal["anywhere", "here", "replay"]
"""Where an answer may be used again: for every equal request; at its own place, when the run is resumed or replayed; or
only in a replay, since a call that failed then may succeed now."""
ReusePolicy = Callable[[dict[str, Any]], ReuseScope]
"""Says the scope of an answer."""


class ByKey:
    """The answer to exactly this request from exactly this place; in a `replay` whatever its scope."""

    def __init__(self, source: AnswerSource, *, replay: bool = False) -> None:
        self._source, self._replay = source, replay

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """The stored answer; None when there is none. Raises StoreFailed."""
        entry = self._source.get(request.key)
        return entry if entry is None or self._replay or policy(entry.answer) != "replay" else None


class Shared:
    """A model's answer to an equal request: from the same place where there is one, else from any place unless
    `same_place`. When the store cannot be read, `warn` is called, and nothing more is found."""

    def __init__(self, source: AnswerSource, warn: Callable[[str], None], *, same_place: bool = False) -> None:
        self._source, self._warn, self._same_place = source, warn, same_place
        self._failed = False

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """The stored answer; None when there is none."""
        if request.kind != "model" or self._failed:
            return None
        try:
            entry = self._source.get(request.key)
            if not self._same_place and (entry is None or policy(entry.answer) != "anywhere"):
                entry = self._source.by_content(request.content)
        except StoreFailed as error:
            self._failed = True
            self._warn(f"{error.message}; nothing more is answered from this store, the run goes on")
            return None
        return entry if entry is not None and policy(entry.answer) == "anywhere" else None


class InOrder:
    """The next unused answer to the same request, at the same place, or of the same call, in this order. `differing`
    counts the requests that got the answer to another one."""

    def __init__(self, source: AnswerSource) -> None:
        self._lock = threading.Lock()
        self._recorded: defaultdict[object, list[Entry]] = defaultdict(list)
        self._used: set[str] = set()
        self.differing = 0
        for entry in source.entries():
            for name in _names_of(entry.request):
                self._recorded[name].append(entry)

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:  # noqa: ARG002
        """The stored answer; None when no more are left."""
        with self._lock:
            candidates = (entry for name in _names_of(request) for entry in self._recorded[name])
            entry = next((entry for entry in candidates if entry.request.key not in self._used), None)
            if entry is not None:
                self._used.add(entry.request.key)
                self.differing += entry.request.content != request.content
            return entry


Lookup = ByKey | Shared | InOrder
"""A way to find the answer to a request; thread-safe."""


def _names_of(request: StoreRequest) -> tuple[object, ...]:
    """What a request may be answered by, best first: itself, its place, its call."""
    return request.key, place_of(request), (request.kind, request.path.call)


def place_of(request: StoreRequest) -> tuple[object, ...]:
    """Where a request comes from, without its content."""
    path = request.path
    return request.kind, path.pass_number, path.phase, path.call, path.step_id, path.attempt
